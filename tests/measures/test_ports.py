"""Growth of counters between readings, and whether it comes when steps are slow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from gdiag.measures.ports import Counter, Interval, counters, judge, match
from gdiag.measures.step_time import StepTimes, step_times
from gdiag.model import Severity
from gdiag.reference.port_counters import thresholds

START = 1.7e9


def steps(
    slow: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> tuple[StepTimes, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    seconds = np.ones(1000)
    seconds[slow] = 3.0
    table = pl.DataFrame(
        {"step": np.arange(1000), "step_time": seconds, "time": START + np.cumsum(seconds), "source": 0, "line": 1}
    )
    found = step_times(table)
    assert found is not None
    return found, slow


def counter(growth: Sequence[float], every: float) -> Counter:
    parts = tuple(Interval(g, START + i * every, START + (i + 1) * every) for i, g in enumerate(growth))
    return Counter("mlx5_0 port 1", "n1", "port_rcv_errors", sum(growth), parts, False, 0, 1)


def test_growth_at_the_time_of_slow_steps_is_more_than_chance() -> None:
    times, slow = steps(np.arange(500, 520))
    seen = match(counter([0] * 9 + [7, 9] + [0] * 9, 52), times, slow)
    assert seen is not None
    assert (seen.inside, seen.slow) == (20, 20)
    assert seen.p == pytest.approx(0.05)
    assert (seen.chance or 0) < 4


def test_growth_at_another_time_is_chance() -> None:
    times, slow = steps(np.arange(500, 520))
    seen = match(counter([7, 9] + [0] * 18, 52), times, slow)
    assert seen is not None
    assert (seen.inside, seen.p) == (0, 1.0)


def test_two_readings_date_nothing() -> None:
    times, slow = steps(np.arange(500, 520))
    seen = match(counter([7], 1040), times, slow)
    assert seen is not None
    assert (seen.inside, seen.slow, seen.chance, seen.p) == (20, 20, None, None)


def test_clocks_that_do_not_meet_match_nothing() -> None:
    times, slow = steps(np.arange(500, 520))
    assert match(counter([7] * 9, 52), steps(slow)[0], slow) is not None
    late = Counter("p", None, "x", 7, (Interval(7, START + 1e6, START + 2e6),), False, 0, 1)
    assert match(late, times, slow) is None


def test_a_reset_hides_what_came_before_it_and_nothing_else() -> None:
    rows = [
        (i, name, v)
        for i, (a, b) in enumerate([(5, 100), (9, 200), (0, 10), (3, 90)])
        for name, v in (("x", a), ("data", b))
    ]
    table = pl.DataFrame(
        {"time": [START + i for i, _, _ in rows], "source": 0, "line": 1, "host": None, "device": "d", "port": 1, "guid": None,
         "counter": [n for _, n, _ in rows], "value": [float(v) for _, _, v in rows], "saturated": False, "snapshot": [i for i, _, _ in rows]},
        schema_overrides={"host": pl.String, "guid": pl.String},
    )  # fmt: skip
    found = {c.counter: c.growth for c in counters(table)}
    assert found == {"x": 4 + 3, "data": 100 + 80}


@pytest.mark.parametrize(
    ("name", "last", "growth", "verdict"),
    [
        ("port_rcv_errors", 5, None, None),
        ("port_rcv_errors", 50, None, (Severity.INFO, False)),
        ("port_rcv_errors", 500, None, (Severity.WARNING, False)),
        ("port_rcv_errors", 500, 0, None),
        ("port_rcv_errors", 5, 1, (Severity.WARNING, True)),
        ("link_downed", 1, 1, (Severity.CRITICAL, True)),
        ("nvlink_crc_errors", 500, 300_000, (Severity.INFO, False)),
        ("nvlink_link_recovery_failed_events", 7, None, (Severity.WARNING, False)),
    ],
)
def test_what_a_counter_is_judged(
    name: str, last: float, growth: float | None, verdict: tuple[Severity, bool] | None
) -> None:
    parts = () if growth is None else (Interval(growth, None, None),)
    assert judge(Counter("mlx5_0 port 1", None, name, last, parts, False, 0, 1), thresholds()[name]) == verdict
