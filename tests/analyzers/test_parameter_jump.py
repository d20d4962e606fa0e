"""GD208: a norm that moves further than any update."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.parameter_jump import analyze
from gdiag.model import Severity
from tests.analyzers.made_layers import Floats, layered, names
from tests.analyzers.made_runs import view


def walk(rows: int = 500, seed: int = 0, style: str = "gpt") -> dict[str, Floats]:
    rng = np.random.default_rng(seed)
    return {n: 5 + np.cumsum(rng.normal(0.001, 0.001, rows)) for n, _, _ in names(3, style)}


@pytest.mark.parametrize(("style", "layer"), [("gpt", "blocks.1.out"), ("llama", "model.layers.2.mlp.down_proj")])
def test_one_layer_alone_is_critical(style: str, layer: str) -> None:
    params = walk(style=style)
    params[layer][300:] += 3
    (finding,) = analyze(layered(params=params, style=style, first=7000))
    assert (finding.where.step, finding.where.layer, finding.severity) == (7300, layer, Severity.CRITICAL)
    assert (finding.number("excess") or 0) > 100
    assert finding.number("layers_moved") == 1


def test_a_smaller_jump_is_a_warning() -> None:
    params = walk()
    params["blocks.1.out"][300:] += 0.2
    (finding,) = analyze(layered(params=params))
    assert finding.severity is Severity.WARNING


def test_many_layers_together_are_information() -> None:
    params = {n: v + np.where(np.arange(500) >= 300, 1.0, 0.0) for n, v in walk().items()}
    (finding,) = analyze(layered(params=params))
    assert (finding.severity, finding.where.layer, finding.number("layers_moved")) == (Severity.INFO, None, 19)


def test_after_turmoil_it_is_information() -> None:
    params, grad = walk(), np.exp(np.random.default_rng(1).normal(0, 0.2, 500))
    params["blocks.1.out"][300:] += 3
    grad[200:] *= 500
    (finding,) = analyze(layered(params=params, steps={"grad_norm": grad}))
    assert (finding.severity, finding.measure("steady_before")) == (Severity.INFO, False)
    params["blocks.1.out"][300:] += 3000  # no turmoil moves one layer alone so far
    (finding,) = analyze(layered(params=params, steps={"grad_norm": grad}))
    assert finding.severity is Severity.CRITICAL


def test_quiet_when_the_rate_jumps_and_threshold() -> None:
    lr = np.full(500, 1.0)
    lr[300:] = 40.0
    moves = {n: 5 + np.cumsum(lr * np.abs(np.random.default_rng(0).normal(0.001, 0.001, 500))) for n, _, _ in names(3)}
    assert analyze(layered(params=moves, steps={"lr": lr})) == []
    params = walk()
    params["blocks.1.out"][300:] += 3
    assert analyze(layered(params=params), factor=1e5) == []


def test_a_norm_that_moves_faster_from_then_on_is_no_jump() -> None:
    params = walk()
    params["blocks.1.qkv"][300:] += 0.3 * np.arange(1, 201)
    assert analyze(layered(params=params)) == []


def test_the_whole_network_when_only_its_norm_is_logged() -> None:
    total = 50 + np.cumsum(np.random.default_rng(0).normal(0.002, 0.001, 500))
    total[300:] += 2
    (finding,) = analyze(layered(steps={"param_norm": total}))
    assert (finding.where.step, finding.where.layer, finding.severity) == (300, None, Severity.WARNING)


def test_a_jump_after_which_nothing_is_finite_is_told() -> None:
    params = walk()
    params["blocks.1.out"][300:] += 3
    for values in params.values():
        values[301:] = np.nan
    (finding,) = analyze(layered(params=params))
    assert (finding.where.step, finding.where.layer) == (300, "blocks.1.out")


@pytest.mark.parametrize(("surge", "severity"), [(40.0, Severity.INFO), (1.0, Severity.WARNING)])
def test_a_jump_as_large_as_a_surging_update_is_the_optimizers(surge: float, severity: Severity) -> None:
    rng = np.random.default_rng(0)
    norm = 50 + np.cumsum(rng.normal(0.001, 0.001, 500))
    norm[300:] += 0.3
    update = np.asarray(0.01 * np.exp(rng.normal(0, 0.1, 500)), dtype=np.float64)
    update[300] *= surge
    (finding,) = analyze(view({"param_norm": norm, "update_norm": update}))
    assert (finding.severity, finding.measure("within_update")) == (severity, surge > 1)


@pytest.mark.parametrize(("back", "like"), [(260, 40), (300, 0), (None, None)])
def test_norms_of_an_earlier_row_are_those_of_other_weights(back: int | None, like: int | None) -> None:
    """Steps 300 on go on from the weights of step 300 - back, or from some that the run never had."""
    drift = np.random.default_rng(1)
    params = {n: 5 * np.exp(drift.uniform(0.5, 1) * v / 40) for n, v in walk().items()}
    for values in params.values():
        past = values[300 - back : 500 - back] if back is not None else values[300:] + drift.uniform(1, 3)
        values[300:] = past[:200]
    (finding,) = analyze(layered(params=params))
    assert finding.severity is Severity.INFO
    assert finding.measure("other_weights") is (like is not None)
    assert finding.number("like_step") == pytest.approx(like, abs=3) if like is not None else True


def test_a_move_over_a_gap_in_the_log_is_that_of_all_its_steps() -> None:
    norm = 50 + np.cumsum(np.abs(np.random.default_rng(0).normal(0.01, 0.002, 2000)))
    step = np.delete(np.arange(2000), slice(900, 1300))
    assert analyze(view({"step": step, "param_norm": norm[step]})) == []


def test_one_layer_of_two_that_jumps_to_an_earlier_norm_is_not_a_checkpoint() -> None:
    params = dict(list(walk().items())[:2])
    moved, still = params
    params[moved] = 5 + 0.02 * np.arange(500.0) + np.random.default_rng(3).normal(0, 1e-4, 500)
    params[still] = np.full(500, 5.0) + np.random.default_rng(4).normal(0, 1e-6, 500)
    params[moved][300:] -= params[moved][300] - params[moved][40]
    (finding,) = analyze(layered(params=params))
    assert (finding.where.layer, finding.measure("other_weights")) == (moved, False)
    assert finding.severity > Severity.INFO
