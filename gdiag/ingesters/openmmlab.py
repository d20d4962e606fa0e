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
    rb"(?:Epoch|Iter)(?:\(train\))?\s*(?:\[\d+\])?\[\s*\d+/\d+\]\s+[^\n]*loss: |\beta: [^\n]*iter: \d+  total_loss: "
)
_HEAD: Final = r"(?:Epoch|Iter)(?:\(train\))?\s*(?:\[(\d+)\])?\[\s*(\d+)/(\d+)\](.*)$"


def recognise(given: Input) -> float:
    """By its training lines."""
    return console.recognise_by(given, _SNIFF)


def read(given: Input, options: Options) -> Reading:
    """Training rows of whichever of the forms the file has."""
    table = console.lines_of(given)
    lines = table.filter(
        pl.col("text").str.contains("loss", literal=True)
        & pl.col("text").str.contains(r"(?:Epoch|Iter)(?:\(train\))?\s*\[")
    )
    heads = lines.select(
        "line", pl.col("text").str.split("- INFO").list.first().alias("prefix"), pl.col("text").str.extract_groups(_HEAD).alias("g")
    ).unnest("g").filter(pl.col("2").is_not_null())  # fmt: skip
    whole = [pl.col(c).cast(pl.Int64, strict=False) for c in ("1", "2", "3")]
    step = (whole[0].fill_null(1) - 1) * whole[2] + whole[1]
    plain = pl.col("4").str.replace(r"eta: (?:\d+ days?, )?[\d:]+,?\s*", "")
    steps = heads.select("line", "prefix", (step.cast(pl.String) + "  " + plain.str.strip_chars_start()).alias("text"))
    d2 = console.candidates(table, "iter: ", ("loss",))
    steps = steps if len(steps) >= len(d2) else d2
    got = fields.read(steps.select("line", "text"), None, ends=given.data().endswith((b"\n", b"\r")))
    wide = console.with_prefix(got.wide, steps, options)
    left = got.left.filter(pl.col("text").str.contains(r"^\d+\s+\w+: "))
    found = Found(table, wide, console.damaged(left, "iteration "), console.cut_note(got.cut))
    own = "time of the step" if "time of the step" in wide.columns else "time"
    return console.finish(given, options, FORMAT, found, rename={own: "step_time"})
