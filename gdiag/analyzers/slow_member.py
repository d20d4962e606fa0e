"""One host is in every slow pair of a pairwise sweep.

What it checks
    Several benchmarks of two or more hosts each: a host whose every sweep is below 90 % of the sweeps without it, while
    those agree with each other.

Why it matters
    One bad card or cable slows every job that the scheduler places on its host.

What to do
    Take the host out and repeat its pairs; check its port counters, cable, firmware and PCIe width.
"""

from __future__ import annotations

from gdiag.measures.bandwidth_compare import members
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD709"
NAME = "slow-member"
NEEDS: tuple[str, ...] = ("collectives.busbw", "devices.host")


def analyze(run: RunView, *, slow: float = 0.9) -> list[Finding]:
    """The slowest host, when every sweep with it is slow and no other host is as slow. slow: share of the others."""
    ranked = members(run.sweeps, slow)
    bad = [m for m in ranked if m.all_slow]
    if len(bad) != 1:
        return []
    host = bad[0]
    text = f"{host.host} is in every slow sweep: its {host.sweeps} sweeps reach {host.share:.0%} of those without it"
    sweep = next(s for s in run.sweeps if host.host in s.host_names)
    evidence = (Measure("ratio", round(host.share, 3), "", slow), Measure("sweeps", host.sweeps, ""))
    return [Finding(CODE, NAME, Severity.WARNING, text, run.where(sweep.place(), host=host.host), evidence)]
