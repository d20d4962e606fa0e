"""GD207: norms that still grow at the end."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.parameter_growth import analyze
from gdiag.model import Severity
from tests.analyzers.made_layers import layered, names
from tests.analyzers.made_runs import view


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
    assert (finding.where.layer, finding.number("layers_moved")) == (None, 19)
    assert 350 <= (finding.where.step or 0) <= 430
    only = {n: np.full(1000, 3.0) for n, _, _ in names(3)} | {"wte": 3 * np.exp(np.arange(1000) / 200)}
    assert analyze(layered(params=only)) == []


def test_threshold_sets_the_factor() -> None:
    params = {n: np.full(1000, 3.0) for n, _, _ in names(3)}
    params["blocks.1.qkv"] = 3 * np.exp(np.arange(1000) / 600)
    assert analyze(layered(params=params)) == []
    assert len(analyze(layered(params=params), factor=1.3)) == 1
