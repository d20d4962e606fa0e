"""The evidence table: what speaks for or against a cause, how much, and why.

One row a rule: cause, family, weight (natural-log likelihood ratio), and the sentence shown when it applies. The
reasons for the weights stand beside the groups; diagnosis.md 4.1 has the measured lead and lag of gradient and loss.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from gdiag.model import Severity
from gdiag.triage.case import Case

Family = Literal[
    "loss", "gradient", "layer", "data", "rank", "telemetry", "schedule", "resume", "config", "numerics", "ports"
]
Sentence = Callable[[Case], str | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of evidence for (weight > 0) or against (weight < 0) a cause."""

    cause: str
    family: Family
    weight: float
    text: Sentence


UNSTABLE: Final = ("GD101", "GD102", "GD103", "GD104", "GD105", "GD201", "GD205", "GD206", "GD213", "GD305", "GD307")
"""Findings of instability: a rate at its peak says nothing where a run merely does not learn."""


def found(*codes: str, least: Severity = Severity.INFO) -> Sentence:
    """The message of the incident's first finding with one of `codes`."""

    def sentence(case: Case) -> str | None:
        finding = case.find(*codes)
        return finding.message if finding is not None and finding.severity >= least else None

    return sentence


def nearby(code: str, steps: float = 50, least: Severity = Severity.INFO) -> Sentence:
    """The message of a finding of the run with `code` within `steps` rows of the onset."""

    def sentence(case: Case) -> str | None:
        finding = case.beside(code, steps)
        return finding.message if finding is not None and finding.severity >= least else None

    return sentence


def at_least(name: str, limit: float, text: str, *codes: str) -> Sentence:
    """`text` with the figure filled in when the evidence `name` reaches `limit`."""

    def sentence(case: Case) -> str | None:
        value = case.number(name, *codes)
        return text.format(value) if value is not None and value >= limit else None

    return sentence


def at_most(name: str, limit: float, text: str, *codes: str) -> Sentence:
    """`text` with the figure filled in when the evidence `name` is at or below `limit`."""

    def sentence(case: Case) -> str | None:
        value = case.number(name, *codes)
        return text.format(value) if value is not None and value <= limit else None

    return sentence


def flagged(name: str, text: str, *codes: str) -> Sentence:
    """`text` when the evidence `name` is true."""
    return lambda case: text if case.value(name, *codes) is True else None


def unflagged(name: str, text: str, *codes: str) -> Sentence:
    """`text` when the evidence `name` is false."""
    return lambda case: text if case.value(name, *codes) is False else None


def said(name: str, value: str, text: str, *codes: str) -> Sentence:
    """`text` when the evidence `name` is the word `value`."""
    return lambda case: text if case.value(name, *codes) == value else None


def _no_after_effect(case: Case) -> str | None:
    effect, noise = case.number("after_effect", "GD102"), case.number("noise", "GD102")
    if effect is None or noise is None or effect > max(noise, 0.02):
        return None
    return f"no after-effect: the level after recovery differs by {effect:+.3f} nat"


def _after_effect(case: Case) -> str | None:
    effect, noise = case.number("after_effect", "GD102", "GD105"), case.number("noise", "GD102", "GD105")
    if effect is None or noise is None or effect <= max(2 * noise, 0.05):
        return None
    return f"the model was harmed: the level stays {effect:+.3f} nat higher afterwards"


def _odd_batch(case: Case) -> str | None:
    """A statistic of the onset's batch that differs from that of all others."""
    for name, words in (
        ("token_entropy", "token entropy"),
        ("duplicate_share", "share of duplicates"),
        ("seq_len", "sequence length"),
    ):
        z = case.number(f"{name}_z")
        if z is not None and abs(z) >= 4:
            return f"{words} of the onset batch is {z:+.1f} robust z from its own history"
    return None


def _plain_entropy(case: Case) -> str | None:
    z = case.number("token_entropy_z")
    return f"token entropy of the onset batch is ordinary (z {z:+.1f})" if z is not None and abs(z) < 2.5 else None


def _moved_together(case: Case) -> str | None:
    moved, total = case.number("layers_moved"), case.number("layers_total")
    if moved is None or not total or moved < 0.5 * total:
        return None
    return f"{moved:.0f} of {total:.0f} layers move in the same step, as a batch moves them"


def _one_layer(case: Case) -> str | None:
    moved, total = case.number("layers_moved"), case.number("layers_total")
    if moved is None or total is None or total < 4 or moved > max(1.0, 0.1 * total):
        return None
    return f"only {moved:.0f} of {total:.0f} layers moves"


def _kind(kind: str, text: str) -> Sentence:
    def sentence(case: Case) -> str | None:
        if any(case.value(name) == kind for name in ("layer_kind", "kind")):
            return text.format(case.layer or "the layer")
        return None

    return sentence


def _path(*words: str) -> Sentence:
    """The finding's sentence when the path that its bandwidth is typical of begins with one of `words`."""

    def sentence(case: Case) -> str | None:
        path = case.value("path", "GD702")
        finding = case.find("GD702")
        return finding.message if finding and isinstance(path, str) and path.startswith(words) else None

    return sentence


def _ports(kind: str, *, window: bool) -> Sentence:
    """The sentence of a port whose counters of one kind matter.

    window: of one whose growth and the slow steps only share the window of two readings; else of the others.
    """

    def sentence(case: Case) -> str | None:
        for finding in case.findings:
            if (
                finding.code not in {"GD706", "GD710"}
                or finding.severity < Severity.WARNING
                or finding.measure("kind") != kind
            ):
                continue
            shared = finding.measure("meets_slow_steps") is True and finding.number("p") is None
            if shared is window:
                return finding.message
        return None

    return sentence


def _firmware(case: Case) -> str | None:
    finding = case.find("GD710")
    failed = (
        finding is not None and finding.measure("kind") in {"firmware", "heat"} and finding.severity >= Severity.WARNING
    )
    return finding.message if finding is not None and failed else None


def _dies_with_the_loss(case: Case) -> str | None:
    """A layer whose gradient is gone from the row on in which the loss leaves its level."""
    dead, moved = case.find("GD203"), case.find("GD104", "GD105")
    if dead is None or moved is None or dead.where.step is None or moved.where.step is None:
        return None
    if abs(dead.where.step - moved.where.step) > 2 * case.facts.interval:
        return None
    return f"the gradient of {dead.where.layer} is gone in the very row in which the loss leaves its level"


def _steady_lr(case: Case) -> str | None:
    jump = case.beside("GD302", 12)
    if jump is not None and jump.severity >= Severity.WARNING:
        return None  # a later finding of the same incident sees the rate steady after the jump
    ratio = case.number("lr_ratio")
    return (
        "the learning rate is the same before and at the onset" if ratio is not None and abs(ratio - 1) < 0.05 else None
    )


EVAL_MOVED: Final = 3.0
EVAL_FLAT: Final = 2.0
"""Change of the validation loss at an onset, in standard deviations of one evaluation: moved from here, flat below."""
EVAL_SHARE: Final = 0.25
"""Share of the training loss's step that validation must follow to have moved with it, and may not reach when flat."""


def _validation(case: Case) -> tuple[float, float] | None:
    """Change of validation at the onset in standard deviations, and as a share of training's; None where not evaluated."""
    for finding in case.findings:
        z, before, after = (finding.number(name) for name in ("eval_z", "eval_before", "eval_after"))
        low, high = finding.number("level_before"), finding.number("level_after")
        if z is not None and None not in (before, after, low, high) and high != low:
            return z, (float(after or 0) - float(before or 0)) / (float(high or 0) - float(low or 0))
    return None


def _eval_moved(case: Case) -> str | None:
    seen = _validation(case)
    if seen is None or seen[0] < EVAL_MOVED or seen[1] < EVAL_SHARE:
        return None
    return f"validation moves with training, by {seen[1]:.0%} of its step: the model was harmed"


def _eval_flat(case: Case) -> str | None:
    seen = _validation(case)
    if seen is None or abs(seen[0]) > EVAL_FLAT or abs(seen[1]) > EVAL_SHARE:
        return None
    return "validation stays flat while training moves: the data or the loader changed, not the model"


def _changed(name: str, what: str, least: float) -> Sentence:
    """The sentence when the evidence `name`, a ratio after over before, is off one by the factor `least` or more."""

    def sentence(case: Case) -> str | None:
        ratio = case.number(name)
        if ratio is None or ratio <= 0 or max(ratio, 1 / ratio) < least:
            return None
        return f"the {what} changes ×{ratio:.3g} at the onset"

    return sentence


def _at_restart(case: Case) -> str | None:
    """A jump of the learning rate at a restart of the run."""
    for finding in case.findings:
        if finding.code in {"GD302", "GD306"} and finding.measure("at_restart") is True:
            return "the learning rate jumps at a restart of the run: the scheduler was not restored with it"
    return None


def _paced_at_restart(case: Case) -> str | None:
    """A schedule that moves faster from a restart on."""
    finding = case.find("GD306")
    fast = finding is not None and finding.measure("kind") == "advanced_twice"
    return finding.message if finding is not None and fast and finding.measure("at_restart") is True else None


def _other_weights(case: Case) -> str | None:
    """Norms of half of the layers that jump together at a resume."""
    finding = case.find("GD208")
    if finding is None or finding.measure("at_restart") is not True:
        return None
    moved, total = finding.number("layers_moved"), finding.number("layers_total")
    return finding.message if moved is not None and total is not None and total > 1 and moved >= 0.5 * total else None


def _one_jumps(case: Case) -> str | None:
    """A parameter norm that jumps by itself."""
    finding = case.find("GD208")
    if finding is None or finding.severity < Severity.WARNING or _other_weights(case):
        return None
    return finding.message


def _repeats_end(case: Case) -> str | None:
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


def _many_jump(case: Case) -> str | None:
    """A flipped bit moves one tensor."""
    moved = case.number("layers_moved", "GD208")
    alone = case.value("alone", "GD208")
    return f"{moved:.0f} layers jump in one step, which a flipped bit does not do" if moved and alone is False else None


def _quiet_gradient(case: Case) -> str | None:
    """A loss that moves up at once while the gradient norm does not: a rate that is too high moves both."""
    finding = case.find("GD104", "GD105")
    if finding is None or finding.measure("slow") is True or case.find("GD201", "GD307") is not None:
        return None
    ratio, z = finding.number("grad_ratio"), finding.number("z")
    if ratio is None or z is None or ratio > 1.5 or z < 20:
        return None
    return f"the gradient norm stays at {ratio:.1f} times its level while the loss moves by {z:.0f} times its noise"


def _first_after_restart(case: Case) -> str | None:
    """A spike at the one row in hundreds that follows a restart."""
    since, every = case.number("steps_since_restart", "GD102"), case.number("log_interval", "GD102")
    if since is None or every is None or since >= every:
        return None
    return "the spike begins with the first row after a restart"


def _in_a_layer(case: Case) -> str | None:
    finding = case.find("GD204")
    return finding.message if finding is not None and finding.measure("simultaneous") is False else None


def _no_run_up(case: Case) -> str | None:
    """A run-up that another finding of the incident saw is a run-up."""
    finding = case.find("GD101")
    if finding is None or finding.measure("without_run_up") is not True:
        return None
    step = finding.where.step
    if step is not None and case.onset is not None and case.onset < step:
        return None
    return "nothing rises in the rows before it"


def _failed_transfer(case: Case) -> str | None:
    """A completion error of the verbs layer, status 12: the peer did not acknowledge after all retries."""
    text = case.value("text", "GD008")
    if isinstance(text, str) and re.search(r"Got completion .*with (?:error|status)", text):
        return "a transfer over InfiniBand or RoCE completed with an error"
    return None


def _device_error(case: Case) -> str | None:
    """The CUDA runtime's names of errors that no program makes (cudaErrorECCUncorrectable, cudaErrorNvlinkUncorrectable)."""
    text = case.value("text", "GD008")
    if isinstance(text, str) and re.search(r"uncorrectable (?:ECC|NVLink) error", text, re.IGNORECASE):
        return "the run ended with an uncorrectable memory or NVLink error"
    return None


def _only_hot(case: Case) -> str | None:
    return "the GPU is hot, but no throttling was seen" if case.lead.code == "GD605" else None


def _machines_own(case: Case) -> str | None:
    """An Xid of the machine, not of the program."""
    for finding in case.findings:
        if finding.code == "GD404" and finding.severity > Severity.INFO and finding.measure("hardware") is True:
            return finding.message
    return None


def _time_limit(case: Case) -> str | None:
    text = str(case.value("text", "GD008") or "")
    return "the scheduler ended the job at its time limit" if "time limit" in text.lower() else None


def _stopped_over_numbers(case: Case) -> str | None:
    """The program's last words, where no row shows what they say."""
    if case.find("GD101") is not None or case.value("loss_scale_at_minimum", "GD008") is not False:
        return None
    return "the run stopped because its loss was not finite"


RULES: Final[tuple[Rule, ...]] = (
    # Data. A bad batch moves loss and gradient in the same step and leaves nothing behind (20 of 20 injected batches);
    # a moved batch statistic is as near to proof as a log comes.
    Rule("bad_batch", "data", 2.2, _odd_batch),
    Rule("bad_batch", "data", 2.0, flagged("returns_at_same_samples", "spikes return at the same samples", "GD115", "GD103", "GD106")),
    Rule("bad_batch", "data", -0.8, _plain_entropy),
    Rule("bad_batch", "loss", 0.7, _no_after_effect),
    Rule("bad_batch", "loss", -0.7, _after_effect),
    Rule("bad_batch", "gradient", 0.4, lambda c: "loss and gradient norm rise in the same step" if c.number("grad_lead") == 0 else None),
    Rule("bad_batch", "gradient", -1.6, at_least("grad_lead", 2, "the gradient norm leads the loss by {:.0f} steps, which an isolated bad batch does not do")),
    Rule("bad_batch", "layer", 0.5, _moved_together),
    Rule("bad_batch", "layer", 1.6, _kind("embedding", "the embedding {} moves first: rare or malformed tokens")),
    Rule("bad_batch", "schedule", -2.2, nearby("GD302", 12, Severity.WARNING)),
    Rule("bad_batch", "resume", -1.8, nearby("GD109", 12, Severity.WARNING)),
    Rule("bad_batch", "resume", -1.8, _first_after_restart),
    Rule("bad_batch", "rank", -1.0, found("GD401", least=Severity.WARNING)),
    Rule("bad_batch", "layer", -2.0, found("GD208", least=Severity.WARNING)),
    # Optimizer. Lead of the gradient by two steps or more is evidence of limited weight (likelihood ratio about 5, capped).
    Rule("optimizer_instability", "gradient", 1.2, at_least("grad_lead", 2, "the gradient norm leads the loss by {:.0f} steps")),
    Rule("optimizer_instability", "layer", 1.6, found("GD209", least=Severity.WARNING)),
    Rule("optimizer_instability", "loss", 0.5, _after_effect),
    # What is in the data or the configuration is in the first row; weights take steps to go astray.
    Rule("optimizer_instability", "loss", -0.9, flagged("at_once", "the loss is at its new level from the first row on, without a climb", "GD105")),
    Rule("config_change", "loss", 0.5, flagged("at_once", "the loss is at its new level from the first row on", "GD105")),
    Rule("data_order", "loss", 0.5, flagged("at_once", "the loss is at its new level from the first row on", "GD105")),
    # A stale second moment is a hypothesis while norms alone speak for it; a logged moment that is outgrown is evidence.
    Rule("optimizer_instability", "numerics", 1.2, found("GD214")),
    Rule("optimizer_instability", "numerics", 2.2, at_least("measured_rms", 2.3, "a layer's gradient outgrows its logged second moment {:.1f}-fold before the onset", "GD214")),
    # Learning rate. Where the rate is a small share of its peak, a rate that is too high is an unlikely story.
    Rule("lr_jump", "schedule", 5.0, nearby("GD302", 12, Severity.WARNING)),
    Rule("lr_jump", "schedule", -2.2, _steady_lr),
    Rule("lr_too_high", "schedule", 2.2, found("GD307", least=Severity.WARNING)),
    Rule("lr_too_high", "schedule", -1.2, at_most("lr_share_of_peak", 0.2, "the learning rate is down to {:.0%} of its peak")),
    Rule("lr_too_high", "schedule", 0.4, at_least("lr_share_of_peak", 0.8, "the learning rate is at {:.0%} of its peak", *UNSTABLE)),
    Rule("lr_too_high", "gradient", 1.0, found("GD213", least=Severity.WARNING)),
    Rule("lr_too_high", "gradient", -1.5, _quiet_gradient),
    Rule("gradient_explosion", "gradient", -1.5, _quiet_gradient),
    Rule("lr_too_high", "loss", 0.6, found("GD103", least=Severity.WARNING)),
    Rule("missing_warmup", "schedule", 3.6, lambda c: f.message if (f := c.context("GD305")) is not None and f.severity >= Severity.WARNING else None),
    Rule("lr_decayed_early", "schedule", 4.0, found("GD303")),
    Rule("lr_too_low", "schedule", 4.0, found("GD304")),
    Rule("lr_too_low", "gradient", -1.5, found("GD202", least=Severity.WARNING)),
    # Configuration: a batch or sequence length that changes with the loss, or a cycle that begins there, explains it.
    Rule("config_change", "config", 2.0, _changed("seq_len_ratio", "sequence length", 1.05)),
    Rule("config_change", "config", 1.8, _changed("batch_ratio", "batch size", 1.25)),
    Rule("config_change", "config", 1.5, flagged("planned", "the run's own plan changes there: a new cycle of the schedule or longer sequences", "GD102", "GD104", "GD105")),
    # Gradients and layers.
    Rule("gradient_explosion", "gradient", 0.9, found("GD201", least=Severity.WARNING)),
    Rule("vanishing_gradient", "layer", 3.5, found("GD202", least=Severity.WARNING)),
    Rule("dead_layer", "layer", 2.2, found("GD203")),
    Rule("dead_layer", "loss", 2.2, _dies_with_the_loss),
    Rule("attention_logit_growth", "numerics", 3.2, found("GD210", least=Severity.WARNING)),
    Rule("attention_logit_growth", "layer", 0.8, _kind("attention_qkv", "the attention projection {} moves first")),
    Rule("output_logit_growth", "numerics", 3.2, found("GD211", least=Severity.WARNING)),
    Rule("output_logit_growth", "layer", 0.8, _kind("lm_head", "the output head {} moves first")),
    Rule("output_logit_growth", "layer", 1.0, lambda c: f.message if (f := c.find("GD207")) and c.find("GD211") else None),
    Rule("weight_decay_too_small", "layer", 1.5, found("GD207", least=Severity.WARNING)),
    # Numerics.
    Rule("numeric_overflow", "layer", 2.0, _in_a_layer),
    Rule("numeric_overflow", "gradient", -2.2, unflagged("steady_before", "the gradients were unstable before they turned non-finite", "GD204")),
    Rule("numeric_overflow", "numerics", 1.0, lambda c: "the run trains in fp16" if str(c.facts.config.get("precision", "")).lower() in {"fp16", "float16", "16", "16-mixed"} else None),
    Rule("numeric_overflow", "gradient", -2.2, at_least("grad_ratio", 100, "the gradient norm rose {:.0f}-fold in the rows before: no single value overflowed", "GD101")),
    Rule("numeric_overflow", "gradient", 0.6, flagged("gradient_first", "the gradient is non-finite before the loss", "GD101")),
    Rule("numeric_overflow", "gradient", 0.6, _no_run_up),
    Rule("loss_scale_collapse", "numerics", 3.0, found("GD112", least=Severity.WARNING)),
    Rule("gradient_explosion", "gradient", 1.2, at_least("grad_ratio", 10, "the gradient norm rose {:.0f}-fold in the rows before", "GD101")),
    # Resume. Repeated or skipped sample ids are proof; a level that returns speaks for a lost optimizer state.
    Rule("optimizer_state_lost", "resume", 2.2, said("kind", "transient", "the loss rises at the resume and returns within tens of steps", "GD109")),
    Rule("optimizer_state_lost", "resume", 2.6, _first_after_restart),
    Rule("resume_mismatch", "resume", 2.2, said("kind", "level", "the loss level after the resume differs and stays", "GD109")),
    Rule("resume_mismatch", "resume", 3.0, said("kind", "fresh_model", "the loss after the resume is back at its start", "GD109")),
    Rule("resume_mismatch", "resume", 3.0, said("kind", "older_checkpoint", "the loss goes on as it once did from an earlier step", "GD109")),
    Rule("resume_mismatch", "layer", 3.5, _other_weights),
    Rule("silent_data_corruption", "layer", -1.5, _many_jump),
    Rule("optimizer_state_lost", "gradient", 1.6, at_least("update_jump", 1.5, "the first updates after the resume are {:.1f} times as large as before: moments or their bias correction are gone", "GD109")),
    Rule("data_repeated", "data", 3.0, said("kind", "repeated_samples", "sample ids are seen again", "GD115")),
    Rule("data_repeated", "data", 3.5, _repeats_end),
    Rule("data_order", "data", 1.5, said("kind", "skipped_samples", "sample ids are skipped at the resume", "GD115")),
    Rule("resume_mismatch", "schedule", 1.5, _at_restart),
    Rule("resume_mismatch", "schedule", 2.6, _paced_at_restart),
    Rule("lr_jump", "schedule", 1.5, said("kind", "advanced_twice", "the schedule is stepped several times per training step", "GD306")),
    # A counter or a loss scale that does not go on is seen directly; what it does to the loss is its consequence.
    Rule("step_counter_lost", "resume", 5.0, found("GD117")),
    Rule("loss_scale_lost", "resume", 5.0, found("GD118")),
    Rule("loss_scale_collapse", "resume", -2.2, found("GD118")),
    # Replicas and corruption: established by disagreement of what must agree, supported by a jump that no update explains,
    # a hypothesis otherwise; never from a loss curve alone.
    Rule("silent_data_corruption", "rank", 2.2, found("GD402", least=Severity.WARNING)),
    Rule("silent_data_corruption", "rank", 1.5, found("GD401", least=Severity.WARNING)),
    Rule("silent_data_corruption", "layer", 3.6, _one_jumps),
    Rule("silent_data_corruption", "layer", 1.0, _one_layer),
    Rule("replica_divergence", "rank", 2.2, found("GD401", least=Severity.WARNING)),
    Rule("hardware_fault", "telemetry", 5.5, found("GD403", "GD606", least=Severity.WARNING)),
    Rule("hardware_fault", "telemetry", 5.5, _machines_own),
    Rule("memory_pressure", "telemetry", 3.5, said("kind", "oom", "the log says that memory ran out", "GD008")),
    Rule("link_fault", "telemetry", 4.0, _failed_transfer),
    Rule("hardware_fault", "telemetry", 3.5, said("kind", "gpu_lost", "the log says that a GPU was lost", "GD008")),
    Rule("hardware_fault", "telemetry", -2.0, unflagged("hardware", "the driver's error code is one that programs cause", "GD404")),
    Rule("software_fault", "telemetry", 3.0, unflagged("hardware", "the driver's error code is one that programs cause", "GD404")),
    # Exits: the log's own last words.
    Rule("memory_pressure", "numerics", 3.0, said("kind", "oom", "the run ended out of memory", "GD008")),
    Rule("hardware_fault", "numerics", 2.6, said("kind", "gpu_lost", "the run ended with a lost GPU", "GD008")),
    Rule("hardware_fault", "telemetry", 4.5, _device_error),
    Rule("time_limit", "config", 5.0, _time_limit),
    Rule("loss_scale_collapse", "numerics", 5.0, flagged("loss_scale_at_minimum", "the run stopped with its loss scale at the minimum", "GD008")),
    Rule("numeric_overflow", "numerics", 2.5, _stopped_over_numbers),
    Rule("software_fault", "numerics", -2.5, flagged("numeric", "the run stopped over its numbers, not over an error", "GD008")),
    *(Rule(cause, "config", -3.0, flagged("by_hand", "somebody stopped the run", "GD008")) for cause in ("software_fault", "hardware_fault", "memory_pressure", "time_limit", "link_fault")),
    Rule("memory_pressure", "numerics", -2.5, flagged("numeric", "the run stopped over its numbers, not over its memory", "GD008")),
    # Validation: what harms the model moves it, a change of the training data or of the loader does not.
    Rule("data_order", "loss", 1.2, _eval_flat),
    Rule("data_repeated", "loss", 1.0, _eval_flat),
    Rule("config_change", "loss", 0.6, _eval_flat),
    Rule("optimizer_instability", "loss", -1.2, _eval_flat),
    Rule("lr_too_high", "loss", -1.2, _eval_flat),
    Rule("optimizer_instability", "loss", 0.8, _eval_moved),
    Rule("lr_too_high", "loss", 0.8, _eval_moved),
    Rule("data_order", "loss", -0.8, _eval_moved),
    Rule("overfitting", "loss", 2.2, found("GD110")),
    Rule("numeric_overflow", "loss", 3.0, found("GD111")),
    Rule("overfitting", "loss", -2.2, found("GD111")),
    # Time and hardware: the machine's own counters decide.
    Rule("thermal_throttling", "telemetry", 4.0, found("GD601", least=Severity.WARNING)),
    Rule("thermal_throttling", "telemetry", -2.5, _only_hot),
    Rule("power_brake", "telemetry", 4.5, found("GD603", least=Severity.WARNING)),
    Rule("power_cap", "telemetry", 4.0, found("GD602", least=Severity.WARNING)),
    Rule("straggler", "rank", 3.0, found("GD505", least=Severity.WARNING)),
    Rule("straggler", "telemetry", 2.6, found("GD604", least=Severity.WARNING)),
    Rule("network_congestion", "telemetry", 3.0, said("share", "communication", "the added time is communication time", "GD501", "GD502", "GD504")),
    Rule("link_fault", "telemetry", 3.0, said("share", "communication", "the added time is communication time", "GD501", "GD502", "GD504")),
    Rule("dataloader_stall", "telemetry", 3.0, said("share", "data", "the added time is data-loading time", "GD501", "GD502", "GD504")),
    Rule("periodic_pause", "telemetry", 2.0, found("GD503")),
    Rule("memory_pressure", "telemetry", 2.2, found("GD506")),
    Rule("network_congestion", "telemetry", -2.0, said("share", "compute", "the added time is compute time", "GD501", "GD502", "GD504")),
    Rule("dataloader_stall", "telemetry", -2.0, said("share", "compute", "the added time is compute time", "GD501", "GD502", "GD504")),
    # Benchmarks: the share of the limit names the path; a fall at large messages is congestion or flow control.
    Rule("transport_fallback", "telemetry", 2.6, _path("PCIe", "TCP")),
    Rule("link_fault", "telemetry", 1.8, _path("half", "one of four")),
    Rule("network_congestion", "telemetry", 1.5, found("GD703", "GD704", least=Severity.WARNING)),
    Rule("flow_control", "telemetry", 1.2, found("GD703", least=Severity.WARNING)),
    Rule("link_fault", "telemetry", 2.2, found("GD709", least=Severity.WARNING)),
    # Ports: errors are a damaged link, waits and drops a link without room. That counters were read before and after says
    # less than that they grow when steps are slow.
    Rule("link_fault", "ports", 2.2, _ports("errors", window=False)),
    Rule("link_fault", "ports", 0.8, _ports("errors", window=True)),
    Rule("hardware_fault", "telemetry", 5.0, _firmware),
    Rule("network_congestion", "ports", 1.8, _ports("congestion", window=False)),
    Rule("network_congestion", "ports", 0.7, _ports("congestion", window=True)),
    Rule("network_congestion", "telemetry", 2.2, found("GD707", least=Severity.WARNING)),
    Rule("straggler", "rank", -1.5, at_least("ranks", 2, "the collective is slow for all {:.0f} ranks, not only for those that wait", "GD707")),
    Rule("flow_control", "telemetry", 2.6, at_least("pauses", 1, "flow control paused traffic {:,.0f} times", "GD706")),
    Rule("link_fault", "telemetry", -1.5, at_least("pauses", 1, "paused traffic is no damaged link", "GD706")),
    Rule("competing_traffic", "telemetry", 1.8, found("GD708", least=Severity.WARNING)),
    Rule("oversubscribed_fabric", "telemetry", 1.0, found("GD708", least=Severity.WARNING)),
    Rule("silent_data_corruption", "telemetry", 1.5, found("GD701")),
    Rule("hardware_fault", "telemetry", 1.2, lambda c: f"rank {c.rank} reports it" if c.rank is not None and c.find("GD701") else None),
)  # fmt: skip
"""Every rule; the first of equal weight in a family is the one shown."""

Columns = tuple[str, ...]
_PORTS: Final[tuple[Columns, str]] = (
    ("ports.value",),
    "port counters of the hosts at several moments, each with host and date",
)
WANTED: Final[dict[str, tuple[tuple[Columns, str], ...]]] = {
    "bad_batch": (
        (("steps.sample_start", "steps.samples"), "sample ids per step, to replay the batch"),
        (("steps.token_entropy", "steps.duplicate_share"), "token entropy, length or share of duplicates of each batch"),
        (("steps.rank", "steps.param_checksum"), "loss or gradient norm per rank: a fault of one device looks the same without it"),
    ),
    "optimizer_instability": (
        (("layers.update_norm", "steps.update_norm"), "update norms"),
        (("layers.second_moment",), "Adam's second moment (exp_avg_sq) per layer"),
        (("layers.grad_norm",), "per-layer gradient norms"),
    ),
    "lr_too_high": ((("steps.lr",), "the learning rate per step"), (("steps.grad_norm",), "the gradient norm before clipping")),
    "lr_jump": ((("steps.lr",), "the learning rate per step"),),
    "attention_logit_growth": ((("layers.attention_logit", "steps.attention_logit"), "the largest attention logit per layer"),),
    "output_logit_growth": ((("steps.output_logit",), "the mean log Z or the largest output logit"),),
    "numeric_overflow": ((("layers.grad_norm",), "per-layer gradient norms"), (("steps.loss_scale",), "the loss scale (fp16)")),
    "silent_data_corruption": (
        (("steps.param_checksum",), "a parameter checksum per rank"),
        (("layers.grad_norm",), "per-layer gradient norms per rank"),
    ),
    "optimizer_state_lost": ((("events.step",), "restart and checkpoint lines of the console"),),
    "resume_mismatch": ((("steps.sample_start", "steps.samples"), "sample ids per step: other data look like other weights"),),
    "data_repeated": ((("steps.sample_start", "steps.samples"), "sample ids per step: samples seen again are proof"),),
    "data_order": (
        (("steps.eval_loss",), "the validation loss: it moves when the model was harmed and stays flat when the data changed"),
        (("steps.sample_start", "steps.samples"), "sample ids per step"),
    ),
    "config_change": ((("steps.batch_size", "steps.seq_len"), "batch size and sequence length per step"),),
    "vanishing_gradient": ((("layers.grad_norm",), "per-layer gradient norms"),),
    "overfitting": ((("steps.eval_loss",), "the validation loss"),),
    "thermal_throttling": ((("gpus.reasons", "gpus.clock_sm"), "GPU clocks and event reasons"),),
    "network_congestion": ((("steps.comm_time", "operations.seconds"), "communication time per step"), _PORTS),
    "link_fault": (_PORTS,),
    "dataloader_stall": ((("steps.data_time",), "data-loading time per step"),),
    "straggler": ((("steps.rank",), "step or compute time per rank"),),
    "unknown_step_time_drift": (
        (("gpus.clock_sm",), "GPU clocks and event reasons beside the step log"),
        (("steps.comm_time",), "communication time per step"),
        (("steps.data_time",), "data-loading time per step"),
    ),
}  # fmt: skip
"""Cause → the columns (any of them would do) and the words for what would decide."""
