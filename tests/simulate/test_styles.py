"""What a style says it can log is in what it writes, by a name that is read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gdiag.ingesters import load
from gdiag.schema import Records
from gdiag.simulate.forces import Forces, Group
from gdiag.simulate.rows import rows
from gdiag.simulate.styles import ALL, STYLES, Style
from gdiag.simulate.training import Setup, model
from gdiag.simulate.trajectory import Trajectory, run

COLUMNS: dict[Group, tuple[str, ...]] = {
    "grad": ("steps.grad_norm",), "lr": ("steps.lr",), "time": ("steps.step_time|steps.time|steps.elapsed",),
    "parts": ("steps.data_time", "steps.compute_time", "steps.comm_time"), "layers": ("layers.grad_norm",),
    "params": ("steps.param_norm", "layers.param_norm"), "updates": ("steps.update_norm", "layers.update_norm"),
    "ranks": ("steps.rank",), "checksum": ("steps.param_checksum",), "ids": ("steps.sample_start", "steps.sample_end"),
    "entropy": ("steps.token_entropy",), "eval": ("steps.eval_loss",), "scale": ("steps.loss_scale",),
    "attention": ("layers.attention_logit",), "output": ("steps.output_logit",), "tokens": ("steps.tokens|steps.samples",),
    "memory": ("steps.memory",), "duplicates": ("steps.duplicate_share",),
}  # fmt: skip
"""Group → what of it must be in the records; every column, one of those parted by a bar."""


@pytest.fixture(scope="module")
def logged() -> Trajectory:
    """A run of which everything can be logged."""
    setup = Setup(seed=3, steps=120)
    forces = Forces(setup, model(setup), np.random.default_rng(3))
    forces.log = set(ALL)
    forces.layer_every = 1
    return run(forces)


def test_every_group_has_its_columns() -> None:
    assert set(COLUMNS) == ALL


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_what_a_style_carries_is_read_back(style: Style, logged: Trajectory, tmp_path: Path) -> None:
    logged.forces.log = set(style.carries)
    (tmp_path / style.file).write_text(style.text(logged, list(rows(logged))))
    records = load([tmp_path / style.file])
    lacking = [
        (group, column)
        for group in sorted(style.carries)
        for column in COLUMNS[group]
        if (column.startswith("steps") or "layers" in style.carries)
        and not any(_holds(records, c) for c in column.split("|"))
    ]
    assert lacking == []


def _holds(records: Records, column: str) -> bool:
    table, _, name = column.partition(".")
    if table == "steps":
        return name in records.steps.columns and records.steps[name].count() > 0
    return any(c.quantity == name and records.layers[c.column].count() for c in records.layer_columns)
