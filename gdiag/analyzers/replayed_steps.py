"""Holds the steps that a resume trained twice against one another.

What it checks: where a run was taken back to a checkpoint and logged some steps again, whether the first of them has the
loss that it had the first time, to the last digit written, and the next ones are worse (Wilcoxon's signed ranks below
`chance`, by `least` of the noise in the median).

Why it matters: the same first loss proves that weights and batch are the same; losses that leave it from then on prove
that the updates are not: moments that were not loaded. A whole checkpoint gives each loss again. Another learning rate
would do it as well: that is GD306's to say.

What to do: load the optimizer's state with the weights (strictly, and look for keys that were missing) and resume again
from the same checkpoint: the replayed losses must be those of before.
"""

from __future__ import annotations

from gdiag.measures.replays import Replay, replays
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD120"
NAME = "replayed-steps"
NEEDS: tuple[str, ...] = ("steps.loss",)


def analyze(run: RunView, *, chance: float = 0.005, least: float = 0.1, most: int = 10) -> list[Finding]:
    """A finding per resume.

    Args:
        run: the run.
        chance: probability of so many worse rows among those that differ, were both trainings alike.
        least: median excess of the later rows in standard deviations of the loss.
        most: findings.
    """
    seen = [r for r in replays(run.paths) if r.same_start and not r.other_rate]
    worse = [r for r in seen if r.excess >= least * r.noise and r.chance <= chance]
    return [_finding(run, replay, least) for replay in worse[:most]]


def _finding(run: RunView, replay: Replay, least: float) -> Finding:
    return Finding(
        CODE, NAME, Severity.WARNING,
        f"Step {replay.step} has the same loss when it is trained again after the resume, and {replay.worse} of the {replay.rows - 1} "
        f"logged steps after it are worse than the first time, by {replay.excess:.3g} nat in the median",
        run.where(run.series("loss").finite.row(replay.row), step=replay.step, last_step=replay.last_step),
        (
            Measure("replayed_rows", replay.rows), Measure("worse_rows", replay.worse),
            Measure("replay_excess", replay.excess, "nat", limit=least * replay.noise), Measure("noise", replay.noise, "nat"),
            Measure("same_start", replay.same_start),
        ),
    )  # fmt: skip
