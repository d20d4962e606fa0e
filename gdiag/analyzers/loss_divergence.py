"""The loss leaves its level and does not come back.

What it checks: an episode without recovery whose new level lies above the old by a quarter of what the run had gained
and by ten times its noise; or a slow rise: the last three blocks of rows above the best level by six standard errors, by
1.5 % of the gain and by twice any earlier upswing of the same run.

Why it matters: everything after the onset is lost, and the state only gets worse.

What to do: stop; go back to the last checkpoint before the onset, not before the peak; lower the learning rate or lengthen
the warm-up, and look at what changed at the onset (data mix, sequence length, batch size): with a legitimate change of the
objective the validation loss stays flat.
"""

from __future__ import annotations

from gdiag.analyzers.loss_evidence import amount, event_measures, multiplied, place, unit_of
from gdiag.measures.loss_events import LossEvent, LossView
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD104"
NAME = "loss-divergence"
NEEDS: tuple[str, ...] = ("steps.loss",)


def analyze(run: RunView, *, z: float = 4.0, slow_share: float = 0.015, critical_share: float = 0.05) -> list[Finding]:
    """One finding for each path whose loss diverges.

    Thresholds:
        z: least excess of a sudden divergence in robust standard deviations.
        slow_share: least height of a slow rise as a share of what the run has gained.
        critical_share: height, as a share of the gain, from which a slow rise is critical.
    """
    findings: list[Finding] = []
    for view in run.losses:
        for event in view.events:
            if event.kind != "divergence":
                continue
            if event.slow and event.excess < slow_share * event.gain:
                continue
            if not event.slow and event.z < z:
                continue
            findings.append(_finding(run, view, event, z, critical_share))
    return findings


def _finding(run: RunView, view: LossView, event: LossEvent, z: float, critical_share: float) -> Finding:
    unit = unit_of(event)
    how = "rises slowly" if event.slow else "rises"
    back = "does not come back" if event.regained is None else f"is back only at step {event.step(event.regained)}"
    said = f"Loss {how} from {amount(event.level, unit)} to {amount(event.level_after, unit)} from step {event.onset_step} on and {back}"
    grave = not event.slow or event.excess >= critical_share * event.gain
    severity = Severity.CRITICAL if grave else Severity.WARNING
    if multiplied(run, view, event) is not None:  # the same model, in another unit: GD113 says so
        severity = Severity.INFO
    last = int(event.curve.step[-1])
    where = place(run, event)
    where = run.where(event.curve.finite.row(event.onset), last_step=last, time=where.time)
    lost = Measure("steps_lost", last - event.onset_step + 1, "step")
    measures = tuple(m for m in event_measures(run, view, event, z) if m.name != "steps_lost")
    evidence = (*measures, lost, Measure("slow", event.slow), Measure("gain_before", event.gain, unit))
    return Finding(CODE, NAME, severity, said, where, evidence)
