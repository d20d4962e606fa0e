"""GD210: attention logits, logged or seen through the gradients."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.attention_logit_growth import analyze
from gdiag.model import Severity
from tests.analyzers.made_layers import Floats, layered, norms
from tests.analyzers.made_runs import learning, view


def logits(rows: int = 800, onset: int = 400, last: float = 400.0, grown: tuple[int, ...] = (1,)) -> dict[str, Floats]:
    rng = np.random.default_rng(0)
    made = {f"blocks.{b}": 12 * np.exp(rng.normal(0, 0.05, rows)) for b in range(3)}
    for k, b in enumerate(grown):
        begin = onset + 40 * k
        made[f"blocks.{b}"][begin : begin + 200] *= np.geomspace(1, last / 12, 200)
        made[f"blocks.{b}"][begin + 200 :] *= last / 12
    return made


@pytest.mark.parametrize(("last", "severity"), [(400.0, Severity.WARNING), (5000.0, Severity.CRITICAL)])
def test_the_layer_whose_logits_grow_is_named(last: float, severity: Severity) -> None:
    (finding,) = analyze(layered(norms(800), logits=logits(last=last)))
    assert (finding.where.layer, finding.severity) == ("blocks.1.qkv", severity)
    assert 430 <= (finding.where.step or 0) <= 600
    assert (finding.number("layers_moved"), finding.number("layers_total")) == (1, 3)


def test_of_several_the_first_is_named() -> None:
    (finding,) = analyze(layered(norms(800), logits=logits(grown=(2, 0))))
    assert (finding.where.layer, finding.number("layers_moved")) == ("blocks.2.qkv", 2)


def test_growth_after_turmoil_is_information() -> None:
    made = norms(800)
    for values in made.values():
        values[200:] *= 100
    (finding,) = analyze(layered(made, logits=logits()))
    assert finding.severity is Severity.INFO


def test_one_column_for_the_whole_network() -> None:
    (finding,) = analyze(view({"attention_logit": logits()["blocks.1"]}))
    assert finding.where.layer is None


@pytest.mark.parametrize(("style", "layer"), [("gpt", "blocks.1.qkv"), ("llama", "model.layers.1.self_attn.q_proj")])
def test_saturation_shows_in_the_gradients(style: str, layer: str) -> None:
    made = norms(800, style=style)
    made[layer][500:] *= np.concatenate([np.geomspace(1 / 6, 1 / 30, 50), np.full(250, 1 / 30)])
    (finding,) = analyze(layered(made, style=style))
    assert (finding.where.step, finding.where.layer, finding.severity) == (500, layer, Severity.WARNING)
    assert finding.measure("logged") is False


@pytest.mark.parametrize("seed", range(4))
def test_quiet_on_healthy_runs(seed: int) -> None:
    assert analyze(layered(norms(1000, 6, seed))) == []
    assert analyze(layered(norms(800), logits=logits(grown=()))) == []


def test_threshold_sets_the_level() -> None:
    assert analyze(layered(norms(800), logits=logits()), level=1000.0) == []


@pytest.mark.parametrize(("grown", "severity"), [((1,), Severity.CRITICAL), ((1, 0), Severity.INFO)])
def test_one_layer_far_ahead_is_no_consequence_though_it_grows_from_the_start(
    grown: tuple[int, ...], severity: Severity
) -> None:
    made = logits(grown=())
    for block in grown:
        made[f"blocks.{block}"][45:] *= 4000
    (finding,) = analyze(layered(norms(800), logits=made))
    assert finding.measure("from_start") is True
    assert finding.severity is severity


def test_saturation_after_the_loss_moved_is_information() -> None:
    made = norms(800)
    made["blocks.1.qkv"][500:] *= np.concatenate([np.geomspace(1 / 6, 1 / 30, 50), np.full(250, 1 / 30)])
    loss = learning(800)
    assert analyze(layered(made, steps={"loss": loss}))[0].severity is Severity.WARNING
    loss[475:] += 2.0
    assert analyze(layered(made, steps={"loss": loss}))[0].severity is Severity.INFO
