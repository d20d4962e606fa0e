"""GD704: unsteady small messages, sides, cycles and runs; never the first row."""

from __future__ import annotations

import json

from gdiag.analyzers import latency_jitter
from gdiag.model import Finding, Severity
from tests.analyzers.made_benchmarks import view
from tests.ingesters.nccl_formats import Bench, document, text

SMALL = tuple(8 << k for k in range(13))


def slowed(every: int, factor: float, first: int = 2) -> str:
    """Output whose small rows take `factor` times as long, every `every`-th from `first` on."""
    bench = Bench(sizes=SMALL, latency=90.0)
    out = []
    for number, line in enumerate(text(bench).split("\n")):
        cells = line.split()
        if len(cells) > 12 and cells[0].isdigit() and SMALL.index(int(cells[0])) % every == first % every:
            for at in (5, 9):
                cells[at] = f"{float(cells[at]) * factor:.2f}"
            line = "  ".join(cells)
        out.append(line)
        assert number >= 0
    return "\n".join(out)


def judge(output: str, **limits: float) -> list[Finding]:
    return latency_jitter.analyze(view(output), **limits)


def test_fires_on_two_modes() -> None:
    (finding,) = judge(slowed(3, 6.5))
    assert finding.severity is Severity.WARNING
    assert finding.number("slow_share") == 1 / 3 or (finding.number("slow_share") or 0) > 0.2


def test_quiet_on_steady_rows_and_a_slow_first_row() -> None:
    assert judge(text(Bench(sizes=SMALL))) == []
    assert judge(slowed(len(SMALL), 25.0, first=0)) == []


def test_threshold() -> None:
    assert judge(slowed(3, 6.5), small_share=0.5) == []


def test_equal_runs_that_differ_are_info() -> None:
    runs = [text(Bench(peak=peak)) for peak in (200.0, 260.0, 150.0)]
    found = latency_jitter.analyze(view("".join(runs)))
    assert [f.severity for f in found] == [Severity.INFO]
    assert "equal runs differ" in found[0].message


def per_process(slow: dict[int, float], *, transposed: bool = False) -> list[Finding]:
    """Findings of a document of 8 processes and 5 iterations in which some processes take longer."""
    whole = json.loads(document(Bench(sizes=(1 << 20, 1 << 24, 1 << 28))))
    for result in whole["results"]:
        table = [[100.0 * slow.get(p, 1.0) + i for i in range(5)] for p in range(8)]
        table = [list(times) for times in zip(*table, strict=True)] if transposed else table
        spread = {"times_us": [100.0] * 5, "min_us": 1.0, "per_process_max_times_us": table}
        result["out_of_place_per_iter"] = spread
    return judge(json.dumps(whole))


def test_one_slow_process_is_a_straggler_and_all_slow_are_not() -> None:
    for transposed in (False, True):
        (finding,) = per_process({3: 1.5}, transposed=transposed)
        assert finding.where.rank == 3
        assert finding.severity is Severity.WARNING
    assert per_process({}) == []
    assert per_process(dict.fromkeys(range(8), 3.0)) == []
    assert per_process({3: 1.1}) == []


def test_pairs_of_other_hosts_are_no_equal_runs() -> None:
    outputs = []
    for number, peak in enumerate((190.0, 95.0, 190.0)):
        bench = Bench(ranks=16, hosts=2, peak=peak, sizes=(1 << 28, 1 << 30))
        outputs.append(text(bench).replace("node-1", f"other-{number}"))
    assert latency_jitter.analyze(view(*outputs)) == []
    same = [output.replace(f"other-{number}", "other") for number, output in enumerate(outputs)]
    assert len(latency_jitter.analyze(view(*same))) == 1


def waiting(floor: float, *, shared: bool = False) -> str:
    """A sweep of 1 to 64 MiB whose messages take `floor` µs at least; all ranks on one GPU where shared."""
    bench = Bench(ranks=2, peak=2.0, latency=0.0, sizes=tuple(1 << k for k in range(20, 27)))
    out = []
    for line in text(bench, "2.13").split("\n"):
        cells = line.split()
        if len(cells) > 12 and cells[0].isdigit() and float(cells[5]) < floor:
            cells = [*cells[:5], *[f"{floor:.1f}", "0.5", "0.5", "0"] * 2]
        line = "  ".join(cells) if cells and cells[0].isdigit() else line
        out.append(line.replace("device  1 [0000:11:00]", "device  0 [0000:10:00]") if shared else line)
    return "\n".join(out)


def test_times_that_do_not_grow_with_size() -> None:
    (finding,) = judge(waiting(4400.0))
    assert finding.severity is Severity.INFO
    assert finding.message == "all_reduce takes 4.40 ms for every size up to 8 MiB: it waits for a timer or for retries"
    assert judge(waiting(900.0)) == []
    assert judge(waiting(1500.0)) == []  # two sizes within the floor are no evidence
    assert judge(waiting(4400.0, shared=True)) == []
