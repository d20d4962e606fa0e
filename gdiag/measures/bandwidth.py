"""Collective benchmarks: one sweep per test run, its plateau, its shape, and whether its figures agree with each other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gdiag.measures.curves import Floats
from gdiag.measures.segments import Ints

MIB: Final = 1 << 20
SMALL: Final = 64 << 10
"""Messages up to this size [B] measure latency, not bandwidth."""
PLATEAU_FROM: Final = 1 << 30
"""Sizes from 1 GiB on are on the plateau of every fabric in hardware.md 2.2."""
_MANY: Final = 100_000
"""More ranks than any benchmark runs on."""
_ONE_HOST: Final = 8
"""GPUs of a host at most, racks that share NVLink apart."""
JUDGED_FROM: Final = 256 * MIB
"""A sweep that ends below 256 MiB has not reached the plateau of a fast fabric."""
_COLUMNS: Final = (
    "source", "section", "collective", "redop", "root", "line", "size", "in_place", "time", "cpu_time", "algbw", "busbw", "wrong", "cycle", "t_cv",
)  # fmt: skip
_FIGURES: Final = ("size", "in_place", "time", "cpu_time", "algbw", "busbw", "wrong", "cycle")
RATIOS: Final = frozenset({"all_reduce", "all_gather", "reduce_scatter", "alltoall", "alltoallv", "gather", "scatter"})
"""Collectives whose busbw/algbw tells the number of ranks."""


@dataclass(frozen=True, slots=True, eq=False)
class SweepRows:
    """The rows of all test runs in file order, which sweeps hold spans of: a frame of its own for each would cost more than its rows."""

    frame: pl.DataFrame
    """source, section, line, size, in_place, time, algbw, busbw, wrong, cycle, t_cv and more; one row per side."""
    arrays: dict[str, NDArray[Any]]
    """The columns of figures as arrays over the same memory, null as NaN."""


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """One test run over message sizes. Bandwidths in GB/s (1e9), times in µs, sizes in bytes."""

    section: int
    collective: str | None
    """As the output says, else inferred from columns and ratio; None when neither tells."""
    table: SweepRows
    span: slice
    """Where in `table` its rows lie."""
    listed: int
    """Ranks in the rank list: up to the highest where only its end was kept."""
    ranks: tuple[int, int] | None
    """Smallest and largest number of ranks that busbw/algbw allows at the printed precision; None when it cannot tell."""
    host_names: tuple[str, ...]
    """Hosts of the rank list, sorted."""
    model: str | None
    plateau: float
    peak: float
    largest: int
    latency: float | None
    """Median time of messages up to 64 KiB, the first row left out."""
    average: float | None
    """The printed average bus bandwidth."""
    facts: tuple[tuple[str, str], ...]
    """(key, value) of the section's facts, in order."""

    @property
    def hosts(self) -> int:
        """Number of hosts in the rank list; 0 when it is absent."""
        return len(self.host_names)

    def fact(self, key: str) -> str | None:
        """The first fact called `key`."""
        return next((value for name, value in self.facts if name == key), None)

    @property
    def rows(self) -> pl.DataFrame:
        """Its rows as a table, made anew: for the few sweeps that are shown."""
        return self.table.frame[self.span]

    def values(self, name: str) -> NDArray[Any]:
        """A column of figures of its rows, without a copy."""
        return self.table.arrays[name][self.span]

    def place(self, *, size: int | None = None, line: object = None) -> dict[str, object]:
        """Source and line of the first row, of the first row of `size`, or of `line`, as RunView.where takes them."""
        at = self.span.start + (0 if size is None else int(np.argmax(self.values("size") == size)))
        frame = self.table.frame
        return {"source": frame["source"][at], "line": frame["line"][at] if line is None else line}

    @property
    def n(self) -> int | None:
        """Number of ranks: from the ratio where it is exact, else from the rank list."""
        if self.ranks and self.ranks[0] == self.ranks[1]:
            return self.ranks[0]
        if self.ranks and self.ranks[0] <= self.listed <= self.ranks[1]:
            return self.listed
        if self.listed == 1 and self.plateau > 0:
            # One rank has no bus bandwidth: the list was cut.
            return None
        return self.listed or None


def sweeps(collectives: pl.DataFrame, devices: pl.DataFrame, facts: pl.DataFrame) -> tuple[Sweep, ...]:
    """One Sweep per source and section that holds rows, in file order."""
    key = ["source", "section"]
    sized = collectives.select(_COLUMNS)
    if sized["size"].null_count():
        sized = sized.filter(pl.col("size").is_not_null())
    listed = {tuple(row[:2]): row[2:] for row in _listed(devices).iter_rows()}
    told = facts.group_by(key).agg("key", "value")
    said = {
        (source, section): tuple(zip(names, values, strict=True)) for source, section, names, values in told.iter_rows()
    }
    table = SweepRows(sized, {name: sized[name].to_numpy() for name in _FIGURES})
    # Rows of one section lie together: a span of the table is a sweep.
    places = sized.select(*key, "collective", "redop", "root", run=pl.struct(key).rle_id())
    firsts = places.group_by("run", maintain_order=True).agg(
        pl.first(*key), pl.col("collective", "redop", "root").first(ignore_nulls=True), rows=pl.len()
    )
    found, at = [], 0
    for source, section, name, redop, root, rows in firsts.drop("run").iter_rows():
        place, span = (source, section), slice(at, at + rows)
        head = _Head(section, name, redop, root)
        found.append(_sweep(head, table, span, listed.get(place, (0, (), None)), said.get(place, ())))
        at += rows
    return tuple(found)


def _listed(devices: pl.DataFrame) -> pl.DataFrame:
    """source, section, ranks (up to the highest where only the list's end was kept), hosts sorted, the commonest model."""
    highest = pl.col("rank").max().cast(pl.Int64) + 1
    return devices.group_by("source", "section").agg(
        pl.max_horizontal(
            pl.col("rank").drop_nulls().n_unique(), pl.when(highest <= _MANY).then(highest).otherwise(0)
        ).fill_null(0).cast(pl.Int64).alias("ranks"),
        # The end of a cut list shows one host of a run that is too large for one.
        pl.when((pl.col("rank").n_unique() < highest) & (highest > _ONE_HOST) & (pl.col("host").n_unique() == 1))
        .then(pl.lit([], pl.List(pl.String)))
        .otherwise(pl.col("host").drop_nulls().unique().sort().implode())
        .alias("hosts"),
        pl.col("model").drop_nulls().mode().sort().first().alias("model"),
    )  # fmt: skip


class _Head(NamedTuple):
    """What the rows of a test run say of it, the first that says it."""

    section: int
    collective: str | None
    redop: str | None
    root: int | None


def _sweep(
    head: _Head, table: SweepRows, span: slice, listed: tuple[Any, ...], facts: tuple[tuple[str, str], ...]
) -> Sweep:
    size, busbw, algbw, times = (table.arrays[name][span] for name in ("size", "busbw", "algbw", "time"))
    order = np.argsort(size, kind="stable")
    ratio, error = _ratio(algbw[order], busbw[order])
    collective = head.collective or _collective(head, ratio)
    small = times[(size <= SMALL) & (size > 0)][2:]
    ranks, hosts, model = listed
    return Sweep(
        section=head.section, collective=collective, table=table, span=span, listed=int(ranks or 0),
        ranks=_ranks(collective, ratio, error), host_names=tuple(hosts), model=model, plateau=_plateau(size[order], busbw[order]),
        peak=float(np.max(busbw)), largest=int(size.max()), latency=_median(small) if len(small) else None,
        average=next((_float(value) for name, value in facts if name == "average_busbw"), None), facts=facts,
    )  # fmt: skip


def _plateau(size: Ints, busbw: Floats) -> float:
    """Median busbw from 1 GiB on, or of the three largest sizes where these are higher: a curve may rise beyond 1 GiB.

    Both in order of size.
    """
    starts = np.flatnonzero(size[1:] != size[:-1]) + 1
    third = int(starts[-3]) if len(starts) > 2 else 0
    return max(_median(busbw[third:]), _median(busbw[int(np.searchsorted(size, PLATEAU_FROM)) :]))


def _ratio(algbw: Floats, busbw: Floats) -> tuple[float | None, float]:
    """busbw/algbw at the largest size and its printing error; both in order of size."""
    usable = np.flatnonzero(algbw >= 0.1)[-4:]
    if not len(usable):
        return None, 0.0
    best = usable[int(np.argmax(algbw[usable]))]
    return float(busbw[best] / algbw[best]), 0.005 / float(algbw[best]) * (1 + float(busbw[best] / algbw[best]))


def by_size(sweep: Sweep) -> tuple[Ints, Floats]:
    """Sizes, ascending, and the median busbw at each over sides and cycles."""
    size, values = sweep.values("size"), sweep.values("busbw")
    order = np.lexsort((values, size))
    size, values = size[order], values[order]
    starts = np.flatnonzero(np.append(True, size[1:] != size[:-1]))
    counts = np.diff(np.append(starts, len(size)))
    return size[starts], (values[starts + (counts - 1) // 2] + values[starts + counts // 2]) / 2


def _collective(head: _Head, ratio: float | None) -> str | None:
    """What redop, root and the ratio leave as the only usual choice."""
    rooted = head.root is not None and head.root >= 0
    if head.redop not in {None, "", "none"}:
        if rooted:
            return "reduce"
        return None if not ratio else "all_reduce" if ratio >= 0.995 else "reduce_scatter"
    if rooted:
        return "broadcast"
    return "all_gather" if ratio is not None and 0.3 < ratio < 0.9995 else None


def _ranks(collective: str | None, ratio: float | None, error: float) -> tuple[int, int] | None:
    """Numbers of ranks that the ratio allows: 2(n-1)/n for all_reduce, (n-1)/n for the gather family."""
    if ratio is None or not (math.isfinite(ratio) and math.isfinite(error)) or collective not in RATIOS:
        return None
    whole = 2.0 if collective == "all_reduce" else 1.0
    low, high = whole - ratio + error, whole - ratio - error
    if low <= 0 or ratio <= 0:
        return None
    least = whole / low
    most = whole / high if high > 0 else float("inf")
    if most > _MANY:
        return (math.ceil(least - 1e-6), _MANY)
    first, last = math.ceil(least - 1e-6), math.floor(most + 1e-6)
    if first > last:
        nearest = round(whole / (whole - ratio))
        return (nearest, nearest)
    return (max(first, 1), last)


@dataclass(frozen=True, slots=True)
class Shape:
    """What the curve of best busbw over size does after its peak."""

    peak_size: int
    dip_size: int | None
    """Size of a dip that recovers, None without one."""
    dip_share: float
    """Bandwidth at the dip as a share of the envelope around it."""
    collapse_size: int | None
    """First size of a fall that does not recover, None without one."""
    collapse_share: float
    """Bandwidth at the largest sizes as a share of the peak before the fall."""


def shape(sweep: Sweep, dip: float = 0.75) -> Shape:
    """Dips and collapses of the sweep's curve: medians over sides and cycles per size, in order of size."""
    sizes, values = by_size(sweep)
    sizes, values = sizes[sizes > SMALL], values[sizes > SMALL]
    if len(values) < 4:
        return Shape(sweep.largest, None, 1.0, None, 1.0)
    before = np.maximum.accumulate(values)
    after = np.maximum.accumulate(values[::-1])[::-1]
    low = values < dip * before
    peak = int(np.argmax(values))
    tail = np.flatnonzero(low[peak:]) + peak
    falls = len(tail) >= 2 and bool(low[-1]) and bool(np.all(after[tail] < 0.85 * values[peak]))
    inside = np.flatnonzero(low & (after >= 0.95 * before))
    worst = int(inside[np.argmin(values[inside] / before[inside])]) if len(inside) else None
    return Shape(
        peak_size=int(sizes[peak]),
        dip_size=int(sizes[worst]) if worst is not None else None,
        dip_share=float(values[worst] / before[worst]) if worst is not None else 1.0,
        collapse_size=int(sizes[tail[0]]) if falls else None,
        collapse_share=float(np.median(values[-2:]) / values[peak]) if falls else 1.0,
    )


@dataclass(frozen=True, slots=True)
class Jitter:
    """Unsteadiness of a sweep."""

    small_share: float
    """Share of small rows slower than three times their median."""
    small_ratio: float
    """Median of those rows over the median of the others."""
    sides: float
    """Median difference of in-place and out-of-place at the largest sizes, as a share."""
    slow_cycles: tuple[int, ...]
    """Sizes that are at least 1.3 times slower than their median in two cycles or more."""


def jitter(sweep: Sweep) -> Jitter:
    """How steady small messages, the two sides and the repeats are; the first row of a run is warm-up and left out."""
    size, times = sweep.values("size"), sweep.values("time")
    small = times[(size <= SMALL) & (size > 0)][2:]
    share = ratio = 0.0
    if len(small) >= 8:
        middle = _median(small)
        slow = small > 3 * middle
        share = float(np.mean(slow))
        # Times may be logged as 0: then the ratio is infinite.
        ratio = float(np.divide(_median(small[slow]), _median(small[~slow]))) if slow.any() else 1.0
    large = size >= max(MIB, sweep.largest // 8)
    inside, busbw = sweep.values("in_place"), sweep.values("busbw")
    a, b = busbw[large & ~inside], busbw[large & inside]
    gap = _median(np.abs(a - b) / np.maximum(np.maximum(a, b), 1e-9)) if len(a) == len(b) >= 2 else 0.0
    cycle = sweep.values("cycle")
    if cycle.max(initial=0) - cycle.min(initial=0) < 3:
        return Jitter(share, ratio, gap, ())
    repeats = sweep.rows.with_columns(slow=pl.col("time") > 1.3 * pl.col("time").median().over("size", "in_place"))
    again = (
        repeats.filter("slow")
        .group_by("size")
        .agg(n=pl.col("cycle").n_unique())
        .filter(pl.col("n") >= 2)["size"]
        .sort()
    )
    return Jitter(share, ratio, gap, tuple(again.to_list()) if repeats["cycle"].n_unique() >= 4 else ())


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether a sweep's own figures agree with each other."""

    size_over_time: float | None
    """Median of (size/time)/algbw over rows of at least 1 GB/s; None when it cannot be formed."""
    odd_rows: int
    """Rows where it differs from the sweep's own median by more than 3 %."""
    rows: int
    mean_busbw: float
    """Mean of all busbw cells."""
    average: float | None


def agreement(sweep: Sweep) -> Agreement:
    """size/time against algbw, and the printed average against the mean of the rows."""
    algbw, times = sweep.values("algbw"), sweep.values("time")
    usable = (algbw >= 1) & (times > 0) & ~sweep.values("cpu_time")
    share: float | None = None
    odd = 0
    if usable.any():
        factor = sweep.values("size")[usable] / times[usable] / 1e3 / algbw[usable]
        share = _median(factor)
        odd = int(np.sum(np.abs(factor / share - 1) > 0.03))
    return Agreement(share, odd, int(usable.sum()), float(np.mean(sweep.values("busbw"))), sweep.average)


def _median(values: NDArray[np.float64]) -> float:
    """As np.median, NaN with a NaN, without its cost for a few values; 0 of none."""
    if not len(values):
        return 0.0
    ordered = np.sort(values)
    middle, last = len(values) // 2, float(ordered[-1])
    high = float(ordered[middle])
    return last if math.isnan(last) else high if len(values) % 2 else (float(ordered[middle - 1]) + high) / 2


def _float(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
