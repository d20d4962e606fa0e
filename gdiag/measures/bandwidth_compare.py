"""Sweeps against a baseline, size by size, and against each other, host by host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from gdiag.measures.bandwidth import MIB, Sweep, by_size


def median_curve(sweep: Sweep) -> dict[int, float]:
    """Size [B] → median busbw [GB/s] over sides and cycles."""
    sizes, values = by_size(sweep)
    return dict(zip(sizes.tolist(), values.tolist(), strict=True))


def baseline(held: Sequence[Sweep]) -> pl.DataFrame:
    """Sweeps as a baseline: collective, ranks (0 = not known), size [B], busbw [GB/s], the median of equal sizes."""
    rows = [(s.collective or "", s.n or 0, size, busbw) for s in held for size, busbw in median_curve(s).items()]
    schema = {"collective": pl.String, "ranks": pl.Int32, "size": pl.Int64, "busbw": pl.Float64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
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


def held_curve(sweep: Sweep, baselines: pl.DataFrame) -> dict[int, float]:
    """Size [B] → busbw [GB/s] of the baseline for this sweep's collective, and ranks where both are known."""
    held = baselines.filter(pl.col("collective") == (sweep.collective or ""))
    if sweep.n is not None:
        held = held.filter(pl.col("ranks").is_in([0, sweep.n]))
    return {int(size): float(busbw) for size, busbw in held.select("size", "busbw").iter_rows()}


def against(sweep: Sweep, baselines: pl.DataFrame) -> Shortfall | None:
    """The sweep against a baseline as `baseline` makes it; None without sizes in common."""
    values = held_curve(sweep, baselines)
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
    found = []
    for host in hosts:
        mine = [s.plateau for s in pairs if host in s.host_names]
        rest = [s.plateau for s in pairs if host not in s.host_names]
        if len(mine) >= 2 and rest:
            middle = float(np.median(rest))
            found.append(Member(host, float(np.median(mine)) / middle, len(mine), all(p < slow * middle for p in mine)))
    return tuple(sorted(found, key=lambda m: (m.share, m.host)))
