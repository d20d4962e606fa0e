"""ESPnet's trainer: `[host:0/4] 2024-01-01 10:00:00,123 (trainer:762) INFO: 3epoch:train:101-200batch: iter_time=1.2e-04,
forward_time=0.107, loss=45.2, …, optim0_lr0=1.5e-04, train_time=1.497` and `3epoch results: [train] …, [valid] …`.

The step is the last batch of the line, counted on over epochs of the largest batch seen. `iter_time` is the wait for a batch,
`train_time` the whole step. Known from source code (espnet2/train/reporter.py, trainer.py) and from an excerpt.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from gdiag.ingesters import console, fields, glued
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "espnet"
_SNIFF: Final = re.compile(rb"\d+epoch:train:\d+-\d+batch: [^\n]*=")
_LINE: Final = r"^(.*?)(\d{1,9})epoch:(?:train|valid):\d+-(\d{1,12})batch: (.*)$"
_STARTS: Final = glued.Starts(r"\d+epoch:train:\d+-\d+batch: ", ", ", ("epoch", "from", "to"))
_RESULTS: Final = r"(\d{1,9})epoch results: .*\[valid\] (?:.*?, )?loss=([-+\w.]+)"
_SUMMARY: Final = r"epoch_summary:(\d{1,9})epoch:valid: (?:.*?[, ])?loss=([-+\w.]+)"
_NAMES: Final = {"optim0_lr0": "lr", "iter_time": "data_time", "train_time": "step_time"}


def recognise(given: Input) -> float:
    """By its training lines."""
    return console.recognise_by(given, _SNIFF, (b"epoch:train:",))


def read(given: Input, options: Options) -> Reading:
    """Training lines, and the validation losses of whole epochs as rows of their own."""
    table = console.lines_of(given)
    lines = console.lines_with(table, "epoch:train:", ("batch: ",))
    lines = glued.apart(lines, _STARTS, "epoch:train:")
    parts = lines.select("line", pl.col("text").str.extract_groups(_LINE).alias("g")).unnest("g").drop_nulls()
    epoch, at = (pl.col(c).cast(pl.Int64) for c in ("2", "3"))
    length = int(parts.select(at.max()).item() or 0)
    step = ((epoch - 1) * length + at).cast(pl.String)
    got = fields.read(
        parts.select("line", pl.col("1").alias("prefix"), (step + ", " + pl.col("4")).alias("text")),
        ", ",
        ends=given.data().endswith((b"\n", b"\r")),
        shape=r"\d+, ",
    )
    wide = console.with_prefix(got.wide, options)
    closing = [
        table.filter(pl.col("text").str.contains(word, literal=True)) for word in ("epoch results: ", "epoch:valid: ")
    ]
    ends = pl.concat(
        part.select("line", pl.col("text").str.extract_groups(pattern).alias("g")).unnest("g")
        for part, pattern in zip(closing, (_RESULTS, _SUMMARY), strict=True)
    )
    ends = ends.select(
        "line", (pl.col("1").cast(pl.Int64) * length).alias("step"), pl.col("2").cast(pl.Float64, strict=False).alias("eval_loss")
    ).drop_nulls()  # fmt: skip
    wide = pl.concat([wide, ends], how="diagonal_relaxed").sort("line", maintain_order=True)
    found = Found(table, wide, console.damaged(got.left, "batch "), console.line_notes(got))
    return console.finish(given, options, FORMAT, found, rename=_NAMES)
