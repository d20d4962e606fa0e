"""OpenMMLab and detectron2 consoles: `Epoch [1][6000/8541]  lr: …, time: …, loss: …, grad_norm: …`,
`Epoch(train)  [1][ 50/8541]  …`, `Iter(train) [ 50/1000]  …`, and `eta: …  iter: 19  total_loss: …`.

The step of epoch-based lines is (epoch - 1) x iterations + iteration; `time` is seconds per iteration.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from gdiag.ingesters import console, fields, line_kinds
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "openmmlab"
_SNIFF: Final = re.compile(
    rb"(?:Epoch|Iter)(?:\(train\))?\s*(?:\[\d+\])?\[\s*\d+/\d+\]\s+[^\n]*loss: |\beta: [^\n]*iter: \d+  [^\n]*?total_loss: "
)
_DETECTRON2: Final = "iter: "
_EPOCHS, _STEPS = ("epoch", "at", "of"), ("step", "of")
_FORMS: Final = {
    "Epoch(train)": _EPOCHS, "Epoch [": _EPOCHS, "Iter(train)": _STEPS, "Iter [": _STEPS, _DETECTRON2: ("step",)
}  # fmt: skip
"""Word before a line's numbers → what the first of them are."""
_PLACE: Final = r"[\s\[]*\d+\]?\[?\s*[\d/]*\d+\]\s"
"""`[1][  50/8541]` or `[ 50/1000]`, less what the word has of it."""


def recognise(given: Input) -> float:
    """By its training lines."""
    return console.recognise_by(
        given, _SNIFF, (b"Epoch [", b"Epoch(train)", b"Iter(train)", b"Iter [", b"total_loss: ")
    )


def read(given: Input, options: Options) -> Reading:
    """Training rows of whichever of the forms the file has."""
    table = console.lines_of(given)
    ends = given.data().endswith((b"\n", b"\r"))
    sample = console.sample(given)
    form = max(_FORMS, key=lambda word: sample.count(word.encode()))
    shape = line_kinds.SHAPE if form == _DETECTRON2 else _PLACE
    got = fields.read(
        console.lines_with(table, form, ("loss",)), marker=form, ends=ends, first=_FORMS[form], shape=shape
    )
    wide = console.with_prefix(_counted(got.wide), options)
    left = got.left.filter(pl.col("text").str.contains(shape))
    found = Found(table, wide, console.damaged(left, form), console.line_notes(got))
    own = console.OWN_TIME if console.OWN_TIME in wide.columns else "time"
    return console.finish(given, options, FORMAT, found, rename={own: "step_time"})


def _counted(wide: pl.DataFrame) -> pl.DataFrame:
    """The step in the run from the place in the epoch; without `eta`, whose form changes."""
    if "at" in wide.columns:
        wide = wide.with_columns(((pl.col("epoch") - 1) * pl.col("of") + pl.col("at")).alias("step"))
    return wide.drop("at", "of", "eta", "day", "days", strict=False)
