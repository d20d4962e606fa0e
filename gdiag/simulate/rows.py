"""A trajectory as log rows in canonical names: what a logger would be handed, before any naming style."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from gdiag.simulate.trajectory import Trajectory

Row = dict[str, float]
"""Canonical name → value; per-layer values as `grad:<layer>`, `param:<layer>`, `update:<layer>`, `attention:<block>`."""


def rows(run: Trajectory) -> Iterator[Row]:
    """Logged rows in order of writing: each step's reduced row, then its replicas' rows, then its evaluation."""
    forces = run.forces
    first, every = forces.model.first_step, forces.setup.every
    start = 0
    stale = math.nan
    for i in range(forces.n):
        if (int(forces.step[i]) - first) % every:
            continue
        if i in forces.restarts:
            start = i
        row = _step(run, i, start)
        if "grad_norm" in row:
            if forces.stale and run.curve.skipped[i] and math.isfinite(stale):
                row["grad_norm"] = stale
            stale = row["grad_norm"]
        yield row
        if "ranks" in forces.log:
            yield from _ranks(run, i)
        start = i + 1
        due = [k for k in range(max(0, i - every + 1), i + 1) if k in run.eval_loss]
        if due and "eval" in forces.log:
            yield {
                "step": row["step"],
                **({"time": row["time"]} if "time" in row else {}),
                "eval_loss": run.eval_loss[due[-1]],
            }


def _step(run: Trajectory, i: int, start: int) -> Row:
    forces, made, log = run.forces, run.forces.model, run.forces.log
    loss = float(run.loss[start : i + 1].mean()) if forces.averaged else float(run.loss[i])
    if forces.hide_nan and math.isnan(loss):
        loss = 0.0
    row: Row = {"step": int(forces.step[i]), "loss": loss}
    tensors, times = run.tensors, run.times
    done = int(forces.step[i]) - made.first_step + 1
    if "time" in log:
        row["time"], row["step_time"] = float(times.end[i]), float(times.step[i])
    if "grad" in log:
        row["grad_norm"] = float(tensors.grad_norm[i]) * (float(run.curve.scale[i]) if forces.scaled else 1.0)
    if "lr" in log:
        row["lr"] = float(forces.rate[i]) * made.peak
    if "parts" in log:
        row |= {
            "compute_time": float(times.compute[i]),
            "comm_time": float(times.comm[i]),
            "data_time": float(times.data[i]),
        }
    if "tokens" in log:
        row |= {"tokens": done * made.batch * made.length, "samples": done * made.batch}
    if "scale" in log:
        row |= {"loss_scale": float(run.curve.scale[i]), "skipped": int(run.curve.skipped[i])}
    if "ids" in log:
        row |= dict(zip(("sample_start", "sample_end"), forces.samples(i), strict=True))
    for group, name, column in (
        ("entropy", "token_entropy", run.entropy), ("duplicates", "duplicate_share", run.duplicates), ("output", "output_logit", tensors.output), ("memory", "memory", run.memory),
        ("params", "param_norm", tensors.weight_norm), ("updates", "update_norm", tensors.update_norm),
    ):  # fmt: skip
        if group in log:
            row[name] = float(column[i])
    if done % forces.layer_every == 0 or i == 0 or not np.isfinite(tensors.grad[i]).all():
        _layers(run, i, row)
    return row


def _layers(run: Trajectory, i: int, row: Row) -> None:
    forces = run.forces
    names = [layer.name for layer in forces.model.network.layers]
    for group, prefix, table in (
        ("layers", "grad", run.tensors.grad), ("params", "param", run.tensors.weight), ("updates", "update", run.tensors.update),
    ):  # fmt: skip
        if "layers" in forces.log and group in forces.log:
            row |= {f"{prefix}:{name}": float(value) for name, value in zip(names, table[i], strict=True)}
    if "attention" in forces.log:
        for block in range(forces.model.network.blocks):
            row[f"attention:{forces.model.network.block(block)}"] = float(run.tensors.attention[i, block])


def _ranks(run: Trajectory, i: int) -> Iterator[Row]:
    log = run.forces.log
    for rank in range(run.forces.model.ranks):
        row: Row = {"step": int(run.forces.step[i]), "rank": rank, "loss": float(run.rank_loss[i, rank])}
        if "grad" in log:
            row["grad_norm"] = float(run.rank_grad[i, rank])
        if "checksum" in log:
            row["param_checksum"] = float(run.checksum[i, rank])
        if "parts" in log:
            mine = float(run.times.rank_compute[i, rank])
            row |= {"compute_time": mine, "comm_time": float(run.times.comm[i]) + float(run.times.compute[i]) - mine}
        yield row
