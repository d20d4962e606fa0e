"""The loss rises above its level for a while and comes back.

What it checks: windowed sums of robust deviations from the run's own recent level (winsorised, so that no single row
can fill a window) over the threshold, with a peak well above the noise. What is over in one to three rows counts where
the run's other rows let expect next to none that far out: in the loss and the gradient norm together, where both leave
their noise (from 4.5 times that of the loss on), or in the loss alone, where a single row of a run with normal noise needs
9 to 15 times the noise, of one with heavy tails more. A rise at the start of a new cycle of the schedule, or with longer sequences, is information. Spikes that repeat
are GD103, levels that stay up GD105, divergences GD104.

Why it matters: steps are lost while the loss recovers, and an after-effect means that the model was harmed. Most spikes
that recover need nothing.

What to do: if the loss recovered and its level is unharmed, go on and inspect the samples of the onset. Otherwise go back
to a checkpoint about 100 steps before the onset and skip 200-500 batches (PaLM, section 5.1).
"""

from __future__ import annotations

from gdiag.analyzers.loss_evidence import alarm, amount, event_measures, place, unit_of
from gdiag.measures.loss_events import LossEvent, LossView
from gdiag.measures.repeats import single_spikes
from gdiag.measures.run import RunView
from gdiag.model import Finding
from gdiag.reference.figures import whole

CODE = "GD102"
NAME = "loss-spike"
NEEDS: tuple[str, ...] = ("steps.loss",)
GAP_ROWS = 10
"""Log intervals without a row from which nobody knows when the loss was back."""


def analyze(run: RunView, *, z: float = 4.0, share: float = 0.005) -> list[Finding]:
    """One finding for each spike that is not one of a series.

    Thresholds:
        z: least peak excess in robust standard deviations.
        share: least peak excess as a share of what the run has gained.
    """
    return [
        _finding(run, view, event, z)
        for view in run.losses
        for event in single_spikes(view)
        if event.z >= z and event.excess >= share * event.gain
    ]


def _finding(run: RunView, view: LossView, event: LossEvent, z: float) -> Finding:
    unit = unit_of(event)
    if event.unfinished:
        end = "and the log ends before it comes back"
    elif event.recovery is None:
        end = "and does not come back fully"
    elif event.step(event.recovery) - event.last_step > GAP_ROWS * view.every:
        end = f"and is back at step {event.step(event.recovery)}, the next that is logged"
    else:
        end = f"and is back after {event.step(event.recovery) - event.onset_step} steps"
    said = (
        f"Loss rises {amount(event.excess, unit)} ({whole(event.z)} times its noise) above its level of "
        f"{amount(event.level, unit)} at step {event.onset_step} {end}"
    )
    return Finding(CODE, NAME, alarm(run, view, event), said, place(run, event), event_measures(run, view, event, z))
