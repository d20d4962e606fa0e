"""JSONL: one JSON object a line, as most trainers write it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import claims, columns, envelopes, evidence, json_chunks, long_table, rare, splits
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.values import escape

FORMAT = "jsonl"
_LONG_LINE: Final = 60_000


def recognise(given: Input) -> float:
    """The first lines are JSON objects: all of them, or some."""
    head, complete, _ = given.head.rpartition(b"\n")
    if not complete and len(given.head) > _LONG_LINE and given.head.lstrip().startswith(b'{"'):
        return 0.95
    lines = [line.strip(b" \t\r\0") for line in (head if complete else given.head).split(b"\n")[:50]]
    lines = [line for line in lines if line]
    objects = sum(line.startswith(b"{") and b":" in line for line in lines)
    if not objects or objects < 0.3 * len(lines):
        return 0.0
    return 0.95 if complete and all(_is_object(line) for line in lines[:5]) else 0.5


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def read(given: Input, options: Options) -> Reading:
    """Every object, flattened.

    Raises:
        InputError: no line is an object, or the objects hold no training metric.
    """
    found = json_chunks.read(
        *given.opened(),
        cache(lambda name: claims.wanted(name, options) or columns.of_a_loss(name) or long_table.holds(name)),
        cache(lambda name: not splits.OF_TRAINING.isdisjoint(claims.known([name], options))),
    )
    if not found.frames:
        raise InputError(f"{given.path} has no line that is a JSON object")
    frame, left = json_chunks.joined(found)
    columns.refuse_other(given.path, frame, options)
    notes = rare.note([*dict.fromkeys(left)])
    if found.glued:
        notes.append(f"{found.glued} lines held several objects glued together, all read")
    if found.repaired:
        notes.append(f"{found.repaired} lines held NUL bytes or broken UTF-8 and were read without them")
    reading = columns.reading(
        given.path, FORMAT, frame, options, rejects=_rejects(found), notes=notes, rows=found.objects,
        unused=[name for name, numeric in found.unused.items() if numeric],
    )  # fmt: skip
    if envelopes.wraps([*found.unused, *(name for name in frame.columns if name != columns.LINE)]):
        reading = _with_events(reading, *envelopes.events(given.data(), options.tz))
    elif found.bad:
        numbers = [bad.line for bad in found.bad]
        bad = b"\n".join(bad.text for bad in found.bad)
        reading = _with_events(reading, *envelopes.events(bad, options.tz, numbers))
    return _with_words(reading, splits.spoken(frame, columns.LINE), options)


def _with_words(reading: Reading, said: pl.DataFrame, options: Options) -> Reading:
    """The reading with what rows say of checkpoints, errors and the end, and with all events at the step before them."""
    steps = reading.steps
    if steps is None or not (said.height or reading.events is not None):
        return reading
    known = steps.select("line", "step").drop_nulls().unique("line", keep="first").sort("line")
    found = evidence.scan(said, known, options.tz)
    events = [table for table in (reading.events, found.events) if table is not None]
    if not events:
        return replace(reading, exit=found.exit)
    placed = pl.concat(events, how="diagonal_relaxed").unique(["line", "kind"], keep="first", maintain_order=True)
    placed = placed.sort("line", maintain_order=True)
    near = placed.join_asof(known.rename({"step": "near"}), on="line")["near"]
    own = placed["step"] if "step" in placed.columns else pl.Series([None] * len(placed), dtype=pl.Int64)
    times = steps.select("line", "time").drop_nulls() if "time" in steps.columns else None
    if times is not None:
        clock = placed.join(
            times.rename({"time": "clock"}).unique("line"), on="line", how="left", maintain_order="left"
        )
        own_time = placed["time"] if "time" in placed.columns else pl.Series([None] * len(placed), dtype=pl.Float64)
        placed = placed.with_columns(own_time.cast(pl.Float64).fill_null(clock["clock"]).alias("time"))
    placed = placed.with_columns(own.cast(pl.Int64).fill_null(near).alias("step"))
    return replace(reading, events=placed, exit=found.exit)


def _with_events(reading: Reading, machine: pl.DataFrame | None, notes: Sequence[str]) -> Reading:
    """The reading with what the machine reports among its rows; such lines are no rejects."""
    if machine is None:
        return reading
    bad = None if reading.rejects is None else reading.rejects.filter(~pl.col("line").is_in(machine["line"].implode()))
    events = machine if reading.events is None else pl.concat([reading.events, machine], how="diagonal_relaxed")
    source = replace(
        reading.source, rejected=0 if bad is None else bad["line"].n_unique(), notes=(*reading.source.notes, *notes)
    )
    return replace(reading, source=source, events=events, rejects=bad)


def _rejects(found: json_chunks.Chunks) -> pl.DataFrame:
    return pl.DataFrame(
        [(bad.line, bad.reason, escape(bad.text[:200].decode("utf-8", errors="replace"))) for bad in found.bad],
        schema={"line": pl.Int64, "reason": pl.String, "text": pl.String}, orient="row",
    )  # fmt: skip
