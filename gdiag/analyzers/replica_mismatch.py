"""Finds replicas that no longer hold the same values.

What it checks: values that data-parallel replicas share (parameter checksums and norms, the reduced gradient norm, the
loss scale, the learning rate) and that no longer agree between ranks. Which columns are shared is learnt: one that has
agreed so far must go on agreeing; losses and local norms are each rank's own and are not expected to.

Why it matters: replicas that differ no longer train one model. Every later step averages gradients of different weights;
the loss hardly shows it, and the checkpoint that is saved is one rank's. It is proof of a fault, not a hint: a flipped
bit, a collective that failed silently, or an optimizer that does not do the same everywhere (BLOOM's tensor-parallel
ranks drifted because clipping ran on one rank only).

What to do: stop; take the checkpoint before the first step named, compare the parameters layer by layer between the rank
that left and another, replay the step on another node; broadcast the parameters from a rank of the majority if you must
go on. Of two ranks the one that left its course is named where the column has one (a sum or norm of the parameters); else
the log cannot say which one is right.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.ranks import AGREED_COLUMNS, LEAP, Disagreement, by_rank, disagreement
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import multiple

CODE = "GD401"
NAME = "replica-mismatch"
NEEDS: tuple[str, ...] = ("steps.rank",)

EXACT = ("param_checksum", "loss_scale")
"""Columns in which one differing row is enough."""


def analyze(run: RunView, *, tolerance: float = 1e-6, tolerance_bf16: float = 1e-3, rows: int = 3) -> list[Finding]:
    """At most one finding: the first column and step that disagree.

    Args:
        run: the run.
        tolerance: relative difference of equal values in float32.
        tolerance_bf16: the same for norms computed in bf16 or fp16.
        rows: rows that must disagree in columns that are reductions of floats.
    """
    precision = str(run.run.config.get("precision", "")).lower()
    coarse = any(word in precision for word in ("16", "half", "fp8"))
    found: list[Disagreement] = []
    for column in AGREED_COLUMNS:
        table = by_rank(run.steps, column)
        if table is None:
            continue
        bound = tolerance if column in EXACT else tolerance_bf16 if coarse else 10 * tolerance
        apart = disagreement(table, column, bound)
        if apart is not None and (column in EXACT or apart.rows >= rows):
            found.append(apart)
    if not found:
        return []
    first = min(found, key=lambda d: (d.step, AGREED_COLUMNS.index(d.column)))
    return [_finding(run, first, [d.column for d in found])]


def _finding(run: RunView, first: Disagreement, columns: list[str]) -> Finding:
    ranks = ", ".join(map(str, first.ranks))
    if first.majority:
        who = f"{'Rank' if len(first.ranks) == 1 else 'Ranks'} {ranks} {'leaves' if len(first.ranks) == 1 else 'leave'} the "
        who += f"other {f'{first.majority} ' if first.majority > 1 else ''}in {first.column} at step {first.step}"
        if 0 < first.leap < np.inf:
            who += f", moving {multiple(first.leap)} times as far from its course as any row before"
    else:
        who = f"Ranks {ranks} disagree in {first.column} from step {first.step}, the log cannot say which one is right"
    size = "one is not finite" if first.deviation == float("inf") else f"by {first.deviation:.2g} of the value"
    grows = first.last_deviation > 3 * first.deviation
    rows = run.steps.filter((run.steps["step"] == first.step) & run.steps["rank"].is_in(list(first.ranks)))
    row = rows.row(0, named=True) if rows.height else None
    later = f", {first.last_deviation:.2g} at step {first.last_step}" if grows else ""
    return Finding(
        CODE, NAME, Severity.CRITICAL, f"{who}: {size}{later}, after {first.agreed_rows} rows of agreement",
        run.where(
            row, step=first.step, last_step=first.last_step, rank=first.ranks[0] if first.majority and len(first.ranks) == 1 else None
        ),
        (
            Measure("column", first.column),
            Measure("columns", ", ".join(columns)),
            Measure("ranks", ranks),
            Measure("majority", first.majority),
            Measure("deviation", first.deviation, limit=1e-6),
            Measure("last_deviation", first.last_deviation),
            Measure("grows", grows),
            *([Measure("leap", first.leap, limit=LEAP)] if 0 < first.leap < np.inf else []),
            Measure("rows", first.rows),
            Measure("agreed_rows", first.agreed_rows),
        ),
    )  # fmt: skip
