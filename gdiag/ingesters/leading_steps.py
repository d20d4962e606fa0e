"""Consoles of unknown programs whose lines begin with a bare step: `100 | loss 2.3 | lr 1e-4`, `[100 | 1.5] loss=2.3`.

A number says that it is a step only by rising from line to line, so a metric whose name is known has to stand behind it.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import console, fields, glued, tokens
from gdiag.ingesters import text as plain
from gdiag.ingesters.aliases import claim
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "leading-steps"
_LINE: Final = re.compile(r"^\s*[\[(]?\s*(\d{1,15})(?:\s*/\s*\d+)?\s*(?:[\])|:,;]|\s)\s*\S")
_BEGIN: Final = re.compile(r"^\s*\d{1,15}(\s?[|:,;]?\s*[A-Za-z][A-Za-z_ -]*[:= ]*)(?=[-+.\d]|nan|inf)", re.IGNORECASE)
"""A step and what stands before the first number behind it."""
_COLON: Final = re.compile(r"^\s*\d{1,15}:\s")
_SAID: Final = re.compile(r"(?:step|iter(?:ation)?|epoch|update|batch)s?[^\n\w]{0,16}\d", re.IGNORECASE)
"""Lines that name their step are read by the reader of such lines."""
_LOOK: Final = 1000
_KNOWN: Final = frozenset({"loss", "eval_loss", "grad_norm", "lr"})


def recognise(given: Input) -> float:
    """Lines that begin with a number which rises, and hold a known metric."""
    if console.is_binary(given):
        return 0.0
    lines = [line for line in console.sample(given).decode("utf-8", "replace").split("\n")[:_LOOK] if line.strip()]
    steps = [int(step) for line in lines if (step := _step(_parted(line[:4000])[1])) is not None]
    rising = sum(a < b for a, b in pairwise(steps))
    if len(steps) < 3 or rising < 0.9 * (len(steps) - 1) or len(steps) < 0.05 * len(lines):
        return 0.0
    return 0.24


def read(given: Input, options: Options) -> Reading:
    """A row per line that begins with a step.

    Raises:
        InputError: no such line.
    """
    table = console.lines_of(given)
    rows = [
        (line, prefix, message)
        for line, text in table.iter_rows()
        for prefix, message in [_parted(text)]
        if _LINE.match(message)
    ]
    lines = pl.DataFrame(rows, schema={"line": pl.Int64, "prefix": pl.String, "text": pl.String}, orient="row")
    if len(lines) and (begin := _BEGIN.match(lines["text"][0])) is not None:
        starts = glued.Starts(r"\d{1,15}" + re.escape(begin[1]), None, ("step",))
        lines = glued.apart(lines, starts, begin[1])
    got = fields.read(lines, ends=given.data().endswith((b"\n", b"\r")), shape=r"\s*[\[(]?\s*\d")
    known = [name for name in fields.names_of(got.wide) if _canonical(name) in _KNOWN]
    wide = got.wide.filter(pl.any_horizontal(False, pl.col(known).is_not_null()))
    if len(wide) < 3:
        raise InputError(f"{given.path} has no repeating line with a step and a number")
    note = f"console of an unknown program: {len(wide):,} lines begin with a number that is taken for the step"
    found = Found(table, console.with_prefix(wide, options), console.no_rejects(), (note, *console.line_notes(got)))
    return console.finish(given, options, FORMAT, found)


def _parted(text: str) -> tuple[str, str]:
    """Prefix and message; the number in `100: loss 2.3` is no launcher's rank."""
    prefix, message = plain.peel(text)
    return ("", text) if _COLON.match(text) and not _LINE.match(message) else (prefix, message)


def _step(message: str) -> str | None:
    """The number that a line begins with, where a known metric stands behind it."""
    match = _LINE.match(message)
    if match is None or _SAID.search(message):
        return None
    names = [name for name, _ in tokens.pairs(message, None, ("step",))][1:]
    return match[1] if any(_canonical(name) in _KNOWN for name in names) else None


def _canonical(name: str) -> str:
    found = claim(name)
    return "" if found is None else found.canonical
