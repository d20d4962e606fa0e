"""The driver or a switch reports an error: Xid and SXid lines of the kernel log.

What it checks
    Every Xid and SXid, grouped by code and GPU, with its meaning and class from NVIDIA's catalogue. Errors that a program
    makes (13, 31, 43, …) are told from errors of the machine (48, 64, 74, 79, 95, 119, …); 45 is the consequence of
    another; 154, 171 and 172 are details of one. An NVLink or switch error that calls itself non-fatal is a warning.

Why it matters
    It is the machine's own word. An uncorrectable memory error or a GPU that fell off the bus ends the job and may have
    damaged data before; a page fault in a kernel does not call for new hardware.

What to do
    See the action of each code. Watchdog time-outs of other ranks within minutes after it are its victims. Counts are lower
    bounds where the kernel suppressed repeats.
"""

from __future__ import annotations

import re
from dataclasses import replace

from gdiag.measures.machine_events import Reported
from gdiag.measures.run import RunView
from gdiag.model import Finding, Location, Measure, Severity
from gdiag.reference import gpus as reference
from gdiag.reference.figures import listed
from gdiag.reference.gpus import Xid

CODE = "GD404"
NAME = "xid"
NEEDS: tuple[str, ...] = ("events.kind",)

_DETAILS = (154, 171, 172)
_CONSEQUENCES = (43, 44, 45, 109)
"""Stopped and removed channels and context switches that time out: right after another error they are that one's."""
_IGNORABLE_NVLINK = (1 << 0) | (1 << 23) | (1 << 30)
"""Bits of Xid 74's first register that say nothing by themselves (NVIDIA's NVLink workflow)."""


def analyze(run: RunView, *, most: int = 50) -> list[Finding]:
    """A finding per code and GPU; most: findings at most."""
    groups = [g for g in run.reported if not (g.kind == "xid" and g.code in _DETAILS)]
    details = [g for g in run.reported if g.kind == "xid" and g.code in _DETAILS]
    return [_finding(run, group, details, groups) for group in groups[:most]]


def _finding(run: RunView, group: Reported, details: list[Reported], groups: list[Reported]) -> Finding:
    known = reference.xids().get(group.code) if group.kind == "xid" else None
    name = "Xid" if group.kind == "xid" else "SXid"
    who = (
        f"GPU {group.gpu}"
        if group.gpu is not None
        else f"the {'GPU' if group.kind == 'xid' else 'switch'} at {group.bus_id or 'an unknown place'}"
    )
    on = f" of {group.host}" if group.host else ""
    meaning = (
        known.meaning if known is not None else ("NVSwitch error" if group.kind == "sxid" else "not in the catalogue")
    )
    times = f", {group.count} times" if group.count > 1 else ""
    because = f", caused by Xid {group.caused_by}" if group.caused_by is not None else ""
    because += _around(group, groups)
    where = replace(_place(run, group), zone_known=group.zone_known)
    blamed = _blamed(group) or known
    hardware = blamed.hardware if blamed is not None else group.kind == "sxid"
    evidence = [
        Measure("xid" if group.kind == "xid" else "sxid", group.code),
        Measure("meaning", meaning), Measure("hardware", hardware), Measure("count", group.count),
        Measure("class", known.kind if known is not None else "unknown"),
        Measure("bus_id", group.bus_id or group.uuid or "not said"),
    ]  # fmt: skip
    if known is not None:
        evidence.append(Measure("action", known.action))
    if group.fatal is not None:
        evidence.append(Measure("fatal", group.fatal))
    if group.caused_by is not None:
        evidence.append(Measure("caused_by", group.caused_by))
    if group.follows is not None:
        evidence += [
            Measure("follows", group.follows.code),
            Measure("follows_on", group.follows.bus_id or group.follows.uuid or "not said"),
        ]
    evidence += [
        Measure("recovery_action", d.text.split("154, ")[-1][:120])
        for d in details
        if d.code == 154 and d.bus_id == group.bus_id
    ][:1]
    return Finding(
        CODE,
        NAME,
        _severity(group, known),
        f"{who}{on} reports {name} {group.code}{times}: {'non-fatal ' if group.fatal is False else ''}{meaning}{because}",
        where,
        tuple(evidence),
    )


def _blamed(group: Reported) -> Xid | None:
    """The error that this one is a consequence of: as its line says, else that which it came right after."""
    if group.caused_by is not None:
        return reference.xids().get(group.caused_by)
    if group.follows is not None and group.code in _CONSEQUENCES:
        return reference.xids().get(group.follows.code)
    return None


def _around(group: Reported, groups: list[Reported]) -> str:
    """What came right before, or what followed the first one."""
    if group.follows is not None:
        return f", right after Xid {group.follows.code}"
    after = sorted({g.code for g in groups if g.follows is not None and _same(g.follows, group)})
    return f"; Xid {listed(after)} follow{'s' if len(after) == 1 else ''} at once" if after else ""


def _same(one: Reported, other: Reported) -> bool:
    return (one.code, one.host, one.device) == (other.code, other.host, other.device)


def _place(run: RunView, group: Reported) -> Location:
    return run.where(
        group.row, step=group.step, host=group.host, gpu=group.gpu, time=group.time, last_time=group.last_time
    )


def _severity(group: Reported, known: Xid | None) -> Severity:
    if known is None:
        return Severity.CRITICAL if group.fatal else Severity.WARNING if group.kind == "sxid" else Severity.INFO
    blamed = _blamed(group)
    if group.follows is not None and group.code in _CONSEQUENCES:
        return min(Severity.WARNING, _by_class(group, known, None))
    return _by_class(group, known, blamed)


def _by_class(group: Reported, known: Xid, blamed: Xid | None) -> Severity:
    if known.kind == "follow-up" and blamed is not None:
        # The cause's own line may be lost with the rotated log: its consequence speaks for it.
        return Severity.CRITICAL if blamed.hardware else Severity.WARNING
    if known.kind == "nvlink":
        if group.fatal is False or (group.code == 74 and _only_ignorable(group.text)):
            return Severity.WARNING if group.fatal is False else Severity.INFO
        return Severity.CRITICAL
    if known.kind in ("contained", "reset", "reboot", "mechanical", "support"):
        return Severity.CRITICAL
    if group.code in (63, 92):
        return Severity.WARNING
    return Severity.WARNING if known.kind == "application" else Severity.INFO


def _only_ignorable(text: str) -> bool:
    registers = re.findall(r"0x[0-9a-fA-F]+", text.split("(", 2)[-1])
    bits = 0
    for register in registers:
        bits |= int(register, 16)
    return bool(registers) and bits != 0 and not bits & ~_IGNORABLE_NVLINK
