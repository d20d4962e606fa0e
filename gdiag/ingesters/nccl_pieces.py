"""nccl-tests text read piece by piece, pieces side by side: memory holds the tables and a few pieces, never the text."""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from gdiag.ingesters import nccl_facts, nccl_rows, text
from gdiag.ingesters.nccl_aligned import aligned, cells_of
from gdiag.ingesters.reading import Input, without_bom

CHUNK: Final = 8 << 20
_LONGEST: Final = 64 << 20
"""Bytes without the end of a line that are waited for."""
_THREADS: Final = min(4, pl.thread_pool_size())
_HEADER: Final = re.compile(nccl_rows.HEADER.encode())
_STARTS: Final = ["nThread ", "nccl-tests version", "Collective test starting", "rccl-tests: Version"]


@dataclass(frozen=True, slots=True)
class Found:
    """What a text or a piece of it holds, line ascending; `starts` are the lines on which a run may start."""

    rows: pl.DataFrame
    devices: pl.DataFrame
    facts: pl.DataFrame
    rejects: pl.DataFrame
    starts: pl.DataFrame
    is_output: bool
    """Whether text without rows is output all the same: a table whose rows were edited, a start, or a failure."""


def scanned(given: Input) -> Found:
    """Rows, devices, facts and rejects of a whole text."""
    found: list[Found] = []
    with ThreadPoolExecutor(_THREADS) as threads:
        running: deque[Future[Found]] = deque()
        first, header = 1, b""
        for raw in _pieces(given):
            piece = raw.replace(b"\r", b"") if b"\r" in raw else raw
            if b"\x1b" in piece:
                piece = text.clean(piece)
            running.append(threads.submit(_scanned, piece, first, header))
            first += piece.count(b"\n") + (not piece.endswith(b"\n") and bool(piece))
            header = _last_header(piece) or header
            if len(running) > _THREADS:
                found.append(running.popleft().result())
        found += [future.result() for future in running]
    devices, facts, rejects, starts = (
        pl.concat([getattr(part, name) for part in found]) for name in ("devices", "facts", "rejects", "starts")
    )
    is_output, rows = any(part.is_output for part in found), [part.rows for part in found]
    found.clear()
    return Found(_joined(rows), devices, facts, rejects, starts, is_output)


def _joined(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """The rows of all pieces, a column at a time and taken out of `parts`: never more than one is there twice."""
    columns = []
    for name, kind in nccl_rows.empty().schema.items():
        if any(name in part.columns for part in parts):
            cells = [
                part[name] if name in part.columns else pl.Series(name, [None] * part.height, kind) for part in parts
            ]
            columns.append(pl.concat(cells, rechunk=True))
            parts[:] = [part.drop(name, strict=False) if part.width > 1 else part for part in parts]
    return pl.DataFrame(columns)


def _scanned(piece: bytes, first: int, header: bytes) -> Found:
    """What a piece holds whose first line is numbered `first`; header: the header above it with the line before, or nothing."""
    lines = nccl_rows.text_lines(piece, first)
    above = nccl_rows.headers(nccl_rows.text_lines(header, first - 1 - header.count(b"\n")))
    cells, bare = cells_of(piece, lines)
    new = nccl_rows.headers(lines.filter(~bare))
    heads = pl.concat([above, new])
    if heads["per_iteration"].any():
        cells, bare = cells_of(piece, lines, most=True)
    plain = aligned(cells, heads)
    taken = np.zeros(lines.height, dtype=bool)
    taken[plain["line"].to_numpy() - first] = True
    own, others = nccl_rows.split(nccl_rows.stripped(lines.filter(pl.Series(~taken))))
    odd, rejects = nccl_rows.rows(own, others, heads, plain["line"].unique(maintain_order=True))
    if not heads["per_iteration"].any():
        plain, odd = (table.drop(nccl_rows.EXTRA, strict=False) for table in (plain, odd))
    rows = pl.concat([plain, odd], how="diagonal").sort("line", maintain_order=True) if odd.height else plain
    devices = nccl_facts.devices(others)
    said = others.join(devices.select("line"), on="line", how="anti", maintain_order="left")
    begins = said.filter(pl.col("text").str.contains_any(_STARTS)).select("line")
    facts = nccl_facts.facts(said)
    speaks = (b"algbw" in piece and b"busbw" in piece) or b"nThread " in piece
    speaks |= facts.filter(pl.col("scope").is_in(["failure", "footer", "version"])).height > 0
    starts = pl.concat([begins, new.select("line")])
    return Found(rows, devices, facts, rejects, starts, speaks)


def _pieces(given: Input) -> Iterator[bytes]:
    """The text cut before a run where one starts in the last half of a piece, else at the end of a line."""
    rest = b""
    with io.BytesIO(given.data()) if given.file is None or given.content is not None else given.file.open("rb") as file:
        while block := file.read(CHUNK):
            rest = rest + block if rest else without_bom(block)
            end = rest.rfind(b"nThread ", len(rest) // 2)
            end = rest.rfind(b"\n", 0, end if end > 0 else len(rest)) + 1
            if end <= 0 and len(rest) < _LONGEST:
                continue
            yield rest[: end or len(rest)]
            rest = rest[end or len(rest) :]
    yield rest


def _last_header(piece: bytes) -> bytes:
    """The last header line of a piece with the line above it, empty without one."""
    at = len(piece)
    while (at := piece.rfind(b"type", 0, at)) >= 0:
        start, end = piece.rfind(b"\n", 0, at) + 1, piece.find(b"\n", at)
        line = piece[start : end if end >= 0 else len(piece)]
        if _HEADER.search(line):
            return piece[piece.rfind(b"\n", 0, max(0, start - 1)) + 1 : start] + line + b"\n"
        at = max(start, 0)
    return b""
