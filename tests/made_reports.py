"""Runs with a known fault as rows, and the incidents of whole reports about them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from gdiag.model import Report
from gdiag.pipeline import diagnose, load
from tests.analyzers.made_runs import cosine
from tests.measures.made import EPISODES, healthy

ROWS, ONSET = 1200, 700
FAULTS = ("healthy", *EPISODES, "nonfinite", "repeated_spikes", "lr_discontinuity")
Row = dict[str, float]
Brief = tuple[str, str, int | None, int | None, str]
"""Pattern, severity, onset, last step and best cause of an incident."""


def made(fault: str, seed: int = 3) -> list[Row]:
    """1,200 rows of loss, learning rate and gradient norm; the fault begins at row 700, a series at row 400."""
    loss, rate = healthy(ROWS, "gauss", seed), cosine(ROWS)
    grad = np.exp(np.random.default_rng(seed).normal(0, 0.1, ROWS))
    if fault in EPISODES:
        excess = EPISODES[fault](ROWS, ONSET, 2.0)
        loss, grad = loss + excess, grad * (1 + excess)
    if fault == "nonfinite":
        loss[ONSET:] = np.nan
    if fault == "repeated_spikes":
        excess = np.sum([EPISODES["single_spike"](ROWS, at, 2.0) for at in (400, 580, 780, 950)], axis=0)
        loss, grad = loss + excess, grad * (1 + excess)
    if fault == "lr_discontinuity":
        rate[ONSET : ONSET + 200] *= 12
    columns = zip(loss.tolist(), rate.tolist(), grad.tolist(), strict=True)
    return [{"step": i, "loss": a, "lr": b, "grad_norm": c} for i, (a, b, c) in enumerate(columns)]


def report(rows: Iterable[Mapping[str, float]], folder: Path) -> Report:
    """The report about a JSONL log of these rows."""
    path = folder / "run.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return diagnose(load([path]))


def brief(found: Report) -> list[Brief]:
    """The incidents of a report, those that are only worth knowing too."""
    return [
        (i.pattern, i.severity.label, i.onset_step, i.last_step, i.causes[0].cause if i.causes else "")
        for i in found.incidents
    ]
