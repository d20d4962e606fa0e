"""Order of rows: restarts, late rows, unordered files, writers that take turns."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures.segments import gaps, interval, layout, regular_share


def steps(*spans: tuple[int, int], every: int = 1) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.concatenate([np.arange(a, b, every) for a, b in spans])


def test_increasing_steps_are_one_segment() -> None:
    found = layout(steps((0, 500)))
    assert found.order == "ordered"
    assert found.segment.max() == 0


@pytest.mark.parametrize("every", [1, 10])
def test_a_rewind_begins_a_segment(every: int) -> None:
    found = layout(steps((0, 1000), (900, 2000), every=every))
    assert found.order == "ordered"
    assert found.segment.max() == 1
    assert np.flatnonzero(np.diff(found.segment)).tolist() == [1000 // every - 1]


def test_many_restarts_are_no_second_writer() -> None:
    found = layout(steps((0, 350), (301, 650), (601, 920), (901, 1300), (1201, 1500), (1401, 1800), (1701, 2000)))
    assert found.order == "ordered"
    assert found.segment.max() == 6


def test_one_late_row_is_no_restart() -> None:
    step = np.arange(100)
    step[[50, 51]] = step[[51, 50]]
    assert layout(step).segment.max() == 0


def test_rows_without_order_are_one_segment() -> None:
    found = layout(np.random.default_rng(0).permutation(1000))
    assert found.order == "unordered"
    assert found.segment.max() == 0


@pytest.mark.parametrize("block", [1, 7])
def test_writers_that_take_turns_are_told_apart(block: int) -> None:
    first, second = np.arange(1000, 1700), np.arange(0, 700)
    step = np.concatenate([x for i in range(0, 700, block) for x in (first[i : i + block], second[i : i + block])])
    found = layout(step)
    assert found.order == "interleaved"
    assert np.array_equal(found.writer == 0, step >= 1000)


def test_interval_and_gaps() -> None:
    step = steps((0, 500), (800, 1000), every=10)
    assert interval(step) == 10
    assert gaps(step) == [(490, 800)]
    assert gaps(np.sort(np.random.default_rng(1).choice(100_000, 500, replace=False))) == []
    assert regular_share(np.arange(10)) == 1


def test_another_interval_is_no_gap() -> None:
    dense_then_sparse = np.concatenate([np.arange(100), 930 + 971 * np.arange(60)])
    assert gaps(dense_then_sparse) == []
    assert gaps(np.delete(dense_then_sparse, slice(110, 117))) == [(930 + 971 * 9, 930 + 971 * 17)]
    assert gaps(np.append(np.arange(100), 5000)) == [(99, 5000)]
