"""Look-alikes of consoles: lines of each format with the loss that every step line should give."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from types import ModuleType

from gdiag.ingesters import (
    blocks,
    console_generic,
    dllogger,
    espnet,
    fairseq,
    hf_console,
    leading_steps,
    litgpt,
    llmc,
    maxtext,
    megatron,
    mllog,
    modded_nanogpt,
    nanogpt,
    openai_logger,
    openmmlab,
    progress_bars,
    step_bars,
    step_pairs,
    torchtitan,
    verl,
)
from gdiag.ingesters.files import from_bytes
from gdiag.ingesters.reading import Input, Options, Reading

Line = Callable[[int, float], str]


def given(text: str | bytes) -> Input:
    """An input in memory."""
    return from_bytes("console.log", text.encode() if isinstance(text, str) else text)


def read(module: ModuleType, text: str | bytes) -> Reading:
    """What a format module makes of the text."""
    reading = module.read(given(text), Options())
    assert isinstance(reading, Reading)
    return reading


def losses(count: int, seed: int = 0) -> list[float]:
    """A falling loss with noise, rounded as consoles print it."""
    rng = random.Random(seed)
    return [round(2.0 + 5.0 * math.exp(-i / 30) + rng.gauss(0, 0.02), 4) for i in range(count)]


def megatron_line(step: int, loss: float) -> str:
    """Megatron-DeepSpeed's line."""
    return (
        f" iteration {step:8d}/    5000 | consumed samples: {step * 256:12d} | elapsed time per iteration (ms): "
        f"{1500.0 + step % 7:.1f} | learning rate: 1.500E-04 | global batch size:   256 | lm loss: {loss:.6E} | "
        f"loss scale: 65536.0 | grad norm: {loss / 3:.3f} | number of skipped iterations:   0 | "
        "number of nan iterations:   0 |"
    )


def torchtitan_line(step: int, loss: float) -> str:
    """torchtitan's line with its colours."""
    return (
        f"[rank0]:[titan] 2025-03-02 10:{step // 60 % 60:02d}:{step % 60:02d},123 - root - INFO - \x1b[31mstep: {step:2}  "
        f"\x1b[32mloss: {loss:7.4f}  \x1b[38;2;180;60;0mgrad_norm: {loss / 3:7.4f}  \x1b[33mmemory:  9.46GiB({9.9 + step % 3:.2f}%)  "
        f"\x1b[34mtps: {7000 + step % 9:,}  \x1b[36mtflops: 12.30  \x1b[35mmfu: 1.25%\x1b[39m"
    )


FORMATS: dict[str, tuple[ModuleType, Line]] = {
    "megatron": (megatron, megatron_line),
    "torchtitan": (torchtitan, torchtitan_line),
    "modded-nanogpt": (
        modded_nanogpt,
        lambda s, v: (
            f"step:{s}/5000 train_loss:{v:.4f} train_time:{160 * s}ms step_avg:{'nan' if s < 11 else '160.10'}ms"
        ),
    ),
    "llm.c": (llmc, lambda s, v: f"s:{s} trl:{v:.4f} lr:0.000300 norm:{v / 3:.2f}"),
    "build-nanogpt": (
        step_bars,
        lambda s, v: (
            f"step {s:5d} | loss: {v:.6f} | lr 6.0000e-04 | norm: {v / 3:.4f} | dt: {260 + s % 5}.31ms | tok/sec: 2012345.67"
        ),
    ),
    "nanochat": (
        step_bars,
        lambda s, v: (
            f"step {s:05d}/05000 ({s / 50:.2f}%) | loss: {v:.6f} | lrm: 1.00 | dt: {160 + s % 5}.21ms | tok/sec: 1,234,567 | "
            f"bf16_mfu: 32.10 | total time: {s / 60:.2f}m"
        ),
    ),
    "maxtext": (
        maxtext,
        lambda s, v: (
            f"I0811 21:54:55.123456 139 train.py:300] completed step: {s}, seconds: {10.2 + s % 3:.3f}, TFLOP/s/device: 123.456, "
            f"Tokens/s/device: 1234.567, total_weights: 65536, loss: {v:.3f}"
        ),
    ),
    "verl": (
        verl,
        lambda s, v: (
            f"(TaskRunner pid=4711) step:{s} - actor/entropy:0.5 - actor/pg_loss:{v:.3f} - actor/grad_norm:{v / 3:.3f} - "
            f"timing_s/step:{20.1 + s % 2:.3f}"
        ),
    ),
    "nanogpt": (
        nanogpt,
        lambda s, v: f"iter {s}: loss {v:.4f}, time {160 + s % 5}.10ms, mfu {-100 if s < 6 else 31.25:.2f}%",
    ),
    "litgpt": (
        litgpt,
        lambda s, v: (
            f"Epoch 1 | iter {4 * s} step {s} | loss train: {v:.3f}, val: n/a | iter time: {12 + s % 3}.30 ms (step) "
            f"remaining time: 1:0{s % 6}:03"
        ),
    ),
    "fairseq": (
        fairseq,
        lambda s, v: (
            f"2020-01-01 10:00:{s % 60:02d} | INFO | train_inner | epoch 001:  {s:5d} / 5000 loss={v:.3f}, ppl=8.7, wps=1234.5, "
            f"num_updates={s}, lr=0.0001, gnorm={v / 3:.3f}, train_wall=20, wall={200 + s}"
        ),
    ),
    "metaseq": (
        fairseq,
        lambda s, v: (
            f'2022-01-01 10:00:{s % 60:02d} | INFO | metaseq.train | train_inner | {{"epoch": 1, "loss": "{v:.3f}", '
            f'"num_updates": "{s}", "lr": "1e-05", "gnorm": "{v / 3:.3f}"}}'
        ),
    ),
    "mmengine": (
        openmmlab,
        lambda s, v: (
            f"2023/03/22 09:{s // 60 % 60:02d}:{s % 60:02d} - mmengine - INFO - Epoch(train)  [1][{s:5d}/5000]  lr: 2.0000e-03  "
            f"eta: 1 day, 2:{s % 60:02d}:04  time: 0.5123  data_time: 0.0123  memory: 5320  grad_norm: {v / 3:.4f}  loss: {v:.4f}"
        ),
    ),
    "detectron2": (
        openmmlab,
        lambda s, v: (
            f"[01/01 10:00:00 d2.utils.events]:  eta: 0:12:{s % 60:02d}  iter: {s}  total_loss: {v:.4f}  loss_cls: 0.5  "
            "time: 0.2345  data_time: 0.0123  lr: 0.00039962  max_mem: 2345M"
        ),
    ),
    "espnet": (
        espnet,
        lambda s, v: (
            f"[host:0/4] 2024-01-01 10:00:{s % 60:02d},123 (trainer:762) INFO: 1epoch:train:{s}-{s}batch: iter_time=1.2e-04, "
            f"forward_time=0.107, loss_ctc={v / 2:.3f}, acc=0.5, loss={v:.4f}, backward_time=0.2, grad_norm={v / 3:.3f}, clip=100.000, "
            "loss_scale=1.000, optim_step_time=0.05, optim0_lr0=1.500e-04, train_time=1.497"
        ),
    ),
    "generic": (
        console_generic,
        lambda s, v: f"2026-01-01 10:00:{s % 60:02d} trainer: update={s}; loss={v:.4f}; grad={v / 3:.4f}; speed=12.5",
    ),
    "pith-train": (
        step_bars,
        lambda s, v: f"step {s:08d}/00005000 | step-time {73 + s % 3}.3 sec | loss {v:.4f} | gradient-norm {v / 3:.4f}",
    ),
}
"""Format → its module and a line of it; any prefix may stand before the line, any other line between two."""

WHOLE: dict[str, tuple[ModuleType, Line]] = {
    "olmo": (
        blocks,
        lambda s, v: (
            f"2024-01-01 10:00:{s % 60:02d}.123 host:0 olmo.train:816 INFO [step={s}/5000,epoch=0]\n    optim/total_grad_norm={v / 3:.4f}\n"
            f"    train/CrossEntropyLoss={v:.4f}\n    throughput/total_tokens={46000 + s:,}\n    System/Peak GPU Memory (MB)=32,111"
        ),
    ),
    "composer": (
        blocks,
        lambda s, v: (
            f"[batch={s}/5000]:\n\t Train time/batch: {s - 1}\n\t Train loss/train/total: {v:.4f}\n\t Train time/epoch: 0"
        ),
    ),
    "hf": (
        hf_console,
        lambda s, v: (
            f"\x1b[A 1%|#    | {s}/5000 [00:{s % 60:02d}<01:00,  1.0it/s]\r"
            f"{{'loss': '{v:.4f}', 'grad_norm': '{v / 3:.4f}', 'learning_rate': '5e-05', 'epoch': '{s / 100:.2f}'}}"
        ),
    ),
    "openai": (
        openai_logger,
        lambda s, v: (
            f"{'-' * 24}\n| grad_norm | {v / 3:<8.3g} |\n| loss      | {v:<8.5g} |\n| step      | {s:<8.3g} |\n{'-' * 24}"
        ),
    ),
    "mllog": (
        mllog,
        lambda s, v: (
            f'  0: :::MLLOG {{"namespace": "", "time_ms": {1745735685698 + s * 1000}, "event_type": "POINT_IN_TIME", "key": "tracked_stats", '
            f'"value": {{"train_step_time": 8.5, "reduced_train_loss": {"NaN" if v != v else "Infinity" if v > 1e9 else v}}}, "metadata": {{"step": {s}}}}}'
        ),
    ),
    "dllogger": (
        dllogger,
        lambda s, v: (
            f'0: DLLL {{"timestamp": "{1.7e9 + s}", "elapsedtime": "{s}.5", "type": "LOG", "step": [{(s - 1) // 50}, {(s - 1) % 50 + 1}], '
            f'"data": {{"step_loss": {"NaN" if v != v else "Infinity" if v > 1e9 else v}, "learning_rate": 0.001}}}}'
        ),
    ),
    "tqdm": (
        progress_bars,
        lambda s, v: (
            f"Steps: {s // 50:3d}%|{'█' * (s // 500):<10}| {s}/5000 [{s // 60:02d}:{s % 60:02d}<59:59,  1.24it/s, loss={v:.4f}, lr=1e-6]"
        ),
    ),
    "keras-batches": (
        progress_bars,
        lambda s, v: (
            f"{s:4d}/5000 [{'=' * (s // 200)}>{'.' * (29 - s // 200)}] - ETA: 8:10 - loss: {v:.4f} - accuracy: 0.5859"
        ),
    ),
    "leading": (leading_steps, lambda s, v: f"{s} | loss {v:.4f} | lr 1.5e-04 | norm {v / 3:.4f} | dt 120.5ms"),
    "pairs": (step_pairs, lambda s, v: f"{s} {v}"),
    "build-nanogpt-log": (step_pairs, lambda s, v: f"{s} train {v:.6f}"),
}
"""As FORMATS, of formats whose lines must stand as they are."""
