"""Runs that stand one after the other in one file: appended with `>>`, by a logger that opens its file again, or by hand.

A resume goes back a little and goes on with the loss it had; another run begins at its own beginning. So a step that falls
back to the start begins a run where the loss is back at its first level too, or, where the loss cannot tell, where most of
what stood above the first step stands there again. All else is a restart of one run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from gdiag.ingesters import counters, epoch_steps, evidence, loss_levels
from gdiag.ingesters.loss_levels import NEW, ROWS, Verdict
from gdiag.ingesters.reading import Input, Reading
from gdiag.model import Exit

Ints = npt.NDArray[np.int64]
Shapes = Callable[[int, int], set[bytes]]

_LAST: Final = 20
"""Rows below a beginning that tell how the step advances."""
_MOST: Final = 50
"""Places where the step falls back, beyond which a file is not looked at: writers that take turns, or no order."""
_LARGEST: Final = 1 << 28
"""Content whose text between two runs is looked at, B."""
_LINES: Final = 2000
"""Lines looked at above a beginning, …"""
_SEEN: Final = 20_000
"""… and below one."""
_TEXT: Final = 8
"""Characters of a line that can be told again."""
_WORD: Final = re.compile(rb"[A-Za-z]{3}")
_DIGITS: Final = re.compile(
    rb"(?P<counter>\b(?:epoch|round|stage|phase|cycle|iter(?:ation)?|episode|update|pass|task)\W{0,4}\d+)|\d+",
    re.IGNORECASE,
)
"""Numbers; one that counts on within a run is told again only where it is the same."""


@dataclass(frozen=True, slots=True)
class _Begin:
    """A row at which the step falls back to the start."""

    row: int
    before: int
    """Line of the row before it."""
    line: int
    verdict: Verdict


def apart(reading: Reading, given: Input) -> Reading:
    """The reading with its runs told apart, numbered from '1', and a note about each place where one might begin."""
    steps = reading.steps
    if steps is None or steps.height < ROWS + NEW or steps["run"].count():
        return reading
    rows = _leading(steps)
    places = _beginnings(rows["step"].to_numpy())
    if not places:
        return reading
    begins: list[_Begin] = []
    kept: list[_Begin] = []
    shapes = cache(partial(_shapes, cache(partial(_lines, given))))
    step = rows["step"].to_numpy()
    even = _even(step, places)
    for at in places:
        found = _judged(reading, shapes, rows, begins[-1].row if begins else 0, at, even=even)
        (begins if found.verdict == "another" else kept).append(found)
    repeated = any(begin.verdict == "same" for begin in kept)
    if even and not repeated and len(begins) < len(kept) and not _ended(reading.events, [*begins, *kept]):
        lines = [_first_line(steps, begin) for begin in sorted([*begins, *kept], key=lambda begin: begin.row)]
        advance = epoch_steps.usual_advance(step)
        return epoch_steps.counted_by_lines(reading, lines, int(step[places[0] - 1] - step[places].min()) + advance)
    notes = [*reading.source.notes, *map(_said, kept)]
    if not begins:
        return reading if not kept else replace(reading, source=replace(reading.source, notes=tuple(notes)))
    lines = [_first_line(steps, begin) for begin in begins]
    shown = ", ".join(map(str, lines[:5])) + (", …" if len(lines) > 5 else "")
    notes.append(
        f"{len(lines) + 1} runs one after the other, told apart: the step falls back to the start at line {shown}"
    )
    events = None if reading.events is None else _numbered(reading.events, lines)
    layers = None if reading.layers is None else _numbered(reading.layers, lines)
    steps = _numbered(steps, lines)
    exits = _exits(reading.exit, steps, events, len(lines) + 1)
    source = replace(reading.source, notes=tuple(notes))
    return replace(reading, steps=steps, layers=layers, events=events, exits=exits, source=source)


def _said(begin: _Begin) -> str:
    why = {
        "goes on": "the loss does not: the same run, restarted",
        "counted": "epochs, tokens or the rate go on: the same run",
        "same": "the same losses follow: one run, written twice or repeated",
        "unsaid": "nothing tells another run: taken for a restart of the same one",
    }
    return f"line {begin.line}: the step falls back to the start, and {why[begin.verdict]}"


def _leading(steps: pl.DataFrame) -> pl.DataFrame:
    """`line`, `step`, `loss` and counters of the rows that tell of the run: those of no rank, else of the first one; by line."""
    loss = pl.col("loss") if "loss" in steps.columns else pl.lit(None, pl.Float64).alias("loss")
    told = steps.filter(loss.is_not_null()) if "loss" in steps.columns and steps["loss"].count() else steps
    reduced = told.filter(pl.col("rank").is_null())
    one = reduced if reduced.height else told.filter(pl.col("rank") == pl.col("rank").min())
    more = [name for name in counters.COLUMNS if name in one.columns]
    return one.select("line", "step", loss, *more).drop_nulls(["line", "step"]).sort("line", maintain_order=True)


def _beginnings(step: Ints) -> list[int]:
    """Rows at which the step falls back to where a run begins: its first row, or one logging interval behind 0."""
    back = np.flatnonzero(np.diff(step) < 0) + 1
    if not 0 < len(back) <= _MOST:
        return []
    found, start = [], 0
    for at, end in zip(back.tolist(), [*back[1:].tolist(), len(step)], strict=True):
        ahead = np.diff(step[at : min(end, at + _LAST)])
        usual = int(np.quantile(ahead[ahead > 0], 0.5, method="lower")) if (ahead > 0).any() else 1
        # One damaged number is followed by the step that was due.
        if end - at >= NEW and at - start >= ROWS and 0 <= step[at] <= max(1, usual) and ahead[0] <= 2 * usual:
            found.append(at)
            start = at
    return found


def _even(step: Ints, places: list[int]) -> bool:
    """Whether the step begins again several times after the same number, as a loader that is gone through once more makes it."""
    if len(places) < 2 or len(places) < int((np.diff(step) < 0).sum()):
        return False
    usual = epoch_steps.usual_advance(step)
    ends = step[np.array(places) - 1]
    return bool(ends.max() - ends.min() <= usual and step[places[-1] :].max() <= ends.max() + usual)


def _ended(events: pl.DataFrame | None, begins: list[_Begin]) -> bool:
    """Whether the run ended or began before one of the places."""
    if events is None or "line" not in events.columns:
        return False
    told = events.filter(pl.col("kind") != "checkpoint")["line"].drop_nulls()
    return any(bool(((told >= begin.before) & (told <= begin.line)).any()) for begin in begins)


def _judged(reading: Reading, shapes: Shapes, rows: pl.DataFrame, start: int, at: int, *, even: bool) -> _Begin:
    """What follows from row `at` on, held against the run that began at row `start`.

    Args:
        reading: what the file gave.
        shapes: as in _told_again.
        rows: as _leading gives them.
        start: the run's first row.
        at: the row at which the step falls back.
        even: whether the step begins again several times after the same number.
    """
    step, loss, line = (rows[name].to_numpy() for name in ("step", "loss", "line"))
    old, new = slice(start, at), slice(at, None)
    verdict = loss_levels.verdict(step[old], loss[old], step[new], loss[new])
    first, before, here = int(line[start]), int(line[at - 1]), int(line[at])
    if verdict in ("another", "unsaid"):
        verdict = _by_counters(rows[start:at], rows[at:], verdict, even=even)
    if verdict in ("another", "unsaid") and _taken_up(reading.events, first, before, here):
        return _Begin(at, before, here, "goes on")
    if verdict == "unsaid" and _told_again(shapes, int(line[0]), first, before, here):
        verdict = "another"
    return _Begin(at, before, here, verdict)


def _by_counters(old: pl.DataFrame, new: pl.DataFrame, verdict: Verdict, *, even: bool) -> Verdict:
    """What other columns say where the loss does not, or where it is back at its first level and they go on."""
    new = new[: loss_levels.stretch(new["step"].to_numpy())]
    said = counters.say(old, new)
    if said == "on":
        return "counted"
    if verdict != "unsaid":
        return verdict
    if said == "back":
        return "another"
    # Epochs are equally long, but for a last one that is not done: longer than before is a start anew.
    longer = int(str(new["step"].max())) > int(str(old["step"].max())) + epoch_steps.usual_advance(
        old["step"].to_numpy()
    )
    if longer and counters.process_began_again(old, new):
        return "another"
    return "another" if counters.schedule_began_again(old, new, warmed=even) else verdict


def _taken_up(events: pl.DataFrame | None, first: int, before: int, here: int) -> bool:
    """Whether a checkpoint is loaded between the two stretches and none was before the first one."""
    if events is None or "line" not in events.columns:
        return False
    loads = events.filter(pl.col("kind") == "restart").drop_nulls(["line", "text"])
    lines = loads.filter(~loads["text"].map_elements(evidence.launches, return_dtype=pl.Boolean))["line"]
    return bool(((lines > before) & (lines < here)).any()) and not bool((lines < first).any())


def _lines(given: Input) -> list[bytes]:
    """The content's lines, none where it is no text or too large."""
    take, size = given.opened()
    return [] if size > _LARGEST or b"\0" in given.head[:4096] else take(0, size).split(b"\n")


def _told_again(shapes: Shapes, top: int, first: int, before: int, here: int) -> bool:
    """Whether most of what is said above the file's first step, and not in the run so far, is said again above `here`.

    Args:
        shapes: gives the lines from one place to another, without their numbers.
        top: the line of the first step of the file.
        first: the line of the first step of the run so far.
        before: the line of its last step.
        here: the line of the new beginning.
    """
    if here - before < 2 or top < 2:
        return False
    above = shapes(max(0, top - 1 - _LINES), top - 1)
    again = above & shapes(before, min(here - 1, before + _LINES))
    if not again:
        return False
    middle = shapes(first - 1, min(before, first + _SEEN))
    return 2 * len(again - middle) > len(above - middle)


def _shapes(lines_of: Callable[[], list[bytes]], start: int, stop: int) -> set[bytes]:
    """The lines from one place to another that can be told again, without their numbers."""
    lines = lines_of()[start:stop]
    found = {_DIGITS.sub(lambda number: number["counter"] or b"#", line.strip()[:400]) for line in lines}
    return {shape for shape in found if len(shape) >= _TEXT and _WORD.search(shape)}


def _first_line(steps: pl.DataFrame, begin: _Begin) -> int:
    """The first line of the new run: other ranks may have written before the one that was looked at."""
    between = steps.filter(pl.col("line").is_between(begin.before + 1, begin.line))
    here = steps.filter(pl.col("line") == begin.line)["step"].min()
    own = between.filter(pl.col("step") <= here)["line"].min()
    return begin.line if own is None else int(str(own))


def _numbered(table: pl.DataFrame, lines: list[int]) -> pl.DataFrame:
    """The table with each row in the run of its line, where lines are known."""
    if "line" not in table.columns:
        return table
    number = pl.lit(1) + pl.sum_horizontal([(pl.col("line") >= line).cast(pl.Int32).fill_null(0) for line in lines])
    return table.with_columns(number.cast(pl.String).alias("run"))


def _exits(last: Exit, steps: pl.DataFrame, events: pl.DataFrame | None, count: int) -> dict[str, Exit]:
    """How each run ended: the last one as the file did, the others by what stands behind their last step."""
    found: dict[str, Exit] = {str(count): last}
    for name in map(str, range(1, count)):
        found[name] = "unknown"
        if events is not None:
            end = steps.filter(pl.col("run") == name)["line"].max()
            behind = events.filter((pl.col("run") == name) & (pl.col("line") >= end))
            found[name] = evidence.ending(behind["text"].drop_nulls().to_list())
    return found
