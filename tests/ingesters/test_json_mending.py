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


def test_numbers_between_two_damages_are_in_no_row(tmp_path: Path) -> None:
    text = at(at(json.dumps(COLUMNS), "3.58, 3.56", "#"), "3.0,", "#,")
    records = read(tmp_path, text)
    assert records.steps["loss"].to_list() == [None if 21 <= i <= 50 else 4 - i / 50 for i in range(100)]
    assert records.rejects["text"].to_list()[-1] == "27 of loss"


def test_a_number_that_became_two_is_no_reason_to_shift(tmp_path: Path) -> None:
    records = read(tmp_path, at(at(json.dumps(COLUMNS), "3.58", "3,58"), "3.2", "#"))
    assert "loss" not in records.steps.columns or records.steps["loss"].count() == 0
    assert records.rejects["text"].to_list()[-1] == "100 of loss"


@pytest.mark.parametrize("even", [True, False])
def test_steps_that_damage_took_away(tmp_path: Path, even: bool) -> None:
    steps = [i if even else i * i for i in range(100)]
    document = {"loss": [4 - i / 50 for i in range(100)], "step": steps}
    records = read(tmp_path, at(json.dumps(document), f" {steps[50]},", " #,"))
    assert records.steps["step"].to_list() == [step for i, step in enumerate(steps) if even or i != 50]
    assert records.steps.filter(step=steps[51])["loss"].to_list() == [4 - 51 / 50]


def test_damage_in_every_list_leaves_what_stands_before_it(tmp_path: Path) -> None:
    document = {"step": [*range(100)], "loss": [4 - i / 50 for i in range(100)]}
    records = read(tmp_path, at(at(json.dumps(document), " 70, 71,", " #,"), "3.58, 3.56", "#"))
    assert records.steps["loss"].drop_nulls().to_list() == [4 - i / 50 for i in range(21)]
    assert records.steps.drop_nulls("loss")["step"].to_list() == [*range(21)]


@pytest.mark.parametrize("lost", ["], ", '], "', '"'])
def test_a_list_that_lost_its_end_takes_nothing_from_the_next(tmp_path: Path, lost: str) -> None:
    text = json.dumps(COLUMNS)
    end = text.index('], "lr"')
    records = read(tmp_path, text[:end] + text[end:].replace(lost, " ", 1))
    assert set(records.steps["loss"].drop_nulls().to_list()) <= {4 - i / 50 for i in range(100)}


def test_lists_of_other_lengths_are_said_to_be_left_out(tmp_path: Path) -> None:
    records = read(tmp_path, json.dumps({**COLUMNS, "val_loss": [2.0] * 10}))
    assert "left out, for nothing tells which rows their values belong to: val_loss (10)" in records.sources[0].notes


def test_a_cut_of_the_last_list(tmp_path: Path) -> None:
    text = json.dumps(COLUMNS)
    records = read(tmp_path, text[:-100])
    assert records.steps["loss"].to_list() == COLUMNS["loss"]
    assert 0 < records.steps["lr"].count() < 100


@given(
    places=st.lists(st.integers(0, 2400), min_size=1, max_size=6), length=st.integers(1, 30), more=st.integers(0, 12),
    indent=st.sampled_from([None, 1]), lr=st.booleans(),
)  # fmt: skip
def test_no_damage_shifts_a_column(
    tmp_path_factory: pytest.TempPathFactory, places: list[int], length: int, more: int, indent: int | None, lr: bool
) -> None:
    columns = {"step": [*range(1000, 1100)], "loss": [4 - i / 50 for i in range(100)]}
    text = json.dumps({**columns, "lr": [1 - i / 1000 for i in range(100)]} if lr else columns, indent=indent)
    for place in sorted(places, reverse=True):
        text = text[:place] + "#" * length + text[place + length + more :]
    with suppress(InputError):
        steps = read(tmp_path_factory.mktemp("x"), text).steps
        for metric, slope in (("loss", 50), ("lr", 1000)):
            if metric in steps.columns and steps["step"].min() == 1000:
                for step, value in steps.select("step", metric).drop_nulls().iter_rows():
                    assert value == (4 if metric == "loss" else 1) - (step - 1000) / slope


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
