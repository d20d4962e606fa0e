"""DeepSpeed consoles: step and throughput lines, overflow messages.

`[Rank 0] step=10, skipped=6, lr=[9.6e-06, 9.6e-06], mom=[…]` and `epoch=0/micro_step=10/global_step=10, …,
CurrSamplesPerSec=171.9, …` (runtime/engine.py, utils/timer.py). They bear no loss; of a pipeline's engine, lines such as
`steps: 10 loss: 2.5312 iter time (s): 1.234 samples/sec: 51.2` (runtime/pipe/engine.py) do. `skipped` counts from the start and is
given here per line. Two engines (RLHF actor and critic) print the same steps one after the other: two runs.
"""

from __future__ import annotations

import math
import re
from typing import Final

import polars as pl

from gdiag.ingesters import console, fields
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.text import NUMBER

FORMAT: Final = "deepspeed"
_SNIFF: Final = re.compile(rb"\] step=\d+, skipped=\d+, lr=\[|/global_step=\d+, RunningAvgSamplesPerSec=")
_PERPLEXITY: Final = r"(?:^|[\s\]|>:])ppl: [\d.e+]+\s*$"
_SCALE: Final = r"Attempted loss scale: ([\d.e+]+)(?:, reducing to ([\d.e+]+))?"


def recognise(given: Input) -> float:
    """By its step and throughput lines; less sure than formats that also bear a loss."""
    return min(console.recognise_by(given, _SNIFF, (b", skipped=", b"RunningAvgSamplesPerSec=")), 0.8)


def read(given: Input, options: Options) -> Reading:
    """Learning rate, skipped steps, loss scale, step time and validation loss."""
    table = console.lines_of(given)
    got = fields.read(console.lines_with(table, "] step=", ("skipped=", "lr=[")), ", ", marker="] step=")
    wide = console.with_prefix(got.wide.drop("mom", strict=False), options)
    speed = fields.read(console.lines_with(table, "global_step=", ("CurrSamplesPerSec=",)), ", ", marker="global_step=")
    speeds = console.with_prefix(speed.wide, options)
    notes: list[str] = []
    if len(wide):
        wide = _per_engine(wide)
    if "skipped" in wide.columns:
        wide = wide.with_columns(_new_skips(wide))
    speeds = _step_time(speeds, notes)
    if len(wide) and "time" in speeds.columns:
        speeds = speeds.drop("time")  # milliseconds after that of the step line: one row, not two
    piped = fields.read(console.lines_with(table, "steps: ", (" loss: ", " iter time (s): ")), marker="steps: ")
    losses = console.with_prefix(piped.wide, options)
    if len(wide) and "run" in wide.columns:
        losses = losses.clear()  # which engine's they are is not said
    wide, speeds = _beside(wide, speeds)
    rows = [frame for frame in (wide, speeds, losses, _perplexities(table, wide)) if len(frame)]
    if rows:
        wide = pl.concat(rows, how="diagonal_relaxed").sort("line", maintain_order=True)
        wide = _loss_scale(wide, table)
    left = pl.concat([got.left, speed.left]).sort("line")
    left = left.filter(pl.col("text").str.contains(console.DAMAGED))
    if not len(losses):
        notes.append("the step lines bear no training loss")
    found = Found(table, wide, console.damaged(left, "step="), tuple(notes))
    return console.finish(given, options, FORMAT, found)


def _beside(wide: pl.DataFrame, speeds: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Step lines with what the throughput line of their step and rank says, where each comes once; and the other throughput lines."""
    keys = ["step", *(["rank"] if "rank" in wide.columns and "rank" in speeds.columns else [])]
    more = [name for name in speeds.columns if name not in wide.columns]
    once = all(not frame.select(pl.struct(keys).is_duplicated().any()).item() for frame in (wide, speeds) if len(frame))
    if not len(wide) or not len(speeds) or not more or not once:
        return wide, speeds
    alone = speeds.join(wide.select(keys), on=keys, how="anti", nulls_equal=True, maintain_order="left")
    told = speeds.select(*keys, *more)
    return wide.join(told, on=keys, how="left", nulls_equal=True, maintain_order="left"), alone


def _per_engine(wide: pl.DataFrame) -> pl.DataFrame:
    """`run` when nearly every step is printed twice or more in a row: engines that train side by side."""
    count = wide.group_by("step").len()["len"]
    often = int(str(count.median() or 1).split(".")[0])
    beside = wide.select((pl.col("step") == pl.col("step").shift()).mean()).item() or 0.0
    if often < 2 or beside < 0.4:
        return wide
    return wide.with_columns(
        ("engine " + (pl.int_range(pl.len()).over("step") % often + 1).cast(pl.String)).alias("run")
    )


def _new_skips(wide: pl.DataFrame) -> pl.Expr:
    """Steps skipped since the engine's line before; the first line counts from the start if it lies one interval in."""
    skipped, step = pl.col("skipped"), pl.col("step")
    if "run" in wide.columns:
        before, previous = skipped.shift().over("run"), step.shift().over("run")
    else:
        before, previous = skipped.shift(), step.shift()
    interval = wide["step"].diff().filter(wide["step"].diff() > 0).median()
    near_start = step <= (interval if isinstance(interval, int | float) else 0)
    again = step <= previous
    return (
        pl.when(before.is_null() | again)
        .then(pl.when(near_start).then(skipped))
        .when(skipped >= before)
        .then(skipped - before)
        .otherwise(skipped)
        .alias("skipped")
    )


def _step_time(speeds: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """`step_time` from samples per second, the batch size being told by the clock; rows of `line`, `step`."""
    if not len(speeds) or "CurrSamplesPerSec" not in speeds.columns:
        return speeds.select("line", "step") if len(speeds) else speeds
    memory = [name for name in ("MaxMemAllocated", "time", "rank") if name in speeds.columns]
    if "time" not in speeds.columns:
        return speeds.select("line", "step", "CurrSamplesPerSec", *memory)
    guesses = speeds.select(
        (pl.col("time").diff() / pl.col("step").diff() * pl.col("CurrSamplesPerSec")).alias("b")
    )["b"]  # fmt: skip
    batch = guesses.filter(guesses.is_finite() & (guesses > 0)).median()
    if not isinstance(batch, float) or batch < 0.5:
        return speeds.select("line", "step", *memory)
    batch = float(round(batch))
    notes.append(f"step_time is {batch:.0f} samples / CurrSamplesPerSec (batch size from the clock)")
    seconds = pl.when(pl.col("CurrSamplesPerSec") > 0).then(batch / pl.col("CurrSamplesPerSec"))
    return speeds.select("line", "step", *memory, seconds.alias("step_time"), pl.lit(batch).alias("batch_size"))


def _perplexities(table: pl.DataFrame, wide: pl.DataFrame) -> pl.DataFrame:
    """`ppl: 1.9` lines of DeepSpeed-Chat as eval_loss at the last step before them."""
    lines = table.filter(pl.col("text").str.contains(_PERPLEXITY))
    rows: list[dict[str, float]] = []
    for line, text in lines.iter_rows():
        number = re.search(rf"ppl: ({NUMBER})\s*$", text)
        value = float(number[1].replace(",", "")) if number else 0.0
        before = wide.filter(pl.col("line") < line)["step"].last() if len(wide) else None
        if value > 0:
            rows.append(
                {"line": line, "step": int(before) if isinstance(before, int) else 0, "eval_loss": math.log(value)}
            )
    return pl.DataFrame(rows, schema={"line": pl.Int64, "step": pl.Int64, "eval_loss": pl.Float64})


def _loss_scale(wide: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """The scale that the last overflow message before each row left, on the first row behind it."""
    lines = table.filter(pl.col("text").str.contains("Attempted loss scale", literal=True))
    if not len(lines):
        return wide
    groups = pl.col("text").str.extract_groups(_SCALE)
    scales = lines.select(
        "line", pl.coalesce(groups.struct.field("2"), groups.struct.field("1")).cast(pl.Float64, strict=False).alias("loss_scale")
    ).drop_nulls()  # fmt: skip
    rows = wide.filter(pl.col("step").is_not_null() & pl.col("lr").is_not_null()) if "lr" in wide.columns else wide
    near = scales.join_asof(
        rows.select("line", pl.col("line").alias("row")), on="line", strategy="forward"
    ).drop_nulls()
    last = near.group_by("row").agg(pl.col("loss_scale").last()).rename({"row": "line"})
    return wide.join(last, on="line", how="left", maintain_order="left")
