"""Dead layers, vanishing gradients and the origin of non-finite ones along the depth."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures.depth import block_path, dead_layers, forward_order, origin, profile
from gdiag.measures.layers import LayerTable
from gdiag.schema import LayerColumn
from tests.analyzers.made_layers import Floats, layered, names, norms


def table(made: dict[str, Floats], style: str = "gpt") -> LayerTable:
    found = layered(made, style=style).layer_table("grad_norm")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("layer", "depth", "path"),
    [("blocks.2.fc", 2, "blocks.2"), ("model.layers.12.mlp.w1", 12, "model.layers.12"), ("h.1.attn", 1, "h.1"), ("layer11", 11, "layer11"), ("other", None, "other")],
)  # fmt: skip
def test_the_block_of_a_layer(layer: str, depth: int | None, path: str) -> None:
    assert block_path(LayerColumn(layer, layer, "grad_norm", depth, "mlp")) == path


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


@pytest.mark.parametrize("style", ["gpt", "llama"])
def test_the_boundary_of_non_finite_layers_is_the_origin(style: str) -> None:
    made = norms(100, 4, style=style)
    for name, depth, _ in names(4, style):
        if depth <= 2:
            made[name][60:] = np.nan
    found = origin(table(made, style))
    assert found is not None
    assert found.step == 60
    assert found.layer == ("blocks.2" if style == "gpt" else "model.layers.2")
    assert (found.finite_deeper, found.isolated) == (7, False)


def test_inside_a_block_the_deepest_layer_is_named() -> None:
    made = norms(100, 4)
    for name, depth, _ in names(4):
        if depth < 2 or name in ("blocks.2.ln1", "blocks.2.qkv"):
            made[name][60:] = np.inf
    found = origin(table(made))
    assert found is not None
    assert found.layer == "blocks.2.qkv"


def test_all_at_once_names_no_layer_and_one_alone_is_isolated() -> None:
    made = norms(100)
    made["blocks.0.ln1"][:] = 0.0
    for name in made:
        if name != "blocks.0.ln1":
            made[name][60:] = np.nan
    found = origin(table(made))
    assert found is not None
    assert (found.layer, found.isolated) == (None, False)
    one = norms(100)
    one["blocks.1.fc"][70] = np.inf
    alone = origin(table(one))
    assert alone is not None
    assert (alone.layer, alone.isolated, alone.nonfinite) == ("blocks.1.fc", True, 1)
    assert origin(table(norms(100))) is None
