"""Multi-line blocks: OLMo and OLMo-core (`[step=10/1000,epoch=0]` then `    name=value`), Composer (`[batch=366/48000]:` then
`Train name: value`).

OLMo names may contain blanks and units, values thousands separators. `[Eval batch=…]` blocks of Composer belong to the
training batch before them. Known from source code (OLMo train.py, OLMo-core console_logger.py, Composer console_logger.py).
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from gdiag.ingesters import console
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "blocks"
_SNIFF: Final = re.compile(
    rb"\[step=\d+/[\d?]+,epoch=\d+[^\]\n]*\]\s*\n(?:[^\n]{0,400}\n){0,2}?(?:[^\n=]{0,40}\s)?\s+[\w/][^=\n]*=\S"
    rb"|\[batch=\d+/\d+\]:\s*\n(?:[^\n]{0,400}\n){0,2}?[^\n]{0,40}?\s*Train [^:\n]+: \S"
)
_HEADER: Final = r"\[(?:step=(\d+)/([\d?]+),epoch=\d+[^\]]*\]\s*$|(?:Eval )?batch=(\d+)/(\d+)\]:)"
_LINE: Final = r"^(?:\d{1,5}:|\[\w+\d+\]:?)*\s+((?:Train |Eval )?[A-Za-z][\w/ .()@%+-]*?)\s*(?:=|: )\s*([-+]?[\d,.]+(?:[eE][-+]?\d+)?|-?(?i:nan|inf))\s*$"


_FOREIGN: Final = 3
"""Lines of something else that end a block; fewer may be a warning between its values."""


def recognise(given: Input) -> float:
    """By a header with a value below it, or below up to two lines of something else."""
    return console.recognise_by(given, _SNIFF, (b",epoch=", b"[batch="))


def read(given: Input, options: Options) -> Reading:
    """One row per block; a block that the file's end cuts keeps its complete lines."""
    data = given.data()
    table = console.lines_of(given)
    marked = table.with_columns(
        pl.col("text").str.extract_groups(_HEADER).struct.rename_fields(["a", "total", "b", "total2"]).alias("h"),
        pl.col("text").str.contains(r"\[Eval batch=").alias("eval"),
    ).unnest("h")
    marked = marked.with_columns(pl.coalesce("a", "b").cast(pl.Int64, strict=False).alias("step"))
    marked = marked.with_columns(pl.col("step").is_not_null().cum_sum().alias("block"))
    body = marked.filter(pl.col("step").is_null() & (pl.col("block") > 0))
    if len(table) and not data.endswith((b"\n", b"\r")):
        body = body.filter(pl.col("line") < table["line"].max())  # its number may be cut
    body = body.with_columns(
        pl.col("text").str.extract_groups(_LINE).struct.rename_fields(["key", "value"]).alias("g")
    ).unnest("g")
    foreign = pl.col("key").is_null() & (pl.col("text").str.strip_chars() != "")
    body = body.with_columns(foreign.cast(pl.Int32).rolling_sum(_FOREIGN, min_samples=1).over("block").alias("foreign"))
    ended = (pl.col("foreign") == _FOREIGN).cum_max().over("block")
    body = body.filter(pl.col("key").is_not_null() & ~ended).with_columns(
        pl.col("value").str.replace_all(",", "").cast(pl.Float64, strict=False)
    )
    heads = marked.filter(pl.col("step").is_not_null() & ~pl.col("eval"))
    evals = marked.filter(pl.col("step").is_not_null() & pl.col("eval"))
    values = body.with_columns(pl.col("key").str.strip_prefix("Train ")).pivot(
        "key", index="block", values="value", aggregate_function="last", maintain_order=True
    ) if len(body) else pl.DataFrame(schema={"block": heads.schema["block"]})  # fmt: skip
    train = heads.select("line", "text", "step", "block").join(values, on="block", how="inner", maintain_order="left")
    train = train.with_columns(pl.col("text").str.split("[").list.first().alias("prefix"))
    wide = console.with_prefix(_with_evals(train.drop("text", "block"), evals, body), options)
    totals = pl.concat([heads["total"], heads["total2"]]).cast(pl.Int64, strict=False).drop_nulls()
    config = {"total_steps": int(totals[0])} if len(totals) else {}
    finished = bool(len(totals)) and bool(len(wide)) and int(str(wide["step"].max())) >= int(totals[0])
    quiet = body["line"].to_list()
    found = Found(table.filter(~pl.col("line").is_in(quiet)), wide, console.no_rejects(), (), {**config}, finished)
    return console.finish(given, options, FORMAT, found, rename={"learning rate": "lr"})


def _with_evals(wide: pl.DataFrame, evals: pl.DataFrame, body: pl.DataFrame) -> pl.DataFrame:
    """Evaluation losses of Composer's Eval blocks as rows at the training batch before them."""
    found = body.join(
        evals.select("block", pl.col("line").alias("head")), on="block", how="inner", maintain_order="left"
    )
    found = found.filter(pl.col("key").str.contains(r"(?i)loss|crossentropy"))
    if not len(found) or not len(wide):
        return wide
    rows = found.group_by("block", maintain_order=True).agg(
        pl.col("head").first().alias("line"), pl.col("value").last().alias("eval_loss")
    )
    rows = rows.join_asof(wide.select("line", "step"), on="line", strategy="backward").select(
        "line", "step", "eval_loss"
    )
    return pl.concat([wide, rows], how="diagonal_relaxed").sort("line", maintain_order=True)
