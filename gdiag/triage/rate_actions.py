"""What to do about the learning rate: which one to try, and where the schedule is to be mended."""

from __future__ import annotations

from typing import Final

from gdiag.triage import state
from gdiag.triage.case import Case


def lower_lr(case: Case) -> str:
    """A rate that is known to be borne, as a figure when it was logged; where none is known, a way to find one."""
    peak, go = case.facts.peak_lr, "start again" if state.from_start(case) else "resume"
    if state.over(case):
        change = f" from {peak:.3g} to {peak / 2:.3g}" if peak else ""
        return f"Should it happen again, lower the peak learning rate{change}"
    borne = _borne(case)
    if peak and borne is not None:
        return (
            f"Lower the peak learning rate from {peak:.3g} to {borne / 2:.2g}, half of what it was ({borne:.3g}) when training left its course, "
            f"and {go}"
        )
    if case.pattern in NOT_LEARNING:
        change = f" from {peak:.3g} to {peak / 10:.3g}" if peak else " tenfold"
        return (
            f"Lower the peak learning rate{change} and {go}; no rate of this run is known to work, so find it with a range test: raise it "
            "exponentially over some hundred steps and take a tenth of the rate at which the loss is lowest"
        )
    return (
        f"Lower the peak learning rate from {peak:.3g} to {peak / 2:.3g} and {go}"
        if peak
        else f"Halve the peak learning rate and {go}"
    )


NOT_LEARNING: Final = frozenset({"no_learning", "plateau"})
"""Patterns of runs that do not learn at their rate: half of it may be as wrong."""


def _borne(case: Case) -> float | None:
    """The rate at which the run left its course while the rate was still rising to its peak; None elsewhere."""
    finding = case.find("GD307", "GD104", "GD101", "GD103", "GD102", "GD201")
    if finding is None:
        return None
    peak = case.facts.peak_lr
    rate, share = finding.number("lr_at_onset"), finding.number("lr_share_of_peak")
    if peak and rate is None and share is not None:
        rate = share * peak
    if peak and share is None and rate is not None:
        share = rate / peak
    rising = (finding.number("lr_ratio") or 1.0) >= 1.0
    return rate if rate and share is not None and share < 0.8 and rising else None


def warm_up(case: Case) -> str:
    """A warm-up of 1–5 % of the run; empty where the run went astray long after one would have ended."""
    total = case.facts.config.get("total_steps", case.facts.last_step)
    first, last = case.facts.first_step, case.facts.last_step
    late = (
        case.onset is not None
        and first is not None
        and last is not None
        and case.onset - first > EARLY * (last - first)
    )
    if late and case.lead.code != "GD305" and case.context("GD305") is None:
        return ""
    has = state.setting(case, "lr_warmup_steps")
    if isinstance(total, int | float) and has is not None and has >= 0.01 * total:
        return f"Lengthen the warm-up from {has:.0f} to some {2 * has:.0f} steps"
    if isinstance(total, int | float) and total > 100:
        share = " (1–5 % of the run)" if total >= 1000 else ""
        return (
            f"Warm the learning rate up over {max(10, round(0.01 * total))}–{max(50, round(0.05 * total))} steps{share}"
        )
    return "Warm the learning rate up over 1–5 % of the run"


EARLY: Final = 0.15
"""Share of the run within which a longer warm-up changes anything: three times the longest usual one."""


def keep_lr(case: Case) -> str:
    """Hold the rate, then decay late (WSD)."""
    step = case.onset
    at = f" from before step {step}" if step is not None else ""
    return f"Extend the stable phase{at} (WSD: decay only in the last 10–20 %) and resume with the higher learning rate"


def raise_lr(case: Case) -> str:
    """Ten times the peak rate, as a figure when it was logged."""
    peak = case.facts.peak_lr
    return (
        f"Raise the peak learning rate, for example from {peak:.3g} to {10 * peak:.3g}, or shorten the warm-up"
        if peak
        else "Raise the learning rate or shorten the warm-up"
    )


def check_lr(case: Case) -> str:
    """Where the schedule jumps and by how much."""
    ratio = case.number("lr_ratio")
    by = f" (×{ratio:.3g})" if ratio is not None else ""
    at = f" at step {case.onset}" if case.onset is not None else ""
    times = case.number("schedule_steps_per_step", "GD306")
    if times is not None:
        return f"Step the scheduler once per optimizer step: from step {case.onset} on it is stepped {times:.0f} times (per rank, micro-batch or wrapper)"
    if case.value("at_restart", "GD302", "GD306") is True:
        return f"Save and load the scheduler's state with the checkpoint and resume again: the learning rate jumps at the restart{at}{by}"
    return f"Remove the jump of the learning rate{at}{by}, or smooth the transition: check scheduler state, units of its steps and the resume code"


def rewarm(case: Case) -> str:
    """How to go on without the state; what has worn off needs nothing."""
    return "" if state.over(case) else "If they are lost, re-warm the learning rate over a few hundred steps"
