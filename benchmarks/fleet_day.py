# ruff: noqa: T201
"""A day of a fleet's telemetry: 1,000 GPUs on 125 hosts, one sample every 10 s, 8.6 million rows, through gdiag.fleet.

    python -m benchmarks.fleet_day [--hosts 125] [--hours 24] [--workers 2]

Three faults are hidden in it: one GPU that throttles for heat from noon on, one host with a power brake for an hour, one GPU that
falls silent. Printed: seconds, peak memory of all processes together (RssAnon), what was found. Gate: 1,500 MB on two cores.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl

GATE = 1500.0
EVERY = 10
START = 1_772_323_200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=125)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        rows = sum(write(Path(folder), host, args.hours) for host in range(args.hosts))
        size = sum(p.stat().st_size for p in Path(folder).iterdir()) / 1e6
        print(f"{args.hosts} hosts, {rows:,} rows, {size:,.0f} MB written in {time.perf_counter() - began:.0f} s")
        watch = Memory()
        began = time.perf_counter()
        judge(folder, args.workers)
        print(
            f"{time.perf_counter() - began:.1f} s, peak {watch.stop():,.0f} MB of {GATE:,.0f} MB on {args.workers} processes"
        )


def judge(folder: str, workers: int) -> None:
    from gdiag.analyzers import ANALYZERS
    from gdiag.analyzers.selection import choose
    from gdiag.fleet.survey import survey
    from gdiag.pipeline import diagnose

    records, counted = survey([folder], workers=workers)
    report = diagnose(records, None, choose(ANALYZERS, ["GD403", "GD6"]), counted)
    for finding in report.findings:
        print(f"  {finding.code} {finding.severity.label}: {finding.message}")


def write(folder: Path, host: int, hours: float) -> int:
    """One host's nvidia-smi log of eight GPUs, with units, in local time; rows written."""
    rng = np.random.default_rng(host)
    ticks = int(hours * 3600 / EVERY)
    time_s = np.repeat(START + EVERY * np.arange(ticks), 8)
    gpu = np.tile(np.arange(8), ticks)
    n = len(gpu)
    temperature, power, clock, reasons = (
        60 + rng.integers(0, 6, n),
        640 + 8 * rng.standard_normal(n),
        np.full(n, 1980),
        np.zeros(n, dtype=int),
    )
    noon = time_s >= START + hours * 1800
    keep = np.ones(n, dtype=bool)
    if host == 3:
        hot = noon & (gpu == 5)
        temperature[hot], clock[hot], reasons[hot], power[hot] = 88, 1740, 0x20, 560
    if host == 7:
        braked = (time_s >= START + hours * 1200) & (time_s < START + hours * 1350)
        clock[braked], reasons[braked], power[braked] = 990, 0x88, 330
    if host == 11:
        keep = ~((gpu == 2) & (time_s >= START + hours * 3000))
    table = pl.DataFrame(
        {"t": time_s, "g": gpu, "temp": temperature, "p": power.round(2), "c": clock, "r": reasons}
    ).filter(pl.Series(keep))
    lines = table.select(
        pl.format(
            "{}.000, {}, NVIDIA H100 80GB HBM3, GPU-{}-{}, {}, {} W, 700.00 W, {} MHz, 1980 MHz, 98 %, 0, 0x{}",
            pl.from_epoch("t").dt.strftime("%Y/%m/%d %H:%M:%S"), "g", pl.lit(f"{host:04d}"), "g", "temp", "p", "c",
            pl.col("r").replace_strict({0: "0" * 16, 0x20: "0" * 14 + "20", 0x88: "0" * 14 + "88"}, return_dtype=pl.String),
        ).alias("line")
    )  # fmt: skip
    header = (
        "timestamp, index, name, uuid, temperature.gpu, power.draw [W], power.limit [W], clocks.current.sm [MHz], clocks.max.sm [MHz], "
        "utilization.gpu [%], ecc.errors.uncorrected.volatile.total, clocks_event_reasons.active"
    )
    (folder / f"smi_node-{host:03d}.csv").write_text(header + "\n" + "\n".join(lines["line"]) + "\n")
    return table.height


class Memory:
    """Peak of RssAnon over this process and its children, sampled every 50 ms."""

    def __init__(self) -> None:
        self.peak = 0.0
        self.base = _anonymous()
        self.going = True
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def stop(self) -> float:
        """End the watch and give the peak [MB]."""
        self.going = False
        self.thread.join()
        return self.peak

    def _watch(self) -> None:
        while self.going:
            self.peak = max(self.peak, _anonymous())
            time.sleep(0.05)


def _anonymous() -> float:
    total = 0.0
    for pid in ("self", *_children()):
        try:
            text = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        total += sum(float(line.split()[1]) for line in text.splitlines() if line.startswith("RssAnon"))
    return total / 1e3


def _children() -> list[str]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        try:
            found += (task / "children").read_text().split()
        except OSError:
            continue
    return found


if __name__ == "__main__":
    main()
