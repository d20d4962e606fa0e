"""Consoles of unknown programs that print an epoch or a step on a line of its own and its metrics below it.

`--- epoch 147 ---` then `train/loss     : 6.17`, or `Epoch 0/24`, a rule, then `train Loss: 0.63 Acc: 0.69` and
`val Loss: 0.24 Acc: 0.90`, or Coqui's `--> TIME: … -- STEP: 25/496 -- GLOBAL_STEP: 25` then `| > loss: 3.63  (3.53)`, or
`current step: 25th step` then `batch loss:3.9`. Blocks that end with their counter (Ray Tune prints the keys of a result
in order of name, `training_iteration: 2` behind the losses) belong to it. Where a name comes again in a block the last value counts.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import console, tokens
from gdiag.ingesters.aliases import claim, family
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "epoch-blocks"
_WHICH: Final = (
    r"(?:TIME: [\d:. -]+STEP: \d+/\d+ -- GLOBAL_|(?:current|global|training|train)[ _])?(?:epoch|step|iter(?:ation)?)"
)
_ORDINAL: Final = r"(?:st|nd|rd|th)?(?: (?:epoch|step|iter(?:ation)?))?"
_HEAD: Final = rf"(?i)^\W*{_WHICH}\W{{0,3}}(\d{{1,12}}){_ORDINAL}(?:\s*(?:/|of)\s*(\d{{1,12}}))?\W*$"
_BODY: Final = r"[A-Za-z]\w*\s*[:=]\s*(?:[-+.]?\d|(?i:nan|inf))|[A-Za-z]\w*loss\s+(?:[-+.]?\d|(?i:nan|inf))"
_CLOCK: Final = r"^\[?\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?\]?:?[ \t]*"
_BAR: Final = r"\d%\||\d(?:it/s|s/it)"
_SNIFF: Final = re.compile(
    rf"(?im){_CLOCK.replace('^', '^(?:', 1)})?[^\w\n]{{0,99}}{_WHICH}\W{{0,3}}\d{{1,12}}{_ORDINAL}(?:\s*(?:/|of)\s*\d{{1,12}})?[^\w\n]*\n"
    r"(?:[^\n]*\n){0,4}?[^\n]*\w\s{0,3}[:=]\s{0,9}[-+.]?[\dn]".encode()
)
_KNOWN: Final = frozenset({"loss", "eval_loss", "grad_norm", "lr"})
_LONGEST: Final = 60
"""Lines of a block that are looked at."""
_LONGEST_RESULT: Final = 250
"""The same above a counter that closes its block."""
_NAME: Final = r"^\W*([A-Za-z][\w ]*?)\s*[:=]"
_FIELD: Final = r"^\s*[A-Za-z][\w ]*?\s*[:=]\s*\d+\s*$"
"""A counter that is a field among others and no headline."""
_MOST: Final = 0.6
"""Share of the names between two counters that stand above the first one too where a counter closes its block."""


def recognise(given: Input) -> float:
    """By headers with a metric below them; weaker than lines that name their step themselves."""
    return 0.2 if console.matches(given, _SNIFF) > 1 else 0.0


def read(given: Input, options: Options) -> Reading:
    """One row per header.

    Raises:
        InputError: no block has a metric that is known.
    """
    table = console.lines_of(given)
    clock = pl.col("text").str.extract(f"({_CLOCK})").fill_null("").alias("prefix")
    stamped = table.select("line", clock)
    table = table.with_columns(pl.col("text").str.replace(_CLOCK, ""))
    heads = table.select(
        "line", pl.col("text").str.extract_groups(_HEAD).struct.rename_fields(["step", "total"]).alias("h"),
        pl.col("text").str.contains(_FIELD).alias("field"),
    )  # fmt: skip
    heads = heads.unnest("h").drop_nulls("step")
    fields = bool(heads["field"].all())
    heads = heads.drop("field").select(pl.all().cast(pl.Int64, strict=False))
    body = table.filter(pl.col("text").str.contains(_BODY) & ~pl.col("text").str.contains(_BAR))
    above = fields and _counter_closes(body, heads["line"])
    heads_of = heads.select("line", "step", pl.col("line").alias("head"))
    body = body.join_asof(heads_of, on="line", strategy="forward" if above else "backward")
    body = body.filter((pl.col("line") - pl.col("head")).abs() <= (_LONGEST_RESULT if above else _LONGEST))
    rows: dict[int, dict[str, float]] = {}
    for _, text, step, head in body.iter_rows():
        row = rows.setdefault(head, {"line": head, "step": step})
        row.update(
            (name, value) for name, value in tokens.pairs(text.replace("tensor(", ""), None) if len(name) <= _LONGEST
        )
    names = dict.fromkeys(name for row in rows.values() for name in row)
    if not _KNOWN & {c.canonical for name in names if (c := claim(name) or family(name)) is not None}:
        raise InputError(f"{given.path} has no block of an epoch with a loss or another metric that is known")
    whole = ("line", "step")
    wide = pl.DataFrame(list(rows.values()), schema={n: pl.Int64 if n in whole else pl.Float64 for n in names})
    wide = console.with_prefix(wide.join(stamped, on="line", how="left", maintain_order="left"), options)
    totals = heads["total"].drop_nulls()
    config = {"total_steps": int(totals[0])} if len(totals) else {}
    where = "above" if above else "below"
    notes = (f"console of an unknown program: metrics {where} lines that name an epoch or a step",)
    quiet = table.filter(~pl.col("line").is_in(body["line"].implode()))
    return console.finish(given, options, FORMAT, Found(quiet, wide, console.no_rejects(), notes, {**config}))


def _counter_closes(body: pl.DataFrame, heads: pl.Series) -> bool:
    """Whether counters stand below their metrics: what comes between two of them stood above the first and not below the last.

    Settings that a program prints at its start do not come again. An evaluation before the first epoch does, and a job that is
    killed has nothing below its last counter: the counters must be no farther from what is above them than from what is below.
    """
    if heads.len() < 2:
        return False
    names = body.select("line", pl.col("text").str.extract(_NAME).alias("name"))
    first, last = int(heads[0]), int(heads[-1])
    above, below = (set(names.filter(where)["name"]) for where in (pl.col("line") < first, pl.col("line") > last))
    between = set(names.filter(pl.col("line").is_between(first + 1, last - 1))["name"])
    many = _MOST * len(between)
    return bool(between) and len(above & between) >= many > len(below & between) and _nearer_above(body, heads)


def _nearer_above(body: pl.DataFrame, heads: pl.Series) -> bool:
    """Whether most counters are no farther from the metric above them than from the one below."""
    lines = body.select("line", pl.col("line").alias("metric")).filter(~pl.col("line").is_in(heads.implode()))
    inner = heads.to_frame("line").slice(1, heads.len() - 2) if heads.len() > 2 else heads.to_frame("line")
    for strategy in ("backward", "forward"):
        inner = inner.join_asof(lines, on="line", strategy=strategy, suffix=f"_{strategy}")
    far = (pl.col("line") - pl.col("metric")) <= (pl.col("metric_forward") - pl.col("line"))
    return bool(inner.select(far.fill_null(True).mean() >= 0.5).item())
