"""GD209: updates against weights."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.update_ratio import analyze
from gdiag.model import Severity
from tests.analyzers.made_layers import layered, names
from tests.analyzers.made_runs import Floats, view


def update(size: float, rows: int = 600) -> Floats:
    return np.asarray(size * np.exp(np.random.default_rng(0).normal(0, 0.1, rows)), dtype=np.float64)


def test_a_surge_of_the_update_is_a_warning_with_its_lead() -> None:
    moved, grad = update(0.01), update(1.0)
    moved[400:406] *= 8
    grad[403:409] *= 20
    (finding,) = analyze(view({"update_norm": moved, "param_norm": np.full(600, 10.0), "grad_norm": grad}))
    assert (finding.where.step, finding.severity) == (400, Severity.WARNING)
    assert finding.number("grad_lead") == 3


def test_levels_out_of_range_are_information() -> None:
    weights = {n: np.full(600, 10.0) for n, _, _ in names(1)}
    updates = {n: update(0.01) for n in weights} | {"lm_head": update(2.0)}
    (finding,) = analyze(layered(params=weights, updates=updates))
    assert (finding.where.layer, finding.severity) == ("lm_head", Severity.INFO)


def test_quiet_and_threshold() -> None:
    run = view({"update_norm": update(0.01), "param_norm": np.full(600, 10.0)})
    assert analyze(run) == []
    assert len(analyze(run, low=2e-3)) == 1
    moved = update(0.01)
    moved[400:406] *= 8
    assert analyze(view({"update_norm": moved, "param_norm": np.full(600, 10.0)}), surge=20.0) == []


def test_updates_of_the_layers_stand_for_the_total() -> None:
    updates = {n: update(0.01) for n, _, _ in names(1)}
    for moved in updates.values():
        moved[400:406] *= 8
    (finding,) = [f for f in analyze(layered(updates=updates)) if f.severity is Severity.WARNING]
    assert finding.where.step == 400
