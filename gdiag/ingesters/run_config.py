"""What configuration files call things → the names of Run.config."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from gdiag.model import Value

_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "total_steps": ("total_steps", "max_steps", "max_iters", "train_iters", "num_steps", "training_steps", "max_train_steps",
                    "num_iterations", "total_iters", "num_train_steps", "lr_decay_iters"),
    "warmup_steps": ("warmup_steps", "warmup_iters", "num_warmup_steps", "lr_warmup_iters", "warmup", "warmup_iterations",
                     "lr_warmup_steps"),
    "warmup_ratio": ("warmup_ratio", "warmup_fraction", "lr_warmup_fraction"),
    "lr": ("lr", "learning_rate", "max_lr", "peak_lr", "base_lr"),
    "min_lr": ("min_lr", "lr_min", "end_lr", "min_learning_rate"),
    "clip": ("clip", "grad_clip", "max_grad_norm", "clip_grad", "gradient_clip_val", "gradient_clipping", "clip_grad_norm",
             "gradient_clip", "max_norm"),
    "batch_size": ("batch_size", "global_batch_size", "total_batch_size", "effective_batch_size", "global_train_batch_size",
                   "train_batch_size"),
    "device_batch_size": ("per_device_train_batch_size", "per_device_batch_size", "per_gpu_train_batch_size", "micro_batch_size",
                          "train_micro_batch_size_per_gpu", "device_train_microbatch_size", "device_batch_size",
                          "local_batch_size", "batch_size_per_gpu", "micro_batch_size_per_gpu"),
    "grad_accumulation": ("gradient_accumulation_steps", "grad_accum_steps", "accumulate_grad_batches", "grad_accumulation_steps",
                          "gradient_accumulation"),
    "precision": ("precision", "dtype", "mixed_precision", "torch_dtype"),
    "beta1": ("beta1", "adam_beta1"),
    "beta2": ("beta2", "adam_beta2"),
    "eps": ("adam_epsilon", "adam_eps", "eps"),
    "weight_decay": ("weight_decay", "wd"),
    "vocab_size": ("vocab_size", "padded_vocab_size", "n_vocab"),
    "world_size": ("world_size", "num_gpus", "n_gpus", "ngpus", "num_processes", "num_devices"),
    "data_parallel_size": ("data_parallel_size", "dp_size", "dp_world_size"),
    "seq_len": ("seq_len", "seq_length", "block_size", "max_seq_length", "sequence_length", "max_seq_len"),
    "log_interval": ("log_interval", "logging_steps", "log_every", "log_every_n_steps"),
    "eval_interval": ("eval_interval", "eval_steps", "val_every", "eval_every", "val_check_interval"),
    "checkpoint_interval": ("save_interval", "save_steps", "checkpoint_interval", "save_every", "checkpoint_every"),
    "schedule": ("lr_scheduler_type", "lr_scheduler", "schedule", "lr_decay_style", "scheduler"),
    "optimizer": ("optim", "optimizer", "optimizer_name"),
    "seed": ("seed",),
}  # fmt: skip
_OF_A_PROCESS: Final = _NAMES["batch_size"].index("train_batch_size")
_FREEZING: Final = ("freeze", "frozen", "lora", "adapter", "trainable_layers", "requires_grad")
"""Settings that say which parameters are left out of training keep their own names."""
_PLACES: Final = {name: (canonical, i) for canonical, names in _NAMES.items() for i, name in enumerate(names)}


def canonical_config(given: Mapping[str, object]) -> dict[str, Value]:
    """Known settings out of a configuration of any nesting; fp16 and bf16 switches become `precision`."""
    best: dict[str, tuple[int, Value]] = {}
    for depth, path, value in _leaves(given, 0):
        name = re.sub(r"[\s\-]+", "_", path.lower())
        if name in ("betas", "adam_betas") and isinstance(value, list) and len(value) == 2:
            for key, beta in zip(("beta1", "beta2"), value, strict=True):
                if isinstance(beta, int | float):
                    best.setdefault(key, (depth, beta))
        if name in ("fp16", "bf16") and value is True:
            best.setdefault("precision", (depth, name))
        if any(word in name for word in _FREEZING) and (text := _listed(value)):
            best.setdefault(name, (depth, text))
        place = _PLACES.get(name)
        if (
            place is None
            or not isinstance(value, int | float | str)
            or value in ("", "None")
            or _unset(place[0], value)
        ):
            continue
        canonical, rank = place[0], 10 * depth + place[1]
        if canonical not in best or rank < best[canonical][0]:
            best[canonical] = (rank, value if not isinstance(value, str) else _number(value))
    if best.get("device_batch_size", (1,))[0] % 10 == 0 and best.get("batch_size", (0,))[0] % 10 == _OF_A_PROCESS:
        del best["batch_size"]  # Transformers writes down what one process takes beside what one of its devices does
    return {name: value for name, (_, value) in best.items()}


def _listed(value: object) -> Value | None:
    """A scalar as it is, a list of names as one text; None for what says nothing."""
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)[:80] or None
    return value if isinstance(value, bool | int | float) else str(value)[:80] if isinstance(value, str) else None


def _unset(name: str, value: float | str) -> bool:
    """Whether a trainer means "not set" by this value: -1 steps, 0 interval."""
    return (
        name.endswith(("_steps", "_interval"))
        and isinstance(value, int | float)
        and value <= 0
        and name != "warmup_steps"
    )


def _leaves(given: Mapping[str, object], depth: int) -> list[tuple[int, str, object]]:
    found: list[tuple[int, str, object]] = []
    for key, value in given.items():
        if isinstance(value, Mapping):
            if depth == 0 and set(value) >= {"value"}:
                found.append((0, str(key), value["value"]))
                if isinstance(value["value"], Mapping) and not str(key).startswith("_"):
                    found += _leaves(value["value"], 1)
            elif depth < 4 and not str(key).startswith("_"):
                found += _leaves(value, depth + 1)
        else:
            found.append((depth, str(key), value))
    return found


def _number(text: str) -> Value:
    try:
        return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
    except ValueError:
        return text[:80]
