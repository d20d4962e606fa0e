"""MLPerf result files: `:::MLLOG {json}` events, with or without rank prefixes, among other lines.

The x axis is what the benchmark counts (`step`, `samples_count` or `epoch_num`, often samples or tokens, not optimizer
steps): it is kept as it is and a note says so. Block summaries that repeat `train_step_time` beside `throughput` are left
out. `eval_accuracy` of the GPT-3 and Llama benchmarks is a log perplexity (training rules), elsewhere an accuracy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import polars as pl

from gdiag.ingesters import console, json_events
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.model import Exit, Value

FORMAT: Final = "mllog"
_MARK: Final = ":::MLLOG"
_SNIFF: Final = re.compile(rb":::MLLOG\s*\{")
_LOSSES: Final = ("gpt3", "llama", "mixtral", "deepseek")
_CONFIG: Final = {
    "submission_benchmark": "benchmark", "global_batch_size": "batch_size", "opt_base_learning_rate": "lr", "max_steps": "total_steps",
    "opt_learning_rate_warmup_steps": "warmup_steps", "seed": "seed", "opt_gradient_clip_norm": "clip", "opt_adamw_beta_2": "beta2",
    "opt_adam_beta_2": "beta2", "max_sequence_length": "seq_len", "gradient_accumulation_steps": "grad_accumulation",
}  # fmt: skip
_RENAME: Final = {
    "train_step_time": "step_time", "train_step_timing in s": "step_time", "reduced_train_loss": "loss", "train_loss": "loss",
    "current_lr": "lr", "loss_scale": "loss_scale", "max_memory_usage": "memory in GB",
}  # fmt: skip


def recognise(given: Input) -> float:
    """By its marks."""
    return 1.0 if console.matches(given, _SNIFF, (b":::MLLOG",)) else 0.0


def read(given: Input, options: Options) -> Reading:
    """All series of the result file."""
    table = console.lines_of(given)
    marked = table.filter(pl.col("text").str.contains(_MARK, literal=True))
    bad: list[dict[str, object]] = []
    config: dict[str, Value] = {}
    rows: list[dict[str, float | int | str]] = []
    status, stopped = "", 0
    for line, event in json_events.events(marked, _MARK, "an MLLOG event that is no JSON", bad):
        key, value, about = str(event.get("key")), event.get("value"), event.get("metadata")
        about = about if isinstance(about, dict) else {}
        if key in _CONFIG and isinstance(value, int | float | str) and not isinstance(value, bool):
            config.setdefault(_CONFIG[key], value)
        if key == "run_stop":
            status, stopped = str(about.get("status", "")), line
        x, unit = _position(about)
        numbers = _numbers(key, value)
        if x is None or not numbers:
            continue
        moment = event.get("time_ms")
        rows.append(
            {
                "line": line,
                "step": x,
                "unit": unit,
                **({"time": moment / 1000} if isinstance(moment, int | float) else {}),
                **numbers,
            }
        )
    wide, notes, counted = _frame(rows, config)
    rejects = pl.DataFrame(bad, schema=console.no_rejects().schema)
    found = Found(table.filter(~pl.col("line").is_in(marked["line"].to_list())), wide, rejects, notes, config | counted)
    reading = console.finish(given, options, FORMAT, found, rename=_RENAME)
    ended: Exit = "clean" if status == "success" else "abnormal" if status else reading.exit
    if not status or ended == "clean":
        return replace(reading, exit=ended)
    said = pl.DataFrame({"line": [stopped], "kind": ["exit"], "text": [f"run_stop: {status}"]})
    events = said if reading.events is None else pl.concat([reading.events, said], how="diagonal_relaxed")
    return replace(reading, exit=ended, events=events)


def _position(about: dict[str, object]) -> tuple[int | None, str]:
    for name in ("step", "samples_count", "epoch_num", "step_num"):
        value = about.get(name)
        if isinstance(value, list) and value:
            value = value[-1]
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**62:
            return int(value), name
    return None, ""


def _numbers(key: str, value: object) -> dict[str, float]:
    """The metrics of an event: of a `tracked_stats` dict, or its own value."""
    if key == "tracked_stats" and isinstance(value, dict):
        if "throughput" in value and "train_step_time" in value:
            return {}
        return {
            str(k): float(v)
            for k, v in value.items()
            if isinstance(v, int | float)
            and not isinstance(v, bool)
            and not str(k).startswith(("validation_", "warmup", "init"))
        }
    if key in ("train_loss", "eval_accuracy", "eval_loss", "eval_error", "grad_norm", "train_step_time") and (
        isinstance(value, int | float) and not isinstance(value, bool)
    ):
        return {key: float(value)}
    return {}


def _with_samples(wide: pl.DataFrame, gap: float, batch: Value | None) -> pl.DataFrame:
    """`samples` where the axis counts them: by its name, or because its rows lie whole global batches apart."""
    counted = pl.col("unit") == "samples_count"
    if isinstance(batch, int | float) and batch > 1 and gap >= batch and gap % batch == 0:
        counted = pl.lit(True)
    samples = wide.select(pl.when(counted).then(pl.col("step")).cast(pl.Float64).alias("samples"))["samples"]
    return wide.with_columns(samples) if samples.count() and "samples" not in wide.columns else wide


def _frame(
    rows: list[dict[str, float | int | str]], config: Mapping[str, Value]
) -> tuple[pl.DataFrame, tuple[str, ...], dict[str, Value]]:
    """The rows side by side, what has to be said of them, and the unit of their steps as a setting where it is another."""
    if not rows:
        return pl.DataFrame(schema={"line": pl.Int64, "step": pl.Int64}), (), {}
    names = dict.fromkeys(name for row in rows for name in row)
    types = {n: pl.Int64 if n in ("line", "step") else pl.String if n == "unit" else pl.Float64 for n in names}
    wide = pl.DataFrame(rows, schema=types)
    notes: list[str] = []
    unit: dict[str, Value] = {}
    counts = wide["unit"].value_counts(sort=True)
    units = counts["unit"].to_list()
    main = wide.filter(pl.col("unit") == units[0])["step"]
    alien = (pl.col("unit") != units[0]) & ~pl.col("step").is_between(0.99 * main.min(), 1.01 * main.max())  # type: ignore[operator]
    strangers = wide.filter(alien)
    if len(strangers):
        notes.append(
            f"{len(strangers)} rows counted in {' and '.join(map(str, strangers['unit'].unique().to_list()))} are left out"
        )
        wide = wide.filter(~alien)
        units = wide["unit"].unique(maintain_order=True).to_list()
    middle = wide["step"].unique().sort().diff().drop_nulls().median()
    gap = float(middle) if isinstance(middle, int | float) else 0.0
    if "step" not in units or gap > 20:
        unit["step_unit"] = "epochs" if units == ["epoch_num"] else "samples or tokens"
        notes.append(
            f"steps are the file's {' and '.join(units)} (samples or tokens, {gap:.0f} apart), not optimizer steps"
        )
    wide = _with_samples(wide, gap, config.get("batch_size"))
    if "eval_accuracy" in names:
        if any(word in str(config.get("benchmark")) for word in _LOSSES):
            wide = wide.rename({"eval_accuracy": "eval_loss"})
        else:
            notes.append("eval_accuracy is an accuracy here and no loss")
    return wide.drop("unit", "throughput", strict=False), tuple(notes), unit
