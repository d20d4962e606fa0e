# ruff: noqa: T201
"""Reading JSONL step logs against a bare `polars.read_ndjson(schema)`: time ratio and memory.

    python benchmarks/read_jsonl.py [--megabytes 200] [--rounds 5] [--cases narrow,ragged,wide,nan,damaged]

Every measurement is a process of its own, the reader and the baseline take turns, and the ratio is the median over rounds.
Memory is the peak of RssAnon (pages of the mapped file do not count). Gates: 1.6 for clean narrow, ragged and wide, 2.0 with NaN,
3.5 with damage; peak at most 300 MB + 2.5 times the Arrow size.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GATES = {"narrow": 1.6, "ragged": 1.6, "wide": 1.6, "nan": 2.0, "damaged": 3.5}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", default=",".join(GATES))
    parser.add_argument("--child", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(*args.child)
        return
    with tempfile.TemporaryDirectory() as folder:
        for case in args.cases.split(","):
            path = Path(folder) / f"{case}.jsonl"
            write(case, path, args.megabytes << 20)
            clean = path if case in ("narrow", "ragged", "wide") else Path(folder) / "narrow.jsonl"
            if not clean.exists():
                write("narrow", clean, args.megabytes << 20)
            measure(case, path, clean, args.rounds)


def measure(case: str, path: Path, clean: Path, rounds: int) -> None:
    ratios, effort, last = [], [], {}
    for _ in range(rounds):
        base = run("polars", clean)
        last = run("gdiag", path)
        ratios.append(last["seconds"] / base["seconds"])
        effort.append(last["cpu"] / base["cpu"])
    limit = 300 + 2.5 * last["arrow"]
    print(
        f"{case:8} {path.stat().st_size / 2**20:5.0f} MiB  gdiag/polars {statistics.median(ratios):.2f} "
        f"[{min(ratios):.2f}-{max(ratios):.2f}] (processor time {statistics.median(effort):.2f}) gate {GATES[case]}  "
        f"{last['seconds']:.2f} s  "
        f"peak {last['peak']:.0f} MB of {limit:.0f}  rows {last['rows']:.0f} rejects {last['rejects']:.0f}"
    )


def run(reader: str, path: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--child", reader, str(path)], capture_output=True, text=True, check=True
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def child(reader: str, file: str) -> None:
    import polars as pl

    import gdiag.ingesters

    before, used = time.perf_counter(), time.process_time()
    rejects = 0
    if reader == "polars":
        schema = dict.fromkeys((key for line in head(file) for key in json.loads(line)), pl.Float64())
        kinds = {k: histogram(pl) if k == "gradients/w" else v for k, v in schema.items()}
        before, used = time.perf_counter(), time.process_time()
        frame = pl.read_ndjson(file, schema=kinds)
        rows, arrow = frame.height, frame.estimated_size() / 1e6
    else:
        records = gdiag.ingesters.load([file])
        rows, arrow = records.steps.height, (records.steps.estimated_size() + records.layers.estimated_size()) / 1e6
        rejects = records.rejects.height
    seconds, cpu = time.perf_counter() - before, time.process_time() - used
    peak = next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    mapped = next(
        int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if "RssFile" in line
    )
    print(
        json.dumps(
            {
                "seconds": seconds,
                "cpu": cpu,
                "rows": rows,
                "arrow": arrow,
                "peak": (peak - mapped) / 1e3,
                "rejects": rejects,
            }
        )
    )


def histogram(pl):  # type: ignore[no-untyped-def]
    return pl.Struct({"_type": pl.String, "values": pl.List(pl.Float64), "bins": pl.List(pl.Float64)})


def head(file: str) -> list[str]:
    with Path(file).open() as lines:
        return [line for _, line in zip(range(3000), lines, strict=False)]


def write(case: str, path: Path, size: int) -> None:
    """A log of about `size` bytes."""
    rng = random.Random(0)
    with path.open("w") as out:
        step = written = 0
        while written < size:
            line = json.dumps(row(case, step, rng))
            if case == "damaged" and step % 33000 == 32999:
                line = (line[:40], line + line, "\0" * 40 + line)[step // 33000 % 3]
            written += out.write(line + "\n")
            step += 1
        if case == "damaged":
            out.write('{"step": 1, "lo')


def row(case: str, step: int, rng: random.Random) -> dict[str, object]:
    cells: dict[str, object] = {
        "step": step, "timestamp": 1.7e9 + step * 0.9, "loss": 2 + rng.random(), "grad_norm": rng.random(),
        "lr": 3e-4 * rng.random(), "step_time": 0.9 + rng.random() / 100, "data_time": rng.random() / 100, "epoch": step / 1e5,
        "tokens_per_s": 1e5 * rng.random(), "loss_scale": 65536, "param_norm": 300 + rng.random(), "memory": 7.5e10,
    }  # fmt: skip
    if case == "nan" and rng.random() < 0.5:
        cells["grad_norm"] = float("nan")
    if case == "ragged":
        cells |= {f"extra/{i}": rng.random() for i in range(40) if rng.random() < 0.5 and (i < 35 or step > 20000)}
        if step % 10 == 0:
            cells["gradients/w"] = {
                "_type": "histogram", "values": [rng.randrange(99) for _ in range(32)], "bins": [i / 16 - 1 for i in range(33)]
            }  # fmt: skip
    if case == "wide":
        cells |= {f"grad_norm/blocks.{i}.fc": rng.random() for i in range(1000)}
        cells |= {f"param_norm/blocks.{i}.fc": rng.random() for i in range(990)}
    return cells


if __name__ == "__main__":
    main()
