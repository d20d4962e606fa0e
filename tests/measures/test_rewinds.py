"""A restart from one logged step back, told from rows written twice, evaluations, ranks and two processes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from gdiag.measures.rewinds import trained_again

AT = 100
"""Row whose step is that of the row before."""


def rows(pause: float = 300.0, every: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    step = np.concatenate([np.arange(AT), np.arange(AT - 1, 399)]) * every
    time = 1e9 + 2.0 * every * np.arange(400) + (pause - 2.0 * every) * (np.arange(400) >= AT)
    noise = rng.standard_normal(400)
    return pl.DataFrame({"step": step, "time": time, "loss": 3 + 0.02 * noise, "grad_norm": np.exp(0.1 * noise[::-1])})


@pytest.mark.parametrize("every", [1, 10, 50])
def test_the_last_step_trained_again_after_a_pause(every: int) -> None:
    assert np.flatnonzero(trained_again(rows(every=every))).tolist() == [AT]


def test_values_that_come_out_the_same_do_not_hide_it() -> None:
    found = rows().with_columns(pl.when(pl.col("step") == AT - 1).then(3.0).otherwise(pl.col("loss")).alias("loss"))
    assert np.flatnonzero(trained_again(found)).tolist() == [AT]


def test_without_times_loss_and_gradient_norm_decide() -> None:
    found = rows().drop("time")
    assert np.flatnonzero(trained_again(found)).tolist() == [AT]
    assert not trained_again(found.drop("grad_norm").with_columns(lr=pl.lit(1e-3))).any()


def test_a_run_that_crashes_again_and_again() -> None:
    """Ten rows, a crash, the last of them again; rows without a clock could be a logger's habit."""
    step = np.concatenate([np.arange(9 * k, 9 * k + 10) for k in range(12)])
    time = 1e9 + 2.0 * np.arange(120) + 300.0 * (np.arange(120) // 10)
    noise = np.random.default_rng(2).standard_normal(120)
    found = pl.DataFrame({"step": step, "time": time, "loss": 3 + 0.1 * noise, "grad_norm": np.exp(0.1 * noise)})
    assert np.flatnonzero(trained_again(found)).tolist() == list(range(10, 120, 10))
    assert not trained_again(found.drop("time")).any()


HARMLESS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "written a moment later": lambda _: rows(pause=0.1),
    "evaluation with a loss": lambda f: f.with_columns(
        pl.when(pl.int_range(pl.len()) == AT).then(None).otherwise(pl.col("grad_norm")).alias("grad_norm")
    ),
    "only loss and time": lambda f: f.drop("grad_norm"),
    "no loss": lambda f: f.drop("loss"),
    "every step doubled": lambda f: pl.concat([f, f.with_columns(pl.col("time") + 1.5, pl.col("loss") + 0.1)]).sort("time"),
    "one file read twice over": lambda f: pl.concat([f.head(AT), f.slice(AT - 1, 1), f.tail(300)]).unique("step", maintain_order=True),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
def test_other_doubled_rows_are_no_restart(name: str) -> None:
    assert not trained_again(HARMLESS[name](rows())).any()


def test_a_row_copied_as_it_is_is_no_restart() -> None:
    found = rows().filter(pl.int_range(pl.len()) != AT)
    assert not trained_again(pl.concat([found.head(50), found.slice(49, 1), found.tail(349)])).any()
