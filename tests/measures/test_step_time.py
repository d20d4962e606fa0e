from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures.step_time import StepTimes, excess_share, step_times
from tests.analyzers import made_runs
from tests.analyzers.made_telemetry import START, noisy


def of(**columns: made_runs.Values) -> StepTimes | None:
    return step_times(made_runs.view(columns).paths[0].frame)


def test_a_logged_column_is_taken_as_it_is() -> None:
    found = of(step_time=noisy(300))
    assert found is not None
    assert found.basis == "logged"
    assert not found.judged[0]
    assert found.judged[-1]


def test_a_running_total_is_differenced() -> None:
    found = of(step_time=np.cumsum(noisy(300)))
    assert found is not None
    assert found.basis == "cumulative column"
    assert np.median(found.seconds) == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize(("column", "basis"), [("time", "time stamps"), ("elapsed", "elapsed time")])
def test_stamps_stand_in_for_step_times(column: str, basis: str) -> None:
    found = of(**{column: START + np.cumsum(noisy(300))})
    assert found is not None
    assert found.basis == basis
    assert np.median(found.seconds) == pytest.approx(2.0, rel=0.02)


def test_whole_second_stamps_of_fast_steps_say_nothing() -> None:
    assert of(time=np.floor(START + np.cumsum(noisy(300)))) is None


def test_throughput_stands_in_last() -> None:
    found = of(tokens_per_s=1e6 / noisy(300))
    assert found is not None
    assert found.basis == "throughput"


def test_no_clue_is_none() -> None:
    assert of(loss=np.ones(100)) is None


def test_non_finite_rows_and_skips_are_marked() -> None:
    loss = np.ones(100)
    loss[40] = np.nan
    skipped = np.zeros(100)
    skipped[50] = 1
    found = of(step_time=noisy(100), loss=loss, skipped=skipped)
    assert found is not None
    assert np.flatnonzero(found.bad_values).tolist() == [40, 50]


def test_the_part_that_holds_the_added_time_is_named() -> None:
    comm, data = np.full(200, 0.3), np.full(200, 0.1)
    comm[100:] += 1.0
    found = of(step_time=1.6 + comm + data, comm_time=comm, data_time=data)
    assert found is not None
    inside = np.arange(200) >= 100
    share, shares = excess_share(found, inside, ~inside)
    assert share == "communication"
    assert shares["comm_time"] == pytest.approx(1.0)


def test_parts_that_do_not_hold_it_leave_it_unknown() -> None:
    seconds = np.full(200, 2.0)
    seconds[100:] += 1.0
    found = of(step_time=seconds, data_time=np.full(200, 0.1))
    assert found is not None
    inside = np.arange(200) >= 100
    assert excess_share(found, inside, ~inside)[0] == "unknown"


def test_growing_batches_are_a_load() -> None:
    found = of(step_time=noisy(200), batch_size=np.repeat([256.0, 512.0], 100))
    assert found is not None
    assert found.load is not None
    assert found.load[-1] / found.load[0] == 2


@pytest.mark.parametrize("column", ["time", "elapsed"])
def test_a_clock_that_stands_still_says_nothing(column: str) -> None:
    assert of(**{column: np.full(300, START)}) is None
