"""Benchmarks as tables and curves to show: the verdict of each test run, and its figures by size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from gdiag.measures.bandwidth import JUDGED_FROM, Sweep
from gdiag.measures.bandwidth_compare import Held, Member, median_curve, members
from gdiag.measures.fabric_limits import DEGRADED, HEALTHY, RING, UNSAID, Limit, Said, limit, matches
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
_RUN = Column("test run")
_FIGURES = (Column("ranks"), Column("hosts"), Column("plateau", "GB/s"))
_LIMIT = (Column("limit", "GB/s"), Column("of limit", "%"))
_END = (Column("latency", "µs"), Column("verdict"))
_KNOWN = "benchmarks (plateau: median busbw from 1 GiB on or of the three largest sizes)"
_UNKNOWN = "benchmarks without a limit (give --nic-gbps or --expect)"
_UNKNOWN_HOST = "benchmarks without a limit (give --expect)"
"""Cards bound several hosts alone."""
_MANY = 20
"""Test runs listed one by one; more are listed by kind."""


def sweep_tables(run: RunView, said: Said = UNSAID) -> list[Table]:
    """One table over all test runs, then one per test run by size for the first few."""
    if not run.sweeps:
        return []
    tables = _verdicts(run, said)
    pairwise = members(run.sweeps)
    if pairwise:
        tables += [_hosts(pairwise), _pairs(run.sweeps, [m.host for m in pairwise[:_HOSTS]])]
    held = Held(run.baselines)
    for sweep in () if pairwise else _shown(run.sweeps, said):
        tables.append(Table(f"{_title(sweep.number, sweep)} by size", *_sized(sweep, held.curve(sweep))))
    return tables


def _shown(held: Sequence[Sweep], said: Said) -> Sequence[Sweep]:
    """The test runs shown size by size: the first few, of many the one that is lowest against its limit."""
    if len(held) <= _MANY:
        return held[:_FEW]
    limits = [(sweep.plateau / top.value, sweep) for sweep in held if (top := limit(sweep, said)) is not None]
    return [min(limits, key=lambda pair: pair[0])[1]] if limits else held[:1]


def sweep_series(run: RunView, said: Said = UNSAID) -> list[Series]:
    """busbw over size of each test run: lowest and highest of sides and cycles; then its limit where it is known."""
    found = []
    for sweep in _shown(run.sweeps, said):
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


@dataclass(frozen=True, slots=True)
class _Judged:
    """One test run in the table of verdicts."""

    sweep: Sweep
    limit: Limit | None
    verdict: str


def _verdicts(run: RunView, said: Said) -> list[Table]:
    """Test runs with a limit, then those without; of many test runs the kinds, the worst first."""
    held = run.sweeps
    limits = [limit(sweep, said) for sweep in held]
    judged = [_Judged(s, top, verdict(s, top)) for s, top in zip(held, limits, strict=True)]
    parts = (
        (_KNOWN, [j for j in judged if j.limit]),
        (
            _UNKNOWN if any(not j.limit and j.sweep.hosts != 1 for j in judged) else _UNKNOWN_HOST,
            [j for j in judged if not j.limit],
        ),
    )
    tables = []
    for name, mine in parts:
        if mine:
            tables.append(_by_kind(run, name, mine) if len(held) > _MANY else _one_by_one(name, mine))
    return tables


def _one_by_one(title: str, judged: Sequence[_Judged]) -> Table:
    limited = judged[0].limit is not None
    rows: list[tuple[Value | None, ...]] = []
    for one in judged:
        s = one.sweep
        latency = round(s.latency, 1) if s.latency is not None else None
        limits = (round(one.limit.value, 1), whole(100 * s.plateau / one.limit.value)) if one.limit else ()
        rows.append((_title(s.number, s), s.n, s.hosts or None, round(s.plateau, 2), *limits, latency, one.verdict))
    return Table(title, (_RUN, *_FIGURES, *(_LIMIT if limited else ()), *_END), tuple(rows))


def _by_kind(run: RunView, title: str, judged: Sequence[_Judged]) -> Table:
    """A line per collective, shape and verdict; the lowest plateau as a share of the limit, else in GB/s, decides the order."""
    kinds: dict[tuple[object, ...], list[_Judged]] = {}
    for one in judged:
        value = round(one.limit.value, 1) if one.limit else None
        kinds.setdefault(
            (one.sweep.collective or "unnamed", one.sweep.n, one.sweep.hosts, value, one.verdict), []
        ).append(one)
    rows: list[tuple[float, tuple[Value | None, ...]]] = []
    for (name, ranks, hosts, top, words), same in kinds.items():
        plateaus = np.array([one.sweep.plateau for one in same])
        least = float(plateaus.min()) / (float(str(top)) if top else 1.0)
        worst = run.where(same[int(np.argmin(plateaus))].sweep.place())
        limits: tuple[Value | None, ...] = (float(str(top)), whole(100 * least)) if top else ()
        rows.append((least, (
            str(name), len(same), ranks if isinstance(ranks, int) else None, hosts if isinstance(hosts, int) and hosts else None,
            round(float(np.median(plateaus)), 2), round(float(plateaus.min()), 2), worst.line if len(run.run.sources) == 1 else f"{Path(worst.file or '').name}:{worst.line}", *limits, str(words),
        )))  # fmt: skip
    rows.sort(key=lambda row: row[0])
    columns = (
        Column("collective"), Column("test runs"), *_FIGURES, Column("lowest", "GB/s"), Column("at line"),
        *(_LIMIT if judged[0].limit else ()), Column("verdict"),
    )  # fmt: skip
    more = f", {len(rows) - _RANKED} more kinds not shown" if len(rows) > _RANKED else ""
    return Table(f"{title}, by kind, the worst first{more}", columns, tuple(row for _, row in rows[:_RANKED]))


def verdict(sweep: Sweep, held: Limit | None) -> str:
    """The sweep's bandwidth against its limit in a few words; what cannot be judged says why."""
    if sweep.n == 1:
        return "one rank: no fabric"
    if held is None:
        if sweep.largest < JUDGED_FROM:
            return "ends below 256 MiB"
        return f"fits {fits}" if (fits := matches(sweep)) else "no limit known"
    share = sweep.plateau / held.value
    if share >= HEALTHY:
        return "healthy"
    if held.ring and abs(sweep.plateau / held.ring - 1) <= RING:
        return "ring, no NVLS"
    return "degraded" if share >= DEGRADED else "bad"


def _sized(sweep: Sweep, held: dict[int, float]) -> tuple[tuple[Column, ...], tuple[tuple[Value | None, ...], ...]]:
    middle = median_curve(sweep)
    rows: list[tuple[Value | None, ...]] = []
    for (size,), part in sweep.rows.sort("size").group_by("size", maintain_order=True):
        number = int(str(size))
        sides = [part.filter(pl.col("in_place") == side)["busbw"].median() for side in (False, True)]
        # Versions before 2.13 print the size of the error, which only their footer judges.
        wrong = part["wrong"].max()
        base = held.get(number)
        share = whole(100 * middle[number] / base) if base else None
        shown = [round(float(s), 2) if isinstance(s, int | float) else None for s in sides]
        time = part["time"].median()
        rows.append((
            number, *shown, round(float(time), 1) if isinstance(time, int | float) else None,
            float(wrong) if isinstance(wrong, int | float) and not 0 < wrong < 1 else None, base, share,
        ))  # fmt: skip
    keep = len(_BY_SIZE) if held else len(_BY_SIZE) - 2
    return _BY_SIZE[:keep], tuple(row[:keep] for row in rows)
