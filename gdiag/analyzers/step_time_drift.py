"""Step time climbs slowly.

What it checks
    Block medians of the step time that rise by at least `floor` without a jump, by Theil-Sen and Mann-Kendall (|z| > 4,
    corrected for autocorrelation). A ramp of sequence length, batch size or tokens per step that explains the climb makes
    it a note: windows and batches that grow by design showed +13–14 % in 45 of 45 real runs.

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
from gdiag.model import Finding, Measure, Severity

CODE = "GD502"
NAME = "step-time-drift"
NEEDS: tuple[str, ...] = ("steps.step_time|steps.time|steps.elapsed|steps.tokens_per_s",)


def analyze(run: RunView, *, floor: float = 0.05) -> list[Finding]:
    view = run.step_times
    if view is None:
        return []
    return [
        Finding(
            CODE, NAME, Severity.INFO if timing.by_design(slow) else Severity.WARNING,
            f"step time drifts up by {100 * (slow.ratio - 1):.1f} % from step {view.times.step[slow.start]} on, "
            f"from {slow.before:.4g} s to {slow.after:.4g} s{timing.held_by(slow)}",
            timing.place(run, view, slow),
            (*timing.evidence(view, slow, 1 + floor), Measure("kind_certain", slow.certain)),
        )
        for slow in view.changes
        if slow.kind == "drift" and slow.ratio >= 1 + floor
    ]  # fmt: skip
