"""Values that cannot be: which, where, and what is no such value."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gdiag.measures.impossible import impossible
from tests.analyzers.made_runs import Floats, cosine, view


def column(values: Floats) -> object:
    return impossible(view({"lr": values}).series("lr"))


@pytest.mark.parametrize(("value", "kind"), [(math.nan, "NaN"), (math.inf, "infinite"), (-1e-4, "negative")])
def test_names_kind_and_rows(value: float, kind: str) -> None:
    rate = cosine(200)
    rate[150:] = value
    seen = impossible(view({"lr": rate}).series("lr"))
    assert seen is not None
    assert (seen.kind, seen.points.step[0], len(seen.points), seen.everywhere) == (kind, 150, 50, False)


def test_a_computed_zero_and_nan_in_turn_with_values_are_none() -> None:
    assert column(np.append(cosine(200, floor=0.0), -1e-20)) is None
    turns = cosine(200)
    turns[1::2] = math.nan
    assert column(turns) is None


def test_negative_values_alone_where_nan_is_told_elsewhere() -> None:
    norm = np.ones(60)
    norm[10:20], norm[40:45] = math.nan, -1.0
    seen = impossible(view({"grad_norm": norm}).series("grad_norm"), nonfinite=False)
    assert seen is not None
    assert seen.points.step.tolist() == [40, 41, 42, 43, 44]
