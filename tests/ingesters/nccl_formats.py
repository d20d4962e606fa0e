"""Prints nccl-tests and rccl-tests output the way each version did: look-alikes for the parser's tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

Version = Literal["1.0", "2.0", "2.13", "2.17", "2.19", "rccl"]


@dataclass(frozen=True)
class Bench:
    """One benchmark run of a modelled fabric."""

    collective: str = "all_reduce"
    ranks: int = 8
    hosts: int = 1
    peak: float = 200.0
    """Plateau bus bandwidth, GB/s."""
    latency: float = 20.0
    """µs."""
    sizes: tuple[int, ...] = tuple(1 << k for k in range(3, 31, 3))
    model: str = "NVIDIA H100 80GB HBM3"
    wrong: int = 0

    @property
    def factor(self) -> float:
        """busbw / algbw."""
        n = self.ranks
        return {
            "all_reduce": 2 * (n - 1) / n, "all_gather": (n - 1) / n, "reduce_scatter": (n - 1) / n,
            "alltoall": (n - 1) / n, "broadcast": 1.0, "reduce": 1.0, "sendrecv": 1.0,
        }[self.collective]  # fmt: skip

    def cells(self, size: int, *, slower: float = 1.0) -> tuple[float, float, float]:
        """time [µs], algbw, busbw [GB/s]."""
        time = (self.latency + size * self.factor / self.peak / 1e3) * slower
        algbw = size / time / 1e3
        return time, algbw, algbw * self.factor


def columns(bench: Bench) -> tuple[str, str]:
    """redop and root as the unified format prints them."""
    redop = "sum" if bench.collective in {"all_reduce", "reduce_scatter", "reduce"} else "none"
    return redop, "0" if bench.collective in {"broadcast", "reduce"} else "-1"


def text(
    bench: Bench, version: Version = "2.19", *, prefix: str = "", stamps: bool = False, per_iteration: bool = False,
    cycles: int = 1, in_place_only: bool = False, validation: bool = True, footer: bool = True, breaks: str = "",
) -> str:  # fmt: skip
    """The whole output as a string, every line with `prefix`, and `breaks` where the program prints in several calls."""
    lines = [
        *_preamble(bench, version),
        *_header(bench, version, per_iteration=per_iteration, in_place_only=in_place_only),
    ]
    total: list[float] = []
    for cycle in range(cycles):
        for size in bench.sizes:
            sides = [bench.cells(size, slower=1 + 0.001 * cycle), bench.cells(size, slower=1.01)]
            lines.append(_row(bench, version, size, sides, stamps, per_iteration, in_place_only, validation, breaks))
            total += [busbw for _, _, busbw in sides]
    if footer:
        hash_ = "" if version == "1.0" else "#"
        lines += [f"{hash_} Out of bounds values : {1 if bench.wrong else 0} {'FAILED' if bench.wrong else 'OK'}",
                  f"{hash_} Avg bus bandwidth    : {sum(total) / len(total):g} ", hash_]  # fmt: skip
    return "".join(f"{prefix}{line}\n" for line in lines)


def _preamble(bench: Bench, version: Version) -> list[str]:
    span = f"minBytes {bench.sizes[0]} maxBytes {bench.sizes[-1]} step: 2(factor) warmup iters: 5 iters: 20"
    each = bench.ranks // bench.hosts
    ranks = [(r, f"node-{r // each}", r % each) for r in range(bench.ranks)]
    if version == "1.0":
        return [
            f"nThread 1 nGpus {each} {span} validation: 1 ", "# NCCL Tests compiled with NCCL 2.2", "# Using devices",
            *(f"#   Rank {r:2d} on {h:>10s} device {g:2d} [0x{g + 6:02x}] {bench.model}" for r, h, g in ranks), "",
        ]  # fmt: skip
    first: list[str] = []
    if version == "rccl":
        first = ["rccl-tests: Version abc1234"]
    if version == "2.19":
        first = ["# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809",
                 f"# Collective test starting: {bench.collective}_perf"]  # fmt: skip
    tail = "" if version == "2.0" else " agg iters: 1 validation: 1 graph: 0"
    group = "" if version in {"2.0", "rccl"} else " Group  0"
    return [
        *first, f"# nThread 1 nGpus {each} {span}{tail or ' validation: 1 '}", "#", "# Using devices",
        *(f"#  Rank {r:2d}{group} Pid {4000 + r:6d} on {h:>10s} device {g:2d} [0000:{g + 16:02x}:00] {bench.model}" for r, h, g in ranks),
        "#",
    ]  # fmt: skip


def _header(bench: Bench, version: Version, *, per_iteration: bool, in_place_only: bool) -> list[str]:
    side = "   time   algbw   busbw #wrong" + ("  i_min  i_max  i_p99  i_cv%" if per_iteration else "")
    if version == "1.0":
        return [f"#{'out-of-place':>50s}{'in-place':>32s}",
                "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res"]  # fmt: skip
    middle = "type   redop    root"
    if version == "2.0":
        redop, _ = columns(bench)
        middle = "type   redop" if redop != "none" else "type   root" if bench.collective == "broadcast" else "type"
    sides = side if in_place_only and version == "rccl" else side + side
    above = "in-place" if in_place_only and version == "rccl" else "out-of-place                       in-place"
    return [f"#{above:>90s}", f"#       size         count      {middle} {sides}", "#        (B)    (elements)"]


def _row(
    bench: Bench, version: Version, size: int, sides: list[tuple[float, float, float]], stamps: bool, per_iteration: bool,
    in_place_only: bool, validation: bool, breaks: str,
) -> str:  # fmt: skip
    redop, root = columns(bench)
    if version == "1.0":
        head = f"{size:12d}  {size // 4:12d}   float  {redop if redop != 'none' else '':>6s}"
        return head + "".join(f"{breaks}  {t / 1e3:7.3f}  {a:5.2f}  {b:5.2f}  {0:7.0e}" for t, a, b in sides) + breaks
    middle = f"{redop:>6s}  {root:>6s}"
    if version == "2.0":
        middle = f"{redop:>6s}" if redop != "none" else f"{root:>6s}" if bench.collective == "broadcast" else ""
    row = f"{size:12d}  {size // 4:12d}  {'float':>8s}  {middle}"
    wrong = f"{bench.wrong}" if validation else "N/A"
    wrong = "0e+00" if version == "2.0" and validation else wrong
    cells = [f"  {t:7.2f} {a:7.2f} {b:7.2f} {wrong:>6s}" for t, a, b in sides]
    if per_iteration:
        cells = [
            c + f" {t * 0.98:6.1f} {t * 1.05:6.1f} {t * 1.04:6.1f} {1.5:6.2f}"
            for c, (t, _, _) in zip(cells, sides, strict=True)
        ]
    if in_place_only:
        cells = [" " * len(cells[0]) if version != "rccl" else "", cells[1]]
    return (
        row
        + "".join(breaks + c for c in cells)
        + (breaks if not stamps else "")
        + ("  2026-03-01 10:20:30" if stamps else "")
    )


def document(bench: Bench) -> str:
    """JSON version 3 as `-J` writes it, with an environment that must never be shown."""
    results = []
    for size in bench.sizes:
        time, algbw, busbw = bench.cells(size)
        side = {"time": time, "alg_bw": algbw, "bus_bw": busbw, "nwrong": float(bench.wrong)}
        results.append({"size": size, "count": size // 4, "type": "float", "redop": "sum", "root": "    -1",
                        "out_of_place": side, "in_place": side})  # fmt: skip
    devices = [{"rank": 0, "group": 0, "pid": 1, "hostname": "node-0", "device": 0, "device_hex": "0000:19:00",
                "device_info": bench.model}]  # fmt: skip
    whole = {
        "version": 3, "args": [f"./build/{bench.collective}_perf", "-J", "x.json"], "env": ["API_TOKEN=do-not-show"],
        "nccl_version": 22809, "config": {"nthreads": 1, "ngpus": bench.ranks, "validation": 1, "devices": devices},
        "results": results, "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": 100.0, "okay": "unchecked"}, "errors": [""],
    }  # fmt: skip
    return json.dumps(whole)
