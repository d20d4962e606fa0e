"""Columns that go on or begin again where the step falls back and the loss tells nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from gdiag.ingesters import load

Column = Callable[[int], float]


def flat(count: int, seed: int, **columns: Column) -> str:
    """A loss that tells nothing, and columns by the step."""
    drawn = random.Random(seed)
    rows = [{"step": i, "loss": 1 + drawn.gauss(0, 0.1), **{k: c(i) for k, c in columns.items()}} for i in range(count)]
    return "".join(json.dumps(row) + "\n" for row in rows)


def runs(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "log.jsonl").write_text(text)
    return [run.id for run in load([tmp_path / "log.jsonl"]).runs]


def warmed(peak: float) -> Column:
    return lambda i: peak * min(1, (i + 1) / 20) * (1 - i / 250)


def falling(i: int) -> float:
    return 1e-3 * (1 - i / 250)


TWO = ["1", "2"]
ONE = ["run"]


@pytest.mark.parametrize(
    ("name", "one", "other", "lengths", "found"),
    [
        ("epoch", lambda i: i / 50, lambda i: i / 50, (200, 150), TWO),
        ("epoch", lambda i: i // 50, lambda i: i // 50, (200, 150), TWO),
        ("epoch", lambda i: i / 50, lambda i: 4 + i / 50, (200, 150), ONE),
        ("epoch", lambda _: 0, lambda _: 0, (200, 150), ONE),
        ("tokens", lambda i: 4096 * i, lambda i: 4096 * i, (200, 150), TWO),
        ("tokens", lambda i: 4096 * i, lambda i: 4096 * (200 + i), (200, 150), ONE),
        ("samples", lambda i: 64 * i, lambda i: 64 * i, (200, 150), ONE),
        ("elapsed", lambda i: 0.5 * i, lambda i: 0.5 * i, (200, 150), ONE),
        ("elapsed", lambda i: 0.5 * i, lambda i: 0.5 * i, (150, 200), TWO),
        ("elapsed", lambda i: 0.5 * i, lambda i: 80 + 0.5 * i, (150, 200), ONE),
        ("lr", warmed(1e-3), warmed(1e-3), (200, 150), TWO),
        ("lr", warmed(1e-3), warmed(3e-3), (200, 150), TWO),
        ("lr", falling, falling, (200, 150), TWO),
        ("lr", falling, lambda i: falling(200 + i), (200, 50), ONE),
        ("lr", lambda _: 1e-3, lambda _: 3e-3, (200, 150), ONE),
    ],
)
def test_a_column_beside_a_flat_loss(
    tmp_path: Path, name: str, one: Column, other: Column, lengths: tuple[int, int], found: list[str]
) -> None:
    text = flat(lengths[0], 0, **{name: one}) + flat(lengths[1], 1, **{name: other})
    assert runs(tmp_path, text) == found


def test_a_warm_up_once_more_after_equal_lengths(tmp_path: Path) -> None:
    text = "".join(flat(100, seed, lr=warmed(1e-3)) for seed in range(3))
    assert runs(tmp_path, text) == ["1", "2", "3"]
    text = "".join(flat(100, seed, lr=falling) for seed in range(3))
    assert runs(tmp_path, text) == ONE
