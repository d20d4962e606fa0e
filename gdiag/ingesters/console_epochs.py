"""Epochs in consoles of unknown programs: steps that begin again with each, lines that say `epoch 3 | 83/332`, evaluation."""

from __future__ import annotations

from typing import Final

import polars as pl

_EPOCH: Final = r"(?i)epoch\W{0,3}(\d{1,9})"
_PLACE: Final = r"(?i)(?:epoch|train)\W{0,9}\d{1,9}(?:\s*/\s*\d+)?(?:\s*\(\s*\d+%\))?\W{1,12}(?:(?:step|iter|batch)\w*\W{0,3})?(\d{1,12})\s*/\s*(\d{1,12})(?:\D|$)"
_BROKEN: Final = 0.3
"""Share of numbers with a fraction from which they are no count."""
EVALUATION: Final = (
    r"(?i)(?:^|[^\w./-])(?:val|valid|validation|validating|eval|evaluation|test|testing|dev)(?:[^\w./-]|$)"
)


def fractions(wide: pl.DataFrame, label: str) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Rows of `epoch 0.016 - train loss 3.2` lines, which name no step: the number is the epoch, and rows are counted.

    Args:
        wide: rows with what stands behind the label as `step`.
        label: what that number is called.
    """
    if label.lower() not in ("epoch", "train", "training") or not len(wide) or "epoch" in wide.columns:
        return wide, ()
    broken = (wide["step"] != wide["step"].floor()).mean()
    if not isinstance(broken, float) or broken < _BROKEN:
        return wide, ()
    numbered = wide.rename({"step": "epoch"}).with_columns(pl.int_range(pl.len()).cast(pl.Float64).alias("step"))
    return numbered, ("epochs are printed as fractions and no step beside them: rows are numbered from 0",)


def placed(wide: pl.DataFrame, table: pl.DataFrame, label: str) -> pl.DataFrame:
    """Rows of `epoch 35 | 83/332 | …` lines, whose first number is the epoch, by their place in the run.

    Summaries of an epoch, which have no place, are left out; lines of evaluation stay at the step before them.

    Args:
        wide: rows with `line` and the epoch as `step`.
        table: `line` and `text` of the whole console.
        label: what the first number is called.
    """
    if label.lower() == "batch" and wide["step"].n_unique() < 0.5 * len(wide):
        return _batches(wide, table)
    if label.lower() not in ("epoch", "train") or not len(wide):
        return wide
    text = wide.select("line").join(table.unique("line", keep="first"), on="line", how="left", maintain_order="left")
    place = text["text"].str.extract_groups(_PLACE).struct.unnest().select(pl.all().cast(pl.Int64, strict=False))
    at, length = place["1"], place["2"]
    if at.count() < 3 or length.drop_nulls().n_unique() != 1 or (at > length).any():
        return wide
    epoch = wide["step"] - wide["step"].drop_nulls()[0]
    evaluation = text["text"].str.contains(EVALUATION)
    counted = wide.with_columns((epoch * length.drop_nulls()[0] + at).alias("step"))
    counted = counted.with_columns(pl.col("step").forward_fill()).filter(at.is_not_null() | evaluation)
    return counted.filter(pl.col("step").is_not_null())


def with_words_behind(wide: pl.DataFrame, table: pl.DataFrame, marker: str) -> pl.DataFrame:
    """`prefix` with the word of evaluation that stands between the step and the loss: `epoch 10 | valid … 5 / 9 loss=1.6`."""
    if not len(wide) or not any(name.lower() == "loss" for name in wide.columns):
        return wide
    text = wide.select("line").join(table.unique("line", keep="first"), on="line", how="left", maintain_order="left")
    between = text["text"].str.splitn(marker, 2).struct.field("field_1").str.extract(r"(?i)^(.*?)\bloss\b")
    word = between.str.extract(f"({EVALUATION})")
    if not word.count() or between.str.contains("(?i)train").any():
        return wide
    before = pl.col("prefix").fill_null("") if "prefix" in wide.columns else pl.lit("")
    return wide.with_columns((before + " " + word.fill_null("")).alias("prefix"))


def _batches(wide: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """Rows of `Batch 3/400 loss …` lines, which name the epoch and then the batch (WeNet), by their place in the run."""
    text = wide.select("line").join(table.unique("line", keep="first"), on="line", how="left", maintain_order="left")
    batch = text["text"].str.extract(r"(?i)batch\W{0,3}\d{1,9}/(\d{1,12})(?:\D|$)").cast(pl.Int64, strict=False)
    if batch.null_count() or batch.n_unique() < 0.5 * len(batch):
        return wide
    length = int(str(batch.max()))
    return wide.with_columns(((pl.col("step") - pl.col("step").first()) * length + batch).alias("step"))


def counted(wide: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Steps counted on over epochs, and the losses of evaluation lines as eval_loss.

    Args:
        wide: rows with `step` and, where something stands before it, `prefix`, which may name the epoch.
    """
    if "prefix" not in wide.columns or not len(wide):
        return wide, ()
    epoch = wide["prefix"].str.extract(_EPOCH).cast(pl.Int64, strict=False)
    wide, evaluation = _evaluation(wide)
    train = ~evaluation
    steps = wide["step"].filter(train)
    if epoch.null_count() or not len(steps):
        return wide, ()
    if steps.n_unique() == 1 and 1 < epoch.filter(train).n_unique() == len(steps):
        return wide.with_columns(epoch.alias("step")), ("the steps are a count per epoch: epochs are used as steps",)
    change, step = epoch.diff(), wide["step"]
    again = (change == 1) & (step < step.shift())
    if not again.any() or not (again == (change != 0)).slice(1).all():
        return wide, ()
    length = float(str(step.max())) + (step.min() == 0)  # counted from 0, an epoch has one more than its last
    counted = (epoch - epoch[0]) * length + step
    return wide.with_columns(counted.alias("step")), (
        f"steps begin again every epoch: counted on, {length:.0f} an epoch",
    )


def _evaluation(wide: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """The loss of lines that speak of evaluation before their step as `eval loss`, at the step of the line before."""
    seen = wide["prefix"].str.contains(EVALUATION).fill_null(False)
    losses = [name for name in wide.columns if name.lower() == "loss"]
    if not losses or not seen.any() or seen.all():
        return wide, pl.Series([False] * len(wide))
    loss = losses[0]
    step = pl.when(seen).then(None).otherwise(pl.col("step")).forward_fill().backward_fill()
    return wide.with_columns(
        step.alias("step"),
        pl.when(seen).then(pl.col(loss)).alias("eval loss"),
        pl.when(~seen).then(pl.col(loss)).alias(loss),
    ), seen
