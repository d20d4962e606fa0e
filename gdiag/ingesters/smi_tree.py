"""The tree that nvidia-smi -q prints as text or XML: paths of one GPU → a row of `gpus`, its limits → facts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from gdiag.ingesters import telemetry
from gdiag.reference import gpus as reference
from gdiag.schema import TABLES

_PATHS: Final[dict[str, tuple[str, ...]]] = {
    "temperature": (r"temperature/gpu_(current_)?temp",),
    "memory_temperature": (r"temperature/memory_(current_)?temp",),
    "temperature_margin": (r"temperature/gpu_(temp_tlimit|t_limit_temp)",),
    "power": (
        r"(gpu_)?power_readings/(instant(aneous)?_)?power_draw", r"(gpu_)?power_readings/(average_power_draw|instant_power_draw)",
    ),
    "power_limit": (
        r"(gpu_)?power_readings/(\w+/)?(enforced_power_limit|current_power_limit)", r"(gpu_)?power_readings/(\w+/)?(requested_)?power_limit",
    ),
    "power_default_limit": (r"(gpu_)?power_readings/(\w+/)?default_power_limit",),
    "clock_sm": (r"clocks/sm(_clock)?",),
    "clock_sm_max": (r"max_clocks/sm(_clock)?",),
    "clock_memory": (r"clocks/mem(ory)?(_clock)?",),
    "utilization": (r"utilization/gpu(_util)?",),
    "memory_used": (r"fb_memory_usage/used",),
    "memory_total": (r"fb_memory_usage/total",),
    "fan": (r"fan_speed",),
    "remap_uncorrectable": (r"remapped_rows/(uncorrectable_error|remapped_row_unc)",),
}  # fmt: skip
"""Canonical column → patterns of a path below one GPU, best first."""

_LIMITS: Final = {
    "slowdown_temperature": r"temperature/gpu_(slowdown_temp|temp_slow_threshold)",
    "shutdown_temperature": r"temperature/gpu_(shutdown_temp|temp_max_threshold)",
    "max_operating_temperature": r"temperature/gpu_(max_operating_temp|temp_max_gpu_threshold)",
    "max_memory_temperature": r"temperature/(memory_max_operating_temp|gpu_temp_max_mem_threshold)",
}
_REASON: Final = r"clocks_(event|throttle)_reasons/(?:clocks_(?:event|throttle)_reason_)?(?:\w+/)*?([a-z_]+)$"
_REASON_NAMES: Final = {
    "idle": "gpu_idle", "gpu_idle": "gpu_idle", "sw_power_cap": "sw_power_cap", "hw_slowdown": "hw_slowdown",
    "hw_thermal_slowdown": "hw_thermal_slowdown", "hw_power_brake_slowdown": "hw_power_brake_slowdown",
    "sw_thermal_slowdown": "sw_thermal_slowdown", "sync_boost": "sync_boost", "display_clock_setting": "display_clock_setting",
    "display_clocks_setting": "display_clock_setting", "applications_clocks_setting": "applications_clocks_setting",
}  # fmt: skip
_COUNTERS: Final = r"clocks_(event|throttle)_reasons_counters/(?:\w*?_)?(sw_thermal_slowdown|hw_thermal_slowdown)$"


def path(*names: str) -> str:
    """A path in one spelling, whichever of text and XML it comes from: 'GPU T.Limit Temp' → gpu_t_limit_temp."""
    return "/".join(re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") for name in names)


def row(tree: Mapping[str, str]) -> dict[str, object]:
    """A row of `gpus` from path → printed value of one GPU, its clock and host left to the caller."""
    out: dict[str, object] = {}
    for column, patterns in _PATHS.items():
        value = next(
            (n for p in patterns for k, v in tree.items() if re.fullmatch(p, k) and (n := _number(v)) is not None), None
        )
        if value is not None:
            out[column] = value
    for column, pattern in (
        ("remap_pending", r"remapped_rows/(pending|remapped_row_pending)"),
        ("remap_failure", r"remapped_rows/(remapping_failure_occurred|remapped_row_failure)"),
    ):
        said = next((v.strip().lower() for k, v in tree.items() if re.fullmatch(pattern, k)), "")
        if said in ("yes", "no"):
            out[column] = said == "yes"
    out |= _ecc(tree) | _reasons(tree)
    throttled = [n for k, v in tree.items() if re.fullmatch(_COUNTERS, k) and (n := _number(v)) is not None]
    if throttled:
        out["throttle_time"] = sum(throttled)
    named = {
        k: v.strip()
        for k, v in tree.items()
        if k in ("product_name", "gpu_uuid", "uuid", "pci/bus_id", "pci/pci_bus_id")
    }
    out["model"] = named.get("product_name")
    out["uuid"] = named.get("gpu_uuid") or named.get("uuid")
    out["bus_id"] = telemetry.bus(named.get("pci/bus_id") or named.get("pci/pci_bus_id"))
    return out


def limits(tree: Mapping[str, str]) -> dict[str, str]:
    """Temperatures [°C] at which this GPU slows down or stops, as the file states them."""
    found = {}
    for key, pattern in _LIMITS.items():
        value = next((n for k, v in tree.items() if re.fullmatch(pattern, k) and (n := _number(v)) is not None), None)
        if value is not None:
            found[key] = f"{value:g}"
    return found


def frame(rows: Sequence[dict[str, object]]) -> pl.DataFrame:
    """Rows of `gpus` in the schema's types, only the columns that hold something; index by order of bus id if not given."""
    names = [c for c in TABLES["gpus"] if any(r.get(c) is not None for r in rows)]
    types = TABLES["gpus"]
    table = pl.DataFrame([{c: r.get(c) for c in names} for r in rows], schema={c: types[c] for c in names})
    if "gpu" not in table.columns and "bus_id" in table.columns:
        order = {b: i for i, b in enumerate(sorted(table["bus_id"].drop_nulls().unique()))}
        table = table.with_columns(
            pl.col("bus_id").replace_strict(order, default=None, return_dtype=pl.Int32).alias("gpu")
        )
    return telemetry.canonical(table)


def facts(found: Mapping[str, Mapping[str, str]]) -> pl.DataFrame | None:
    """Limits by model as rows of `facts`."""
    rows = [
        {"scope": model, "key": key, "value": value} for model, keys in found.items() for key, value in keys.items()
    ]
    return pl.DataFrame(rows) if rows else None


def _ecc(tree: Mapping[str, str]) -> dict[str, object]:
    out: dict[str, object] = {}
    for column, word in (
        ("ecc_corrected", r"(correctable|single_bit)"),
        ("ecc_uncorrected", r"(uncorrectable|double_bit)"),
    ):
        for scope in ("volatile", "aggregate"):
            counts = [
                n for k, v in tree.items()
                if re.search(rf"ecc_errors/{scope}(_count)?/", k) and re.search(rf"(^|/|_){word}", k.rsplit(f"{scope}", 1)[-1])
                and (n := _number(v)) is not None
            ]  # fmt: skip
            if counts:
                out[column] = sum(counts)
                break
    return out


def _reasons(tree: Mapping[str, str]) -> dict[str, object]:
    bits = {r.name: r.bit for r in reference.reasons()}
    mask, seen = 0, False
    for key, value in tree.items():
        found = re.search(_REASON, key)
        name = _REASON_NAMES.get(found[2]) if found else None
        if name is not None and value.strip() in ("Active", "Not Active"):
            seen = True
            mask |= bits[name] if value.strip() == "Active" else 0
    return {"reasons": mask} if seen else {}


def _number(text: str) -> float | None:
    found = re.fullmatch(r"\s*([+-]?\d+(?:\.\d+)?)\s*(%|[A-Za-z]*)\s*", text)
    if not found or found[2] not in telemetry.UNITS:
        return None
    return float(found[1]) * telemetry.UNITS[found[2]]
