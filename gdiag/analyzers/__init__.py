"""One module per fault; this tuple lists them by hand, in order of code."""

from __future__ import annotations

from gdiag.analyzers import lr_decayed_early, lr_discontinuity, lr_schedule, lr_too_low, scheduler_not_restored
from gdiag.analyzers.analyzer import Analyzer

ANALYZERS: tuple[Analyzer, ...] = (
    lr_schedule,
    lr_discontinuity,
    lr_decayed_early,
    lr_too_low,
    scheduler_not_restored,
)
