from __future__ import annotations

from dataclasses import replace

import pytest

from gdiag.model import Report, Skip
from gdiag.renderers.markdown import render
from tests.renderers.reports import SPIKE


def test_every_incident_has_its_place_cause_evidence_and_actions() -> None:
    text = render(SPIKE)
    for wanted in (
        "# gdiag: 1 critical, 1 warning", "## Critical: Loss is NaN from step 900 on", "- **when:** step 267–271",
        "- **where:** layer blocks.0.fc · rank 3 · node-1 GPU 2 · samples 4272–4287", "- **cause:** **bad_batch**, high (0.81)",
        "  - for: recovers within 5 steps", "  - against: gradient rises 1 step before the loss",
        "1. skip samples 4272 to 4287 and go on", "| host | temperature °C |", "| node-1 | 71.5 |",
        "- not checked, no steps.rank: GD401",
    ):  # fmt: skip
        assert wanted in text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("<script>alert(1)</script>", "\\<script\\>alert(1)\\</script\\>"),
        ("[a](http://b)", "\\[a\\](http:<!-- -->//b)"),
        ("a|b", "a\\|b"),
        ("@someone #12", "@<!-- -->someone #<!-- -->12"),
        ("# big", "\\# big"),
        ("1. one", "1\\. one"),
        ("_x_ a_b", "\\_x\\_ a_b"),
        ("two\nlines\x1b[31m", "two\\\\nlines\\\\x1b\\[31m"),
    ],
)
def test_nothing_from_the_input_is_markup_link_or_mention(name: str, shown: str) -> None:
    wild = replace(SPIKE, advice=(name,), skipped=(Skip("GD401", name),))
    assert f"next time: {shown}\n" in render(wild)


def test_silence_says_what_it_rests_on() -> None:
    assert "Nothing found by 1 check." in render(Report(checked=("GD101",)))


def test_tables_alone_carry_no_verdict() -> None:
    text = render(replace(SPIKE, incidents=()), judged=False)
    assert text.startswith("# gdiag\n")
    assert "checked" not in text
