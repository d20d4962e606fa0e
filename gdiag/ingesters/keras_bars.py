"""Keras' progress bars: `Epoch 3/10`, then `312/312 [====] - 4s 12ms/step - loss: 0.4 - val_loss: 0.5`.

Keras prints the mean since the epoch began; where whole epochs are there, one row an epoch is read. Bars are drawn over with
backspaces or carriage returns, and what the program prints meanwhile is glued to them: a bar begins with its count, which is
as wide as the total behind it, and its numbers have four decimals (Keras 1 to 3, utils/generic_utils.py and progbar.py).
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

_DRAWN: Final = r"(?:\[[=>. ]*\]|[━─╸]+)"
_TIMED: Final = r"(?:ETA:\s*)?\d[\d:]*s?\s*(?:-\s*)?(?:[\d.]+[mun]?s/\w+)?\s*-\s*"
_COUNTED: Final = rf"(\d{{1,15}})/(\d{{1,15}})\s*{_DRAWN}?\s*-?\s*{_TIMED}"
_BARE: Final = r"-\s*\d+s\s*-\s*(?:[\d.]+[mu]?s/\w+\s*-\s*)?"
_BAR: Final = rf"(?:^|[\s:\]])(?:{_COUNTED}|{_BARE})([A-Za-z]\w*: .*)$"
_HERE: Final = rf"{_COUNTED}[A-Za-z]\w*: |(?:^|[\s:\]]){_BARE}[A-Za-z]\w*: "
_EPOCH: Final = r"^\s*Epoch (\d{1,9})/(\d{1,9})\s*$"
_LEFT: Final = r"ETA:"
_NUMBER: Final = r"-?(?:\d+\.\d{4}(?:e[-+]\d\d)?|nan|inf)"
_ANY: Final = r"[-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|(?i:nan|inf))"
_METRICS: Final = rf"^([A-Za-z]\w*: {_NUMBER}(?: - [^:\r]{{1,60}}: {_NUMBER})*)"
_WHOLE: Final = rf"^[A-Za-z]\w*: {_ANY}(?: - [^:\r]{{1,60}}: {_ANY})*\s*(?:- \d+s/epoch\b.*)?$"
_WIDEST: Final = 10
"""Digits of a count of batches at most."""
_COUNT: Final = "|".join(rf"[ \d]{{{n}}}/\d{{{n}}}" for n in range(1, _WIDEST))
_BEGINS: Final = rf"\d{{1,15}}/\d{{1,15}} ?(?:{_DRAWN}| - \d)"
_ENDS: Final = (
    (r"\x08+", "\r"),
    (rf"(Epoch \d{{1,9}}/\d{{1,9}})(1/\d{{1,15}} ?{_DRAWN})", "${1}\r${2}"),
    (rf"(: {_NUMBER})({_BEGINS})", "${1}\r${2}"),
    (rf"(: {_NUMBER})( - \d+s - )", "${1}\r${2}"),
    (r"(Epoch \d{1,9}/\d{1,9})( - \d+s - )", "${1}\r${2}"),
    (rf"((?:{_COUNT}) ?(?:{_DRAWN}|- \d+s\b))", "\r${1}"),
    (r"(\S\s*)(Epoch \d{1,9}/)", "${1}\r${2}"),
    (r"(Epoch \d{1,9}/\d{1,9})([^\d\r])", "${1}\r${2}"),
)
"""Where something ends that is glued to a bar or to an epoch's line."""
_NAMED: Final = 3
_SNIFF: Final = re.compile(
    rb"\d/\d+ ?(?:\[=+\]|(?:\xe2\x94[\x80-\xbf])+)? ?-? ?\d+s\b[^\n\r:]{0,20} - [a-z_]*(?:loss|acc\w*): [-\dn]| - \d+s - [a-z_]*loss: [-\dn]"
)
_HEADS: Final = re.compile(rb"Epoch \d+/\d+")
_SURE: Final = 2


def is_fit(sample: bytes) -> bool:
    """Whether a sample of clean lines shows epochs with full bars."""
    return len(_HEADS.findall(sample)) >= _SURE and len(_SNIFF.findall(sample)) >= _SURE


def is_keras(table: pl.DataFrame) -> bool:
    """Whether any line (`line`, `text`) holds such a bar."""
    return bool(table["text"].str.contains(_HERE).any())


def unglued(table: pl.DataFrame) -> pl.DataFrame:
    """The lines with those cut apart in which bars, epochs and other output stand behind each other."""
    text = pl.col("text")
    for pattern, apart in _ENDS:
        text = text.str.replace_all(pattern, apart)
    heads = table["text"].str.extract(_EPOCH, 2).drop_nulls()
    if len(heads):  # digits behind the usual number of epochs are of something else
        text = text.str.replace_all(rf"(Epoch \d{{1,9}}/{heads.mode()[0]})(\d)", "${1}\r${2}")
    return table.with_columns(text.str.split("\r")).explode("text")


def rows(table: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """`line`, `text` of the unglued lines: the epoch or the batch and the metrics behind it; and notes.

    Of an epoch that was not finished, the last bar is its row.
    """
    groups = pl.col("text").str.extract_groups(_BAR).struct.rename_fields(["at", "of", "metrics"]).alias("g")
    head = pl.col("text").str.extract(_EPOCH).cast(pl.Int64, strict=False).alias("head")
    told = table.select("line", groups, head, pl.col("text").str.contains(_LEFT).alias("left")).unnest("g")
    told = told.filter(pl.col("metrics").is_not_null() | pl.col("head").is_not_null()).with_columns(
        pl.col("at", "of").cast(pl.Int64),
        pl.when(pl.col("metrics").str.contains(_WHOLE))
        .then("metrics")
        .otherwise(pl.coalesce(pl.col("metrics").str.extract(_METRICS), "metrics"))
        .alias("metrics"),
    )
    begins = pl.col("head").is_not_null() & (pl.col("head") != pl.col("head").shift()).fill_null(True)
    told = told.with_columns(begins.cum_sum().alias("epochs"), pl.col("head").forward_fill().alias("epoch"))
    bars = told.drop_nulls("metrics").with_columns(
        ((pl.col("at") == pl.col("of")).fill_null(True) & ~pl.col("left")).alias("full")
    )
    whole = bars.filter("full")
    if whole["epoch"].count():
        own = pl.col("epoch").is_not_null() & pl.col("of").eq_missing(pl.col("of").first().over("epochs"))
        ends = bars.filter(own & pl.col("full")).unique("epochs", keep="last", maintain_order=True)
    else:
        ends = whole
    if len(ends) < 2:
        return _batches(bars)
    return _epochs(told, bars, ends)


def _epochs(told: pl.DataFrame, bars: pl.DataFrame, ends: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """As rows, one of each epoch.

    Args:
        told: bars and epochs' lines, with the number of `epochs` begun.
        bars: bars alone.
        ends: the last full bar of each epoch.
    """
    named = bool(ends["epoch"].count())
    repeated = named and ends["epoch"].n_unique() == 1
    step = pl.int_range(1, pl.len() + 1) if repeated or not named else pl.col("epoch")
    last = bars.tail(1)
    begun = last.join(ends, on="epochs", how="anti") if named else last.filter(~pl.col("full"))
    notes = ["one row an epoch: epochs are used as steps" + "; the last one was not finished" * bool(len(begun))]
    found = pl.concat([ends, begun]).with_columns(step.alias("step"))
    if repeated:
        notes.append(f"every epoch is called {ends['epoch'][0]}: they are counted")
    if named:
        lacking = told.filter(pl.col("epochs") > 0).unique("epochs", maintain_order=True)
        names = lacking.join(found, on="epochs", how="anti", maintain_order="left")["epoch"]
        if len(names):
            shown = ", ".join(map(str, names.head(_NAMED))) + ", …" * (len(names) > _NAMED)
            notes.append(f"epochs without a full bar, which are no rows: {len(names)} (epoch {shown})")
        drawn = bars.filter("full").join(ends, on="epochs", how="left", suffix=" of fit")
        other = drawn.filter(pl.col("of").ne_missing(pl.col("of of fit")))
        if len(other):
            notes.append(f"{len(other)} full bars of other lengths, such as those of evaluate(), are not used")
    return _texts(found), tuple(notes)


def _batches(bars: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """As rows, one of each bar."""
    found = bars.filter(pl.col("at").is_not_null() | pl.lit(bars["at"].count() == 0)).with_columns(
        pl.coalesce("at", "epoch", pl.int_range(1, pl.len() + 1)).alias("step")
    )
    return _texts(found), ("metrics are means since the epoch began",)


def _texts(found: pl.DataFrame) -> pl.DataFrame:
    text = pl.col("metrics").str.replace_all(" - ", ", ", literal=True)
    return found.with_columns(pl.concat_str(pl.col("step"), pl.lit(", "), text).alias("text"))
