"""The trajectory: each step once, as the final state of the run went through it, and what restarts took back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from gdiag.measures.curves import Path
from gdiag.measures.rewinds import trained_again
from gdiag.measures.segments import Ints, layout
from gdiag.model import Segment
from gdiag.schema import STEP_METRICS

CONTEXT_ROWS = 2000
"""Rows before a taken-back tail that are kept as its baseline."""
MOST_TAILS = 60
FIRST_WINS, LAST_WINS = ("sample_start",), ("sample_end", "tokens", "samples", "time", "elapsed", "epoch")


@dataclass(frozen=True, slots=True)
class Restart:
    """A place where writing went on from an earlier step, or in another file."""

    step: int
    """First step after the restart."""
    last_step: int
    """Last step written before it."""
    source: int
    line: int
    time: float | None
    pause: float | None
    """Seconds without a row; None without times."""
    from_start: bool
    """The new segment begins where the first one began: the run was started again from nothing."""

    @property
    def rewound(self) -> int:
        """Steps trained twice."""
        return max(0, self.last_step - self.step + 1)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Everything about the order of one run's rows."""

    paths: tuple[Path, ...]
    """The trajectory first, then tails and other writers."""
    segments: tuple[Segment, ...]
    restarts: tuple[Restart, ...]
    basis: Literal["reduced", "ranks"]
    """Loss from rows reduced over ranks (or of no rank), or the median over ranks."""
    writers: int
    unordered: bool
    repeated: float
    """Share of steps logged more than once with the same loss, inside one segment."""
    several: float
    """Share of steps logged more than once with different losses, inside one segment."""


def trajectory(steps: pl.DataFrame) -> Trajectory:
    """Order a run's rows of `steps` (file order, all ranks): restarts, writers, each step once.

    Where a resumed run trained steps again, the later writing is used, column by column; several values of one step
    inside one segment are averaged; where rows without a rank hold a column on few steps or none, the median over ranks
    stands for it.
    """
    frame = steps.filter(pl.col("step").is_not_null())
    metrics = [c for c in frame.columns if c in STEP_METRICS and frame[c].count()]
    if not frame.height:
        return Trajectory((Path("trajectory", frame, 0),), (), (), "reduced", 1, False, 0.0, 0.0)
    frame = frame.select("rank", "step", "source", "line", *metrics)
    frame, writers, unordered = _with_segments(frame)
    basis: Literal["reduced", "ranks"] = "reduced"
    if frame["rank"].count():
        lead, ranked = frame.filter(pl.col("rank").is_null()), frame.filter(pl.col("rank").is_not_null())
        key = "loss" if "loss" in metrics else metrics[0] if metrics else "step"
        held = {m for m in {key, *metrics} if _leads(lead, ranked, m)}
        basis = "reduced" if key in held else "ranks"
        frame = _reduced(lead, ranked, metrics, held)
    repeated, several = _doubled(frame)
    main = _longest_writer(frame) if writers > 1 else frame
    paths = [Path("trajectory", _merged(main, metrics), int(main["step"].min()))]  # type: ignore[arg-type]
    paths += _tails(main, metrics)
    if writers > 1:
        others = frame.filter(pl.col("segment") != main["segment"][0])
        for _, part in others.group_by("segment", maintain_order=True):
            paths.append(Path("writer", _merged(part, metrics), int(part["step"].min())))  # type: ignore[arg-type]
    return Trajectory(
        tuple(paths), _segments(frame), () if writers > 1 else _restarts(frame), basis, writers, unordered, repeated, several
    )  # fmt: skip


def _with_segments(frame: pl.DataFrame) -> tuple[pl.DataFrame, int, bool]:
    """`frame` with a column `segment` that counts up in the order of writing over all sources.

    Files of different ranks were written side by side: they share their segments.
    """
    parts: list[pl.DataFrame] = []
    writers, unordered, offset, most = 1, False, 0, -1
    beside: set[int] = set()
    for source in _sources_in_order(frame):
        part = frame.filter(pl.col("source").eq_missing(source)).sort("rank", nulls_last=False, maintain_order=True)
        own = set(part["rank"].unique().to_list())
        if beside and None not in own and not own & beside:
            beside |= own
        else:
            offset += most + 1
            most, beside = 0, own if None not in own else set()
        lengths = part["rank"].rle().struct.field("len").to_list()
        numbers: list[Ints] = []
        for begin, length in zip(np.cumsum([0, *lengths]).tolist(), lengths, strict=False):
            rows = part.slice(begin, length)
            found = layout(rows["step"].to_numpy(), trained_again(rows))
            numbers.append(found.segment + offset)
            most = max(most, int(found.segment.max()))
            writers = max(writers, int(found.writer.max()) + 1)
            unordered |= found.order == "unordered"
        parts.append(part.with_columns(segment=pl.Series(np.concatenate(numbers))))
    return pl.concat(parts), writers, unordered


def _sources_in_order(frame: pl.DataFrame) -> list[int | None]:
    """Sources by their first time where all have one, else by first step; then as given."""
    first = frame.group_by("source", maintain_order=True).agg(
        pl.col("step").min(), pl.col("time").min() if "time" in frame.columns else pl.lit(None).alias("time")
    )
    by = "time" if first["time"].null_count() == 0 else "step"
    return first.sort(by, maintain_order=True)["source"].to_list()


def _leads(lead: pl.DataFrame, ranked: pl.DataFrame, metric: str) -> bool:
    """Whether rows without rank hold a column, on half of the steps at least on which ranks do."""
    own, others = (rows.filter(pl.col(metric).is_not_null())["step"].n_unique() for rows in (lead, ranked))
    return own > 0 and 2 * own >= others


def _reduced(lead: pl.DataFrame, ranked: pl.DataFrame, metrics: list[str], held: set[str]) -> pl.DataFrame:
    """Rows without rank as logged in the columns that they hold, elsewhere the median over ranks of one segment and step."""
    wanted = [m for m in metrics if m not in held and ranked[m].count()]
    medians = ranked.group_by("segment", "step", maintain_order=True).agg(
        pl.col("rank").first(), pl.col("source").first(), pl.col("line").first(), *(_over_ranks(m) for m in wanted)
    )
    if not lead.height:
        return medians
    lead = lead.with_columns(pl.lit(None, lead.schema[m]).alias(m) for m in wanted)
    return pl.concat([lead, medians], how="diagonal")


def _over_ranks(metric: str) -> pl.Expr:
    """The median over ranks; NaN where any rank holds one, for the reduced value would be."""
    column = pl.col(metric)
    return pl.when(column.is_nan().any()).then(pl.lit(float("nan"))).otherwise(column.median()).alias(metric)


def _doubled(frame: pl.DataFrame) -> tuple[float, float]:
    """Shares of steps with the same and with differing losses in one segment."""
    if "loss" not in frame.columns:
        return 0.0, 0.0
    rows = frame.filter(pl.col("loss").is_not_null())
    if not rows.height:
        return 0.0, 0.0
    each = rows.group_by("segment", "step").agg(n=pl.len(), kinds=pl.col("loss").n_unique())
    same = each.filter((pl.col("n") > 1) & (pl.col("kinds") == 1)).height / each.height
    return same, each.filter(pl.col("kinds") > 1).height / each.height


def _longest_writer(frame: pl.DataFrame) -> pl.DataFrame:
    counts = frame["segment"].value_counts(sort=True)
    return frame.filter(pl.col("segment") == counts["segment"][0])


def _cuts(frame: pl.DataFrame, metric: str | None) -> dict[int, int]:
    """Segment → first step that a later segment writes again (in `metric` when given); absent when none does."""
    rows = frame if metric is None else frame.filter(pl.col(metric).is_not_null())
    firsts = rows.group_by("segment").agg(pl.col("step").min()).sort("segment")
    cuts: dict[int, int] = {}
    lowest: int | None = None
    for segment, first in reversed(list(firsts.iter_rows())):
        if lowest is not None:
            cuts[segment] = lowest
        lowest = first if lowest is None else min(lowest, first)
    return cuts


def _merged(frame: pl.DataFrame, metrics: list[str]) -> pl.DataFrame:
    """Each step once, increasing; later segments win, column by column."""
    columns = ["step", "source", "line", *metrics]
    if frame["segment"].n_unique() > 1:
        held = []
        for metric in metrics:
            cuts = _cuts(frame, metric)
            limit = pl.col("segment").replace_strict(cuts, default=None, return_dtype=pl.Int64)
            held.append(pl.when(limit.is_null() | (pl.col("step") < limit)).then(pl.col(metric)).alias(metric))
        frame = frame.with_columns(held)
        if metrics:
            frame = frame.filter(pl.any_horizontal(pl.col(m).is_not_null() for m in metrics))
    steps = frame["step"]
    if bool((steps.diff() > 0).all()):
        return frame.select(columns)
    key = "loss" if "loss" in metrics else None
    place = [_place(c, key) for c in ("source", "line")]
    return frame.group_by("step").agg(*place, *(_one(m) for m in metrics)).sort("step").select(columns)


def _place(column: str, key: str | None) -> pl.Expr:
    last = pl.col(column).last()
    if key is None:
        return last
    return pl.coalesce(pl.col(column).filter(pl.col(key).is_not_null()).last(), last).alias(column)


def _one(metric: str) -> pl.Expr:
    column = pl.col(metric).drop_nulls()
    if metric in FIRST_WINS:
        return column.min().alias(metric)
    return (column.max() if metric in LAST_WINS else column.mean()).alias(metric)


def _tails(frame: pl.DataFrame, metrics: list[str]) -> list[Path]:
    """What restarts took back, each with rows before it as context."""
    cuts = _cuts(frame, "loss" if "loss" in metrics else None)
    tails: list[Path] = []
    for segment, cut in sorted(cuts.items())[-MOST_TAILS:]:
        until = frame.filter(pl.col("segment") <= segment)
        own = until.filter((pl.col("segment") == segment) & (pl.col("step") >= cut))
        if own.height < 2:
            continue
        whole = _merged(until, metrics)
        start = int(np.searchsorted(whole["step"].to_numpy(), cut))
        tails.append(Path("tail", whole.slice(max(0, start - CONTEXT_ROWS)), cut))
    return tails


def _segments(frame: pl.DataFrame) -> tuple[Segment, ...]:
    each = frame.group_by("segment").agg(
        pl.col("step").min().alias("first"), pl.col("step").max().alias("last"), pl.col("step").n_unique().alias("rows")
    )
    return tuple(Segment(first, last, rows) for _, first, last, rows in each.sort("segment").iter_rows())


def _restarts(frame: pl.DataFrame) -> tuple[Restart, ...]:
    """Where a segment goes on from inside or right after an earlier one."""
    key = "loss" if "loss" in frame.columns else None
    rows = frame if key is None else frame.filter(pl.col(key).is_not_null())
    timed = "time" in frame.columns
    found: list[Restart] = []
    reached: int | None = None
    start: int | None = None
    before: float | None = None
    for _, part in rows.group_by("segment", maintain_order=True):
        first = int(part["step"].min())  # type: ignore[arg-type]
        time = part["time"].min() if timed else None
        if reached is not None and start is not None:
            row = part.row(0, named=True)
            moment = float(time) if isinstance(time, float) else None
            pause = moment - before if moment is not None and before is not None else None
            source, line = (-1 if row[c] is None else row[c] for c in ("source", "line"))
            found.append(Restart(first, reached, source, line, moment, pause, first <= start))
        start = first if start is None else min(start, first)
        reached = int(part["step"].max())  # type: ignore[arg-type]
        latest = part["time"].max() if timed else None
        before = float(latest) if isinstance(latest, float) else None
    return tuple(found)
