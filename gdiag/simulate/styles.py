"""Naming styles: the same rows as different frameworks write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gdiag.errors import UsageError
from gdiag.simulate import consoles, tables
from gdiag.simulate.forces import Group
from gdiag.simulate.rows import Row
from gdiag.simulate.trajectory import Trajectory

Text = Callable[[Trajectory, list[Row]], str]

_PLAIN: Final = {
    name: name
    for name in (
        "step", "rank", "time", "loss", "grad_norm", "lr", "step_time", "tokens", "samples", "param_norm", "update_norm",
        "param_checksum", "sample_start", "sample_end", "token_entropy", "loss_scale", "skipped", "eval_loss", "data_time",
        "memory", "duplicate_share",
    )
} | {"compute_time": "forward_backward_time", "comm_time": "allreduce_time", "output_logit": "output_max_logit"}  # fmt: skip
_DATA: Final = {
    "sample_start": "sample_start",
    "sample_end": "sample_end",
    "token_entropy": "token_entropy",
    "duplicate_share": "data/duplicate_token_rate",
    "param_checksum": "param_checksum",
}
ALL: Final[frozenset[Group]] = frozenset({
    "grad", "lr", "time", "parts", "layers", "params", "updates", "ranks", "checksum", "ids", "entropy", "eval", "scale",
    "attention", "output", "tokens", "memory", "duplicates",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Style:
    """How one framework names and writes its rows."""

    name: str
    file: str
    text: Text
    carries: frozenset[Group] = ALL
    """Groups of columns that this style can log."""
    averaged: bool = False
    """Logs the mean loss since the last log."""


def _jsonl(names: dict[str, str], layers: dict[str, str], nan: tables.NanText = "bare", **extra: tables.Extra) -> Text:
    return lambda run, found: tables.jsonl(run, found, names, layers, nan, extra)


def _layer_names(grad: str, param: str, update: str, attention: str = "attn_max_logit/{}") -> dict[str, str]:
    return {"grad": grad, "param": param, "update": update, "attention": attention}


_WANDB = {
    "step": "train/global_step", "time": "_timestamp", "loss": "train/loss", "grad_norm": "train/grad_norm", "lr": "train/lr",
    "step_time": "perf/step_time", "tokens": "train/tokens", "eval_loss": "eval/loss", "loss_scale": "train/loss_scale",
    "param_norm": "param_norm", "update_norm": "update_norm", "rank": "rank", "output_logit": "output_max_logit",
    "data_time": "perf/data_time", "compute_time": "perf/compute_time", "comm_time": "perf/comm_time", **_DATA,
}  # fmt: skip
_OLMO = {
    "step": "step", "loss": "train/CrossEntropyLoss", "grad_norm": "optim/total_grad_norm", "lr": "optim/learning_rate_group0",
    "tokens": "throughput/total_tokens", "eval_loss": "eval/validation/CrossEntropyLoss", "rank": "rank",
    "param_norm": "optim/param_norm", "update_norm": "optim/pre_clip_update_norm", **_DATA,
}  # fmt: skip
_COMPOSER = {
    "step": "time/batch", "loss": "loss/train/total", "grad_norm": "l2_norm/grad/global", "lr": "lr-DecoupledAdamW/group0",
    "tokens": "time/token", "samples": "time/sample", "eval_loss": "eval_loss", "rank": "rank", "time": "timestamp",
    "step_time": "step_time", "param_norm": "param_norm", "update_norm": "update_norm", **_DATA,
}  # fmt: skip
_LEVANTER = {
    "step": "_step", "time": "_timestamp", "loss": "train/loss", "grad_norm": "grad/norm/total", "lr": "optim/learning_rate",
    "param_norm": "params/norm/total", "update_norm": "updates/norm/total", "step_time": "throughput/duration",
    "data_time": "throughput/loading_time", "tokens": "throughput/total_tokens", "eval_loss": "eval/loss", "rank": "rank", **_DATA,
}  # fmt: skip
_HF = {
    "loss": "loss", "grad_norm": "grad_norm", "lr": "learning_rate", "eval_loss": "eval_loss", "step": "step", "rank": "rank",
    "tokens": "num_input_tokens_seen", "param_norm": "param_norm", "update_norm": "update_norm", **_DATA,
}  # fmt: skip
_NEOX = {
    "step": "iteration", "loss": "train/lm_loss", "lr": "train/learning_rate", "grad_norm": "train/grad_norm",
    "loss_scale": "train/loss_scale", "step_time": "runtime/iteration_time", "eval_loss": "validation/lm_loss", "rank": "rank",
    "time": "timestamp", **_DATA,
}  # fmt: skip

_WANDB_TEXT: Final = _jsonl(
    _WANDB, _layer_names("grad_norm/{}", "param_norm/{}", "update_norm/{}"), "text", _step=tables.counter, _runtime=tables.runtime,
)  # fmt: skip

STYLES: Final[tuple[Style, ...]] = (
    Style("plain", "run.jsonl", _jsonl(_PLAIN, _layer_names("grad_norm/{}", "param_norm/{}", "update_norm/{}"))),
    Style("csv", "metrics.csv", lambda _run, found: tables.csv(found, _PLAIN, _layer_names("grad_norm/{}", "param_norm/{}", "update_norm/{}"))),
    Style("hf", "log.jsonl", _jsonl(_HF, _layer_names("grad_norm/{}", "param_norm/{}", "update_norm/{}"), epoch=tables.epoch),
          ALL - {"time", "parts", "scale", "output", "memory", "attention"}, averaged=True),
    Style("hf-state", "trainer_state.json", lambda run, found: tables.trainer_state(run, found, _HF),
          frozenset({"grad", "lr", "eval", "tokens"}), averaged=True),
    Style("wandb", "wandb-history.jsonl", lambda run, found: _WANDB_TEXT(run, tables.wide_ranks(found)), ALL - {"memory"}),
    Style("olmo", "metrics.jsonl",
          _jsonl(_OLMO, _layer_names("grad/{}.norm", "param/{}.norm", "step/{}.norm"), "text", **{"throughput/device/batches_per_second": tables.rate}),
          ALL - {"parts", "scale", "output", "memory"}),
    Style("lightning", "metrics.csv", tables.lightning, frozenset({"grad", "lr", "layers", "eval", "time"})),
    Style("composer", "metrics.jsonl", _jsonl(_COMPOSER, _layer_names("l2_norm/grad/{}", "l2_norm/param/{}", "l2_norm/update/{}"), "text"),
          ALL - {"parts", "scale", "output", "memory"}),
    Style("levanter", "metrics.jsonl", _jsonl(_LEVANTER, _layer_names("grad/norm/{}", "params/norm/{}", "updates/norm/{}"), "text"),
          ALL - {"parts", "scale", "output", "memory"}),
    Style("neox", "metrics.jsonl", _jsonl(_NEOX, _layer_names("gradient_norms/{}", "param_norms/{}", "update_norms/{}")),
          ALL - {"parts", "output", "memory", "params", "updates", "tokens"}),
    Style("megatron", "train.log", consoles.megatron, frozenset({"grad", "lr", "time", "scale", "eval", "tokens"}), averaged=True),
    Style("torchtitan", "train.log", consoles.torchtitan, frozenset({"grad", "time"})),
    Style("nanogpt", "train.log", consoles.nanogpt, frozenset({"time", "eval"})),
)  # fmt: skip


def style(name: str) -> Style:
    """The style of that name.

    Raises:
        UsageError: there is none.
    """
    found = next((known for known in STYLES if known.name == name), None)
    if found is None:
        raise UsageError(f"no style {name!r}; known: {', '.join(known.name for known in STYLES)}")
    return found
