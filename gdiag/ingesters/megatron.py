"""Consoles of the Megatron family: Megatron-LM, Megatron-DeepSpeed, GPT-NeoX, Megatron-Bridge.

`iteration 100/ 500 | consumed samples: … | elapsed time per iteration (ms): … | lm loss: 2.1E+00 | … |`; times in ms or s by
their label; argonne's `iteration= 100/ 500 | lm loss=2.1 | …`. Quirks that the reader undoes:

- `lm loss` is left out when its mean is NaN or not positive (training.py prints it `if avg > 0.0`): a line that lacks it
  beside lines that have it means a non-finite loss, unless every step since the last line was skipped.
- `grad norm` keeps its old value on such lines: it is then not logged.
- launchers cut a line and go on in the next one behind a repeated prefix; two lines may be glued.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from gdiag.ingesters import console
from gdiag.ingesters import text as plain
from gdiag.ingesters.console import Grammar
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.values import whole

FORMAT: Final = "megatron"
_START: Final = r"iteration[=:]?\s*\d+\s*/\s*\d+\s*\|"
_GRAMMAR: Final = Grammar(
    format=FORMAT,
    sniff=re.compile(rb"iteration[=:]?\s*\d+\s*/\s*\d+\s*\|[^\n]*\|"),
    marker="iteration",
    shape=r"[=:]?\s*\d+\s*/\s*\d+\s*\|",
    separator=" | ",
    needs=("|",),
    beside="validation loss at",
    rename={"lm loss": "loss", "lm_loss": "loss", "grad norm": "grad_norm", "samples/sec": "samples per second"},
    drop=("throughput per GPU (TFLOP/s/GPU)",),
)
_LOSSES: Final = ("lm loss", "lm_loss", "loss", "sop loss", "mlm loss")
_NORMS: Final = ("grad norm", "grad_norm")
_SKIPPED: Final = ("number of skipped iterations", "number_of_skipped_iterations")
_NANS: Final = ("number of nan iterations", "number_of_nan_iterations")
_EVAL: Final = re.compile(
    r"validation loss at (?:iteration (\d+)|the end of training).*?loss value:\s*(\S+)", re.IGNORECASE
)


def recognise(given: Input) -> float:
    """By step lines: an iteration of a total, then fields between bars."""
    return console.recognise(given, _GRAMMAR)


def read(given: Input, options: Options) -> Reading:
    """A Megatron console, with validation losses as rows of their own."""
    found = console.find(given, options, _GRAMMAR)
    broken = _broken(found)
    whole = _mended(given, broken) if broken else given
    if whole is not given:
        found = console.find(whole, options, _GRAMMAR)
    wide = _absent_loss(found.wide)
    evaluations = found.table.filter(pl.col("text").str.contains(_GRAMMAR.beside, literal=True))
    found = replace(found, wide=_with_validation(wide, evaluations))
    return console.finish(whole, options, FORMAT, found, rename=_GRAMMAR.rename)


def _broken(found: console.Found) -> list[int]:
    """Lines that were not read as others are and stop before the last bar."""
    start = re.compile(_START)
    odd = found.table.filter(pl.col("line").is_in(found.odd)).unique("line", keep="first", maintain_order=True)
    return [line for line, text in odd.select("line", "text").iter_rows() if start.search(text) and not _closed(text)]


def _mended(given: Input, broken: Sequence[int]) -> Input:
    """Cut step lines together with what follows of them; line numbers stay as they were."""
    lines = plain.clean(given.data()).decode("utf-8", errors="replace").split("\n")
    start = re.compile(_START)
    changed = False
    for index in (number - 1 for number in broken):
        line = lines[index]
        if _closed(line) or index + 1 >= len(lines):
            continue
        rest = plain.peel(lines[index + 1])[1]
        if not start.search(rest) and _closed(rest) and ": " in rest and len(rest) < 4000:
            changed = True
            lines[index], lines[index + 1] = line + rest, ""
    return replace(given, content="\n".join(lines).encode()) if changed else given


def _closed(text: str) -> bool:
    return text.rstrip().endswith("|")


def _first(wide: pl.DataFrame, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in wide.columns), None)


def _absent_loss(wide: pl.DataFrame) -> pl.DataFrame:
    """Lines without `lm loss` as NaN or as skipped; repeated grad norms on them as not logged."""
    loss, norm = _first(wide, _LOSSES), _first(wide, _NORMS)
    skipped, nans = _first(wide, _SKIPPED), _first(wide, _NANS)
    if loss is None or wide[loss].null_count() == 0 or (skipped is None and nans is None):
        return wide
    whole = pl.col(
        skipped or nans or ""
    ).is_not_null()  # the counters stand behind the loss: the line is not cut before it
    interval = (pl.col("step") - pl.col("step").shift()).clip(1, None).fill_null(1)
    all_skipped = (pl.col(skipped) >= interval) if skipped else pl.lit(False)
    nan_seen = (pl.col(nans) > 0) if nans else pl.lit(False)
    absent = pl.col(loss).is_null() & whole
    wide = wide.with_columns(
        pl.when(absent & (~all_skipped | nan_seen)).then(float("nan")).otherwise(pl.col(loss)).alias(loss)
    )
    if norm is None:
        return wide
    stale = (pl.col(loss).is_nan() | absent).fill_null(True) & (pl.col(norm) == pl.col(norm).shift())
    return wide.with_columns(pl.when(stale).then(None).otherwise(pl.col(norm)).alias(norm))


def _with_validation(wide: pl.DataFrame, evaluations: pl.DataFrame) -> pl.DataFrame:
    """`wide` with a row for each of the lines (`line`, `text`) that say a validation loss."""
    rows: list[tuple[int, int, float]] = []
    last = int(str(wide["step"].max())) if len(wide) else 0
    for line, text in evaluations.iter_rows():
        said = _EVAL.search(text)
        number = said and re.match(plain.NUMBER, said[2])
        step = whole(said[1]) if said and said[1] else last
        if number and step is not None:
            rows.append((line, step, float(number[0].replace(",", ""))))
    if not rows:
        return wide
    schema = {"line": pl.Int64, "step": pl.Int64, "eval_loss": pl.Float64}
    extra = pl.DataFrame(rows, schema=schema, orient="row")
    return pl.concat([wide, extra], how="diagonal").sort("line", maintain_order=True)
