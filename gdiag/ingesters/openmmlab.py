"""OpenMMLab and detectron2 consoles: `Epoch [1][6000/8541]  lr: …, time: …, loss: …, grad_norm: …`,
`Epoch(train)  [1][ 50/8541]  …`, `Iter(train) [ 50/1000]  …`, and `eta: …  iter: 19  total_loss: …`.

The step of epoch-based lines is (epoch - 1) x iterations + iteration; `time` is seconds per iteration.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from gdiag.ingesters import console, fields
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "openmmlab"
_SNIFF: Final = re.compile(
    rb"(?:Epoch|Iter)(?:\(train\))?\s*(?:\[\d+\])?\[\s*\d+/\d+\]\s+[^\n]*loss: |\beta: [^\n]*iter: \d+  [^\n]*?total_loss: "
)


def recognise(given: Input) -> float:
    """By its training lines."""
    return console.recognise_by(
        given, _SNIFF, (b"Epoch [", b"Epoch(train)", b"Iter(train)", b"Iter [", b"total_loss: ")
    )


def read(given: Input, options: Options) -> Reading:
    """Training rows of whichever of the forms the file has."""
    table = console.lines_of(given)
    steps = _numbered(table, "Epoch", 3)
    steps = steps if len(steps) else _numbered(table, "Iter", 2)
    d2 = console.lines_with(table, "iter: ", ("loss",))
    ends = given.data().endswith((b"\n", b"\r"))
    got = fields.read(steps, ends=ends) if len(steps) >= len(d2) else fields.read(d2, marker="iter: ", ends=ends)
    wide = console.with_prefix(got.wide, options)
    left = got.left.filter(pl.col("text").str.contains(r"^\d+\s+\w+: "))
    found = Found(table, wide, console.damaged(left, "iteration "), console.cut_note(got.cut))
    own = "time of the step" if "time of the step" in wide.columns else "time"
    return console.finish(given, options, FORMAT, found, rename={own: "step_time"})


def _numbered(table: pl.DataFrame, word: str, cuts: int) -> pl.DataFrame:
    """Lines of `Epoch(train)  [1][ 50/8541]  lr: …` as `50  lr: …`: the step in the run, then the fields; `prefix` before.

    `eta`, whose form changes, is taken out.
    """
    lines = console.lines_with(table, word, ("[", "/", "loss"))
    place, rest = f"b{cuts - 2}", f"b{cuts - 1}"
    frame = (
        lines.lazy()
        .select("line", pl.col("text").str.splitn(word, 2).struct.rename_fields(["prefix", "a"]).alias("s"))
        .unnest("s")
    )
    frame = _cut(frame, pl.col("a"), "]", [f"b{i}" for i in range(cuts)])
    frame = _cut(
        frame,
        pl.col(place).str.strip_chars_start().str.strip_prefix("(train)").str.strip_chars(" ["),
        "/",
        ["at", "of"],
    )
    frame = _cut(frame, pl.col(rest).str.strip_chars_start(), "eta: ", ["head", "eta"])
    frame = _cut(frame, pl.col("eta"), " time: ", ["left", "behind"])
    at, of = (pl.col(name).cast(pl.Int64, strict=False) for name in ("at", "of"))
    epoch = (
        pl.col("b0").str.strip_prefix("(train)").str.strip_chars(" [").cast(pl.Int64, strict=False)
        if cuts == 3
        else pl.lit(1)
    )
    short = (
        pl.when(pl.col("behind").is_null())
        .then(pl.col(rest).str.strip_chars_start())
        .otherwise(pl.concat_str("head", pl.lit("time: "), "behind"))
    )
    step = ((epoch - 1) * of + at).cast(pl.String)
    return (
        frame.select("line", "prefix", pl.concat_str(step, pl.lit("  "), short).alias("text"))
        .drop_nulls("text")
        .collect()
    )


def _cut(frame: pl.LazyFrame, text: pl.Expr, separator: str, names: list[str]) -> pl.LazyFrame:
    """The text in as many pieces as there are names."""
    return frame.with_columns(text.str.splitn(separator, len(names)).struct.rename_fields(names).alias("s")).unnest("s")
