"""The loss or a norm is NaN or infinite.

What it checks: the first NaN or ±inf in the loss, the gradient norm or another norm, in any rank; whether values come
back; what the rows before did. A gradient that is infinite in a step that mixed precision skipped (loss finite, loss
scale lowered) is ordinary back-off and not meant here. NaN that stands for "no value" all over a log is not either.

Why it matters: three non-finite losses in a row, or one at the end of the log, mean that the weights are lost; every
step after it is wasted. A single one is a skipped or a poisoned step.

What to do: go back to the last checkpoint before the onset. A gradient norm that rose tenfold in the twenty steps before
speaks for an explosion; without a run-up look for an overflow, an empty batch (0/0), log or division in the loss, or a
single bad rank, and replay the onset's batch on another node.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdiag.analyzers.loss_evidence import onset_measures
from gdiag.analyzers.nonfinite_order import nonfinite_order
from gdiag.measures.nonfinite import NonFinite
from gdiag.measures.onset import onset_context
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD101"
NAME = "loss-not-finite"
NEEDS: tuple[str, ...] = ("steps.loss|steps.grad_norm",)
NEAR_ROWS = 30
"""Rows between values that are not finite, up to which they are of one kind."""
LATE_ROWS = 5
"""Rows before the onset that are held against all before them in a run too young for a level."""
WORDS = {
    "loss": "Loss", "grad_norm": "Gradient norm", "grad_norm_clipped": "Clipped gradient norm",
    "param_norm": "Parameter norm", "update_norm": "Update norm",
}  # fmt: skip


def analyze(run: RunView, *, explosion: float = 10.0, rise_z: float = 3.0) -> list[Finding]:
    """One finding for each stretch after which the run is dead, one for all isolated values.

    Thresholds:
        explosion: rise of the gradient norm before the onset that counts as a run-up.
        rise_z: rise of the loss before the onset, in robust standard deviations, that counts as a run-up.
    """
    stretches = [stretch for stretch in run.nonfinite if not stretch.skipped]
    findings = [_finding(run, [stretch], explosion, rise_z) for stretch in stretches if stretch.dead]
    isolated = [stretch for stretch in stretches if not stretch.dead]
    if isolated:
        isolated = [*_leading(run, isolated[0]), *isolated]
        findings.append(_finding(run, isolated, explosion, rise_z))
    return findings


def _leading(run: RunView, first: NonFinite) -> list[NonFinite]:
    """Single rows before `first` that would pass for skipped steps, were they not as close to one another as what follows.

    None where the log itself says which steps were skipped.
    """
    if len(run.series("loss_scale")) or len(run.series("skipped")):
        return []
    single = [s for s in run.nonfinite if s.skipped and s.path is first.path and s.onset < first.onset]
    found: list[NonFinite] = []
    for stretch in reversed(single):
        if (found[0] if found else first).onset - stretch.last > NEAR_ROWS * run.losses[0].every:
            break
        found.insert(0, stretch)
    return found


def _finding(run: RunView, stretches: list[NonFinite], explosion: float, rise_z: float) -> Finding:
    first = stretches[0]
    name = first.columns[0][0]
    every = run.losses[0].every
    found = onset_context(first.path, first.onset, first.onset, every)
    if found.grad_ratio is None:
        found = replace(found, grad_ratio=_young_rise(first, "grad_norm"))
    rise = _loss_rise(run, first)
    # A run too young for a level of its loss has only its size.
    grown = _young_rise(first, "loss") if first.onset - run.paths[0].frame["step"][0] <= 4 * LATE_ROWS * every else None
    ratio = max(found.grad_ratio or 1.0, grown or 1.0)
    dead = first.dead
    kind = "infinite" if first.infinite else "NaN"
    losses = sum(stretch.rows for stretch in stretches)
    if dead:
        last = max(first.last, first.onset)
        said = f"{WORDS[name]} becomes {kind} at step {first.onset} and does not come back"
    else:
        last = stretches[-1].last
        times = f"in {len(stretches)} places from step" if len(stretches) > 1 else "at step"
        said = f"{WORDS[name]} is {kind} {times} {first.onset} and the run goes on"
    measures = [
        Measure("rows", losses, ""),
        Measure("first_column", name),
        Measure("order", nonfinite_order(run, first.onset, first.last)),
        Measure("isolated", not dead),
        Measure("gradient_first", first.gradient_first),
        Measure("without_run_up", ratio < explosion and rise < rise_z),
        Measure("loss_rise_z", round(rise, 2), "", rise_z),
        Measure("log_interval", every, "step"),
    ]
    if grown is not None:
        measures.append(Measure("loss_ratio", grown, limit=explosion))
    if dead:
        measures.append(Measure("steps_lost", max(1, int(first.last) - first.onset + 1), "step"))
    before = first.path.curve("loss").at(first.onset - 1)
    if before is not None:
        measures.append(Measure("level_before", before, "nat"))
    measures += onset_measures(found)
    where = run.where(
        first.place.row(0), last_step=last, rank=first.rank, time=first.path.curve("time").at(first.onset)
    )
    severity = Severity.CRITICAL if dead else Severity.WARNING
    return Finding(CODE, NAME, severity, said, where, tuple(measures))


def _young_rise(stretch: NonFinite, column: str) -> float | None:
    """Largest of the last five values before the onset over the median of those before, in a run too young for a level.

    Of fewer than ten rows the last is held against the first.
    """
    curve = stretch.path.curve(column).finite
    before = curve.value[curve.step < stretch.onset]
    if len(before) < 2 * LATE_ROWS:
        return float(before[-1] / before[0]) if len(before) > 1 and before[0] > 0 else None
    usual = float(np.median(before[:-LATE_ROWS]))
    return float(before[-LATE_ROWS:].max()) / usual if usual > 0 else None


def _loss_rise(run: RunView, stretch: NonFinite) -> float:
    """Highest median of three losses among the twenty rows before the onset, over the level, in standard deviations."""
    view = next(view for path, view in zip(run.paths, run.losses, strict=True) if path is stretch.path)
    step = view.path.curve("loss").step
    row = int(step.searchsorted(stretch.onset))
    z = view.scan.z[max(0, row - 20) : row]
    if len(z) < 3:
        return 0.0
    return float(max(sorted(z[i : i + 3])[1] for i in range(len(z) - 2)))
