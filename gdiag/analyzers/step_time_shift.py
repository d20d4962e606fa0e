"""Step time goes to a higher level and stays there, or returns after a while.

What it checks
    Block medians of the step time (logarithm, isolated slow steps and warm-up set aside) are cut into pieces of constant
    level; a cut of at least `floor` whose size is reached within a few blocks is a shift, a bump when the old level
    returns. Below 5 % a change is within what healthy clusters show over a day (Llama 3 reports 1–2 %). More work per step
    (a token or sample counter, the batch size, a throughput that holds) makes it a note, and so does, where none of these
    is logged, noise of loss and gradient norm that falls as that of a larger batch does.

Why it matters
    Every later step pays for it. A sudden change has a moment, and something happened at that moment: a congested or
    failed link, a straggler, throttling, another job on the same machine, a changed configuration.

What to do
    Look at which part of the step holds the added time (data, communication, compute), at GPU clocks and event reasons
    from the same minute, and at what else started then. Log data_time, comm_time and compute_time per step.
"""

from __future__ import annotations

from gdiag.analyzers import timing
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure

CODE = "GD501"
NAME = "step-time-shift"
NEEDS: tuple[str, ...] = ("steps.step_time|steps.time|steps.elapsed|steps.tokens_per_s|steps.samples_per_s",)


def analyze(run: RunView, *, floor: float = 0.05) -> list[Finding]:
    view = run.step_times
    if view is None:
        return []
    found = []
    for slow in view.changes:
        if slow.kind not in ("shift", "bump") or slow.ratio < 1 + floor:
            continue
        back = slow.kind == "bump"
        batch = timing.grown(run, view, slow)
        step = int(view.times.step[slow.start])
        until = f" until step {view.times.step[slow.end]}" if back else ""
        found.append(
            Finding(
                CODE,
                NAME,
                timing.severity(view, slow, batch),
                f"{timing.rises(view, slow, f'at step {step}{until}')}{timing.held_by(slow)}{timing.with_batch(slow, batch)}",
                timing.place(run, view, slow),
                (
                    *timing.evidence(view, slow, 1 + floor, batch),
                    Measure("recovered", back),
                    Measure("kind_certain", slow.certain),
                ),
            )
        )
    return found
