"""Sweeps against a baseline, size by size, and against each other, host by host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from gdiag.measures.bandwidth import Sweep
from gdiag.measures.bandwidth_curves import MIB, by_size


def median_curve(sweep: Sweep) -> dict[int, float]:
    """Size [B] → median busbw [GB/s] over sides and cycles."""
    sizes, values = by_size(sweep)
    return dict(zip(sizes.tolist(), values.tolist(), strict=True))


def baseline(held: Sequence[Sweep]) -> pl.DataFrame:
    """Sweeps as a baseline: collective, ranks (0 = not known), size [B], busbw [GB/s], the median of equal sizes."""
    rows = [(s.collective or "", s.n or 0, size, busbw) for s in held for size, busbw in median_curve(s).items()]
    schema = {"collective": pl.String, "ranks": pl.Int32, "size": pl.Int64, "busbw": pl.Float64}
    table = pl.DataFrame(rows, schema=schema, orient="row").filter(pl.col("busbw").is_finite())
    return (
        table.group_by("collective", "ranks", "size").agg(pl.col("busbw").median()).sort("collective", "ranks", "size")
    )


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One sweep against its baseline."""

    sizes: tuple[int, ...]
    """Sizes from 1 MiB on that both hold."""
    shares: tuple[float, ...]
    """busbw as a share of the baseline's, per size."""

    @property
    def median(self) -> float:
        """Median share."""
        return float(np.median(self.shares))

    @property
    def worst(self) -> tuple[int, float]:
        """Size and share of the largest shortfall."""
        at = int(np.argmin(self.shares))
        return self.sizes[at], self.shares[at]


class Held:
    """A baseline as `baseline` makes it, looked up by collective and ranks."""

    def __init__(self, baselines: pl.DataFrame) -> None:
        """Keep the baseline's figures: collective → rows of ranks, size [B] and busbw [GB/s]."""
        self._rows: dict[str, list[tuple[int, int, float]]] = {}
        for collective, *row in baselines.select("collective", "ranks", "size", "busbw").iter_rows():
            self._rows.setdefault(collective, []).append((row[0], row[1], row[2]))
        self._curves: dict[tuple[str, int | None], dict[int, float]] = {}

    def curve(self, sweep: Sweep) -> dict[int, float]:
        """Size [B] → busbw [GB/s] of the baseline for this sweep's collective, and ranks where both are known."""
        key = (sweep.collective or "", sweep.n)
        if key not in self._curves:
            own = self._rows.get(key[0], [])
            self._curves[key] = {size: busbw for ranks, size, busbw in own if key[1] is None or ranks in {0, key[1]}}
        return self._curves[key]

    def against(self, sweep: Sweep) -> Shortfall | None:
        """The sweep against the baseline; None without sizes from 1 MiB on in common."""
        values = self.curve(sweep)
        if not values:
            return None
        pairs = [(s, b / values[s]) for s, b in median_curve(sweep).items() if s >= MIB and values.get(s, 0.0) > 0]
        return Shortfall(tuple(s for s, _ in pairs), tuple(r for _, r in pairs)) if pairs else None


@dataclass(frozen=True, slots=True)
class Member:
    """One host in pairwise sweeps."""

    host: str
    share: float
    """Median plateau of its sweeps over the median of the sweeps without it."""
    sweeps: int
    all_slow: bool
    """Whether every sweep with it is below the median of the sweeps without it."""


def members(held: Sequence[Sweep], slow: float = 0.9) -> tuple[Member, ...]:
    """Hosts of pairwise sweeps, the slowest first; empty unless at least three hosts meet in three sweeps or more.

    slow: share below which a sweep counts as slow.
    """
    pairs = [s for s in held if len(s.host_names) >= 2 and s.plateau > 0]
    hosts = sorted({h for s in pairs for h in s.host_names})
    if len(pairs) < 3 or len(hosts) < 3:
        return ()
    plateaus = np.array([s.plateau for s in pairs])
    own: dict[str, list[int]] = {}
    for number, sweep in enumerate(pairs):
        for name in sweep.host_names:
            own.setdefault(name, []).append(number)
    found = []
    for host in hosts:
        others = np.ones(len(pairs), dtype=bool)
        others[own[host]] = False
        mine, rest = plateaus[own[host]], plateaus[others]
        if len(mine) >= 2 and len(rest):
            middle = float(np.median(rest))
            all_slow = bool((mine < slow * middle).all())
            found.append(Member(host, float(np.median(mine)) / middle, len(mine), all_slow))
    return tuple(sorted(found, key=lambda m: (m.share, m.host)))
