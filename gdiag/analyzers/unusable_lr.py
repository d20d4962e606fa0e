"""Finds learning rates that no optimizer can take: NaN, infinite or below zero.

What it checks: the logged rate in every row, and whether the loss or the gradient norm stops being finite right after
the first rate that is not. NaN that comes in turn with rates all over a log stands for "no value" and is not meant, nor
is a zero that was computed as -1e-20.

Why it matters: one update at a rate of NaN or infinity leaves no weight finite, and below zero every step climbs the
loss. Where training goes on unharmed the optimizer took another rate than the one logged, and what the other checks of
the schedule say rests on the remaining rows.

What to do: look for a warm-up or decay of no steps (0/0), a plan that ends before the run does (a linear decay goes below
zero there), or a factor taken from an unset value; return to before the first such row.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.impossible import Impossible, impossible
from gdiag.measures.run import RunView
from gdiag.measures.segments import interval
from gdiag.model import Finding, Measure, Severity

CODE = "GD309"
NAME = "unusable-lr"
NEEDS: tuple[str, ...] = ("steps.lr",)
LOGARITHM = -0.2
"""Decimal logarithm of a rate of 0.63."""


def analyze(run: RunView, *, reach: int = 3) -> list[Finding]:
    """At most one finding.

    reach: logged rows after the first rate that is not finite within which a loss that is lost is its consequence; so is the
    end of the log.
    """
    rate = run.series("lr")
    seen = impossible(rate)
    if seen is None:
        return []
    first = int(seen.points.step[0])
    every = np.concatenate([rate.step, rate.nonfinite.step])
    if seen.kind == "NaN" and len(seen.points) == 1 and len(every) > 1 and first in (every.min(), every.max()):
        return []  # an optimizer that has not stepped yet, or a last row of totals
    lost = _lost(run, first, reach)
    harmed = seen.kind == "negative" and (not seen.everywhere or (not _are_logarithms(seen) and _climbs(run)))
    if seen.kind != "negative":
        harmed = lost is not None or _ends(run, first, reach)
    return [_finding(run, seen, lost, Severity.WARNING if harmed else Severity.INFO)]


def _finding(run: RunView, seen: Impossible, lost: int | None, severity: Severity) -> Finding:
    points = seen.points
    first, last = int(points.step[0]), int(points.step[-1])
    lowest = f", down to {points.value[np.isfinite(points.value)].min():.3g}," if seen.kind == "negative" else ""
    many = (
        f"all {len(points)} rows" if seen.everywhere else f"{len(points)} of {seen.logged} rows, first at step {first}"
    )
    if lost is not None and seen.kind != "negative":
        after = f", and the loss or gradient is not finite from step {lost} on"
    elif severity is Severity.INFO:
        after = (
            (", as the logarithm of a rate is" if _are_logarithms(seen) else "") if seen.kind == "negative"
            else _unharmed(run, first)
        )  # fmt: skip
    else:
        after = ""
    measures = [
        Measure("kind", seen.kind), Measure("rows", len(points)), Measure("logged", seen.logged),
        Measure("harmed", severity is not Severity.INFO),
    ]  # fmt: skip
    before = run.series("lr").finite.keep(run.series("lr").step < first)
    if len(before):
        measures.append(Measure("lr_before", float(before.value[-1])))
    if lost is not None:
        measures.append(Measure("nonfinite_step", lost, "step"))
    said = f"The learning rate is {seen.kind}{lowest} in {many}{after}"
    return Finding(CODE, NAME, severity, said, run.where(points.row(0), last_step=last), tuple(measures))


def _are_logarithms(seen: Impossible) -> bool:
    """Whether rates below zero may be logarithms of rates, which are next to zero only for rates that nobody takes."""
    return seen.everywhere and float(np.median(seen.points.value)) < LOGARITHM


def _climbs(run: RunView) -> bool:
    """Whether the last quarter of the loss is above the first."""
    quarter = len(loss := run.series("loss").value) // 4
    return quarter > 0 and bool(np.median(loss[-quarter:]) > np.median(loss[:quarter]))


def _lost(run: RunView, first: int, reach: int) -> int | None:
    """First step at which loss or gradient norm is not finite, where that is at `first` or within `reach` rows after it."""
    curves = (run.series("loss"), run.series("grad_norm"))
    lost = min(
        (int(c.nonfinite.step[c.nonfinite.step >= first][0]) for c in curves if (c.nonfinite.step >= first).any()),
        default=None,
    )
    if lost is None:
        return None
    every = interval(run.paths[0].frame["step"].to_numpy())
    return lost if lost - first <= reach * every else None


def _unharmed(run: RunView, first: int) -> str:
    """What of loss and gradient norm goes on after the rate is lost, and until when; empty where neither is logged."""
    curves = {"loss": run.series("loss"), "gradient": run.series("grad_norm")}
    on = [name for name, curve in curves.items() if (curve.step >= first).any()]
    if not on:
        return ""
    lost = [int(step) for curve in curves.values() for step in curve.nonfinite.step if step >= first]
    until = f" until step {min(lost)}" if lost else ""
    return f", while {' and '.join(on)} {'stay' if len(on) > 1 else 'stays'} finite{until}: the optimizer took another rate"


def _ends(run: RunView, first: int, reach: int) -> bool:
    """Whether the log ends with the rate: fewer than `reach` losses are logged after it."""
    loss = run.series("loss")
    return len(loss) > 0 and int((loss.step > first).sum()) < reach
