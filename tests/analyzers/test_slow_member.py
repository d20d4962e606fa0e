"""GD709: the host that all slow pairs have in common."""

from __future__ import annotations

from itertools import combinations

from gdiag.analyzers import slow_member
from gdiag.model import Finding
from tests.analyzers.made_benchmarks import view
from tests.ingesters.nccl_formats import Bench, text

HOSTS = ("a1", "b2", "c3", "d4")


def pairs(slow: dict[str, float]) -> list[str]:
    out = []
    for one, two in combinations(HOSTS, 2):
        peak = 190.0 * min(slow.get(one, 1.0), slow.get(two, 1.0))
        bench = Bench(ranks=16, hosts=2, peak=peak, sizes=tuple(1 << k for k in range(26, 33)))
        out.append(text(bench).replace("node-0", one).replace("node-1", two))
    return out


def judge(shares: dict[str, float], **limits: float) -> list[Finding]:
    return slow_member.analyze(view(*pairs(shares)), **limits)


def test_fires_on_the_common_member() -> None:
    (finding,) = judge({"c3": 0.5})
    assert finding.where.host == "c3"


def test_quiet_when_all_are_alike_or_two_are_slow() -> None:
    assert judge({}) == []
    assert judge({"a1": 0.5, "c3": 0.5}) == []


def test_threshold() -> None:
    assert judge({"c3": 0.93}) == []
    assert len(judge({"c3": 0.93}, slow=0.95)) == 1
