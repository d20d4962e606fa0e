"""Console logs of Megatron-LM, torchtitan and nanoGPT."""

from __future__ import annotations

from datetime import UTC, datetime

from gdiag.simulate.rows import Row
from gdiag.simulate.trajectory import Trajectory


def megatron(run: Trajectory, found: list[Row]) -> str:
    """Megatron-LM's training log lines, with a line per evaluation."""
    made, total = run.forces.model, run.forces.setup.steps
    lines = [f"using world size: {made.ranks}, data-parallel size: {made.ranks}, tensor-model-parallel size: 1"]
    for row in found:
        step = int(row["step"])
        if "eval_loss" in row:
            lines.append(
                f" validation loss at iteration {step} | lm loss value: {row['eval_loss']:.6E} | lm loss PPL: 1.0E+01 | "
            )
            continue
        if "rank" in row:
            continue
        cells = [
            f" iteration {step:8d}/{total:8d}",
            f" consumed samples: {(step - made.first_step + 1) * made.batch:12d}",
            f" elapsed time per iteration (ms): {1000 * row.get('step_time', made.step_time):.1f}",
        ]
        cells += [f" learning rate: {row['lr']:.6E}"] if "lr" in row else []
        cells += [
            f" global batch size: {made.batch:5d}",
            f" lm loss: {row['loss']:.6E}",
            f" loss scale: {row.get('loss_scale', 1.0):.1f}",
        ]
        cells += [f" grad norm: {row['grad_norm']:.3f}"] if "grad_norm" in row else []
        cells += [
            f" number of skipped iterations: {int(row.get('skipped', 0)):3d}",
            " number of nan iterations:   0",
            "",
        ]
        stamp = datetime.fromtimestamp(row.get("time", made.clock), UTC).strftime("%Y-%m-%d %H:%M:%S")
        lines.append(f" [{stamp}]" + " |".join(cells))
    return "\n".join(lines) + "\n"


def torchtitan(run: Trajectory, found: list[Row]) -> str:
    """torchtitan's metric lines."""
    lines = []
    for row in found:
        if "loss" in row and "rank" not in row:
            norm = f"grad_norm: {row['grad_norm']:7.4f}  " if "grad_norm" in row else ""
            made = run.forces.model
            rate = int(made.length / row.get("step_time", made.step_time))
            now = row.get("time", made.clock + made.step_time * row["step"])
            stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
            lines.append(
                f"[rank0]:[titan] {stamp} - root - INFO - step: {int(row['step']):2d}  loss: {row['loss']:8.5f}  {norm}"
                f"memory: 61.20GiB(77.30%)  tps: {rate:,}  tflops: 310.11  mfu: 31.36%"
            )
    return "\n".join(lines) + "\n"


def nanogpt(run: Trajectory, found: list[Row]) -> str:
    """nanoGPT's iteration lines."""
    lines = ["tokens per iteration will be: 491,520", "number of parameters: 123.59M"]
    for row in found:
        if "eval_loss" in row:
            lines.append(
                f"step {int(row['step'])}: train loss {row['eval_loss'] * 0.99:.4f}, val loss {row['eval_loss']:.4f}"
            )
        elif "rank" not in row:
            lines.append(
                f"iter {int(row['step'])}: loss {row['loss']:.4f}, time {1000 * row.get('step_time', run.forces.model.step_time):.2f}ms, mfu 38.02%"
            )
    return "\n".join(lines) + "\n"
