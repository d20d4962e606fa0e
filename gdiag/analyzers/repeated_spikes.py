"""The loss spikes again and again.

What it checks: three or more spikes in the run, or two within 1,000 steps; whether they come faster or grow, at equal
distances, and at which share of the peak learning rate.

Why it matters: one spike can be chance, a series is a state: a learning rate at the edge of stability, growing attention
or output logits, a pocket of bad data, or fp16 overflow. A series often ends in a divergence. Instability knows no
period: what comes back every so many steps is in what the run does again then, such as reading a shard.

What to do: lower the peak learning rate (halve it) or lengthen the warm-up, set Adam's beta2 to 0.95, clip or skip at six
standard deviations; with growing logits add QK-norm or z-loss; with spikes at the same data, filter that source.
"""

from __future__ import annotations

import numpy as np

from gdiag.analyzers.loss_evidence import alarm, amount, event_measures, place, unit_of
from gdiag.measures.repeats import Series, spike_series
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure
from gdiag.reference.figures import whole

CODE = "GD103"
NAME = "repeated-spikes"
NEEDS: tuple[str, ...] = ("steps.loss",)


def analyze(run: RunView, *, z: float = 4.0) -> list[Finding]:
    """One finding for the series of spikes on each path.

    Thresholds:
        z: least peak excess of the series' largest spike in robust standard deviations.
    """
    findings: list[Finding] = []
    for view in run.losses:
        series = spike_series(view)
        if series is None:
            continue
        largest = max(series.events, key=lambda event: event.excess)
        if largest.z < z:
            continue
        first, last = series.events[0], series.events[-1]
        unit = unit_of(first)
        said = (
            f"Loss spikes {len(series.events)} times between steps {first.onset_step} and {last.last_step}, "
            f"by up to {amount(largest.excess, unit)} ({whole(largest.z)} times its noise)"
        )
        said += f", every {series.period:.0f} steps" if series.period is not None else ""
        where = place(run, first)
        where = run.where(first.curve.finite.row(first.onset), last_step=last.last_step, time=where.time)
        evidence = (*_series_measures(series), *event_measures(run, view, largest, z))
        severity = max(alarm(run, view, event) for event in series.events)
        findings.append(Finding(CODE, NAME, severity, said, where, evidence))
    return findings


def _series_measures(series: Series) -> list[Measure]:
    onsets = [event.onset_step for event in series.events]
    measures = [
        Measure("spikes", len(onsets)),
        Measure("median_gap", float(np.median(np.diff(onsets))), "step"),
        Measure("gap_trend", series.gap_trend, "", None),
        Measure("excess_trend", series.excess_trend, "", None),
        Measure("onsets", ", ".join(str(step) for step in onsets[:20])),
    ]
    if series.period is not None:
        measures.append(Measure("period", series.period, "step"))
    if series.lr_share is not None:
        measures.append(Measure("median_lr_share_of_peak", series.lr_share))
    if series.same_samples:
        measures.append(Measure("returns_at_same_samples", True))
    return measures
