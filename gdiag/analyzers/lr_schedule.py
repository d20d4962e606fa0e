"""Names the learning-rate schedule.

What it checks: the logged learning rate against the schedules that training frameworks offer: constant, linear, cosine,
warmup-stable-decay, step, inverse square root, exponential and cycles with restarts; warm-up length, peak, floor and
the step where the decay begins, at any log interval and rounding; and whether the loss stood still at the peak rate and
fell only as the rate fell.

Why it matters: what a learning rate means for a loss curve depends on the plan it belongs to: a drop of the loss in a
decay phase is expected, a jump that no plan holds is not.

What to do: compare with what was meant. A loss that waits for the rate to fall may be one whose peak is too high;
whether a lower one ends lower cannot be judged from one run, `gdiag compare` holds two against each other. A warm-up or
horizon counted in other units (micro-batches, epochs, samples) shows here first.
"""

from __future__ import annotations

from gdiag.measures.rate_limit import waiting
from gdiag.measures.run import RunView
from gdiag.measures.schedule import Schedule
from gdiag.model import Finding, Measure, Severity

CODE = "GD301"
NAME = "lr-schedule"
NEEDS: tuple[str, ...] = ("steps.lr",)

NAMES = {
    "constant": "a constant", "linear": "a linear", "cosine": "a cosine", "wsd": "a warmup-stable-decay", "step": "a step",
    "inverse-sqrt": "an inverse-square-root", "exponential": "an exponential", "polynomial": "a polynomial",
    "restarts": "a cyclic",
}  # fmt: skip


def analyze(run: RunView) -> list[Finding]:
    """One finding that names the schedule; nothing below three rows."""
    schedule = run.schedule
    if schedule is None:
        return []
    where = run.where(step=schedule.first_step, last_step=schedule.last_step)
    message, evidence = _message(schedule), _evidence(schedule)
    seen = waiting(schedule, run.series("lr").finite, run.series("loss"))
    if seen is not None:
        message += (
            f"; the loss stands at {seen.level:.4g} from step {seen.step} to {seen.last_step} at the peak rate and falls by {seen.gain:.3g} "
            "as the rate falls: a lower peak may end lower, which only a second run can show (gdiag compare)"
        )
        evidence += (Measure("stands_from", seen.step, "step"), Measure("gain_in_decay", seen.gain, "nat"))
    return [Finding(CODE, NAME, Severity.INFO, message, where, evidence)]


def _message(schedule: Schedule) -> str:
    if schedule.shape in ("warmup", "range-test"):
        return (
            f"The learning rate still rises at the last row, to {schedule.peak:.3g} after {schedule.warmup_steps} steps"
        )
    name = NAMES.get(schedule.shape)
    parts = [f"The learning rate follows {name} schedule" if name else "The learning rate follows no known schedule"]
    if schedule.warmup_end is not None:
        parts.append(f"with a warm-up of {schedule.warmup_steps} steps to {schedule.peak:.3g}")
    else:
        parts.append(f"from {schedule.peak:.3g} without a warm-up")
    if schedule.shape == "wsd" and schedule.decay_start is not None:
        parts.append(f"held until step {schedule.decay_start}")
    if schedule.changes:
        what = "restarts" if schedule.shape == "restarts" else "drops"
        steps = ", ".join(map(str, schedule.changes[:5])) + ("…" if len(schedule.changes) > 5 else "")
        parts.append(f"with {what} at step {steps}")
    if schedule.shape not in ("constant", "step"):
        parts.append(f"down to {schedule.floor:.3g}")
    return ", ".join([" ".join(parts[:2]), *parts[2:]])


def _evidence(schedule: Schedule) -> tuple[Measure, ...]:
    measures = [
        Measure("shape", schedule.shape),
        Measure("warmup_steps", schedule.warmup_steps, "step"),
        Measure("lr_peak", schedule.peak),
        Measure("lr_floor", schedule.floor),
        Measure("fit_error", round(schedule.error, 5), limit=0.03),
        Measure("log_interval", schedule.interval, "step"),
    ]
    if schedule.decay is not None:
        measures.append(Measure("decay", schedule.decay))
    for name in ("decay_start", "decay_end"):
        value: int | None = getattr(schedule, name)
        if value is not None:
            measures.append(Measure(name, value, "step"))
    if schedule.changes:
        measures.append(Measure("changes", len(schedule.changes)))
    return tuple(measures)
