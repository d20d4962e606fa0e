"""Evaluations that a console prints on lines of their own between its step lines: `Epoch 0 valid loss 2.5`, `Test: loss 2.5`."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Final

import polars as pl

from gdiag.ingesters import text as plain
from gdiag.ingesters import tokens
from gdiag.ingesters.aliases import claim, family
from gdiag.ingesters.console_epochs import EVALUATION

NAME: Final = "eval loss"
_LIKELY: Final = r"(?i)(?:val|eval|test|dev|holdout)[^\n]{0,80}(?:loss|nll|cross.?entropy|perplexity|ppl)\W{0,4}[^\n]{0,12}(?:[\d.]|nan|inf)"
_PERPLEXITY: Final = r"(?:val\w*|eval\w*|test|dev)?[ _-]?(?:perplexity|ppl)"
"""The exponential of an evaluation's loss."""
_RECORD: Final = re.compile(r"best|lowest|minim|target|previous|prev_|last[ _]", re.IGNORECASE)
"""Figures of other evaluations."""
_STEP: Final = re.compile(r"(?:^|[^\w-])(?:step|iter(?:ation)?|update)s?\W{0,3}(\d{1,12})(?![\w.])", re.IGNORECASE)
_PLACE: Final = r"(?i)(?:(?:val|eval|test)\w*\W{0,3}\[|valid\w*' subset)\s*(\d{1,9})\s*/\s*(\d{1,9})"
"""Batches of an evaluation done: only the last line holds the whole of it, …"""
_MEAN: Final = re.compile(r"loss\W{0,4}[\d.eE+-]+\s*\(\s*(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*\)", re.IGNORECASE)
"""… the mean of its batches in parentheses behind the last one's loss."""
_MOST: Final = 20_000
"""Evaluations read: a line takes some 0.1 ms."""
_LOOK: Final = 400
_SCHEMA: Final = {"line": pl.Int64, "step": pl.Int64, NAME: pl.Float64}


def rows(rest: pl.DataFrame, wide: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """`line`, `step` and `eval loss` of such lines below the first step line, and notes; none where the step lines have one.

    Of several series the one that comes most often is used; a line without a step takes that of the step line before it,
    and what several ranks print is one row.

    Args:
        rest: `line`, `text` of the lines that are no step lines.
        wide: step rows with `line`, `step` and their labels.
    """
    empty = pl.DataFrame(schema=_SCHEMA)
    if not len(rest) or not len(wide) or any(_canonical(name) == "eval_loss" for name in wide.columns):
        return empty, ()
    known = wide.select("line", pl.col("step").cast(pl.Int64, strict=False).alias("near")).drop_nulls().sort("line")
    if not len(known):
        return empty, ()
    done, batches = (pl.col("text").str.extract(_PLACE, part).cast(pl.Int64) for part in (1, 2))
    likely = rest.filter(pl.col("line") > known["line"][0], pl.col("text").str.contains(_LIKELY)).filter(
        ~(done < batches - 1).fill_null(False)
    )
    every = -(-len(likely) // _MOST)
    notes = (f"one of {every} lines of evaluations is read, of {len(likely):,}",) if every > 1 else ()
    found = [
        (line, step, label, value)
        for line, raw in likely.gather_every(max(every, 1)).iter_rows()
        for step, label, value in [_read(plain.peel(raw[:_LOOK])[1])]
        if label
    ]
    if not found:
        return empty, ()
    most = Counter(label for _, _, label, _ in found).most_common(1)[0][0]
    schema = {"line": pl.Int64, "own": pl.Int64, NAME: pl.Float64}
    seen = pl.DataFrame([(n, s, v) for n, s, label, v in found if label == most], schema=schema, orient="row")
    after = known.rename({"near": "next"})
    seen = seen.join_asof(known, on="line").join_asof(after, on="line", strategy="forward")
    fits = pl.col("own").is_between(pl.col("near"), pl.col("next").fill_null(2**62))
    seen = seen.with_columns(step=pl.when(fits).then("own").otherwise("near"))
    return seen.unique(["step", NAME], keep="first", maintain_order=True).select(*_SCHEMA), notes


def _read(message: str) -> tuple[int | None, str, float]:
    """The step that a line names, the label of its evaluation loss ('' where it has none) and the loss."""
    words = re.search(EVALUATION, message)
    mean = _MEAN.search(message)
    for name, value in tokens.pairs(message, None):
        what = _canonical(name)
        own = what == "eval_loss" or (what == "loss" and words is not None and "train" not in name.lower())
        if own and not _RECORD.search(name):
            step = _STEP.search(message)
            return int(step[1]) if step else None, name, float(mean[1]) if mean else value
        if words is not None and value > 0 and re.fullmatch(_PERPLEXITY, name.strip(), re.IGNORECASE):
            step = _STEP.search(message)
            return int(step[1]) if step else None, name, math.log(value)
    return None, "", 0.0


def _canonical(name: str) -> str:
    found = claim(name) or family(name)
    return "" if found is None else found.canonical
