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


@pytest.mark.parametrize("decay", [0.0, 0.001, 0.01])
def test_a_healthy_walk_slows_down(decay: float) -> None:
    assert analyze(layered(params=walk(1000, None, decay), steps={"lr": cosine(1000, peak=1.0, floor=0.01)})) == []
