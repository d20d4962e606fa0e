"""Headerless pairs: `step loss` (torchtitan's golden files) and `step train|val|hella value` (build-nanogpt's log.txt)."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

import polars as pl

from gdiag.ingesters import console
from gdiag.ingesters import text as plain
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "step-pairs"
_LINE: Final = re.compile(rf"^\s*\d+\s+(?:(?:train|val|valid|eval|hella|test)\s+)?{plain.NUMBER}\s*$")
_FEW, _SHARE = 10, 0.25
"""Pairs, and their share of the lines, where warnings and the like stand between them."""
_KINDS: Final = {
    "": "loss",
    "train": "loss",
    "val": "eval_loss",
    "valid": "eval_loss",
    "eval": "eval_loss",
    "test": "test_loss",
}


def recognise(given: Input) -> float:
    """Nearly every line of the sample is a pair, and the first numbers rise; weak where other text stands between the pairs."""
    lines = [line for line in plain.clean(given.head).decode("utf-8", "replace").split("\n")[:400] if line.strip()]
    if len(given.head) > 1000 and len(lines) > 2:
        lines = lines[:-1]
    good = [line for line in lines if _LINE.match(line)]
    steps = [int(line.split()[0]) for line in good if len(line.split()[0]) < 19]
    if len(steps) < 3 or sum(a <= b for a, b in pairwise(steps)) < 0.9 * (len(steps) - 1):
        return 0.0
    if good[0] is lines[0] and len(good) >= 0.95 * len(lines):
        return 0.9
    return 0.22 if len(steps) >= _FEW and len(good) >= _SHARE * len(lines) and steps[-1] > steps[0] else 0.0


def read(given: Input, options: Options) -> Reading:
    """The series of the pairs; lines that begin as one and are none are rejects."""
    table = console.lines_of(given).filter(pl.col("text").str.strip_chars() != "")
    parts = table.select(
        "line", "text", pl.col("text").str.extract_groups(r"^\s*(\d+)\s+(?:([a-z]+)\s+)?(\S+)\s*$").alias("g")
    )
    parts = parts.unnest("g").with_columns(
        pl.col("1").cast(pl.Int64, strict=False).alias("step"), pl.col("3").cast(pl.Float64, strict=False).alias("value"),
        pl.col("2").fill_null("").alias("kind"),
    )  # fmt: skip
    good = pl.col("step").is_not_null() & pl.col("value").is_not_null() & pl.col("kind").is_in([*_KINDS, "hella"])
    broken = ~good & pl.col("text").str.contains(r"^\s*\d+(?:\s|$)")
    bad = parts.filter(broken).select(
        "line", pl.lit("no pair of a step and a number").alias("reason"), pl.col("text").str.slice(0, 200)
    )
    rows = parts.filter(good)
    wide = rows.select(
        "line", "step",
        *[
            pl.when(pl.col("kind") == kind).then(pl.col("value")).alias(name)
            for kind, name in {"": "loss", "train": "train", "val": "val", "test": "test loss", "hella": "accuracy"}.items()
            if kind in rows["kind"].unique().to_list()
        ],
    )  # fmt: skip
    rename = {"train": "loss", "val": "eval_loss"}
    found = Found(table, wide, bad)
    return console.finish(
        given,
        options,
        FORMAT,
        found,
        rename=rename,
        notes=("two columns without a header: step and loss",) if "loss" in wide.columns else (),
    )
