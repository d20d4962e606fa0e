"""JSON Lines, CSV and JSON writers of the naming styles."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Literal

from gdiag.simulate.rows import Row
from gdiag.simulate.trajectory import Trajectory

NanText = Literal["bare", "text"]
Extra = Callable[[Trajectory, Row, int], float]
_EXACT = {"step", "rank", "sample_start", "sample_end", "tokens", "samples", "skipped"}


def number(name: str, value: float) -> float | int:
    """The value as a logger rounds it: six digits, counts and clocks exactly."""
    name = name.partition("/")[2] or name
    if name in _EXACT:
        return int(value)
    if name == "time":
        return round(value, 4)
    if name == "param_checksum":
        return float(f"{value:.13g}")
    return float(f"{value:.6g}")


def wide_ranks(found: list[Row]) -> list[Row]:
    """Replicas as columns of their step's row instead of rows of their own: rank3/loss."""
    out: list[Row] = []
    for row in found:
        if "rank" not in row:
            out.append(dict(row))
        else:
            rank = int(row["rank"])
            out[-1] |= {f"rank{rank}/{name}": value for name, value in row.items() if name not in ("step", "rank")}
    return out


def _label(name: str, names: dict[str, str], layers: dict[str, str]) -> str | None:
    rank, slash, base = name.partition("/")
    if slash and rank.startswith("rank"):
        return f"{rank}/{names[base]}" if base in names else None
    quantity, colon, layer = name.partition(":")
    return layers[quantity].format(layer) if colon else names.get(name)


def jsonl(
    run: Trajectory,
    found: list[Row],
    names: dict[str, str],
    layers: dict[str, str],
    nan: NanText,
    extra: dict[str, Extra],
) -> str:
    """One object per row; NaN and infinities bare, as Python writes them, or as text."""
    lines = []
    for index, row in enumerate(found):
        record: dict[str, Any] = {}
        for name, make in extra.items():
            if name.startswith("_"):
                record[name] = make(run, row, index)
        for name, value in row.items():
            label = _label(name, names, layers)
            if label is not None:
                record[label] = number(name, value) if math.isfinite(value) else _odd(value, nan)
        record |= {
            name: make(run, row, index)
            for name, make in extra.items()
            if not name.startswith("_") and "loss" in row and "rank" not in row
        }
        lines.append(json.dumps(record))
    return "\n".join(lines) + "\n"


def _odd(value: float, nan: NanText) -> float | str:
    if nan == "bare":
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def csv(found: list[Row], names: dict[str, str], layers: dict[str, str], newline: str = "\n") -> str:
    """Dense columns; a cell that was not logged is empty, NaN is `nan`."""
    columns = list(dict.fromkeys(name for row in found for name in row if _label(name, names, layers) is not None))
    lines = [",".join(str(_label(name, names, layers)) for name in columns)]
    lines += [
        ",".join(
            str(number(name, row[name]) if math.isfinite(row[name]) else row[name]) if name in row else ""
            for name in columns
        )
        for row in found
    ]
    return newline.join(lines) + newline


def lightning(run: Trajectory, found: list[Row]) -> str:
    """Sparse rows: the learning rate is logged on its own row before each step's, evaluations on theirs."""
    names = {
        "step": "step",
        "epoch": "epoch",
        "loss": "train_loss",
        "lr": "lr-AdamW",
        "grad_norm": "grad_2.0_norm_total",
        "step_time": "step_time",
        "eval_loss": "val_loss",
    }
    split: list[Row] = []
    for row in found:
        if "lr" in row:
            split.append({"step": row["step"], "lr": row["lr"]})
        split.append(
            {
                "epoch": float(int(row["step"]) * 4 // max(1, run.forces.setup.steps)),
                **{k: v for k, v in row.items() if k not in ("lr", "time")},
            }
        )
    return csv(split, names, {"grad": "grad_2.0_norm/{}"}, "\r\n")


def trainer_state(run: Trajectory, found: list[Row], names: dict[str, str]) -> str:
    """HF Trainer's trainer_state.json."""
    history = []
    for index, row in enumerate(found):
        entry: dict[str, Any] = {
            names[name]: number(name, value) if math.isfinite(value) else value
            for name, value in row.items()
            if name in names
        }
        history.append({"epoch": epoch(run, row, index), **entry})
    state = {"best_metric": None, "epoch": 4.0, "eval_steps": 500, "global_step": int(found[-1]["step"]), "is_hyper_param_search": False,
             "log_history": history, "logging_steps": run.forces.setup.every, "max_steps": run.forces.setup.steps}  # fmt: skip
    return json.dumps(state, indent=1) + "\n"


def epoch(run: Trajectory, row: Row, _index: int) -> float:
    """Share of four epochs done."""
    return round(4.0 * row["step"] / run.forces.setup.steps, 4)


def counter(_run: Trajectory, _row: Row, index: int) -> float:
    """W&B's row counter."""
    return index


def runtime(run: Trajectory, row: Row, _index: int) -> float:
    """Seconds since the run began; a run whose clock is not logged is taken to keep its pace."""
    made = run.forces.model
    return round(row.get("time", made.clock + made.step_time * row["step"]) - made.clock, 3)


def rate(run: Trajectory, row: Row, _index: int) -> float:
    """Batches per second."""
    return float(f"{1.0 / row.get('step_time', run.forces.model.step_time):.6g}")
