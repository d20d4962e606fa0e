"""The unit of the loss changes no incident: nats, bits, or a loss that is divided by the steps of accumulation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gdiag.simulate.case import simulate
from gdiag.simulate.training import Setup
from tests.made_reports import Row, brief, report

FAULTS = (
    "resume-optimizer-lost", "resume-fresh-model", "resume-older-checkpoint", "resume-clean", "hidden-nan", "lr-too-high",
)  # fmt: skip
"""Faults whose measures hold the loss against a level of its own; those of tests/test_metamorphic.py are asked there."""


def rows(fault: str) -> list[Row]:
    setup = Setup(seed=73_500_000, steps=1500, every=5, style="plain", noise="gauss")
    return [json.loads(line) for line in simulate(fault, setup).files["run.jsonl"].splitlines()]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_factor_of_the_loss_changes_no_incident(fault: str, tmp_path: Path) -> None:
    made = rows(fault)
    plain = brief(report(made, tmp_path))
    assert bool(plain) == (fault != "resume-clean") or all(severity == "info" for _, severity, *_ in plain)
    for factor in (0.01, 30.0):
        scaled = [{k: factor * v if k in {"loss", "eval_loss"} else v for k, v in row.items()} for row in made]
        assert brief(report(scaled, tmp_path)) == plain, factor
