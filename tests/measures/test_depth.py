"""Dead layers, vanishing gradients and the origin of non-finite ones along the depth."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures.depth import dead_layers, forward_order, profile
from gdiag.measures.layers import LayerTable
from gdiag.schema import LayerColumn
from tests.analyzers.made_layers import Floats, layered, names, norms


def table(made: dict[str, Floats], style: str = "gpt") -> LayerTable:
    found = layered(made, style=style).layer_table("grad_norm")
    assert found is not None
    return found


def test_layers_without_depth_stay_beside_their_neighbours() -> None:
    columns = [
        LayerColumn(n, n, "grad_norm", d, "other") for n, d in [("head", 9), ("a", 0), ("extra", None), ("b", 1)]
    ]
    assert [columns[i].layer for i in forward_order(columns)] == ["a", "extra", "b", "head"]


def test_a_dead_block_is_one_entry() -> None:
    made = norms(300)
    for name in made:
        if name.startswith("blocks.1."):
            made[name][:] = 0.0
    (dead,) = dead_layers(table(made))
    assert (dead.layer, dead.first_step, dead.exact, dead.from_start, len(dead.columns)) == (
        "blocks.1",
        0,
        True,
        True,
        5,
    )


def test_a_layer_that_dies_is_dated() -> None:
    made = norms(600)
    made["blocks.2.fc"][350:] = 1e-12
    (dead,) = dead_layers(table(made))
    assert (dead.layer, dead.first_step, dead.exact, dead.from_start) == ("blocks.2.fc", 350, False, False)
    assert dead_layers(table(made), least_rows=260, share=1e-12) == []


def vanishing(rows: int, blocks: int, decades: float) -> dict[str, Floats]:
    made = norms(rows, blocks)
    for name, depth, _ in names(blocks):
        made[name] = made[name] * 10.0 ** (-decades * max(0, blocks - 1 - max(depth, 0)))
    return made


def test_a_geometric_decay_is_told_from_frozen_layers() -> None:
    found = profile(table(vanishing(300, 6, 2.0)))
    assert found is not None
    assert found.ratio < 1e-8
    assert found.geometric
    assert found.monotone > 0.9
    assert found.decades == pytest.approx(2.0, abs=0.4)
    assert found.from_start
    frozen = norms(300, 6)
    for name, depth, _ in names(6):
        if depth < 3:
            frozen[name][:] = 0.0
    edge = profile(table(frozen))
    assert edge is not None
    assert edge.ratio == 0
    assert not edge.geometric


def test_a_decay_that_comes_later_is_dated() -> None:
    made, late = norms(400, 4), vanishing(400, 4, 3.0)
    for name in made:
        made[name][200:] = late[name][200:]
    found = profile(table({n: np.concatenate([v, late[n]]) for n, v in made.items()}))
    assert found is not None
    assert not found.from_start
    assert found.onset == 200


def test_layers_that_die_together_in_a_block_are_one_entry() -> None:
    made = norms(600, style="llama")
    for name in ("self_attn.q_proj", "self_attn.o_proj"):
        made[f"model.layers.1.{name}"][300:] = 0.0
    made["model.layers.1.mlp.gate_proj"][350:] = 0.0
    found = dead_layers(table(made, "llama"))
    assert [(d.layer, d.first_step) for d in found] == [
        ("model.layers.1.self_attn", 300), ("model.layers.1.mlp.gate_proj", 350),
    ]  # fmt: skip
