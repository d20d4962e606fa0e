"""Collective benchmarks: one sweep per test run, its plateau, its shape, and whether its figures agree with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

MIB: Final = 1 << 20
SMALL: Final = 64 << 10
"""Messages up to this size [B] measure latency, not bandwidth."""
PLATEAU_FROM: Final = 1 << 30
"""Sizes from 1 GiB on are on the plateau of every fabric in hardware.md 2.2."""
_MANY: Final = 100_000
"""More ranks than any benchmark runs on."""
JUDGED_FROM: Final = 256 * MIB
"""A sweep that ends below 256 MiB has not reached the plateau of a fast fabric."""
RATIOS: Final = frozenset({"all_reduce", "all_gather", "reduce_scatter", "alltoall", "alltoallv", "gather", "scatter"})
"""Collectives whose busbw/algbw tells the number of ranks."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """One test run over message sizes. Bandwidths in GB/s (1e9), times in µs, sizes in bytes."""

    section: int
    collective: str | None
    """As the output says, else inferred from columns and ratio; None when neither tells."""
    inferred: bool
    """Whether `collective` was inferred."""
    rows: pl.DataFrame
    """line, size, in_place, time, algbw, busbw, wrong, cycle, t_cv; one row per side."""
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

    def place(self, *, size: int | None = None, line: object = None) -> dict[str, object]:
        """Source and line of the first row, of the first row of `size`, or of `line`, as RunView.where takes them."""
        rows = self.rows if size is None else self.rows.filter(pl.col("size") == size)
        first = rows.row(0, named=True) if rows.height else {"source": None, "line": None}
        return {"source": first["source"], "line": first["line"] if line is None else line}

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
    sized = collectives.filter(pl.col("size").is_not_null())
    listed, said = devices.partition_by(key, as_dict=True), facts.partition_by(key, as_dict=True)
    nobody, nothing = devices.clear(), facts.clear()
    return tuple(
        _sweep(int(str(place[1])), rows, listed.get(place, nobody), said.get(place, nothing))
        for place, rows in sized.partition_by(key, as_dict=True, maintain_order=True).items()
    )


def _sweep(section: int, rows: pl.DataFrame, devices: pl.DataFrame, facts: pl.DataFrame) -> Sweep:
    large = rows.sort("size", maintain_order=True)
    named = rows["collective"].drop_nulls().first()
    name = str(named) if named is not None else None
    ratio, error = _ratio(large)
    collective = name or _collective(rows, ratio)
    sizes = large["size"].unique().sort()
    small = rows.filter((pl.col("size") <= SMALL) & (pl.col("size") > 0))["time"][2:]
    average = facts.filter(pl.col("key") == "average_busbw")["value"].first()
    models = devices["model"].drop_nulls().mode().sort()
    return Sweep(
        section=section, collective=collective, inferred=name is None,
        rows=rows.select("source", "line", "size", "in_place", "time", "cpu_time", "algbw", "busbw", "wrong", "cycle", "t_cv"),
        listed=_listed(devices), ranks=_ranks(collective, ratio, error),
        host_names=tuple(devices["host"].drop_nulls().unique().sort().to_list()), model=str(models[0]) if len(models) else None,
        plateau=_plateau(large),
        peak=float(np.max(large["busbw"].to_numpy())), largest=int(sizes[-1]),
        latency=_median(small.to_numpy()) if len(small) else None, average=_float(average),
        facts=tuple(facts.select("key", "value").iter_rows()),
    )  # fmt: skip


def _plateau(rows: pl.DataFrame) -> float:
    """Median busbw from 1 GiB on, or of the three largest sizes where these are higher: a curve may rise beyond 1 GiB."""
    top = rows["size"].unique().sort().tail(3).to_list()
    high = _median(rows.filter(pl.col("size").is_in(top))["busbw"].to_numpy())
    return max(high, _median(rows.filter(pl.col("size") >= PLATEAU_FROM)["busbw"].to_numpy()))


def _listed(devices: pl.DataFrame) -> int:
    ranks = devices["rank"].drop_nulls()
    if not len(ranks):
        return 0
    highest = int(ranks.cast(pl.Int64).to_numpy().max())
    return max(ranks.n_unique(), highest + 1 if highest < _MANY else 0)


def _ratio(rows: pl.DataFrame) -> tuple[float | None, float]:
    """busbw/algbw at the largest size and its printing error."""
    usable = rows.filter(pl.col("algbw") >= 0.1).tail(4)
    if not usable.height:
        return None, 0.0
    algbw, busbw = usable["algbw"].to_numpy(), usable["busbw"].to_numpy()
    best = int(np.argmax(algbw))
    return float(busbw[best] / algbw[best]), 0.005 / float(algbw[best]) * (1 + float(busbw[best] / algbw[best]))


def _collective(rows: pl.DataFrame, ratio: float | None) -> str | None:
    """What redop, root and the ratio leave as the only usual choice."""
    redop = str(rows["redop"].drop_nulls().first() or "none")
    root = rows["root"].drop_nulls().first()
    rooted = root is not None and int(str(root)) >= 0
    if redop != "none":
        if rooted:
            return "reduce"
        return None if not ratio else "all_reduce" if ratio >= 0.995 else "reduce_scatter"
    if rooted:
        return "broadcast"
    return "all_gather" if ratio is not None and 0.3 < ratio < 0.9995 else None


def _ranks(collective: str | None, ratio: float | None, error: float) -> tuple[int, int] | None:
    """Numbers of ranks that the ratio allows: 2(n-1)/n for all_reduce, (n-1)/n for the gather family."""
    if ratio is None or not np.isfinite([ratio, error]).all() or collective not in RATIOS:
        return None
    whole = 2.0 if collective == "all_reduce" else 1.0
    low, high = whole - ratio + error, whole - ratio - error
    if low <= 0 or ratio <= 0:
        return None
    least = whole / low
    most = whole / high if high > 0 else float("inf")
    if most > _MANY:
        return (int(np.ceil(least - 1e-6)), _MANY)
    first, last = int(np.ceil(least - 1e-6)), int(np.floor(most + 1e-6))
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
    curve = sweep.rows.filter(pl.col("size") > SMALL).group_by("size").agg(pl.col("busbw").median()).sort("size")
    sizes, values = curve["size"].to_numpy(), curve["busbw"].to_numpy()
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
    small = sweep.rows.filter((pl.col("size") <= SMALL) & (pl.col("size") > 0))["time"].to_numpy()[2:]
    share = ratio = 0.0
    if len(small) >= 8:
        middle = _median(small)
        slow = small > 3 * middle
        share = float(np.mean(slow))
        ratio = float(np.median(small[slow]) / _median(small[~slow])) if slow.any() else 1.0
    sides = sweep.rows.filter(pl.col("size") >= max(MIB, sweep.largest // 8)).pivot(
        on="in_place", index=["line"], values="busbw", aggregate_function="first"
    )
    gap = 0.0
    if {"true", "false"} <= set(sides.columns) and sides.height >= 2:
        a, b = sides["false"].drop_nulls().to_numpy(), sides["true"].drop_nulls().to_numpy()
        if len(a) == len(b):
            gap = _median(np.abs(a - b) / np.maximum(np.maximum(a, b), 1e-9))
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
    usable = sweep.rows.filter((pl.col("algbw") >= 1) & (pl.col("time") > 0) & ~pl.col("cpu_time"))
    share: float | None = None
    odd = 0
    if usable.height:
        factor = usable["size"].to_numpy() / usable["time"].to_numpy() / 1e3 / usable["algbw"].to_numpy()
        share = _median(factor)
        odd = int(np.sum(np.abs(factor / share - 1) > 0.03))
    return Agreement(share, odd, usable.height, float(np.mean(sweep.rows["busbw"].to_numpy())), sweep.average)


def _median(values: NDArray[np.float64]) -> float:
    return float(np.median(values)) if len(values) else 0.0


def _float(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
