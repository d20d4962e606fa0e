"""GD203: layers without gradient: dead, frozen by choice, killed by what came before."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.dead_layer import analyze
from gdiag.model import Severity
from tests.analyzers.made_layers import Floats, layered, names, norms


def without(made: dict[str, Floats], block: str, first: int = 0) -> dict[str, Floats]:
    for name in made:
        if name.startswith(block + "."):
            made[name][first:] = 0.0
    return made


@pytest.mark.parametrize(("style", "block"), [("gpt", "blocks.1"), ("llama", "model.layers.2")])
def test_a_dead_block_is_one_warning(style: str, block: str) -> None:
    params = {n: np.full(300, 3.0) for n, _, _ in names(3, style)}
    (finding,) = analyze(layered(without(norms(300, style=style), block), params=params, style=style))
    assert (finding.where.layer, finding.where.step, finding.severity) == (block, 0, Severity.WARNING)
    assert finding.measure("parameters_still") is True
    assert finding.measure("exact_zero") is True


def test_what_the_config_freezes_is_information() -> None:
    (finding,) = analyze(layered(without(norms(300), "blocks.0"), config={"freeze_layers": 1}))
    assert finding.severity is Severity.INFO
    (finding,) = analyze(layered(without(norms(300), "blocks.0"), config={"freeze_layers": False}))
    assert finding.severity is Severity.WARNING


def test_the_same_layer_of_every_block_is_a_choice() -> None:
    made = norms(300)
    for name in made:
        if name.endswith("ln1"):
            made[name][:] = 0.0
    (finding,) = analyze(layered(made))
    assert (finding.severity, finding.where.layer, finding.number("layers")) == (Severity.INFO, None, 3)


def test_a_network_frozen_but_for_its_head_is_information() -> None:
    made = {n: v * (n == "lm_head" or n.startswith("blocks.2")) for n, v in norms(300).items()}
    (finding,) = analyze(layered(made))
    assert finding.severity is Severity.INFO


def test_a_layer_that_dies_later_is_dated_and_excused_by_turmoil() -> None:
    (finding,) = analyze(layered(without(norms(600), "blocks.1", 350)))
    assert (finding.where.step, finding.severity) == (350, Severity.WARNING)
    wild = norms(600)
    for values in wild.values():
        values[300:] *= 1e4
    (finding,) = analyze(layered(without(wild, "blocks.1", 350)))
    assert (finding.severity, finding.measure("after_turmoil")) == (Severity.INFO, True)


def test_quiet_and_threshold() -> None:
    assert analyze(layered(norms(300))) == []
    made = norms(300)
    made["blocks.1.fc"] *= 1e-5
    assert analyze(layered(made)) == []
    assert len(analyze(layered(made), share=1e-3)) == 1


def test_key_biases_have_no_gradient_by_symmetry() -> None:
    made = norms(300)
    for b in range(3):
        made[f"blocks.{b}.attn.k_proj.bias"] = 1e-10 * np.exp(np.random.default_rng(b).normal(0, 1, 300))
    (finding,) = analyze(layered(made))
    assert (finding.severity, finding.measure("exact_zero")) == (Severity.INFO, False)


def test_a_network_that_learns_nothing_was_not_frozen_on_purpose() -> None:
    made = {n: v * (n == "lm_head" or n.startswith("blocks.2")) for n, v in norms(300).items()}
    flat = 2.3 + 0.01 * np.random.default_rng(0).standard_normal(300)
    (finding,) = analyze(layered(made, steps={"loss": flat}))
    assert (finding.severity, finding.measure("learns")) == (Severity.WARNING, False)
    (finding,) = analyze(layered(made, steps={"loss": flat - np.linspace(0, 1, 300)}))
    assert finding.severity is Severity.INFO


def bottom(rows: int = 300, blocks: int = 5, top: int = 1) -> dict[str, Floats]:
    gone = ("wte", "wpe", *(f"blocks.{b}." for b in range(top + 1)))
    return {n: v * (not n.startswith(gone)) for n, v in norms(rows, blocks=blocks).items()}


def test_embedding_and_lowest_blocks_that_never_moved_are_frozen_by_the_look_of_it() -> None:
    params = {n: np.full(300, 3.0) for n, _, _ in names(5)}
    for given in (None, params):
        (finding,) = analyze(layered(bottom(), params=given))
        assert (finding.severity, finding.where.layer) == (Severity.INFO, None)
        assert "everything up to blocks.1 is frozen by the look of it" in finding.message


def test_weights_that_decay_below_a_cut_were_not_frozen() -> None:
    params = {n: 3.0 * 0.999 ** np.arange(300.0) for n, _, _ in names(5)}
    found = analyze(layered(bottom(), params=params))
    assert {f.severity for f in found} == {Severity.WARNING}
    assert all(f.measure("looks_frozen") is False for f in found)


def test_a_bottom_without_the_embedding_may_be_an_accident() -> None:
    found = analyze(layered(without(norms(300, blocks=5), "blocks.0")))
    assert [f.severity for f in found] == [Severity.WARNING]


def moving(rows: int = 300) -> dict[str, Floats]:
    """Parameter norms of a healthy run: each grows a little."""
    return {name: 3 + 0.5 * np.arange(rows) / rows + 0.001 * i for i, name in enumerate(norms(rows))}


def test_a_layer_that_is_not_in_the_optimizer_has_a_gradient_and_never_moves() -> None:
    params = moving()
    assert analyze(layered(norms(300), params=params)) == []
    params["blocks.1.fc"] = np.full(300, 5.678)
    (finding,) = analyze(layered(norms(300), params=params))
    assert (finding.where.layer, finding.severity, finding.where.last_step) == ("blocks.1.fc", Severity.WARNING, 299)
    assert finding.measure("never_updated") is True
    assert analyze(layered(norms(300), params=params, config={"freeze": "blocks.1.fc"})) == []
    params["blocks.1.fc"][200:] += 1e-3  # a step at last
    assert analyze(layered(norms(300), params=params)) == []


def test_where_most_layers_stand_still_nothing_is_left_out() -> None:
    params = {name: np.full(300, 3.0) for name in norms(300)}
    assert analyze(layered(norms(300), params=params)) == []


def test_a_layer_that_is_left_out_hides_no_dead_one() -> None:
    grads, params = norms(400), moving(400)
    params["blocks.1.fc"] = np.full(400, 5.678)
    grads = without(grads, "blocks.2", 100)
    grads["wpe"][:] = np.nan
    found = analyze(layered(grads, params=params))
    assert [(f.where.layer, f.measure("never_updated")) for f in found] == [("blocks.1.fc", True), ("blocks.2", None)]


def test_norms_of_few_digits_do_not_show_that_nothing_moves() -> None:
    params = moving()
    params["blocks.1.fc"] = np.full(300, 5.7)
    assert analyze(layered(norms(300), params=params)) == []
