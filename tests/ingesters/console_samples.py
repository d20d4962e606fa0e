"""Look-alikes of consoles: lines of each format with the loss that every step line should give."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from types import ModuleType

from gdiag.ingesters import llmc, maxtext, megatron, modded_nanogpt, step_bars, torchtitan, verl
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
}
"""Format → its module and a line of it."""
