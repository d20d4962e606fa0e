"""What a sweep could reach: limits from GPU model, hosts and network cards, and which of them a figure matches.

Bandwidth bounds per hardware.md 2.1: with B the rate of all network cards of a host, k hosts, n ranks and g = n/k ranks a
host, a ring collective is bound by B, a tree or NVLS-tree all_reduce by B·k(n-1)/(n(k-1)), alltoall by B/g·(n-1)/(n-g).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from gdiag.measures.bandwidth import JUDGED_FROM, Sweep
from gdiag.measures.bandwidth_curves import PLATEAU_FROM
from gdiag.reference.fabrics import Fabric, alike, expected, matching_nics, platform_rate, switched_rate

PRACTICAL = 0.97
"""Share of the cards' nominal rate that nccl-tests reaches at best: 24 of 25, 48.5 of 50 GB/s."""
EFA = 0.88
"""The same for EFA: healthy p4d hosts reach 43.8 of 50 GB/s (hardware.md 2.2)."""
RING_SHARE = 0.75
"""Share of NVLink that a healthy ring reaches at least: 226 of 300 GB/s (A100 alltoall), 361 of 450 (H200 all_gather)."""
_RINGS = frozenset({"all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce"})
HEALTHY = 0.9
DEGRADED = 0.75
"""Shares of the limit: healthy from 90 %, degraded from 75 %, bad below (hardware.md 2.3)."""
RING = 0.07
"""A plateau this near to the ring's value is a healthy ring."""
SHORT_SWEEP = 0.82
"""A sweep that ends at 256 MiB reaches about this share of the plateau (H200: 402 of 480 GB/s at 128 MiB)."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What a sweep is held against; GB/s."""

    value: float
    """Healthy plateau bus bandwidth."""
    ring: float | None
    """Healthy plateau when the switch does not reduce (NVLS off)."""
    legal: float | None
    """Highest bandwidth that the hardware allows at all; None when unknown."""
    source: str
    verified: bool = True


class Said(NamedTuple):
    """What the user says about the fabric; 0 = nothing."""

    nic_gbps: float = 0.0
    """Rate of all network cards of one host together [Gb/s]."""
    expect: float = 0.0
    """Plateau that is expected [GB/s]; wins over every table."""
    hosts: int = 0
    """Number of hosts, where the output does not list them."""


UNSAID = Said()


class _Shape(NamedTuple):
    """What the limit of a test run hangs on: of hundreds of thousands of runs there are few shapes."""

    collective: str
    ranks: int
    hosts: int
    """0 where they are not known."""
    model: str
    share: float
    """Of the plateau that a sweep reaches which ends where this one does."""
    platform: str
    ib_devices: str
    nic_speed: str


def limit(sweep: Sweep, said: Said = UNSAID) -> Limit | None:
    """The limit of a sweep, None when nothing says it; every check of a log asks for it anew."""
    known = sweep.table.told.setdefault(said, {})
    if sweep.number not in known:
        known[sweep.number] = _found(sweep, said)
    held: Limit | None = known[sweep.number]
    return held


def _found(sweep: Sweep, said: Said) -> Limit | None:
    if said.expect > 0:
        return Limit(said.expect, None, None, "--expect")
    ranks, hosts = sweep.n, sweep.hosts or said.hosts
    if ranks is None or ranks < 2 or sweep.largest < JUDGED_FROM:
        return None
    told = [sweep.fact(key) or "" for key in ("platform", "ib_devices", "nic_speed")] if hosts > 1 else [""] * 3
    share = 1.0 if sweep.largest >= PLATEAU_FROM else SHORT_SWEEP
    return _limit(_Shape(sweep.collective or "", ranks, hosts, sweep.model or "", share, *told), said.nic_gbps)


@lru_cache(4096)
def _limit(shape: _Shape, nic_gbps: float) -> Limit | None:
    hosts = shape.hosts
    if hosts > 1:
        rate, source, practical = (nic_gbps / 8, "network cards", PRACTICAL) if nic_gbps > 0 else _cards(shape)
        if rate > 0:
            return _network(shape, rate, source, practical)
    row = expected(shape.model, shape.ranks, max(hosts, 1), shape.collective) if hosts else None
    if row is None or row.plateau is None or (hosts > 1 and row.hosts == 1):
        return _ring(shape) if hosts == 1 else None
    return _node(row, shape.share)


def _node(row: Fabric, share: float) -> Limit:
    ring = row.ring * share if row.ring is not None else None
    assert row.plateau is not None
    return Limit(row.plateau * share, ring, 1.12 * row.nvlink, f"{row.model}: {row.source}", row.verified)


def _ring(shape: _Shape) -> Limit | None:
    """What a ring over a switch reaches where nobody measured this shape; fewer than four GPUs may be wired otherwise."""
    rate = switched_rate(shape.model)
    if rate is None or not 4 <= shape.ranks <= 8 or shape.collective not in _RINGS:
        return None
    value = RING_SHARE * rate * shape.share
    return Limit(value, None, 1.12 * rate, f"a ring over {rate:.0f} GB/s of NVLink", verified=False)


def _cards(shape: _Shape) -> tuple[float, str, float]:
    """Rate of the cards of one host [GB/s] as NCCL's own lines tell it, how, and the share of it that is reached.

    A GPU drives one card, so fewer ranks of a host than cards cannot use them all.
    """
    each = shape.ranks / shape.hosts
    if each >= 8 and (gbps := platform_rate(shape.platform)):
        return gbps / 8, f"network cards of {shape.platform}", EFA
    names, speed = shape.ib_devices, shape.nic_speed
    count = names.count("[") - names.count("[RO")
    if count < 1 or not speed.isdigit():
        return 0.0, "", PRACTICAL
    used = min(count, max(1, int(each)))
    return used * int(speed) / 8e3, f"network cards, {used}×{int(speed) // 1000} Gb/s in NCCL's lines,", PRACTICAL


def _network(shape: _Shape, rate: float, source: str, practical: float) -> Limit | None:
    ranks, hosts = shape.ranks, shape.hosts
    each = ranks / hosts
    if shape.collective == "all_reduce":
        tree = hosts * (ranks - 1) / (ranks * (hosts - 1))
        return Limit(rate * practical, None, rate * tree, f"{rate:.0f} GB/s of {source} per host")
    if shape.collective == "alltoall":
        bound = rate / each * (ranks - 1) / (ranks - each)
        return Limit(bound * practical, None, bound, f"{rate / each:.1f} GB/s of {source} per rank")
    if shape.collective == "sendrecv":
        return Limit(rate / each * practical, None, rate, f"{rate / each:.1f} GB/s of {source} per rank")
    return Limit(rate * practical, None, rate, f"{rate:.0f} GB/s of {source} per host")


def matches(sweep: Sweep) -> str | None:
    """What the plateau fits: of several hosts the usual set of network cards, ring or tree; of unnamed GPUs their model."""
    ranks, hosts = sweep.n, sweep.hosts
    if not ranks or sweep.plateau <= 0:
        return None
    if not hosts:
        several = ranks >= 16 and sweep.collective not in {"alltoall", "sendrecv"}
        unnamed = sweep.model is None or "Graphics Device" in sweep.model
        known = alike(ranks, sweep.collective or "", sweep.plateau) if unnamed else None
        return known or (matching_nics(sweep.plateau) if several else None)
    if hosts < 2:
        return None
    ring = matching_nics(sweep.plateau)
    if ring or sweep.collective != "all_reduce":
        return ring
    tree = matching_nics(sweep.plateau / (hosts * (ranks - 1) / (ranks * (hosts - 1))))
    return f"{tree} (tree)" if tree else None
