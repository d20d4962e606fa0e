"""Formats: bytes in, records in canonical names and units out, bad lines kept aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from gdiag.errors import InputError, UsageError
from gdiag.ingesters import (
    appended,
    checkpoints,
    collected,
    deepspeed,
    envelopes,
    epoch_steps,
    fraction_steps,
    job_log,
    mllog,
    other_kinds,
    own_lines,
    values,
)
from gdiag.ingesters.assemble import assemble
from gdiag.ingesters.files import HEAD, gather
from gdiag.ingesters.formats import FORMATS, GUESSES
from gdiag.ingesters.reading import Ingester, Input, Options, Reading
from gdiag.model import Source
from gdiag.schema import TABLES, Records

_SURE: Final = 0.95
"""No other format is asked after one that is so sure."""
_HALF: Final = 0.5
"""No guess is asked for where a format is so sure."""
_MOST_OTHERS: Final = 5
"""Lines of something else that may stand above a log of another format than a console's."""
_OTHERS: Final = 1 << 22
"""Content in which those lines are looked for, B."""
_DAMAGE: Final = (ValueError, ArithmeticError, RecursionError, OSError, pl.exceptions.PolarsError)
"""What arithmetic and libraries raise over damaged content; anything else is a mistake of ours."""
_LFS: Final = b"version https://git-lfs.github.com/spec/"
_EVIDENCE: Final = frozenset({"unknown", "settings", "wandb-summary"})
"""Formats that help to judge a run and are none."""


_GUESSED: Final = frozenset({"aligned-table", "epoch-blocks", "leading-steps", "console-generic", "job-log"})
"""Formats of unknown programs' lines."""
_BEHIND: Final = _GUESSED | {"blocks", "openai-logger"}
"""Formats that may be another one, or be cut in pieces, behind what a collector of logs puts before each line."""
_TABLE: Final = "csv"
"""What lines with separators before their messages may look like."""
_TYPED: Final = frozenset({"parquet", "arrow"})
"""Formats that say without a row what they would hold."""
_TABLES: Final = (*TABLES, "layers")


def load(paths: Sequence[str | Path], options: Options | None = None) -> Records:
    """Everything that the files, folders and globs hold ('-' is standard input).

    Raises:
        InputError: a path is absent, or nothing in any file was recognised.
        UsageError: a column that the user named is in no file.
    """
    inputs = gather(paths)
    readings: list[Reading] = []
    refusals: list[str] = []
    for given in inputs:
        try:
            reading = _with_rows(_read(given, options or Options()))
            readings.append(fraction_steps.in_own_units(appended.apart(epoch_steps.counted(reading), given)))
        except InputError as error:
            refusals.append(str(error))
            readings.append(Reading(Source(given.path, "unknown", 0, notes=(str(error),))))
    if len(refusals) == len(inputs):
        more = f" (and {len(refusals) - 1} more files that hold no series)" if len(refusals) > 1 else ""
        raise InputError(refusals[0] + more)
    if all(reading.source.format in _EVIDENCE for reading in readings):
        used = next(r.source for r in readings if r.source.format != "unknown")
        raise InputError(f"{used.path}: {used.notes[0] if used.notes else 'no series'}")
    _check_mapping(readings, options or Options())
    return assemble([*readings, *checkpoints.beside(inputs)])


def _check_mapping(readings: Sequence[Reading], options: Options) -> None:
    """Refuses a mapping that no file could follow.

    Raises:
        UsageError: as said, with the names that are there.
    """
    for canonical, original in options.columns.items():
        if any(reading.source.columns.get(canonical) == original for reading in readings):
            continue
        there = sorted({name for reading in readings for name in reading.source.columns.values()})
        raise UsageError(
            f"no file has a column {original!r} for {canonical} (mapped so far: {', '.join(there) or 'none'})"
        )


def recognise(given: Input, least: float = 0.0) -> Ingester | None:
    """The format that is surest about the content, None when none is surer than `least`."""
    best: Ingester | None = None
    surest = least
    for formats in (FORMATS, GUESSES):
        for known in formats:
            if not known.possible(given):
                continue
            ingester = known.module()
            try:
                sure = ingester.recognise(given)
            except _DAMAGE:
                continue
            if sure > surest:
                best, surest = ingester, sure
            if sure >= _SURE:
                return best
        if surest >= _HALF:
            break
    return best


def _last_words(given: Input, options: Options) -> Reading | None:
    """What a console without a series says of its end: a run that stops before its second logged row is worth reading."""
    if not job_log.recognise(given):
        return None
    try:
        reading = job_log.read(given, options)
    except InputError:
        return None
    return reading if reading.exit == "abnormal" else None


def _below_others(given: Input, options: Options) -> Reading | None:
    """The log that begins below a few lines of something else: a warning, an escape, a dump of settings in one line.

    Those lines are rejects; blank ones stand in for them, so that all others keep their numbers.
    """
    if b"\0" in given.head:
        return None
    take, size = given.opened()
    start = take(0, min(size, _OTHERS))
    at = 0
    for above in range(1, _MOST_OTHERS + 1):
        at = start.find(b"\n", at) + 1
        if not at:
            return None
        blank = b"\n" * above
        below = replace(given, head=blank + start[at : at + HEAD], content=blank + start[at:])
        if (ingester := recognise(below, _HALF)) is None:
            continue
        try:
            reading = ingester.read(replace(below, content=blank + take(at, size)), options)
        except (InputError, *_DAMAGE):
            continue
        others = start[:at].decode("utf-8", errors="replace").split("\n")[:-1]
        bad = [(i, "stands above the log", values.escape(line)) for i, line in enumerate(others, 1) if line.strip()]
        rejects = pl.DataFrame(bad, schema={k: v for k, v in TABLES["rejects"].items() if k != "source"}, orient="row")
        if reading.rejects is not None:
            rejects = pl.concat([rejects, reading.rejects.select(rejects.columns)])
        source = replace(reading.source, rejected=reading.source.rejected + len(bad))
        return replace(reading, source=source, rejects=rejects)
    return None


def _read(given: Input, options: Options) -> Reading:
    if given.refusal:
        raise InputError(given.refusal)
    if not given.head.strip():
        raise InputError(f"{given.path} is empty")
    if given.head.startswith(_LFS):
        raise InputError(f"{given.path} is a Git LFS pointer and not the file it stands for: git lfs pull fetches that")
    if (inside := envelopes.unwrapped(given)) is not None:
        return _noted(given, _wrapped(given, inside, options))
    ingester = recognise(given)
    if (ingester is None or ingester.FORMAT in _BEHIND) and (
        peeled := _behind_collector(given, options, ingester)
    ) is not None:
        return _noted(given, peeled)
    if ingester is None:
        if (below := _below_others(given, options)) is None:
            raise InputError(f"{given.path} {other_kinds.named(given.head) or 'is of no format that gdiag knows'}")
        return _noted(given, below)
    # A traceback tells a job's log, and a log may stand below it.
    if ingester.FORMAT == job_log.FORMAT and (below := _below_others(given, options)) is not None:
        return _noted(given, below)
    try:
        reading = ingester.read(given, options)
    except InputError:
        if ingester.FORMAT == _TABLE and (peeled := _behind_collector(given, options, None)) is not None:
            return _noted(given, peeled)
        if (last := _last_words(given, options)) is None and ingester.FORMAT != mllog.FORMAT:
            raise
        reading = last or Reading(Source(given.path, mllog.FORMAT, 0))
    except _DAMAGE as error:
        # A reader met what it does not expect: its file is refused by name, and the others are still read.
        said = values.escape(str(error).partition("\n")[0], 160)
        raise InputError(f"{given.path} looks like {ingester.FORMAT} and is damaged: {said}") from error
    source = reading.source
    if source.format == _TABLE and 2 * source.rejected >= source.rows:  # a comma in each line's clock makes no table
        reading = _behind_collector(given, options, None) or reading
    return _noted(given, _with_losses(given, options, reading))


def _behind_collector(given: Input, options: Options, found: Ingester | None) -> Reading | None:
    """What the console holds without what a collector puts before its lines, where that is surer than with it."""
    least = 0.0 if found is None else _HALF

    def readable(lines: Input) -> bool:
        ingester = recognise(lines, least)
        return ingester is not None and ingester.FORMAT != job_log.FORMAT

    for way in collected.ways(given, options.tz, readable):
        readings: list[tuple[int | str | None, Reading]] = []
        unread: list[Input] = []
        for member, lines in way.members.items():
            ingester = recognise(lines, least)
            try:
                if ingester is None or ingester.FORMAT == job_log.FORMAT:
                    raise InputError(f"{given.path} has a member without step lines")
                readings.append((member, collected.numbered(ingester.read(lines, options), way.numbers[member])))
            except (InputError, *_DAMAGE):
                unread.append(lines)
        if any(reading.steps is not None and reading.steps.height for _, reading in readings):
            return collected.together(readings, way.clocks, unread)
    return None


def _with_losses(given: Input, options: Options, reading: Reading) -> Reading:
    """The reading, with the losses that the program prints itself where a library's lines bear none."""
    if own_lines.of_engine(given, reading):
        try:
            return own_lines.completed(reading, deepspeed.read(given, options))
        except (InputError, *_DAMAGE):
            return reading
    if reading.source.format not in own_lines.FORMATS or own_lines.has_loss(reading):
        return reading
    rest = own_lines.without(given, reading.source.format)
    ingester = recognise(rest) if own_lines.may_tell_loss(rest) else None
    try:
        own = None if ingester is None else ingester.read(rest, options)
    except (InputError, *_DAMAGE):
        own = None
    return own_lines.together(reading, own)


def _wrapped(given: Input, inside: envelopes.Unwrapped, options: Options) -> Reading:
    """What the log lines inside JSON hold."""
    lines = inside.lines
    ingester = recognise(lines)
    if ingester is None:
        raise InputError(f"{given.path} wraps log lines in JSON, and they are of no format that gdiag knows")
    try:
        reading = ingester.read(lines, options)
    except _DAMAGE as error:
        said = values.escape(str(error).partition("\n")[0], 160)
        raise InputError(f"{given.path} looks like {ingester.FORMAT} in JSON and is damaged: {said}") from error
    notes = (envelopes.NOTE, *(n for n in reading.source.notes if not (inside.timed and "without a zone" in n)))
    events = None if reading.events is None else envelopes.at_hosts(reading.events, inside.hosts)
    return replace(reading, events=events, source=replace(reading.source, notes=notes))


def _with_rows(reading: Reading) -> Reading:
    """The reading, unless its file is of a known form and holds nothing: a table's header without a row below it.

    Raises:
        InputError: as said.
    """
    source = reading.source
    tables = (getattr(reading, name) for name in _TABLES)
    told = bool(source.rows or source.rejected or reading.config) or reading.exit != "unknown"
    told = told or source.format in _EVIDENCE or source.format in _TYPED
    if told or any(table is not None and table.height for table in tables):
        return reading
    raise without_a_row(source)


def without_a_row(source: Source) -> InputError:
    """What is said of a file whose form is known and that holds nothing."""
    return InputError(f"{source.path} is {source.format} without a row")


def _noted(given: Input, reading: Reading) -> Reading:
    if not given.note:
        return reading
    return replace(reading, source=replace(reading.source, notes=(given.note, *reading.source.notes)))
