"""Benchmarks as tables and curves to show: the verdict of each test run, and its figures by size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from gdiag.measures.bandwidth import JUDGED_FROM, Sweep
from gdiag.measures.bandwidth_compare import Member, held_curve, median_curve, members
from gdiag.measures.fabric_limits import DEGRADED, HEALTHY, RING, UNSAID, Said, limit, matches
from gdiag.measures.run import RunView
from gdiag.model import Column, Series, Table, Value

_HOSTS = 8
"""Hosts that fit side by side: the slowest."""
_RANKED = 20
_FEW = 6
"""Test runs shown size by size; more are summed up in one line each."""
_BY_SIZE = (
    Column("size", "B"), Column("out-of-place", "GB/s"), Column("in-place", "GB/s"), Column("time", "µs"),
    Column("wrong"), Column("baseline", "GB/s"), Column("of baseline", "%"),
)  # fmt: skip
_RUNS = (
    Column("test run"), Column("ranks"), Column("hosts"), Column("plateau", "GB/s"), Column("limit", "GB/s"),
    Column("of limit", "%"), Column("latency", "µs"), Column("verdict"),
)  # fmt: skip


def sweep_tables(run: RunView, said: Said = UNSAID) -> list[Table]:
    """One table over all test runs, then one per test run by size for the first few."""
    if not run.sweeps:
        return []
    lines = tuple(_line(number, sweep, said) for number, sweep in enumerate(run.sweeps))
    tables = [Table("benchmarks (plateau: median busbw from 1 GiB on, or of the three largest sizes)", _RUNS, lines)]
    pairwise = members(run.sweeps)
    if pairwise:
        tables += [_hosts(pairwise), _pairs(run.sweeps, [m.host for m in pairwise[:_HOSTS]])]
    for number, sweep in enumerate(() if pairwise else run.sweeps[:_FEW]):
        tables.append(Table(f"{_title(number, sweep)} by size", *_sized(sweep, held_curve(sweep, run.baselines))))
    return tables


def sweep_series(run: RunView, said: Said = UNSAID) -> list[Series]:
    """busbw over size of each test run: lowest and highest of sides and cycles; then its limit where it is known."""
    found = []
    for sweep in run.sweeps[:_FEW]:
        curve = sweep.rows.group_by("size").agg(low=pl.col("busbw").min(), high=pl.col("busbw").max()).sort("size")
        curve = curve.filter(pl.col("size") > 0)
        sizes, low, high = (tuple(float(v) for v in curve[name]) for name in ("size", "low", "high"))
        found.append(Series("busbw", "GB/s", run.run.id, sizes, low, high))
        held = limit(sweep, said)
        if held is not None and sizes:
            line = (held.value, held.value)
            found.append(Series("busbw limit", "GB/s", run.run.id, (sizes[0], sizes[-1]), line, line))
    return found


def _pairs(held: Sequence[Sweep], hosts: Sequence[str]) -> Table:
    """Plateau [GB/s] by the hosts of two-host sweeps, the median of repeats; of sweeps over more hosts no cell."""
    cells: dict[tuple[str, str], list[float]] = {}
    for sweep in held:
        if len(sweep.host_names) == 2:
            cells.setdefault((sweep.host_names[0], sweep.host_names[1]), []).append(sweep.plateau)
    rows: list[tuple[Value | None, ...]] = []
    for one in hosts:
        met = [cells.get((min(one, two), max(one, two))) for two in hosts]
        rows.append((one, *(round(float(np.median(values)), 1) if values else None for values in met)))
    columns = (Column("host"), *(Column(name, "GB/s") for name in hosts))
    return Table("pairs of hosts: plateau", columns, tuple(rows))


def _hosts(ranked: Sequence[Member]) -> Table:
    rows = tuple((m.host, m.sweeps, whole(100 * m.share), "yes" if m.all_slow else "no") for m in ranked)
    columns = (Column("host"), Column("sweeps"), Column("of sweeps without it", "%"), Column("slow in all"))
    return Table("hosts, the slowest first", columns, rows[:_RANKED])


def whole(share: float) -> int | None:
    """A share rounded, None where figures as large as floats go leave none."""
    return round(share) if np.isfinite(share) else None


def _title(number: int, sweep: Sweep) -> str:
    return f"{number + 1}: {sweep.collective or 'unnamed collective'}"


def _line(number: int, sweep: Sweep, said: Said) -> tuple[Value | None, ...]:
    held = limit(sweep, said)
    return (
        _title(number, sweep), sweep.n, sweep.hosts or None, round(sweep.plateau, 2),
        round(held.value, 1) if held else None, whole(100 * sweep.plateau / held.value) if held else None,
        round(sweep.latency, 1) if sweep.latency is not None else None, verdict(sweep, said),
    )  # fmt: skip


def verdict(sweep: Sweep, said: Said = UNSAID) -> str:
    """The sweep's bandwidth in a few words; what cannot be judged says why."""
    if sweep.n == 1:
        return "one rank: no fabric measured"
    held = limit(sweep, said)
    if held is None:
        if sweep.largest < JUDGED_FROM:
            return "not judged: ends below 256 MiB"
        fits = matches(sweep)
        return f"no limit known; fits {fits}" if fits else "no limit known (--nic-gbps, --expect)"
    share = sweep.plateau / held.value
    if share >= HEALTHY:
        return "healthy"
    if held.ring and abs(sweep.plateau / held.ring - 1) <= RING:
        return "healthy ring, NVLS not used"
    return "degraded" if share >= DEGRADED else "bad"


def _sized(sweep: Sweep, held: dict[int, float]) -> tuple[tuple[Column, ...], tuple[tuple[Value | None, ...], ...]]:
    middle = median_curve(sweep)
    rows: list[tuple[Value | None, ...]] = []
    for (size,), part in sweep.rows.sort("size").group_by("size", maintain_order=True):
        number = int(str(size))
        sides = [part.filter(pl.col("in_place") == side)["busbw"].median() for side in (False, True)]
        wrong = part["wrong"].max()
        base = held.get(number)
        share = whole(100 * middle[number] / base) if base else None
        shown = [round(float(s), 2) if isinstance(s, int | float) else None for s in sides]
        time = part["time"].median()
        rows.append((
            number, *shown, round(float(time), 1) if isinstance(time, int | float) else None,
            float(wrong) if isinstance(wrong, int | float) else None, base, share,
        ))  # fmt: skip
    keep = len(_BY_SIZE) if held else len(_BY_SIZE) - 2
    return _BY_SIZE[:keep], tuple(row[:keep] for row in rows)
