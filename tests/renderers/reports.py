"""A report made by hand in which every noun occurs, with the values that are hard to show."""

from __future__ import annotations

import math
from typing import Final

from gdiag.model import (
    Cause,
    Column,
    Cost,
    DataWindow,
    Finding,
    Incident,
    Location,
    Measure,
    Report,
    Run,
    Segment,
    Series,
    Severity,
    Skip,
    Source,
    Table,
)

_X: Final = tuple(float(step) for step in range(240, 300))

SPIKE: Final = Report(
    runs=(
        Run(
            "run", "pretrain", (0,), {"lr": 3e-4, "clip": 1.0, "bf16": True}, (Segment(0, 1199, 1200),), exit="abnormal"
        ),
    ),
    sources=(
        Source(
            "logs/run.jsonl", "jsonl", 1200, 2, {"step": "step", "loss": "train/loss"}, ("loss averaged over 4 steps",)
        ),
    ),
    findings=(
        Finding(
            "GD101", "loss-not-finite", Severity.CRITICAL, "loss is NaN from step 900 on",
            Location("logs/run.jsonl", 901, "run", None, 900, 1199, time=1.7e9, last_time=1.7e9 + 300.25),
            (Measure("rows", 300, ""), Measure("last_finite", math.inf, "nat"), Measure("recovered", False)),
        ),
        Finding(
            "GD102", "loss-spike", Severity.WARNING, "loss rises by 3.1 nat at step 267 and recovers within 5 steps",
            Location("logs/run.jsonl", 268, "run", 3, 267, 271, "blocks.0.fc", "node-1", 2, 1.7e9, zone_known=False),
            (Measure("peak_excess", 3.1000000001, "nat", 0.2), Measure("half_life", 1.5, "step")),
        ),
    ),
    incidents=(
        Incident(
            "Loss is NaN from step 900 on", "nonfinite", Severity.CRITICAL, "run", 900, 1199, 1.7e9, 1.7e9 + 300.25,
            cost=Cost(300, 1234.5, 2.7), findings=(0,), related=(1,),
            causes=(Cause("unknown", 0.5, "low", (), (), ("per-layer gradient norms",)),),
            actions=("roll back to a checkpoint before step 900",),
        ),
        Incident(
            "Single loss spike at step 267", "single_spike", Severity.WARNING, "run", 267, 271, layer="blocks.0.fc",
            rank=3, host="node-1", gpu=2, data=DataWindow(4272, 4288), cost=Cost(5, 6.4, None), findings=(1,),
            causes=(
                Cause(
                    "bad_batch", 0.81, "high", ("recovers within 5 steps",), ("gradient rises 1 step before the loss",),
                    ("token entropy of the batch",),
                ),
                Cause("lr_too_high", 0.1, "low", contradicts=("LR is at 12 % of its peak",)),
            ),
            actions=("skip samples 4272 to 4287 and go on", "inspect the batch"),
        ),
    ),
    series=(
        Series(
            "loss", "nat", "run", _X, tuple(3.0 if x != 267 else 6.1 for x in _X),
            tuple(3.1 if x != 280 else math.nan for x in _X),
        ),
    ),
    tables=(Table("GPUs", (Column("host"), Column("temperature", "°C")), (("node-1", 71.5), ("node-2", None))),),
    checked=("GD101", "GD102"),
    skipped=(Skip("GD401", "no steps.rank"),),
    advice=("log the gradient norm of every layer",),
)  # fmt: skip
