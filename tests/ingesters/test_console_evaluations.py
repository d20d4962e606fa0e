"""Evaluations on lines of their own between the step lines of a console, and epochs that are fractions."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdiag.ingesters import load
from gdiag.schema import Records

BARS = "step {s} | loss {l:.3f} | lr 1.0e-3"
EVERY = 10


def log(step: str, evaluation: str, count: int = 40, head: str = "", end: str = "\n") -> str:
    """A console that evaluates after every tenth step line."""
    lines = [head] if head else []
    for i in range(count):
        lines.append(step.format(s=i * 10, i=i % EVERY, e=i // EVERY, l=4 - i / 20))
        if i % EVERY == EVERY - 1:
            lines.append(evaluation.format(s=i * 10, e=i // EVERY, l=3.9 - i / 20))
    return "".join(line + end for line in lines)


def read(tmp_path: Path, text: str) -> Records:
    (tmp_path / "run.log").write_text(text, newline="")
    return load([tmp_path / "run.log"])


def evaluations(records: Records) -> list[tuple[int, float]]:
    if "eval_loss" not in records.steps.columns:
        return []
    return records.steps.drop_nulls("eval_loss").select("step", "eval_loss").rows()


@pytest.mark.parametrize(
    ("step", "evaluation"),
    [
        (BARS, "Epoch {e} valid loss {l:.3f}"),
        (BARS, "2026-03-02 10:00:00 | INFO | Validation: loss = {l:.3f}, ppl = 12.31"),
        (BARS, "val_loss={l:.3f} best_val_loss=1.000"),
        (BARS, "[eval] step {s}: avg loss {l:.3f} accuracy 0.31"),
        (BARS, "Epoch [{e}/50] valid loss: {l:.3f}"),
        (BARS, "Epoch {e} summary: train loss 3.500 | val loss {l:.3f}"),
        ("iter {s}: loss {l:.4f}, time 161.80ms, mfu 30.00%", "validation loss: {l:.3f}, perplexity: 12.3"),
        ("[{s}] loss {l:.3f} lr 0.001", "Test set: Average loss: {l:.3f}, Accuracy: 9812/10000 (98%)"),
    ],
)  # fmt: skip
def test_they_are_rows_at_the_step_before(tmp_path: Path, step: str, evaluation: str) -> None:
    records = read(tmp_path, log(step, evaluation))
    assert evaluations(records) == [(s, round(3.9 - s / 200, 3)) for s in (90, 190, 290, 390)]
    assert records.steps["loss"].drop_nulls().len() == 40


def test_a_step_of_their_own_is_used_where_it_fits(tmp_path: Path) -> None:
    text = (
        log(BARS, "eval at step {s}5: loss {l:.3f}").replace("step 905", "step 95").replace("step 1905", "step 999999")
    )
    assert [step for step, _ in evaluations(read(tmp_path, text))][:2] == [95, 190]


@pytest.mark.parametrize(
    "line",
    [
        "Best val loss so far: {l:.3f}", "new best eval loss {l:.3f}", "val loss improved from 3.5 to {l:.3f}",
        "early stopping: target validation loss 2.0", "evaluating ...", "loading the test set took {l:.3f} s",
    ],
)  # fmt: skip
def test_records_and_other_words_are_none(tmp_path: Path, line: str) -> None:
    assert not evaluations(read(tmp_path, log(BARS, line, head="eval loss weight: 0.5")))


@pytest.mark.parametrize("behind", ["(...)", "(.)", "(1.2.3)", "()"])
def test_parentheses_without_a_number_hide_no_loss(tmp_path: Path, behind: str) -> None:
    found = evaluations(read(tmp_path, log(BARS, f"valid loss: {{l:.3f}} {behind}")))
    assert found == evaluations(read(tmp_path, log(BARS, "valid loss: {l:.3f}")))


def test_an_evaluation_that_is_no_number_is_a_row(tmp_path: Path) -> None:
    text = log(BARS, "Epoch {e} valid loss {l:.3f}").replace("valid loss 1.950", "valid loss nan")
    found = evaluations(read(tmp_path, text))
    assert len(found) == 4
    assert math.isnan(found[-1][1])


def test_what_ranks_print_is_one_row(tmp_path: Path) -> None:
    line = "0: valid loss {l:.3f}\n1: valid loss {l:.3f}"
    assert len(evaluations(read(tmp_path, log("0: " + BARS, line)))) == 4


@pytest.mark.parametrize("line", ["epoch {e} - train loss {l:.3f}", "train epoch {e}: loss={l:.3f} grad_norm=1.2"])
def test_fractions_of_epochs_are_no_steps(tmp_path: Path, line: str) -> None:
    text = "".join(line.format(e=round(i * 0.016, 3), l=4 - i / 20) + "\n" for i in range(40))
    records = read(tmp_path, text)
    assert records.steps["step"].to_list() == [*range(40)]
    assert records.steps["epoch"].to_list() == [round(i * 0.016, 3) for i in range(40)]
    assert "epochs are printed as fractions" in records.sources[0].notes[1]


def test_whole_epochs_stay_steps(tmp_path: Path) -> None:
    text = "".join(f"epoch {i} - train loss {4 - i / 20:.3f}\n" for i in range(3, 40))
    assert read(tmp_path, text).steps["step"].to_list() == [*range(3, 40)]


@given(cut=st.integers(200, 1700), end=st.sampled_from(["\n", "\r\n"]))
def test_any_cut_keeps_the_complete_evaluations(tmp_path_factory: pytest.TempPathFactory, cut: int, end: str) -> None:
    part = log(BARS, "Epoch {e} valid loss {l:.3f}", end=end)[:cut]
    records = read(tmp_path_factory.mktemp("cut"), part)
    complete = part[: part.rfind("\n") + 1].count("valid loss")
    assert complete <= len(evaluations(records)) <= complete + 1


def test_of_very_many_lines_some_are_read_up_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gdiag.ingesters.console_evaluations._MOST", 10)
    records = read(tmp_path, log(BARS, "valid loss {l:.3f}", 360))
    assert [step for step, _ in evaluations(records)] == list(range(90, 3600, 400))
    assert "one of 4 lines of evaluations is read, of 36" in records.sources[0].notes


def test_batches_of_an_evaluation_do_not_count_among_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gdiag.ingesters.console_evaluations._MOST", 4)
    batches = "\n".join(f"Test: [{done}/5] loss 9.000 ({{l:.3f}})" for done in range(1, 5))
    records = read(tmp_path, log(BARS, batches))
    assert evaluations(records) == [(s, round(3.9 - s / 200, 3)) for s in (90, 190, 290, 390)]
    assert not any("evaluations" in note for note in records.sources[0].notes)


def test_a_perplexity_is_the_loss_as_an_exponential(tmp_path: Path) -> None:
    lines = []
    for i in range(50, 850, 50):
        lines.append(
            f"[2024-05-08 04:06:17,722 INFO] Step {i}/100000; acc:  12.00; ppl: {math.exp(2 - i / 800):.4f}; xent: {2 - i / 800:.4f}; lr: 1.0"
        )
        if i % 200 == 0:
            lines.append(f"[2024-05-08 04:06:28,463 INFO] Validation perplexity: {math.exp(3 - i / 800):.5f}")
            lines.append("[2024-05-08 04:06:28,463 INFO] Model is improving ppl: inf --> 5.45281.")
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    steps = load([tmp_path / "run.log"]).steps
    assert steps.drop_nulls("eval_loss")["step"].to_list() == [200, 400, 600, 800]
    assert steps["eval_loss"].drop_nulls().to_list() == pytest.approx(
        [3 - i / 800 for i in (200, 400, 600, 800)], abs=1e-4
    )
    assert steps["loss"].drop_nulls().to_list() == pytest.approx([2 - i / 800 for i in range(50, 850, 50)], abs=1e-3)
