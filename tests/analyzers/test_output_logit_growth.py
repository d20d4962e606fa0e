"""GD211: output logits that drift."""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.output_logit_growth import analyze
from tests.analyzers.made_runs import view


def test_fires_where_the_level_is_passed() -> None:
    value = np.concatenate([np.full(500, 10.0), np.geomspace(10, 300, 500)])
    (finding,) = analyze(view({"output_logit": value}))
    assert 700 <= (finding.where.step or 0) <= 860
    assert finding.measure("layer_kind") == "lm_head"


def test_quiet_and_threshold() -> None:
    assert analyze(view({"output_logit": np.full(500, 80.0)})) == []
    value = np.geomspace(10, 45, 500)
    assert analyze(view({"output_logit": value})) == []
    assert len(analyze(view({"output_logit": value}), level=30.0)) == 1
