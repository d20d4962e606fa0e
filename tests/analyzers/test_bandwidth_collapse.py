"""GD703: a fall that stays is a collapse, a dip that recovers is a switch of algorithm."""

from __future__ import annotations

from gdiag.analyzers import bandwidth_collapse
from gdiag.model import Finding, Severity
from tests.analyzers.made_benchmarks import view
from tests.ingesters.nccl_formats import Bench

SIZES = tuple(1 << k for k in range(20, 31))


def sweep(shares: dict[int, float]) -> str:
    bench = Bench(ranks=16, hosts=2, peak=30.0, sizes=SIZES)
    rows = [
        "# nThread 1 nGpus 8",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong",
    ]
    for size in SIZES:
        time, algbw, busbw = bench.cells(size, slower=1 / shares.get(size, 1.0))
        cells = f"{time:8.1f} {algbw:7.2f} {busbw:7.2f} 0"
        rows.append(f"{size:12d} {size // 4:12d} float sum -1 {cells} {cells}")
    return "\n".join(rows) + "\n"


def judge(shares: dict[int, float], **limits: float) -> list[Finding]:
    return bandwidth_collapse.analyze(view(sweep(shares)), **limits)


def test_fires_on_a_fall_that_stays() -> None:
    (finding,) = judge(dict.fromkeys(SIZES[-4:], 0.2))
    assert finding.severity is Severity.WARNING
    assert "does not recover" in finding.message
    assert finding.number("size") == SIZES[-4]


def test_dip_that_recovers_is_info() -> None:
    (finding,) = judge({SIZES[6]: 0.5})
    assert finding.severity is Severity.INFO
    assert "recovers" in finding.message


def test_quiet_on_a_smooth_curve() -> None:
    assert judge({}) == []


def test_threshold() -> None:
    shallow = dict.fromkeys(SIZES[-3:], 0.6)
    assert [f.severity for f in judge(shallow)] == [Severity.INFO]
    assert [f.severity for f in judge(shallow, collapse=0.7)] == [Severity.WARNING]
