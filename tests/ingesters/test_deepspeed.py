from __future__ import annotations

import math
from pathlib import Path

import pytest

from gdiag.ingesters import deepspeed, load, recognise
from tests.ingesters.console_samples import given, read


def lines(step: int, skipped: int, lr: str = "9.6e-06", seconds: int | None = None) -> str:
    clock = f"[2023-04-18 01:{(seconds or step) // 60:02d}:{(seconds or step) % 60:02d},"
    return (
        f"{clock}100] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped={skipped}, lr=[{lr}, {lr}], mom=[(0.9, 0.95), (0.9, 0.95)]\n"
        f"{clock}129] [INFO] [timer.py:199:stop] epoch=0/micro_step={step}/global_step={step}, RunningAvgSamplesPerSec=64.4, "
        f"CurrSamplesPerSec=64.0, MemAllocated=3.96GB, MaxMemAllocated=22.95GB\n"
    )


LOG = (
    "***** Evaluating perplexity, Epoch 0/16 *****\nppl: 20.0\n"
    "[2023-04-18 01:00:01,554] [INFO] [loss_scaler.py:188:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n"
    + lines(10, 6)
    + lines(20, 6)
    + "[2023-04-18 01:00:21,554] [INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 32768, reducing to 16384\n"
    + lines(30, 7)
    + lines(40, 7)
    + "[2023-04-18 01:02:00,465] [INFO] [launch.py:460:main] Process 73582 exits successfully.\n"
)


def test_cumulative_skips_become_skips_per_row() -> None:
    assert recognise(given(LOG)) is deepspeed
    reading = read(deepspeed, LOG)
    assert reading.steps is not None
    rows = reading.steps.filter(reading.steps["lr"].is_not_null())
    assert rows["step"].to_list() == [10, 20, 30, 40]
    assert rows["skipped"].to_list() == [6, 0, 1, 0]
    assert rows["loss_scale"].to_list() == [32768, None, 16384, None]
    assert rows["step_time"].to_list() == [pytest.approx(1.0)] * 4
    assert rows["lr"].to_list() == [9.6e-06] * 4
    assert reading.steps["eval_loss"].drop_nulls().to_list() == [pytest.approx(math.log(20))]
    assert reading.exit == "clean"


def test_two_engines_are_two_runs() -> None:
    log = "".join(lines(s, 0, "9e-06") + lines(s, 0, "5e-06") for s in range(10, 100, 10))
    steps = read(deepspeed, log).steps
    assert steps is not None
    actor = steps.filter((steps["run"] == "engine 1") & steps["lr"].is_not_null())
    assert actor["lr"].to_list() == [9e-06] * 9


def test_losses_of_a_pipeline_stand_beside_the_step_lines() -> None:
    step = "[2023-04-18 01:{m:02d}:00,100] [INFO] [logging.py:96:log_dist] [Rank 0] step={s}, skipped=0, lr=[0.0003], mom=[(0.9, 0.95)]\n"
    log = "".join(
        step.format(m=m, s=10 * m)
        + f"steps: {10 * m} loss: {3 - m / 40:.4f} iter time (s): 1.250 samples/sec: 51.200\n"
        for m in range(1, 50)
    )
    reading = read(deepspeed, log)
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == [10 * m for m in range(1, 50)]
    assert reading.steps["loss"].to_list() == [pytest.approx(3 - m / 40, abs=1e-4) for m in range(1, 50)]
    assert reading.steps["step_time"].to_list() == [1.25] * 49
    assert not any("no training loss" in note for note in reading.source.notes)


STEP = "[2023-04-05 11:{m:02d}:36,058] [INFO] [logging.py:75:log_dist] [Rank 0] step={n}, skipped=2, lr=[1e-05], mom=[[0.9, 0.95]]"
PACE = (
    "[2023-04-05 11:{m:02d}:36,071] [INFO] [timer.py:198:stop] epoch=0/micro_step={n}/global_step={n}, "
    "RunningAvgSamplesPerSec=0.94, CurrSamplesPerSec=0.9075, MemAllocated=15.62GB, MaxMemAllocated=24.74GB"
)


@pytest.mark.parametrize(
    "form", ["loss:{loss}, global_step:{n}", "INFO step: {n} | loss: {loss}", "Step {n} Loss {loss}"]
)
def test_a_loss_that_the_program_prints_itself_is_read_beside(tmp_path: Path, form: str) -> None:
    lines = []
    for i in range(1, 31):
        values = {"m": i, "n": 10 * i, "loss": 3 - i / 100}
        lines += [part.format(**values) for part in (STEP, PACE, form)]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    records = load([tmp_path / "run.log"])
    steps = records.steps
    assert steps["step"].to_list() == [10 * i for i in range(1, 31)]
    assert steps["loss"].to_list() == pytest.approx([3 - i / 100 for i in range(1, 31)])
    assert steps["lr"].to_list() == [1e-5] * 30
    assert "between its deepspeed lines" in records.sources[0].notes[-1]


def test_losses_at_other_steps_than_the_engine_counts(tmp_path: Path) -> None:
    lines = []
    for i in range(1, 31):
        lines += [STEP.format(m=i, n=10 * i), f"batch {16_001 + 160 * i}, training loss = {3 - i / 100:.2f}"]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    records = load([tmp_path / "run.log"])
    assert records.steps["loss"].count() == 30
    assert "they stand at other steps" in records.sources[0].notes[-1]


def test_an_engine_without_any_loss_is_read_as_before(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("\n".join(STEP.format(m=i, n=10 * i) for i in range(1, 31)) + "\n")
    records = load([tmp_path / "run.log"])
    assert records.sources[0].format == "deepspeed"
    assert records.steps["lr"].count() == 30


OTHERS = {
    "hf-console": lambda i: f"{{'loss': {3 - i / 100:.4f}, 'grad_norm': 1.5, 'epoch': {i / 10:.2f}, 'step': {10 * i}}}",
    "torchtitan": lambda i: f"step: {10 * i}  loss: {3 - i / 100:.4f}  grad_norm: 1.5",
    "megatron": lambda i: f" iteration {10 * i:8d}/ 5000 | lm loss: {3 - i / 100:.4f} | grad norm: 1.500 |",
    "nanogpt": lambda i: f"iter {10 * i}: loss {3 - i / 100:.4f}, time 161.80ms, mfu 31.25%",
}


@pytest.mark.parametrize("form", OTHERS)
def test_the_engine_s_rate_and_skips_stand_beside_any_console(tmp_path: Path, form: str) -> None:
    overflow = "[2023-04-05 11:00:00,000] [INFO] [x.py:1:u] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8192, reducing to 4096"
    lines = []
    for i in range(1, 31):
        engine = STEP.format(m=i, n=10 * i).replace("skipped=2", f"skipped={2 + (i >= 20)}")
        lines += [*([overflow] if i == 20 else []), engine, OTHERS[form](i)]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    records = load([tmp_path / "run.log"])
    steps = records.steps.filter(records.steps["loss"].is_not_null())
    assert records.sources[0].format == form
    assert steps["step"].to_list() == [10 * i for i in range(1, 31)]
    assert steps["loss"].to_list() == pytest.approx([3 - i / 100 for i in range(1, 31)])
    assert steps["lr"].to_list() == [1e-5] * 30
    assert steps["skipped"].sum() == 3
    assert steps.filter(steps["loss_scale"].is_not_null()).select("step", "loss_scale").rows() == [(200, 4096.0)]
    assert "DeepSpeed's lines among the others" in records.sources[0].notes[-1]


def test_an_engine_that_counts_otherwise_is_said(tmp_path: Path) -> None:
    lines = []
    for i in range(1, 31):
        lines += [STEP.format(m=i, n=7 + 1000 * i), OTHERS["torchtitan"](i)]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    records = load([tmp_path / "run.log"])
    assert records.steps["step"].to_list() == [10 * i for i in range(1, 31)]
    assert "stand at other steps" in records.sources[0].notes[-1]
