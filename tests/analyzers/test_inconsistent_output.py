"""GD705: output that contradicts itself is said, old definitions and CPU time are not."""

from __future__ import annotations

from gdiag.analyzers import inconsistent_output
from gdiag.model import Finding, Severity
from tests.analyzers.made_benchmarks import view
from tests.ingesters.nccl_formats import Bench, text


def judge(output: str, **limits: float) -> list[Finding]:
    return inconsistent_output.analyze(view(output), **limits)  # type: ignore[arg-type]


def test_quiet_on_consistent_output() -> None:
    for collective in ("all_reduce", "all_gather", "broadcast", "alltoall"):
        assert judge(text(Bench(collective))) == []


def test_rank_list_against_ratio() -> None:
    listed = text(Bench(ranks=16))
    measured = text(Bench(ranks=8))
    mixed = listed[: listed.index("#       size")] + measured[measured.index("#       size") :]
    (finding,) = judge(mixed)
    assert finding.severity is Severity.WARNING
    assert "16 ranks" in finding.message


def test_one_rank_measures_no_fabric() -> None:
    output = text(Bench(ranks=1))
    (finding,) = judge(output)
    assert finding.severity is Severity.INFO
    assert "one rank" in finding.message


def test_ranks_that_share_a_gpu_cross_no_link() -> None:
    output = text(Bench(ranks=2), "2.13").replace("device  1 [0000:11:00]", "device  0 [0000:10:00]")
    (finding,) = judge(output)
    assert finding.severity is Severity.INFO
    assert finding.message.startswith("ranks 0, 1 share one GPU (device 0 of node-0)")
    assert judge(text(Bench(ranks=2), "2.13")) == []


def test_rows_that_were_cut() -> None:
    lines = text(Bench()).split("\n")
    (finding,) = judge("\n".join(lines[:14] + lines[18:]))
    assert finding.severity is Severity.INFO
    assert "rows were cut" in finding.message


def test_threshold() -> None:
    output = text(Bench()).replace("Avg bus bandwidth    : ", "Avg bus bandwidth    : 1")
    assert judge(output) != []
    assert judge(output, average=100.0) == []


def test_rows_whose_time_was_edited() -> None:
    bench = Bench(sizes=tuple(1 << k for k in range(24, 31)))
    output = text(bench)
    for size in bench.sizes[:3]:
        time = f"{bench.cells(size)[0]:.2f}"
        output = output.replace(time, f"{float(time) * 1.5:.2f}", 1)
    assert any("do not belong together" in f.message for f in judge(output))


def test_a_test_that_stopped_with_an_error() -> None:
    failure = "host3: Test NCCL failure common.cu:1125 'unhandled system error / socketProgress: Connection closed'\n"
    for output in (text(Bench(sizes=(1 << 20,)), footer=False) + failure, "# nThread 1 nGpus 1 minBytes 8\n" + failure):
        (finding,) = inconsistent_output.analyze(view(output))
        assert finding.severity is Severity.WARNING
        assert "look for the host that failed first" in finding.message
