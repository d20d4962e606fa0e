"""Holds the batches of loss events against the run's other batches.

What it checks: at the onset of every loss event and of the first non-finite loss, the logged token entropy, share of
duplicates and sequence length against their own history, and whether batch size or sequence length change for good
within three rows.

Why it matters: a batch that differs from all others explains a spike better than any guess; a change of batch size or
sequence length moves the loss by design.

What to do: inspect the samples of the step; filter their source. For a planned change nothing is wrong.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.curves import Curve
from gdiag.measures.data import STATISTICS
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD114"
NAME = "batch-statistics"
NEEDS: tuple[str, ...] = ("steps.loss", "steps.token_entropy|steps.duplicate_share|steps.batch_size|steps.seq_len")


def analyze(run: RunView, *, z: float = 4.0, change: float = 0.05, most: int = 20) -> list[Finding]:
    """A finding per event whose batch stands out.

    z: robust deviation of a statistic. change: relative change of batch size or sequence length. most: events looked at.
    """
    onsets = sorted({e.onset_step for view in run.losses[:1] for e in view.events} | set(_first_bad(run)))
    return [found for step in onsets[:most] if (found := _finding(run, step, z, change)) is not None]


def _first_bad(run: RunView) -> list[int]:
    bad = run.series("loss").nonfinite.step
    return [int(bad[0])] if len(bad) else []


def _finding(run: RunView, step: int, z: float, change: float) -> Finding | None:
    evidence: list[Measure] = []
    parts: list[str] = []
    lasting = {name: _ratio(run.series(name), step) for name in ("batch_size", "seq_len")}
    for name, words in STATISTICS.items():
        changed = lasting.get(name)
        seen = run.batch_z(name, step) if changed is None or abs(changed - 1) <= change else None
        if seen is not None and abs(seen) >= z:
            evidence.append(Measure(f"{name}_z", seen, limit=z))
            parts.append(f"a {words} {abs(seen):.1f} robust z {'above' if seen > 0 else 'below'} its history")
    for name, words, evident in (
        ("batch_size", "batch size", "batch_ratio"),
        ("seq_len", "sequence length", "seq_len_ratio"),
    ):
        ratio = lasting[name]
        if ratio is not None and abs(ratio - 1) > change:
            evidence.append(Measure(evident, ratio, limit=1 + change))
            parts.append(f"a {words} that changes to {ratio:.2f} times the one before")
    if not parts:
        return None
    window = run.batch_window(step)
    if window is not None:
        evidence += [Measure("sample_start", window.first), Measure("sample_end", window.last)]
    return Finding(
        CODE, NAME, Severity.INFO, f"The batch of step {step} has {' and '.join(parts)}",
        run.where(step=step), tuple(evidence),
    )  # fmt: skip


def _ratio(curve: Curve, step: int) -> float | None:
    """Median of the rows from the step on over the rows before, None where too few."""
    i = int(np.searchsorted(curve.step, step))
    before, after = curve.value[max(0, i - 12) : max(0, i - 3)], curve.value[i + 3 : i + 12]
    if len(before) < 3 or len(after) < 3 or np.median(before) <= 0:
        return None
    # Lengths that vary from batch to batch change by chance: both sides must be level.
    if np.ptp(before) > 0.02 * np.median(before) or np.ptp(after) > 0.02 * np.median(after):
        return None
    return float(np.median(after) / np.median(before))
