"""RunView lists every measure of a run under its own name and computes each once."""

from __future__ import annotations

import inspect
from functools import cached_property
from types import ModuleType

import pytest

from gdiag.measures import run_machine, run_tables, run_training
from gdiag.measures.run import RunView
from tests.analyzers.made_runs import learning, view


@pytest.mark.parametrize("module", [run_tables, run_training, run_machine])
def test_the_table_of_contents_is_whole(module: ModuleType) -> None:
    own = inspect.getmembers(module, lambda held: inspect.isfunction(held) and held.__module__ == module.__name__)
    measures = [function for name, function in own if not name.startswith("_")]
    assert measures
    for function in measures:
        listed = vars(RunView)[function.__name__]
        behind = listed.func if isinstance(listed, cached_property) else listed
        assert (behind.fget if isinstance(behind, property) else behind) is function
        assert function.__doc__


def test_a_measure_is_computed_once() -> None:
    run = view({"loss": learning(200)})
    assert run.losses is run.losses
    assert run.layer_table("grad_norm") is None
    assert run.series("loss") is run.series("loss")
