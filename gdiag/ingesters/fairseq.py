"""fairseq and metaseq consoles: `epoch 001: 430 / 614 loss=3.1, …, num_updates=1000, lr=…, gnorm=…` and
`train_inner | {"loss": "3.1", "num_updates": "1000", …}`; where neither is there, the epochs' own lines, `epoch 022 | loss 3.88 |
… | num_updates 5586` and `train | {"epoch": 1, "train_loss": "11.0", …}`.

`loss=1.33 (1.45)` is the current value and its mean; gnorm is a running mean; JSON values are strings. Metaseq's
`gnorm_layer12` columns are per layer. Known from source code and from excerpts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import polars as pl

from gdiag.ingesters import console, fields, glued, json_events
from gdiag.ingesters import text as plain
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "fairseq"
_SNIFF: Final = re.compile(
    rb"epoch \d+:?\s+\d+ / \d+ [^\n]*?loss=[-\d.n]+|train_inner \| \{[^\n]*\"(?:loss|num_updates)\"|\| valid on '\w+' subset \| (?:valid_)?loss"
    rb"|epoch \d+ \| loss [-\d.n][^\n]*\| num_updates \d|\| train \| \{\"epoch\": \d[^\n]*\"train_loss\""
)
_NUMBER: Final = re.compile(plain.NUMBER)
_STARTS: Final = glued.Starts(r"epoch \d+:?\s+\d+ / \d+ ", ", ", ("epoch", "at", "of"))
_PACE: Final = "seconds per update"
_NAMES: Final = {
    _PACE: "step_time",
    "gnorm": "grad_norm",
    "train_wall": "seconds since the last line",
    "wall": "elapsed",
    "wps": "tokens_per_s",
    "bsz": "batch_size",
}


def recognise(given: Input) -> float:
    """By its training and validation lines."""
    return console.recognise_by(given, _SNIFF, (b"epoch ", b"train_inner", b"| valid on", b"| train | {"))


def read(given: Input, options: Options) -> Reading:
    """Training rows of either form, validation rows of their own."""
    table = console.lines_of(given)
    steps = _with_step(console.lines_with(table, "epoch ", ("loss=", " / ")))
    got = fields.read(steps, ", ", ends=given.data().endswith((b"\n", b"\r")), shape=r"\d+, ")
    parts = [_numbered(got.wide, options), _json_rows(table, options, "train_inner")]
    if not any(map(len, parts)):
        parts = [_epochs(table, options), _json_rows(table, options, "train")]
    parts = [part for part in (*parts, _valid(table), _json_valid(table)) if len(part)]
    wide = pl.concat(parts, how="diagonal_relaxed").sort("line", maintain_order=True) if parts else got.wide.clear()
    wide, said = _paced(wide)
    left = got.left.filter(pl.col("text").str.contains(r"^\d+, "))
    found = Found(table, wide, console.damaged(left, "epoch "), console.line_notes(got))
    names = {**_NAMES, "loss": "loss"}
    return console.finish(
        given,
        options,
        FORMAT,
        found,
        rename=names,
        notes=(*(("gnorm is a running mean",) if "gnorm" in wide.columns else ()), *said),
    )


def _paced(wide: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The rows with the time of an update from words and words a second, which have more digits than updates a second.

    Before its first update a meter says 0: nothing is measured yet.
    """
    meters = [name for name in ("wps", "ups") if name in wide.columns]
    wide = wide.with_columns(pl.when(pl.col(name) > 0).then(pl.col(name)) for name in meters)
    if not {"wps", "wpb"} <= set(wide.columns):
        return wide, ()
    wide = wide.with_columns((pl.col("wpb") / pl.col("wps")).alias(_PACE)).drop("ups", strict=False)
    return wide, ("step_time is wpb / wps",)


def _with_step(lines: pl.DataFrame) -> pl.DataFrame:
    """`epoch 2:  430 / 614 loss=…` lines as `1044, loss=…`: the position in the run, then the fields; `prefix` before them."""
    lines = glued.apart(lines, _STARTS, "epoch ")
    cut = pl.col("text").str.splitn("epoch ", 2).struct.rename_fields(["prefix", "text"]).alias("c")
    groups = pl.col("text").str.extract_groups(r"^(\d+):?\s+(\d+) / (\d+) (.*)$").alias("g")
    parts = lines.select("line", cut).unnest("c").select("line", "prefix", groups).unnest("g")
    epoch, at, length = (pl.col(c).cast(pl.Int64, strict=False) for c in ("1", "2", "3"))
    position = ((epoch - 1) * length + at).cast(pl.String)
    return parts.select(
        "line", "prefix", (position + ", epoch=" + epoch.cast(pl.String) + ", " + pl.col("4")).alias("text")
    ).drop_nulls("text")


def _numbered(wide: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Rows of `key=value` lines; the step is num_updates where it is said."""
    if "num_updates" in wide.columns:
        wide = wide.with_columns(pl.coalesce("num_updates", "step").alias("step")).drop("num_updates")
    return console.with_prefix(wide, options) if len(wide) else wide


def _epochs(table: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Rows of `epoch 022 | loss 3.88 | … | num_updates 5586 | …` lines."""
    lines = console.lines_with(table, "epoch ", (" | loss ", "num_updates "))
    lines = lines.filter(~pl.col("text").str.contains("valid", literal=True))
    cut = pl.col("text").str.splitn("epoch ", 2).struct.rename_fields(["prefix", "text"]).alias("c")
    lines = lines.select("line", cut).unnest("c")
    step = pl.col("text").str.extract(r"num_updates (\d+)")
    fields_of = pl.col("text").str.extract(r"^\d+ \| (.*)$")
    lines = lines.with_columns(pl.concat_str(step, pl.lit(" | "), fields_of).alias("text")).drop_nulls("text")
    wide = fields.read(lines, " | ", shape=r"\d+ \| ").wide.drop("num_updates", strict=False)
    return console.with_prefix(wide, options) if len(wide) else wide


def _events(table: pl.DataFrame, word: str) -> Iterator[tuple[int, str, dict[str, float]]]:
    """Line, what stands before, and the numbers of every `word | {…}` line, without the word in their names."""
    for line, whole in console.lines_with(table, f"{word} | {{").iter_rows():
        prefix, *events = whole.split(f"{word} | ")
        for text in events:
            try:
                event, end = json_events.decoded(text)
            except (ValueError, RecursionError):
                continue
            if not isinstance(event, dict):
                continue
            yield (
                line,
                prefix,
                {
                    str(k).removeprefix(f"{word}_"): float(v)
                    for k, v in event.items()
                    if isinstance(v, int | float | str) and _NUMBER.fullmatch(str(v))
                },
            )
            prefix = text[end:]


def _json_valid(table: pl.DataFrame) -> pl.DataFrame:
    rows = [
        {"line": line, "step": int(row["num_updates"]), "eval_loss": row["loss"]}
        for line, _, row in _events(table, "valid")
        if {"num_updates", "loss"} <= row.keys()
    ]
    return pl.DataFrame(rows, schema={"line": pl.Int64, "step": pl.Int64, "eval_loss": pl.Float64})


def _json_rows(table: pl.DataFrame, options: Options, word: str) -> pl.DataFrame:
    rows: list[dict[str, float | str]] = []
    for line, prefix, row in _events(table, word):
        if "num_updates" in row:
            step = row.pop("num_updates")
            rows.append({"line": line, "prefix": prefix, "step": step, **row})
    if not rows:
        return pl.DataFrame(schema={"line": pl.Int64})
    names = dict.fromkeys(name for row in rows for name in row)
    types: dict[str, type[pl.DataType]] = {"line": pl.Int64, "prefix": pl.String}
    wide = pl.DataFrame(rows, schema={n: types.get(n, pl.Float64) for n in names})
    layers = {n: f"grad_norm/layers.{m[1]}" for n in names if (m := re.fullmatch(r"gnorm_layer(\d+)", n))}
    return console.with_prefix(wide.rename(layers), options)


def _valid(table: pl.DataFrame) -> pl.DataFrame:
    lines = table.filter(
        pl.col("text").str.contains("valid on ", literal=True)
        & pl.col("text").str.contains("num_updates", literal=True)
    )
    return lines.select(
        "line",
        pl.col("text").str.extract(r"num_updates (\d+)").cast(pl.Int64, strict=False).alias("step"),
        pl.col("text").str.extract(r"\| (?:valid_)?loss ([-\w.]+)").cast(pl.Float64, strict=False).alias("eval_loss"),
    ).drop_nulls()
