"""A step line that stops before its first value is counted; headings and other lines are not."""

from __future__ import annotations

import polars as pl
import pytest

from gdiag.ingesters import cut_lines
from tests.ingesters.console_samples import FORMATS, WHOLE, losses, read

SAMPLES = {**FORMATS, "olmo": WHOLE["olmo"], "composer": WHOLE["composer"], "leading": WHOLE["leading"]}
PREFIXES = ("", "2026-01-02 03:04:05 - INFO - ", "[rank0]: ", "node-1 ")


CUT = 2468
"""A step whose digits stand nowhere else before it."""


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("last", [False, True])
def test_cut_before_the_first_value(name: str, prefix: str, last: bool) -> None:
    module, line = SAMPLES[name]
    prefix = prefix if name in FORMATS else ""
    lines = [prefix + line(i, v) for i, v in enumerate(losses(40), CUT - 20)]
    first = lines[20].split("\n")[0]
    end = first.index(str(CUT)) + len(str(CUT))
    for at in (end - 1, end):
        cut = [*lines[:20], first[:at], *([] if last else lines[21:])]
        reading = read(module, "\n".join(cut) + "\n" * (not last))
        assert reading.steps is not None
        assert CUT not in reading.steps["step"]
        assert reading.steps.height == (20 if last else 39)
        assert reading.rejects is not None
        assert reading.rejects["line"].to_list() == ["\n".join(lines[:20]).count("\n") + 2]
        assert reading.source.rejected == 1


@pytest.mark.parametrize(
    "heading", ["step {s}", "saved checkpoint at step {s}", "[rank3]: step {s} of evaluation", "2026-01-02 03:04:05"]
)
def test_headings_and_messages_are_no_cut_lines(heading: str) -> None:
    module, line = FORMATS["build-nanogpt"]
    lines = [text for i, v in enumerate(losses(40), 1) for text in (heading.format(s=i), line(i, v))]
    assert read(module, "\n".join(lines) + "\n").source.rejected == 0


def test_what_a_cut_line_holds_is_redacted() -> None:

    sample = "token=hf_abcdefghijklmnopqrst step 12 loss 3.4"
    rest = pl.DataFrame({"line": [7, 8], "text": [sample[:37].replace("12", "13"), "step 12"]})
    found = cut_lines.rejects(rest, 40, [sample], "step ")
    assert found["line"].to_list() == [7]
    assert "hf_" not in found["text"][0]
