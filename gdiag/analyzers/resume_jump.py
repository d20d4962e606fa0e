"""Finds resumes after which the loss is not where it was.

What it checks: at every place where training was taken up again, the loss of the first rows against the loss logged for
the same steps before, or the level of the rows before; whether a rise comes back within tens of steps (transient),
stays (level), runs on as the curve once did from an earlier step (older_checkpoint), is back near the start of the run
(fresh_model), or the loss is lower than before; and logs that begin in the middle of a run with the loss of an untrained
model.

Why it matters: a resume should be invisible. A transient rise means that optimizer moments or the step counter were not
restored, a level that stays that weights, precision or data differ, a loss near the start that the checkpoint was not
loaded; a lower loss that samples are seen again.

What to do: save and load optimizer, step counter, scheduler, loss scale, loader position and random states together;
compare the first resumed step with the same step before the crash.
"""

from __future__ import annotations

from gdiag.measures.resume import FreshStart, Resume
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD109"
NAME = "resume-jump"
NEEDS: tuple[str, ...] = ("steps.loss",)

WORDS = {
    "transient": "and comes back by step {recovery}",
    "level": "and stays higher ({late:.3f} nat)",
    "lower": "lower than before: samples may be seen again",
    "older_checkpoint": "and falls from there as it did from step {like} on: the weights are those of an older checkpoint",
    "fresh_model": "near where the run began: the checkpoint's weights seem not to be loaded",
}
SEVERITY = {
    "transient": Severity.WARNING, "level": Severity.WARNING, "lower": Severity.INFO,
    "older_checkpoint": Severity.CRITICAL, "fresh_model": Severity.CRITICAL,
}  # fmt: skip


AT_FIRST = 0.6
"""Share of the rise that the first step after a resume must have for the loaded weights, not the updates after them, to bring it."""


def analyze(run: RunView, *, factor: float = 1.0) -> list[Finding]:
    """A finding per resume whose loss differs; a clean resume gives none.

    factor: multiplies the least difference that counts, six standard errors but 2 % of the level
    and 1 % of what the run had gained at least.
    """
    found = [_finding(run, r) for r in run.resumes if r.kind != "clean" and abs(r.jump) > factor * r.limit]
    fresh = run.fresh_start
    return [_fresh(run, fresh), *found] if fresh is not None else found


def _finding(run: RunView, seen: Resume) -> Finding:
    words = WORDS[seen.kind].format(recovery=seen.recovery_step, late=seen.late, like=seen.like_step)
    if seen.kind == "level" and seen.regained_step is not None:
        words = f"and is back at that level only by step {seen.regained_step}"
    if seen.kind == "level" and seen.like_step is not None:
        words += (
            f"; step {seen.like_step} had such a loss before"
            if seen.regained_step is not None
            else f", the level of about step {seen.like_step}"
        )
    if seen.kind == "fresh_model" and seen.after > seen.start + 2 * seen.limit:
        words = f"above the {seen.start:.3f} nat of the untrained model: another model's weights, vocabulary or data"
    evidence = [
        Measure("kind", seen.kind),
        Measure("peak_excess", seen.jump, "nat", limit=seen.limit),
        Measure("level_before", seen.before, "nat"),
        Measure("level_after", seen.late, "nat"),
        Measure("noise", seen.noise, "nat"),
        Measure("recovered", seen.recovery_step is not None),
        Measure("steps_lost", seen.rewound, "step"),
    ]
    every = run.losses[0].every
    if seen.jump > 0 and every == 1 and seen.first > max(AT_FIRST * seen.jump, 3 * seen.noise):
        evidence.append(Measure("first_excess", seen.first, "nat"))
    if seen.highest > seen.start + 2 * seen.limit:
        evidence.append(Measure("over_start", seen.highest - seen.start, "nat"))
    if seen.recovery_step is not None:
        evidence.append(Measure("recovery_step", seen.recovery_step, "step"))
    if seen.regained_step is not None:
        evidence.append(Measure("regained_step", seen.regained_step, "step"))
    if seen.like_step is not None:
        evidence.append(Measure("like_step", seen.like_step, "step"))
    if seen.half_life is not None:
        evidence.append(Measure("half_life", seen.half_life, "step"))
    if seen.grad_ratio is not None:
        evidence.append(Measure("grad_ratio", seen.grad_ratio))
    if seen.update_jump is not None:
        evidence.append(Measure("update_jump", seen.update_jump))
    window = run.batch_window(seen.step)
    if window is not None:
        evidence += [Measure("sample_start", window.first), Measure("sample_end", window.last)]
    return Finding(
        CODE, NAME, SEVERITY[seen.kind],
        f"After the resume at step {seen.step} the loss is {seen.after:.3f} nat where {seen.before:.3f} is due, {words}",
        run.where(run.series("loss").finite.row(seen.index), step=seen.step, last_step=seen.recovery_step),
        tuple(evidence),
    )  # fmt: skip


def _fresh(run: RunView, seen: FreshStart) -> Finding:
    evidence = [
        Measure("kind", "fresh_model"),
        Measure("level_before", seen.first, "nat"),
        Measure("level_after", seen.last, "nat"),
    ]
    if seen.grad_first is not None and seen.grad_last is not None:
        evidence.append(Measure("grad_ratio", seen.grad_first / max(seen.grad_last, 1e-30)))
    trained = _trained_before(run, seen.step)
    if trained:
        evidence.append(Measure("trained_before", trained))
    return Finding(
        CODE, NAME, Severity.WARNING if trained else Severity.INFO,
        f"The log begins at step {seen.step} with the steep fall of an untrained model, from {seen.first:.3f} to {seen.last:.3f} nat",
        run.where(run.series("loss").finite.row(0), step=seen.step), tuple(evidence),
    )  # fmt: skip


def _trained_before(run: RunView, step: int) -> str | None:
    """What besides the step count says that the run had trained before: a count that may merely start high."""
    for name in ("tokens", "samples"):
        counter = run.series(name)
        if len(counter) >= 2 and counter.value[0] > 100 * abs(counter.value[1] - counter.value[0]):
            return f"{counter.value[0]:.3g} {name} consumed"
    total = run.run.config.get("total_steps")
    if isinstance(total, int | float) and not isinstance(total, bool) and 0.3 * total < step <= total:
        return f"step {step} of {total:g}"
    return None
