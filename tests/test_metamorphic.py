"""Whole reports: what does not change a run does not change its incidents.

Stated tolerance: pattern, severity and best cause are the same, always; onset and last step too, but where a tenth of the
rows is dropped: there the onset may move by a hundredth of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.made_reports import FAULTS, ROWS, Brief, Row, brief, made, report

Change = Callable[[list[Row]], list[Row]]
FAR = 100_000


def loss(change: Callable[[float], float]) -> Change:
    return lambda rows: [row | {"loss": change(row["loss"])} for row in rows]


def reordered(rows: list[Row]) -> list[Row]:
    return [rows[i] for i in np.random.default_rng(2).permutation(len(rows))]


def dropped(rows: list[Row]) -> list[Row]:
    return [rows[i] for i in np.flatnonzero(np.random.default_rng(4).random(len(rows)) > 0.1)]


CHANGES: dict[str, Change] = {
    "loss / 10": loss(lambda value: value / 10),
    "loss × 7": loss(lambda value: 7 * value),
    "loss + 5": loss(lambda value: value + 5),
    "rounded to 4 digits": loss(lambda value: float(f"{value:.4g}")),
    "steps offset": lambda rows: [row | {"step": row["step"] + FAR} for row in rows],
    "rows shuffled": reordered,
    "rows reversed": lambda rows: rows[::-1],
    "every row twice": lambda rows: [row for row in rows for _ in range(2)],
    "some rows twice": lambda rows: [row for i, row in enumerate(rows) for _ in range(1 + (i % 7 == 0))],
    "a tenth dropped": dropped,
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Brief]]:
    return {fault: brief(report(made(fault), tmp_path_factory.mktemp("plain"))) for fault in FAULTS}


def test_the_plain_runs_have_their_fault(plain: dict[str, list[Brief]]) -> None:
    assert {fault: [pattern for pattern, *_ in found] for fault, found in plain.items()} == {
        fault: [fault] * (fault != "healthy") for fault in FAULTS
    }


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("fault", FAULTS)
def test_incidents_stay(fault: str, change: str, plain: dict[str, list[Brief]], tmp_path: Path) -> None:
    found = brief(report(CHANGES[change](made(fault)), tmp_path))
    shift = FAR if change == "steps offset" else 0
    reach = ROWS // 100 if change == "a tenth dropped" else 0
    assert [(b[0], b[1], b[4]) for b in found] == [(b[0], b[1], b[4]) for b in plain[fault]]
    for seen, due in zip(found, plain[fault], strict=True):
        assert [seen[2], seen[3]] == pytest.approx([(due[2] or 0) + shift, (due[3] or 0) + shift], abs=reach)
