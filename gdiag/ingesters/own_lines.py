"""Consoles in which a library's lines bear no loss and the program's own lines between them do."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import joining
from gdiag.ingesters.reading import Input, Reading

_LINES: Final = {
    "mllog": re.compile(rb"(?m)^[^\n]*:::MLLOG[^\n]*"),
    "deepspeed": re.compile(rb"(?m)^[^\n]*(?:\] step=\d+, skipped=|CurrSamplesPerSec=|\[deepspeed\] OVERFLOW)[^\n]*"),
}
FORMATS: Final = frozenset(_LINES)
_LOSS_WORD: Final = re.compile(rb"(?i)loss|nll|entropy|xent")
_ENGINE: Final = b", skipped="
_ENGINE_TELLS: Final = ("lr", "skipped", "loss_scale", "batch_size")
_KEYS: Final = ("line", "run", "rank", "step", "time")
_SAME: Final = 0.5
"""Share of the steps of the shorter series that are in both where they count the same."""


def has_loss(reading: Reading) -> bool:
    """Whether it holds a training loss."""
    return reading.steps is not None and "loss" in reading.steps.columns and bool(reading.steps["loss"].count())


def without(given: Input, kind: str) -> Input:
    """The file with blank lines for those of the library, so that all others keep their numbers."""
    data = _LINES[kind].sub(b"", given.data())
    return replace(given, head=data[: len(given.head)], content=data)


def may_tell_loss(rest: Input) -> bool:
    """Whether a word for a loss stands anywhere in the lines: where none does, they need not be read."""
    return _LOSS_WORD.search(rest.data()) is not None


def together(library: Reading, own: Reading | None) -> Reading:
    """What both say; the library's alone where the program's own lines hold no loss either.

    Raises:
        InputError: neither holds a row.
    """
    if own is None or not has_loss(own) or own.steps is None:
        if library.steps is None and not library.source.rows:
            raise InputError(
                f"{library.source.path} is a console log ({library.source.format}) without a readable step line"
            )
        return library
    notes = [note for note in library.source.notes if note != "the step lines bear no training loss"]
    said = f"losses are those that the program prints between its {library.source.format} lines, which bear none"
    config = {**own.config, **{key: value for key, value in library.config.items() if key != "step_unit"}}
    ended = library.exit if library.exit != "unknown" else own.exit
    steps, columns = own.steps, own.source.columns
    if library.source.format != "mllog" and library.steps is not None and _same_steps(library, own):
        steps, _ = joining.completed(own.steps, library.steps)
        columns = {**library.source.columns, **columns}
    elif library.source.format != "mllog":
        said += "; they stand at other steps, and the library's lines are not used"
    source = replace(
        own.source,
        columns=columns,
        rows=own.source.rows + (library.source.rows if steps is not own.steps else 0),
        notes=(*own.source.notes, *(notes if steps is not own.steps else ()), said),
    )
    events = own.events if library.source.format == "mllog" or library.events is None else library.events
    return replace(own, source=source, steps=steps, config=config, exit=ended, events=events)


def of_engine(given: Input, reading: Reading) -> bool:
    """Whether lines of DeepSpeed's engine stand among those of a console that bear the losses."""
    return (
        reading.source.format not in FORMATS
        and has_loss(reading)
        and _ENGINE in given.sample()
        and b"lr=[" in given.sample()
    )


def completed(own: Reading, engine: Reading) -> Reading:
    """A console's reading with the rate, the skipped steps and the loss scale that DeepSpeed's lines among it tell."""
    if own.steps is None or engine.steps is None or not _same_steps(engine, own):
        said = "DeepSpeed's lines stand at other steps than those that bear the losses, and are not used"
        return replace(own, source=replace(own.source, notes=(*own.source.notes, said)))
    told = engine.steps.select(name for name in (*_KEYS, *_ENGINE_TELLS) if name in engine.steps.columns)
    lacking = [n for n in told.columns if n in _ENGINE_TELLS and not (n in own.steps.columns and own.steps[n].count())]
    if not lacking:
        return own
    told = told.select(*(n for n in _KEYS if n in told.columns), *lacking)
    steps, _ = joining.completed(own.steps, told.filter(pl.any_horizontal(pl.col(lacking).is_not_null())))
    columns = {n: name for n, name in engine.source.columns.items() if n in lacking}
    note = f"{', '.join(lacking)} from DeepSpeed's lines among the others"
    source = replace(own.source, columns=own.source.columns | columns, notes=(*own.source.notes, note))
    return replace(own, source=source, steps=steps)


def _same_steps(one: Reading, other: Reading) -> bool:
    """Whether two series count the same steps, of one run each."""
    if one.steps is None or other.steps is None or one.steps["run"].count() or other.steps["run"].count():
        return False
    a, b = set(one.steps["step"].drop_nulls()), set(other.steps["step"].drop_nulls())
    return bool(a and b) and len(a & b) >= _SAME * min(len(a), len(b))
