"""GD207: norms that still grow at the end."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.parameter_growth import analyze
from gdiag.model import Severity
from tests.analyzers.made_layers import layered, names
from tests.analyzers.made_runs import Floats, cosine, view


def test_the_layer_that_outgrows_its_kind_is_named() -> None:
    params = {n: 3 + 0.001 * np.arange(1000.0) for n, _, _ in names(3)}
    params["blocks.1.qkv"] = 3 * np.exp(np.arange(1000) / 200)
    (finding,) = analyze(layered(params=params))
    assert (finding.where.layer, finding.where.step, finding.severity) == ("blocks.1.qkv", 800, Severity.WARNING)
    assert (finding.number("ratio") or 0) > 2


def test_the_whole_network_when_only_its_norm_is_logged() -> None:
    assert len(analyze(view({"param_norm": np.exp(np.arange(1000) / 200)}))) == 1
    assert analyze(view({"param_norm": 10 + np.log(1 + np.arange(1000.0))})) == []


def test_growth_of_all_is_dated_and_embeddings_are_not_judged() -> None:
    grown = {n: np.concatenate([np.full(400, 3.0), 3 * np.exp(np.arange(600) / 500)]) for n, _, _ in names(3)}
    (finding,) = analyze(layered(params=grown))
    assert (finding.where.layer, finding.number("layers_moved")) == (None, 13)
    assert 350 <= (finding.where.step or 0) <= 430
    only = {n: np.full(1000, 3.0) for n, _, _ in names(3)} | {"wte": 3 * np.exp(np.arange(1000) / 200)}
    assert analyze(layered(params=only)) == []


def test_threshold_sets_the_factor() -> None:
    params = {n: np.full(1000, 3.0) for n, _, _ in names(3)}
    params["blocks.1.qkv"] = 3 * np.exp(np.arange(1000) / 600)
    assert analyze(layered(params=params)) == []
    assert len(analyze(layered(params=params), factor=1.3)) == 1


def walk(rows: int, turn: int | None, decay: float) -> dict[str, Floats]:
    """Norms under random steps of a cosine schedule; from `turn` on the steps point one way and nothing decays."""
    rate, square = cosine(rows, peak=1.0, floor=0.01), 1.0
    norm = np.empty(rows)
    for i in range(rows):
        drift = 0.0 if turn is None or i < turn else 0.012
        square += (0.03 * rate[i]) ** 2 + 2 * drift * rate[i] * np.sqrt(square)
        square -= 2 * decay * rate[i] * square if turn is None or i < turn else 0.0
        norm[i] = np.sqrt(square)
    return {n: (3 + k) * norm for k, (n, _, _) in enumerate(names(3))}


def test_growth_that_ends_with_the_schedule_is_seen_where_it_speeds_up() -> None:
    run = layered(params=walk(1000, 300, 0.001), steps={"lr": cosine(1000, peak=1.0, floor=0.01)})
    (finding,) = analyze(run)
    assert (finding.where.step or 0) == pytest.approx(300, abs=15)
    assert (finding.severity, finding.measure("layers_moved")) == (Severity.WARNING, 13)
    assert (finding.number("pace_ratio") or 0) > 2
    assert analyze(run, faster=1e9) == []


def test_growth_that_a_jump_of_the_rate_brings_is_the_rates() -> None:
    rate = cosine(1000, peak=1.0, floor=0.01)
    rate[300:] *= 5
    assert analyze(layered(params=walk(1000, 300, 0.001), steps={"lr": rate})) == []


@pytest.mark.parametrize("decay", [0.0, 0.001, 0.01])
def test_a_healthy_walk_slows_down(decay: float) -> None:
    assert analyze(layered(params=walk(1000, None, decay), steps={"lr": cosine(1000, peak=1.0, floor=0.01)})) == []


def leaves(rows: int, turn: int, growth: float, length: int) -> dict[str, Floats]:
    """Norms that walk alike; one of them grows `growth`-fold within `length` rows from `turn` on and stays there."""
    made = walk(rows, None, 1e-4)
    made["blocks.1.qkv"] = made["blocks.1.qkv"] * growth ** np.clip((np.arange(rows) - turn) / length, 0, 1)
    return made


@pytest.mark.parametrize("length", [60, 300])
def test_a_layer_that_leaves_the_others_in_mid_run_is_dated(length: int) -> None:
    (finding,) = analyze(layered(params=leaves(1000, 400, 8.0, length)))
    assert (finding.where.layer, finding.severity, finding.measure("alone")) == ("blocks.1.qkv", Severity.WARNING, True)
    assert (finding.where.step or 0) == pytest.approx(400, abs=15)
    assert finding.measure("layer_kind") == "attention_qkv"


def test_a_jump_and_a_slow_departure_are_not_growth() -> None:
    assert analyze(layered(params=leaves(1000, 400, 8.0, 1))) == []
    assert analyze(layered(params=leaves(1000, 0, 8.0, 1000))) == []


def test_a_layer_that_the_others_follow_is_named_and_dated() -> None:
    made = leaves(1000, 450, 600.0, 100)
    for name, norm in made.items():
        if name != "blocks.1.qkv":
            made[name] = norm * np.exp(1.2 * np.clip(np.arange(1000) - 470, 0, None) / 530)
    made["blocks.1.qkv"] *= np.exp(0.4 * np.clip(np.arange(1000) - 200, 0, 250) / 250)  # it had begun to, slowly
    (finding,) = analyze(layered(params=made))
    assert finding.where.layer == "blocks.1.qkv"
    assert (finding.where.step or 0) == pytest.approx(450, abs=15)


def test_thresholds_set_how_far_and_how_suddenly_it_leaves() -> None:
    run = layered(params=leaves(1000, 400, 4.0, 200))
    assert len(analyze(run)) == 1
    assert analyze(run, apart=6.0) == analyze(run, sudden=1e6) == []
