"""Watches skipped steps and the fp16 loss scale.

What it checks: bursts of skipped steps or halvings of the loss scale. A scaler that backs off once in a while and grows
again, or looks for its range in the first steps, is ordinary; a scale that is halved five times and more in a row, or
steps that are skipped one after the other, are not. Reaching a scale of 1 is the end of training. Steps skipped after a
resume that starts the scale anew are GD118.

Why it matters: a skipped step does not train. A collapsing scale means that gradients overflow at any scale: something
upstream is infinite, and the loss follows within tens of steps.

What to do: train in BF16; else find the first layer that overflows, lower the learning rate, raise the scaler's
hysteresis, and go back to before the first skip of the burst.
"""

from __future__ import annotations

from gdiag.measures.loss_scale import Burst, Skipping, stale_norms
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD112"
NAME = "skipped-steps"
NEEDS: tuple[str, ...] = ("steps.loss_scale|steps.skipped",)


def analyze(
    run: RunView, *, halvings: float = 5.0, skips: int = 8, minimum: float = 1.0, rate: float = 0.1, most: int = 5
) -> list[Finding]:
    """A finding per burst, worst first, and one for the ordinary back-off.

    halvings, skips: in a row, from which a burst is an alarm. minimum: loss scale at which training stops. rate: share of
    skipped steps over the run that is an alarm by itself. most: bursts reported.
    """
    seen = run.skipping
    if seen is None:
        return []
    searching = [(r.step, r.last_step) for r in run.scale_resets]
    bad = [
        b for b in seen.bursts
        if _alarming(b, halvings, skips, minimum) and not any(first <= b.step <= last for first, last in searching)
    ]  # fmt: skip
    worst = sorted(bad, key=lambda b: (-b.halvings, -b.skips))[:most]
    found = [_burst(run, b, halvings, minimum) for b in sorted(worst, key=lambda b: b.step)]
    if not found:
        found.append(_ordinary(run, seen, rate))
    return found


def _alarming(burst: Burst, halvings: float, skips: int, minimum: float) -> bool:
    low = burst.scale_after is not None and burst.scale_after <= minimum
    if burst.at_start:
        return burst.to_the_end and (low or burst.skips >= skips)
    return burst.halvings >= halvings or burst.skips >= skips or (low and burst.halvings > 0)


def _burst(run: RunView, burst: Burst, halvings: float, minimum: float) -> Finding:
    low = burst.scale_after is not None and burst.scale_after <= minimum
    grad = run.series("grad_norm").nonfinite.step
    infinite = int(((grad >= burst.step) & (grad <= burst.last_step)).sum())
    stale = stale_norms(run.series("grad_norm"), run.series("skipped"))
    parts = [f"{burst.skips} steps are skipped"] if burst.skips else []
    if burst.scale_before is not None and burst.scale_after is not None and burst.halvings:
        parts.append(f"the loss scale falls from {burst.scale_before:g} to {burst.scale_after:g}")
    end = ", and the log ends in it" if burst.to_the_end else ""
    evidence = [
        Measure("halvings", burst.halvings, limit=halvings),
        Measure("skips", burst.skips, "step"),
        Measure("reaches_minimum", low),
        Measure("to_the_end", burst.to_the_end),
        Measure("nonfinite_grad_rows", infinite),
        Measure("stale_grad_rows", int(((stale >= burst.step) & (stale <= burst.last_step)).sum())),
    ]
    if burst.scale_before is not None and burst.scale_after is not None:
        evidence += [
            Measure("scale_before", burst.scale_before),
            Measure("scale_after", burst.scale_after, limit=minimum),
        ]
    window = run.batch_window(burst.step)
    if window is not None:
        evidence += [Measure("sample_start", window.first), Measure("sample_end", window.last)]
    return Finding(
        CODE, NAME, Severity.CRITICAL if low or burst.to_the_end else Severity.WARNING,
        f"From step {burst.step} to {burst.last_step} {' and '.join(parts)}{end}",
        run.where(step=burst.step, last_step=burst.last_step), tuple(evidence),
    )  # fmt: skip


def _ordinary(run: RunView, seen: Skipping, limit: float) -> Finding:
    count = max(seen.skips, seen.halvings)
    many = seen.rate > limit and seen.steps >= 200
    what = "steps are skipped" if seen.skips >= seen.halvings else "times the loss scale is halved"
    largest = max((b.halvings for b in seen.bursts if not b.at_start), default=0.0)
    ordinary = ", as ordinary back-off" if largest < 3 else f", up to {largest:.0f} times in a row"
    if seen.skips >= 4 and not seen.halvings and seen.lowest is not None:
        ordinary = f", and the loss scale of {seen.lowest:g} does not fall"
    tail = "" if many else ordinary
    return Finding(
        CODE, NAME, Severity.WARNING if many else Severity.INFO,
        f"{count:.0f} {what} in {seen.steps} steps ({1000 * seen.rate:.1f} per 1,000){tail}",
        run.where(step=seen.first_skip, last_step=seen.last_skip),
        (
            Measure("skip_rate", seen.rate, limit=limit),
            Measure("skips", seen.skips, "step"),
            Measure("halvings", seen.halvings),
            Measure("largest_burst", largest),
            *([Measure("lowest_scale", seen.lowest)] if seen.lowest is not None else []),
        ),
    )  # fmt: skip
