"""Progress bars that are written to a log: `Progress on:train 120it/1.00kit rate:1.2it/s remaining:10:00 elapsed:01:40 postfix:loss=2.3`.

tqdm-loggable prints them (Levanter, Marin). From a thousand on the count has three digits: between two counts that differ the
lines are spread evenly.
"""

from __future__ import annotations

from typing import Final

import polars as pl

MARK: Final = "Progress on:"
_LINE: Final = r"^(.*?)Progress on:(.*?) (\d[\d.]*)([kMGT]?)\w*/(?:(\d[\d.]*)([kMGT]?)\w*|-) rate:(\S+) remaining:(.+?) elapsed:(.+?) postfix:(.*)$"
_GROUPS: Final = ("before", "name", "at", "at_unit", "of", "of_unit", "rate", "left", "took", "postfix")
_LOGGER: Final = r"\S*\d\d:\d\d:\d\d\S*|[\w.]+\.py:\d+|[\w.]*tqdm_logging|(?:^|\s)\d+ - |\bINFO\b|::|(?:^|\s)-(?:\s|$)"
"""What loggers print before a message, ranks aside."""
_SCALE: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_ROUNDED: Final = 1000


def as_bars(table: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The lines (`line`, `text`) with such ones as tqdm draws them, and a note where their counts are rounded."""
    groups = pl.col("text").str.extract_groups(_LINE).struct.rename_fields(_GROUPS).alias("g")
    found = table.filter(pl.col("text").str.contains(MARK, literal=True)).select("line", groups).unnest("g")
    found = found.drop_nulls("at")
    if not len(found):
        return table, ()
    scaled = (
        (pl.col(n).cast(pl.Float64) * pl.col(f"{n}_unit").replace_strict(_SCALE, default=1.0)).alias(n)
        for n in ("at", "of")
    )
    found = found.with_columns(scaled)
    rounded = bool((found["at"] >= _ROUNDED).any())
    parts = [_spread(part) for part in found.partition_by("name", maintain_order=True)]
    found = pl.concat(parts) if rounded else found
    count = pl.col("at").round().cast(pl.Int64).cast(pl.String)
    text = pl.concat_str(
        pl.col("before").str.replace_all(_LOGGER, " "), pl.col("name"), pl.lit(": "), count,
        (pl.lit("/") + pl.col("of").cast(pl.Int64).cast(pl.String)).fill_null("it"), pl.lit(" ["), pl.col("took").str.extract(r"([\d:]+)$").fill_null("0"),
        pl.lit("<"), pl.col("left").str.replace_all(",", ""), pl.lit(", "), pl.col("rate"), pl.lit(", "), pl.col("postfix"), pl.lit("]"),
    )  # fmt: skip
    bars = table.join(found.select("line", text.alias("bar")), on="line", how="left", maintain_order="left")
    note = ("steps have three digits: lines between two of them are spread evenly",) if rounded else ()
    return bars.select("line", pl.coalesce("bar", "text").alias("text")), note


def _spread(bars: pl.DataFrame) -> pl.DataFrame:
    """The lines of a bar with those of one rounded count between it and the next one."""
    same = pl.col("at").rle_id()
    bars = bars.with_columns(same.alias("same"))
    ends = bars.group_by("same", maintain_order=True).agg(pl.col("at").first(), pl.len().alias("count"))
    step = (pl.col("at").shift(-1) - pl.col("at")) / pl.col("count")
    step = pl.when((pl.col("at") >= _ROUNDED) & (step > 0)).then(step).forward_fill().fill_null(0.0)
    ends = ends.select("same", step.alias("gap"))
    place = pl.int_range(pl.len()).over("same")
    bars = bars.join(ends, on="same", how="left", maintain_order="left")
    return bars.with_columns(pl.col("at") + place * pl.col("gap")).drop("same", "gap")
