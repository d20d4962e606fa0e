from __future__ import annotations

import numpy as np
import polars as pl

from gdiag.analyzers import ecc_error
from gdiag.model import Severity
from tests.analyzers.made_telemetry import card, noisy, timed, watched


def test_an_uncorrectable_error_is_critical_and_placed() -> None:
    count = np.where(np.arange(800) >= 500, 1.0, 0.0)
    (finding,) = ecc_error.analyze(watched(timed(noisy()), [card(0), card(1, ecc_uncorrected=count)]))
    assert finding.severity is Severity.CRITICAL
    assert (finding.where.host, finding.where.gpu) == ("node-1", 1)
    assert finding.where.step is not None
    assert abs(finding.where.step - 1250) <= 3
    assert finding.number("uncorrectable_errors") == 1


def test_an_old_count_is_a_note() -> None:
    (finding,) = ecc_error.analyze(watched(timed(noisy()), [card(0, ecc_uncorrected=2.0)]))
    assert finding.severity is Severity.INFO
    assert finding.measure("from_start") is True


def test_corrected_errors_count_from_a_threshold_on() -> None:
    run = watched(timed(noisy()), [card(0, ecc_corrected=np.arange(800.0))])
    assert ecc_error.analyze(run) == []
    (finding,) = ecc_error.analyze(run, corrected=100)
    assert finding.severity is Severity.WARNING


def test_failed_and_pending_remaps_are_told_apart() -> None:
    failed = card(0).with_columns(pl.lit(True).alias("remap_failure"), pl.lit(False).alias("remap_pending"))
    waiting = card(1).with_columns(pl.lit(False).alias("remap_failure"), pl.lit(True).alias("remap_pending"))
    found = ecc_error.analyze(watched(timed(noisy()), [failed, waiting]))
    assert [(f.where.gpu, f.severity) for f in found] == [(0, Severity.CRITICAL), (1, Severity.WARNING)]


def test_zero_counts_are_quiet() -> None:
    assert ecc_error.analyze(watched(timed(noisy()), [card(0), card(1)])) == []
