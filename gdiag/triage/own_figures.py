"""Actions that quote the run's own settings and evidence where the log holds them, and stay general where not."""

from __future__ import annotations

import math
import re

from gdiag.reference.figures import distance
from gdiag.triage.case import Case
from gdiag.triage.state import by_step, over, return_point, setting


def _from(case: Case) -> str:
    return f" from step {case.onset} on" if case.onset is not None else ""


def clip(case: Case) -> str:
    """Clip, or clip harder than configured (OPT-175B went from 1.0 to 0.3)."""
    now = setting(case, "clip")
    if now is None:
        return "Clip the gradient norm at 1.0 and log it before clipping"
    return f"Lower the gradient clip from {now:g} to {now * 0.3:.2g} (OPT-175B went from 1.0 to 0.3) and log the norm before clipping"


def rate_before(case: Case) -> str:
    """The rate that was due where it jumped."""
    if over(case):
        return ""
    before = case.number("lr_before", "GD302", "GD306")
    rate = f" of {before:.3g} that was due there" if before is not None and before > 0 else " of before the jump"
    return f"Resume with the learning rate{rate}"


def second_moment(case: Case) -> str:
    """A second moment that forgets faster."""
    now = setting(case, "beta2")
    change = f"Lower beta2 from {now:g} to 0.95" if now is not None and now > 0.95 else "Keep beta2 at 0.95 or below"
    return f"{change}, clip updates (StableAdamW) and keep eps at 1e-8"


def loss_scale(case: Case) -> str:
    """Where to start the scaler again."""
    before = case.number("scale_before")
    start = f" (half of {before:g}: {before / 2:g})" if before else ""
    return f"With fp16: start from a lower loss scale{start}, raise the hysteresis, and lower the learning rate"


def decay(case: Case) -> str:
    """More weight decay than configured."""
    now = setting(case, "weight_decay")
    change = f" from {now:g} to {2 * now:g} or more" if now is not None else ""
    return f"Raise weight decay{change} on the growing matrices (embeddings and norms excepted)"


def stop_early(case: Case) -> str:
    """Where validation was best."""
    best, step = case.number("eval_best", "GD110"), case.onset
    where = f": {best:.4g} at step {step}" if best is not None and step is not None else ""
    return f"Stop at the best validation loss{where}, or add data, dropout or weight decay"


def scale_rate(case: Case) -> str:
    """The rate that either rule of batch scaling asks for."""
    ratio, peak = case.number("batch_ratio"), case.facts.peak_lr
    if ratio is None or ratio <= 0 or peak is None:
        return "Scale the learning rate with the square root of the batch size (Adam) or linearly (SGD); LAMB or LARS at very large batches"
    return (
        f"For a batch ×{ratio:.3g} scale the learning rate from {peak:.3g} to {peak * math.sqrt(ratio):.3g} (Adam, square root) "
        f"or {peak * ratio:.3g} (SGD, linear); LAMB or LARS at very large batches"
    )


def compare_settings(case: Case) -> str:
    """What changed at the onset, as far as it was logged."""
    ratios = (
        ("batch size", case.number("batch_ratio")), ("sequence length", case.number("seq_len_ratio")),
        ("work per step", case.number("load_ratio")),
    )  # fmt: skip
    if case.find("GD119"):
        return (
            f"Evaluate {return_point(case)} again on the validation data of then, and look for another validation set, changed "
            "preprocessing, dropout left on, or weights loaded from elsewhere"
        )
    at = f" step {case.onset}" if case.onset is not None else " the onset"
    if (kind := case.value("kind", "GD309")) is not None:
        return mend_rate(case, below=kind == "negative")
    if case.find("GD215"):
        return (
            f"Compare weight decay before and after{at} (value, groups, added to the gradient as well) and what else "
            f"scales the weights, and resume from {return_point(case)}: what has decayed does not come back"
        )
    seen = [f"{what} ×{ratio:.3g}" for what, ratio in ratios if ratio is not None and abs(ratio - 1) > 0.05]
    known = f" (logged: {', '.join(seen)})" if seen else ""
    return (
        f"Compare the configuration before and after{at}{known}: batch size, sequence length, data mixture, loss terms"
    )


def mend_rate(case: Case, *, below: bool) -> str:
    """Where a rate that no optimizer can take comes from."""
    seen = case.find("GD309")
    at = f" at step {seen.where.step}" if seen is not None and seen.where.step is not None else ""
    before = case.number("lr_before", "GD309")
    if below:
        return (
            f"Hold the rate at its floor: the plan goes below zero{at}, as a linear decay does past its end; compare its length with the "
            "run's steps (accumulation, epochs and ranks counted alike)"
        )
    last = f" (the last one before is {before:.3g})" if before is not None else ""
    return (
        f"Find what computes the rate{at}{last}: a warm-up or decay of no steps (0/0), a plan that ends before the run, a factor that is not set; "
        "stop the run where a rate is not finite"
    )


def check_order(case: Case) -> str:
    """Shuffling and shards from the onset on."""
    return (
        f"Check shuffling, shard order and mixture weights{_from(case) or ' from the onset on'}; a validation loss that stays flat "
        "says the model is unharmed"
    )


def restore_optimizer(case: Case) -> str:
    """Resume again, with the state; what has worn off is not resumed again."""
    if over(case):
        return f"Save and load optimizer moments and step counter with the weights from now on; this resume is over, the loss is back{by_step(case)}"
    return f"Save and load optimizer moments and step counter with the weights; resume again from {return_point(case)} with them"


def drop_repeated(case: Case) -> str:
    """Which samples are not to be read once more."""
    seen = f" {case.data.first_sample}–{case.data.last_sample - 1}" if case.data is not None else " already seen"
    return f"Restore the loader's position at resume and drop the samples{seen}"


def restore_counter(case: Case) -> str:
    """The step to resume with."""
    before = case.number("step_before", "GD117")
    step = f" (it is {before + 1:.0f} here)" if before is not None else ""
    return f"Save the step with the optimizer's state, load both and go on counting from it{step}: bias correction, schedule and checkpoint names follow it"


def apart_checkpoints(case: Case) -> str:
    """What a counter that begins again overwrites."""
    at = f" from step {case.onset} on" if case.onset is not None else ""
    return f"Keep the checkpoints of the two stretches apart: those written{at} carry the names of earlier ones"


def restore_scale(case: Case) -> str:
    """The loss scale to resume with."""
    before = case.number("scale_before", "GD118")
    scale = f" (to {before:g} here)" if before else ""
    return f"Save the gradient scaler's state with the optimizer's and load both{scale}; where it is lost, set the initial scale to the last good one"


def load_again(case: Case) -> str:
    """Which checkpoint to load, where the loss or the weights say that another one was."""
    kind, like = case.value("kind", "GD109"), case.number("like_step", "GD109", "GD104", "GD105", "GD208")
    if kind == "older_checkpoint" or (kind is None and (like is not None or case.find("GD208") is not None)):
        seen = f": the model goes on from about step {like:.0f}" if like is not None else ""
        return f"Load {return_point(case)} again{seen}; check the path and the step saved inside the checkpoint"
    if kind == "fresh_model" and over(case):
        return f"Before the next resume list the keys that are missing or unexpected: at step {case.onset} the weights were not loaded"
    if kind == "fresh_model":
        return f"Load {return_point(case)} again and list the keys that are missing or unexpected: the weights were not loaded"
    return compare_resumed(case)


def compare_resumed(case: Case) -> str:
    """The two losses that must agree."""
    before, excess = case.number("level_before", "GD109"), case.number("peak_excess", "GD109")
    known = (
        f" (here {before + excess:.4g} where {before:.4g} is due)" if before is not None and excess is not None else ""
    )
    step = f"step {case.onset}'s loss" if case.onset is not None else "the resumed step's loss"
    return f"Compare {step}{known} with the one logged before the checkpoint on the same batch: weights, precision, dropout, loss scaling"


def first_loss(case: Case) -> str:
    """What an untrained model must begin with."""
    words = case.number("classes_guessed", "GD107", "GD108")
    if words is not None:
        return f"Check the initialization's standard deviation and the label shift; the loss should start near ln({words:.0f}) = {math.log(words):.2f}"
    words = setting(case, "vocab_size")
    start = f" = {math.log(words):.2f}" if words is not None and words > 1 else ""
    return f"Check the initialization's standard deviation and the label shift; the loss should start near ln(vocabulary){start}"


BRIEF_PERIOD = 10
"""Steps from one pause to the next below which it is no checkpoint and no evaluation."""


def pause(case: Case) -> str:
    """Whether the rhythm is a planned one."""
    period, matches = case.number("period"), case.value("matches")
    if period is not None and period < BRIEF_PERIOD:
        return (
            f"Look at what runs every {distance(period)} steps: gradient accumulation, a logger or a collective that waits only then; "
            "time whole optimizer steps to tell"
        )
    each = f" every {distance(period)} steps" if period is not None else ""
    share = case.number("time_share", "GD503")
    much = f"{share:.1f} % of the time" if share is not None else "the share"
    if matches:
        kind = str(matches).partition(" (")[0]
        return f"The pauses{each} are those of the {kind}, no fault; make it rarer, shorter or asynchronous where {much} is too much"
    return f"The pauses{each} are harmless if they are checkpoints or evaluations; make checkpoints asynchronous where {much} is too much"


def loader(case: Case) -> str:
    """Where to look at the storage."""
    span = f"steps {case.onset}–{case.last}" if case.onset is not None and case.last is not None else "the slow steps"
    return f"Add loader workers or prefetch, and check the storage's latency at {span}"


def record_times(case: Case) -> str:
    """What to record beside the step log."""
    return (
        "Record GPU clocks and event reasons (`nvidia-smi --query-gpu=… -l 5`), communication and data time beside the step log"
        f"{'' if _passed(case) else _from(case)}, and run gdiag on both"
    )


def _passed(case: Case) -> bool:
    """Whether a longer step time went back."""
    return case.lead.code == "GD501" and case.lead.measure("recovered") is True


def what_else_ran(case: Case) -> str:
    """What a slowdown that came and went, or stays, is to be held against."""
    if _passed(case):
        return "Look at what else ran on these hosts and their storage meanwhile: other jobs, backups, checkpoints of a neighbour"
    return "Compare the configuration and the node list before and after the onset"


def memory(case: Case) -> str:
    """How full the memory is; what the kernel's killer ended ran out of the host's memory, not of the GPU's."""
    if re.search(r"oom-kill|Killed process", str(case.value("text", "GD008"))):
        return "Raise the memory limit of the host or container, or lower loader workers, prefetch and pinned buffers; log each process's resident memory"
    held = case.number("memory_after")
    full = f" ({held:.3g} GiB at the end)" if held is not None else ""
    return f"Log reserved and allocated memory{full} and allocation retries; set expandable segments or lower the micro-batch"


def attention(case: Case) -> str:
    """QK-norm, in the layer named."""
    return f"Add QK-norm{_in(case)} (or QK-clip, or logit soft-capping) and check the attention scaling: clipping and a lower learning rate only delay it"


def output(case: Case) -> str:
    """z-loss on the head named."""
    return f"Add z-loss 1e-4 and weight decay on the output head{_in(case)}"


def _in(case: Case) -> str:
    return f" ({case.layer})" if case.layer else ""
