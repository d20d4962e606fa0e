"""Dicts that Hugging Face trainers print: `{'loss': 2.1, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.1}`.

transformers, TRL, axolotl, unsloth. The dicts stand behind carriage returns and progress bars; newer versions quote the
values. They bear no step: it is taken from the progress bar before them (`50/1000 [`), else from the epoch, else
the dicts are numbered. `loss` is the mean since the last dict; a NaN loss may be printed as 0.0 beside a NaN grad norm
(logging_nan_inf_filter).
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import console
from gdiag.ingesters import text as plain
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "hf-console"
_SNIFF: Final = re.compile(
    rb"\{'(?:loss|eval_loss|train_loss|train_runtime|rewards?)[^'\n]*': [^\n{}]*'(?:epoch|learning_rate)': [^\n{}]*\}"
    rb"|\{'[^\n{}]*'[\w/]*loss': [^\n{}]*'step': [^\n{}]*\}|\{'(?:global_)?step': [^\n{}]*'[\w/]*loss': [^\n{}]*\}"
)
_PARTS: Final = re.compile(r"\{'[\w/ .-]+':[^{}]*\}?|(?:^|[\s|}])(?P<at>\d+)/(?P<of>\d+) \[")
"""A dict, or the place that a progress bar shows."""
_PAIR: Final = re.compile(rf"""'([\w/ .()-]+)':\s*(?:'\s*)?\[?({plain.NUMBER})\]?'?\s*(?=[,}}])""")

_PLACE: Final = re.compile(r"'global_step/max_steps':\s*'(\d{1,15})/(\d{1,15})'")


def recognise(given: Input) -> float:
    """By its dicts."""
    count = console.matches(
        given, _SNIFF, (b"{'loss':", b"{'eval_", b"{'train_", b"{'reward", b"'step': ", b"'global_step': ")
    )
    return 0.97 if count > 1 else 0.5 if count else 0.0


def read(given: Input, options: Options) -> Reading:
    """One row per dict; summaries of the whole run are left out.

    Raises:
        InputError: fewer than two dicts, which make no series.
    """
    table = console.lines_of(given)
    rows: list[dict[str, float]] = []
    bad: list[dict[str, object]] = []
    at, total = None, 0
    busy = pl.col("text").str.contains("{'", literal=True) | pl.col("text").str.contains(r"\d/\d+ \[")
    for line, text in table.filter(busy).iter_rows():
        for match in _PARTS.finditer(text):
            if match["at"]:
                at, total = int(match["at"][:15]), int(match["of"][:15])
                continue
            values = {k.strip(): float(v.replace(",", "")) for k, v in _PAIR.findall(match[0])}
            if "epoch" not in values and "loss" not in values and "eval_loss" not in values:
                if "'loss'" in match[0]:
                    bad.append(
                        {"line": line, "reason": "a dict without a readable value", "text": plain.redact(match[0], 200)}
                    )
                continue
            if "train_runtime" in values:
                continue
            if (place := _PLACE.search(match[0])) is not None:  # ms-swift
                values["step"], total = float(place[1]), int(place[2])
            rows.append({"line": line, **({"bar": at} if at is not None else {}), **values})
    train = [row for row in rows if "loss" in row or "eval_loss" in row]
    if len(train) < 2:
        raise InputError(
            f"{given.path} is a console log of a trainer with {len(train) or 'no'} logged value: no series to read"
        )
    names = dict.fromkeys(name for row in rows for name in row)
    wide = pl.DataFrame(rows, schema={n: pl.Int64 if n in ("line", "bar") else pl.Float64 for n in names})
    wide, notes = _steps(wide, total)
    rejects = pl.DataFrame(bad, schema=console.no_rejects().schema)
    done = table.filter(pl.col("text").str.contains("'train_runtime'", literal=True))
    found = Found(
        table,
        wide,
        rejects,
        (*notes, "loss is the mean since the dict before"),
        {"total_steps": total} if total else {},
        len(done) > 0,
    )
    return console.finish(given, options, FORMAT, found)


def _steps(wide: pl.DataFrame, total: int) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """`step` from the progress bar, the epoch, or the dict's number."""
    if "step" in wide.columns and not wide["step"].null_count():
        return wide.drop("bar", strict=False), ()
    train = wide.filter(pl.col("loss").is_not_null()) if "loss" in wide.columns else wide
    bars = train["bar"].drop_nulls() if "bar" in wide.columns else pl.Series([], dtype=pl.Int64)
    if (
        len(bars) >= 0.9 * len(train)
        and bars.n_unique() >= 0.9 * len(bars)
        and (bars.diff().drop_nulls() >= 0).mean() == 1.0
    ):
        return wide.with_columns(pl.col("bar").forward_fill().backward_fill().alias("step")).drop("bar"), ()
    wide = wide.drop("bar", strict=False)
    is_train = pl.col("loss").is_not_null() if "loss" in wide.columns else pl.col("line").is_not_null()
    numbered = is_train.cum_sum().cast(pl.Int64)
    epochs = train["epoch"].drop_nulls() if "epoch" in train.columns else pl.Series([], dtype=pl.Float64)
    top = epochs.max() if len(epochs) else None
    if (
        total
        and isinstance(top, float)
        and top > 0
        and epochs.n_unique() > 0.5 * len(epochs)
        and (epochs.diff().drop_nulls() >= 0).all()
    ):
        guess = round(total / len(train))
        if guess >= 1 and abs(guess * len(train) - total) <= guess:
            return wide.with_columns((numbered * guess).alias("step")), (
                f"the dicts bear no step: one every {guess} of {total} steps",
            )
    return wide.with_columns(numbered.alias("step")), ("the dicts bear no step: they are numbered from 1",)
