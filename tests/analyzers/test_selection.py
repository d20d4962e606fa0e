from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from gdiag.analyzers.analyzer import Analyzer
from gdiag.analyzers.selection import checked, choose, defaults
from gdiag.errors import UsageError
from gdiag.measures.run import RunView
from gdiag.model import Finding, Value


def judge(
    run: RunView, *, z: float = 6.0, window: int = 101, strict: bool = False, scale: str = "mad"
) -> list[Finding]:
    return []


def analyzer(code: str, name: str) -> Analyzer:
    return cast(Analyzer, SimpleNamespace(__doc__=None, CODE=code, NAME=name, NEEDS=(), analyze=judge))


HOUSE = [analyzer("GD101", "loss-not-finite"), analyzer("GD102", "loss-spike"), analyzer("GD201", "gradient-explosion")]


@pytest.mark.parametrize(
    ("select", "ignore", "codes"),
    [
        ([], [], ["GD101", "GD102", "GD201"]),
        (["GD1"], [], ["GD101", "GD102"]),
        (["loss-spike", "gd201"], [], ["GD102", "GD201"]),
        ([], ["GD1"], ["GD201"]),
        (["GD1"], ["loss-spike"], ["GD101"]),
    ],
)
def test_codes_beginnings_and_names_choose(select: list[str], ignore: list[str], codes: list[str]) -> None:
    assert [a.CODE for a in choose(HOUSE, select, ignore)] == codes


@pytest.mark.parametrize("name", ["GD7", "loss", "", "D1"])
def test_a_name_that_fits_nothing_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no check is called"):
        choose(HOUSE, [name])


def test_thresholds_are_the_keyword_parameters() -> None:
    assert defaults(HOUSE[0]) == {"z": 6.0, "window": 101, "strict": False, "scale": "mad"}


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [("z", "8", 8.0), ("z", 8, 8.0), ("window", "51", 51), ("strict", "TRUE", True), ("strict", False, False), ("scale", "iqr", "iqr")],
)  # fmt: skip
def test_a_value_takes_the_type_of_its_parameter(name: str, given: Value, value: Value) -> None:
    found = checked(HOUSE, {"loss-spike": {name: given}})["GD102"][name]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "given"),
    [("z", "high"), ("z", "nan"), ("z", True), ("window", "1.5"), ("strict", "1"), ("strict", 1.0), ("zz", "8")],
)
def test_a_value_of_another_type_and_an_unknown_threshold_are_refused(name: str, given: Value) -> None:
    with pytest.raises(UsageError, match="GD102"):
        checked(HOUSE, {"GD102": {name: given}})


def test_a_choice_that_leaves_no_check_is_refused() -> None:
    with pytest.raises(UsageError, match="leave no check"):
        choose(HOUSE, ["GD1"], ["GD"])
