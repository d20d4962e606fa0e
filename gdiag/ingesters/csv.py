"""CSV and TSV with a header: one row per logged step."""

from __future__ import annotations

import io

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import columns
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT = "csv"


def recognise(given: Input) -> float:
    """A first line of names and a second of cells with the same separator."""
    lines = given.head.splitlines()[:3]
    if len(lines) < 2 or lines[0].lstrip()[:1] in (b"{", b"["):
        return 0.0
    return (
        0.4
        if any(lines[0].count(sep) and lines[0].count(sep) == lines[1].count(sep) for sep in (b",", b";", b"\t"))
        else 0.0
    )


def read(given: Input, options: Options) -> Reading:
    """Every row.

    Raises:
        InputError: the columns hold no training metric.
    """
    first = given.head.splitlines()[0]
    separator = max((b",", b";", b"\t"), key=first.count).decode()
    frame = pl.read_csv(io.BytesIO(given.data()), separator=separator, infer_schema=False)
    frame = frame.rename({name: name.strip() for name in frame.columns})
    if not columns.known(frame.columns, options) & {
        "loss",
        "eval_loss",
        "grad_norm",
        "step",
        "lr",
        "step_time",
        "layers",
    }:
        raise InputError(
            f"{given.path} is a table without a step, loss, gradient norm, learning rate or step time: no training log"
        )
    frame = frame.with_columns(line=pl.int_range(2, pl.len() + 2))
    return columns.reading(given.path, FORMAT, frame, options)
