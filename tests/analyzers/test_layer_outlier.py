"""GD205: one layer alone, the first of several, or all together."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.layer_outlier import analyze
from gdiag.model import Severity
from tests.analyzers.made_layers import layered, norms


@pytest.mark.parametrize(("style", "layer"), [("gpt", "blocks.1.fc"), ("llama", "model.layers.0.self_attn.o_proj")])
def test_one_layer_alone_is_a_warning(style: str, layer: str) -> None:
    made = norms(600, style=style)
    made[layer][400] *= 8
    (finding,) = analyze(layered(made, style=style, first=10_000))
    assert (finding.where.step, finding.where.layer, finding.severity) == (10_400, layer, Severity.WARNING)
    assert finding.number("layers_moved") == 1
    assert finding.measure("alone") is True


@pytest.mark.parametrize(("layer", "kind"), [("wte", "embedding"), ("wpe", "position_embedding")])
def test_positions_are_no_tokens(layer: str, kind: str) -> None:
    made = norms(600)
    made[layer][400] *= 16
    (finding,) = analyze(layered(made))
    assert (finding.where.layer, finding.measure("layer_kind")) == (layer, kind)


def test_jumps_as_large_as_others_of_the_run_are_its_habit() -> None:
    made = norms(900)
    for layer, row in (("lm_head", 300), ("blocks.1.fc", 450), ("wte", 600)):
        made[layer][row] *= 8
    assert {finding.severity for finding in analyze(layered(made))} == {Severity.INFO}
    made["blocks.0.qkv"][750] *= 800
    assert [f.where.step for f in analyze(layered(made)) if f.severity is Severity.WARNING] == [750]


def test_all_together_is_not_attributable() -> None:
    made = norms(600)
    for values in made.values():
        values[400] *= 30
    (finding,) = analyze(layered(made))
    assert (finding.where.layer, finding.severity) == (None, Severity.INFO)
    assert "not attributable" in finding.message
    assert finding.number("layers_moved") == finding.number("layers_total") == 19


def test_the_first_of_several_is_named() -> None:
    made = norms(600)
    for name, values in made.items():
        values[400 if name == "blocks.2.qkv" else 402 : 410] *= 20
    (finding,) = analyze(layered(made))
    assert (finding.where.layer, finding.severity) == ("blocks.2.qkv", Severity.INFO)
    assert finding.number("lead") == 2
    assert finding.measure("layer_kind") == "attention_qkv"


def test_a_layer_far_above_those_that_rise_with_it_is_named() -> None:
    made = norms(600)
    for values in made.values():
        values[400] *= 3
    made["wte"][400] *= 40
    (finding,) = analyze(layered(made))
    assert (finding.where.layer, finding.severity) == ("wte", Severity.WARNING)
    assert finding.measure("dominates") is True


def test_few_rows_of_the_embedding_name_it() -> None:
    made = norms(600)
    for values in made.values():
        values[400] *= 40
    made["wte"][400] *= 3.5
    (finding,) = analyze(layered(made))
    assert (finding.where.layer, finding.measure("layer_kind")) == ("wte", "embedding")
    assert (finding.number("embedding_z") or 0) > 4


def test_turmoil_before_makes_it_information() -> None:
    made = norms(600)
    for values in made.values():
        values[200:] *= 50
    made["blocks.1.fc"][500] *= 20
    assert {f.severity for f in analyze(layered(made))} == {Severity.INFO}


@pytest.mark.parametrize("seed", range(5))
def test_quiet_on_healthy_runs(seed: int) -> None:
    assert [f for f in analyze(layered(norms(1500, 6, seed))) if f.severity > Severity.INFO] == []


def test_threshold_sets_the_ratio() -> None:
    made = norms(600)
    made["blocks.1.fc"][400] *= 8
    assert analyze(layered(made), ratio=30.0) == []
    assert np.isfinite(made["blocks.1.fc"]).all()


@pytest.mark.parametrize(("layer", "times", "told"), [("wpe", 6, False), ("wpe", 30, True), ("blocks.1.fc", 6, True)])
def test_positions_must_go_further_to_be_alone(layer: str, times: float, told: bool) -> None:
    made = norms(600)
    made[layer][400] *= times
    found = [f for f in analyze(layered(made)) if f.severity is Severity.WARNING]
    assert [f.where.layer for f in found] == ([layer] if told else [])
