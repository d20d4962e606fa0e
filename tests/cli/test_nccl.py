"""gdiag nccl from the command line: verdict, baseline, refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gdiag.cli import app, main
from gdiag.errors import InputError, UsageError
from tests.ingesters.nccl_formats import Bench, text

SIZES = tuple(1 << k for k in range(16, 33))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as done:
        main(["nccl", *arguments])
    out, err = capsys.readouterr()
    return int(str(done.value.code or 0)), out, err


def bench(path: Path, peak: float, **more: int) -> str:
    path.write_text(text(Bench(peak=peak, sizes=SIZES, **more)))  # type: ignore[arg-type]
    return str(path)


def test_a_healthy_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, bench(tmp_path / "b.txt", 478.0))
    assert code == 0
    assert "healthy" in out
    assert "limit 475" in out


def test_a_degraded_node_and_its_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, bench(tmp_path / "b.txt", 60.0), "--format", "json")
    report = json.loads(out)
    assert code == 1
    assert [i["pattern"] for i in report["incidents"]] == ["low_bandwidth"]
    assert report["incidents"][0]["causes"][0]["cause"] == "transport_fallback"
    assert report["checked"] == [c for c in report["checked"] if c.startswith("GD7")]


def test_baseline_saved_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = str(tmp_path / "baseline.json")
    assert run(capsys, bench(tmp_path / "quiet.txt", 190.0, ranks=16, hosts=2), "--baseline-save", saved)[0] == 0
    loaded = bench(tmp_path / "loaded.txt", 120.0, ranks=16, hosts=2)
    code, out, _ = run(capsys, loaded, "--baseline", saved)
    assert code == 1
    assert "of the baseline" in out
    assert run(capsys, loaded)[0] == 0
    one_line = tmp_path / "one-line.json"
    one_line.write_text(json.dumps(json.loads(Path(saved).read_text())))
    assert run(capsys, loaded, "--baseline", str(one_line))[0] == 1
    with pytest.raises(UsageError, match="is a folder"):
        app(["nccl", loaded, "--baseline", str(tmp_path)], standalone_mode=False)


def test_expectation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = bench(tmp_path / "b.txt", 120.0, ranks=16, hosts=2)
    assert run(capsys, path, "--expect", "125")[0] == 0
    assert run(capsys, path, "--expect", "190")[0] == 1


def test_a_step_log_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.9}\n')
    code, _, err = run(capsys, str(tmp_path / "run.jsonl"))
    assert code == 2
    assert "no benchmark output" in err


@pytest.mark.parametrize(
    "said", ["--expect=nan", "--expect=-5", "--expect=0", "--nic-gbps=inf", "--nic-gbps=0", "--hosts=-3"]
)
def test_a_limit_that_is_none_is_refused(said: str) -> None:
    with pytest.raises(UsageError, match="above 0; leave it out"):
        app(["nccl", "absent.txt", said])


@pytest.mark.parametrize("row", ['[null, 8, 1048576, 90.0]', '["all_reduce", 8, 1048576, NaN]', '["all_reduce", 8, 1048576, 1e999]',
                                 '["all_reduce", 8.5, 1048576, 90.0]', '["all_reduce", 8, -1, 90.0]', '["all_reduce", 8, 1048576, -1]'])  # fmt: skip
def test_a_baseline_that_no_benchmark_wrote_is_refused(row: str, tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    saved.write_text(f'{{"gdiag_baseline": 1, "columns": [], "rows": [{row}]}}')
    with pytest.raises(InputError, match="damaged gdiag baseline"):
        app(["nccl", bench(tmp_path / "b.txt", 120.0), "--baseline", str(saved)], standalone_mode=False)


def test_figures_that_are_not_finite_are_not_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, saved = Path(bench(tmp_path / "b.txt", 120.0)), tmp_path / "saved.json"
    lines = log.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if f" {SIZES[-1]} " in line)
    lines[at] = lines[at].replace(lines[at].split()[7], "inf")
    log.write_text("".join(lines))
    run(capsys, str(log), "--baseline-save", str(saved))
    assert str(SIZES[-2]) in saved.read_text()
    assert "Infinity" not in saved.read_text()


def test_port_counters_alone_check_no_collective(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "ports.txt"
    dump.write_text("# Port extended counters: Lid 5 port 1 (CapMask: 0x5A00)\nLinkDownedCounter:.......0\n")
    code, out, _ = run(capsys, str(dump), "--format", "json")
    assert code == 0
    assert "GD706" in json.loads(out)["checked"]
    assert not {"GD701", "GD705"} & set(json.loads(out)["checked"])


def test_a_baseline_of_another_collective_is_refused(tmp_path: Path) -> None:
    gather = tmp_path / "gather.txt"
    gather.write_text(text(Bench("all_gather", peak=190.0, sizes=SIZES, ranks=16, hosts=2)))
    other = bench(tmp_path / "reduce.txt", 190.0, ranks=16, hosts=2)
    with pytest.raises(UsageError, match="it has all_gather over 16 ranks, the output all_reduce over 16"):
        app(["nccl", other, "--baseline", str(gather)], standalone_mode=False)


def test_output_without_a_complete_row_is_never_healthy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = tmp_path / "short.txt"
    short.write_text("# size time algbw busbw\n 17179869184 387603 44.32 22.16\n# Avg bus bandwidth    : 21.9736\n")
    code, out, err = run(capsys, str(short))
    assert (code, out) == (2, "")
    assert "no complete row" in err


def test_a_saved_baseline_never_takes_a_logs_place(tmp_path: Path) -> None:
    log = tmp_path / "bench.txt"
    log.write_text(text(Bench(sizes=SIZES)))
    before = log.read_text()
    with pytest.raises(UsageError, match="no saved baseline"):
        app(["nccl", str(log), "--baseline-save", str(log)], standalone_mode=False)
    assert log.read_text() == before


def test_a_port_that_is_down_may_be_unused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "ibstat.txt"
    port = "\tPort {}:\n\t\tState: {}\n\t\tPhysical state: {}\n\t\tRate: 100\n"
    dump.write_text("CA 'mlx5_1'\n" + port.format(1, "Active", "LinkUp") + port.format(2, "Down", "Polling"))
    assert "an unused port needs nothing" in " ".join(run(capsys, str(dump))[1].split())
    dump.write_text("CA 'mlx5_1'\n" + port.format(1, "Down", "Polling"))
    assert "Nothing to do on a port that is not in use" in " ".join(run(capsys, str(dump))[1].split())
