"""Bars that a logger prints give a row a line, evaluation apart."""

from __future__ import annotations

import polars as pl
import pytest

from gdiag.ingesters import logged_bars, progress_bars, recognise
from tests.ingesters.console_samples import given, losses, read

LOGGER = "2025-01-15T10:00:{s:02d} - 0 - tqdm_loggable.tqdm_logging - tqdm_logging.py:145 - INFO :: "


def sized(count: int) -> str:
    """A count as tqdm prints it with its unit."""
    scale, unit = next((10**n, unit) for n, unit in ((0, ""), (3, "k"), (6, "M")) if count < 999.5 * 10**n)
    number = count / scale
    return f"{number:{'1.2f' if number < 9.995 else '2.1f' if number < 99.95 else '3.0f'}}{unit}it"


def bar(name: str, at: int, of: int, loss: float) -> str:
    took = f"{at // 3600}:{at // 60 % 60:02d}:{at % 60:02d}" if at >= 3600 else f"{at // 60:02d}:{at % 60:02d}"
    return (
        f"{LOGGER.format(s=at % 60)}Progress on:{name} {sized(at)}/{sized(of)} rate:{'1.0it/s' if at > 9 else '-'} "
        f"remaining:{'1 day, 2:03:04' if at < 50 else '10:00'} elapsed:{took} postfix:loss={loss:.3f}"
    )


@pytest.mark.parametrize("every", [1, 10])
def test_every_line_is_a_row(every: int) -> None:
    values = losses(90)
    lines = [bar("train", every * i, 900, v) for i, v in enumerate(values, 1)]
    lines.insert(0, LOGGER.format(s=0) + f"Progress on:train -/{sized(900)} rate:- remaining:? elapsed:00:00 postfix:-")
    log = "\n".join(lines) + "\n"
    assert recognise(given(log)) is progress_bars
    steps = read(progress_bars, log).steps
    assert steps is not None
    assert steps["step"].to_list() == [every * i for i in range(1, 91)]
    assert steps["loss"].to_list() == pytest.approx(values, abs=1e-3)


def test_evaluation_stands_at_the_training_step_before_it() -> None:
    lines = []
    for i, v in enumerate(losses(40), 1):
        lines.append(bar("train", 10 * i, 400, v))
        if i % 10 == 0:
            lines += [bar("eval", k, 3, 3 + k / 10) for k in (1, 2, 3)]
    steps = read(progress_bars, "\n".join(lines) + "\n").steps
    assert steps is not None
    assert steps["loss"].count() == 40
    evaluated = steps.drop_nulls("eval_loss")
    assert evaluated.select("step", "eval_loss").rows() == [(100 * i, 3.3) for i in (1, 2, 3, 4)]


def test_rounded_counts_are_spread_and_lose_no_line() -> None:
    reading = read(progress_bars, "\n".join(bar("train", 7 * i, 5000, v) for i, v in enumerate(losses(700), 1)) + "\n")
    assert reading.steps is not None
    assert reading.steps.height == 700
    assert reading.steps["step"].is_sorted()
    assert max(abs(step - 7 * i) for i, step in enumerate(reading.steps["step"], 1)) <= 10
    assert any("three digits" in note for note in reading.source.notes)


def test_lines_without_such_a_bar_stay() -> None:
    table = pl.DataFrame({"line": [1, 2], "text": ["Progress on: nothing", "step 3"]})
    assert logged_bars.as_bars(table)[0].equals(table)
