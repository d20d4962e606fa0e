"""Notes a run that starts at its full learning rate, and warns when it is unstable from the first steps on.

What it checks: whether the first logged step already has the peak learning rate, and whether loss, gradient norm or the
weights' norm go out of control in the steps that a warm-up would have covered. Without that it notes how long the loss lies
above its start.

Why it matters: Adam's second moments are empty at the start, so the first updates are as large as the learning rate
allows in every direction; a warm-up keeps them small until the moments mean something.

What to do: warm the rate up over 1–5 % of the run; fine-tuning at a small constant rate needs none. Whether a warm-up would
have ended lower cannot be judged from one run: `gdiag compare` it with one that has it.
"""

from __future__ import annotations

from gdiag.measures.gradient_level import FAR
from gdiag.measures.rate_limit import above_start, worse_than_start
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import multiple

CODE = "GD305"
NAME = "missing-warmup"
NEEDS: tuple[str, ...] = ("steps.lr",)


EARLY = 0.1
"""Part of the run in which weights that are carried off are so for want of a warm-up."""


def analyze(run: RunView, *, share: float = 0.9, lasting: float = 0.3, seen_from: float = 0.01) -> list[Finding]:
    """At most one finding.

    share: first rate over the peak from which a warm-up counts as missing. lasting: share of the later rows that must be
    worse than before for a warning, unless the run ends non-finite or never recovers. seen_from: part of the run before the
    first row that may hide a warm-up.
    """
    schedule = run.schedule
    lr = run.series("lr").finite
    if (
        schedule is None
        or run.begins_trained
        or schedule.warmup_end is not None
        or schedule.first_step > max(1, seen_from * schedule.last_step)
    ):
        return []
    if float(lr.value[0]) < share * schedule.peak or any(j.index <= 2 for j in schedule.jumps):
        return []
    seen = run.peak_instability
    bad = seen is not None and (seen.ends_nonfinite or not seen.recovered or seen.lasts(lasting))
    surge = run.gradient_surge
    message = f"The learning rate starts at {float(lr.value[0]):.3g}, its peak, without a warm-up"
    evidence = [Measure("lr_at_onset", float(lr.value[0])), Measure("lr_share_of_peak", 1.0, limit=share)]
    last = None
    if surge is not None:
        bad, last = True, surge.step
        message += f", gradients grow {surge.grad_ratio:.0f}-fold within {surge.step - schedule.first_step} steps, and the loss stays where it began"
        evidence += [Measure("unstable_from", surge.step, "step"), Measure("grad_ratio", surge.grad_ratio)]
    elif not bad and (gone := run.carried_off) is not None and gone.step <= EARLY * schedule.last_step:
        bad, last = True, gone.last_step
        message += f", and the norm of the weights grows {multiple(gone.growth)}-fold from step {gone.step} to {gone.last_step}"
        evidence.append(Measure("growth", gone.growth))
    elif not bad and (calm := run.gradient_calming) is not None and calm.level_ratio >= FAR:
        bad, last = True, calm.last_step
        message += f", and gradients are {calm.level_ratio:.0f} times larger until the rate has fallen"
        evidence.append(Measure("grad_ratio", calm.level_ratio, limit=FAR))
    elif bad and seen is not None:
        last = seen.step
        message += f", and the run is unstable from step {seen.step} on"
        evidence += [Measure("unstable_from", seen.step, "step"), Measure("ends_nonfinite", seen.ends_nonfinite)]
        if seen.grad_ratio is not None:
            evidence.append(Measure("grad_ratio", seen.grad_ratio))
    else:
        worse = worse_than_start(run.series("loss"))
        if worse is not None:
            message += f", and the loss rises to {worse[1]:.3g} in its first updates, at step {worse[0]}"
            evidence += [
                Measure("worse_step", worse[0], "step"),
                Measure("worse_ratio", worse[1] / float(run.series("loss").value[0])),
            ]
        until = above_start(run.series("loss"))
        if until is not None:
            message += f", and the loss lies above its start until step {until}"
            evidence.append(Measure("above_start_until", until, "step"))
        message += "; what that costs shows against a run that warms up (gdiag compare), not in one log"
    where = run.where(lr.row(0), step=schedule.first_step, last_step=last)
    return [Finding(CODE, NAME, Severity.WARNING if bad else Severity.INFO, message, where, tuple(evidence))]
