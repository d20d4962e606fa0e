"""Events of TensorBoard files read side by side: records of one length whose bytes mean the same at the same places.

A form is learnt from one record: where its step, tags and values stand, and which bytes (field keys, lengths, kinds of tensor)
make the record what it is. Every record of that length with these bytes is read through the same columns.

Field numbers are those of tensorflow/core/util/event.proto, summary.proto, histogram.proto and tensor.proto.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gdiag.ingesters import layer_names, proto
from gdiag.ingesters.proto import Span

Rows = npt.NDArray[np.uint8]
"""Records, or pieces of them, of one length: (n, length)."""
Numbers = npt.NDArray[np.int64]

_TENSORS: Final = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8"}
"""Kinds of tensor → how a scalar of them is stored."""
_FORMS: Final = 64
"""Forms that a batch of records is held against; what fits none of them is read record by record."""
_VARINT: Final = "varint"
_SQUARES: Final = "squares"


@dataclass(frozen=True, slots=True)
class _Slot:
    """A value of an event: where its tag and its number stand, and how the number is written."""

    tag: slice
    at: slice
    kind: str


@dataclass(slots=True)
class _Form:
    time: slice | None = None
    step: slice | None = None
    slots: list[_Slot] = field(default_factory=list)
    fixed: list[int] = field(default_factory=list)
    """Places of the bytes that all records of the form share."""
    others: int = 0
    """Values that are no scalars."""

    def body(self, span: Span) -> slice:
        """Where a field's content stands; its key and its length belong to the form."""
        self.fixed += range(span.key, span.start)
        return slice(span.start, span.stop)


@dataclass(frozen=True, slots=True)
class Scalars:
    """Scalars, arrays of one length; `tag` counts `Events.tags`."""

    number: Numbers
    time: npt.NDArray[np.float64]
    step: Numbers
    tag: Numbers
    value: npt.NDArray[np.float64]


@dataclass(slots=True)
class Events:
    """What the records gave."""

    tags: dict[bytes, int] = field(default_factory=dict)
    parts: list[Scalars] = field(default_factory=list)
    others: int = 0
    """Images, audio, text and histograms that are no gradients."""
    bad: list[int] = field(default_factory=list)
    """Numbers of records that are no events."""


def take(events: Events, rows: Rows, numbers: Numbers) -> None:
    """Read records of one length; `numbers` are theirs in the file."""
    for _ in range(_FORMS):
        if not len(rows):
            return
        fits = _take(events, rows, numbers, len(rows) // 2)
        rows, numbers = rows[~fits], numbers[~fits]
    for i in range(len(rows)):
        _take(events, rows[i : i + 1], numbers[i : i + 1], 0)


def _take(events: Events, rows: Rows, numbers: Numbers, example: int) -> npt.NDArray[np.bool_]:
    """Read the records of the example's form, and say which these are."""
    fits = np.zeros(len(rows), dtype=bool)
    fits[example] = True
    try:
        form = _learn(rows[example].tobytes())
    except ValueError:
        events.bad.append(int(numbers[example]))
        return fits
    fits[:] = True
    for place in form.fixed:
        fits &= rows[:, place] == rows[example, place]
    for varint in (form.step, *(slot.at for slot in form.slots if slot.kind == _VARINT)):
        if varint is not None:
            fits &= (rows[:, varint] >= 128).sum(axis=1) == varint.stop - varint.start - 1
            fits &= rows[:, varint.stop - 1] < 128
    _read(events, rows[fits], numbers[fits], form)
    return fits


def _learn(record: bytes) -> _Form:
    """Time (field 1), step (2) and summary (5) of one event.

    Raises:
        ValueError: the record is no message.
    """
    form = _Form()
    for span in proto.spans(record, 0, len(record)):
        body = form.body(span)
        if span.number == 1 and span.wire == 1:
            form.time = body
        elif span.number == 2 and span.wire == 0:
            form.step = body
        elif span.number == 5 and span.wire == 2:
            for value in proto.spans(record, span.start, span.stop):
                place = form.body(value)
                if value.number == 1 and value.wire == 2:
                    _learn_value(form, record, place)
    return form


def _learn_value(form: _Form, record: bytes, value: slice) -> None:
    """Tag (field 1), float (2), histogram (5) or tensor (8) of one value of a summary."""
    tag: slice | None = None
    found: tuple[slice, str] | None = None
    for span in proto.spans(record, value.start, value.stop):
        body = form.body(span)
        if span.number == 1 and span.wire == 2:
            tag = body
        elif span.number == 2 and span.wire == 5:
            found = body, "<f4"
        elif span.number == 5 and span.wire == 2:
            for part in proto.spans(record, span.start, span.stop):
                place = form.body(part)
                found = (place, _SQUARES) if part.number == 5 and part.wire == 1 else found
        elif span.number == 8 and span.wire == 2:
            found = _learn_tensor(form, record, body)
    if tag is None or found is None or tag.start == tag.stop:
        form.others += 1
    else:
        form.slots.append(_Slot(tag, *found))


def _learn_tensor(form: _Form, record: bytes, tensor: slice) -> tuple[slice, str] | None:
    """The number of a scalar tensor: kind (field 1), content (4) or one of the repeated fields (5, 6, 7, 10)."""
    kind = 0
    found: tuple[slice, str] | None = None
    for span in proto.spans(record, tensor.start, tensor.stop):
        body = form.body(span)
        size = span.stop - span.start
        stored = {4: _TENSORS.get(kind), 5: "<f4", 6: "<f8"}.get(span.number)
        if span.number == 1 and span.wire == 0:
            kind = proto.varint(record, span.start)[0]
            form.fixed += range(span.start, span.stop)
        elif found is None and stored is not None and size == np.dtype(stored).itemsize:
            found = body, stored
        elif found is None and span.number in (7, 10) and 0 < size == proto.varint(record, span.start)[1] - span.start:
            found = body, _VARINT
    return found


def _read(events: Events, rows: Rows, numbers: Numbers, form: _Form) -> None:
    events.others += form.others * len(rows)
    time = _cells(rows, form.time, "<f8") if form.time is not None else np.full(len(rows), np.nan)
    step = _varints(rows[:, form.step]) if form.step is not None else np.zeros(len(rows), dtype=np.int64)
    for slot in form.slots:
        value = _varints(rows[:, slot.at]).astype(np.float64) if slot.kind == _VARINT else _values(rows, slot)
        tag = _coded(events, np.ascontiguousarray(rows[:, slot.tag]), histogram=slot.kind == _SQUARES)
        found = Scalars(numbers, time, step, tag, value)
        if (told := tag >= 0).all():
            events.parts.append(found)
            continue
        events.others += int((~told).sum())
        events.parts.append(Scalars(numbers[told], time[told], step[told], tag[told], value[told]))


def _values(rows: Rows, slot: _Slot) -> npt.NDArray[np.float64]:
    if slot.kind == _SQUARES:
        return np.sqrt(np.maximum(_cells(rows, slot.at, "<f8"), 0.0))
    return _cells(rows, slot.at, slot.kind)


def _cells(rows: Rows, at: slice, kind: str) -> npt.NDArray[np.float64]:
    return np.ascontiguousarray(rows[:, at]).view(kind)[:, 0].astype(np.float64)


def _varints(cells: Rows) -> Numbers:
    """Base-128 numbers of one length as int64."""
    value = np.zeros(len(cells), dtype=np.uint64)
    for place, column in enumerate(cells.T):
        value |= (column & 127).astype(np.uint64) << np.uint64(7 * place)
    return value.view(np.int64)


def _coded(events: Events, tags: Rows, *, histogram: bool) -> Numbers:
    """The number of each tag, -1 for histograms that are no gradient's or weight's."""
    if (tags == tags[0]).all():
        index, names = np.zeros(len(tags), dtype=np.int64), [tags[0].tobytes()]
    else:
        buffers = [None, pa.py_buffer(tags)]
        coded = pa.Array.from_buffers(pa.binary(tags.shape[1]), len(tags), buffers).dictionary_encode()
        index, names = coded.indices.to_numpy(), coded.dictionary.to_pylist()
    codes = [
        -1
        if histogram and layer_names.parse(proto.text(name)) is None
        else events.tags.setdefault(name, len(events.tags))
        for name in names
    ]
    return np.array(codes, dtype=np.int64)[index]
