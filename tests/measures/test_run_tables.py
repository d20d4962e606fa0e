"""One run's rows of the record tables: each row of `facts` has one place."""

from __future__ import annotations

import polars as pl

from gdiag.measures.run import RunView
from gdiag.model import Run
from gdiag.schema import SWITCH, TABLES, Records


def test_facts_without_a_scope_are_the_runs_own() -> None:
    scopes = [None, "cable", f"{SWITCH}0x1", "topology n1", "nvlink state"]
    facts = pl.DataFrame({"scope": scopes, "key": "a", "value": "b"})
    facts = facts.select(
        pl.col(name).cast(of) if name in facts.columns else pl.lit(None, of).alias(name)
        for name, of in TABLES["facts"].items()
    )
    view = RunView(Run("run"), Records(runs=(Run("run"),), facts=facts))
    assert view.facts["scope"].to_list() == [None, "cable"]
    assert view.switches["scope"].to_list() == [f"{SWITCH}0x1"]
