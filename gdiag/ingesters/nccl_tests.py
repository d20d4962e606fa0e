"""nccl-tests and rccl-tests output, text or JSON, however it was launched, cut or mixed with other lines."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import nccl_facts, nccl_json, nccl_rows
from gdiag.ingesters.reading import Input, Options, Reading, without_bom
from gdiag.model import Exit, Source

FORMAT: Final = "nccl-tests"
_CERTAIN: Final = (b"Avg bus bandwidth", b"Out of bounds values", b"nccl-tests version", b"rccl-tests: Version")
_LIKELY: Final = (b"algbw", b"busbw", b"nThread ")
_STARTS: Final = ["nThread ", "nccl-tests version", "Collective test starting", "rccl-tests: Version"]


_ROW: Final = re.compile(
    rf"(?m)\b\d[\d_]*\s+\d[\d_]*\s+(?:{nccl_rows.TYPES})\s+(?:[a-z]+\s+)?(?:-?\d+\s+)?[\d.]+\s".encode()
)
_CHUNK: Final = 8 << 20
_LONGEST: Final = 64 << 20
"""Bytes without the end of a line that are waited for."""


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
    return 0.3 if b"_perf" in head and b"nccl" in head else 0.0


def read(given: Input, options: Options) -> Reading:  # noqa: ARG001 - benchmark output has no columns to map
    if nccl_json.looks_like(given.head):
        return _document(given, given.data().decode("utf-8", "replace"))
    found = _scanned(given)
    rows, said, rejects = found.rows, found.facts, found.rejects
    if not (rows.height or rejects.height or found.devices.height) and not found.is_output:
        raise InputError(f"{given.path} speaks of nccl-tests but holds no output of it")
    starts = _sections(found.starts, rows, said)
    rows = _cycled(_placed(rows, starts)).join(
        _collectives(said, starts), on="section", how="left", maintain_order="left"
    )
    facts = nccl_facts.condensed(_placed(said, starts))
    return _reading(given, rows, _placed(found.devices, starts), facts, rejects, _notes(rows, said, rejects))


@dataclass(frozen=True, slots=True)
class _Found:
    """What a text holds, line ascending; `starts` are the lines on which a run may start."""

    rows: pl.DataFrame
    devices: pl.DataFrame
    facts: pl.DataFrame
    rejects: pl.DataFrame
    starts: pl.DataFrame
    is_output: bool
    """Whether text without rows is output all the same: a table whose rows were edited, a start, or a failure."""


def _scanned(given: Input) -> _Found:
    """Read in pieces, so that no more than the tables and one piece are in memory."""
    found: list[tuple[pl.DataFrame, ...]] = []
    heads = nccl_rows.no_headers()
    first, speaks = 1, False
    for raw in _pieces(given):
        piece = raw.replace(b"\r", b"")
        speaks |= (b"algbw" in piece and b"busbw" in piece) or b"nThread " in piece
        lines = nccl_rows.text_lines(piece, first)
        new = nccl_rows.headers(lines)
        heads = pl.concat([heads.tail(1), new])
        plain = nccl_rows.aligned(lines, heads)
        taken = plain["line"].unique(maintain_order=True)
        own, others = nccl_rows.split(nccl_rows.stripped(_without(lines, taken - first)))
        odd, rejects = nccl_rows.rows(own, others, heads, taken)
        rows = pl.concat([plain, odd]).sort("line", maintain_order=True) if odd.height else plain
        begins = others.filter(pl.col("text").str.contains_any(_STARTS)).select("line")
        starts = pl.concat([begins, new.select("line")])
        found.append((rows, nccl_facts.devices(others), nccl_facts.facts(others), rejects, starts))
        first += lines.height
    rows, devices, said, rejects, starts = (pl.concat(tables) for tables in zip(*found, strict=True))
    speaks |= said.filter(pl.col("scope").is_in(["failure", "footer", "version"])).height > 0
    return _Found(rows, devices, said, rejects, starts, speaks)


def _pieces(given: Input) -> Iterator[bytes]:
    """The text cut before a run where one starts in the last half of a piece, else at the end of a line."""
    rest = b""
    with io.BytesIO(given.data()) if given.file is None or given.content is not None else given.file.open("rb") as file:
        while block := file.read(_CHUNK):
            rest = rest + block if rest else without_bom(block)
            end = rest.rfind(b"nThread ", len(rest) // 2)
            end = rest.rfind(b"\n", 0, end if end > 0 else len(rest)) + 1
            if end <= 0 and len(rest) < _LONGEST:
                continue
            yield rest[: end or len(rest)]
            rest = rest[end or len(rest) :]
    yield rest


def _document(given: Input, text: str) -> Reading:
    rows, devices, said, whole = nccl_json.read(text)
    facts = pl.DataFrame(
        [(None, *fact) for fact in said],
        schema={"line": pl.Int64, "scope": pl.String, "key": pl.String, "value": pl.String}, orient="row",
    )  # fmt: skip
    collective = next((value for scope, key, value in said if (scope, key) == ("config", "collective")), None)
    section = pl.lit(0, pl.Int32).alias("section")
    rows = _cycled(rows.with_columns(section)).with_columns(collective=pl.lit(collective, pl.String))
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


def _without(lines: pl.DataFrame, places: pl.Series) -> pl.DataFrame:
    """`lines` less those at `places`."""
    free = np.ones(lines.height, dtype=bool)
    free[places.to_numpy()] = False
    return lines.filter(pl.Series(free))


def _sections(starts: pl.DataFrame, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """First line of every test run in the file: a start or header line that follows rows or a footer."""
    begins = starts.unique().select("line", start=pl.lit(value=True))
    inside = rows.select("line", start=pl.lit(value=False)).unique("line")
    footers = facts.filter(pl.col("key") == "average_busbw").select("line", start=pl.lit(value=False))
    marks = pl.concat([begins, inside, footers]).sort("line")
    first = marks.filter(pl.col("start") & ~pl.col("start").shift(fill_value=False)).select("line")
    if not first.height:
        first = pl.DataFrame({"line": [1]}, schema={"line": pl.Int64})
    return first.with_row_index("section").with_columns(pl.col("section").cast(pl.Int32))


def _placed(table: pl.DataFrame, starts: pl.DataFrame) -> pl.DataFrame:
    """`table` with the section each line belongs to; what stands before the first start belongs to it too."""
    ordered = table.with_columns(pl.col("line").set_sorted()) if table["line"].is_sorted() else table.sort("line")
    placed = ordered.join_asof(starts, on="line", strategy="backward")
    return placed.with_columns(pl.col("section").fill_null(0))


def _collectives(facts: pl.DataFrame, starts: pl.DataFrame) -> pl.DataFrame:
    """Each section's collective by the nearest line that names it, inside the section or just before it."""
    named = facts.filter((pl.col("scope") == "config") & (pl.col("key") == "collective")).select(
        "line", collective="value"
    )
    inside = _placed(named, starts).group_by("section").agg(own=pl.col("collective").first())
    return (
        starts.join_asof(named, on="line", strategy="backward")
        .join(inside, on="section", how="left")
        .select("section", collective=pl.coalesce("own", "collective"))
    )


def _cycled(rows: pl.DataFrame) -> pl.DataFrame:
    """Repeats of -N: sizes that fall back to the smallest without a new header start a new cycle."""
    smallest = pl.col("size").min().over("section")
    previous = pl.col("size").shift().over("section")
    again = ((pl.col("size") == smallest) & (previous > pl.col("size"))).fill_null(value=False)
    return rows.with_columns(cycle=again.cast(pl.Int32).cum_sum().over("section"))


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
