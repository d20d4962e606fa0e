"""What can be seen of the loss of a case, and of what moves with it, as sentences: None where they do not apply."""

from __future__ import annotations

from typing import Final

from gdiag.model import Severity
from gdiag.reference.figures import multiple, whole
from gdiag.triage.case import Case
from gdiag.triage.sentences import Sentence


def rough_before(case: Case) -> str | None:
    """GD213's message, unless the gradients had been calm for a quarter of the run before the loss left its level: a rate
    that was borne for so long did not make them rough, what moved the loss did."""
    rough = case.find("GD213")
    if rough is None or rough.severity < Severity.WARNING:
        return None
    moved = case.find("GD104", "GD105", "GD101", "GD103", "GD102")
    first, last = case.facts.first_step, case.facts.last_step
    if moved is None or moved.where.step is None or rough.where.step is None or first is None or last is None:
        return rough.message
    late = moved.where.step > first + 0.25 * (last - first)
    return None if late and rough.where.step >= moved.where.step else rough.message


def flat_from_start(case: Case) -> str | None:
    """A loss that is flat from the first tenth of the run on: schedules do not decay there."""
    flat, first, last = case.find("GD108"), case.facts.first_step, case.facts.last_step
    if flat is None or flat.where.step is None or first is None or last is None or case.find("GD303") is not None:
        return None
    share = (flat.where.step - first) / max(1, last - first)
    return (
        f"the loss is flat from the first {max(share, 0.01):.0%} of the run on, before schedules decay"
        if share <= 0.1
        else None
    )


HIGH_SHARE, FALLEN = 0.3, 0.6
"""Share of its peak at which a rate is high still, and of that at which it has fallen."""


def stuck_at_high_rate(case: Case) -> str | None:
    """A loss that is stuck while the rate is high."""
    then = case.number("lr_share_then", "GD108")
    if then is None or then < HIGH_SHARE:
        return None
    return f"the loss is stuck while the learning rate is at {then:.0%} of its peak"


def falls_with_the_rate(case: Case) -> str | None:
    """A loss that is stuck while the rate is high, and falls on as the rate falls."""
    stuck, fall = stuck_at_high_rate(case), case.number("lr_fall", "GD108")
    return (
        f"{stuck} and falls on as the rate falls" if stuck is not None and fall is not None and fall <= FALLEN else None
    )


def worse_at_first(case: Case) -> str | None:
    """A run at its full rate from the first step on, whose first updates make it worse than guessing."""
    start = case.context("GD305")
    ratio, step = (start.number(name) if start is not None else None for name in ("worse_ratio", "worse_step"))
    if ratio is None or step is None:
        return None
    return f"the first updates, at the full rate, drive the loss to {ratio:.2g} times its start by step {step:.0f}"


OVERSHOT: Final = 8.0
"""Peak over what stays, from which a rise was no change from one level to another."""


def overshoots(case: Case) -> str | None:
    """A loss that flies far above the level at which it then stays."""
    peak, after, before = (case.number(name, "GD105") for name in ("peak_excess", "level_after", "level_before"))
    if peak is None or after is None or before is None or after <= before or peak < OVERSHOT * (after - before):
        return None
    return f"the loss flies {multiple(peak / (after - before))} times as high as it then stays: it was lost on the way, not moved"


def weights_carried_off(case: Case) -> str | None:
    """Updates that are percents of the weights."""
    if case.value("kind", "GD307") != "weights":
        return None
    growth, pace = case.number("growth", "GD307"), case.number("pace", "GD307")
    if growth is None or pace is None:
        return None
    return f"the norm of the weights grows {multiple(growth)}-fold, {pace:.0%} a step: updates are as large or larger, where a thousandth is usual"


AFTER_SHARE: Final = 0.05
"""Share of a rise that stays behind from which it has an after-effect, where the noise would show less."""


BRIEF_STEPS: Final = 20
"""Steps, or two logged rows, within which a loss is back that batches alone moved: a shard of bad ones is that long."""


WEARING: Final = 12.0
"""Logged rows in which half of a spike wears off, from which batches are an unlikely story: bad batches and shards in
trained networks take 0 to 5 (15 cases), rates and weights that changed 16 to 38."""


def slow_to_wear_off(case: Case) -> str | None:
    """A spike in a dense log that takes long to lose its first half."""
    half, every = case.number("half_life", "GD102"), case.number("log_interval", "GD102")
    if half is None or every != 1 or half < WEARING:
        return None
    return f"half of the spike wears off in {half:.0f} steps, where bad batches take a few"


def no_after_effect(case: Case) -> str | None:
    """The loss is back as soon as the batches are over, at its level of before: they left nothing in the weights."""
    effect, noise = case.number("after_effect", "GD102"), case.number("noise", "GD102")
    if effect is None or noise is None or effect > max(noise, 0.4 * AFTER_SHARE * _height(case)):
        return None
    back, every = case.number("recovery_step", "GD102"), case.number("log_interval", "GD102") or 1
    if back is not None and case.onset is not None and back - case.onset > max(BRIEF_STEPS, 2 * every):
        return None
    return f"no after-effect: the level after recovery differs by {effect:+.3f} nat"


def wears_off(case: Case) -> str | None:
    """A spike that wears off over tens of steps, as one after lost moments does; a console marks the restart, a curve does not."""
    back, every = case.number("recovery_step", "GD102"), case.number("log_interval", "GD102") or 1
    if back is None or case.onset is None or back - case.onset <= max(BRIEF_STEPS, 4 * every) or case.find("GD109"):
        return None
    return (
        f"the loss takes {back - case.onset:.0f} steps to come back, as after a restart without the optimizer's state"
    )


def after_effect(case: Case) -> str | None:
    """The level after the event stays raised."""
    effect, noise = case.number("after_effect", "GD102", "GD105"), case.number("noise", "GD102", "GD105")
    if effect is None or noise is None or effect <= max(2 * noise, AFTER_SHARE * _height(case)):
        return None
    return f"the model was harmed: the level stays {effect:+.3f} nat higher afterwards"


def _height(case: Case) -> float:
    """Peak of the loss above its level."""
    return case.number("peak_excess", "GD102", "GD105") or 0.0


def dies_with_the_loss(case: Case) -> str | None:
    """A layer whose gradient is gone from the row on in which the loss leaves its level."""
    dead, moved = case.find("GD203"), case.find("GD104", "GD105")
    if dead is None or moved is None or dead.where.step is None or moved.where.step is None:
        return None
    if abs(dead.where.step - moved.where.step) > 2 * case.facts.interval:
        return None
    return f"the gradient of {dead.where.layer} is gone in the very row in which the loss leaves its level"


EVAL_MOVED: Final = 3.0


EVAL_FLAT: Final = 2.0
"""Change of the validation loss at an onset, in standard deviations of one evaluation: moved from here, flat below."""


EVAL_SHARE: Final = 0.25
"""Share of the training loss's step that validation must follow to have moved with it, and may not reach when flat."""


def validation(case: Case) -> tuple[float, float] | None:
    """Change of validation at the onset in standard deviations, and as a share of training's; None where not evaluated."""
    for finding in case.findings:
        z, before, after = (finding.number(name) for name in ("eval_z", "eval_before", "eval_after"))
        low, high = finding.number("level_before"), finding.number("level_after")
        if z is not None and None not in (before, after, low, high) and high != low:
            return z, (float(after or 0) - float(before or 0)) / (float(high or 0) - float(low or 0))
    return None


def eval_moved(case: Case) -> str | None:
    """Validation moves with the training loss."""
    seen = validation(case)
    if seen is None or seen[0] < EVAL_MOVED or seen[1] < EVAL_SHARE:
        return None
    return f"validation moves with training, by {seen[1]:.0%} of its step: the model was harmed"


def eval_flat(case: Case) -> str | None:
    """Validation stays where it was."""
    seen = validation(case)
    if seen is None or abs(seen[0]) > EVAL_FLAT or abs(seen[1]) > EVAL_SHARE:
        return None
    return "validation stays flat while training moves: the data or the loader changed, not the model"


def repeats_end(case: Case) -> str | None:
    """A rise at the step at which samples that were seen again come to their end."""
    for finding in (*case.findings, *case.others):
        last, first = finding.number("sample_end"), finding.number("sample_start")
        if finding.code != "GD115" or finding.measure("kind") != "repeated_samples" or case.data is None:
            continue
        batch = case.data.last_sample - case.data.first_sample
        if (
            last is not None
            and first is not None
            and first < case.data.first_sample
            and abs(case.data.first_sample - last) <= 10 * batch
        ):
            return f"the samples seen again since step {finding.where.step} end here: what looks like a rise is the level of new data"
    return None


EXPLODED: Final = 10.0
"""Times its level from which a gradient norm explodes, as GD201 has it."""


def quiet_gradient(case: Case) -> str | None:
    """A loss that moves up at once while the gradient norm does not: a rate that is too high moves both."""
    finding = case.find("GD104", "GD105")
    if finding is None or finding.measure("slow") is True or case.find("GD201", "GD307") is not None:
        return None
    ratio, z = finding.number("grad_ratio"), finding.number("z")
    if ratio is None or z is None or ratio > 1.5 or z < 20:
        return None
    return f"the gradient norm stays at {ratio:.1f} times its level while the loss moves by {whole(z)} times its noise"


ALIKE: Final = (0.4, 2.0)
"""Noise of the loss after a move over that before, within which it is the same; more where noise grows with the level."""


RISING: Final = 1.25
"""Excess at the end over that right after the move from which the loss still rises."""


ROUGHER: Final = 1.7
"""Roughness of the gradient norm over that before from which the steps themselves have changed: in runs whose data or weights
change it stays below 1.5, in trained ones whose rate is raised in mid-run it is 1.6 to 3.8."""


CLOSE_STEPS: Final = 10
"""Steps between two rows up to which a leap between them says that nothing climbed: divergences of labelled runs take
some tens of steps."""


def leaps(case: Case) -> str | None:
    """A loss that leaps to a new level while the gradient stays of its size: what it is computed on changed, or a layer died.

    None of the divergences of labelled, trained runs whose rate is too high leaps so.
    """
    finding = case.find("GD104", "GD105")
    if finding is None or finding.measure("at_once") is not True or case.find("GD307") is not None:
        return None
    if (finding.number("log_interval") or 1) > CLOSE_STEPS or (finding.number("level_kept") or 0.0) > RISING:
        return None
    before, after = finding.number("level_before"), finding.number("level_after")
    # The gradient of a cross-entropy or a square is proportional to what is still wrong, and so grows with the loss.
    limit = max(EXPLODED, after / before if before and after and before > 0 else 0.0)
    ratio = max(
        (r for r in (finding.number("grad_ratio"), case.number("ratio", "GD201")) if r is not None), default=None
    )
    if ratio is not None and ratio >= limit:
        return None
    calm = "" if ratio is None else f", and the gradient norm goes to no more than {ratio:.1f} times its level"
    return f"the loss is at its new level from one row to the next, without a climb{calm}"


AT_FULL_HEIGHT = 0.8
"""Height of a spike's first row over that of its peak from which it is there at once …"""
HIGH_Z = 8.0
"""… where it stands so far above the noise that its first row is no chance."""


def strikes(case: Case) -> str | None:
    """A spike of a dense log that is at its height in its first row: weights that go astray take some to get there."""
    share, z = case.number("first_share", "GD102"), case.number("z", "GD102") or 0.0
    if case.number("log_interval", "GD102") != 1 or share is None or share < AT_FULL_HEIGHT or z < HIGH_Z:
        return None
    return "the loss is at the height of the spike in its first row, without a climb"


def goes_on(*, gradients: bool) -> Sentence:
    """A loss that is at its new level within a row and goes on there as before; `gradients`: as the logged gradients do."""

    def sentence(case: Case) -> str | None:
        finding = case.find("GD104", "GD105")
        if finding is None or finding.measure("at_once") is not True or case.find("GD307") is not None:
            return None
        noise, kept, before, after = (
            finding.number(name) for name in ("noise_ratio", "level_kept", "level_before", "level_after")
        )
        if noise is None or kept is None or before is None or after is None or kept > RISING:
            return None
        grown = max(1.0, after / before) if before > 0 else 1.0
        if not ALIKE[0] <= noise <= ALIKE[1] * grown:
            return None
        norm, rough = finding.number("grad_level_ratio"), finding.number("grad_roughness_ratio")
        if (norm is not None and not 0.5 <= norm <= 3 * grown) or (rough is not None and rough >= ROUGHER):
            return None
        if (case.number("ratio", "GD201") or 0.0) >= max(EXPLODED, grown):
            return None
        if not gradients:
            level = f" at {grown:.1f} times the level" if noise > ALIKE[1] else ""
            return f"the loss is at its new level within a row and goes on from there with {noise:.1f} times its noise{level}"
        if rough is None:
            return None
        return f"training goes on as before at the new level: {noise:.1f} times the noise in the loss, {rough:.1f} times in the gradient norm"

    return sentence


def unseen_rate(case: Case) -> str | None:
    """What a step of the loss cannot tell from other data where neither the rate nor the gradients are logged."""
    if case.facts.logged("steps.lr") or case.facts.logged("steps.grad_norm") or goes_on(gradients=False)(case) is None:
        return None
    return "a learning rate raised from one step to the next looks the same where neither it nor the gradient norm is logged"


def unusable_rate(*, known_before: bool) -> Sentence:
    """A rate that no optimizer can take, where it did harm; `known_before`: in a log that holds usable rates before it."""

    def sentence(case: Case) -> str | None:
        seen = case.find("GD309")
        if seen is None or seen.severity < Severity.WARNING or (known_before and seen.number("lr_before") is None):
            return None
        return seen.message

    return sentence


def learns_again(case: Case) -> str | None:
    """A loss that runs on from a step of its own past, in a log that marks no restart there."""
    like = case.number("like_step", "GD104", "GD105")
    if like is None or case.find("GD109") is not None:
        return None
    return f"the loss falls from there as it once did from step {like:.0f} on: the weights may be those of a checkpoint of that time"


def rougher(case: Case) -> str | None:
    """Gradients that are rougher from the move on: other steps are made, not the same steps on other data."""
    finding = case.find("GD104", "GD105")
    ratio = finding.number("grad_roughness_ratio") if finding is not None else None
    if ratio is None or ratio < ROUGHER:
        return None
    return f"the gradient norm changes {ratio:.1f} times as much from row to row as before the loss moved"


def back_after_resume(case: Case) -> str | None:
    """A rise at a resume that does not last."""
    back = case.number("recovery_step", "GD109")
    if case.value("kind", "GD109") != "transient" or back is None or case.onset is None:
        return None
    return f"the loss rises at the resume and is back in {max(1.0, back - case.onset):.0f} steps"


def first_after_restart(case: Case) -> str | None:
    """A spike at the one row in hundreds that follows a restart."""
    since, every = case.number("steps_since_restart", "GD102"), case.number("log_interval", "GD102")
    if since is None or every is None or since >= every:
        return None
    return "the spike begins with the first row after a restart"
