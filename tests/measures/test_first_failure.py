"""The first failure at a run's end, and what only follows of it."""

from __future__ import annotations

import polars as pl
import pytest

from gdiag.measures.first_failure import first_failure, is_storage
from gdiag.schema import TABLES

WAIT: dict[str, object] = {"kind": "nccl_timeout", "text": "Watchdog caught collective operation timeout"}


def events(*rows: dict[str, object]) -> pl.DataFrame:
    placed = [{"source": 0, "line": 10 + i, "step": 100, **row} for i, row in enumerate(rows)]
    return pl.DataFrame(placed, schema=TABLES["events"])


def raised(text: str, **where: object) -> dict[str, object]:
    return {"kind": "exit", "text": text, **where}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("OSError: [Errno 28] No space left on device", True),
        (
            "RuntimeError: [enforce fail at inline_container.cc:603] . PytorchStreamWriter failed writing file data/12: file write failed",
            True,
        ),
        ("RuntimeError: unexpected pos 3298534912 vs 3298534800", True),
        ("OSError: [Errno 122] Disk quota exceeded: 'iter_0001000'", True),
        ('SafetensorError: IoError(Os { code: 28, kind: StorageFull, message: "No space left on device" })', True),
        ("NCCL WARN Error while creating shared memory segment /dev/shm/nccl-a1: No space left on device (28)", False),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", False),
    ],
)
def test_what_a_failed_write_says(text: str, written: bool) -> None:
    assert is_storage(text) is written


def test_a_failed_write_comes_first_wherever_it_stands() -> None:
    full = raised("OSError: [Errno 28] No space left on device")
    for said in (events(full, WAIT), events(WAIT, full), events(WAIT, {**full, "source": 1})):
        row = first_failure(said, 100)
        assert row is not None
        assert row["text"] == full["text"]
    assert first_failure(events({**full, "step": 60}, WAIT), 100) is None


def test_an_exception_before_the_time_outs_is_their_cause() -> None:
    error = raised("ValueError: sample 17 is empty")
    row = first_failure(events(error, WAIT), 100)
    assert row is not None
    assert row["text"] == error["text"]
    assert first_failure(events(WAIT, error), 100) is None
    assert first_failure(events(error), 100) is None
    assert first_failure(events({**error, "source": 1}, WAIT), 100) is None
    assert first_failure(events({**error, "source": 1, "time": 1.0}, {**WAIT, "time": 2.0}), 100) is not None


@pytest.mark.parametrize(
    "text",
    [
        "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 1",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        "ConnectionError: Connection reset by peer",
    ],
)
def test_what_follows_another_failure_is_no_first(text: str) -> None:
    assert first_failure(events(raised(text), WAIT), 100) is None


def test_no_events_say_nothing() -> None:
    assert first_failure(events(), 100) is None
    assert first_failure(events(), None) is None
