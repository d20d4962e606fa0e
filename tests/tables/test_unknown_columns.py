from __future__ import annotations

import json
from pathlib import Path

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import load
from gdiag.tables.doctor import examine
from gdiag.tables.unknown_columns import guess, unknown


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("valObjective", "eval_loss"), ("my/obj", "loss"), ("fooGradNorm", "grad_norm"), ("scalerFactor", "loss_scale"),
        ("opt.LR.group", "lr"), ("sec_by_iter", "step_time"), ("tokens/sec", "tokens_per_s"), ("global_steps_no", "step"),
        ("reward", None), ("glossary", "loss"), ("resteps", None), ("x" * 9999, None), ("", None),
    ],
)  # fmt: skip
def test_guesses(name: str, metric: str | None) -> None:
    assert guess(name) == metric


def write(path: Path, **more: float) -> None:
    path.write_text("".join(json.dumps({"step": i, "loss": 3 - i / 50, **more}) + "\n" for i in range(40)))


def test_columns_that_nobody_knows_are_counted_by_family_with_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write(
        path,
        **{
            "reward": 1.0,
            "zeta.1.q": 2.0,
            "zeta.2.q": 3.0,
            "fooGradNorm_x": 1.0,
            "valObjective": 1.0,
            "myobj/objective": 2.0,
        },
    )
    (table,) = unknown(load([path]))
    assert "columns of numbers without a use (6)" in table.title
    assert table.rows == (
        ("fooGradNorm_x", 1, "--map 'grad_norm=fooGradNorm_x'"),
        ("valObjective", 1, "--map 'eval_loss=valObjective'"),
        ("myobj/objective", 1, "--map 'loss=myobj/objective', in place of loss"),
        ("reward", 1, None),
        ("zeta.1.q and 1 more", 2, None),
    )
    assert table in examine(load([path])).tables


def test_no_such_columns_no_table(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write(path)
    assert unknown(load([path])) == []


def test_a_table_without_a_known_column_names_those_it_has(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("t,objv,gg\n" + "".join(f"{i},{3 - i / 50},1\n" for i in range(40)))
    with pytest.raises(
        InputError,
        match=r"in its columns \(t, objv, gg\): no training log; where one of them is, --map loss=NAME says so$",
    ):
        load([path])
