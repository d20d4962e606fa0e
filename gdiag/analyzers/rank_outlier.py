"""Finds the rank that stands out.

What it checks: ranks that stand out in what is each rank's own: per-layer norms of one rank against the others' at the
same step; a rank's gradient norm that leaves the others in the very step in which a single layer jumps, or far beyond
what any other rank ever shows while that rank's own loss stays ordinary; a rank whose loss or norm alone is not finite;
a rank that holds most of the outliers of the run (binomial test); a loss that is high on one rank for several rows, or that
leaves its usual distance to the others' and stays away; a gradient norm and a loss that both fall below the others' and stay.
Where there is none of these, the one row of a rank that stands farthest out is worth knowing.

Why it matters: data and learning rate are the same for all ranks on average; what happens on one rank only is its data
for a step, or its machine. A gradient that is wrong in one layer of one rank for one step is what a flipped bit looks
like: after the average it is hardly seen.

What to do: replay that rank's batch of that step on its own node and on another: the same wrong value on both is data, on
its own node only a persistent hardware fault, on neither a transient one; test or drain the node when it returns.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np

from gdiag.analyzers.layer_evidence import dominates, is_alone
from gdiag.measures.attribution import Attribution, layer_events
from gdiag.measures.layers import FIRST_ROWS, Floats
from gdiag.measures.rank_departure import APART, SUNK_WANDERS, departure, sinking
from gdiag.measures.rank_layers import first_rank_layer
from gdiag.measures.ranks import (
    Outlier,
    RankTable,
    binomial_tail,
    by_rank,
    lone_row,
    nonfinite_ranks,
    outliers,
    rank_deviation,
)
from gdiag.measures.run import RunView
from gdiag.model import Finding, Location, Measure, Severity
from gdiag.reference.figures import multiple

CODE = "GD402"
NAME = "rank-outlier"
NEEDS: tuple[str, ...] = ("steps.rank|layers.rank",)
WORDS = {"grad_norm": "gradient norm", "loss": "loss"}
"""Each rank's own columns, and how a sentence calls them."""
HABIT_ROWS, HABIT_SHARE = 20, 0.75
"""Rows from which on two outliers of a rank are two, and the share of one, in log units, that makes the other as large."""


def analyze(
    run: RunView, *, ratio: float = 2.0, z: float = 5.0, layer_ratio: float = 4.0, layer_z: float = 6.0,
    alone: float = 6.0, share: float = 0.6, events: int = 10, chance: float = 1e-4, once: float = 10.0,
    most: int = 5,
) -> list[Finding]:  # fmt: skip
    """At most `most` findings.

    Args:
        run: the run.
        ratio: a rank's value over the median of the others.
        z: the same in the usual deviations between ranks, where a single layer jumps in the same step.
        layer_ratio: jump of that layer, or of one layer of one rank.
        layer_z: the same in robust standard deviations.
        alone: a rank's gradient norm over the median of the others, where its loss is ordinary.
        share: share of the outliers that one rank holds.
        events: fewest outliers for that.
        chance: probability of such a share when every rank is alike.
        once: a value of one row in the usual deviations between ranks from which it is worth knowing where nothing else is found.
        most: findings.
    """
    tables = {column: table for column in WORDS if (table := by_rank(run.steps, column)) is not None}
    found = _one_layer_of_one_rank(run, layer_ratio, layer_z)
    found += [f for f in _with_a_layer(run, tables.get("grad_norm"), ratio, z, layer_ratio, layer_z) if _new(f, found)]
    found += [f for f in _without_its_loss(run, tables, alone) if _new(f, found)]
    found += _not_finite(run, tables)
    for column, table in tables.items():
        hits = outliers(table, ratio=1.5)
        losses = outliers(tables["loss"], ratio=1.1) if "loss" in tables else []
        found += [f for f in _lasting(run, column, hits, ratio, losses) if _new(f, found)]
        found += _holder(run, column, table, _apart(hits), share, events, chance)
    for lasts in (_leaves(run, tables.get("loss")), _sinks(run, tables)):
        found += [f for f in lasts if not any(f.where.rank == other.where.rank for other in found)]
    return found[:most] or _once(run, tables, once)


def _new(finding: Finding, found: list[Finding]) -> bool:
    return all((f.where.step, f.where.rank) != (finding.where.step, finding.where.rank) for f in found)


def _one_layer_of_one_rank(run: RunView, ratio: float, z: float) -> list[Finding]:
    first = first_rank_layer(run.layers, run.layer_columns, ratio, z)
    if first is None:
        return []
    evidence = (
        Measure("ratio", first.ratio, limit=ratio), Measure("z", first.z, limit=z), Measure("layers_moved", first.layers),
        Measure("layers_total", first.total), Measure("quantity", first.quantity), Measure("ranks", str(first.rank)),
    )  # fmt: skip
    text = f"{first.quantity} of {first.layer} on rank {first.rank} is {multiple(first.ratio)} times the other ranks' at step {first.step}"
    where = _where(run, first.step, first.step, first.rank, first.layer)
    return [Finding(CODE, NAME, Severity.WARNING, text, where, evidence)]


def _with_a_layer(
    run: RunView, table: RankTable | None, ratio: float, z: float, layer_ratio: float, layer_z: float
) -> list[Finding]:
    """A rank's gradient norm far from the others' in the step in which one layer of the reduced gradient jumps alone, or over all."""
    scan = run.layer_scan
    if table is None or scan is None:
        return []
    events = layer_events(scan, scan.warm)
    alone = [e for e in events if is_alone(e, layer_ratio, layer_z) or dominates(e, 2 * layer_ratio, layer_z)]
    hits = outliers(table, z=z, ratio=ratio) if alone else []
    found = []
    for event in alone:
        near = [h for h in hits if h.step == event.step]
        if near:
            found.append(_pair(run, event, max(near, key=lambda h: h.z), ratio, z))
    return found


def _pair(run: RunView, event: Attribution, hit: Outlier, ratio: float, z: float) -> Finding:
    layer = event.layers[0]
    return Finding(
        CODE, NAME, Severity.WARNING,
        f"Gradient norm of rank {hit.rank} is {multiple(hit.ratio)} times the other ranks' at step {hit.step}, where {layer} alone "
        f"jumps to {multiple(event.change)} times its level",
        _where(run, hit.step, hit.step, hit.rank, layer),
        (
            Measure("ratio", hit.ratio, limit=ratio), Measure("z", hit.z, limit=z), Measure("layer_ratio", event.change),
            Measure("layer_z", event.apart), Measure("layers_moved", event.moved), Measure("layers_total", event.total),
            Measure("ranks", str(hit.rank)),
        ),
    )  # fmt: skip


def _without_its_loss(run: RunView, tables: dict[str, RankTable], ratio: float) -> list[Finding]:
    """The first gradient norm of one rank that its own loss does not explain: a hard batch moves both.

    It must stand, in log units, half as far again above the others as any norm of another rank does in the run.
    """
    norm, loss = tables.get("grad_norm"), tables.get("loss")
    if norm is None or loss is None:
        return []
    far = np.nan_to_num(rank_deviation(norm), nan=0.0, posinf=0.0, neginf=0.0)
    far[:FIRST_ROWS] = 0.0
    usual = np.array([np.delete(far, r, axis=1).max() for r in range(len(norm.ranks))])
    losses = {(h.step, h.rank): h for h in outliers(loss, z=3.0, ratio=1.1)}
    for row, r in np.argwhere(far > np.maximum(np.log(ratio), 1.5 * usual)).tolist():
        step, rank = int(norm.step[row]), norm.ranks[r]
        if (step, rank) in losses or step not in loss.step or _habit(far[:, r], row, usual[r]):
            continue
        times = float(np.exp(min(700.0, far[row, r])))
        text = f"Gradient norm of rank {rank} is {multiple(times)} times the other ranks' at step {step} while its loss is ordinary"
        evidence = (
            Measure("ratio", times, limit=ratio), Measure("others_most", float(np.exp(min(700.0, usual[r])))),
            Measure("ranks", str(rank)), Measure("column", "grad_norm"),
        )  # fmt: skip
        return [Finding(CODE, NAME, Severity.WARNING, text, _where(run, step, step, rank), evidence)]
    return []


def _once(run: RunView, tables: dict[str, RankTable], z: float) -> list[Finding]:
    """The farthest single row of one rank: worth knowing, for a hard batch of that rank looks the same."""
    hits = {column: hit for column, table in tables.items() if (hit := lone_row(table, z)) is not None}
    if not hits:
        return []
    column, hit = max(hits.items(), key=lambda told: told[1].z)
    also = [c for c, other in hits.items() if c != column and (other.row, other.rank) == (hit.row, hit.rank)]
    text = (
        f"{WORDS[column]} of rank {hit.rank} is {multiple(hit.ratio)} times the other ranks' at step {hit.step}, in that row only"
        f"{f'; so is its {WORDS[also[0]]}' if also else ''}"
    )
    evidence = (
        Measure("ratio", hit.ratio), Measure("z", hit.z, limit=z), Measure("ranks", str(hit.rank)), Measure("column", column),
        Measure("kind", "once"),
    )  # fmt: skip
    return [Finding(CODE, NAME, Severity.INFO, text, _where(run, hit.step, hit.step, hit.rank), evidence)]


def _habit(far: Floats, row: int, usual: float) -> bool:
    """Whether a rank goes nearly as far at other times, and not twice as far as another does: tails of few samples, no fault."""
    apart = np.abs(np.arange(len(far)) - row) > HABIT_ROWS
    return bool(far[row] <= 2 * usual and (far[apart] >= HABIT_SHARE * far[row]).any())


def _not_finite(run: RunView, tables: dict[str, RankTable]) -> list[Finding]:
    found = []
    for column, table in tables.items():
        first = nonfinite_ranks(table)
        if first is not None:
            step, ranks = first
            text = f"{WORDS[column]} is not finite on rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))} alone at step {step}"
            evidence = (
                Measure("ranks", ", ".join(map(str, ranks))),
                Measure("ranks_total", len(table.ranks)),
                Measure("column", column),
            )
            where = _where(run, step, step, ranks[0] if len(ranks) == 1 else None)
            found.append(Finding(CODE, NAME, Severity.WARNING, text, where, evidence))
    return found[:1]


def _holder(
    run: RunView, column: str, table: RankTable, hits: list[Outlier], share: float, events: int, chance: float
) -> list[Finding]:
    if len(hits) < events or len(table.ranks) < 2:
        return []
    rank, count = Counter(h.rank for h in hits).most_common(1)[0]
    p = binomial_tail(count, len(hits), 1 / len(table.ranks))
    if count < share * len(hits) or p >= chance:
        return []
    return [
        Finding(
            CODE, NAME, Severity.WARNING,
            f"Rank {rank} holds {count} of {len(hits)} outliers of the {WORDS[column]} between ranks, against {1 / len(table.ranks):.0%} by chance",
            _where(run, hits[0].step, hits[-1].step, rank),
            (
                Measure("rank_share", count / len(hits), limit=share), Measure("outliers", len(hits)), Measure("p", p, limit=chance),
                Measure("ranks", str(rank)), Measure("column", column),
            ),
        )
    ]  # fmt: skip


def _apart(hits: list[Outlier], rows: int = 8) -> list[Outlier]:
    """The first outlier of each stretch of one rank: rows that follow within `rows` are the same event."""
    last: dict[int, int] = {}
    kept = []
    for hit in hits:
        if hit.row - last.get(hit.rank, -rows - 1) > rows:
            kept.append(hit)
        last[hit.rank] = hit.row
    return kept


def _lasting(run: RunView, column: str, hits: list[Outlier], ratio: float, losses: list[Outlier]) -> list[Finding]:
    """The first stretch of four outliers of one rank within eight rows, and whether its own loss is high in them."""
    for rank in sorted({h.rank for h in hits}):
        mine = [h for h in hits if h.rank == rank and h.ratio >= ratio]
        for first, fourth in zip(mine, mine[3:], strict=False):
            if fourth.row - first.row <= 7:
                last = next(
                    (h for h, n in pairwise(mine) if h.row >= fourth.row and n.row - h.row > 8),
                    mine[-1],
                )
                text = f"{WORDS[column]} of rank {rank} alone is high from step {first.step}, {multiple(first.ratio)} times the other ranks'"
                evidence: tuple[Measure, ...] = (
                    Measure("ratio", first.ratio, limit=ratio),
                    Measure("z", first.z),
                    Measure("ranks", str(rank)),
                    Measure("column", column),
                )
                high = sum(h.rank == rank and first.row <= h.row <= fourth.row for h in losses)
                if high >= 2:  # its data would do the same
                    evidence += (Measure("kind", "leaves"),)
                return [Finding(CODE, NAME, Severity.WARNING, text, _where(run, first.step, last.step, rank), evidence)]
    return []


def _leaves(run: RunView, table: RankTable | None) -> list[Finding]:
    seen = departure(table) if table is not None else None
    if seen is None:
        return []
    text = f"loss of rank {seen.rank} leaves the other ranks' at step {seen.step}, by {seen.rise:.3g} nat over its usual distance"
    evidence = (
        Measure("peak_excess", seen.rise, "nat"), Measure("z", seen.z, limit=APART), Measure("ranks", str(seen.rank)),
        Measure("column", "loss"), Measure("kind", "leaves"),
    )  # fmt: skip
    return [Finding(CODE, NAME, Severity.WARNING, text, _where(run, seen.step, seen.last_step, seen.rank), evidence)]


def _sinks(run: RunView, tables: dict[str, RankTable]) -> list[Finding]:
    norm, loss = tables.get("grad_norm"), tables.get("loss")
    seen = sinking(norm, loss) if norm is not None and loss is not None else None
    if seen is None:
        return []
    text = f"gradient norm and loss of rank {seen.rank} fall below the other ranks' from step {seen.step} and stay: {seen.ratio:.2g} times its usual norm, {seen.fall:.3g} nat lower"
    evidence = (
        Measure("ratio", seen.ratio), Measure("fall", seen.fall, "nat"), Measure("z", seen.z, limit=SUNK_WANDERS),
        Measure("ranks", str(seen.rank)), Measure("column", "grad_norm"), Measure("kind", "sinks"),
    )  # fmt: skip
    return [Finding(CODE, NAME, Severity.WARNING, text, _where(run, seen.step, seen.last_step, seen.rank), evidence)]


def _where(run: RunView, step: int, last_step: int, rank: int | None, layer: str | None = None) -> Location:
    rows = run.steps.filter(run.steps["step"] == step)
    if rank is not None:
        own = rows.filter(rows["rank"] == rank)
        rows = own if own.height else rows
    row = rows.row(0, named=True) if rows.height else None
    return run.where(row, step=step, last_step=last_step, rank=rank, layer=layer)
