"""Lines read as bytes: the numbers are those that float() reads, and a line that differs in anything but its digits is left."""

from __future__ import annotations

import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.ingesters import layouts, line_forms
from tests.ingesters.console_samples import FORMATS, losses

FORMS = ("{:.4f}", "{:.6e}", "{:.3E}", "{:8.3f}", "{:,.1f}", "{:g}", "{:.17g}", "{:d}")


def table(lines: list[str]) -> pl.DataFrame:
    return pl.DataFrame({"line": range(1, len(lines) + 1), "text": lines}, schema={"line": pl.Int64, "text": pl.String})


def taken(lines: list[str], marker: str = "step ") -> tuple[pl.DataFrame, list[int]]:
    layout = layouts.learn([line.split(marker, 1)[-1] for line in lines[:32]], None, ("step",))
    assert layout is not None
    found, rest = line_forms.apply(table(lines), layout, marker)
    return found if found is not None else table([]), rest["line"].to_list()


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FORMS), st.integers(0, 10**6), st.integers(-14, 14))
def test_numbers_are_those_of_float(form: str, seed: int, power: int) -> None:
    rng = random.Random(seed)
    values = [rng.uniform(-9, 9) * 10.0**power for _ in range(200)]
    cells = [form.format(int(v) if form == "{:d}" else v) for v in values]
    found, left = taken([f"at 09:{i % 60:02d} step {i} | loss {cell} | x 7" for i, cell in enumerate(cells)])
    for line, value in found.select("line", "loss").rows() if "loss" in found.columns else ():
        assert value == float(cells[line - 1].replace(",", ""))
    assert len(found) + len(left) == 200


@pytest.mark.parametrize("form", FORMS[:5])
def test_nearly_all_lines_are_taken(form: str) -> None:
    lines = [f"step {i} loss: {form.format(1 + i % 97 / 97)} (x) lr: {form.format(3e2)}" for i in range(3000)]
    assert len(taken(lines)[1]) < 30


@pytest.mark.parametrize(
    "odd",
    [
        "step 1150 loss: nan   done", "step 1150 loss: 2.5x00 done", "step 1150 loss; 2.5000 done", "stop 1150 loss: 2.5000 done",
        "step 1150 loss: 2.500 done!", "step 115: loss: 2.5000 done", "step 1150 loss: 2,5000 done", "step 1150 loss: 2.50/0 done",
        "step 1150 loss: 2.50é0 done",
    ],
)  # fmt: skip
def test_a_line_that_is_not_alike_is_left(odd: str) -> None:
    lines = [f"step {1000 + i} loss: {2 + i / 1000:.4f} done" for i in range(300)]
    lines[150] = odd
    found, left = taken(lines)
    assert left == [151]
    assert len(found) == 299


@pytest.mark.parametrize("character", ["\0", " ", "/", ":", "?", "@", "p", "\x7f", "\x80", "ß", "\uffff"])
def test_any_other_character_anywhere_is_noticed(character: str) -> None:
    like = "step 1000 loss: 2.5000 done"
    odd = [like[:i] + character + like[i + 1 :] for i in range(5, len(like))]
    found, left = taken([f"step {1000 + i} loss: {2 + i / 1000:.4f} done" for i in range(100)] + odd)
    assert left == [i for i, line in enumerate(odd, 101) if line != like]
    assert len(found) + len(left) == 100 + len(odd)


def test_launchers_and_clocks_before_the_marker_are_the_prefix() -> None:
    lines = [f"[rank{i % 4}]: 10:00:{i % 60:02d} step {i} loss: {i / 8}" for i in range(100, 400)]
    found, _ = taken(lines)
    assert found["prefix"].to_list()[:2] == ["[rank0]: 10:00:40 ", "[rank1]: 10:00:41 "]


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("hf", "metaseq")])
def test_the_same_as_by_splitting(name: str) -> None:
    _, line = FORMATS[name]
    lines = [line(i, v) for i, v in enumerate(losses(300), 100)]
    layout = layouts.learn(lines[:32], None, ())
    assert layout is not None
    alike, rest = line_forms.apply(table(lines), layout, "")
    split, _ = layouts.apply(table(lines), layout, "")
    assert alike is not None
    assert alike.equals(split.join(rest, on="line", how="anti").select(alike.columns))
