"""The loss moves up to a new level and stays there.

What it checks: an episode without recovery whose new level lies above the old by more than twice its noise, but by less
than a divergence (GD104).

Why it matters: either the model was harmed and trains on from a worse state, or what it is trained on changed.

What to do: look at the validation loss. If it moves too, go back to the checkpoint before the onset. If it does not, look at
the data: the end of a stretch that was repeated, a new mix, a loader that was not resumed. A step at which the learning
rate, batch size or sequence length changes explains itself.
"""

from __future__ import annotations

from gdiag.analyzers.loss_evidence import alarm, amount, event_measures, place, unit_of
from gdiag.measures.run import RunView
from gdiag.model import Finding

CODE = "GD105"
NAME = "loss-step-up"
NEEDS: tuple[str, ...] = ("steps.loss",)


def analyze(run: RunView, *, z: float = 3.0) -> list[Finding]:
    """One finding for each level that stays up.

    Thresholds:
        z: least peak excess in robust standard deviations.
    """
    findings: list[Finding] = []
    for view in run.losses:
        for event in view.events:
            if event.kind != "step_up" or event.z < z:
                continue
            unit = unit_of(event)
            said = (
                f"Loss moves up from {amount(event.level, unit)} to {amount(event.level_after, unit)} at step "
                f"{event.onset_step} and stays there"
            )
            evidence = event_measures(run, view, event, z)
            findings.append(Finding(CODE, NAME, alarm(run, view, event), said, place(run, event), evidence))
    return findings
