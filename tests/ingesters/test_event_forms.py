"""TensorBoard event files: every way in which a scalar is written, and damage in the middle."""

from __future__ import annotations

import math
import struct

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import tfevents
from gdiag.ingesters.reading import Input, Options, Reading
from tests.ingesters.encoders import message, number_field, tf_events, tf_record, varint


def event(step: int, *values: bytes, time: float | None = 1.6e9) -> bytes:
    clock = b"" if time is None else b"\x09" + struct.pack("<d", time)
    return tf_record(clock + number_field(2, step) + message(5, b"".join(message(1, value) for value in values)))


def scalar(tag: str, value: float) -> bytes:
    return message(1, tag.encode()) + b"\x15" + struct.pack("<f", value)


def tensor(tag: str, body: bytes) -> bytes:
    return message(1, tag.encode()) + message(8, body) + message(9, message(1, message(1, b"scalars")))


def histogram(tag: str, squares: float, buckets: int) -> bytes:
    figures = b"".join(
        bytes([8 * n + 1]) + struct.pack("<d", v) for n, v in enumerate((0.0, 1.0, 9.0, 2.0, squares), 1)
    )
    return message(1, tag.encode()) + message(
        5, figures + message(6, bytes(8 * buckets)) + message(7, bytes(8 * buckets))
    )


def read(content: bytes) -> Reading:
    return tfevents.read(Input("events.out.tfevents.1", content[:65536], content=content), Options())


def steps(content: bytes) -> pl.DataFrame:
    found = read(content).steps
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (number_field(1, 1) + message(2, b"") + message(4, struct.pack("<f", 2.5)), 2.5),
        (number_field(1, 1) + message(5, struct.pack("<f", 2.5)), 2.5),
        (number_field(1, 2) + message(4, struct.pack("<d", 2.25)), 2.25),
        (number_field(1, 2) + message(6, struct.pack("<d", 2.25)), 2.25),
        (number_field(1, 3) + message(4, struct.pack("<i", -7)), -7.0),
        (number_field(1, 3) + message(7, varint(300)), 300.0),
        (number_field(1, 9) + number_field(10, -3), -3.0),
    ],
)
def test_scalar_tensors(body: bytes, value: float) -> None:
    assert steps(b"".join(event(s, tensor("train/loss", body)) for s in range(300)))["loss"].to_list() == [value] * 300


def test_several_values_of_one_event_and_tags_of_one_length() -> None:
    content = b"".join(event(s, scalar("loss", s / 4), scalar("norm", -s)) for s in (1, 100, 1000, 10**6, 2**40))
    content += b"".join(event(s, scalar("rate", 1.0)) for s in (2**41, 2**42))
    found = steps(content)
    assert found["step"].to_list() == [1, 100, 1000, 10**6, 2**40, 2**41, 2**42]
    assert found["loss"].to_list()[:5] == [s / 4 for s in (1, 100, 1000, 10**6, 2**40)]
    assert found["grad_norm"].to_list()[:5] == [-s for s in (1, 100, 1000, 10**6, 2**40)]
    assert found["loss"].null_count() == 2


def test_nan_and_infinity_are_logged_and_absent_values_are_not() -> None:
    content = event(0, scalar("loss", math.nan)) + event(1, scalar("loss", math.inf)) + event(2, scalar("lr", 0.1))
    assert str(steps(content)["loss"].to_list()) == "[nan, inf, None]"


def test_histograms_of_gradients_are_norms() -> None:
    content = b"".join(
        event(s, histogram(f"gradients/layers.{k}.weight", (k + 1) ** 2, 3 + s % 3), histogram("some/text", 4.0, 5))
        + event(s, scalar("loss", 2.0))
        for s in range(20)
        for k in range(3)
    )
    reading = read(content)
    assert reading.layers is not None
    columns = [c.column for c in reading.layer_columns]
    assert [reading.layers[c].drop_nulls().unique().to_list() for c in columns] == [[1.0], [2.0], [3.0]]
    assert any(note.startswith("60 images") for note in reading.source.notes)


def test_records_without_clock_step_or_sense() -> None:
    content = b"".join(event(s, scalar("loss", 2.0), time=None) for s in range(1, 5)) + tf_record(b"\xff" * 40)
    content += tf_record(b"\x09" + bytes(8) + message(4, b"a graph")) + event(9, message(1, b"") + scalar("lr", 1.0))
    reading = read(content)
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == [1, 2, 3, 4, 9]
    assert reading.rejects is not None
    assert reading.rejects["line"].to_list() == [5]


def test_the_content_of_long_records_is_checked_too() -> None:
    content = bytearray(event(0, scalar("loss", 1.0)) + event(1, scalar("loss", 1.0), message(7, bytes(70_000))))
    content[-30_000] ^= 1
    reading = read(bytes(content) + event(2, scalar("loss", 3.0)))
    assert reading.rejects is not None
    assert reading.rejects["line"].to_list() == [2]
    assert reading.steps is not None
    assert reading.steps["loss"].to_list() == [1.0, 3.0]


def test_files_without_scalars_are_refused() -> None:
    with pytest.raises(InputError, match="without scalars"):
        read(tf_record(b"\x09" + bytes(8) + message(3, b"brain.Event:2")))


POINTS = [(1.6e9 + s, s, tag, s / 8) for s in range(60) for tag in ("train/loss", "lr", "train/grad_norm")]
EVENTS = tf_events(POINTS)


@settings(max_examples=40, deadline=None)
@given(st.integers(60, len(EVENTS) - 200), st.integers(1, 90), st.booleans())
def test_damage_costs_the_records_it_lies_in(place: int, length: int, wiped: bool) -> None:
    content = bytearray(EVENTS)
    for i in range(place, place + length):
        content[i] = 0 if wiped else content[i] ^ 0x5A
    found = steps(bytes(content))
    assert found["loss"].count() + found["lr"].count() + found["grad_norm"].count() >= len(POINTS) - 4
    assert all(row[0] == row[1] * 8 for row in found.select("step", "loss").drop_nulls().rows())
