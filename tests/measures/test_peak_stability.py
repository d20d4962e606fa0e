"""Stability around the peak learning rate: a raised level is more than rows above the lowest one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdiag.measures.peak_stability import Instability
from tests.analyzers.made_runs import Floats, cosine, learning, view


def seen(loss: Floats) -> Instability | None:
    return view({"lr": cosine(warmup=100), "loss": loss}).peak_instability


def test_a_level_that_rises_is_lifted() -> None:
    loss = learning(1000)
    loss[60:600] += 3.0
    found = seen(loss)
    assert found is not None
    assert (found.kind, found.lifted, found.lasts(0.3)) == ("loss", True, True)


def test_five_low_rows_leave_the_level_where_it_was() -> None:
    loss = learning(1000) + np.random.default_rng(0).normal(0, 0.01, 1000)
    loss[100:107] -= 2.0
    found = seen(loss)
    assert found is not None
    assert (found.lifted, found.worse_share > 0.3, found.lasts(0.3)) == (False, True, False)


def test_wild_gradients_need_no_raised_level() -> None:
    found = seen(np.append(learning(60), np.full(940, 9.0)))
    assert found is not None
    assert replace(found, kind="gradient", lifted=False, worse_share=0.5).lasts(0.3)
    assert not replace(found, kind="gradient", worse_share=0.1).lasts(0.3)


def test_a_run_that_is_loud_from_its_start_lifts_nothing_by_chance() -> None:
    lifted = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        loud = learning(1000, noise=0) + rng.choice([0.1, 1.5], 1000) * rng.normal(0, 1, 1000)
        found = seen(loud)
        lifted += found is not None and found.lasts(0.3)
    assert lifted == 0


def test_what_breaks_long_after_the_peak_is_another_story() -> None:
    loss = learning(1000)
    loss[60:70] += 3.0
    early = seen(loss)
    assert early is not None
    assert not early.lasts(0.3)
    loss[500:] += 9.0
    both = seen(loss)
    assert both is not None
    assert (both.step, both.recovered, both.lasts(0.3)) == (early.step, True, False)
    loss[70:] += 9.0
    broken = seen(loss)
    assert broken is not None
    assert not broken.recovered
