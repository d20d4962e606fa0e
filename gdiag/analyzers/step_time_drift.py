"""Step time climbs slowly.

What it checks
    Block medians of the step time that rise by at least `floor` without a jump, by Theil-Sen and Mann-Kendall (|z| > 4,
    corrected for autocorrelation). A ramp of sequence length, batch size or tokens per step that explains the climb makes
    it a note: windows and batches that grow by design showed +13–14 % in 45 of 45 real runs. Where the work per step is not
    logged, the noise of loss and gradient norm may tell a larger batch.

Why it matters
    Something is filling up or heating up: GPUs that throttle a little more every minute, a fragmenting allocator, a
    growing list in the loop, a filesystem that slows down. It does not stop by itself.

What to do
    Compare with GPU temperature, clocks and memory of the same hours and with the parts of the step; restart one rank's
    process to tell software (it resets) from hardware (it does not).
"""

from __future__ import annotations

from gdiag.analyzers import timing
from gdiag.measures.run import RunView
from gdiag.measures.slowdowns import Slowdown, StepTimeView
from gdiag.model import Finding, Measure

CODE = "GD502"
NAME = "step-time-drift"
NEEDS: tuple[str, ...] = ("steps.step_time|steps.time|steps.elapsed|steps.tokens_per_s|steps.samples_per_s",)


def analyze(run: RunView, *, floor: float = 0.05) -> list[Finding]:
    view = run.step_times
    if view is None:
        return []
    return [
        _finding(run, view, slow, floor) for slow in view.changes if slow.kind == "drift" and slow.ratio >= 1 + floor
    ]


def _finding(run: RunView, view: StepTimeView, slow: Slowdown, floor: float) -> Finding:
    batch = timing.grown(run, view, slow)
    said = timing.rises(view, slow, f"from step {view.times.step[slow.start]} on", "drifts up", "drifts down")
    return Finding(
        CODE, NAME, timing.severity(view, slow, batch), f"{said}{timing.held_by(slow)}{timing.with_batch(slow, batch)}",
        timing.place(run, view, slow),
        (*timing.evidence(view, slow, 1 + floor, batch), Measure("kind_certain", slow.certain)),
    )  # fmt: skip
