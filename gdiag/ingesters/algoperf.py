"""AlgoPerf measurements: pandas wrote NaN as an empty cell there, so empty does not mean not logged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

_MARKS: Final = {"global_step", "preemption_count", "total_duration"}
_NAN: Final = float("nan")


def fits(names: Sequence[str]) -> bool:
    """Whether these are the columns of an AlgoPerf measurements file."""
    return set(names) >= _MARKS


def restore_nan(frame: pl.DataFrame) -> pl.DataFrame:
    """NaN where a row of its kind must hold a value: loss on training rows, eval losses on evaluation rows."""
    evaluation = pl.col("total_duration").is_not_null()
    training = ~evaluation & pl.col("preemption_count").is_null()
    train = [name for name in ("loss", "grad_norm") if name in frame.columns and frame[name].count()]
    evaluated = [name for name in frame.columns if name.endswith("loss") and "/" in name]
    kept = frame.schema
    return frame.with_columns(
        *(pl.when(pl.col(n).is_null() & training).then(_missing(kept[n])).otherwise(pl.col(n)).alias(n) for n in train),
        *(pl.when(pl.col(n).is_null() & evaluation).then(_missing(kept[n])).otherwise(pl.col(n)).alias(n) for n in evaluated),
    )  # fmt: skip


def _missing(kind: pl.DataType) -> pl.Expr:
    return pl.lit("NaN") if kind == pl.String else pl.lit(_NAN)
