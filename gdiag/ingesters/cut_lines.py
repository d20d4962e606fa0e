"""Step lines that stop before their first number but the step: they give no row, and are counted as rejects.

Such a line is the beginning of another step line, its numbers and blanks aside. What a program prints as a heading may be the
same (`Epoch 3` above `Epoch 3 | iter 10 | …`): it comes again and again, and a cut line seldom does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import polars as pl

from gdiag.ingesters import text as plain

_SHAPES: Final = 12
"""Step lines of other forms that lines are held against."""
_FEW: Final = 3
_SHARE: Final = 0.02
"""Lines per row at most: what comes more often is a heading."""
_LONGEST: Final = 1000
"""Characters of a step line whose beginning is looked for."""


def rejects(rest: pl.DataFrame, rows: int, samples: Sequence[str], marker: str = "") -> pl.DataFrame:
    """`line`, `reason`, `text` of the lines that are the beginning of a step line.

    Args:
        rest: `line`, `text` of the lines that gave no row.
        rows: the number of rows.
        samples: step lines that gave rows.
        marker: what introduces the step; '' where there is no such word.
    """
    shapes = [*dict.fromkeys(_shape(text[:_LONGEST]) for text in samples)][:_SHAPES]
    begin = re.escape(marker) + r"[\s:=#\[(]*\d" if marker else r"\d"
    found = rest.filter(pl.col("text").str.contains(marker, literal=True)) if marker else rest
    found = found.filter(
        pl.col("text").str.len_bytes() < max(map(len, samples), default=0), pl.col("text").str.contains(begin)
    )
    shape = pl.col("text").str.strip_chars_end().str.replace_all(r"\d+", "0").str.replace_all(r"\s+", " ")
    found = found.with_columns(shape.alias("shape")).filter(
        pl.any_horizontal(
            False, *(pl.lit(known).str.starts_with(pl.col("shape")) & (pl.col("shape") != known) for known in shapes)
        )
    )
    said = [re.search(r"\d", plain.peel(text)[1]) is not None for text in found["text"]]
    found = found.filter(pl.Series(said, dtype=pl.Boolean))
    if len(found) > max(_FEW, _SHARE * rows):
        found = found.clear()
    text = pl.Series("text", [plain.redact(text, 200) for text in found["text"]], dtype=pl.String)
    return found.select("line", pl.lit("cut step line: it ends before its first value").alias("reason"), text)


def _shape(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"\d+", "0", text.rstrip()))
