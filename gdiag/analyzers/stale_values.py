"""Values are written again instead of measured.

What it checks: stretches of exactly equal losses or gradient norms, in a column whose values are not rounded and otherwise
all differ.

Why it matters: repeated values hide what happened in these steps; after a skipped step some trainers print the last
gradient norm again, which looks like a plateau of the gradient.

What to do: write null where nothing was measured; treat these rows as not logged.
"""

from __future__ import annotations

from gdiag.measures.run import RunView
from gdiag.measures.staleness import stale
from gdiag.model import Finding, Measure, Severity

CODE = "GD005"
NAME = "stale-values"
NEEDS: tuple[str, ...] = ("steps.loss|steps.grad_norm",)


def analyze(run: RunView, *, rows: int = 5) -> list[Finding]:
    """At most one finding, info, for each column; `rows` is the least number of equal values."""
    findings: list[Finding] = []
    for name in ("loss", "grad_norm"):
        curve = run.series(name)
        found = stale(curve, rows)
        if not found:
            continue
        total = sum(flat.rows for flat in found)
        first = found[0]
        said = f"{name} repeats exactly over {total} rows in {len(found)} stretches, first at step {int(curve.step[first.first])}"
        evidence = (
            Measure("column", name),
            Measure("rows", total, "", rows),
            Measure("longest", max(flat.rows for flat in found)),
        )
        where = run.where(curve.finite.row(first.first), last_step=int(curve.step[found[-1].last]))
        findings.append(Finding(CODE, NAME, Severity.INFO, said, where, evidence))
    return findings
