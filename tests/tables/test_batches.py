"""Samples of one optimizer step, and what they were put together from."""

from __future__ import annotations

import pytest

from gdiag.ingesters.run_config import canonical_config
from gdiag.measures.run import RunView
from gdiag.model import Value
from gdiag.schema import Records
from gdiag.tables.batches import Batch, batch_of
from tests.tables.steps import records

LOSS = [3.0] * 20


def taken(held: Records) -> Batch | None:
    return batch_of(RunView(held.runs[0], held))


@pytest.mark.parametrize(
    ("config", "batch"),
    [
        ({"batch_size": 512}, Batch(512, "configured")),
        ({"batch_size": 512, "device_batch_size": 4, "grad_accumulation": 8}, Batch(512, "configured")),
        (
            {"device_batch_size": 8, "grad_accumulation": 4, "world_size": 8},
            Batch(256, "8 per device × 4 accumulated × 8 devices"),
        ),
        ({"device_batch_size": 8, "world_size": 64, "data_parallel_size": 8}, Batch(64, "8 per device × 8 devices")),
        (
            {"batch_size": 12, "grad_accumulation": 40, "world_size": 2},
            Batch(960, "12 per device × 40 accumulated × 2 devices"),
        ),
        ({"device_batch_size": 8}, Batch(8, "8 per device, number of devices not known", whole=False)),
        ({"batch_size": "auto", "device_batch_size": True}, None),
        ({}, None),
    ],
)
def test_what_is_configured_is_multiplied(config: dict[str, Value], batch: Batch | None) -> None:
    assert taken(records(loss=LOSS, config=config)) == batch


def test_what_is_logged_or_counted_goes_first() -> None:
    config: dict[str, Value] = {"device_batch_size": 8, "world_size": 8}
    assert taken(records(loss=LOSS, batch_size=[96.0] * 20, config=config)) == Batch(96, "logged")
    counted = records(loss=LOSS, samples=[128.0 * i for i in range(20)], config=config)
    assert taken(counted) == Batch(128, "by the sample counter")
    named = records(
        loss=LOSS, sample_start=[32.0 * i for i in range(20)], sample_end=[32.0 * (i + 1) for i in range(20)]
    )
    assert taken(named) == Batch(32, "by sample ids")


def test_ranks_that_write_rows_are_the_devices() -> None:
    held = records(loss=[3.0] * 40, ranks=[0, 1] * 20, config={"device_batch_size": 8})
    assert taken(held) == Batch(16, "8 per device × 2 devices")


def test_what_one_process_takes_is_not_the_whole_batch() -> None:
    assert canonical_config({"per_device_train_batch_size": 8, "train_batch_size": 16}) == {"device_batch_size": 8}
    deepspeed = {"train_batch_size": 512, "train_micro_batch_size_per_gpu": 4}
    assert canonical_config(deepspeed) == {"batch_size": 512, "device_batch_size": 4}
