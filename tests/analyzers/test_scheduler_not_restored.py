"""GD306: the learning rate after a restart."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.scheduler_not_restored import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, cosine, learning, view

STEP = np.concatenate((np.arange(600), np.arange(500, 1000)))


def resumed(after: Floats) -> dict[str, Floats]:
    lr = cosine()
    loss = learning()
    again = learning(seed=1)
    return {
        "step": STEP.astype(np.float64),
        "lr": np.concatenate((lr[:600], after)),
        "loss": np.concatenate((loss[:600], again[500:])),
    }


def test_quiet_when_the_schedule_goes_on() -> None:
    assert analyze(view(resumed(cosine()[500:]))) == []


def test_fires_when_the_warmup_begins_again() -> None:
    (finding,) = analyze(view(resumed(cosine()[:500])))
    assert finding.where.step == 500
    assert finding.measure("kind") == "restarted"


def test_names_the_steps_by_which_it_is_behind() -> None:
    (finding,) = analyze(view(resumed(cosine(1300)[:1000][300:800])))
    assert finding.measure("kind") == "behind"
    lr = cosine()
    (finding,) = analyze(view(resumed(lr[400:900])))
    assert finding.number("shift") == pytest.approx(100, abs=2)


def test_fires_when_stepped_twice_from_then_on() -> None:
    lr = np.linspace(1e-3, 0, 1000)
    twice = np.concatenate((lr[500:] - (lr[500] - lr[500:]), np.zeros(0)))[:240]
    columns = {
        "step": np.concatenate((np.arange(600), np.arange(500, 740))).astype(np.float64),
        "lr": np.concatenate((lr[:600], twice)),
    }
    (finding,) = analyze(view(columns))
    assert finding.measure("kind") == "advanced_twice"


@pytest.mark.parametrize("times", [2, 3, 4])
def test_fires_where_a_sparse_log_goes_on_faster_to_the_end_of_its_cosine(times: int) -> None:
    place = np.concatenate((np.arange(5600), np.minimum(5000 + times * np.arange(3000), 7999)))
    step = np.concatenate((np.arange(5600), np.arange(5000, 8000)))
    logged = step % 50 == 0
    (finding,) = analyze(view({"step": step[logged].astype(np.float64), "lr": cosine(8000)[place][logged]}))
    assert (finding.measure("kind"), finding.where.step) == ("advanced_twice", 5000)
    assert finding.number("schedule_steps_per_step") == pytest.approx(times, rel=0.05)


def test_one_step_trained_twice_does_not_hide_a_faster_schedule() -> None:
    place = np.concatenate((np.arange(1500), np.minimum(1499 + 3 * np.arange(1500), 3999)))
    step = np.concatenate((np.arange(1500), np.arange(1499, 2999))).astype(np.float64)
    loss = np.concatenate((learning(1500), learning(3000, seed=1)[1499:2999]))
    (finding,) = analyze(view({"step": step, "lr": cosine(4000)[place], "loss": loss}))
    assert finding.measure("kind") == "advanced_twice"


def test_threshold_is_the_relative_difference() -> None:
    run = view(resumed(cosine()[500:] * 1.08))
    assert len(analyze(run)) == 1
    assert analyze(run, mismatch=0.1) == []


@pytest.mark.parametrize("every", [1, 10])
def test_fires_on_a_warmup_in_mid_run_without_a_marked_restart(every: int) -> None:
    lr = np.concatenate((cosine(2000, warmup=100)[:900], cosine(2000, warmup=100)[:1100]))
    (finding,) = analyze(view({"step": np.arange(0, 2000, every), "lr": lr[::every]}))
    assert finding.measure("kind") == "restarted"
    assert finding.measure("at_restart") is False
    assert finding.where.step == 900


def test_quiet_on_cycles_with_their_own_warmups() -> None:
    lr = np.tile(cosine(500, warmup=50, floor=0.0), 4)
    assert analyze(view({"lr": lr})) == []


@pytest.mark.parametrize("times", [2, 3, 5])
@pytest.mark.parametrize("every", [1, 10])
def test_fires_where_the_schedule_moves_faster_without_a_marked_restart(times: int, every: int) -> None:
    place = np.minimum(np.where(np.arange(4000) < 1500, np.arange(4000), 1500 + times * (np.arange(4000) - 1500)), 3999)
    (finding,) = analyze(view({"step": np.arange(0, 4000, every), "lr": cosine(4000)[place][::every]}))
    assert (finding.measure("kind"), finding.where.step) == ("advanced_twice", 1500)
    assert finding.number("schedule_steps_per_step") == times
    assert finding.number("lr_ratio") is None


def test_a_rate_that_moves_half_as_fast_again_is_a_plan() -> None:
    place = np.where(np.arange(2000) < 1000, np.arange(2000), 1000 + 1.5 * (np.arange(2000) - 1000))
    assert analyze(view({"lr": np.interp(place, np.arange(4000), cosine(4000))})) == []


def test_names_the_steps_by_which_it_is_ahead() -> None:
    lr = np.linspace(1e-3, 0, 1000)
    columns = {"step": np.concatenate((np.arange(600), np.arange(500, 900))).astype(np.float64)}
    (finding,) = analyze(view(columns | {"lr": np.concatenate((lr[:600], lr[600:]))}))
    assert finding.measure("kind") == "ahead"
    assert finding.number("shift") == pytest.approx(100, abs=3)


def test_a_rate_that_runs_out_early_is_left_to_gd303() -> None:
    lr = np.linspace(1e-3, 0, 2000)
    lr[600:] = np.maximum(lr[600] * (1 - np.arange(1400) / 100), 1e-8)
    falling = learning(2000, end=1.0)
    stopped = np.where(np.arange(2000) < 700, falling, falling[700])
    assert analyze(view({"lr": lr, "loss": stopped})) == []
    (finding,) = analyze(view({"lr": lr, "loss": falling}))
    assert finding.severity is Severity.WARNING


def test_the_mean_rate_of_two_writers_turns_without_a_fault() -> None:
    one, other = np.linspace(1e-3, 0, 2000), np.linspace(1e-3, 0, 2000)
    one[1000:] -= 2 * (one[1000] - one[1000:])
    columns = {
        "step": np.repeat(np.arange(2000), 2).astype(np.float64),
        "lr": np.maximum(np.stack((one, other), 1).ravel(), 0),
    }
    columns["loss"] = np.repeat(learning(2000), 2) + np.tile([0.0, 0.1], 2000)
    assert analyze(view(columns)) == []


@pytest.mark.parametrize("rows", [20, 60])
def test_a_warmup_up_to_the_rate_that_was_due_is_information(rows: int) -> None:
    due = cosine()[500:]  # falls by 7 % in 20 rows and by a fifth in 60 while the rate warms up
    (finding,) = analyze(view(resumed(due * np.minimum(1.0, np.arange(1, 501) / rows))))
    assert (finding.measure("kind"), finding.severity) == ("restarted", Severity.INFO)
    (finding,) = analyze(view(resumed(cosine()[:500])))
    assert finding.severity is Severity.WARNING
