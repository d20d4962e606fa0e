"""The plateau bandwidth of a collective is below what the hardware reaches.

What it checks
    The plateau (median busbw from 1 GiB on, else of the three largest sizes) against measured values of the same GPU
    model and shape, against the network cards (`--nic-gbps`, GD702.nic_gbps), or against `--expect`. The printed average is
    never judged: it depends on the sizes chosen. A sweep that ends below 256 MiB is not judged.

Why it matters
    Every step waits for the slowest collective. A bandwidth at an eighth of NVLink is PCIe, at a twentieth TCP sockets, at a
    half one rail of two.

What to do
    Read the NCCL INFO lines for transport, channels and network; check NVLink and fabric manager, GPUDirect RDMA, the
    number of cards in use, and overrides such as NCCL_TOPO_FILE or NCCL_P2P_DISABLE.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from gdiag.analyzers.alike import Case, grouped
from gdiag.measures.bandwidth import Sweep
from gdiag.measures.fabric_limits import DEGRADED, HEALTHY, RING, Limit, Said, limit
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.fabrics import link_rate

CODE = "GD702"
NAME = "low-bandwidth"
NEEDS: tuple[str, ...] = ("collectives.busbw",)

_PATHS: Final = (
    (0.035, 0.075, "TCP sockets instead of the fabric"),
    (0.09, 0.16, "PCIe instead of NVLink"),
    (0.20, 0.30, "one of four rails"),
    (0.44, 0.56, "half of the rails or links"),
)
"""Share of the limit → the path it is typical of (hardware.md 2.3)."""


_SOCKETS: Final = 0.05
"""Sockets reach less than this share of NVLink's rate; hosts of eight A100 or later have cards that reach more."""


def analyze(
    run: RunView,
    *,
    ok: float = HEALTHY,
    bad: float = DEGRADED,
    nic_gbps: float = 0.0,
    expect: float = 0.0,
    hosts: int = 0,
) -> list[Finding]:
    """One finding per test run below `ok` of its limit: info for a healthy ring or above the floor, else warning.

    bad: share of the limit below which the wording says bad instead of degraded. nic_gbps: network cards of one host
    together. expect: plateau that is expected, GB/s. hosts: number of hosts, where the output does not list them.
    """
    said = Said(nic_gbps, expect, hosts)
    return grouped(_cases(run, said, ok, bad))


def _cases(run: RunView, said: Said, ok: float, bad: float) -> Iterator[Case]:
    for sweep in run.sweeps:
        held = limit(sweep, said)
        if held is None:
            if (found := _crippled(sweep)) is not None:
                yield sweep, (found[0],), -sweep.plateau, partial(_unheld, run, sweep, *found)
            elif sweep.hosts != 1 and _by_sockets(sweep):
                yield sweep, ("sockets",), -sweep.plateau, partial(_told, run, sweep)
        elif (share := sweep.plateau / held.value) < ok:
            yield sweep, (_is_ring(sweep, held, ok), _path(share)), -share, partial(_judge, run, sweep, held, ok, bad)


def _is_ring(sweep: Sweep, held: Limit, ok: float) -> bool:
    return held.ring is not None and held.ring < ok * held.value and abs(sweep.plateau / held.ring - 1) <= RING


def _path(share: float) -> str | None:
    return next((name for low, high, name in _PATHS if low <= share <= high), None)


def _judge(run: RunView, sweep: Sweep, held: Limit, ok: float, bad: float) -> Finding:
    share, ring = sweep.plateau / held.value, _is_ring(sweep, held, ok)
    severity = Severity.INFO if ring else Severity.WARNING
    word = (
        "the plateau of a healthy ring: the switch does not reduce (NVLS is not used)"
        if ring
        else "degraded"
        if share >= bad
        else "bad"
    )
    path = _path(share)
    text = (
        f"{_name(sweep)} reaches {sweep.plateau:.1f} GB/s, {share:.0%} of {held.value:.0f} GB/s ({held.source}): {word}"
    )
    if path and not ring:
        text += f", as {path} would"
    if _by_sockets(sweep) and not ring and sweep.hosts != 1:
        text += "; NCCL says that it uses TCP sockets"
    evidence = [
        Measure("busbw", round(sweep.plateau, 2), "GB/s", round(held.value, 1)),
        Measure("ratio", round(share, 3), "", ok),
    ]
    if path and not ring:
        evidence.append(Measure("path", path))
    return Finding(CODE, NAME, severity, text, run.where(sweep.place()), (*evidence, *_clues(sweep)))


def _crippled(sweep: Sweep) -> tuple[str, str] | None:
    """Without a limit only a path that NCCL itself says to be crippled is a finding: the path, and in words."""
    if sweep.hosts == 1 and (channels := sweep.fact("coll_channels")) is not None and int(channels) <= 2:
        topology = sweep.fact("topology_file")
        if topology or sweep.fact("p2p_disabled"):
            why = f"NCCL_TOPO_FILE is set to {topology}" if topology else "P2P is disabled"
            return "PCIe instead of NVLink", f"over {channels} channels while {why}: the direct links are not used"
    if _on_sockets(sweep):
        return "TCP sockets instead of the fabric", f"over TCP sockets between hosts of eight {sweep.model}"
    return None


def _unheld(run: RunView, sweep: Sweep, path: str, words: str) -> Finding:
    text = f"{_name(sweep)} reaches {sweep.plateau:.1f} GB/s {words}"
    evidence = (Measure("busbw", round(sweep.plateau, 2), "GB/s"), Measure("path", path))
    return Finding(CODE, NAME, Severity.WARNING, text, run.where(sweep.place()), (*evidence, *_clues(sweep)))


def _told(run: RunView, sweep: Sweep) -> Finding:
    """Sockets where nothing says that the hosts have more."""
    text = (
        f"{_name(sweep)} reaches {sweep.plateau:.3g} GB/s; NCCL says that it uses TCP sockets between hosts, "
        "not InfiniBand or RoCE"
    )
    evidence = (Measure("busbw", round(sweep.plateau, 2), "GB/s"), Measure("sockets", True))
    return Finding(CODE, NAME, Severity.INFO, text, run.where(sweep.place()), (*evidence, *_clues(sweep)))


def _by_sockets(sweep: Sweep) -> bool:
    """Whether NCCL's own lines say so: `Using network Socket`, or channels `via NET/Socket`."""
    return (sweep.fact("network") or "").startswith("Socket") or "NET/Socket" in (sweep.fact("transport") or "")


def _on_sockets(sweep: Sweep) -> bool:
    if sweep.hosts < 2 or not _by_sockets(sweep):
        return False
    rate = link_rate(sweep.model or "") or 0.0
    return rate >= 300 and (sweep.n or 0) >= 8 * sweep.hosts and sweep.plateau < _SOCKETS * rate


def _clues(sweep: Sweep) -> tuple[Measure, ...]:
    keys = (
        "network",
        "coll_channels",
        "nvls_channels",
        "topology_file",
        "p2p_disabled",
        "nvls_unavailable",
        "transport",
    )
    return tuple(Measure(key, value) for key in keys if (value := sweep.fact(key)) is not None)


def _name(sweep: Sweep) -> str:
    ranks = f" over {sweep.n} ranks" if sweep.n else ""
    return f"{sweep.collective or 'the collective'}{ranks}"
