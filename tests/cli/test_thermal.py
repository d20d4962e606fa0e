from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import gdiag


def telemetry(folder: Path, *, hot_from: int | None = 300) -> Path:
    """An nvidia-smi log of two GPUs; the second throttles from row `hot_from` on."""
    path = folder / "smi.csv"
    lines = [
        "timestamp, index, name, temperature.gpu, power.draw [W], power.limit [W], clocks.current.sm [MHz], clocks.max.sm [MHz], utilization.gpu [%], clocks_event_reasons.active"
    ]
    for i in range(400):
        stamp = f"2026/03/01 10:{i * 5 // 60:02d}:{i * 5 % 60:02d}.000"
        for gpu in (0, 1):
            hot = gpu == 1 and hot_from is not None and i >= hot_from
            state = "88, 500.00 W, 700.00 W, 1500 MHz" if hot else "62, 640.00 W, 700.00 W, 1980 MHz"
            lines.append(f"{stamp}, {gpu}, NVIDIA H100 80GB HBM3, {state}, 1980 MHz, 98 %, 0x{0x20 if hot else 0:016x}")
    path.write_text("\n".join(lines))
    return path


def test_throttling_is_reported_with_tables_and_exit_code(tmp_path: Path) -> None:
    done = gdiag("thermal", str(telemetry(tmp_path)), cwd=tmp_path)
    assert done.returncode == 1, done.stderr.decode()
    assert "Thermal throttling" in done.stdout.decode()
    assert "█" in done.stdout.decode()
    report = json.loads(gdiag("thermal", str(telemetry(tmp_path)), "--format", "json", cwd=tmp_path).stdout)
    assert report["incidents"][0]["gpu"] == 1
    assert report["tables"][0]["rows"][1][0] == 1


def test_healthy_telemetry_passes(tmp_path: Path) -> None:
    assert gdiag("thermal", str(telemetry(tmp_path, hot_from=None)), cwd=tmp_path).returncode == 0


def test_the_run_log_gives_steps_and_cost(tmp_path: Path) -> None:
    start = 1772359200.0
    rows = [
        {"step": i, "time": start + 2 * i + (0.4 * max(0, i - 750)), "step_time": 2.0 if i < 750 else 2.4, "loss": 2.0}
        for i in range(940)
    ]
    (tmp_path / "run.jsonl").write_text("\n".join(json.dumps(r) for r in rows))
    done = gdiag("thermal", str(telemetry(tmp_path)), "--run", "run.jsonl", "--format", "json", cwd=tmp_path)
    finding = next(f for f in json.loads(done.stdout)["findings"] if f["code"] == "GD601")
    assert abs(finding["where"]["step"] - 750) <= 3
    evidence = {m["name"]: m["value"] for m in finding["evidence"]}
    assert abs(evidence["step_time_effect"] - 20) < 1
    assert evidence["gpu_hours_lost"] > 0


def test_a_step_log_alone_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 2.0}\n')
    done = gdiag("thermal", "run.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert "holds no GPU telemetry" in done.stderr.decode()
