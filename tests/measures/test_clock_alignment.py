from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.measures import clock_alignment
from gdiag.measures.clock_alignment import Alignment
from gdiag.measures.curves import Floats

START = 1_780_000_000.0
STAMPS: Floats = np.asarray(START + 2.0 * np.arange(1, 1801), dtype=np.float64)  # an hour


def seen(hours: float, before: float = 0.0, after: float = 0.0) -> pl.DataFrame:
    """Load of a machine that is busy for the run's hour, on a clock that is `hours` off."""
    time = np.arange(START - 3600 * before, START + 3600 * (1 + after), 10.0)
    busy = ((time >= START) & (time <= START + 3600)).astype(float)
    return pl.DataFrame({"time": time + 3600 * hours, "busy": busy})


def align(frame: pl.DataFrame, stamps: Floats = STAMPS, *, zone_known: bool = False) -> Alignment:
    found = clock_alignment.align(stamps, frame, zone_known=zone_known)
    assert found is not None
    return found


@settings(max_examples=25, deadline=None)
@given(quarter=st.integers(-48, 56))
def test_any_zone_of_the_world_is_found(quarter: int) -> None:
    found = align(seen(quarter / 4))
    assert found.offset == -900.0 * quarter
    assert found.how == ("same clock" if quarter == 0 else "inferred")


def test_load_decides_where_telemetry_is_longer_than_the_run() -> None:
    found = align(seen(-7, before=9, after=6))
    assert found.offset == 7 * 3600
    assert found.how == "inferred"


def test_a_machine_that_is_always_busy_leaves_it_open() -> None:
    frame = seen(0, before=6, after=6).with_columns(pl.lit(1.0).alias("busy"))
    assert align(frame).how == "same clock"
    moved = frame.with_columns(pl.col("time") + 3600 * 10)
    assert align(moved).how == "ambiguous"


def test_a_known_zone_is_not_moved() -> None:
    found = align(seen(5), zone_known=True)
    assert (found.offset, found.how, found.usable) == (0.0, "apart", False)


def test_days_apart_are_said_to_be_apart() -> None:
    found = align(seen(24 * 9))
    assert not found.usable
    assert "do not overlap" in found.said()


def test_a_log_without_dates_is_placed_by_the_first_load() -> None:
    found = clock_alignment.align(np.empty(0), seen(0, before=1), zone_known=False, elapsed=np.arange(0.0, 3600.0, 2.0))
    assert found is not None
    assert found.how == "load start"
    assert found.offset == pytest.approx(-START, abs=15)


def test_the_step_of_a_moment() -> None:
    steps = np.arange(100, 1900)
    assert clock_alignment.step_at(START + 2.5, STAMPS, steps) == 101
    assert clock_alignment.step_at(START - 500, STAMPS, steps) == 100
    assert clock_alignment.step_at(START + 9999, STAMPS, steps) is None


def test_telemetry_that_begins_late_does_not_move_the_clock() -> None:
    late = seen(0, after=0.5).filter(pl.col("time") > START + 20).with_columns(pl.lit(1.0).alias("busy"))
    assert align(late).offset == 0.0
