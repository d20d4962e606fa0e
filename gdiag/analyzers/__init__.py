"""One module per fault; this tuple lists them by hand, in order of code."""

from __future__ import annotations

from gdiag.analyzers import (
    hard_batches,
    loss_divergence,
    loss_not_finite,
    loss_plateau,
    loss_spike,
    loss_step_up,
    lr_decayed_early,
    lr_discontinuity,
    lr_schedule,
    lr_too_low,
    no_learning,
    repeated_spikes,
    scheduler_not_restored,
)
from gdiag.analyzers.analyzer import Analyzer

ANALYZERS: tuple[Analyzer, ...] = (
    loss_not_finite,
    loss_spike,
    repeated_spikes,
    loss_divergence,
    loss_step_up,
    hard_batches,
    no_learning,
    loss_plateau,
    lr_schedule,
    lr_discontinuity,
    lr_decayed_early,
    lr_too_low,
    scheduler_not_restored,
)
