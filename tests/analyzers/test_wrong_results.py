"""GD701: wrong data is critical whatever the bandwidth; an old error column is no count."""

from __future__ import annotations

from gdiag.analyzers import wrong_results
from gdiag.model import Severity
from tests.analyzers.made_benchmarks import view
from tests.ingesters.nccl_formats import Bench, text


def test_fires_with_rank() -> None:
    output = text(Bench(sizes=(1 << 20, 1 << 22), wrong=131072)) + "rank=3 #wrong=131072\n"
    finding = wrong_results.analyze(view(output))[0]
    assert finding.severity is Severity.CRITICAL
    assert finding.where.rank == 3
    assert finding.number("wrong_elements") == 131072


def test_fires_on_the_footer_alone() -> None:
    output = text(Bench()).replace("Out of bounds values : 0 OK", "Out of bounds values : 2 FAILED")
    assert wrong_results.analyze(view(output))[0].number("failed_tests") == 2


def test_quiet_on_right_data_and_on_old_error_sizes() -> None:
    assert wrong_results.analyze(view(text(Bench()))) == []
    assert wrong_results.analyze(view(text(Bench(), "2.0").replace("0e+00", "2e-07"))) == []


def test_threshold() -> None:
    output = text(Bench(wrong=3)).replace("1 FAILED", "0 OK")
    assert wrong_results.analyze(view(output), elements=4) == []
    assert wrong_results.analyze(view(output), elements=3) != []
