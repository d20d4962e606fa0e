"""Parted thousands and decimal commas."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from gdiag.ingesters import load
from gdiag.ingesters.grouping_marks import commas_are_decimal, dots, plain, with_points
from gdiag.schema import Records


def grouped(number: int, mark: str = ".") -> str:
    return f"{number:,}".replace(",", mark)


def read(
    path: Path, rows: Sequence[tuple[str, ...]], separator: str = ",", head: tuple[str, ...] = ("step", "loss")
) -> Records:
    path.write_text("\n".join(separator.join(row) for row in [head, *rows]) + "\n")
    return load([path])


def test_dots_that_can_only_part_thousands(tmp_path: Path) -> None:
    steps = [*range(500_000, 13_000_000, 500_000)]
    rows = [(grouped(step), f"{3 - step / 1e8:.4f}") for step in steps]
    records = read(tmp_path / "run.csv", rows)
    assert records.steps["step"].to_list() == steps
    assert "dots in step part thousands" in records.sources[0].notes
    (tmp_path / "run.csv").unlink()
    (tmp_path / "run.jsonl").write_text("\n".join(json.dumps({"step": s, "loss": float(v)}) for s, v in rows))
    assert load([tmp_path]).steps["step"].to_list() == steps


@pytest.mark.parametrize("first", [900, 100, 1])
def test_a_count_that_rises_only_with_thousands(tmp_path: Path, first: int) -> None:
    steps = [*range(first, 2400, 7)]
    records = read(tmp_path / "run.csv", [(grouped(step), f"{3 - step / 1e4:.5f}") for step in steps])
    assert records.steps["step"].to_list() == steps


def test_other_columns_with_decimal_commas_tell(tmp_path: Path) -> None:
    steps = [*range(1000, 60_000, 1000)]
    rows = [(grouped(step), f"{3 - step / 1e5:.4f}".replace(".", ",")) for step in steps]
    assert read(tmp_path / "run.csv", rows, ";").steps["step"].to_list() == steps
    assert read(tmp_path / "run.csv", rows, "\t").steps["step"].to_list() == steps


def test_what_cannot_be_judged_is_said(tmp_path: Path) -> None:
    records = read(tmp_path / "run.csv", [(grouped(1000 * i), f"{3 - i / 100:.4f}") for i in range(1, 60)])
    assert records.steps["step"].to_list() == [*range(1, 60)]
    assert records.sources[0].notes == ("whether 1.000 in step is 1 or 1000 cannot be judged: read as 1",)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_decimal_commas_in_any_table(tmp_path: Path, separator: str) -> None:
    rows = [(str(i), f"{3 - i / 100:.3f}".replace(".", ","), f"0,{i:06d}") for i in range(60)]
    records = read(tmp_path / "run.csv", rows, separator, ("step", "loss", "lr"))
    assert records.steps["loss"].to_list() == [round(3 - i / 100, 3) for i in range(60)]
    assert records.steps["lr"][59] == 0.000059


def test_quoted_decimal_commas(tmp_path: Path) -> None:
    rows = [(str(i), f'"{3 - i / 100:.2f}"'.replace(".", ",")) for i in range(60)]
    assert read(tmp_path / "run.csv", rows).steps["loss"][59] == 2.41
    rows = [(str(i), f'"{3 - i / 100:.3f}"'.replace(".", ",")) for i in range(60)]
    assert read(tmp_path / "run.csv", rows).steps["loss"][59] == 2.41


@pytest.mark.parametrize("mark", [" ", "'", "_", "\u202f", ","])
def test_other_marks_between_thousands(tmp_path: Path, mark: str) -> None:
    steps = [*range(500, 90_000, 500)]
    rows = [(f'"{grouped(step, mark)}"', f"{3 - step / 1e6:.4f}") for step in steps]
    assert read(tmp_path / "run.csv", rows).steps["step"].to_list() == steps


def test_english_thousands_beside_points_stay(tmp_path: Path) -> None:
    rows = [(str(i), f"{3 - i / 100:.4f}", f"{i * 1000:,}") for i in range(1, 60)]
    records = read(tmp_path / "run.tsv", rows, "\t", ("step", "loss", "tokens"))
    assert records.steps["tokens"].to_list() == [1000.0 * i for i in range(1, 60)]
    assert records.steps["loss"][0] == 2.99


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_a_comma_elsewhere_makes_no_thousands_of_a_loss(tmp_path: Path, separator: str) -> None:
    rows = [(str(i), f"{3 - i / 100:.3f}", '"0,1"') for i in range(1, 40)]
    records = read(tmp_path / "run.csv", rows, separator, ("step", "loss", "gpus"))
    assert records.steps["loss"].to_list() == [round(3 - i / 100, 3) for i in range(1, 40)]


def test_a_comma_among_words_proves_nothing() -> None:
    assert not commas_are_decimal([["1.000", "0,5"], ["2.000", "warm"], ["3.000", "cold"]], likely=False)
    assert commas_are_decimal([["1.000", "0,5"], ["2.000", "nan"], ["3.000", "0,7"]], likely=False)


@pytest.mark.parametrize("other", ["NaN", "inf", "", "10,825"])
def test_what_else_stands_among_losses_leaves_their_commas(tmp_path: Path, other: str) -> None:
    rows = [(str(i), f'"{3 - i / 100:.3f}"'.replace(".", ",") if i != 5 else f'"{other}"') for i in range(1, 30)]
    records = read(tmp_path / "run.csv", rows)
    assert records.steps["loss"][0] == 2.99
    assert "commas in loss are read as decimal ones" in records.sources[0].notes


def test_losses_whose_commas_cannot_be_judged_are_said(tmp_path: Path) -> None:
    records = read(tmp_path / "run.csv", [(str(i), f'"{30 - i / 100:.3f}"'.replace(".", ",")) for i in range(1, 30)])
    assert records.steps["loss"][0] == 29990.0
    assert "whether 29,990 in loss is 29.990 or 29990 cannot be judged: read as 29990" in records.sources[0].notes


def test_proofs() -> None:
    assert commas_are_decimal([["1", "0,5"]], likely=False)
    assert not commas_are_decimal([["1", "2,345"]], likely=False)
    assert commas_are_decimal([["1", "2,345"]], likely=True)
    assert not commas_are_decimal([["1.5", "0,5"]], likely=True)
    assert with_points(["1.234,5", "1.000", "2,5", "x,y"]) == ["1234.5", "1000", "2.5", "x,y"]
    assert dots(pl.Series(["0.125", "1.250"])) == ""
    assert dots(pl.Series(["1.000", "2.000"])) == "unsaid"
    assert plain(pl.Series(["2,5", "1.234,5"])).to_list() == [2.5, 1234.5]
    assert plain(pl.Series(["1,234", "1,234.5"])).to_list() == [1234.0, 1234.5]


@pytest.mark.parametrize("seed", range(30))
def test_thousands_are_told_whatever_resumes(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    every = drawn.choice([1, 2, 5, 10, 25])
    at = every * drawn.randrange(0, 900 // every)
    steps: list[int] = []
    for _ in range(drawn.randint(1, 5)):
        end = at + every * drawn.randint(20, 120)
        steps += range(at, end, every)
        at = max(0, end - every * drawn.randint(2, 60))
    steps += range(at, max(at, 1000) + 5 * every, every)
    rows = [(grouped(step), f"{3 - i / 1e4:.5f}") for i, step in enumerate(steps)]
    if seed % 3 == 0:
        rows.insert(len(rows) // 2, ("nan", "2.5"))
    if seed % 3 == 1:
        rows.insert(len(rows) // 2, ("7.0x1", "2.5"))
    records = read(tmp_path / "run.tsv", rows, "\t")
    assert set(records.steps["step"].to_list()) == set(steps)
    assert records.steps["step"].to_list().count(steps[0]) == steps.count(steps[0])
    assert "dots in step part thousands" in records.sources[0].notes
    assert records.rejects.height == (seed % 3 == 1)


def test_a_resume_that_ends_below_a_thousand() -> None:
    steps = [*range(900, 1100), *range(950, 990)]
    assert dots(pl.Series([grouped(step) for step in steps])) == "thousands"


@pytest.mark.parametrize("seed", range(20))
def test_fractions_with_three_decimals_are_no_thousands(seed: int) -> None:
    drawn = random.Random(seed)
    unit = drawn.choice([0.125, 0.001, 0.5, 1 / 3])
    first = drawn.choice([1, 7, 40])
    told = [first + unit * i for i in range(60)]
    told += told[drawn.randint(5, 50) :]
    assert dots(pl.Series([f"{x:.3f}" for x in told])) == "unsaid"
    mixed = [f"{x:.0f}" if x == int(x) else f"{x:.3f}" for x in told]
    assert dots(pl.Series(mixed)) in ("", "unsaid")
