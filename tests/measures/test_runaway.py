"""Curves that leave by orders of magnitude."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.loss_divergence import analyze
from gdiag.measures.runaway import runaway
from gdiag.model import Severity
from tests.analyzers.made_runs import view


@pytest.mark.parametrize(("rows", "onset"), [(115, 52), (400, 350), (60, 20)])
@pytest.mark.parametrize("tail", [1.0, 3.0])
def test_growth_to_the_end_is_dated_where_it_leaves(rows: int, onset: int, tail: float) -> None:
    rng = np.random.default_rng(rows)
    loss = 2.0 + 0.2 * np.exp(rng.normal(0, 0.5, rows)) ** tail
    loss[onset:] *= np.exp(np.arange(rows - onset) * 1.2)
    found = runaway(loss)
    assert found is not None
    assert abs(found.onset - onset) <= 3
    assert found.level == pytest.approx(2.2, abs=0.6)
    (finding,) = analyze(view({"loss": loss}))
    assert finding.severity is Severity.CRITICAL
    assert abs((finding.where.step or 0) - onset) <= 4


def test_what_comes_back_or_began_high_does_not_leave() -> None:
    loss = np.full(300, 2.0)
    loss[100:200] = 1e6
    assert runaway(loss) is None
    assert runaway(np.concatenate([np.geomspace(50, 2, 100), np.full(200, 60.0)])) is None
    assert runaway(np.full(15, 2.0)) is None


def test_the_end_must_be_ten_times_the_first_quarter() -> None:
    loss = np.full(300, 2.0)
    loss[150:] = 19.0
    assert runaway(loss) is None
    loss[150:] = 21.0
    assert runaway(loss) is not None


def test_an_objective_about_zero_has_no_level_to_leave() -> None:
    """The surrogate of a policy gradient follows a moving reference, on either side of zero."""
    rng = np.random.default_rng(1)
    loss = 0.05 * rng.standard_normal(400)
    loss[250:] += 1.5
    assert runaway(loss) is not None
    assert analyze(view({"loss": loss})) == []
