"""GD303: the learning rate is gone long before the run is."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.lr_decayed_early import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, cosine, learning, view


def halted(at: int, total: int = 1200) -> Floats:
    """A loss that falls until `at` and stays."""
    clean = learning(total, noise=0.0)
    clean[at:] = clean[at]
    return clean + 0.05 * np.random.default_rng(3).standard_normal(total)


def gone(at: int, total: int = 1200, share: float = 1e-3) -> Floats:
    lr = cosine(total)
    lr[at:] = lr.max() * share
    return lr


@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize("at", [300, 700])
def test_fires_where_rate_and_loss_stop(at: int, every: int) -> None:
    run = view({"step": np.arange(1200)[::every], "lr": gone(at)[::every], "loss": halted(at)[::every]})
    (finding,) = analyze(run)
    assert finding.severity is Severity.WARNING
    assert finding.where.step == at
    assert finding.where.last_step == np.arange(1200)[::every][-1]


def test_fires_when_a_cosine_ends_in_the_middle() -> None:
    lr = np.concatenate((cosine(500, floor=0.0), np.zeros(700)))
    (finding,) = analyze(view({"lr": lr, "loss": halted(470)}))
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", ["cosine", "wsd", "steps", "constant"])
def test_quiet_on_planned_decays(shape: str, seed: int) -> None:
    t = np.arange(1200)
    lr = {
        "cosine": cosine(1200, floor=0.0),
        "wsd": 3e-4 * np.clip((1200 - t) / 120, 0, 1),
        "steps": 3e-4 * 0.3 ** (t // 300),
        "constant": np.full(1200, 1e-3),
    }[shape]
    assert analyze(view({"lr": lr, "loss": learning(1200, seed=seed)})) == []


def test_quiet_when_the_loss_goes_on_falling() -> None:
    assert analyze(view({"lr": gone(300), "loss": learning(1200)})) == []


def test_threshold_is_the_part_of_the_run_left() -> None:
    run = view({"lr": gone(700), "loss": halted(700)})
    assert analyze(run, left=0.5, low_left=0.5) == []


def test_a_rate_of_nothing_for_half_a_run_needs_no_proof_in_loud_noise() -> None:
    rng = np.random.default_rng(5)
    loss = learning(2000, noise=0.0, start=1.8, end=0.9) * (1 + 0.25 * rng.standard_normal(2000))
    flat = np.where(np.arange(2000) < 700, loss, loss - learning(2000, 0.0, start=1.8, end=0.9) + 1.0)
    (finding,) = analyze(view({"lr": gone(700, 2000), "loss": flat}))
    assert finding.severity is Severity.WARNING
    assert analyze(view({"lr": gone(1400, 2000), "loss": loss})) == []


@pytest.mark.parametrize(("share", "fires"), [(0.005, True), (0.019, False)])
def test_a_rest_that_holds_almost_none_of_the_rate_needs_no_proof_either(share: float, fires: bool) -> None:
    loud = halted(500, 2000) + 2.0 * np.random.default_rng(1).standard_normal(2000)
    assert bool(analyze(view({"lr": gone(500, 2000, share), "loss": loud}))) is fires


def test_a_log_of_forty_rows_shows_a_rate_that_is_gone() -> None:
    loss = np.maximum(2.5, 4.5 - 0.25 * np.arange(40.0)) + 0.1 * np.random.default_rng(1).standard_normal(40)
    steps = 10 * np.arange(40)
    lr = np.where(steps < 100, 5e-4 * (1 + np.cos(np.pi * steps / 100)), 1e-7)
    (finding,) = analyze(view({"step": steps, "lr": lr, "loss": loss}))
    assert (finding.severity, finding.where.step) == (Severity.WARNING, 100)
