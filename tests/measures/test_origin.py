"""The origin of non-finite gradients: boundaries, all at once, one layer alone."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.measures.layers import LayerTable
from gdiag.measures.origin import origin
from tests.analyzers.made_layers import Floats, layered, names, norms


def table(made: dict[str, Floats], style: str = "gpt") -> LayerTable:
    found = layered(made, style=style).layer_table("grad_norm")
    assert found is not None
    return found


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


def test_a_last_row_after_others_that_came_back_is_one_of_those() -> None:
    made = norms(100)
    made["blocks.1.fc"][[30, 60, 99]] = np.nan
    found = origin(table(made))
    assert found is not None
    assert (found.step, found.layer, found.lasting) == (30, "blocks.1.fc", False)


def test_a_last_row_of_other_layers_ends_the_run() -> None:
    made = norms(100)
    for name in made:
        made[name][10] = np.inf  # a step that was skipped while the loss scale was looked for
    made["blocks.1.fc"][98:] = np.nan
    found = origin(table(made))
    assert found is not None
    assert (found.step, found.layer, found.lasting) == (98, "blocks.1.fc", True)
    for name in made:
        made[name][[10, 98, 99]] = np.nan
    made["blocks.0.ln1"][:] = 0.0
    found = origin(table(made))
    assert found is not None
    assert (found.step, found.lasting) == (98, True)


def test_what_an_overflow_of_all_layers_leaves_behind_is_the_origin() -> None:
    made = norms(100)
    for name in made:
        made[name][50:53] = np.inf
    made["blocks.1.fc"][50:] = np.inf
    found = origin(table(made))
    assert found is not None
    assert (found.step, found.layer, found.rows, found.stays, found.lasting) == (53, "blocks.1.fc", 47, True, True)


def test_a_few_rows_at_the_end_are_no_layer_that_stays() -> None:
    made = norms(100)
    for name in made:
        made[name][92:95] = np.inf
    made["blocks.1.fc"][92:] = np.inf
    found = origin(table(made))
    assert found is not None
    assert (found.step, found.layer, found.stays) == (92, None, False)
