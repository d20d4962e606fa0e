"""Consoles that begin their lines with a bare step, and forms of unknown programs that are easily misread."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import leading_steps, recognise
from gdiag.ingesters.reading import Options
from tests.ingesters.console_samples import given, losses, read

VALUES = losses(40)
STEPS = list(range(100, 4100, 100))


@pytest.mark.parametrize(
    "form",
    [
        "{s} | loss {v} | lr 1e-4 | norm 1.5 | dt 120.5ms",
        "{s} loss={v} lr=1e-4 grad_norm=1.25",
        "{s}: loss {v}, acc 0.5",
        "2024-01-01 10:00:00,123 INFO {s} | loss {v} | lr 1e-4",
        "{s}/4000  loss: {v}  lr: 0.001",
        "[{s} | 12.50] loss={v} avg=2.50",
    ],
)
def test_a_bare_step_is_the_step(form: str) -> None:
    log = "loading 3 shards\n" + "".join(form.format(s=s, v=v) + "\n" for s, v in zip(STEPS, VALUES, strict=True))
    assert recognise(given(log)) is leading_steps
    steps = read(leading_steps, log).steps
    assert steps is not None
    assert steps["step"].to_list() == STEPS
    assert steps["loss"].to_list() == pytest.approx(VALUES)


@pytest.mark.parametrize(
    "text",
    [
        "1. lower the lr 0.1\n2. raise the batch size 64\n3. wait 5 minutes\n4. done\n",
        "".join(f"{k % 4}: loss 2.5\n" for k in range(40)),
        "".join(f"{k} apples cost {k + 1}\n" for k in range(40)),
    ],
)
def test_a_number_that_is_no_step_is_none(text: str) -> None:
    assert leading_steps.recognise(given(text)) == 0.0


def test_without_a_known_metric_nothing_is_read() -> None:
    with pytest.raises(InputError, match="no repeating line"):
        read(leading_steps, "1 apple costs 3\n2 apples cost 5\n3 apples cost 6\n")


ODD: dict[str, Callable[[int, int, float], str]] = {
    "dit": lambda i, s, v: f"[2023-01-01 10:00:{i:02d}] (step={s:07d}) Train Loss: {v:.4f}, Train Steps/Sec: 2.1{i % 9}",
    "openclip": lambda i, s, v: (
        f"2023-01-01,10:00:{i:02d} | INFO | Train Epoch: 0 [{s:>8}/9000 ({s / 90:.0f}%)] Data (t): 0.012 Batch (t): 0.3{i:02d}, "
        f"1234.5/s, 1234.5/s/gpu LR: 0.000500 Logit Scale: 14.286 Loss: {v:.4f} ({v + 1:.4f})"
    ),
    "paddlenlp": lambda i, s, v: (
        f"[2024-01-01 10:00:{i:02d},123] [    INFO] - loss: {v}, learning_rate: 1e-05, global_step: {s}, interval_runtime: 10.1234"
    ),
    "mindspore": lambda i, _, v: f"epoch: {1 + i // 20} step: {1 + i % 20}, loss is {v}",
    "t5x": lambda i, s, v: (
        f"I0101 10:00:{i:02d}.123456 140123 metrics.py:123] [{s}] timing/seconds=10.1234567, train/loss={v}, train/learning_rate=0.001"
    ),
    "easylm": lambda _, s, v: f"{{'accuracy': 0.5, 'learning_rate': 0.0001, 'loss': {v}, 'step': {s}}}",
    "diffusers": lambda i, s, v: f"Steps: {s // 90:3d}%|██        | {s}/9000 [00:{i:02d}<01:30, 10.1it/s, lr=1e-4, step_loss={v}]",
    "lightning": lambda i, s, v: (
        f"Epoch 0: {s // 90:3d}%|███   | {s}/9000 [00:{i:02d}<01:00, 10.1it/s, loss={v + 0.5:.3f}, v_num=3, train_loss_step={v}]"
    ),
    "timm": lambda _, s, v: (
        f"Train: 0 [{s:>4}/9000 ({s / 90:>3.0f}%)]  Loss: {v:.4f} ({v + 0.1:.4f})  Time: 0.211s, 1234.12/s  (0.250s, 1200.22/s)  "
        "LR: 1.000e-03  Data: 0.010 (0.012)"
    ),
    "swin": lambda i, s, v: (
        f"[2024-01-01 10:00:{i:02d} swin] (main.py 196): INFO Train: [0/300][{s}/9000]\teta 0:1{i % 9}:23 lr 0.0001\t wd 0.0500\t"
        f"time 0.2121 (0.2500)\tloss {v:.4f} ({v + 0.1:.4f})\tgrad_norm 1.5000 (1.6000)\tmem 12345MB"
    ),
    "dinov2": lambda i, s, v: (
        f"I20240101 10:00:{i:02d} 12345 dinov2 helpers.py:102] Training  [{s}/9000]  eta: 1 day, 2:00:{i:02d}  lr: 0.0004 (0.0003)  "
        f"total_loss: {v:.4f} ({v + 0.2:.4f})  time: 0.512  data: 0.0123"
    ),
    "wenet": lambda i, s, v: (
        f"2024-01-01 10:00:{i:02d},123 DEBUG TRAIN | steps/sec 2.1| Batch 0/{s} loss {v:.6f} th_accuracy 0.5 loss_ctc {v * 2:.4f} "
        "lr 1.0e-04 rank 0"
    ),
    "icefall": lambda i, s, v: (
        f"2024-01-01 10:00:{i:02d},123 INFO [train.py:903] (0/4) Epoch 1, batch {s}, loss[loss={v:.4f}, simple_loss=0.7, over 5000.00 "
        f"frames. ], tot_loss[loss={v + 0.3:.4f}, simple_loss=0.7, over 100000.00 frames. ], batch size: 20, lr: 2.9e-02"
    ),
    "tf-estimator": lambda _, s, v: f"INFO:tensorflow:loss = {v}, step = {s} (3.123 sec)",
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_forms_that_are_easily_misread(name: str) -> None:
    log = "".join(ODD[name](i, s, v) + "\n" for i, (s, v) in enumerate(zip(STEPS, VALUES, strict=True)))
    format_ = recognise(given(log))
    assert format_ is not None
    steps = format_.read(given(log), Options()).steps
    assert steps is not None
    assert steps["step"].to_list() == (list(range(1, 41)) if name == "mindspore" else STEPS)
    assert steps["loss"].to_list() == pytest.approx(VALUES, abs=1e-4)
