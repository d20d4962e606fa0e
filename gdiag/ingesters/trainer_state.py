"""Hugging Face `trainer_state.json`: the log history of a Trainer, as far as the file goes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import columns, flat, json_mending, values
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.model import Value

FORMAT = "trainer-state"
_DECODER: Final = json.JSONDecoder()
_CONFIG: Final = {
    "max_steps": "total_steps", "train_batch_size": "device_batch_size", "num_train_epochs": "epochs", "logging_steps": "log_interval",
    "eval_steps": "eval_interval", "save_steps": "checkpoint_interval",
}  # fmt: skip


def recognise(given: Input) -> float:
    """An object with a `log_history`."""
    return 0.95 if given.head.lstrip()[:1] == b"{" and b'"log_history"' in given.head else 0.0


def read(given: Input, options: Options) -> Reading:
    """Every entry of the history; the last one with the run's totals is no step.

    Raises:
        InputError: the history is empty.
    """
    text = given.data().decode("utf-8", errors="replace")
    start = text.index('"log_history"')
    position = text.find("[", start) + 1
    rows, lines = [], []
    line, counted = 1, 0
    cut = False
    bad: list[json_mending.Bad] = []
    while True:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        if position >= len(text) or text[position] != "{":
            cut = position >= len(text)
            break
        line += text.count("\n", counted, position)
        counted = position
        try:
            record, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            if (end := json_mending.past_row(text, position)) is None:
                cut = True
                break
            bad.append((line, "damaged entry of the history", values.escape(text[position:end])))
            position = end
            continue
        cells = flat.flatten(record)
        if "train_runtime" not in cells:
            rows.append(cells)
            lines.append(line)
    if not rows:
        raise InputError(f"{given.path} is a trainer state without logged steps")
    frame = flat.to_frame(rows, lines)
    notes = ["losses are means since the log before"]
    if cut:
        notes.append(f"the file is cut off: {len(rows)} entries before the cut are used")
    trained = int(frame["loss"].count()) if "loss" in frame.columns else 0
    if trained < len(rows):
        notes.append(f"{len(rows) - trained} entries without a training loss (evaluation)")
    schema = {"line": pl.Int64, "reason": pl.String, "text": pl.String}
    rejects = pl.DataFrame(bad, schema=schema, orient="row") if bad else None
    got = columns.reading(given.path, FORMAT, frame, options, notes=notes, rows=trained or len(rows), rejects=rejects)
    return replace(got, config={**got.config, **_config(text, start)})


def _config(text: str, history: int) -> dict[str, Value]:
    """Plain numbers that stand beside the history."""
    around = text[:history] + text[-4096:]
    found: dict[str, Value] = {}
    for key, canonical in _CONFIG.items():
        matched = re.search(rf'"{key}": (\d+(?:\.\d+)?)', around)
        if matched and float(matched.group(1)) > 0:
            found[canonical] = float(matched.group(1)) if "." in matched.group(1) else int(matched.group(1))
    return found
