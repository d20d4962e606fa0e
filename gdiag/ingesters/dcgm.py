"""dcgm-exporter's text for Prometheus: one scrape, or several one after another."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import console, port_rows, telemetry, values
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.model import Source
from gdiag.schema import TABLES

FORMAT = "dcgm-exporter"

_FIELDS: Final[dict[str, tuple[str, float]]] = {
    "DCGM_FI_DEV_GPU_TEMP": ("temperature", 1), "DCGM_FI_DEV_MEMORY_TEMP": ("memory_temperature", 1),
    "DCGM_FI_DEV_POWER_USAGE": ("power", 1), "DCGM_FI_DEV_POWER_MGMT_LIMIT": ("power_limit", 1),
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": ("power_limit", 1), "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF": ("power_default_limit", 1),
    "DCGM_FI_DEV_SM_CLOCK": ("clock_sm", 1), "DCGM_FI_DEV_MAX_SM_CLOCK": ("clock_sm_max", 1), "DCGM_FI_DEV_MEM_CLOCK": ("clock_memory", 1),
    "DCGM_FI_DEV_GPU_UTIL": ("utilization", 1), "DCGM_FI_DEV_FB_USED": ("memory_used", 2.0**20), "DCGM_FI_DEV_FB_TOTAL": ("memory_total", 2.0**20),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": ("reasons", 1), "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": ("reasons", 1),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": ("ecc_corrected", 1), "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("ecc_uncorrected", 1),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": ("remap_uncorrectable", 1), "DCGM_FI_DEV_ROW_REMAP_FAILURE": ("remap_failure", 1),
    "DCGM_FI_DEV_ROW_REMAP_PENDING": ("remap_pending", 1), "DCGM_FI_DEV_THERMAL_VIOLATION": ("throttle_time", 1e-9),
    "DCGM_FI_DEV_FAN_SPEED": ("fan", 1),
}  # fmt: skip
"""Field → canonical column and factor (NVIDIA DCGM field identifiers)."""
_LINE: Final = re.compile(r"^(DCGM_FI_\w+)\{([^}]*)\}\s+(\S+)(?:\s+(\d{10,13}))?\s*$")
_NVLINK: Final = re.compile(
    r"^DCGM_FI_DEV_NVLINK_(?:(CRC_FLIT|CRC_DATA|REPLAY|RECOVERY)_ERROR_COUNT_(?:TOTAL|L(\d+))|COUNT_(LINK_RECOVERY_FAILED)_EVENTS)$"
)
"""Counters of NVLinks, of all links of a GPU or of one."""
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_BLANK: Final = 9.2e18
"""DCGM's 'no value' codes are the largest 64-bit integers."""
_MARK: Final = re.compile(rb"(?m)^(?:# (?:HELP|TYPE) )?DCGM_FI_\w+")


def recognise(given: Input) -> float:
    return 0.95 if _MARK.search(given.head) else 0.0


def read(given: Input, options: Options) -> Reading:  # noqa: ARG001
    """Samples, one per scrape and GPU; the last Xid of each GPU as an event without a time.

    Raises:
        InputError: there are names of fields but no values.
    """
    rows: dict[tuple[int, str, str], dict[str, object]] = {}
    scrape: dict[tuple[str, str, str], int] = {}
    events: dict[tuple[str, str], dict[str, object]] = {}
    columns: dict[str, str] = {}
    bad: list[tuple[int, str, str]] = []
    links: list[tuple[object, ...]] = []
    for number, line in console.lines_of(given).select("line", "text").iter_rows():
        if not line.startswith("DCGM_FI_"):
            continue
        found = _LINE.match(line)
        labels = dict(_LABEL.findall(found[2])) if found else {}
        value = _value(found[3]) if found else None
        if found is None or "gpu" not in labels or value is None:
            bad.append((number, "no value of a GPU", line))
            continue
        if "GPU_I_ID" in labels or value >= _BLANK:
            continue
        host, gpu = labels.get("Hostname", ""), labels["gpu"]
        if found[1] == "DCGM_FI_DEV_XID_ERRORS" and value > 0:
            events[(host, gpu)] = {
                "line": number,
                "kind": "xid",
                "value": value,
                "host": host or None,
                "gpu": _index(gpu),
                "text": "last Xid that DCGM saw; it may be old",
            }
        if (link := _NVLINK.match(found[1])) and _index(gpu) is not None:
            links.append(_link(number, link, labels, value, found[4]))
        if found[1] not in _FIELDS:
            continue
        # A field that comes again for the same GPU begins the next scrape.
        turn = scrape.get((found[1], host, gpu), -1) + 1
        scrape[(found[1], host, gpu)] = turn
        column, factor = _FIELDS[found[1]]
        columns.setdefault(column, found[1])
        row = rows.setdefault(
            (turn, host, gpu),
            {
                "line": number,
                "host": host or None,
                "gpu": _index(gpu),
                "uuid": labels.get("UUID"),
                "model": labels.get("modelName"),
            },
        )
        row[column] = value * factor
        if found[4]:
            row["time"] = float(found[4]) / (1e3 if len(found[4]) > 10 else 1)
            row["zone_known"] = True
    if not rows:
        raise InputError(f"{given.path} names DCGM fields but holds no values of a GPU")
    reading = _reading(given, rows, list(events.values()), columns, bad)
    return replace(reading, ports=port_rows.table(links, _LINK)) if links else reading


_LINK: Final = ("line", "host", "device", "port", "counter", "value", "time")


def _link(
    number: int, found: re.Match[str], labels: dict[str, str], value: float, millis: str | None
) -> tuple[object, ...]:
    """A counter of a GPU's NVLinks as a row of `ports`."""
    name = f"nvlink_{found[1].lower()}_errors" if found[1] else f"nvlink_{found[3].lower()}_events"
    link = found[2] or labels.get("nvlink")
    return (
        number, labels.get("Hostname") or None, f"GPU{_index(labels['gpu'])}", _index(link) if link else None, name, value,
        float(millis) / (1e3 if len(millis) > 10 else 1) if millis else None,
    )  # fmt: skip


def _reading(
    given: Input, rows: dict[tuple[int, str, str], dict[str, object]], events: list[dict[str, object]], columns: dict[str, str],
    bad: list[tuple[int, str, str]],
) -> Reading:  # fmt: skip
    table = pl.DataFrame(list(rows.values()), infer_schema_length=None)
    for flag in ("remap_failure", "remap_pending"):
        if flag in table.columns:
            table = table.with_columns(pl.col(flag) > 0)
    if "reasons" in columns:
        columns["reasons"] = "clocks_event_reasons.active"
    notes = (
        () if "time" in table.columns else ("no time stamps: scrapes are kept in order, nothing can be placed in time",)
    )
    types = TABLES["events"]
    return Reading(
        Source(given.path, FORMAT, table.height, len(bad), columns, notes), gpus=telemetry.canonical(table),
        events=pl.DataFrame(events, schema={c: types[c] for c in ("line", "kind", "value", "host", "gpu", "text")}) if events else None,
        rejects=telemetry.rejects(bad) if bad else None,
    )  # fmt: skip


def _value(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _index(text: str) -> int | None:
    return values.whole(text, bits=32)
