"""nccl-tests and rccl-tests output, text or JSON, however it was launched, cut or mixed with other lines."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import nccl_facts, nccl_json, nccl_rows
from gdiag.ingesters.nccl_pieces import scanned
from gdiag.ingesters.nccl_sections import cycled, named, placed, sections
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.model import Exit, Source

FORMAT: Final = "nccl-tests"
_CERTAIN: Final = (b"Avg bus bandwidth", b"Out of bounds values", b"nccl-tests version", b"rccl-tests: Version")
_LIKELY: Final = (b"algbw", b"busbw", b"nThread ")
_FAILED: Final = re.compile(rb"Test (?:NCCL|CUDA) failure \w+\.cu:\d+ '|: Test timeout \(\d+s\) \w+\.cu:\d+")
"""How a test ends that fails, with or without a table before it."""
_ROW: Final = re.compile(
    rf"(?m)\b\d[\d_]*\s+\d[\d_]*\s+(?:{nccl_rows.TYPES})\s+(?:[a-z]+\s+)?(?:-?\d+\s+)?[\d.]+\s".encode()
)


def recognise(given: Input) -> float:
    head = given.head
    if nccl_json.looks_like(head):
        return 1.0
    if any(words in head for words in _CERTAIN) or (b"algbw" in head and b"busbw" in head):
        return 0.95
    if any(words in head for words in _LIKELY):
        return 0.7
    if _ROW.search(head[:16384]):
        return 0.7
    if b"NCCL" in head and _FAILED.search(given.sample()):
        return 0.65
    return 0.3 if b"_perf" in head and b"nccl" in head else 0.0


def read(given: Input, options: Options) -> Reading:  # noqa: ARG001 - benchmark output has no columns to map
    if nccl_json.looks_like(given.head):
        return _document(given, given.data().decode("utf-8", "replace"))
    found = scanned(given)
    rows, said, rejects = found.rows, found.facts, found.rejects
    if not (rows.height or rejects.height or found.devices.height) and not found.is_output:
        raise InputError(f"{given.path} speaks of nccl-tests but holds no output of it")
    starts = sections(found.starts, rows, said)
    rows = named(cycled(placed(rows, starts)), said, starts)
    facts = nccl_facts.condensed(placed(said, starts))
    return _reading(given, rows, placed(found.devices, starts), facts, rejects, _notes(rows, said, rejects))


def _document(given: Input, text: str) -> Reading:
    rows, devices, said, whole = nccl_json.read(text)
    facts = pl.DataFrame(
        [(None, *fact) for fact in said],
        schema={"line": pl.Int64, "scope": pl.String, "key": pl.String, "value": pl.String}, orient="row",
    )  # fmt: skip
    collective = next((value for scope, key, value in said if (scope, key) == ("config", "collective")), None)
    section = pl.lit(0, pl.Int32).alias("section")
    rows = cycled(rows.with_columns(section)).with_columns(collective=pl.lit(collective, pl.String))
    notes = () if whole else ("the JSON document is cut: complete results before the cut are used",)
    return _reading(given, rows, devices.with_columns(section), facts.with_columns(section), None, notes)


def _reading(
    given: Input, rows: pl.DataFrame, devices: pl.DataFrame, facts: pl.DataFrame, rejects: pl.DataFrame | None,
    notes: tuple[str, ...],
) -> Reading:  # fmt: skip
    failed = facts.filter(pl.col("scope") == "failure").height > 0
    ended: Exit = "abnormal" if failed else "unknown"
    if not failed and facts.filter(pl.col("key") == "average_busbw").height:
        ended = "clean"
    distinct = 1 + int(str(rows["line"].rle_id().max())) if rows.height else 0
    return Reading(
        source=Source(given.path, FORMAT, distinct, rejected=rejects.height if rejects is not None else 0, notes=notes),
        collectives=rows, devices=devices, facts=facts, rejects=rejects, exit=ended,
    )  # fmt: skip


def _notes(rows: pl.DataFrame, facts: pl.DataFrame, rejects: pl.DataFrame) -> tuple[str, ...]:
    notes: list[str] = []
    if not rows.height:
        failure = facts.filter(pl.col("scope") == "failure")["value"].to_list()
        notes.append(f"no complete row{f': {failure[0][:160]}' if failure else ''}")
    elif not facts.filter(pl.col("key") == "average_busbw").height:
        notes.append("no footer: the output is cut, the rows before the cut are used")
    if rejects.height:
        notes.append(f"{rejects.height} rows hold no complete set of figures")
    return tuple(notes)
