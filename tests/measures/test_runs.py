"""Runs one after the other: each has its own rows, and none but the last one's measures stay in memory."""

from __future__ import annotations

import gc
import weakref

import polars as pl

import gdiag
from gdiag.measures.run import RunView
from gdiag.measures.runs import each
from gdiag.model import Run
from gdiag.schema import TABLES, Records, empty


def records(*names: str) -> Records:
    rows = [
        {"run": name, "segment": 0, "step": step, "loss": 3.0 - step / 100 + number}
        for step in range(80)
        for number, name in enumerate(names)
    ]
    kinds = {name: TABLES["steps"][name] for name in ("run", "segment", "step", "loss") if name in TABLES["steps"]}
    steps = pl.concat(
        [empty("steps"), pl.DataFrame(rows).select(pl.col(n).cast(k) for n, k in kinds.items())], how="diagonal"
    )
    return Records(runs=tuple(Run(name) for name in names), steps=steps)


def test_each_run_has_its_own_rows_in_their_order() -> None:
    held = records("b", "a", "none")
    held = Records(runs=held.runs, steps=held.steps.filter(pl.col("run") != "none"))
    for view in each(held):
        own = held.steps.filter(pl.col("run") == view.run.id)
        assert view.steps.equals(own)
        assert view.steps.equals(RunView(view.run, held).steps)
        assert view.has("steps.loss") == (view.run.id != "none")
        assert not view.has("gpus")


def test_a_view_that_nobody_keeps_is_gone_when_the_next_one_comes() -> None:
    seen: list[weakref.ref[RunView]] = []
    for view in each(records("a", "b", "c")):
        assert len(view.series("loss").value) == 80
        seen.append(weakref.ref(view))
    del view
    gc.collect()
    assert [ref() for ref in seen] == [None, None, None]


def test_a_run_is_judged_alike_alone_and_among_others() -> None:
    among = gdiag.diagnose(records("a", "b"))
    alone = gdiag.diagnose(records("a"))
    assert [f for f in among.findings if f.where.run == "a"] == list(alone.findings)
    assert among.runs[0] == alone.runs[0]
    assert {skip.code for skip in among.skipped} == {skip.code for skip in alone.skipped}
