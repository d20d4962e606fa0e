"""TensorBoard event files without TensorFlow: scalars, scalar tensors, and the norms that gradient histograms hold.

TFRecord: length (8 bytes), masked CRC-32C of it, record, masked CRC-32C of the record. Field numbers are those of
tensorflow/core/util/event.proto, summary.proto and tensor.proto.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import columns, crc32c, layer_names, proto
from gdiag.ingesters.aliases import simplify
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT = "tfevents"
_LONGEST: Final = 1 << 28
_CHECKED: Final = 4096
"""Records up to this size have their content checked; longer ones are images and graphs, B."""
_SEVERAL: Final = 3
_TENSORS: Final = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8"}
_SAMPLES: Final = "_vs_samples"


@dataclass(slots=True)
class _Events:
    times: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    tags: list[bytes] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    other: int = 0
    """Images, audio, text and histograms that are no gradients."""


def recognise(given: Input) -> float:
    """A first record whose length fits and whose length checksum holds."""
    head = given.head
    if len(head) < 16:
        return 0.0
    (size,) = struct.unpack_from("<Q", head)
    if not 8 <= size < _LONGEST:
        return 0.0
    stored = struct.unpack_from("<I", head, 8)[0]
    return 1.0 if crc32c.masked(np.frombuffer(head[:8], dtype=np.uint8).reshape(1, 8))[0] == stored else 0.0


def read(given: Input, options: Options) -> Reading:
    """A row per step in the order written; scalars of one step are one row.

    Raises:
        InputError: no scalar in the file.
    """
    records, cut = _records(given.data())
    wrong = _broken(records)
    events = _Events()
    for number, (record, _) in enumerate(records, 1):
        if number - 1 not in wrong:
            try:
                _event(events, record, number)
            except (ValueError, struct.error):
                wrong.add(number - 1)
    if not events.values:
        raise InputError(f"{given.path} is a TensorBoard file without scalars")
    notes = []
    if cut:
        notes.append("the file is cut off or damaged: everything before is used")
    if events.other:
        notes.append(f"{events.other} images, texts and histograms not used")
    frame = _wide(events)
    if "epoch (counted)" in frame.columns:
        notes.append("several values a step: the steps are taken as epochs, rows are numbered")
    bad = [(i + 1, "record with a wrong checksum or content", "") for i in sorted(wrong)]
    rejects = pl.DataFrame(bad, schema={"line": pl.Int64, "reason": pl.String, "text": pl.String}, orient="row")
    return columns.reading(given.path, FORMAT, frame, options, rejects=rejects, notes=notes)


def _records(data: bytes) -> tuple[list[tuple[bytes, int]], bool]:
    """Records with their stored checksums, and whether the file ends inside one."""
    found: list[tuple[bytes, int]] = []
    position, end = 0, len(data)
    unpack = struct.Struct("<QI").unpack_from
    last = struct.Struct("<I").unpack_from
    while position + 12 <= end:
        size, checksum = unpack(data, position)
        stop = position + 12 + size
        if size > _LONGEST or stop + 4 > end:
            return found, True
        if size > _CHECKED and _mask(data[position : position + 8]) != checksum:
            return found, True
        found.append((data[position + 12 : stop], last(data, stop)[0]))
        position = stop + 4
    return found, position < end


def _mask(data: bytes) -> int:
    return int(crc32c.masked(np.frombuffer(data, dtype=np.uint8).reshape(1, len(data)))[0])


def _broken(records: list[tuple[bytes, int]]) -> set[int]:
    short = [i for i, (record, _) in enumerate(records) if len(record) <= _CHECKED]
    wrong = crc32c.broken([records[i][0] for i in short], [records[i][1] for i in short])
    return {short[i] for i in wrong}


def _event(events: _Events, record: bytes, number: int) -> None:
    """Time (field 1), step (2), summary (5) of one event."""
    if _plain_scalar(events, record, number):
        return
    if record[:1] == b"\x09":
        time = struct.unpack_from("<d", record, 1)[0]
        position, step = 9, 0
    else:
        time, position, step = math.nan, 0, 0
    for kind, body in proto.fields(record[position:]):
        if kind == 1:
            time = proto.double(body)
        elif kind == 2 and isinstance(body, int):
            step = proto.signed(body)
        elif kind == 5 and isinstance(body, bytes):
            for part, value in proto.fields(body):
                if part == 1 and isinstance(value, bytes):
                    _value(events, value, time, step, number)


def _plain_scalar(events: _Events, record: bytes, number: int) -> bool:
    """Reads the commonest event, one float under a short tag, at a fixed place each; False for any other."""
    end = len(record)
    if end < 20 or record[0] != 9 or record[-5] != 21:
        return False
    place, step, shift = 9, 0, 0
    if record[9] == 16:
        while True:
            place += 1
            byte = record[place]
            step |= (byte & 127) << shift
            shift += 7
            if byte < 128 or place > 20:
                break
        place += 1
    if place + 6 > end - 5 or record[place] != 42 or record[place + 1] != end - place - 2 or record[place + 2] != 10:
        return False
    if record[place + 3] != end - place - 4 or record[place + 4] != 10 or record[place + 5] != end - place - 11:
        return False
    time, value = struct.unpack_from("<d", record, 1)[0], struct.unpack_from("<f", record, end - 4)[0]
    events.times.append(time)
    events.steps.append(proto.signed(step))
    events.tags.append(record[place + 6 : end - 5])
    events.values.append(value)
    events.lines.append(number)
    return True


def _value(events: _Events, body: bytes, time: float, step: int, number: int) -> None:
    tag, value = b"", None
    for kind, part in proto.fields(body):
        if kind == 1 and isinstance(part, bytes):
            tag = part
        elif kind == 2 and isinstance(part, bytes):
            value = struct.unpack("<f", part)[0]
        elif kind == 8 and isinstance(part, bytes):
            value = _tensor(part)
        elif kind == 5 and isinstance(part, bytes) and layer_names.parse(proto.text(tag)) is not None:
            squares = [v for n, v in proto.fields(part) if n == 5]
            value = math.sqrt(max(proto.double(squares[0]), 0.0)) if squares else None
    if value is None or not tag:
        events.other += 1
        return
    events.times.append(time)
    events.steps.append(step)
    events.tags.append(tag)
    events.values.append(value)
    events.lines.append(number)


def _tensor(body: bytes) -> float | None:
    """The value of a scalar tensor."""
    kind = 0
    for number, part in proto.fields(body):
        if number == 1 and isinstance(part, int):
            kind = part
        elif number == 4 and isinstance(part, bytes) and (form := _TENSORS.get(kind)):
            cells = np.frombuffer(part, dtype=form) if len(part) % np.dtype(form).itemsize == 0 else np.empty(0)
            return float(cells[0]) if len(cells) == 1 else None
        elif number == 5 and isinstance(part, bytes) and len(part) == 4:
            return float(struct.unpack("<f", part)[0])
        elif number == 6 and isinstance(part, bytes) and len(part) == 8:
            return proto.double(part)
        elif number in (7, 10) and isinstance(part, int):
            return float(proto.signed(part))
    return None


def _wide(events: _Events) -> pl.DataFrame:
    """Scalars as rows: joined on step where every tag's steps only rise, else cut where a step or a tag comes again."""
    names = {tag: _name(proto.text(tag)) for tag in dict.fromkeys(events.tags)}
    long = pl.DataFrame(
        {"wall_time": events.times, "step": events.steps, "value": events.values, "line": events.lines,
         "tag": pl.Series([names[tag] for tag in events.tags], dtype=pl.String)},
        schema_overrides={"step": pl.Int64},
    )  # fmt: skip
    # Megatron writes some tags twice; the steps of the second kind count samples.
    long = long.filter(~pl.col("tag").is_in([n for n in names.values() if simplify(n).endswith(_SAMPLES)]))
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
    wide = long.pivot(on="tag", index="row", values="value", aggregate_function="last")
    return keys.join(wide, on="row", how="left", maintain_order="left").sort("row", maintain_order=True).drop("row")


def _name(tag: str) -> str:
    return f"{tag} (logged)" if tag in ("step", "wall_time", "line", "row") else tag
