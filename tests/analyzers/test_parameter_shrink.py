"""GD215: norms that shrink together."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.parameter_shrink import analyze
from gdiag.model import Severity
from tests.analyzers.made_layers import layered, names
from tests.analyzers.made_runs import Floats, cosine, view


def walk(rows: int, turn: int | None, decay: float, rate: Floats) -> dict[str, Floats]:
    """Norms under random steps and a little decay, of which there is `decay` from `turn` on."""
    square, norm = 1.0, np.empty(rows)
    for i in range(rows):
        little = turn is None or i < turn
        square += (0.02 * rate[i]) ** 2 - 2 * (1e-4 if little else decay) * rate[i] * square
        norm[i] = np.sqrt(square)
    return {n: (3 + k) * norm for k, (n, _, _) in enumerate(names(3))}


@pytest.mark.parametrize("every", [1, 10])
def test_fires_where_decay_takes_over(every: int) -> None:
    rate = cosine(600, peak=1.0, floor=0.1)
    (finding,) = analyze(layered(params=walk(600, 300, 0.01, rate), steps={"lr": rate}, every=every))
    assert (finding.where.step or 0) == pytest.approx(300 * every, abs=10 * every)
    assert (finding.severity, finding.where.layer) == (Severity.WARNING, None)
    assert finding.number("layers_moved") == finding.number("layers_total")
    assert 0.3 < (finding.number("ratio") or 1) < 0.6


def test_the_norm_of_the_whole_network_will_do() -> None:
    rate = np.ones(600)
    (finding,) = analyze(view({"param_norm": walk(600, 300, 0.01, rate)["wte"], "lr": rate}))
    assert "The parameter norm shrinks" in finding.message


def test_quiet_on_a_schedule_on_steady_decay_and_on_one_layer() -> None:
    rate = cosine(600, peak=1.0, floor=0.01)
    assert analyze(layered(params=walk(600, None, 0.0, rate), steps={"lr": rate})) == []
    assert analyze(layered(params=walk(600, 0, 0.003, rate), steps={"lr": rate})) == []
    alone = walk(600, None, 0.0, rate) | {"blocks.1.qkv": walk(600, 300, 0.01, rate)["blocks.1.qkv"]}
    assert analyze(layered(params=alone, steps={"lr": rate})) == []


def test_thresholds_set_the_pace_and_what_is_left() -> None:
    rate = np.ones(600)
    run = layered(params=walk(600, 300, 0.002, rate), steps={"lr": rate})
    assert len(analyze(run)) == 1
    assert analyze(run, overall=0.2) == analyze(run, faster=1e9) == []
