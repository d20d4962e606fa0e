"""One module per fault; this tuple lists them by hand, in order of code."""

from __future__ import annotations

from gdiag.analyzers import lr_discontinuity, lr_schedule, scheduler_not_restored
from gdiag.analyzers.analyzer import Analyzer

ANALYZERS: tuple[Analyzer, ...] = (
    lr_schedule,
    lr_discontinuity,
    scheduler_not_restored,
)
