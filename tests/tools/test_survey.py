"""The survey's judgement: what was expected of a file against what came of it."""

from __future__ import annotations

import pytest

from tools.survey import UNNAMED, Outcome, judge

READ = Outcome("csv", 10, "", "read")
NAMED = Outcome("-", None, "", "refused", "x.txt is the inventory of a switch: it holds no counters")
UNKNOWN = Outcome("-", None, "", "refused", f"x.txt {UNNAMED}")
CRASHED = Outcome("-", None, "", "TRACEBACK")
CONDITION = "where gdiag supports the form; else one sentence that names the form"


@pytest.mark.parametrize(
    ("outcome", "expect", "rows", "why", "holds"),
    [
        (READ, "read", "10", "", "yes"),
        (READ, "read", "11", "", "NO: 11 rows expected"),
        (NAMED, "read", "", "a log", "NO: was refused"),
        (NAMED, "read", "", CONDITION, "holds (named)"),
        (UNKNOWN, "read", "", CONDITION, "NO: was refused without a name"),
        (UNKNOWN, "reference", "", "documentation", "yes"),
        (READ, "refuse", "", "", "NO: was read"),
        (CRASHED, "reference", "", "documentation", "NO: traceback"),
    ],
)
def test_judgement(outcome: Outcome, expect: str, rows: str, why: str, holds: str) -> None:
    assert judge(outcome, expect, rows, why) == holds
