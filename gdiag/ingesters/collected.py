"""Consoles before each line of which a collector of logs puts something of its own: docker compose, Kubernetes, srun -l, syslog.

Formats whose lines bear a name of their own are found behind it. Others begin with their lines (pairs of numbers, boxes, blocks of
indented values): they are read again without what stands before, each member of the job for itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

import polars as pl

from gdiag.ingesters import prefixes
from gdiag.ingesters import text as plain
from gdiag.ingesters.reading import Input, Reading

NOTE: Final = "read without what a collector of logs puts before each line"
_LARGEST: Final = 1 << 28
"""Content that is looked at, B."""
_SOME: Final = 400
"""Lines that show whether there is a collector."""
_FEW: Final = 5
_MOST: Final = 0.9
"""Share of the lines with a prefix, the others being continued."""
_MEMBERS: Final = 4096
_START: Final = 1 << 20
"""Content that shows what to take off, B."""
_LOOK: Final = 300
_ENDS: Final = re.compile(r"[|:\])>›-] |[\]>]: ?|\d:\d\d?:\d\d?\S* | [FP] |\w/0 |^[A-Z]+:[\w.]+:|^\s+")
"""Where a prefix may end that no launcher is known for: behind punctuation, a clock or a member's number."""
_TRIES: Final = 7
_PROBES: Final = 2
_TABLES: Final = ("steps", "layers", "events", "rejects")


@dataclass(frozen=True, slots=True)
class Collected:
    """A console without its collector."""

    members: dict[int | str | None, Input]
    """Rank or name → the member's lines."""
    numbers: dict[int | str | None, pl.Series]
    """The numbers of these lines in the console."""
    clocks: pl.DataFrame
    """`line` and `time` [s, Unix] of lines whose collector prints a clock."""


def ways(given: Input, tz: str | None, readable: Callable[[Input], bool]) -> Iterator[Collected]:
    """The console without what may stand before its lines; none where nothing does.

    First come the ways behind which lines are readable, of these the ones that tell several members apart, of these the shortest.
    Where they are not readable in any, only what is known of launchers is tried: each member is looked at for itself.

    Args:
        given: the console.
        tz: the zone of clocks that name none.
        readable: whether lines are of a known format.
    """
    if b"\0" in given.head[:4096]:
        return
    cutters = _cutters(given.head)[-_TRIES:]
    if not cutters or len(data := given.data()) > _LARGEST:
        return
    start = _lines(data[: data.rfind(b"\n", 0, _START) + 1] if len(data) > _START else data)
    kinds = [_kind(given, _without(start, cut), readable) for cut in cutters]
    best = sorted(range(len(cutters)), key=lambda i: kinds[i], reverse=True)
    if len(cutters) > 1 and not kinds[best[0]][0]:
        best = [len(cutters) - 1]
    lines = _lines(data)
    for cut in (cutters[i] for i in best):
        told, rests = _without(lines, cut)
        numbers = pl.int_range(1, len(lines) + 1, eager=True, dtype=pl.Int64).alias("line")
        clocks = pl.DataFrame([numbers, prefixes.clocks(told, tz)]).drop_nulls()
        members = {key: (_input(given, part), places) for key, part, places in _by_member(told, rests)}
        yield Collected(
            {k: lines for k, (lines, _) in members.items()}, {k: n for k, (_, n) in members.items()}, clocks
        )


def _lines(data: bytes) -> list[str]:
    return plain.clean(data).decode("utf-8", errors="replace").split("\n")


def _without(lines: list[str], cut: Callable[[str], int]) -> tuple[pl.Series, list[str]]:
    """What stands before the messages, and these."""
    ends = [cut(line) for line in lines]
    told = pl.Series([line[:end] for line, end in zip(lines, ends, strict=True)], dtype=pl.String)
    return told, [line[end:] for line, end in zip(lines, ends, strict=True)]


def _kind(given: Input, start: tuple[pl.Series, list[str]], readable: Callable[[Input], bool]) -> tuple[bool, bool]:
    """Whether the lines of the first or of one of the longest members at the start are readable, and whether there are several."""
    members = [lines for _, lines, _ in _by_member(*start)]
    likely = [members[0], *sorted(members[1:], key=len, reverse=True)[:_PROBES]]
    return any(readable(_input(given, lines)) for lines in likely), len(members) > 1


def _input(given: Input, lines: list[str]) -> Input:
    content = "\n".join(lines).encode()
    return replace(given, head=content[: 1 << 16], content=content)


def _by_member(told: pl.Series, rests: list[str]) -> Iterator[tuple[int | str | None, list[str], pl.Series]]:
    """The lines of each member and their numbers; all together where no more than one is told."""
    keys: list[int | str | None] = [*prefixes.ranks(told).to_list()]
    if not any(key is not None for key in keys):
        keys = [*prefixes.ranked(prefixes.names(told)).to_list()]
    members = [key for key in dict.fromkeys(keys) if key is not None]
    if not 1 < len(members) <= _MEMBERS:
        yield None, rests, pl.int_range(1, len(rests) + 1, eager=True, dtype=pl.Int64)
        return
    own: dict[int | str | None, list[int]] = {}
    for at, key in enumerate(keys):
        own.setdefault(key, []).append(at)
    for member, places in own.items():
        yield member, [rests[at] for at in places], pl.Series(places, dtype=pl.Int64) + 1


def _cutters(head: bytes) -> list[Callable[[str], int]]:
    """What may tell of a line where its message begins; nothing where most lines have nothing before it."""
    lines = plain.clean(head).decode("utf-8", errors="replace").split("\n")
    lines = [line[:_LOOK] for line in (lines if len(head) < 1 << 16 else lines[:-1]) if line.strip()][:_SOME]
    if len(lines) < _FEW:
        return []
    found = [_behind(pattern) for pattern in _common(lines)]
    return [*found, _known] if sum(_known(line) > 0 for line in lines) >= _MOST * len(lines) else found


def _behind(pattern: re.Pattern[str]) -> Callable[[str], int]:
    return lambda line: match.end() if (match := pattern.match(line)) is not None else 0


def _common(lines: list[str]) -> Iterator[re.Pattern[str]]:
    """What nearly all lines begin with, their digits and the number of blanks aside, up to each place where it may end."""
    shapes = sorted(re.sub(r"\d+", "0", re.sub(r" +", " ", line)) for line in lines)
    few = len(shapes) // 20
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(shapes[few], shapes[-1 - few], strict=False))
    common = "".join(one for one, _ in alike)
    likely = {" ": " +", "0": r"\d+"}
    for ended in _ENDS.finditer(common):
        start = common[: ended.end()]
        text = "".join(likely.get(part, re.escape(part)) for part in re.split(r"([ 0])", start.removesuffix(" ")))
        blank = min(len(line) - len(line.lstrip()) for line in lines)
        yield re.compile(text + (" " if start.endswith(" ") else "") if start.strip() else rf"\s{{{blank}}}")


def _known(line: str) -> int:
    """Where the message begins behind what launchers and loggers print; blanks before it belong to it, but for one."""
    prefix = plain.peel(line[:_LOOK])[0]
    bare = len(prefix.rstrip())
    return bare + line[bare : bare + 1].isspace() if bare else 0


def together(
    found: list[tuple[int | str | None, Reading]], clocks: pl.DataFrame, unread: Sequence[Input] = ()
) -> Reading:
    """One reading of those of the members, with the collector's clock where theirs have none.

    Args:
        found: at least one member and what it gave.
        clocks: as in Collected.
        unread: the lines of members that gave nothing.
    """
    readings = [_of_member(_timed(reading, clocks), key) for key, reading in found]
    first = readings[0]
    tables = {
        name: pl.concat(parts, how="diagonal_relaxed").sort("line", maintain_order=True)
        for name in _TABLES
        if (parts := [table for r in readings if (table := getattr(r, name)) is not None])
    }
    lost = sum(bool(line.strip()) for lines in unread for line in lines.data().split(b"\n"))
    source = replace(
        first.source,
        rows=sum(r.source.rows for r in readings),
        rejected=sum(r.source.rejected for r in readings),
        notes=(
            *dict.fromkeys([NOTE, *(note for r in readings for note in r.source.notes)]),
            *([f"{lost} lines of other members hold no step lines"] if lost else []),
        ),
    )
    if len(readings) == 1:
        return replace(first, source=source)
    return replace(first, source=source, **tables)


def numbered(reading: Reading, numbers: pl.Series) -> Reading:
    """The reading of a member's lines with the numbers that they have in the console."""
    tables = {name: getattr(reading, name) for name in _TABLES}
    moved = {
        name: table.with_columns(numbers.gather(table["line"] - 1).cast(table.schema["line"]).alias("line"))
        for name, table in tables.items()
        if table is not None and "line" in table.columns
    }
    return replace(reading, **moved)


def _timed(reading: Reading, clocks: pl.DataFrame) -> Reading:
    steps = reading.steps
    if steps is None or not len(clocks) or ("time" in steps.columns and steps["time"].count()):
        return reading
    timed = steps.drop("time", strict=False).join(clocks, on="line", how="left", maintain_order="left")
    return replace(reading, steps=timed)


def _of_member(reading: Reading, key: int | str | None) -> Reading:
    """The rows as those of a rank or of a run, where they are of neither yet."""
    name, kind = ("rank", pl.Int32) if isinstance(key, int) else ("run", pl.String)
    steps = reading.steps
    if key is None or steps is None or (name in steps.columns and steps[name].count()):
        return reading
    return replace(reading, steps=steps.with_columns(pl.lit(key, dtype=kind).alias(name)))
