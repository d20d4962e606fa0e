from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from gdiag.model import Report, Run, Skip, Table
from gdiag.renderers.html import render
from tests.renderers.reports import SPIKE

_VOID = {"meta", "br"}


class Page(HTMLParser):
    """Text and attributes of a page; every element must be closed in its order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def test_every_incident_has_its_place_cause_evidence_and_actions() -> None:
    text = Page(render(SPIKE)).text
    for wanted in (
        "1 critical, 1 warning", "Loss is NaN from step 900 on", "step 267–271",
        "layer blocks.0.fc · rank 3 · node-1 GPU 2 · samples 4272–4287", "bad_batch", "0.81",
        "recovers within 5 steps", "gradient rises 1 step before the loss", "skip samples 4272 to 4287 and go on",
        "temperature °C", "71.5", "no steps.rank: GD401", "loss averaged over 4 steps", "peak excess 3.1 nat (limit 0.2)",
    ):  # fmt: skip
        assert wanted in text


def test_the_page_loads_nothing_and_every_link_stays_inside_it() -> None:
    page = Page(render(SPIKE))
    targets = {value for _, name, value in page.attributes if name == "id"}
    links = {value.removeprefix("#") for _, name, value in page.attributes if name == "href"}
    assert links <= targets
    assert not any(name in {"src", "srcset", "data", "action", "xlink:href"} for _, name, _ in page.attributes)
    assert "default-src 'none'" in render(SPIKE)


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&lt;b&gt;", "'onclick='x", "a\x1b[31m\u202eb"],
)
def test_nothing_from_the_input_is_markup(name: str) -> None:
    wild = replace(
        SPIKE, advice=(name,), skipped=(Skip("GD401", name),), runs=(Run(name), Run("run")),
        incidents=tuple(replace(i, title=name, layer=name, actions=(name,)) for i in SPIKE.incidents),
        tables=tuple(replace(t, title=name, rows=((name, 1.0),)) for t in SPIKE.tables),
        series=tuple(replace(s, run=name, layer=name) for s in SPIKE.series),
        sources=tuple(replace(s, path=name, notes=(name,), columns={"loss": name}) for s in SPIKE.sources),
    )  # fmt: skip
    before, after = Page(render(SPIKE)), Page(render(wild))
    assert {(tag, key) for tag, key, _ in after.attributes} <= {(tag, key) for tag, key, _ in before.attributes}
    assert "\x1b" not in after.text
    assert "\u202e" not in after.text


def test_the_curve_of_an_incident_is_cut_around_it_and_shades_it() -> None:
    text = render(SPIKE)
    assert text.count("<svg") == 3
    assert 'class="band warning"' in text


def test_silence_says_what_it_rests_on() -> None:
    assert "Nothing found by 1 check." in Page(render(Report(checked=("GD101",)))).text


def test_tables_alone_carry_no_verdict() -> None:
    text = Page(render(replace(SPIKE, incidents=()), judged=False)).text
    assert "Checked" not in text
    assert "critical" not in text


def test_a_long_table_is_cut_and_counted() -> None:
    long = Table("many", SPIKE.tables[0].columns, tuple((f"node-{n}", 70.0) for n in range(500)))
    text = Page(render(replace(SPIKE, tables=(long,)))).text
    assert "node-199" in text
    assert "node-200" not in text
    assert "300 more rows" in text


def test_curves_of_very_many_runs_are_counted_and_not_drawn() -> None:
    runs = tuple(Run(f"r{n}") for n in range(30))
    series = tuple(replace(SPIKE.series[0], run=run.id) for run in runs)
    text = render(replace(SPIKE, incidents=(), runs=runs, series=series))
    assert text.count("<svg") == 12
    assert "18 more runs" in text
