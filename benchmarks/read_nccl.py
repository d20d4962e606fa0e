# ruff: noqa: T201
"""How fast sweep logs are read: nccl-tests tables against polars' own split and cast of the same rows.

The input is a concatenation of made sweeps of all versions. Baseline and reader take turns in one process; the median of
their ratios counts. Run from the repository:

    PYTHONPATH=. python benchmarks/read_nccl.py [MB] [ROUNDS]
"""

from __future__ import annotations

import resource
import statistics
import sys
import time

import polars as pl

from gdiag.ingesters import nccl_tests
from gdiag.ingesters.reading import Input, Options
from tests.ingesters.nccl_formats import Bench, Version, text

VERSIONS: tuple[Version, ...] = ("2.0", "2.13", "2.17", "2.19")
FIGURES = (6, 7, 8, 9, 10, 11)


def sweeps(megabytes: int) -> bytes:
    """Sweeps of all versions in turn, with a launcher's prefix in every fourth."""
    bench = Bench(sizes=tuple(1 << k for k in range(3, 35)))
    block = "".join(text(bench, version, prefix="" if i else "0: ") for i, version in enumerate(VERSIONS))
    return block.encode() * max(1, megabytes * 1_000_000 // len(block))


def baseline(content: bytes) -> int:
    """Rows of a file: split at line ends and blanks, two integers and six floats cast, nothing else looked at."""
    lines = pl.Series([content.decode()]).str.split("\n").explode(empty_as_null=False)
    cells = lines.filter(lines.str.contains("float", literal=True)).str.extract_all(r"\S+")
    columns = [cells.list.get(i, null_on_oob=True).cast(pl.Float64, strict=False) for i in (0, 1, *FIGURES)]
    return len(columns[0])


def read(content: bytes) -> int:
    """Rows as gdiag reads them."""
    reading = nccl_tests.read(Input("sweeps.txt", content[:65536], content=content), Options())
    assert reading.collectives is not None
    return reading.collectives.height // 2


def main() -> None:
    """Print rates, their ratios to the baseline and the peak of memory."""
    megabytes, rounds = (int(a) for a in (*sys.argv[1:3], *("50", "3")[len(sys.argv) - 1 :]))
    content = sweeps(megabytes)
    ratios, rates, clock = [], [], []
    for _ in range(rounds):
        times = []
        for call in (baseline, read):
            start = (time.process_time(), time.perf_counter())
            rows = call(content)
            times.append((time.process_time() - start[0], time.perf_counter() - start[1]))
        ratios.append(times[1][0] / times[0][0])
        clock.append(times[1][1] / times[0][1])
        rates.append([len(content) / 1e6 / seconds for seconds in times[1]])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    cpu, wall = (statistics.median(column) for column in zip(*rates, strict=True))
    print(f"{len(content) / 1e6:.0f} MB, {rows} rows: {cpu:.0f} MB per CPU second, {wall:.0f} MB/s by the clock")
    print(
        f"{statistics.median(ratios):.2f} times the split and cast's processor time, {statistics.median(clock):.2f} times its time"
    )
    print(f"peak memory {peak:.2f} GB")


if __name__ == "__main__":
    main()
