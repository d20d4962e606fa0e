"""The form of every analyzer: what a newcomer may rely on without reading it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import cast, get_args

import pytest

from gdiag.analyzers import ANALYZERS
from gdiag.analyzers.analyzer import Analyzer
from gdiag.schema import KEYS, TABLES, Quantity
from tests.golden.comparing import matches

ROOT = Path(__file__).parent.parent.parent
SHARED = {"__init__", "alike", "analyzer", "selection"}
HEADINGS = ("What it checks", "Why it matters", "What to do")


def module_name(analyzer: Analyzer) -> str:
    return cast(ModuleType, analyzer).__name__.rpartition(".")[2]


def every(analyzers: tuple[Analyzer, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("analyzer", analyzers, ids=[a.CODE for a in analyzers])


def test_codes_and_names_are_unique_and_in_order() -> None:
    codes, names = [a.CODE for a in ANALYZERS], [a.NAME for a in ANALYZERS]
    assert codes == sorted(set(codes))
    assert len(set(names)) == len(names)


def test_every_module_that_judges_is_listed() -> None:
    listed = {module_name(a) for a in ANALYZERS}
    judging = {p.stem for p in (ROOT / "gdiag/analyzers").glob("*.py") if "\nCODE" in p.read_text()}
    assert judging == listed


@every(ANALYZERS)
def test_an_analyzer_has_a_code_of_a_known_family_and_its_modules_name(analyzer: Analyzer) -> None:
    assert re.fullmatch(r"GD[0-7]\d\d", analyzer.CODE)
    assert module_name(analyzer).replace("_", "-") == analyzer.NAME


@every(ANALYZERS)
def test_its_docstring_is_an_explanation(analyzer: Analyzer) -> None:
    text = inspect.cleandoc(analyzer.__doc__ or "")
    summary, blank, _ = text.split("\n", 2)
    assert summary.endswith(".")
    assert blank == ""
    places = [text.find(heading) for heading in HEADINGS]
    assert -1 not in places
    assert places == sorted(places)


VIEWS = {"nvlinks": "ports", "modules": "ports", "switches": "facts", "failures": "facts"}
"""Parts of a record table that a run shows apart."""


@every(ANALYZERS)
def test_its_needs_are_columns_that_exist(analyzer: Analyzer) -> None:
    for need in analyzer.NEEDS:
        for column in need.split("|"):
            table, _, name = column.partition(".")
            known = {*get_args(Quantity), *KEYS} if table == "layers" else {*TABLES[VIEWS.get(table, table)]}
            assert not name or name in known, column


@every(ANALYZERS)
def test_its_thresholds_are_keywords_with_plain_defaults(analyzer: Analyzer) -> None:
    first, *rest = inspect.signature(analyzer.analyze).parameters.values()
    assert first.name == "run"
    for parameter in rest:
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY, parameter
        assert isinstance(parameter.default, int | float | str | bool), parameter


def test_the_list_of_checks_in_the_docs_is_whole(request: pytest.FixtureRequest) -> None:
    lines = [
        "# Checks", "", "`gdiag explain CODE` prints the whole explanation of a check and its thresholds.", "",
        "| code | name | what it is | needs |", "|---|---|---|---|",
    ]  # fmt: skip
    for a in ANALYZERS:
        summary = (a.__doc__ or "").strip().partition("\n")[0]
        needs = ", ".join(f"`{need.replace('|', '` or `')}`" for need in a.NEEDS)
        lines.append(f"| {a.CODE} | {a.NAME} | {summary} | {needs} |")
    matches(request, ROOT / "docs" / "checks.md", "\n".join(lines) + "\n")
