"""TensorBoard event files without TensorFlow: scalars, scalar tensors, and the norms that gradient histograms hold.

TFRecord: length (8 bytes), masked CRC-32C of it, record, masked CRC-32C of the record. Both are checked; where a length is
damaged, reading goes on at the next place that looks like the head of a record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from gdiag.errors import InputError
from gdiag.ingesters import columns, crc32c, event_forms, proto
from gdiag.ingesters.aliases import simplify
from gdiag.ingesters.event_forms import Events
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT = "tfevents"
_LEAST: Final = 4
_LONGEST: Final = 1 << 28
_HEAD: Final = struct.Struct("<QI")
_TAIL: Final = 4
_FRAME: Final = _HEAD.size + _TAIL
_AT_ONCE: Final = 1 << 22
"""Bytes of records of one length that are looked at together."""
_NEAR: Final = 1 << 12
"""Bytes in which the head of a record is looked for first."""
_SEVERAL: Final = 3
_SAMPLES: Final = "_vs_samples"


@dataclass(slots=True)
class _Records:
    """Where the records of a file begin, their lengths before them."""

    starts: list[int] = field(default_factory=list)
    damaged: int = 0
    """Lengths whose checksum does not hold."""
    cut: bool = False
    """Whether the file ends inside a record."""


def recognise(given: Input) -> float:
    """A first record whose length fits and whose length checksum holds."""
    if len(given.head) < 16:
        return 0.0
    size, checksum = _HEAD.unpack_from(given.head)
    return 1.0 if 8 <= size < _LONGEST and _mask(given.head[:8]) == checksum else 0.0


def read(given: Input, options: Options) -> Reading:
    """A row per step in the order written; scalars of one step are one row.

    Raises:
        InputError: no scalar in the file.
    """
    data = given.data()
    records = _records(data)
    events = Events()
    for rows, numbers in _alike(data, records):
        holds = crc32c.masked(rows[:, :-_TAIL]) == np.ascontiguousarray(rows[:, -_TAIL:]).view("<u4")[:, 0]
        events.bad += numbers[~holds].tolist()
        event_forms.take(events, rows[holds, :-_TAIL], numbers[holds])
    if not any(len(part.number) for part in events.parts):
        raise InputError(f"{given.path} is a TensorBoard file without scalars")
    notes = []
    if records.cut:
        notes.append("the file is cut off: everything before is used")
    if records.damaged:
        notes.append(f"damaged in {records.damaged} places: what lies before and behind them is used")
    if events.others:
        notes.append(f"{events.others} images, texts and histograms not used")
    frame = _wide(events)
    if doubled := len(_against_samples([proto.text(tag) for tag in events.tags])):
        notes.append(
            f"{doubled} {'tag' if doubled == 1 else 'tags'} against samples left out: the same metrics stand against steps"
        )
    if "epoch (counted)" in frame.columns:
        notes.append("several values a step: the steps are taken as epochs, rows are numbered")
    bad = [(number, "record with a wrong checksum or content", "") for number in sorted(events.bad)]
    rejects = pl.DataFrame(bad, schema={"line": pl.Int64, "reason": pl.String, "text": pl.String}, orient="row")
    return columns.reading(given.path, FORMAT, frame, options, rejects=rejects, notes=notes)


def _records(data: bytes) -> _Records:
    found = _Records()
    known: dict[int, int] = {}
    position, end = 0, len(data)
    unpack, add = _HEAD.unpack_from, found.starts.append
    while position + _HEAD.size <= end:
        size, checksum = unpack(data, position)
        if known.get(size) != checksum:
            if size < _LEAST or _mask(data[position : position + 8]) != checksum:
                found.damaged += 1
                position = _next_head(data, position + 1)
                continue
            known[size] = checksum
        if position + size + _FRAME > end:
            break
        add(position)
        position += size + _FRAME
    found.cut = position < end
    return found


def _next_head(data: bytes, position: int) -> int:
    """Where the next record may begin: the end of the file where no eight bytes are followed by their checksum."""
    width = _NEAR
    while position + _HEAD.size <= len(data):
        part = data[position : position + width + _HEAD.size - 1]
        count = len(part) - _HEAD.size + 1
        sizes = np.ndarray(count, "<u8", part, strides=(1,))
        likely = np.flatnonzero((sizes >= _LEAST) & (sizes < _LONGEST))
        stored = np.ndarray(count, "<u4", part, 8, (1,))[likely]
        holds = likely[crc32c.masked(sizes[likely].view(np.uint8).reshape(-1, 8)) == stored]
        if len(holds):
            return position + int(holds[0])
        position, width = position + width, min(4 * width, _AT_ONCE)
    return len(data)


def _mask(data: bytes) -> int:
    return int(crc32c.masked(np.frombuffer(data, dtype=np.uint8).reshape(1, -1))[0])


def _alike(data: bytes, records: _Records) -> Iterator[tuple[event_forms.Rows, event_forms.Numbers]]:
    """Records of one length with their checksums, (n, length + 4), and their numbers from 1."""
    heads = np.array(records.starts, dtype=np.int64)
    sizes = np.ndarray(len(data) - 7, "<i8", data, strides=(1,))[heads]
    order = np.argsort(sizes, kind="stable")
    bounds = np.flatnonzero(np.diff(sizes[order], prepend=-1, append=-1))
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        width = int(sizes[order[first]]) + _TAIL
        anywhere = np.ndarray(len(data) - width + 1, f"V{width}", data, strides=(1,))
        few = max(1, _AT_ONCE // width)
        for i in range(first, last, few):
            numbers = order[i : min(i + few, last)]
            yield anywhere[heads[numbers] + _HEAD.size].view(np.uint8).reshape(len(numbers), width), numbers + 1


def _wide(events: Events) -> pl.DataFrame:
    """Scalars as rows: joined on step where every tag's steps only rise, else cut where a step or a tag comes again."""
    names = [_name(proto.text(tag)) for tag in events.tags]
    parts = [
        pl.DataFrame({"line": p.number, "wall_time": p.time, "step": p.step, "tag": p.tag, "value": p.value})
        for p in events.parts
    ]
    doubled = {*_against_samples(names)}
    kept = [i for i in range(len(names)) if i not in doubled]
    long = pl.concat(parts).sort("line", maintain_order=True)
    if len(kept) < len(names):
        long = long.filter(pl.col("tag").is_in(kept))
    rising = long.select((pl.col("step").diff().over("tag") > 0).fill_null(True).all()).item()
    if rising:
        long = long.with_columns(row=pl.col("step"))
    else:
        fresh = (pl.col("step") != pl.col("step").shift()).fill_null(True)
        long = long.with_columns(block=fresh.cum_sum())
        long = long.with_columns(again=pl.int_range(pl.len()).over("block", "tag"))
        long = long.with_columns(row=pl.struct("block", "again").rank("dense"))
    keys = long.group_by("row", maintain_order=True).agg(
        pl.col("step").first(), pl.col("wall_time").last(), pl.col("line").first()
    )
    if not rising and keys.height >= _SEVERAL * keys["step"].n_unique():
        keys = keys.rename({"step": "epoch (counted)"})
    keys = keys.sort("row", maintain_order=True)
    at = long.select(pl.col("row").rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
    tag, value = long["tag"].to_numpy(), long["value"].to_numpy()
    order = np.argsort(tag, kind="stable")
    bounds = np.searchsorted(tag[order], range(len(names) + 1))
    wide = {
        names[i]: _column(at[place], value[place], keys.height)
        for i in kept
        if len(place := order[bounds[i] : bounds[i + 1]])
    }
    return keys.drop("row").with_columns(column.alias(name) for name, column in wide.items())


def _against_samples(names: Sequence[str]) -> list[int]:
    """Tags that are the second one of a metric, whose steps count samples: Megatron's `lm loss` and `lm loss vs samples`."""
    plain = [simplify(name) for name in names]
    there = {*plain}
    return [i for i, name in enumerate(plain) if name.endswith(_SAMPLES) and name.removesuffix(_SAMPLES) in there]


def _column(at: event_forms.Numbers, value: npt.NDArray[np.float64], height: int) -> pl.Series:
    """Values at their rows, the last one where several have one; null elsewhere."""
    cells, absent = np.full(height, np.nan), np.ones(height, dtype=bool)
    cells[at], absent[at] = value, False
    return pl.Series(pa.array(cells, mask=absent) if absent.any() else cells)


def _name(tag: str) -> str:
    return f"{tag} (logged)" if tag in ("step", "wall_time", "line", "row") else tag
