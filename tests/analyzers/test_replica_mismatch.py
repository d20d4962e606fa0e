"""GD401: replicas that no longer hold the same values."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.replica_mismatch import analyze
from gdiag.model import Severity
from tests.analyzers.made_layers import Floats, layered


def ranks(count: int, column: str = "param_checksum", rows: int = 200, digits: int = 6) -> dict[int, dict[str, Floats]]:
    rng = np.random.default_rng(0)
    line = np.round(4000 + np.cumsum(rng.normal(1, 1, rows)), digits)
    return {r: {column: line.copy(), "loss": 3 + rng.normal(0, 0.2, rows)} for r in range(count)}


@pytest.mark.parametrize("count", [3, 4, 9])
def test_the_rank_that_leaves_is_named(count: int) -> None:
    made = ranks(count)
    made[count - 1]["param_checksum"][120:] += np.arange(80) * 0.5 + 0.1
    (finding,) = analyze(layered(rank_steps=made, first=1000))
    assert (finding.where.step, finding.where.rank, finding.severity) == (1120, count - 1, Severity.CRITICAL)
    assert finding.number("majority") == count - 1
    assert finding.measure("grows") is True
    assert finding.where.line == 121


def test_of_two_ranks_it_names_none() -> None:
    made = ranks(2)
    made[1]["param_checksum"][120:] += 1
    (finding,) = analyze(layered(rank_steps=made))
    assert (finding.where.rank, finding.number("majority")) == (None, 0)
    assert "cannot say" in finding.message


def test_of_two_ranks_it_names_the_one_that_left_its_course() -> None:
    made = ranks(2)
    made[1]["param_checksum"][120:] += 50
    (finding,) = analyze(layered(rank_steps=made))
    assert (finding.where.rank, finding.number("majority")) == (1, 1)
    assert "Rank 1 leaves the other in param_checksum at step 120, moving" in finding.message


def test_the_first_column_to_disagree_leads() -> None:
    made = ranks(4)
    for r in range(4):
        made[r]["grad_norm"] = np.full(200, 1.5)
    made[2]["grad_norm"][100:] *= 1.01
    made[2]["param_checksum"][101:] += 3
    (finding,) = analyze(layered(rank_steps=made))
    assert (finding.where.step, finding.measure("column")) == (100, "grad_norm")
    assert finding.measure("columns") == "param_checksum, grad_norm"


def test_quiet_when_they_agree_or_were_never_meant_to() -> None:
    assert analyze(layered(rank_steps=ranks(4))) == []
    own = ranks(4, "grad_norm")
    for r in own:
        own[r]["grad_norm"] = np.exp(np.random.default_rng(r).normal(0, 0.2, 200))
    assert analyze(layered(rank_steps=own)) == []


def test_tolerance_is_of_the_precision() -> None:
    made = ranks(4, "param_norm")
    made[1]["param_norm"][50:] *= 1 + 3e-4
    assert len(analyze(layered(rank_steps=made))) == 1
    assert analyze(layered(rank_steps=made, config={"precision": "bf16"})) == []
    assert analyze(layered(rank_steps=made), tolerance=1e-3) == []


def test_how_far_a_rank_that_is_not_finite_moved_is_not_said() -> None:
    logged = ranks(2, "param_norm")
    course = 100.0 + 0.01 * np.arange(200) + 0.001 * np.random.default_rng(0).standard_normal(200)
    logged = {rank: {**columns, "param_norm": course.copy()} for rank, columns in logged.items()}
    logged[1]["param_norm"][150:] = np.nan
    (finding,) = analyze(layered(rank_steps=logged))
    assert "Rank 1 leaves the other" in finding.message
    assert "moving" not in finding.message
    assert finding.measure("leap") is None
