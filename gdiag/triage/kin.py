"""Pairs of findings of one check that tell of one event."""

from __future__ import annotations

from typing import Final

from gdiag.model import Finding

UNSAID: Final = "not said"
"""What stands for a device that a line of the driver does not name."""


def end_of(finding: Finding) -> int | None:
    """Last step of a finding, its only one where it has one."""
    return finding.where.last_step if finding.where.last_step is not None else finding.where.step


def followed(finding: Finding, first: Finding) -> bool:
    """Whether an Xid came right after `first`."""
    told = first.code == "GD404" and first.measure("xid") == finding.measure("follows")
    device = finding.measure("follows_on")
    same = first.measure("bus_id") == device and (device != UNSAID or first.where.gpu == finding.where.gpu)
    return told and same and first.where.host == finding.where.host


def same_rhythm(finding: Finding, other: Finding) -> bool:
    """Whether one period of slow steps is a multiple of the other's in the same stretch: every second pause is longer, or one is missed."""
    mine, theirs = finding.number("period"), other.number("period")
    if other.code != "GD503" or not mine or not theirs:
        return False
    ratio = max(mine, theirs) / min(mine, theirs)
    first, last = finding.where.step or 0, end_of(finding) or 0
    together = first <= (end_of(other) or 0) and (other.where.step or 0) <= last
    return together and abs(ratio - round(ratio)) <= WHOLE * ratio


WHOLE: Final = 0.02
"""How far from a whole number, in shares of it, the ratio of two periods may be."""
