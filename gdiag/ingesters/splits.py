"""Rows that say by a column what they are: training, evaluation, a checkpoint."""

from __future__ import annotations

from typing import Final

import polars as pl

from gdiag.ingesters import values
from gdiag.ingesters.aliases import simplify
from gdiag.ingesters.values import escape

_NAMES: Final = (
    "split",
    "mode",
    "phase",
    "stage",
    "type",
    "kind",
    "event",
    "set",
    "subset",
    "prefix",
    "partition",
    "tag",
    "name",
)
_MESSAGES: Final = ("msg", "message", "status", "action", "exception", "error", "traceback")
_EVAL: Final = r"^(?:.*[_/ -])?(?:val|valid|validation|eval|evaluation|evaluate|test|dev|holdout)(?:[_/ -].*)?$"
_TRAIN: Final = r"^(?:.*[_/ -])?(?:train|training|step|log|iter|iteration)(?:[_/ -].*)?$"
_SAVED: Final = r"checkpoint|ckpt|\bsaved?\b"


def find(frame: pl.DataFrame) -> str | None:
    """The column that tells training rows from evaluation rows, None when none does."""
    for name, kind in frame.schema.items():
        if kind == pl.String and simplify(name) in _NAMES:
            words = frame[name].drop_nulls().unique().str.to_lowercase()
            if words.len() <= 30 and words.str.contains(_EVAL).any() and words.str.contains(_TRAIN).any():
                return name
    return None


def speaks(name: str) -> bool:
    """Whether a column of this name may say what its rows are."""
    return simplify(name) in _NAMES or simplify(name) in _MESSAGES


def spoken(frame: pl.DataFrame, line: str) -> pl.DataFrame:
    """`line`, `text` of what rows say in words, by line: of a text of several lines the last one, which names the error."""
    names = [n for n, kind in frame.schema.items() if kind == pl.String and simplify(n) in (*_MESSAGES, "event")]
    words = [frame.select(pl.col(line).alias("line"), pl.col(n).alias("text")).drop_nulls() for n in names]
    table = pl.concat(words) if words else pl.DataFrame(schema={"line": pl.Int64, "text": pl.String})
    last = pl.col("text").str.strip_chars().str.split("\n").list.last()
    return table.with_columns(last).filter(pl.col("text") != "").sort("line", maintain_order=True)


def separate(data: pl.DataFrame, column: pl.Series) -> pl.DataFrame:
    """Losses of evaluation rows become `eval_loss`; what else these rows measured is not the training's."""
    evaluation = column.str.to_lowercase().str.contains(_EVAL).fill_null(False)
    loss = data["loss"] if "loss" in data.columns else pl.Series("loss", [None] * data.height, dtype=pl.Float64)
    moved = (
        pl.DataFrame({"moved": loss, "evaluation": evaluation}).select(pl.when("evaluation").then("moved")).to_series()
    )
    if "eval_loss" in data.columns:
        moved = moved.fill_null(data["eval_loss"])
    own = [name for name in ("loss", "grad_norm", "step_time", "tokens_per_s", "lr") if name in data.columns]
    data = data.with_columns(evaluation.alias("_evaluation"), moved.alias("eval_loss"))
    data = _at_training_steps(data)
    return data.with_columns(pl.when(~pl.col("_evaluation")).then(pl.col(own))).drop("_evaluation")


def _at_training_steps(data: pl.DataFrame) -> pl.DataFrame:
    """Evaluation rows without their step where training's begins again with every epoch: theirs counts their own loader."""
    if not {"step", "epoch"} <= set(data.columns):
        return data
    training = data.filter(~pl.col("_evaluation"))
    again = (training["step"].diff() < 0) & (training["epoch"].diff() > 0)
    return data.with_columns(pl.when(~pl.col("_evaluation")).then("step").alias("step")) if again.any() else data


def without_others(data: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame without what rows of something else (an evaluation's scores) say of their times.

    Such rows have none of training's metrics and a step time all the same, where the rows of training have one too. What they
    lack then is everything but a step, and where that is behind training's, it is another counter's (MMEngine: epochs). Rows
    that hold no metric beside and whose step goes on from training's are training's own, between those that log a loss.

    Args:
        data: the rows in canonical names.
        frame: the same rows as logged: scores that have no canonical name tell an evaluation too.
    """
    own = [name for name in sorted(OF_TRAINING) if name in data.columns]
    if not {"loss", "step_time", "step"} <= set(data.columns) or any(not data[name].null_count() for name in own):
        return data
    training = pl.any_horizontal(pl.col(own).is_not_null())
    times = [name for name in ("step_time", "data_time", "compute_time", "comm_time") if name in data.columns]
    rest = [name for name in data.columns if name not in (*_PLACE, *times)]
    said = pl.any_horizontal(False, pl.col(rest).is_not_null())
    logged = frame.filter(data.select(training).to_series())
    scores = [
        n for n in frame.columns if n not in data.columns and not logged[n].count() and values.are_numbers(frame[n])
    ]
    scored = frame.select(pl.any_horizontal(False, pl.col(scores).is_not_null())).to_series()
    if SCORED in frame.columns:
        scored |= frame[SCORED].fill_null(False)
    reached = pl.max_horizontal(pl.when(training).then("step").forward_fill(), "step").shift()
    onward = (pl.col("step") > reached).fill_null(True)
    others = data.select((~training & pl.col("step_time").is_not_null() & (said | scored | ~onward)).alias("other"))[
        "other"
    ]
    beside = data.select((pl.col("loss").is_not_null() & pl.col("step_time").is_not_null()).sum()).item()
    if not others.any() or beside < _USUAL * data["loss"].count():
        return data
    data = data.with_columns(pl.when(~others).then(pl.col(times)))
    reached = pl.when(~others).then("step").forward_fill()
    return data.filter(~others | said | (pl.col("step") >= reached).fill_null(True))


OF_TRAINING: Final = frozenset({"loss", "grad_norm", "lr"})
"""Metrics of training rows."""
SCORED: Final = "\0scored"
"""A column of a frame that says which rows hold scores that it lacks, of columns that no training row fills."""
_USUAL: Final = 0.9
"""Share of the rows with a loss that have a step time where it is logged beside the loss."""
_PLACE: Final = ("line", "step", "epoch", "time", "elapsed", "rank", "run", "memory")


def mark_checkpoints(frame: pl.DataFrame, data: pl.DataFrame) -> pl.DataFrame:
    """Adds `_saved`: what a row says about a checkpoint written, where a few rows say so."""
    for name, kind in frame.schema.items():
        if kind == pl.String and speaks(name):
            saved = frame[name].str.to_lowercase().str.contains(_SAVED).fill_null(False)
            share = saved.mean()
            if isinstance(share, float) and 0 < share < 0.5:
                return data.with_columns(pl.select(pl.when(saved).then(frame[name])).to_series().alias("_saved"))
    return data


def take_checkpoints(data: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """The frame without `_saved`, and its rows as events."""
    if "_saved" not in data.columns:
        return data, None
    rows = data.filter(pl.col("_saved").is_not_null())
    time = pl.col("time") if "time" in data.columns else pl.lit(None, pl.Float64).alias("time")
    events = rows.select("step", "line", time, pl.lit("checkpoint").alias("kind"), pl.col("_saved").alias("text"))
    return data.drop("_saved"), events.with_columns(
        pl.Series("text", [escape(text, 200) for text in events["text"].to_list()], dtype=pl.String)
    )
