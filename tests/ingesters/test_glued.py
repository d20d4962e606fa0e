"""Lines that lost the newline between them give the steps that they give on lines of their own."""

from __future__ import annotations

from types import ModuleType

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from gdiag.ingesters import fields, glued, raw_lines
from tests.ingesters.console_samples import FORMATS, WHOLE, Line, losses, megatron_line, read

PREFIXES = ("", "0: ", "[rank0]: ", "2026-01-02 03:04:05 - INFO - ", "[default3]:[2026-01-02 03:04:05.66] ", "node-1 ")
SAMPLES = {**FORMATS, **{name: WHOLE[name] for name in ("hf", "tqdm", "mllog", "dllogger", "leading")}}
METRICS = ("step", "loss", "grad_norm", "lr")


def table(module: ModuleType, lines: list[str]) -> pl.DataFrame:
    steps = read(module, "\n".join(lines) + "\n").steps
    assert steps is not None
    return steps.select(name for name in METRICS if name in steps.columns)


def made(line: Line, count: int, prefix: str = "") -> list[str]:
    return [prefix + line(3 * i, loss) for i, loss in enumerate(losses(count, seed=count), 1)]


def glue(lines: list[str], at: list[int], between: str = "") -> list[str]:
    """The lines with those at the places put to the ends of the ones before them."""
    found: list[str] = []
    for index, line in enumerate(lines):
        if index in at and found:
            found[-1] += between + line
        else:
            found.append(line)
    return found


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(list(SAMPLES)),
    st.sampled_from(PREFIXES),
    st.lists(st.integers(1, 59), min_size=1, max_size=40),
    st.booleans(),
)
def test_glued_lines_give_their_steps(name: str, prefix: str, at: list[int], long: bool) -> None:
    module, line = SAMPLES[name]
    lines = made(line, 60, prefix if name in FORMATS else "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_lines, "_LEAST", 0 if long else 1 << 30)
        assert_frame_equal(table(module, glue(lines, at)), table(module, lines))


@pytest.mark.parametrize("between", [" ", " | ", " node-7 said ", "[2026-01-02 03:04:05.66] "])
@pytest.mark.parametrize("name", ["megatron", "torchtitan", "nanogpt"])
def test_anything_may_stand_between(name: str, between: str) -> None:
    module, line = FORMATS[name]
    lines = made(line, 40)
    assert_frame_equal(table(module, glue(lines, [5, 6, 20], between)), table(module, lines))


def test_the_rank_before_the_second_line_is_its_own() -> None:
    lines = [f"[rank{i % 2}]: {megatron_line(i // 2, 2.5)}" for i in range(2, 42)]
    steps = read(FORMATS["megatron"][0], "\n".join(glue(lines, list(range(1, 40, 2)))) + "\n").steps
    assert steps is not None
    assert steps["rank"].to_list() == [0, 1] * 20


def test_a_cut_line_glued_to_a_whole_one_is_set_aside() -> None:
    lines = [megatron_line(i, 2.5) for i in range(1, 21)]
    lines[9:11] = [lines[9][:40] + lines[10]]
    reading = read(FORMATS["megatron"][0], "\n".join(lines) + "\n")
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == [*range(1, 10), *range(11, 21)]
    assert reading.rejects is not None
    assert reading.rejects["line"].to_list() == [10]


@pytest.mark.parametrize(
    "line",
    [
        "step {s} | loss {v} | best step 4 loss 3.5",
        "step {s} (epoch step 7) loss {v}",
        "step {s}: loss {v}, next evaluation at step 400",
    ],
)
def test_one_record_that_names_two_steps_stays_one(line: str) -> None:
    module, _ = FORMATS["generic"]
    lines = [line.format(s=10 + i, v=f"{loss:.4f}") for i, loss in enumerate(losses(30))]
    found = table(module, lines)
    assert found["step"].to_list() == [*range(10, 40)]
    assert found["loss"].to_list() == losses(30)


def test_the_names_of_one_record_come_again_in_the_next() -> None:
    starts = glued.Starts(r"step:\d", " - ", ("step",))
    one = "step:12 - a/loss:0.1 - training/global_step:12 - training/epoch:1"
    assert glued.cut(one, starts, frozenset({"a/loss"})) == [one]
    assert glued.cut(one + one, starts, frozenset()) == [one, one]


def test_numbers_that_run_together_are_not_cut() -> None:
    """Whether `1.2341` ends with the step of the next line, nobody can tell."""
    lines = [f"{i} | loss {loss:.4f} | norm 1.234" for i, loss in enumerate(losses(40), 1)]
    module, _ = WHOLE["leading"]
    reading = read(module, "\n".join(glue(lines, [11, 31])) + "\n")
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == [i for i in range(1, 41) if i not in (12, 32)]
    assert any("2 step lines hold several steps run together (line 11, 30)" in note for note in reading.source.notes)


def test_lines_with_several_starts_that_are_no_records_are_not_all_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glued, "_MOST", 20)
    monkeypatch.setattr(glued, "_SOME", 5)
    texts = [f"step:{i} - a:{i} - last_step:{i} - b:2" for i in range(100)]
    texts[37] += texts[38]
    frame = pl.DataFrame({"line": range(1, 101), "text": texts})
    got = glued.apart(frame, glued.Starts(r"step:\d", " - ", ("step",)), "step:")
    assert got["line"].to_list() == sorted([*range(1, 101), 38])


def test_rows_of_one_line_keep_their_order() -> None:
    frame = pl.DataFrame({"line": [1, 2], "text": ["s:1 trl:3.0s:2 trl:2.0s:3 trl:1.0", "s:4 trl:0.5"]})
    got = fields.read(frame, marker="s:")
    assert got.wide.select("line", "step", "trl").rows() == [(1, 1, 3.0), (1, 2, 2.0), (1, 3, 1.0), (2, 4, 0.5)]
