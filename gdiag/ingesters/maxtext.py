"""MaxText consoles: `completed step: 12, seconds: 10.2, TFLOP/s/device: …, Tokens/s/device: …, loss: 7.1`, and
`eval metrics after step: 100, loss=6.9, total_weights=…`.

The times of the first two steps are those of compilation and of an asynchronous dispatch and are not used
(metric_logger.py).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import polars as pl

from gdiag.ingesters import console, fields
from gdiag.ingesters.console import Grammar
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "maxtext"
_GRAMMAR: Final = Grammar(
    format=FORMAT,
    sniff=re.compile(rb"completed step: \d+, seconds: [\d.]+"),
    marker="completed step:",
    separator=", ",
    needs=("seconds:",),
    rename={"seconds": "step_time"},
    drop=("total_weights", "TFLOP/s/device", "TFLOP/s", "Tokens/s/device"),
    notes=("the times of the first two steps of each start are not used",),
)


def recognise(given: Input) -> float:
    """By its step lines."""
    return console.recognise(given, _GRAMMAR)


def read(given: Input, options: Options) -> Reading:
    """The whole console, evaluations as rows of their own."""
    found = console.find(given, options, _GRAMMAR)
    wide = _without_first_times(found.wide)
    evals = fields.read(
        console.lines_with(found.table, "eval metrics after step:"), ", ", marker="eval metrics after step:"
    )
    if len(evals.wide) and "loss" in evals.wide.columns:
        rows = console.with_prefix(evals.wide.rename({"loss": "eval_loss"}), options)
        rows = rows.select(name for name in ("line", "step", "time", "eval_loss") if name in rows.columns)
        wide = pl.concat([wide, rows], how="diagonal_relaxed").sort("line", maintain_order=True)
    return console.finish(
        given, options, FORMAT, replace(found, wide=wide), rename=_GRAMMAR.rename, notes=_GRAMMAR.notes
    )


def _without_first_times(wide: pl.DataFrame) -> pl.DataFrame:
    if not len(wide) or "seconds" not in wide.columns:
        return wide
    starts = (pl.col("step") <= pl.col("step").shift()).fill_null(True)
    first = starts | starts.shift(fill_value=False)
    return wide.with_columns(pl.when(first).then(None).otherwise(pl.col("seconds")).alias("seconds"))
