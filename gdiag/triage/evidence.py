"""The evidence table: what speaks for or against a cause, how much, and why.

One row a rule: cause, family, weight (natural-log likelihood ratio), and the sentence shown when it applies. The
reasons for the weights stand beside the groups; diagnosis.md 4.1 has the measured lead and lag of gradient and loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from gdiag.model import Severity
from gdiag.triage.loss_sentences import (
    after_effect,
    back_after_resume,
    dies_with_the_loss,
    eval_flat,
    eval_moved,
    falls_with_the_rate,
    first_after_restart,
    flat_from_start,
    goes_on,
    leaps,
    learns_again,
    no_after_effect,
    overshoots,
    quiet_gradient,
    repeats_end,
    rough_before,
    rougher,
    slow_to_wear_off,
    strikes,
    stuck_at_high_rate,
    unseen_rate,
    unusable_rate,
    wears_off,
    weights_carried_off,
    worse_at_first,
)
from gdiag.triage.lost_numbers import (
    gradient_first,
    grew_away,
    lost_at_first,
    lost_in_validation,
    no_run_up,
    stopped_over_numbers,
)
from gdiag.triage.machine_sentences import (
    clocks_fell,
    device_error,
    failed_transfer,
    firmware,
    machines_own,
    more_work,
    only_hot,
    own_error,
    path,
    ports,
    same_work,
    time_limit,
)
from gdiag.triage.sentences import (
    Sentence,
    at_least,
    at_peak_rate,
    at_restart,
    changed,
    decay_grew,
    decayed,
    early_logits,
    flagged,
    found,
    in_a_layer,
    kind,
    lone_jump,
    many_jump,
    moved_together,
    nearby,
    odd_batch,
    one_jumps,
    one_layer,
    outgrows,
    paced_at_restart,
    plain_entropy,
    said,
    stays,
    steady_lr,
    unflagged,
    units_died,
    weights_jump,
)

Family = Literal[
    "loss", "gradient", "layer", "data", "rank", "telemetry", "schedule", "resume", "config", "numerics", "ports"
]


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of evidence for (weight > 0) or against (weight < 0) a cause."""

    cause: str
    family: Family
    weight: float
    text: Sentence


UNSTABLE: Final = ("GD101", "GD102", "GD103", "GD104", "GD105", "GD201", "GD205", "GD206", "GD213", "GD305", "GD307")
"""Findings of instability: a rate at its peak says nothing where a run merely does not learn."""


RULES: Final[tuple[Rule, ...]] = (
    # Data. A bad batch moves loss and gradient in the same step and leaves nothing behind (20 of 20 injected batches);
    # a moved batch statistic is as near to proof as a log comes.
    Rule("bad_batch", "data", 2.2, odd_batch),
    Rule("bad_batch", "data", 2.0, flagged("returns_at_same_samples", "spikes return at the same samples", "GD115", "GD103")),
    Rule("bad_batch", "data", 2.0, at_least("period", 1, "they come back every {:.0f} steps, as data that are read again each time do", "GD106", "GD103")),
    Rule("bad_batch", "data", -0.8, plain_entropy),
    Rule("bad_batch", "loss", 0.7, no_after_effect),
    Rule("bad_batch", "loss", -0.7, after_effect),
    Rule("bad_batch", "loss", -0.9, slow_to_wear_off),
    Rule("bad_batch", "gradient", 0.4, lambda c: "loss and gradient norm rise in the same step" if c.number("grad_lead") == 0 else None),
    Rule("bad_batch", "gradient", -1.6, at_least("grad_lead", 2, "the gradient norm leads the loss by {:.0f} steps, which an isolated bad batch does not do")),
    Rule("bad_batch", "layer", 0.5, moved_together),
    Rule("bad_batch", "layer", 1.6, kind("embedding", "the embedding{} moves first: rare or malformed tokens")),
    Rule("bad_batch", "schedule", -2.2, nearby("GD302", 12, Severity.WARNING)),
    Rule("bad_batch", "resume", -1.8, nearby("GD109", 12, Severity.WARNING)),
    Rule("bad_batch", "resume", -1.8, first_after_restart),
    Rule("bad_batch", "rank", -1.0, found("GD401", least=Severity.WARNING)),
    Rule("bad_batch", "layer", -2.0, found("GD208", least=Severity.WARNING)),
    # Optimizer. Lead of the gradient by two steps or more is evidence of limited weight (likelihood ratio about 5, capped).
    Rule("optimizer_instability", "gradient", 1.2, at_least("grad_lead", 2, "the gradient norm leads the loss by {:.0f} steps")),
    Rule("optimizer_instability", "layer", 1.6, found("GD209", least=Severity.WARNING)),
    Rule("optimizer_instability", "loss", 0.5, after_effect),
    # What is in the data or the configuration is in the first row; weights take steps to go astray.
    *(Rule(cause, "loss", -1.2, leaps) for cause in (
        "optimizer_instability", "lr_too_high", "gradient_explosion", "attention_logit_growth", "output_logit_growth",
    )),
    Rule("optimizer_instability", "loss", -1.2, strikes),
    Rule("bad_batch", "loss", 0.5, strikes),
    # A sparse log shows a climb of tens of steps as a leap: there how training goes on decides, with the gradients if logged.
    *(Rule(cause, "loss", -1.5, goes_on(gradients=False)) for cause in ("lr_too_high", "gradient_explosion")),
    *(Rule(cause, "loss", -2.0, goes_on(gradients=True)) for cause in ("lr_too_high", "gradient_explosion")),
    *(Rule(cause, "loss", -0.7, goes_on(gradients=False)) for cause in ("optimizer_instability", "attention_logit_growth", "output_logit_growth")),
    *(Rule(cause, "loss", 1.2, goes_on(gradients=False)) for cause in ("config_change", "data_order")),
    Rule("lr_jump", "loss", 1.2, unseen_rate),
    Rule("lr_too_high", "gradient", 1.6, rougher),
    Rule("optimizer_instability", "gradient", 0.8, rougher),
    *(Rule(cause, "gradient", -1.5, rougher) for cause in ("config_change", "data_order", "data_repeated")),
    Rule("config_change", "loss", 1.2, leaps),
    Rule("data_order", "loss", 1.2, leaps),
    *(Rule(cause, "gradient", 0.7, quiet_gradient) for cause in ("config_change", "data_order")),
    # A stale second moment is a hypothesis while norms alone speak for it; a logged moment that is outgrown is evidence.
    Rule("optimizer_instability", "numerics", 1.2, found("GD214")),
    Rule("optimizer_instability", "numerics", 1.6, at_least("moment_rms", 2.3, "the gradient norm outgrows a second moment of its own past {:.1f}-fold at the onset", "GD214")),
    Rule("optimizer_instability", "numerics", 2.2, at_least("measured_rms", 2.3, "a layer's gradient outgrows its logged second moment {:.1f}-fold before the onset", "GD214")),
    # Learning rate. Where the rate is a small share of its peak, a rate that is too high is an unlikely story.
    Rule("lr_jump", "schedule", 5.0, nearby("GD302", 12, Severity.WARNING)),
    Rule("lr_jump", "schedule", -2.2, steady_lr),
    Rule("lr_too_high", "schedule", 2.2, found("GD307", least=Severity.WARNING)),
    # Whatever comes after updates of percents of the weights comes of them.
    *(Rule(cause, "schedule", weight, weights_carried_off) for cause, weight in (
        ("lr_too_high", 3.0), ("missing_warmup", 1.5), ("vanishing_gradient", -3.0), ("weight_decay_too_small", -2.0),
    )),
    Rule("lr_too_high", "schedule", -1.2, decayed),
    Rule("lr_too_high", "schedule", 0.4, at_peak_rate(*UNSTABLE)),
    Rule("lr_too_high", "gradient", 1.0, rough_before),
    Rule("lr_too_high", "gradient", -1.5, quiet_gradient),
    Rule("gradient_explosion", "gradient", -1.5, quiet_gradient),
    Rule("lr_too_high", "gradient", -1.5, lone_jump),
    Rule("gradient_explosion", "gradient", -1.5, lone_jump),
    Rule("lr_too_high", "loss", 0.6, found("GD103", least=Severity.WARNING)),
    Rule("missing_warmup", "loss", 0.9, worse_at_first),
    Rule("missing_warmup", "schedule", 3.6, lambda c: f.message if (f := c.context("GD305")) is not None and f.severity >= Severity.WARNING else None),
    Rule("lr_decayed_early", "schedule", 4.0, found("GD303")),
    Rule("lr_decayed_early", "loss", -1.6, flat_from_start),
    # What a rate that is too low learns, it learns all along; one that is too high learns when it has come down.
    Rule("lr_decayed_early", "schedule", -2.2, stuck_at_high_rate),
    Rule("lr_too_high", "schedule", 1.6, falls_with_the_rate),
    Rule("lr_too_low", "schedule", -1.2, falls_with_the_rate),
    Rule("lr_too_low", "schedule", 4.0, found("GD304")),
    Rule("lr_too_high", "numerics", 1.6, at_least("weights_moved", 1, "the norm of the weights grows {:.1f}-fold and nothing is learned", "GD107", "GD108")),
    Rule("lr_too_low", "numerics", -2.2, at_least("weights_moved", 1, "the weights have moved {:.1f}-fold: no rate that is too low does that", "GD107", "GD108")),
    # What optimizers take: Adam and its kin 1e-6 to 1e-2, SGD 1e-3 to about 1; LARS with huge batches alone takes more.
    Rule("lr_too_high", "schedule", 1.5, at_least("lr_peak", 1.0, "a learning rate of {:.3g} is more than all but layer-wise scaled optimizers take", "GD107")),
    Rule("lr_too_low", "schedule", -2.2, at_least("lr_peak", 0.1, "a learning rate of {:.3g} is not low for any optimizer", "GD107")),
    *(Rule(cause, "numerics", weight, early_logits) for cause, weight in (("lr_too_high", 1.2), ("lr_too_low", -1.2))),
    Rule("lr_too_low", "gradient", -1.5, found("GD202", least=Severity.WARNING)),
    # Configuration: a batch or sequence length that changes with the loss, or a cycle that begins there, explains it.
    Rule("config_change", "config", 2.0, changed("seq_len_ratio", "sequence length", 1.05)),
    Rule("config_change", "config", 1.8, changed("batch_ratio", "batch size", 1.25)),
    # Fourfold and more is no ramp: the rate no longer fits the batch.
    *(Rule(cause, "config", 4.5, changed("batch_ratio", "batch size", 4.0)) for cause in ("config_change", "lr_batch_mismatch")),
    Rule("config_change", "config", 1.5, flagged("planned", "the run's own plan changes there: a new cycle of the schedule or longer sequences", "GD102", "GD104", "GD105")),
    # A rate that no optimizer can take is computed so: a plan of no steps, or one that ends before the run.
    # Where the log begins with it, and with nothing else that is finite, a logger that fails is as likely.
    Rule("config_change", "schedule", 5.0, unusable_rate(known_before=True)),
    Rule("config_change", "schedule", 2.5, unusable_rate(known_before=False)),
    *(Rule(cause, "schedule", -2.2, unusable_rate(known_before=True)) for cause in ("numeric_overflow", "bad_batch", "lr_jump", "resume_mismatch")),
    # Gradients and layers.
    Rule("gradient_explosion", "gradient", 0.9, found("GD201", least=Severity.WARNING)),
    Rule("vanishing_gradient", "layer", 3.5, found("GD202", least=Severity.WARNING)),
    Rule("dead_layer", "layer", 2.2, found("GD203")),
    Rule("dead_layer", "loss", 2.2, dies_with_the_loss),
    Rule("attention_logit_growth", "numerics", 3.2, found("GD210", least=Severity.WARNING)),
    Rule("attention_logit_growth", "numerics", 1.2, found("GD210")),
    Rule("attention_logit_growth", "layer", 0.8, kind("attention_qkv", "the attention projection{} moves first")),
    Rule("output_logit_growth", "numerics", 3.2, found("GD211", least=Severity.WARNING)),
    Rule("output_logit_growth", "layer", 0.8, kind("lm_head", "the output head{} moves first")),
    Rule("output_logit_growth", "layer", 1.0, lambda c: f.message if (f := c.find("GD207")) and c.find("GD211") else None),
    # Norms that grow are what too small a decay does, and what large steps do: they decide nothing by themselves.
    Rule("weight_decay_too_small", "numerics", 1.5, found("GD207", least=Severity.WARNING)),
    # One layer that leaves its peers was not left without decay with them all: what its kind does when it grows is likelier.
    Rule("weight_decay_too_small", "loss", -1.2, outgrows()),
    Rule("attention_logit_growth", "layer", 3.2, outgrows("attention_qkv")),
    Rule("output_logit_growth", "layer", 2.6, outgrows("lm_head")),
    # Numerics.
    Rule("numeric_overflow", "layer", 2.0, in_a_layer),
    Rule("numeric_overflow", "gradient", -2.2, unflagged("steady_before", "the gradients were unstable before they turned non-finite", "GD204")),
    Rule("numeric_overflow", "numerics", 1.0, lambda c: "the run trains in fp16" if str(c.facts.config.get("precision", "")).lower() in {"fp16", "float16", "16", "16-mixed"} else None),
    Rule("numeric_overflow", "gradient", -2.2, at_least("grad_ratio", 100, "the gradient norm rose {:.0f}-fold in the rows before: no single value overflowed", "GD101")),
    Rule("numeric_overflow", "gradient", 0.6, gradient_first),
    Rule("numeric_overflow", "gradient", 0.6, no_run_up),
    Rule("numeric_overflow", "loss", -2.2, grew_away),
    *(Rule(cause, "loss", 0.7, grew_away) for cause in ("lr_too_high", "gradient_explosion")),
    Rule("numeric_overflow", "loss", -2.2, at_least("loss_ratio", 100, "the loss rose {:.0f}-fold in its first rows: no single value overflowed", "GD101")),
    Rule("gradient_explosion", "loss", 1.2, at_least("loss_ratio", 100, "the loss rose {:.0f}-fold in its first rows", "GD101")),
    *(Rule(cause, "loss", -2.5, lost_at_first) for cause in ("lr_too_high", "missing_warmup", "optimizer_instability", "lr_jump")),
    Rule("loss_scale_collapse", "numerics", 3.0, found("GD112", least=Severity.WARNING)),
    Rule("numeric_overflow", "layer", 2.2, stays),
    Rule("loss_scale_collapse", "layer", -2.2, flagged("stays", "the loss scale falls over one layer that is not finite at any scale", "GD204")),
    Rule("gradient_explosion", "gradient", 1.2, at_least("grad_ratio", 10, "the gradient norm rose {:.0f}-fold in the rows before", "GD101")),
    # Resume. Repeated or skipped sample ids are proof; a level that returns speaks for a lost optimizer state.
    Rule("optimizer_state_lost", "resume", 2.2, back_after_resume),
    Rule("optimizer_state_lost", "resume", 2.6, first_after_restart),
    # Lost moments cost from the first update on: the first loss after a resume is that of the weights and data that were loaded.
    *(Rule(cause, "loss", weight, at_least("first_excess", 0, "the first step after the resume, before any update, is {:.2f} nat too high already", "GD109")) for cause, weight in (("optimizer_state_lost", -3.0), ("resume_mismatch", 1.0))),
    *(Rule(cause, "loss", weight, at_least("over_start", 0, "the loss after the resume is {:.2f} nat above that of the untrained model: other weights, vocabulary or data", "GD109")) for cause, weight in (("optimizer_state_lost", -3.5), ("resume_mismatch", 1.5))),
    # The same loss at the first step shows the same weights and batch; what follows shows the updates.
    Rule("optimizer_state_lost", "resume", 4.0, found("GD120")),
    *(Rule(cause, "resume", -2.5, found("GD120")) for cause in ("resume_mismatch", "data_repeated", "data_order", "bad_batch")),
    Rule("optimizer_state_lost", "loss", 0.9, wears_off),
    Rule("resume_mismatch", "resume", 2.2, said("kind", "level", "the loss level after the resume differs and stays", "GD109")),
    Rule("resume_mismatch", "resume", 3.0, said("kind", "fresh_model", "the loss after the resume is that of untrained weights", "GD109")),
    Rule("resume_mismatch", "resume", 3.0, said("kind", "older_checkpoint", "the loss goes on as it once did from an earlier step", "GD109")),
    # Without a mark of a restart the curve alone tells: the loss learns once more what it had learned, as it did then.
    Rule("resume_mismatch", "loss", 2.2, learns_again),
    *(Rule(cause, "loss", -2.0, learns_again) for cause in ("config_change", "data_order", "data_repeated", "lr_too_high", "optimizer_instability")),
    Rule("resume_mismatch", "layer", 3.5, weights_jump),
    Rule("silent_data_corruption", "layer", -1.5, many_jump),
    Rule("optimizer_state_lost", "gradient", 1.6, at_least("update_jump", 1.5, "the first updates after the resume are {:.1f} times as large as before: moments or their bias correction are gone", "GD109")),
    Rule("data_repeated", "data", 3.0, said("kind", "repeated_samples", "sample ids are seen again", "GD115")),
    Rule("data_repeated", "data", 3.5, repeats_end),
    Rule("data_order", "data", 1.5, said("kind", "skipped_samples", "sample ids are skipped at the resume", "GD115")),
    Rule("resume_mismatch", "schedule", 1.5, at_restart),
    Rule("resume_mismatch", "schedule", 2.6, paced_at_restart),
    Rule("lr_jump", "schedule", 1.5, said("kind", "advanced_twice", "the schedule is stepped several times per training step", "GD306")),
    # A counter or a loss scale that does not go on is seen directly; what it does to the loss is its consequence.
    Rule("step_counter_lost", "resume", 5.0, found("GD117")),
    Rule("loss_scale_lost", "resume", 5.0, found("GD118")),
    Rule("loss_scale_collapse", "resume", -2.2, found("GD118")),
    # Replicas and corruption: established by disagreement of what must agree, supported by a jump that no update explains,
    # a hypothesis otherwise; never from a loss curve alone.
    Rule("silent_data_corruption", "rank", 2.2, found("GD402", least=Severity.WARNING)),
    Rule("silent_data_corruption", "rank", 1.5, found("GD401", least=Severity.WARNING)),
    Rule("silent_data_corruption", "layer", 3.6, one_jumps),
    Rule("dead_layer", "layer", 4.0, units_died),
    Rule("silent_data_corruption", "layer", -2.2, units_died),
    Rule("silent_data_corruption", "layer", 1.0, one_layer),
    # A loss that one rank computes too high for many rows is its data as well as its machine.
    Rule("bad_batch", "rank", 2.2, said("kind", "leaves", "the loss of one rank is high for many rows, as with other data there", "GD402")),
    Rule("silent_data_corruption", "rank", -1.5, said("kind", "leaves", "the rank's own data would do the same", "GD402")),
    # A rank that is given the same batch again learns it by heart; nothing that computes wrongly lowers loss and gradient alike.
    Rule("data_repeated", "rank", 3.0, said("kind", "sinks", "loss and gradient of one rank alone fall, as on data it learns by heart", "GD402")),
    Rule("bad_batch", "rank", 1.0, said("kind", "sinks", "the data of one rank alone have become easier", "GD402")),
    Rule("silent_data_corruption", "rank", -2.6, said("kind", "sinks", "loss and gradient of that rank fall alike", "GD402")),
    Rule("replica_divergence", "rank", 2.2, found("GD401", least=Severity.WARNING)),
    Rule("hardware_fault", "telemetry", 5.5, found("GD403", "GD606", least=Severity.WARNING)),
    Rule("hardware_fault", "telemetry", 5.5, machines_own),
    Rule("memory_pressure", "telemetry", 3.5, said("kind", "oom", "the log says that memory ran out", "GD008")),
    Rule("link_fault", "telemetry", 4.0, failed_transfer),
    Rule("hardware_fault", "telemetry", 3.5, said("kind", "gpu_lost", "the log says that a GPU was lost", "GD008")),
    Rule("hardware_fault", "telemetry", -2.0, unflagged("hardware", "the driver's error code is one that programs cause", "GD404")),
    Rule("software_fault", "telemetry", 3.0, unflagged("hardware", "the driver's error code is one that programs cause", "GD404")),
    # Attempts that all end at one step share its batch and its code, not a moment of one machine.
    *(Rule(cause, "config", weight, flagged("same_step", "the attempts that ended did so at the same step", "GD003")) for cause, weight in (
        ("bad_batch", 3.0), ("software_fault", 0.3), ("hardware_fault", -1.5), ("memory_pressure", 0.3),
    )),
    *(Rule(cause, "config", weight, unflagged("same_step", "the attempts ended at different steps", "GD003")) for cause, weight in (
        ("bad_batch", -1.5), ("hardware_fault", 0.7),
    )),
    # Exits: the log's own last words.
    Rule("memory_pressure", "numerics", 3.0, said("kind", "oom", "the run ended out of memory", "GD008")),
    Rule("hardware_fault", "numerics", 2.6, said("kind", "gpu_lost", "the run ended with a lost GPU", "GD008")),
    Rule("hardware_fault", "telemetry", 4.5, device_error),
    Rule("time_limit", "config", 5.0, time_limit),
    Rule("storage_fault", "config", 5.0, flagged("storage", "the log says that a file could not be written, before anything else failed", "GD008")),
    Rule("software_fault", "numerics", 1.5, own_error),
    Rule("loss_scale_collapse", "numerics", 5.0, flagged("loss_scale_at_minimum", "the run stopped with its loss scale at the minimum", "GD008")),
    Rule("numeric_overflow", "numerics", 2.5, stopped_over_numbers),
    Rule("software_fault", "numerics", -2.5, flagged("numeric", "the run stopped over its numbers, not over an error", "GD008")),
    *(Rule(cause, "config", -3.0, flagged("by_hand", "somebody stopped the run", "GD008")) for cause in ("software_fault", "hardware_fault", "memory_pressure", "time_limit", "link_fault")),
    Rule("memory_pressure", "numerics", -2.5, flagged("numeric", "the run stopped over its numbers, not over its memory", "GD008")),
    # Validation: what harms the model moves it, a change of the training data or of the loader does not.
    Rule("data_order", "loss", 1.2, eval_flat),
    Rule("data_repeated", "loss", 1.0, eval_flat),
    Rule("config_change", "loss", 0.6, eval_flat),
    Rule("optimizer_instability", "loss", -1.2, eval_flat),
    Rule("lr_too_high", "loss", -1.2, eval_flat),
    Rule("optimizer_instability", "loss", 0.8, eval_moved),
    Rule("lr_too_high", "loss", 0.8, eval_moved),
    Rule("data_order", "loss", -0.8, eval_moved),
    # A model initialized rightly knows nothing and is sure of nothing: its first loss is that of a guess.
    Rule("bad_initialization", "loss", 3.0, at_least("first_over_guess", 3, "the first loss is {:.0f} times what guessing costs: the untrained model is sure of wrong answers", "GD107", "GD108")),
    # Other data or settings move the loss to another level, not far above it first.
    *(Rule(cause, "loss", weight, overshoots) for cause, weight in (
        ("optimizer_instability", 1.2), ("lr_too_high", 1.2), ("config_change", -2.0), ("data_order", -2.0), ("data_repeated", -2.0),
    )),
    Rule("overfitting", "loss", 2.2, found("GD110")),
    Rule("numeric_overflow", "loss", 3.0, lost_in_validation),
    Rule("overfitting", "loss", -2.2, found("GD111")),
    # What shows in validation alone is in its data or in the code that evaluates, not in the model.
    Rule("config_change", "loss", 2.6, found("GD119")),
    Rule("data_order", "loss", 0.8, found("GD119")),
    *(Rule(cause, "loss", -3.0, found("GD119")) for cause in ("overfitting", "data_repeated", "numeric_overflow")),
    # Time and hardware: the machine's own counters decide.
    Rule("thermal_throttling", "telemetry", 4.0, found("GD601", least=Severity.WARNING)),
    Rule("thermal_throttling", "telemetry", -2.5, only_hot),
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
    # Clocks that fell under load explain slow steps, whatever held them back: no data or network is needed.
    *(Rule(cause, "telemetry", -2.2, clocks_fell) for cause in ("dataloader_stall", "network_congestion", "memory_pressure")),
    Rule("unknown_step_time_drift", "telemetry", 0.4, clocks_fell),
    Rule("dataloader_stall", "telemetry", -2.0, said("share", "compute", "the added time is compute time", "GD501", "GD502", "GD504")),
    # A larger batch takes longer and is no slowdown: logged work decides, the noise of a larger batch is evidence.
    Rule("config_change", "config", 3.5, more_work),
    Rule("config_change", "config", -2.2, same_work),
    # Only decay takes from all norms at once; queries and keys that fade lose their gradient as a saturated softmax does.
    Rule("config_change", "layer", 4.0, decay_grew),
    *(Rule(cause, "config", -3.0, decay_grew) for cause in ("attention_logit_growth", "weight_decay_too_small", "lr_too_high", "output_logit_growth")),
    Rule("config_change", "loss", 2.2, said("batch", "grown", "loss and gradient noise fall as those of a larger batch do", "GD501", "GD502")),
    Rule("config_change", "loss", -1.5, said("batch", "unchanged", "the noise of loss and gradient is that of an unchanged batch", "GD501", "GD502")),
    # Benchmarks: the share of the limit names the path; a fall at large messages is congestion or flow control.
    Rule("transport_fallback", "telemetry", 2.6, path("PCIe", "TCP")),
    Rule("link_fault", "telemetry", 1.8, path("half", "one of four")),
    Rule("network_congestion", "telemetry", 1.5, found("GD703", "GD704", least=Severity.WARNING)),
    Rule("flow_control", "telemetry", 1.2, found("GD703", least=Severity.WARNING)),
    Rule("link_fault", "telemetry", 2.2, found("GD709", least=Severity.WARNING)),
    Rule("link_fault", "telemetry", 2.6, found("GD711", "GD712", least=Severity.WARNING)),
    Rule("hardware_fault", "telemetry", 4.0, found("GD713", least=Severity.WARNING)),
    Rule("link_fault", "telemetry", -2.0, said("kind", "dark", "no light at all is an unplugged fibre or an unused port", "GD712")),
    # Ports: errors are a damaged link, waits and drops a link without room. That counters were read before and after says
    # less than that they grow when steps are slow.
    Rule("link_fault", "ports", 2.2, ports("errors", window=False)),
    Rule("link_fault", "ports", 0.8, ports("errors", window=True)),
    Rule("hardware_fault", "telemetry", 5.0, firmware),
    Rule("network_congestion", "ports", 1.8, ports("congestion", window=False)),
    Rule("network_congestion", "ports", 0.7, ports("congestion", window=True)),
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
