"""The report as Markdown: for a pull request, a ticket, or a CI summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from gdiag.model import Cause, Incident, Report, Table
from gdiag.renderers import summary, words

_SPECIAL: Final = re.compile(r"([\\`*\[\]<>|~&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|^[-+=#]|(?<=^\d)[.)])")
_LIVE: Final = re.compile(r"([@#](?=\w)|www(?=\.)|:(?=//))")
"""Where a mention, a reference or a bare link begins: an empty comment after it keeps it plain text."""


def render(report: Report, *, judged: bool = True) -> str:
    """The report as GitHub-flavoured Markdown with a final newline; nothing from the input is markup, link or mention.

    judged: False for reports that are tables and no diagnosis.
    """
    return "\n".join(_lines(report, judged)) + "\n"


def _lines(report: Report, judged: bool) -> Iterator[str]:
    yield f"# gdiag{f': {summary.verdict(report)}' if judged else ''}"
    yield ""
    yield _text(summary.read(report))
    if judged and not report.incidents:
        yield ""
        yield _text(summary.silence(report))
    for incident in report.incidents:
        yield ""
        yield from _incident(incident, report)
    for table in report.tables:
        yield ""
        yield f"## {_text(words.shown(table.title))}"
        yield ""
        yield from _table(table)
    yield ""
    yield from _coverage(report, judged)


def _incident(incident: Incident, report: Report) -> Iterator[str]:
    yield f"## {incident.severity.label.capitalize()}: {_text(words.shown(incident.title))}"
    yield ""
    facts = (
        ("what", summary.said(incident, report)),
        ("when", words.when(incident)),
        ("where", words.where(incident)),
        ("cost", words.cost(incident.cost)),
    )
    for label, text in (("run", words.shown(incident.run) if len(report.runs) > 1 else ""), *facts):
        if text:
            yield f"- **{label}:** {_text(text)}"
    seen = dict.fromkeys(f"{report.findings[n].code} {report.findings[n].name}" for n in incident.findings)
    if seen:
        yield f"- **seen:** {_text(', '.join(seen))}"
    for place, cause in enumerate(incident.causes):
        yield f"- **{'or' if place else 'cause'}:** {_cause(cause)}"
        yield from (f"  - {line}" for line in _evidence(cause))
    if incident.actions:
        yield ""
        yield from (f"{n}. {_text(words.shown(action))}" for n, action in enumerate(incident.actions, 1))


def _cause(cause: Cause) -> str:
    return f"**{_text(words.shown(cause.cause))}**, {words.confidence(cause)}"


def _evidence(cause: Cause) -> Iterator[str]:
    for label, texts in (("for", cause.supports), ("against", cause.contradicts), ("missing", cause.missing)):
        yield from (f"{label}: {_text(words.shown(text))}" for text in texts)


def _table(table: Table) -> Iterator[str]:
    yield _row(f"{words.shown(column.name)}{words.unit(column.unit)}" for column in table.columns)
    yield _row("---" for _ in table.columns) if table.columns else ""
    for row in table.rows:
        yield _row(words.number(cell) for cell in row)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell if cell == '---' else _text(cell) for cell in cells)} |"


def _coverage(report: Report, judged: bool) -> Iterator[str]:
    yield f"<details><summary>What was read{' and checked' if judged else ''}</summary>"
    yield ""
    for source in report.sources:
        yield f"- {_text(summary.source_line(source, report))}"
        yield from (f"  - {_text(words.shown(note))}" for note in source.notes)
    if judged:
        yield f"- checked {len(report.checked)}: {summary.codes(report.checked)}"
        for reason, several in summary.by_reason(report).items():
            yield f"- not checked, {_text(words.shown(reason))}: {summary.codes(several)}"
    yield from (f"- next time: {_text(words.shown(advice))}" for advice in report.advice)
    yield ""
    yield "</details>"


def _text(text: str) -> str:
    """`text` so that it shows as itself inside a line."""
    return _LIVE.sub(r"\1<!-- -->", _SPECIAL.sub(r"\\\1", text))
