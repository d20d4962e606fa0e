from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers import slow_steps
from gdiag.model import Severity
from tests.analyzers import made_runs
from tests.analyzers.made_telemetry import noisy, timed

AT = np.array([901, 913, 950, 1011, 1100, 1177, 1223, 1304, 1391, 1500, 1533, 1607, 1750, 1801, 1888])


def stalled(by: float = 5.0) -> dict[str, made_runs.Values]:
    seconds, data = noisy(), np.full(2000, 0.05)
    data[AT] += (by - 1) * 2.0
    return timed(seconds + data, data_time=data)


def test_stalls_are_found_and_the_loader_is_named() -> None:
    (finding,) = slow_steps.analyze(made_runs.view(stalled()))
    assert finding.severity is Severity.WARNING
    assert finding.where.step == 901
    assert finding.where.last_step == 1888
    assert finding.measure("share") == "data"
    assert finding.number("slow_steps") == len(AT)


def test_a_few_mild_ones_are_not_worth_a_word() -> None:
    seconds = noisy()
    seconds[[300, 1200]] *= 1.4
    assert slow_steps.analyze(made_runs.view(timed(seconds))) == []


def test_logged_steps_stand_for_those_between_them() -> None:
    columns = stalled(1.5)  # fifteen seconds in all
    (finding,) = slow_steps.analyze(made_runs.view(columns), lost=1e-4, ratio=1.1)
    assert finding.severity is Severity.INFO
    seldom = {**columns, "step": 100 * np.arange(2000)}
    (finding,) = slow_steps.analyze(made_runs.view(seldom), lost=1e-4, ratio=1.1)
    assert finding.severity is Severity.WARNING


def test_the_share_of_time_is_a_threshold() -> None:
    (finding,) = slow_steps.analyze(made_runs.view(stalled()), lost=0.5)
    assert finding.severity is Severity.INFO


def test_non_finite_steps_are_set_apart() -> None:
    seconds, loss = noisy(), np.ones(2000)
    seconds[AT] *= 2
    loss[AT] = np.nan
    (finding,) = slow_steps.analyze(made_runs.view(timed(seconds, loss=loss)))
    assert finding.severity is Severity.INFO
    assert finding.number("nonfinite_share") == 100


def test_two_parts_are_two_findings() -> None:
    columns = stalled()
    comm = np.full(2000, 0.2)
    comm[AT + 3] += 6.0
    columns["comm_time"] = comm
    columns["step_time"] = np.asarray(columns["step_time"]) + comm
    shares = {f.measure("share") for f in slow_steps.analyze(made_runs.view(columns))}
    assert shares == {"data", "communication"}


def test_a_lone_step_near_the_end_is_worth_a_word_only_where_it_is_far_slower() -> None:
    seconds = noisy()
    seconds[1980] *= 1.5
    assert slow_steps.analyze(made_runs.view(timed(seconds))) == []
    seconds[1980] *= 4
    (finding,) = slow_steps.analyze(made_runs.view(timed(seconds)))
    assert finding.message.startswith("Step 1980 takes")


def test_one_slow_step_and_its_neighbours() -> None:
    seconds = noisy()
    seconds[1200] *= 400
    (finding,) = slow_steps.analyze(made_runs.view(timed(seconds)))
    assert finding.message.startswith("Step 1200 takes ")
    assert " times as long as its neighbours, the longest " in finding.message
    assert "e+" not in finding.message


def test_a_throughput_alone_is_told_in_its_own_unit() -> None:
    seconds = noisy()
    seconds[AT] *= 5
    (finding,) = slow_steps.analyze(made_runs.view({"samples_per_s": 512 / seconds}))
    assert "the slowest at " in finding.message
    assert " samples/s" in finding.message
    assert finding.measure("seconds_lost") is None


def test_a_few_seconds_in_all_are_a_note() -> None:
    fast = {name: np.asarray(values) / 100 for name, values in stalled().items() if name.endswith("_time")}
    (finding,) = slow_steps.analyze(made_runs.view(fast))
    assert (finding.number("seconds_lost") or 0) < 60
    assert finding.severity is Severity.INFO
    (counted,) = slow_steps.analyze(made_runs.view(fast), seconds=0.5)
    assert counted.severity is Severity.WARNING


def test_the_cost_is_that_of_the_steps_that_are_counted() -> None:
    (finding,) = slow_steps.analyze(made_runs.view(stalled()))
    count, before, ratio = (finding.number(name) or 0 for name in ("slow_steps", "level_before", "ratio"))
    assert finding.number("seconds_lost") == pytest.approx(count * before * (ratio - 1), rel=0.05)


@pytest.mark.parametrize(("bursts", "severity"), [(40, Severity.WARNING), (12, Severity.INFO)])
def test_what_one_part_does_to_a_short_run_again_and_again_is_no_trifle(bursts: int, severity: Severity) -> None:
    seconds, data = noisy(seconds=0.2), np.full(2000, 0.005)
    at = 900 + 2 * np.sort(np.random.default_rng(2).choice(545, bursts, replace=False))
    data[at] += 0.3 * 40 / bursts  # twelve seconds in all
    (finding,) = slow_steps.analyze(made_runs.view(timed(seconds + data - 0.005, data_time=data)))
    assert finding.severity is severity
