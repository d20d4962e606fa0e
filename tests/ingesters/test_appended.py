"""Runs one after the other in one file: told apart where something tells, else one run that restarts."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdiag.ingesters import load
from gdiag.ingesters.reading import Options
from gdiag.schema import Records

Row = tuple[int, float, float]
"""Step, loss, rate."""


def curve(steps: range, seed: int = 0, lr: float = 1e-3, level: float = 6.0, learnt: float = 2.0) -> list[Row]:
    """A loss that falls from `level` towards `learnt`."""
    drawn = random.Random(seed)
    return [(i, learnt + (level - learnt) / (1 + i / 30) + drawn.gauss(0, 0.03), lr) for i in steps]


def flat(steps: range, seed: int = 0) -> list[Row]:
    """A loss that tells nothing: noise around one level."""
    drawn = random.Random(seed)
    return [(i, 1 + drawn.gauss(0, 0.1), 1e-3) for i in steps]


def jsonl(rows: Sequence[Row]) -> str:
    return "".join(json.dumps({"step": s, "loss": loss, "lr": lr}) + "\n" for s, loss, lr in rows)


def csv(rows: Sequence[Row]) -> str:
    return "step,loss,lr\n" + csv_rows(rows)


def csv_rows(rows: Sequence[Row]) -> str:
    return "".join(f"{s},{loss:.5f},{lr}\n" for s, loss, lr in rows)


def console(rows: Sequence[Row]) -> str:
    return "".join(f"step {s} | loss {loss:.4f} | lr {lr:.2e}\n" for s, loss, lr in rows)


def nanogpt(rows: Sequence[Row]) -> str:
    head = "tokens per iteration will be: 491,520\nnumber of parameters: 123.59M\nusing fused AdamW: True\n"
    return head + "".join(f"iter {s}: loss {loss:.4f}, time 161.80ms, mfu 30.00%\n" for s, loss, _ in rows)


def megatron(rows: Sequence[Row]) -> str:
    head = "using world size: 8, data-parallel-size: 8\n------------ arguments ------------\n  lr ........... 0.001\n"
    return head + "".join(
        f" iteration {s + 1:8d}/ 2000 | elapsed time per iteration (ms): 512.3 | learning rate: {lr:.3E} | lm loss: {loss:.6E} |\n"
        for s, loss, lr in rows
    )


FORMS: tuple[Callable[[Sequence[Row]], str], ...] = (jsonl, csv, console, nanogpt, megatron)


def read(tmp_path: Path, text: str) -> Records:
    path = tmp_path / "run.log"
    path.write_text(text)
    return load([path])


def notes(records: Records) -> str:
    return "; ".join(records.sources[0].notes)


@pytest.mark.parametrize("form", FORMS)
def test_a_run_appended_to_another(tmp_path: Path, form: Callable[[Sequence[Row]], str]) -> None:
    one, two = curve(range(300)), curve(range(200), seed=1, lr=3e-3)
    records = read(tmp_path, form(one) + form(two))
    assert [run.id for run in records.runs] == ["1", "2"]
    one_read, two_read = (records.steps.filter(pl.col("run") == run)["loss"].to_list() for run in "12")
    assert one_read == pytest.approx([loss for _, loss, _ in one], abs=1e-3)
    assert two_read == pytest.approx([loss for _, loss, _ in two], abs=1e-3)
    assert "2 runs one after the other" in notes(records)


@pytest.mark.parametrize("form", FORMS)
def test_a_resume_from_a_checkpoint_is_one_run(tmp_path: Path, form: Callable[[Sequence[Row]], str]) -> None:
    whole = curve(range(300))
    again = curve(range(300, 500))
    records = read(tmp_path, form(whole) + form([*curve(range(250, 300), seed=2), *again]))
    assert [run.id for run in records.runs] == ["run"]
    assert "falls back to the start" not in notes(records)


@pytest.mark.parametrize("form", FORMS)
def test_a_counter_that_begins_again_while_the_loss_goes_on(
    tmp_path: Path, form: Callable[[Sequence[Row]], str]
) -> None:
    later = [(i - 300, loss, lr) for i, loss, lr in curve(range(300, 500))]
    records = read(tmp_path, form(curve(range(300))) + form(later))
    assert [run.id for run in records.runs] == ["run"]
    assert "the loss does not: the same run, restarted" in notes(records)


def test_the_same_run_written_twice(tmp_path: Path) -> None:
    records = read(tmp_path, jsonl(curve(range(300))) * 2)
    assert [run.id for run in records.runs] == ["run"]
    assert "the same losses follow" in notes(records)


def test_a_loss_that_tells_nothing_leaves_it_to_the_lines_above(tmp_path: Path) -> None:
    bare = console(flat(range(100))) + console(flat(range(100), seed=1))
    records = read(tmp_path, bare)
    assert [run.id for run in records.runs] == ["run"]
    assert "taken for a restart" in notes(records)
    banner = "starting with config cfg/small.yaml, seed 1337\n"
    records = read(
        tmp_path, banner + console(flat(range(100))) + banner.replace("1337", "42") + console(flat(range(100), seed=1))
    )
    assert [run.id for run in records.runs] == ["1", "2"]
    records = read(tmp_path, csv(flat(range(100))) + csv(flat(range(100), seed=1)))
    assert [run.id for run in records.runs] == ["1", "2"]


def test_a_loaded_checkpoint_makes_it_a_restart(tmp_path: Path) -> None:
    loaded = "loading checkpoint from out/ckpt.pt\n"
    records = read(tmp_path, nanogpt(curve(range(300))) + loaded + nanogpt(curve(range(200), seed=1)))
    assert [run.id for run in records.runs] == ["run"]
    both = loaded + nanogpt(curve(range(300))) + loaded + nanogpt(curve(range(200), seed=1))
    assert [run.id for run in read(tmp_path, both).runs] == ["1", "2"]


def test_a_process_that_starts_is_no_checkpoint_loaded(tmp_path: Path) -> None:
    start = "> initializing torch distributed ...\n"
    text = start + megatron(curve(range(300))) + start + megatron(curve(range(200), seed=1))
    assert [run.id for run in read(tmp_path, text).runs] == ["1", "2"]


@pytest.mark.parametrize("head", ["===== Epoch {e}/4 =====\n", "===== {e} =====\n", "training the model\n"])
def test_steps_that_begin_again_every_epoch_are_one_run(tmp_path: Path, head: str) -> None:
    epochs = "".join(head.format(e=e + 1) + console(flat(range(100), seed=e)) for e in range(4))
    records = read(tmp_path, "loading the training data\nthe model has 3M parameters\n" + epochs)
    assert [run.id for run in records.runs] == ["run"]
    records = read(tmp_path, "===== Epoch 1/4 =====\n" + epochs.split("\n", 1)[1]) if "Epoch" in head else records
    assert [run.id for run in records.runs] == ["run"]


@pytest.mark.parametrize("row", [40, 196])
def test_one_damaged_step_begins_nothing(tmp_path: Path, row: int) -> None:
    rows = [(1 if i == row else i, 9.0 if i == row else loss, lr) for i, loss, lr in curve(range(200))]
    records = read(tmp_path, jsonl(rows))
    assert [run.id for run in records.runs] == ["run"]
    assert "falls back to the start" not in notes(records)


def test_a_run_that_diverged_and_one_after_it(tmp_path: Path) -> None:
    wild = [(i, math.nan, 1e-3) if i > 250 else (i, loss, lr) for i, loss, lr in curve(range(300))]
    assert [run.id for run in read(tmp_path, csv(wild) + csv_rows(curve(range(200), seed=1))).runs] == ["1", "2"]
    risen = [(i, loss + (7 if i > 200 else 0), lr) for i, loss, lr in curve(range(300))]
    assert [run.id for run in read(tmp_path, csv(risen) + csv_rows(curve(range(200), seed=1))).runs] == ["1", "2"]


def test_a_run_that_ended_in_nan_and_goes_on(tmp_path: Path) -> None:
    ended = [(i, math.nan if i >= 250 else loss, lr) for i, loss, lr in curve(range(300))]
    later = [(i, loss, lr) for i, (_, loss, lr) in enumerate(curve(range(250, 450), seed=1))]
    assert [run.id for run in read(tmp_path, jsonl([*ended, *later])).runs] == ["run"]
    risen = [(i, loss + (9 if i >= 250 else 0), lr) for i, loss, lr in curve(range(300))]
    assert [run.id for run in read(tmp_path, jsonl([*risen, *later])).runs] == ["run"]


@pytest.mark.parametrize("level", [9.0, 3.5, 1.0])
def test_a_run_whose_loss_begins_elsewhere(tmp_path: Path, level: float) -> None:
    other = curve(range(200), seed=1, level=level, learnt=level - 2)
    assert [run.id for run in read(tmp_path, jsonl([*curve(range(300)), *other])).runs] == ["1", "2"]


def test_a_run_that_diverged_to_where_it_began(tmp_path: Path) -> None:
    risen = [(i, loss if i < 200 else 6.0 + (i % 7) / 100, lr) for i, loss, lr in curve(range(300))]
    assert [run.id for run in read(tmp_path, jsonl([*risen, *curve(range(200), seed=1)])).runs] == ["1", "2"]


@pytest.mark.parametrize("shift", [0.0, 0.3, -0.3])
def test_a_counter_reset_at_any_level_near_the_last_is_a_restart(tmp_path: Path, shift: float) -> None:
    later = [(i, loss + shift, lr) for i, (_, loss, lr) in enumerate(curve(range(300, 500)))]
    assert [run.id for run in read(tmp_path, jsonl([*curve(range(300)), *later])).runs] == ["run"]


def test_events_and_exits_go_to_their_runs(tmp_path: Path) -> None:
    end = "Traceback (most recent call last):\n  File 'x.py', line 1\ntorch.cuda.OutOfMemoryError: CUDA out of memory\n"
    saved = "saving checkpoint to out\n"
    text = nanogpt(curve(range(300))) + end + nanogpt(curve(range(200), seed=1)) + saved + "training finished\n"
    records = read(tmp_path, text)
    assert [(run.id, run.exit) for run in records.runs] == [("1", "abnormal"), ("2", "clean")]
    assert records.events.select("run", "kind").rows() == [("1", "oom"), ("2", "checkpoint"), ("2", "exit")]


def test_ranks_and_layers_go_to_their_runs(tmp_path: Path) -> None:
    def rows(found: Sequence[Row]) -> str:
        return "".join(
            json.dumps({"step": s, "rank": rank, "loss": loss, "grad_norm/blocks.0.fc": 1.0}) + "\n"
            for s, loss, _ in found
            for rank in (1, 0)
        )

    records = read(tmp_path, rows(curve(range(100))) + rows(curve(range(80), seed=1)))
    counts = [table.group_by("run").len().sort("run").rows() for table in (records.steps, records.layers)]
    assert counts == [[("1", 200), ("2", 160)]] * 2


def test_telemetry_beside_goes_to_the_run_of_its_time(tmp_path: Path) -> None:
    def rows(found: Sequence[Row], start: float) -> str:
        return "".join(json.dumps({"step": s, "time": start + s, "loss": loss}) + "\n" for s, loss, _ in found)

    smi = "timestamp, index, temperature.gpu, utilization.gpu [%]\n"
    smi += "".join(f"2026/03/02 {10 + i // 60}:{i % 60:02d}:00.000, 0, 60, 99 %\n" for i in range(120))
    (tmp_path / "smi.csv").write_text(smi)
    start = 1772445600.0  # 2026-03-02 10:00 UTC
    (tmp_path / "run.jsonl").write_text(rows(curve(range(300)), start) + rows(curve(range(200), seed=1), start + 3600))
    records = load([tmp_path], Options(tz="UTC"))
    assert records.gpus.group_by("run").len().sort("run").rows() == [("1", 60), ("2", 60)]


def test_epochs_appended_by_keras(tmp_path: Path) -> None:
    def rows(seed: int) -> str:
        found = curve(range(25), seed)
        return "epoch,loss,val_loss\n" + "".join(f"{s},{loss:.4f},{loss + 0.1:.4f}\n" for s, loss, _ in found)

    records = read(tmp_path, rows(0) + rows(1) + rows(2))
    assert [run.id for run in records.runs] == ["1", "2", "3"]


@given(cut=st.integers(0, 400), end=st.sampled_from(["\n", "\r\n"]), order=st.permutations(["jsonl", "csv", "console"]))
def test_any_cut_is_read(tmp_path_factory: pytest.TempPathFactory, cut: int, end: str, order: list[str]) -> None:
    form = {"jsonl": jsonl, "csv": csv, "console": console}[order[0]]
    lines = (form(curve(range(200))) + form(curve(range(200), seed=1))).splitlines()[: cut + 3]
    path = tmp_path_factory.mktemp("cut") / "run.log"
    path.write_text(end.join(lines) + end, newline="")
    records = load([path])
    assert records.steps.height == len(lines) - (order[0] == "csv") * (1 + (len(lines) > 201))
