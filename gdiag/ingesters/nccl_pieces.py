"""nccl-tests text read piece by piece, pieces side by side: memory holds the tables and a few pieces, never the text."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gdiag.ingesters import nccl_facts, nccl_rows, text
from gdiag.ingesters.nccl_aligned import Lines, aligned, cells_of
from gdiag.ingesters.reading import Input

CHUNK: Final = 8 << 20
_LONGEST: Final = 64 << 20
"""Bytes without the end of a line that are waited for."""
_THREADS: Final = min(4, pl.thread_pool_size())
_HEADER: Final = re.compile(nccl_rows.HEADER.encode())
_STARTS: Final = ["nThread ", "nccl-tests version", "Collective test starting", "rccl-tests: Version"]


@dataclass(frozen=True, slots=True)
class Found:
    """What a text or a piece of it holds, line ascending; `starts` are the lines on which a run may start."""

    lines: int
    rows: pl.DataFrame
    devices: pl.DataFrame
    facts: pl.DataFrame
    rejects: pl.DataFrame
    starts: pl.DataFrame
    is_output: bool
    """Whether text without rows is output all the same: a table whose rows were edited, a start, or a failure."""


def scanned(given: Input) -> Found:
    """Rows, devices, facts and rejects of a whole text."""
    return _whole(_found(given))


def _found(given: Input) -> list[Found]:
    """What each piece holds, in order."""
    found: list[Found] = []
    with ThreadPoolExecutor(_THREADS) as threads:
        running: deque[Future[Found]] = deque()
        header = b""
        for raw in _pieces(given):
            piece = raw.replace(b"\r", b"") if b"\r" in raw else raw
            if b"\x1b" in piece:
                piece = text.clean(piece)
            running.append(threads.submit(_scanned, piece, header))
            header = _last_header(piece) or header
            if len(running) > _THREADS:
                found.append(running.popleft().result())
        found += [future.result() for future in running]
    return found


def _whole(found: list[Found]) -> Found:
    """The pieces as one, taken out of `found`."""
    before = [0, *accumulate(part.lines for part in found)]
    devices, facts, rejects, starts = (
        pl.concat([_moved(getattr(part, name), lines) for part, lines in zip(found, before, strict=False)])
        for name in ("devices", "facts", "rejects", "starts")
    )
    is_output = any(part.is_output for part in found)
    rows = [_moved(part.rows, lines) for part, lines in zip(found, before, strict=False)]
    total = before[-1]
    found.clear()
    return Found(total, _joined(rows), devices, facts, rejects, starts, is_output)


def _moved(table: pl.DataFrame, lines: int) -> pl.DataFrame:
    """`table` with so many lines before it."""
    return table.with_columns(pl.col("line") + lines) if lines else table


def _joined(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """The rows of all pieces, a column at a time and taken out of `parts`: never more than one is there twice."""
    columns = []
    for name, kind in nccl_rows.empty().schema.items():
        if any(name in part.columns for part in parts):
            cells = [
                part[name] if name in part.columns else pl.Series(name, [None] * part.height, kind) for part in parts
            ]
            columns.append(pl.concat(cells, rechunk=True))
            cells.clear()
            parts[:] = [part.drop(name, strict=False) if part.width > 1 else part for part in parts]
    return pl.DataFrame(columns)


def _scanned(piece: bytes, header: bytes) -> Found:
    """What a piece holds, its lines numbered from 1; header: the header above it with the line before, or nothing."""
    lines = Lines(piece)
    above = nccl_rows.headers(nccl_rows.once(nccl_rows.text_lines(header, -header.count(b"\n"))))
    cells, others, new = _parted(lines, most=False)
    heads = pl.concat([above, new])
    if heads["per_iteration"].any():
        cells, others, _ = _parted(lines, most=True)
    plain = aligned(cells, heads)
    unfit = _mask(lines, cells["line"]) & ~_mask(lines, plain["line"])
    if unfit.any():
        others = pl.concat([others, nccl_rows.once(lines.texts(unfit))])
    devices, others = nccl_facts.devices(nccl_rows.stripped(others))
    own, said = nccl_rows.split(others)
    odd, rejects = nccl_rows.rows(own, said, heads, plain["line"])
    if not heads["per_iteration"].any():
        plain, odd = (table.drop(nccl_rows.EXTRA, strict=False) for table in (plain, odd))
    rows = pl.concat([plain, odd], how="diagonal").sort("line", maintain_order=True) if odd.height else plain
    begins = nccl_rows.each(said.filter(pl.col("text").str.contains_any(_STARTS))).select("line")
    facts = nccl_facts.facts(said)
    speaks = (b"algbw" in piece and b"busbw" in piece) or b"nThread " in piece
    speaks |= facts.filter(pl.col("scope").is_in(["failure", "footer", "version"])).height > 0
    starts = pl.concat([begins, new.select("line")])
    return Found(len(lines.ends), rows, devices, facts, rejects, starts, speaks)


def _parted(lines: Lines, *, most: bool) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Cells of what may be rows, all other texts and the headers among them."""
    cells = cells_of(lines, most=most)
    others = nccl_rows.once(lines.texts(~_mask(lines, cells["line"])))
    return cells, others, nccl_rows.headers(others)


def _mask(lines: Lines, numbers: pl.Series) -> NDArray[np.bool_]:
    mask = np.zeros(len(lines.ends), dtype=bool)
    mask[numbers.to_numpy() - 1] = True
    return mask


def _pieces(given: Input) -> Iterator[bytes]:
    """The text cut before a run where one starts in the last half of a piece, else at the end of a line."""
    take, size = given.opened()
    begin, length = 0, CHUNK
    if not size:
        yield b""
    while begin < size:
        piece = take(begin, begin + length)
        if begin + length < size:
            end = piece.rfind(b"nThread ", len(piece) // 2)
            end = piece.rfind(b"\n", 0, end if end > 0 else len(piece)) + 1
            if end <= 0 and length < _LONGEST:
                length += CHUNK
                continue
            piece = piece[: end or len(piece)]
        yield piece
        begin, length = begin + len(piece), CHUNK


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
