from __future__ import annotations

import pytest

from gdiag.analyzers.needs import absent, held
from gdiag.measures.run import RunView
from gdiag.model import Run
from gdiag.schema import Records
from tests.tables.steps import records


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        (["steps.lr"], "no lr"),
        (["gpus.reasons", "gpus.power"], "no GPU telemetry"),
        (["steps.update_norm|layers.update_norm"], "no update_norm or per-layer columns"),
        (["layers.grad_norm|layers.param_norm"], "no per-layer columns"),
        (["steps.rank", "events.kind"], "no console events"),
        (["steps.rank", "steps.lr"], "no rank, no lr"),
    ],
)
def test_what_is_wholly_absent_is_one_phrase(lacking: list[str], words: str) -> None:
    given = records(loss=[1.0, 2.0])
    assert absent(held(RunView(given.runs[0], given)), lacking) == words


def test_without_any_step_log_no_column_of_it_is_named() -> None:
    given = Records(runs=(Run("run"),))
    assert absent(held(RunView(given.runs[0], given)), ["steps.lr", "steps.loss|layers.grad_norm"]) == "no step log"
