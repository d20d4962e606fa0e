"""JSONL: one JSON object a line, as most trainers write it."""

from __future__ import annotations

import json

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import columns, flat
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.values import escape

FORMAT = "jsonl"


def recognise(given: Input) -> float:
    """Some of the first lines are JSON objects."""
    lines = [line for line in given.head.splitlines()[:50] if line.strip()]
    objects = sum(line.lstrip().startswith(b"{") and b":" in line for line in lines)
    return 0.5 if objects and objects >= 0.3 * len(lines) else 0.0


def read(given: Input, options: Options) -> Reading:
    """Every object, flattened.

    Raises:
        InputError: the rows hold no training metric.
    """
    rows, lines, bad = [], [], []
    for number, line in enumerate(given.data().split(b"\n"), 1):
        if not line.strip():
            continue
        text = line.decode("utf-8", errors="replace")
        try:
            record = json.loads(text)
            if not isinstance(record, dict):
                raise ValueError("no object")
            rows.append(flat.flatten(record))
            lines.append(number)
        except (ValueError, RecursionError) as error:
            bad.append((number, f"no JSON object: {error}", escape(text)))
    frame = flat.to_frame(rows, lines)
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
            f"{given.path} holds JSON rows without a step, loss, gradient norm, learning rate or step time: no training log"
        )
    rejects = pl.DataFrame(bad, schema={"line": pl.Int64, "reason": pl.String, "text": pl.String}, orient="row")
    return columns.reading(given.path, FORMAT, frame, options, rejects=rejects)
