"""Many test runs that say the same are one finding."""

from __future__ import annotations

from gdiag.analyzers import low_bandwidth
from tests.analyzers.made_benchmarks import view
from tests.ingesters.nccl_formats import Bench, text


def test_many_alike_are_named_by_the_worst() -> None:
    (finding,) = low_bandwidth.analyze(view("".join(text(Bench(peak=200 - i)) for i in range(10))))
    assert finding.number("test_runs") == 10
    assert finding.message.endswith("(the worst of 10 test runs alike)")
    assert (finding.number("busbw") or 0) < 195


def test_a_few_are_named_one_by_one() -> None:
    assert len(low_bandwidth.analyze(view("".join(text(Bench(peak=200 - i)) for i in range(5))))) == 5
