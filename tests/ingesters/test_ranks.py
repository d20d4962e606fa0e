"""Rows of ranks: labels that were lost are found again where the others of the step tell them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdiag.ingesters import load
from gdiag.ingesters.ranks import are_ranks, labelled, of_cells, split_rank

STEPS, RANKS = 40, 4


def rows(label: Callable[[int, int], int | None], *, reduced: int = 0) -> pl.DataFrame:
    """STEPS steps of RANKS ranks whose value is their number; `reduced`: every so many steps a row of all follows."""
    told = [(step, label(step, rank), float(rank)) for step in range(STEPS) for rank in range(RANKS)]
    if reduced:
        told += [(step, None, -1.0) for step in range(0, STEPS, reduced)]
    return pl.DataFrame(
        {
            "step": [r[0] for r in told],
            "rank": pl.Series([r[1] for r in told], dtype=pl.Int32),
            "loss": [r[2] for r in told],
        }
    ).with_columns(run=pl.lit(None, pl.String))


@pytest.mark.parametrize(
    ("name", "rank", "rest"), [("rank3/loss", 3, "loss"), ("loss/rank_3", 3, "loss"), ("loss", None, "loss")]
)
def test_names_of_ranks(name: str, rank: int | None, rest: str) -> None:
    assert split_rank(name) == (rank, rest)


@given(st.integers(2, 9))
def test_a_lost_label_is_that_of_the_rank_the_step_lacks(every: int) -> None:
    held = rows(lambda step, rank: None if (step * RANKS + rank) % (every * 2 + 1) == 0 else rank)
    found, notes = labelled(held)
    assert found["rank"].to_list() == found["loss"].to_list()
    assert found.height == held.height
    assert notes == [f"{held['rank'].null_count():,} rows without a rank have the one that their step lacks"]


def test_rows_of_all_ranks_stay_so() -> None:
    held = rows(lambda _, rank: rank, reduced=3)
    found, notes = labelled(held)
    assert found.equals(held)
    assert not notes


def test_a_first_rank_without_a_label_may_be_the_reduced_row() -> None:
    held = rows(lambda _, rank: rank or None)
    found, notes = labelled(held)
    assert found.equals(held)
    assert not notes


def test_several_lost_labels_of_ranks_out_of_order_are_left_out() -> None:
    held = rows(lambda step, rank: None if step % 5 == 0 and rank in (1, 2) else rank).sort("step", pl.col("loss") * -1)
    found, notes = labelled(held)
    assert found["rank"].null_count() == 0
    assert found.height == held.height - 16
    assert notes[-1] == "16 rows without a rank are left out: their steps lack several ranks"


@pytest.mark.parametrize(
    "form", ["{}", "rank{}", "rank_{}", "[Rank {}]", "cuda:{}", "{}/4", "worker-{}", " {} ", "{}.0"]
)
def test_ranks_as_programs_write_them(form: str) -> None:
    cells = pl.Series("rank", [form.format(rank) for rank in range(RANKS)])
    assert are_ranks(cells)
    assert of_cells(cells).to_list() == [*range(RANKS)]


def test_words_are_no_ranks() -> None:
    assert not are_ranks(pl.Series("worker", ["alpha", "beta", "gamma 3 x", None]))


def test_a_cell_that_names_no_rank_is_told_and_its_row_found(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    told = [{"step": s, "rank": f"rank{r}", "loss": 3 - s / 50 + r / 100} for s in range(STEPS) for r in range(RANKS)]
    told[3 * RANKS + 1]["rank"] = "?"
    path.write_text("".join(json.dumps(row) + "\n" for row in told))
    records = load([path])
    assert records.steps["rank"].to_list() == [*range(RANKS)] * STEPS
    assert records.rejects.select("line", "reason", "text").rows() == [(3 * RANKS + 2, "no rank in column rank", "?")]
