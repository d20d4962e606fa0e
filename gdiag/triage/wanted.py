"""What would decide for or against a cause where it is not logged."""

from __future__ import annotations

from typing import Final

Columns = tuple[str, ...]


_PORTS: Final[tuple[Columns, str]] = (
    ("ports.value", "nvlinks.line", "modules.value"),
    "port counters of the hosts at several moments, each with host and date",
)


_WORK: Final[Columns] = (
    "steps.batch_size", "steps.tokens", "steps.samples", "steps.tokens_per_s", "steps.samples_per_s",
)  # fmt: skip
"""What a step has to do, or may be taken from."""


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
    "resume_mismatch": (
        (("steps.sample_start", "steps.samples"), "sample ids per step: other data look like other weights"),
        (("events.step",), "restart and checkpoint lines of the console, with the step saved inside the checkpoint that was loaded"),
    ),
    "data_repeated": ((("steps.sample_start", "steps.samples"), "sample ids per step: samples seen again are proof"),),
    "data_order": (
        (("steps.eval_loss",), "the validation loss: it moves when the model was harmed and stays flat when the data changed"),
        (("steps.sample_start", "steps.samples"), "sample ids per step"),
    ),
    "config_change": (
        (_WORK, "batch size or tokens per step"),
        (("steps.grad_norm",), "the gradient norm: as rough as before where data or settings changed, rougher where the updates did"),
    ),
    "vanishing_gradient": ((("layers.grad_norm",), "per-layer gradient norms"),),
    "overfitting": ((("steps.eval_loss",), "the validation loss"),),
    "thermal_throttling": ((("gpus.reasons", "gpus.clock_sm"), "GPU clocks and event reasons"),),
    "network_congestion": ((("steps.comm_time", "operations.seconds"), "communication time per step"), _PORTS),
    "link_fault": (_PORTS,),
    "dataloader_stall": ((("steps.data_time",), "data-loading time per step"),),
    "straggler": ((("steps.rank",), "step or compute time per rank"),),
    "unknown_step_time_drift": (
        (_WORK, "batch size or tokens per step: more work takes longer"),
        (("gpus.clock_sm",), "GPU clocks and event reasons beside the step log"),
        (("steps.comm_time",), "communication time per step"),
        (("steps.data_time",), "data-loading time per step"),
    ),
}  # fmt: skip
"""Cause → the columns (any of them would do) and the words for what would decide."""
