"""Whatever figure stands in a log, it is read without an error and without a warning of the arithmetic."""

from __future__ import annotations

import contextlib
import json
import random
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import GdiagError
from gdiag.ingesters import load

Row = dict[str, float]
WILD = (float("inf"), float("-inf"), float("nan"), 1e308, -1e308, 1.797e308, 0.0)
COLUMNS = (
    "eval_loss", "lr", "grad_norm", "time", "timestamp", "elapsed", "step_time", "epoch", "tokens", "samples", "loss_scale", "skipped",
    "data_time", "batch_size", "param_norm", "sample_start", "layers.0/grad_norm",
)  # fmt: skip
WRITTEN: dict[str, Callable[[list[Row]], str]] = {
    "run.csv": lambda rows: "\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]),
    "run.jsonl": lambda rows: "\n".join(map(json.dumps, rows)),
    "run.log": lambda rows: "\n".join(" ".join(f"{name}: {value}" for name, value in row.items()) for row in rows),
    "megatron.log": lambda rows: "\n".join(
        f" iteration {i}/ 1000 | " + " | ".join(f"{name}: {value}" for name, value in row.items()) + " |"
        for i, row in enumerate(rows)
    ),
}


def made(draw: random.Random, count: int, runs: int, names: list[str], share: float) -> list[Row]:
    """Rows of runs one after the other, some of the figures in some of the columns wild."""
    bad = draw.sample([*names, "loss"], draw.randint(1, len(names)))
    rows = []
    for i in list(range(count)) * runs:
        usual = {"step": i * 10, "loss": 3 - i / 1000, "time": 1.7e9 + i, "elapsed": 1.5 * i, "tokens": 4096 * i}
        row = {name: usual.get(name, draw.random()) for name in ("step", "loss", *names)}
        rows.append({n: draw.choice(WILD) if n in bad and draw.random() < share else v for n, v in row.items()})
    return rows


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(list(WRITTEN)),
    st.integers(0, 10**6),
    st.sampled_from([3, 10, 60]),
    st.integers(1, 3),
    st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=6, unique=True),
    st.sampled_from([0.01, 0.1, 0.5, 1.0]),
)
def test_any_figure_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    file: str,
    seed: int,
    count: int,
    runs: int,
    names: list[str],
    share: float,
) -> None:
    path = tmp_path_factory.mktemp("wild") / file
    path.write_text(WRITTEN[file](made(random.Random(seed), count, runs, names, share)) + "\n")
    with warnings.catch_warnings(), contextlib.suppress(GdiagError):
        warnings.simplefilter("error")
        load([path])


@pytest.mark.parametrize("clock", [float("inf"), float("-inf"), 1.797e308])
def test_a_clock_that_is_infinite_at_times_stays_a_clock(tmp_path: Path, clock: float) -> None:
    (tmp_path / "run.csv").write_text(
        "step,loss,time\n" + "".join(f"{i},2.5,{clock if i % 9 == 4 else 2.0 * i}\n" for i in range(1, 100))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "elapsed" in load([tmp_path / "run.csv"]).steps.columns


def test_two_runs_without_any_loss_to_speak_of(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text("step,loss\n" + "".join(f"{i},0.0\n" for i in [*range(30), *range(30)]))
    assert load([tmp_path / "run.csv"]).steps.height == 60
