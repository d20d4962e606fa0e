"""Avalanche's consoles of continual learning: `Epoch 3 ended.`, then `Loss_Epoch/train_phase/train_stream/Task000 = 0.82`.

Epochs begin again with every experience and are counted on over the training; the evaluation of all experiences behind one stands
at its last epoch (logging/text_logging.py, interactive_logging.py). Losses are means over the epoch.
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

FORMAT: Final = "avalanche"
_MARK: Final = b"_phase/"
_SNIFF: Final = re.compile(rb"Epoch \d+ ended\.\s*\n(?:[^\n]*\n){0,40}?[^\n]*Loss_Epoch/train_phase/\S+ = \S")
_LINE: Final = re.compile(
    r"(?P<before>.*?)Epoch (?P<epoch>\d{1,9}) ended\.\s*$|-- >> Start of (?P<begun>eval) phase << --"
    r"|-- Starting training on (?:experience|step) (?P<experience>\d{1,9})\b"
    rf"|(?P<name>Loss_Epoch|Top1_Acc_Epoch|Loss_Stream|Loss_Exp)/(?P<phase>train|eval)_phase/\S+ = (?P<value>{plain.NUMBER})\s*$"
)
_WORTH: Final = r"Epoch \d+ ended\.|-- >> Start of eval|-- Starting training on |_phase/"
_TRAINED: Final = {"Loss_Epoch": "loss", "Top1_Acc_Epoch": "accuracy"}


def recognise(given: Input) -> float:
    """By an epoch's end with its loss below it."""
    return console.recognise_by(given, _SNIFF, (_MARK,))


def read(given: Input, options: Options) -> Reading:
    """A row an epoch, and one an evaluation.

    Raises:
        InputError: no epoch has a loss.
    """
    table = console.lines_of(given)
    epochs: list[dict[str, int | float | str]] = []
    evaluations: list[tuple[int, int, dict[str, list[float]]]] = []
    experiences: set[str] = set()
    used: list[int] = []
    for line, text in table.filter(pl.col("text").str.contains(_WORTH)).iter_rows():
        told = _LINE.search(text)
        if told is None:
            continue
        if told["epoch"]:
            epochs.append({"line": line, "prefix": told["before"], "step": len(epochs) + 1})
        elif told["begun"]:
            evaluations.append((line, len(epochs), {}))
        elif told["experience"]:
            experiences.add(told["experience"])
        elif told["phase"] == "train" and epochs and told["name"] in _TRAINED:
            epochs[-1].setdefault(_TRAINED[told["name"]], float(told["value"]))
        elif told["phase"] == "eval" and evaluations:
            evaluations[-1][2].setdefault(told["name"], []).append(float(told["value"]))
        if told["value"]:
            used.append(line)
    if not any("loss" in row for row in epochs):
        raise InputError(f"{given.path} has no epoch of Avalanche's with a loss")
    types = {"line": pl.Int64, "prefix": pl.String, "step": pl.Int64, "loss": pl.Float64, "accuracy": pl.Float64}
    train = console.with_prefix(
        pl.DataFrame(epochs, schema={n: t for n, t in types.items() if any(n in r for r in epochs)}), options
    )
    found = [(line, step, loss) for line, step, losses in evaluations if step and (loss := _mean(losses)) is not None]
    schema = {"line": pl.Int64, "step": pl.Int64, "eval_loss": pl.Float64}
    wide = pl.concat([train, pl.DataFrame(found, schema=schema, orient="row")], how="diagonal_relaxed")
    notes = ["epochs of all experiences are counted on" + f": {len(experiences)} experiences" * (len(experiences) > 1)]
    quiet = table.filter(~pl.col("line").is_in(used))
    return console.finish(
        given, options, FORMAT, Found(quiet, wide.sort("line", maintain_order=True), console.no_rejects(), tuple(notes))
    )


def _mean(losses: dict[str, list[float]]) -> float | None:
    """The loss of an evaluation: of the whole stream, else the mean of its experiences."""
    values = losses.get("Loss_Stream", [])[:1] or losses.get("Loss_Exp", [])
    return sum(values) / len(values) if values else None
