"""JSON documents with damage inside them: what stands before and behind it is read."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import json_mending, load
from gdiag.schema import Records

ROWS = [{"step": i, "loss": 4 - i / 50} for i in range(100)]
COLUMNS = {"step": [*range(100)], "loss": [4 - i / 50 for i in range(100)], "lr": [1e-3] * 100}
DAMAGE = ("#@!", "\0\0\0\0", "4.1.2", "}", '"', "1 2", "")


def read(folder: Path, text: str, name: str = "log.json") -> Records:
    (folder / name).write_text(text)
    return load([folder / name])


def at(text: str, what: str, instead: str) -> str:
    """The text with something instead of the first `what`."""
    assert what in text
    return text.replace(what, instead, 1)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("document", [ROWS, {"config": {"seed": 1}, "rows": ROWS}], ids=["list", "inside"])
def test_a_damaged_row_costs_that_row(tmp_path: Path, document: object, indent: int | None) -> None:
    records = read(tmp_path, at(json.dumps(document, indent=indent), '"step": 40', "#@: 40"))
    assert records.steps["step"].to_list() == [*range(40), *range(41, 100)]
    assert "damaged row" in records.rejects["reason"][0]
    assert records.rejects.height == 1


@pytest.mark.parametrize("indent", [None, 1])
def test_a_damaged_number_costs_that_number(tmp_path: Path, indent: int | None) -> None:
    records = read(tmp_path, at(json.dumps(COLUMNS, indent=indent), "3.58", "3.#8"))
    assert records.steps["loss"].to_list() == [None if i == 21 else 4 - i / 50 for i in range(100)]
    assert records.steps["lr"].to_list() == [1e-3] * 100
    assert records.rejects.height == 1


def test_lost_numbers_leave_the_others_at_their_steps(tmp_path: Path) -> None:
    text = json.dumps(COLUMNS)
    start = text.index("3.58")
    records = read(tmp_path, text[: start + 2] + "\0" + text[text.index("3.48") + 3 :])
    assert records.steps["loss"].to_list() == [None if 21 <= i <= 26 else 4 - i / 50 for i in range(100)]


def test_words_of_python_are_no_damage(tmp_path: Path) -> None:
    document = {"step": [0, 1, 2, 3, 4, 5], "loss": [1.0, float("nan"), float("inf"), -float("inf"), None, 2.0]}
    records = read(tmp_path, str(document).replace("'", '"'))
    assert str(records.steps["loss"].to_list()) == "[1.0, nan, inf, -inf, None, 2.0]"
    assert records.rejects.height == 0


@pytest.mark.parametrize("cut", [0, 500])
def test_columns_one_level_below(tmp_path: Path, cut: int) -> None:
    text = json.dumps({"params": {"epochs": 100}, "history": COLUMNS})
    records = read(tmp_path, text[: len(text) - cut])
    assert records.steps["loss"].to_list() == [4 - i / 50 for i in range(100)]


def test_a_trainer_state_with_a_damaged_entry(tmp_path: Path) -> None:
    text = json.dumps({"global_step": 99, "log_history": ROWS}, indent=2)
    records = read(tmp_path, at(text, '"step": 40', '"st#ep: 40'), "trainer_state.json")
    assert records.steps["step"].to_list() == [*range(40), *range(41, 100)]
    assert records.rejects.height == 1


@given(
    place=st.integers(20, 2600), damage=st.sampled_from(DAMAGE), length=st.integers(0, 12), indent=st.sampled_from([None, 1])
)  # fmt: skip
def test_damage_anywhere_never_raises(
    tmp_path_factory: pytest.TempPathFactory, place: int, damage: str, length: int, indent: int | None
) -> None:
    for document in (ROWS, COLUMNS):
        text = json.dumps(document, indent=indent)
        with suppress(InputError):
            read(tmp_path_factory.mktemp("x"), text[:place] + damage + text[place + length :])


@given(place=st.integers(30, 2600), damage=st.sampled_from(["#@!", "\0\0", "§"]))
def test_one_damaged_row_costs_at_most_itself_and_a_neighbour(place: int, damage: str) -> None:
    text = json.dumps(ROWS)
    found = json_mending.mended(text[:place] + damage + text[place + len(damage) :])
    if found is not None:
        assert isinstance(found[0], list)
        assert sum(row in ROWS for row in found[0]) >= 97
