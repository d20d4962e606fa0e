"""All console formats: recognised, read whole, and never the worse for damage."""

from __future__ import annotations

import contextlib
from itertools import accumulate

import polars as pl
import pytest
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import fairseq, recognise, step_bars
from gdiag.ingesters.modded_nanogpt import FORMAT as MODDED
from tests.ingesters.console_samples import FORMATS, WHOLE, given, losses, read

BOTH = FORMATS | WHOLE
NAMES = sorted(BOTH)
BARE = {"llm.c", MODDED, "composer", "openai", "pairs", "build-nanogpt-log", "olmo", "detectron2"}
PREFIXES = (
    "",
    "0: ",
    "12: ",
    "[default3]:",
    "0: [default7]:",
    "[rank0]:",
    "slurm_procid 0 : ",
    "2026-05-29 15:42:14,660 INFO ",
)


def text(name: str, count: int, start: int = 1) -> tuple[list[str], list[float]]:
    _, line = BOTH[name]
    values = losses(count)
    return [line(start + i, v) for i, v in enumerate(values)], values


def close(found: list[float | None], wanted: list[float]) -> bool:
    return len(found) == len(wanted) and all(
        f is not None and abs(f - w) < 6e-3 for f, w in zip(found, wanted, strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
def test_recognised_and_read_whole(name: str) -> None:
    lines, values = text(name, 120)
    noise = ["Loading dataset shards: 100%", "WARNING: something about iteration order", "", "  | a | table |"]
    noise = noise if name in FORMATS else []
    log = "\n".join(noise + lines[:60] + noise + lines[60:]) + "\n"
    module = recognise(given(log))
    assert module is BOTH[name][0]
    reading = read(BOTH[name][0], log)
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == list(range(1, 121))
    assert close(reading.steps["loss"].to_list(), values)
    assert reading.rejects is None
    assert reading.source.rows == 120
    assert reading.config.get("total_steps") in (None, 5000)
    assert reading.exit == "unknown"
    assert not any("cut short" in note for note in reading.source.notes)
    if name in FORMATS:
        assert reading.steps["line"][0] == len(noise) + 1


def test_evaluations_between_lines_that_end_in_a_unit_are_whole() -> None:
    """What lacks the unit is no cut step line when its names are others."""
    lines: list[str] = []
    for step in range(1, 801):
        lines.append(f"step {step:>6}/800 | loss {3 / step**0.2:.5f} | lr 2.0000e-05 | dt 1464.1ms")
        if step % 40 == 0:
            lines.append(f"step {step} | val loss {4 / step**0.2:.5f}")
    log = "\n".join(lines) + "\n"
    assert recognise(given(log)) is step_bars
    reading = read(step_bars, log)
    assert reading.steps is not None
    evaluated = reading.steps.filter(pl.col("eval_loss").is_not_null())
    assert evaluated["step"].to_list() == list(range(40, 801, 40))
    assert close(evaluated["eval_loss"].to_list(), [4 / step**0.2 for step in range(40, 801, 40)])
    assert reading.source.notes == ()


@pytest.mark.parametrize("name", NAMES)
def test_nan_and_inf_stay(name: str) -> None:
    lines, values = text(name, 20)
    _, line = BOTH[name]
    lines[10] = line(11, float("nan"))
    lines[11] = line(12, float("inf"))
    steps = read(BOTH[name][0], "\n".join(lines) + "\n").steps
    assert steps is not None
    found = steps["loss"].to_list()
    assert len(found) == 20
    assert found[10] != found[10]
    assert found[11] == float("inf")
    assert close(found[:10] + found[12:], values[:10] + values[12:])


@settings(max_examples=60, deadline=None)
@over(name=st.sampled_from(NAMES), data=st.data())
def test_truncation_keeps_what_stands_before(name: str, data: st.DataObject) -> None:
    lines, values = text(name, 30)
    whole = ("\n".join(lines) + "\n").encode()
    cut = data.draw(st.integers(0, len(whole)))
    complete = sum(end <= cut for end in accumulate(len(line.encode()) + 1 for line in lines))
    with contextlib.suppress(InputError):
        steps = read(BOTH[name][0], whole[:cut]).steps
        assert steps is not None
        assert len(steps) <= complete + 1
        assert not complete or close(steps["loss"].to_list()[:complete], values[:complete])
        return
    assert complete <= (1 if name == "hf" else 2 if name in ("generic", "leading") else 0)


@settings(max_examples=30, deadline=None)
@over(name=st.sampled_from(sorted(set(NAMES) - BARE)), data=st.data())
def test_line_endings_and_prefixes_do_not_matter(name: str, data: st.DataObject) -> None:
    lines, values = text(name, 25)
    endings = data.draw(st.lists(st.sampled_from(["\n", "\r\n", "\r", "\n\n"]), min_size=25, max_size=25))
    prefix = data.draw(st.lists(st.sampled_from(PREFIXES), min_size=25, max_size=25))
    log = "".join(p + line + end for p, line, end in zip(prefix, lines, endings, strict=True))
    steps = read(BOTH[name][0], log).steps
    assert steps is not None
    assert close(steps["loss"].to_list(), values)
    assert steps["step"].to_list() == list(range(1, 26))


@pytest.mark.parametrize("name", sorted(BARE))
@pytest.mark.parametrize("ending", ["\r\n", "\r\r\n"])
def test_line_endings_of_whole_lines(name: str, ending: str) -> None:
    lines, values = text(name, 25)
    steps = read(BOTH[name][0], "".join(f"{line}\n" for line in lines).replace("\n", ending)).steps
    assert steps is not None
    assert close(steps["loss"].to_list(), values)


@settings(max_examples=40, deadline=None)
@over(name=st.sampled_from(NAMES), junk=st.binary(max_size=200), at=st.integers(0, 2000))
def test_junk_never_raises(name: str, junk: bytes, at: int) -> None:
    lines, _ = text(name, 12)
    whole = ("\n".join(lines) + "\n").encode()
    with contextlib.suppress(InputError):
        read(BOTH[name][0], whole[:at] + junk + whole[at:])


@pytest.mark.parametrize("name", ["megatron", MODDED, "olmo", "composer"])
def test_reaching_the_announced_last_step_is_a_clean_end(name: str) -> None:
    lines, _ = text(name, 30, start=4971)
    reading = read(BOTH[name][0], "\n".join(lines) + "\n")
    assert reading.config["total_steps"] == 5000
    assert reading.exit == "clean"


def test_runs_one_after_the_other_in_a_file_are_told_apart() -> None:
    lines = [*text(MODDED, 20)[0], "x = x + 1  # step:1/2 train_loss:", *text(MODDED, 20)[0], *text(MODDED, 10)[0]]
    steps = read(BOTH[MODDED][0], "\n".join(lines) + "\n").steps
    assert steps is not None
    assert steps.group_by("run", maintain_order=True).len().rows() == [("1", 20), ("2", 20), ("3", 10)]


def test_ranks_that_all_print_become_rank_rows() -> None:
    _, line = BOTH["torchtitan"]
    lines = [line(s, 2.5).replace("[rank0]", f"[rank{r}]") for s in range(1, 21) for r in range(4)]
    steps = read(BOTH["torchtitan"][0], "\n".join(lines) + "\n").steps
    assert steps is not None
    assert steps.filter(steps["step"] == 3)["rank"].to_list() == [0, 1, 2, 3]


def test_binary_files_are_no_consoles() -> None:
    lines, _ = text("megatron", 20)
    block = bytes(range(256)) * 8 + ("\n".join(lines)).encode()
    assert BOTH["megatron"][0].recognise(given(block)) == 0.0


def test_a_clock_before_a_line_with_a_time_of_its_own() -> None:
    lines = [
        f"2026-06-02 10:00:{2 * i:02d} iter {i}: loss {5 - i / 10:.4f}, time 2003.50ms, mfu 38.12%" for i in range(20)
    ]
    reading = read(FORMATS["nanogpt"][0], "\n".join(lines) + "\n")
    assert reading.steps is not None
    assert reading.steps["step_time"].unique().to_list() == [2.0035]
    assert reading.steps["time"].diff().drop_nulls().unique().to_list() == [2.0]
    assert reading.source.columns["step_time"] == "time"


def test_fairseq_epochs_where_nothing_finer_is_logged() -> None:
    pipes = "".join(
        f"| epoch {e:03d} | loss {4 - e / 10:.3f} | ppl 4.61 | ups 0.6 | num_updates {250 * e} | lr 0.0008 | gnorm 0.3 | clip 0% | wall {9 * e}\n"
        f"| epoch {e:03d} | valid on 'valid' subset | valid_loss {5 - e / 10:.3f} | valid_ppl 5.8 | num_updates {250 * e} | best 4.2\n"
        for e in range(1, 7)
    )
    events = "".join(
        f'2020-02-07 13:2{e}:07 | INFO | train | {{"epoch": {e}, "train_loss": "{4 - e / 10:.3f}", "train_num_updates": "{250 * e}", "train_gnorm": "0.3"}}\n'
        f'2020-02-07 13:2{e}:21 | INFO | valid | {{"epoch": {e}, "valid_loss": "{5 - e / 10:.3f}", "valid_num_updates": "{250 * e}"}}\n'
        for e in range(1, 7)
    )
    for log in (pipes, events):
        assert recognise(given(log)) is fairseq
        steps = read(fairseq, log).steps
        assert steps is not None
        train = steps.filter(steps["loss"].is_not_null())
        assert train["step"].to_list() == [250 * e for e in range(1, 7)]
        assert close(train["loss"].to_list(), [4 - e / 10 for e in range(1, 7)])
        assert close(steps["eval_loss"].drop_nulls().to_list(), [5 - e / 10 for e in range(1, 7)])
    inner = "| epoch 001:    20 / 250 loss=4.5, num_updates=20, lr=1e-4, gnorm=0.3\n"
    steps = read(fairseq, inner + pipes).steps
    assert steps is not None
    assert steps["loss"].drop_nulls().to_list() == [4.5]


def test_the_time_of_an_update_has_the_digits_of_words_a_second() -> None:
    lines = [
        f'2021-03-08 12:{i:02d}:36 | INFO | train_inner | {{"epoch": 1, "loss": "16.{i:02d}", "wps": "{wps}", "ups": "{ups}", '
        f'"wpb": "16384", "num_updates": "{i}", "lr": "2e-05", "gnorm": "20.7"}}'
        for i, (wps, ups) in enumerate([("0", "0"), ("288.7", "0.02"), ("285.5", "0.02"), ("316.7", "0.02")], 1)
    ]
    steps = read(fairseq, "\n".join(lines) + "\n").steps
    assert steps is not None
    assert steps["step_time"].to_list() == [None, *(pytest.approx(16384 / wps) for wps in (288.7, 285.5, 316.7))]
    assert steps["tokens_per_s"].to_list() == [None, 288.7, 285.5, 316.7]


def test_the_epoch_of_fairseq_lines() -> None:
    form = (
        "| epoch {e:03d}:  {at} / 400 loss=9.{at}, wps=1334, wpb=439, num_updates={n}, lr=0.05, gnorm=0.788, clip=100%"
    )
    lines = [form.format(e=e, at=at, n=(e - 1) * 400 + at) for e in (1, 2) for at in (100, 200, 300, 400)]
    steps = read(fairseq, "\n".join(lines) + "\n").steps
    assert steps is not None
    assert steps["epoch"].to_list() == [1.0] * 4 + [2.0] * 4
    assert steps["step"].to_list() == [100 * i for i in range(1, 9)]
