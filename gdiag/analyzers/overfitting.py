"""Finds validation loss that rises while training loss falls.

What it checks: the best validation loss (median of three) against the last ones: a rise by more than its noise and two
percent, as a trend of the evaluations since or for good (none of the last two thirds of them is back within that limit),
while the training loss goes on falling; where its last rows rise by half as much, both do, and the model was harmed.

Why it matters: from the best evaluation on, the run pays for memorising.

What to do: keep the checkpoint of the best evaluation; add data, dropout or weight decay, or stop earlier. When the rise
begins at an epoch boundary the data were seen before. Where validation has long been coming down again (late
generalisation) the rise is told as information.
"""

from __future__ import annotations

from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD110"
NAME = "overfitting"
NEEDS: tuple[str, ...] = ("steps.loss", "steps.eval_loss")


def analyze(
    run: RunView, *, rise: float = 0.02, sigmas: float = 4.0, rising: float = 0.6, least_evals: int = 3
) -> list[Finding]:
    """At most one finding.

    rise: least relative rise from the best. sigmas: least rise in standard deviations of one evaluation. rising: share of
    the pairs of evaluations since of which the later must be the higher. least_evals: evaluations needed after the best.
    """
    seen = run.overfit
    if seen is None or seen.evals_after < least_evals or seen.train_change >= 0:
        return []
    gap = seen.last - seen.best
    if seen.train_rise > 0.5 * gap:  # both rise: the run went wrong, it did not memorise
        return []
    limit = max(rise * abs(seen.best), sigmas * seen.noise)
    if gap <= limit or (
        seen.rising < rising and (seen.evals_after < 2 * least_evals or seen.lowest_after - seen.best <= limit)
    ):
        return []
    again = (
        f", and has been coming down again since step {seen.falling_since}" if seen.falling_since is not None else ""
    )
    points = run.series("eval_loss").finite
    row = points.row(int((points.step <= seen.best_step).sum()) - 1)
    return [
        Finding(
            CODE, NAME, Severity.WARNING if seen.falling_since is None else Severity.INFO,
            f"Validation loss rises from {seen.lowest:.3f} nat at step {seen.best_step} to {seen.last:.3f} while training loss falls by {-seen.train_change:.3f}{again}",
            run.where(row, step=seen.best_step, last_step=seen.last_step),
            (
                Measure("eval_rise", gap, "nat", limit=limit),
                Measure("eval_best", seen.lowest, "nat"),
                Measure("eval_last", seen.last, "nat"),
                Measure("train_change", seen.train_change, "nat"),
                Measure("evals_after", seen.evals_after),
                Measure("rising_share", seen.rising, limit=rising),
                Measure("noise", seen.noise, "nat"),
            ),
        )
    ]  # fmt: skip
