from __future__ import annotations

from pathlib import Path

from gdiag.triage.about import about, causes
from tests.cli.conftest import Run


def test_a_cause_is_explained_with_shares_evidence_and_actions(run: Run, tmp_path: Path) -> None:
    text = run("explain", "bad_batch").stdout.decode()
    for wanted in ("single_spike", "Evidence", "data", "Would decide", "What to do"):
        assert wanted in text


def test_every_cause_can_be_explained() -> None:
    for cause in causes():
        card = about(cause)
        assert card.actions, cause
        assert all(plus >= 0 >= minus for _, plus, minus in card.families)


def test_an_unknown_name_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("explain", "GD999")
    assert done.returncode == 2
    assert b"GD999" in done.stderr


def test_the_list_shows_every_cause(run: Run, tmp_path: Path) -> None:
    text = run("list").stdout.decode()
    assert set(causes()) <= set(text.split())
