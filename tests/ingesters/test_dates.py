"""Dates are read in the order that all of them together tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdiag.ingesters import dates, load
from gdiag.schema import Records
from tests.ingesters.console_samples import losses

FORMS = {
    "year first": "%y/%m/%d",
    "month first": "%m/%d/%y",
    "day first": "%d/%m/%y",
    "month first, long": "%m/%d/%Y",
    "day first, long": "%d/%m/%Y",
}


def console(tmp_path: Path, form: str, start: datetime, hours: float) -> Records:
    lines = [
        f"{start + timedelta(hours=hours * i):{form} %H:%M:%S} INFO Trainer: step {i} | loss {v} | lr 0.001"
        for i, v in enumerate(losses(40), 1)
    ]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    return load([tmp_path / "run.log"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "start", [datetime(2025, 1, 5, tzinfo=UTC), datetime(2024, 12, 30, tzinfo=UTC), datetime(2020, 11, 8, tzinfo=UTC)]
)
def test_days_that_go_on_tell_the_order(tmp_path: Path, form: str, start: datetime) -> None:
    records = console(tmp_path, FORMS[form], start, 3)
    assert records.steps["time"].to_list() == [(start + timedelta(hours=3 * i)).timestamp() for i in range(1, 41)]
    assert not any("cannot be judged" in note for note in records.sources[0].notes)


@pytest.mark.parametrize(
    ("form", "day", "doubtful"),
    [
        ("%y/%m/%d", datetime(2025, 1, 5, tzinfo=UTC), False),
        ("%y/%m/%d", datetime(2020, 11, 5, tzinfo=UTC), False),
        ("%m/%d/%y", datetime(2025, 10, 25, tzinfo=UTC), False),
        ("%m/%d/%y", datetime(2025, 10, 11, tzinfo=UTC), True),
        ("%m/%d/%y", datetime(2025, 10, 10, tzinfo=UTC), False),
        ("%d/%m/%Y", datetime(2025, 10, 25, tzinfo=UTC), False),
        ("%m/%d/%Y", datetime(2025, 10, 11, tzinfo=UTC), True),
    ],
)
def test_one_day_is_told_by_what_it_can_be(tmp_path: Path, form: str, day: datetime, doubtful: bool) -> None:
    records = console(tmp_path, form, day, 0.1)
    assert records.steps["time"][0] == (day + timedelta(hours=0.1)).timestamp()
    notes = [note for note in records.sources[0].notes if "cannot be judged" in note]
    assert len(notes) == doubtful
    assert all("begin with the month" in note for note in notes)


@pytest.mark.parametrize("form", FORMS.values())
def test_dates_in_cells(tmp_path: Path, form: str) -> None:
    start = datetime(2025, 3, 28, tzinfo=UTC)
    rows = [f"{i},{start + timedelta(hours=5 * i):{form} %H:%M:%S},{v}" for i, v in enumerate(losses(40))]
    (tmp_path / "run.csv").write_text("step,timestamp,loss\n" + "\n".join(rows) + "\n")
    steps = load([tmp_path / "run.csv"]).steps
    assert steps["time"].to_list() == [(start + timedelta(hours=5 * i)).timestamp() for i in range(40)]


@given(
    st.sampled_from(list(FORMS.values())),
    st.dates(datetime(2016, 1, 1, tzinfo=UTC).date(), datetime(2030, 1, 1, tzinfo=UTC).date()),
    st.integers(14, 90),
)
def test_a_fortnight_and_more_always_tells(form: str, start: datetime, days: int) -> None:
    texts = pl.Series([f"{start + timedelta(days=i):{form}}" for i in range(days)])
    assert dates.order(texts, dates.LONG if "Y" in form else dates.SHORT) == (form, False)


def test_no_dates_are_taken_as_usual() -> None:
    assert dates.order(pl.Series([None, None], dtype=pl.String), dates.SHORT) == (dates.SHORT, False)
    assert dates.note(pl.Series(["step 1", "2025-01-02 03:04:05 step 2"])) == ()
