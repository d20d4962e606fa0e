"""How fast consoles and trackers' files are read.

Consoles are held against a baseline over the same file: Megatron lines against polars' own split, others against a loop of
Python regular expressions. Baseline and reader take turns in one process. Event files and binary wandb files are given in
scalars per second of processor time. On a shared machine processor time says more than the clock, and the best round more than
the mean. Run from the repository:

    python -m benchmarks.read_consoles [MB] [ROUNDS] [NAME...]
"""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import polars as pl

from gdiag.ingesters import (
    llmc,
    maxtext,
    megatron,
    modded_nanogpt,
    nanogpt,
    openmmlab,
    step_bars,
    tfevents,
    torchtitan,
    verl,
    wandb_binary,
)  # fmt: skip
from gdiag.ingesters.files import from_bytes, open_file
from gdiag.ingesters.reading import Options
from tests.ingesters import encoders

MEGATRON_LABELS = (
    "consumed samples:", "elapsed time per iteration (ms):", "learning rate:", "global batch size:", "lm loss:", "loss scale:",
    "grad norm:", "num zeros:", "number of skipped iterations:", "number of nan iterations:", "samples per second:",
)  # fmt: skip
N = r"\s*([-+\w.,]+)"
LINES: dict[str, tuple[ModuleType, Callable[[int], str], str]] = {
    "torchtitan": (
        torchtitan,
        lambda s: (
            f"[rank0]:[titan] 2025-03-02 10:{s // 60 % 60:02d}:{s % 60:02d},123 - root - INFO - step: {s:2}  loss: {3 + s % 97 / 97:7.4f}  "
            f"grad_norm: {s % 89 / 89:7.4f}  memory:  9.46GiB({9.9 + s % 3:.2f}%)  tps: {7000 + s % 9:,}  tflops: 12.30  mfu: 1.25%"
        ),
        rf"(\d{{4}}-\d\d-\d\d \S+) .*step:{N}\s+loss:{N}\s+grad_norm:{N}\s+memory:{N}GiB\(([\d.]+)%\)\s+tps:{N}\s+tflops:{N}\s+mfu:{N}%",
    ),
    "modded-nanogpt": (
        modded_nanogpt,
        lambda s: f"step:{s}/900000 train_loss:{3 + s % 97 / 97:.4f} train_time:{160 * s}ms step_avg:160.{s % 99:02d}ms",
        rf"step:(\d+)/(\d+) train_loss:{N} train_time:([\d.]+)ms step_avg:([\d.]+)ms",
    ),
    "llm.c": (llmc, lambda s: f"s:{s} trl:{3 + s % 97 / 97:.4f} lr:0.000300 norm:{s % 89 / 89:.2f}", rf"s:(\d+) trl:{N} lr:{N} norm:{N}"),
    "nanogpt": (
        nanogpt,
        lambda s: f"iter {s}: loss {3 + s % 97 / 97:.4f}, time {160 + s % 5}.10ms, mfu 31.25%",
        rf"iter (\d+): loss{N}, time ([\d.]+)ms, mfu{N}%",
    ),
    "build-nanogpt": (
        step_bars,
        lambda s: (
            f"step {s:5d} | loss: {3 + s % 97 / 97:.6f} | lr 6.0000e-04 | norm: {s % 89 / 89:.4f} | dt: {260 + s % 5}.31ms | "
            "tok/sec: 2012345.67"
        ),
        rf"step\s+(\d+) \| loss:{N} \| lr{N} \| norm:{N} \| dt: ([\d.]+)ms \| tok/sec:{N}",
    ),
    "maxtext": (
        maxtext,
        lambda s: (
            f"completed step: {s}, seconds: {10.2 + s % 3:.3f}, TFLOP/s/device: 123.456, Tokens/s/device: 1234.567, "
            f"total_weights: 65536, loss: {3 + s % 97 / 97:.3f}"
        ),
        rf"completed step: (\d+), seconds:{N}, TFLOP/s/device:{N}, Tokens/s/device:{N}, total_weights:{N}, loss:{N}",
    ),
    "verl": (
        verl,
        lambda s: "(TaskRunner pid=4711) " + f"step:{s} - " + " - ".join(f"actor/metric_{i}:{(s * i) % 97 / 97:.3f}" for i in range(12)),
        r"step:(\d+) - " + " - ".join(rf"actor/metric_{i}:{N}" for i in range(12)),
    ),
    "mmengine": (
        openmmlab,
        lambda s: (
            f"2023/03/22 09:{s // 60 % 60:02d}:{s % 60:02d} - mmengine - INFO - Epoch(train)  [1][{s:5d}/900000]  lr: 2.0000e-03  "
            f"eta: 1 day, 2:{s % 60:02d}:04  time: 0.5123  data_time: 0.0123  memory: 5320  grad_norm: {s % 89 / 89:.4f}  loss: {3 + s % 97 / 97:.4f}"
        ),
        rf"(\d{{4}}/\d\d/\d\d \S+) .*Epoch\(train\)\s+\[(\d+)\]\[\s*(\d+)/(\d+)\]\s+lr:{N}\s+eta: .*?\s+time:{N}\s+data_time:{N}\s+"
        rf"memory:{N}\s+grad_norm:{N}\s+loss:{N}",
    ),
}  # fmt: skip


def megatron_line(s: int) -> str:
    """A line of twelve fields."""
    return (
        f" iteration {s:8d}/  900000 | consumed samples: {s * 256:12d} | elapsed time per iteration (ms): {1500.0 + s % 7:.1f} | "
        f"learning rate: 1.500E-04 | global batch size:   256 | lm loss: {3 + s % 97 / 97:.6E} | loss scale: 65536.0 | "
        f"grad norm: {s % 89 / 89:.3f} | num zeros: 0.0 | number of skipped iterations:   0 | number of nan iterations:   0 | "
        f"samples per second: 53.{s % 99:02d} |"
    )


def uneven_line(s: int) -> str:
    """The same with a gradient norm and times of various lengths."""
    line = megatron_line(s).replace(f"grad norm: {s % 89 / 89:.3f}", f"grad norm: {s * 7919 % 12000 / 89:.3f}")
    return line.replace(f"(ms): {1500.0 + s % 7:.1f}", f"(ms): {800.0 + s * 104729 % 900:.1f}")


def mixed_line(s: int) -> str:
    """The same behind a clock, among timers, checkpoints and evaluations; the baseline leaves the evaluations unread."""
    lines = [f" [2024-01-02 10:{s // 60 % 60:02d}:{s % 60:02d}]" + megatron_line(s)]
    if s % 10 == 0:
        lines += [f"    forward-backward: ({1000 + s % 7}.{i}, 1200.33)" for i in range(3)]
    if s % 100 == 0:
        lines += [
            "-" * 60,
            f" validation loss at iteration {s} | lm loss value: {3 + s % 97 / 97:.6E} | lm loss PPL: 1.2E+01 |",
        ]
    if s % 500 == 0:
        lines += [f"saving checkpoint at iteration {s:8d} to /ckpt in torch_dist format"]
    return "\n".join(lines)


MEGATRON = {"megatron": megatron_line, "megatron, uneven": uneven_line, "megatron, mixed": mixed_line}


def split_baseline(path: Path) -> pl.DataFrame:
    """scan_lines, literal filter, splitn, strip label, cast: the fastest that polars alone does it."""
    lines = pl.scan_lines(path, name="text").filter(pl.col("text").str.contains("iteration", literal=True))
    parts = lines.select(pl.col("text").str.splitn(" | ", len(MEGATRON_LABELS) + 1)).unnest("text")
    numbers = [
        pl.col(f"field_{i}")
        .str.strip_prefix(label)
        .str.strip_suffix(" |")
        .str.strip_chars()
        .cast(pl.Float64, strict=False)
        .alias(label)
        for i, label in enumerate(MEGATRON_LABELS, 1)
    ]
    step = (
        pl.col("field_0")
        .str.split("iteration")
        .list.last()
        .str.splitn("/", 2)
        .struct.field("field_0")
        .str.strip_chars()
    )
    return parts.select(step.cast(pl.Int64, strict=False).alias("step"), *numbers).collect()


def regex_baseline(path: Path, pattern: str) -> list[list[float | str]]:
    """One compiled pattern, line by line, its groups as floats where they are numbers."""
    search = re.compile(pattern).search
    with path.open(encoding="utf-8") as file:
        return [[_value(group) for group in found.groups()] for line in file if (found := search(line)) is not None]


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of one call: on the clock and of the processors."""
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - cpu


def compare(name: str, path: Path, module: ModuleType, baseline: Callable[[], object], rounds: int) -> None:
    """Print the median ratio of the clock times and the ratio of the best processor times."""

    def read() -> object:
        return module.read(open_file(path), Options())

    pairs = [(timed(baseline), timed(read)) for _ in range(rounds)]
    size = path.stat().st_size / 1e6
    wall = statistics.median(mine[0] / base[0] for base, mine in pairs)
    base, mine = (min(pair[i][1] for pair in pairs) for i in (0, 1))
    sys.stdout.write(
        f"{name:16} {size:6.1f} MB  baseline {size / base:6.0f} MB/s  gdiag {size / mine:6.0f} MB/s  "
        f"time x{wall:.2f}  processor time x{mine / base:.2f}\n"
    )


def rate(name: str, module: ModuleType, content: bytes, scalars: int, rounds: int) -> None:
    """Print scalars per second of processor time."""
    best = min(timed(lambda: module.read(from_bytes(name, content), Options()))[1] for _ in range(rounds))
    sys.stdout.write(f"{name:16} {len(content) / 1e6:6.1f} MB  {scalars / best:10,.0f} scalars/s\n")


def tensorboard(steps: int, tags: list[str]) -> bytes:
    """An event file of one value per step and tag."""
    return encoders.tf_events((1.7e9 + s / 2, s, tag, 3 + s % 97 / 97) for s in range(steps) for tag in tags)


def wandb(steps: int) -> bytes:
    """A binary wandb file of seven values a step."""
    rows = (
        {"train/loss": 3 + s % 97 / 97, "train/grad_norm": s % 89 / 89, "train/lr": 1e-4, "train/global_step": s, "_step": s,
         "_runtime": s / 2, "_timestamp": 1.7e9 + s / 2}
        for s in range(steps)
    )  # fmt: skip
    return encoders.wandb_file([encoders.run_record("run", {}), *map(encoders.history, rows), encoders.exit_record(0)])


def main() -> None:
    """Measure every format, or those named."""
    size = float(sys.argv[1]) if len(sys.argv) > 1 else 40.0
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    wanted = sys.argv[3:] or [*MEGATRON, *LINES, "tfevents", "wandb"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "console.log"
        for name, line in MEGATRON.items():
            if name in wanted:
                path.write_text("".join(line(i) + "\n" for i in range(int(size * 1e6 / len(line(1))))))
                compare(name, path, megatron, lambda: split_baseline(path), rounds)
        for name, (module, line, pattern) in LINES.items():
            if name in wanted:
                path.write_text("".join(line(i) + "\n" for i in range(int(size * 5e5 / len(line(1))))))
                compare(name, path, module, lambda p=pattern: regex_baseline(path, p), rounds)  # type: ignore[misc]
    if "tfevents" in wanted:
        steps = int(size * 2000)
        rate("tfevents", tfevents, tensorboard(steps, ["train/loss", "train/grad_norm", "lr"]), 3 * steps, rounds)
        layers = [f"grad_norm/layers.{i}.attention.{part}.weight" for i in range(48) for part in "qkvo"]
        rate("tfevents, layers", tfevents, tensorboard(steps // 50, layers), steps // 50 * len(layers), rounds)
    if "wandb" in wanted:
        steps = int(size * 2000)
        rate("wandb", wandb_binary, wandb(steps), 7 * steps, rounds)


if __name__ == "__main__":
    main()
