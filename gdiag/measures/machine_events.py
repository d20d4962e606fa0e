"""What the machine reported, put together: one group per error code and GPU, placed on the run's steps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from gdiag.measures import clock_alignment, telemetry
from gdiag.measures.step_time import StepTimes
from gdiag.measures.telemetry import Telemetry

SOON: Final = 60.0
"""Seconds within which an error of a GPU is the consequence of the one before it: the driver takes the channels down at once, and
its own time-outs are 45 s at most."""
CHANNELS_REMOVED: Final = 45
"""The Xid that any GPU of the node may report after another one's error."""


@dataclass(frozen=True, slots=True)
class Reported:
    """All lines with one error code of one GPU or switch."""

    kind: str
    """xid or sxid."""
    code: int
    host: str | None
    gpu: int | None
    bus_id: str | None
    uuid: str | None
    count: int
    row: dict[str, object]
    """The first line: source, line."""
    time: float | None
    """First time, moved to the step log's clock where an offset is known."""
    last_time: float | None
    zone_known: bool
    step: int | None
    text: str
    """The first line's text."""
    caused_by: int | None
    """The Xid that the lines themselves name as their cause."""
    fatal: bool | None
    """What the line says of an NVLink or switch error; None when it does not say."""
    follows: Reported | None = None
    """The first Xid of the same GPU (of the node, for removed channels) that this one came right after."""

    @property
    def device(self) -> str | None:
        """The GPU or switch as the line names it."""
        return self.bus_id or self.uuid or (None if self.gpu is None else str(self.gpu))


def reported(events: pl.DataFrame, view: Telemetry | None, times: StepTimes | None) -> list[Reported]:
    """Groups of Xid and SXid lines in order of their first line; GPUs are found by bus id or UUID in the telemetry."""
    said = events.filter(pl.col("kind").is_in(["xid", "sxid"]) & pl.col("value").is_not_null())
    if not said.height:
        return []
    said = said.with_columns(
        pl.col("text").str.extract(r"(GPU-[0-9a-fA-F-]+)", 1).alias("uuid"),
        pl.col("text").str.extract(r"caused by previous Xid (\d+)", 1).cast(pl.Int64).alias("caused_by"),
    )
    groups = said.group_by("kind", "value", "host", "bus_id", "uuid", "gpu", maintain_order=True).agg(
        pl.len().alias("count"), pl.col("source", "line", "text", "caused_by", "zone_known").first(), pl.col("rank").first(),
        pl.col("step").first(), pl.col("time").min(), pl.col("time").max().alias("last_time"),
    )  # fmt: skip
    return _followed([_group(row, view, times) for row in groups.iter_rows(named=True)])


def _followed(groups: Sequence[Reported]) -> list[Reported]:
    """The groups with the one each came right after: in order of their clocks, or of their lines where one process is named."""
    found: list[Reported] = []
    for group in groups:
        before = [e for e in found if e.kind == group.kind == "xid" and e.host == group.host and _soon(e, group)]
        own = [e for e in before if e.device is not None and e.device == group.device]
        first = next(iter(own or (before if group.code == CHANNELS_REMOVED else [])), None)
        found.append(group if first is None else replace(group, follows=first.follows or first))
    return found


def _soon(before: Reported, after: Reported) -> bool:
    if before.time is not None and after.time is not None:
        return 0 <= after.time - before.time <= SOON or 0 <= after.time - (before.last_time or before.time) <= SOON
    process = re.search(r"\bpid='?(\d+)", before.text)
    same = process is not None and re.search(rf"\bpid='?{process[1]}\b", after.text) is not None
    return same and before.row["source"] == after.row["source"]


def _group(row: dict[str, object], view: Telemetry | None, times: StepTimes | None) -> Reported:
    time, last = _seconds(row["time"]), _seconds(row["last_time"])
    zoned = row["zone_known"] is not False
    moved = 0.0
    if (
        not zoned
        and view is not None
        and not view.zone_known
        and view.alignment is not None
        and view.alignment.how == "inferred"
    ):
        moved, zoned = view.alignment.offset, True
    host, gpu = _unit(row, view)
    step = row["step"] if isinstance(row["step"], int) else None
    if step is None and time is not None and times is not None and np.isfinite(times.time).sum() >= 2:
        step = clock_alignment.step_at(time + moved, telemetry.step_stamps(times), times.step)
    text = str(row["text"])
    word = re.search(r"\b(non-?fatal|fatal)\b", text, re.IGNORECASE)
    return Reported(
        kind=str(row["kind"]), code=int(float(str(row["value"]))), host=host, gpu=gpu, bus_id=_word(row["bus_id"]), uuid=_word(row["uuid"]),
        count=int(str(row["count"])), row={"source": row["source"], "line": row["line"]},
        time=None if time is None else time + moved, last_time=None if last is None else last + moved, zone_known=zoned, step=step,
        text=text, caused_by=row["caused_by"] if isinstance(row["caused_by"], int) else None,
        fatal=None if word is None else word[1].lower() == "fatal",
    )  # fmt: skip


def _unit(row: dict[str, object], view: Telemetry | None) -> tuple[str | None, int | None]:
    """Host and index of the GPU: as logged, else by bus id or UUID where the telemetry knows exactly one."""
    host, gpu = _word(row["host"]), row["gpu"]
    if isinstance(gpu, int):
        return host, gpu
    if view is not None:
        units = view.health.units
        for key in ("bus_id", "uuid"):
            if row[key] is not None:
                found = units.filter(pl.col(key).str.starts_with(str(row[key])).fill_null(False))
                if host is not None and found["host"].count():
                    found = found.filter(pl.col("host").str.starts_with(host.split(".")[0]))
                if found.height == 1:
                    return host or found["host"][0], int(found["gpu"][0])
    return host, None


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None
