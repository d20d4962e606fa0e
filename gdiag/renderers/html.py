"""The report as one HTML page that loads nothing from elsewhere: to mail, to archive, to open on an air-gapped node."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from gdiag.model import Cause, Incident, Report, Run, Series, Severity, Value
from gdiag.reference.sizes import size_text
from gdiag.renderers import chart, plot, summary, words
from gdiag.renderers.style import STYLE

_RUNS: Final = 12
"""Runs whose curves are drawn; a page of hundreds would open slowly."""
_ROWS: Final = 200
"""Rows of a table shown; the rest is counted."""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def render(report: Report, *, judged: bool = True) -> str:
    """The page with a final newline; nothing from the input is markup, and the page asks for no other file.

    judged: False for reports that are tables and no diagnosis.
    """
    return "\n".join(_page(report, judged)) + "\n"


def _page(report: Report, judged: bool) -> Iterator[str]:
    verdict = summary.verdict(report) if judged else ""
    title = f"gdiag: {verdict}" if judged else "gdiag"
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
    yield f"<header><h1>gdiag{f' · {escape(verdict)}' if judged else ''}</h1><p>{escape(summary.read(report))}</p></header><main>"
    if judged and not report.incidents:
        yield f"<p>{escape(summary.silence(report))}</p>"
    if len(report.incidents) > 1:
        yield from _contents(report)
    for place, incident in enumerate(report.incidents):
        yield from _incident(place, incident, report)
    yield from _curves(report)
    for table in report.tables:
        yield f"<section><h2>{_text(table.title)}</h2>"
        yield from _table([f"{words.shown(c.name)}{words.unit(c.unit)}" for c in table.columns], table.rows)
        yield "</section>"
    yield from _coverage(report, judged)
    yield "</main></body></html>"


def _contents(report: Report) -> Iterator[str]:
    yield '<nav aria-label="incidents"><ol>'
    for place, incident in enumerate(report.incidents):
        at = words.when(incident)
        yield (
            f'<li>{_badge(incident.severity)} <a href="#incident-{place}">{_text(incident.title)}</a>'
            f"{f' <small>{escape(at)}</small>' if at else ''}</li>"
        )
    yield "</ol></nav>"


def _badge(severity: Severity) -> str:
    return f'<span class="badge {severity.label}">{severity.label}</span>'


def _incident(place: int, incident: Incident, report: Report) -> Iterator[str]:
    yield f'<section class="incident {incident.severity.label}" id="incident-{place}">'
    yield f"<h2>{_badge(incident.severity)} {_text(incident.title)}</h2>"
    yield '<div class="facts"><dl>'
    related = ", ".join(f'<a href="#incident-{n}">{_text(report.incidents[n].title)}</a>' for n in incident.related)
    facts = (
        ("run", words.shown(incident.run) if len(report.runs) > 1 else ""),
        ("what", summary.said(incident, report)), ("when", words.when(incident)), ("where", words.where(incident)),
        ("cost", words.cost(incident.cost)),
    )  # fmt: skip
    for label, text in (*((label, escape(text)) for label, text in facts), ("related", related)):
        if text:
            yield f"<dt>{label}</dt><dd>{text}</dd>"
    yield f"</dl>{_figure(incident, report)}</div>"
    if incident.causes:
        yield "<h3>Causes</h3>"
    for number, cause in enumerate(incident.causes):
        yield from _cause(cause, likeliest=number == 0)
    if incident.actions:
        yield f"<h3>Do</h3><ol>{''.join(f'<li>{_text(action)}</li>' for action in incident.actions)}</ol>"
    yield from _findings(incident, report)
    yield "</section>"


def _figure(incident: Incident, report: Report) -> str:
    """The series that shows the incident, cut around it."""
    of = plot.subject(report, incident)
    if of is None:
        return ""
    points = plot.inside(of.series, *plot.window(of.series, of.onset, of.last))
    near = plot.cut(of.series, points)
    frame = chart.Frame(ceiling=plot.ceiling(points, of.onset, of.last), label=of.label)
    title = f"{of.series.name} of {of.series.layer}" if of.series.layer else ""
    drawn = chart.draw(near, frame, [_band(incident, of)], title=title)
    return f"<figure>{drawn}</figure>" if drawn is not None else ""


def _band(incident: Incident, of: plot.Subject) -> chart.Band:
    return chart.Band(of.onset, of.onset if of.last is None else max(of.onset, of.last), incident.severity.label)


def _cause(cause: Cause, *, likeliest: bool) -> Iterator[str]:
    yield (
        f"<details{' open' if likeliest else ''}><summary><strong>{_text(cause.cause)}</strong> "
        f'<meter min="0" max="1" value="{cause.score:.2f}"></meter> {words.confidence(cause)}</summary><ul>'
    )
    for label, texts in (("for", cause.supports), ("against", cause.contradicts), ("missing", cause.missing)):
        for text in texts:
            yield f'<li class="{label}"><small>{label}</small> {_text(text)}</li>'
    yield "</ul></details>"


def _findings(incident: Incident, report: Report) -> Iterator[str]:
    found = [report.findings[n] for n in incident.findings]
    if not found:
        return
    codes = ", ".join(dict.fromkeys(f"{f.code} {f.name}" for f in found))
    yield f"<details><summary>Seen: {escape(codes)}</summary>"
    yield from _table(
        ["code", "seen", "place", "measured"],
        [
            (f.code, f.message, words.place(f.where), "; ".join(words.quantity(measure) for measure in f.evidence))
            for f in found
        ],
    )
    yield "</details>"


def _curves(report: Report) -> Iterator[str]:
    """Every series over the whole run with all its incidents shaded, then benchmarks over message size."""
    runs = [run for run in report.runs if any(s.run == run.id for s in report.series)]
    for run in runs[:_RUNS]:
        drawn = list(_of_run(run, report))
        if drawn:
            name = f" · {_text(run.id)}" if len(report.runs) > 1 else ""
            yield f'<section><h2>Curves{name}</h2><div class="curves">'
            yield from (f"<figure>{svg}</figure>" for svg in drawn)
            yield "</div></section>"
    if len(runs) > _RUNS:
        yield f"<p>The curves of {words.count(len(runs) - _RUNS, 'more run')} are not drawn; analyze a run alone to see them.</p>"


def _of_run(run: Run, report: Report) -> Iterator[str]:
    own = [series for series in report.series if series.run == run.id]
    incidents = [i for i in report.incidents if i.run == run.id]
    stepped = [
        chart.Band(i.onset_step, i.onset_step if i.last_step is None else i.last_step, i.severity.label)
        for i in incidents
        if i.onset_step is not None
    ]
    timed = [
        chart.Band(i.onset_time, i.onset_time if i.last_time is None else i.last_time, i.severity.label)
        for i in incidents
        if i.onset_time is not None
    ]
    for place, series in enumerate(own):
        if series.name == "busbw limit":
            continue
        if series.name == "busbw":
            yield from _sweep(series, own[place + 1 : place + 2])
            continue
        card = f"{series.host or ''} GPU {series.gpu}" if series.gpu is not None else ""
        title = " · ".join(filter(None, [series.name, series.layer or "", card]))
        bands = timed if card else stepped
        frame = chart.Frame(ceiling=_ceiling(series, bands), label=words.hour if card else "{:.0f}".format)
        yield chart.draw(series, frame, bands, title=title) or ""


def _ceiling(series: Series, bands: Sequence[chart.Band]) -> float:
    """Where the curve is cut so that a slow first step does not flatten it: above what every incident reached."""
    points = plot.inside(series, -math.inf, math.inf)
    spans = [(band.first, band.last) for band in bands] or [(math.nan, math.nan)]
    return max(plot.ceiling(points, first, last) for first, last in spans)


def _sweep(series: Series, after: Sequence[Series]) -> Iterator[str]:
    held = next((s.high[0] for s in after if s.name == "busbw limit"), None)
    frame = chart.Frame(label=size_text, log_x=True, held=held)
    yield chart.draw(series, frame, title="busbw over message size") or ""


def _table(head: Sequence[str], rows: Sequence[Sequence[Value | None]]) -> Iterator[str]:
    numeric = [all(not isinstance(row[n], str) for row in rows) for n in range(len(head))]
    yield f'<div class="wide"><table><thead><tr>{_cells("th", head, numeric)}</tr></thead><tbody>'
    for row in rows[:_ROWS]:
        yield f"<tr>{_cells('td', map(words.number, row), numeric)}</tr>"
    yield "</tbody></table></div>"
    if len(rows) > _ROWS:
        yield f"<p>{words.count(len(rows) - _ROWS, 'more row')}: --format json holds them all.</p>"


def _cells(tag: str, texts: Iterable[str], numeric: Sequence[bool]) -> str:
    return "".join(
        f"<{tag}{' class=number' if right else ''}>{escape(text)}</{tag}>"
        for text, right in zip(texts, numeric, strict=True)
    )


def _coverage(report: Report, judged: bool) -> Iterator[str]:
    yield f"<section><h2>What was read{' and checked' if judged else ''}</h2><ul>"
    for source in report.sources:
        names = ", ".join(f"{words.shown(c)}={words.shown(n)}" for c, n in source.columns.items() if c != n)
        notes = "".join(f'<br><span class="note">{_text(note)}</span>' for note in source.notes)
        yield f"<li>{escape(summary.source_line(source, report))}{f'<br><small>{escape(names)}</small>' if names else ''}{notes}</li>"
    yield "</ul>"
    if judged:
        yield f"<p>Checked {len(report.checked)}: {escape(summary.codes(report.checked))}</p>"
        reasons = summary.by_reason(report)
        if reasons:
            lines = "".join(f"<li>{_text(r)}: {escape(summary.codes(c))}</li>" for r, c in reasons.items())
            yield f"<details><summary>Not checked: {len(report.skipped)}</summary><ul>{lines}</ul></details>"
    if report.advice:
        yield f"<h3>Log next time</h3><ul>{''.join(f'<li>{_text(advice)}</li>' for advice in report.advice)}</ul>"
    yield "</section>"


def _text(text: str) -> str:
    """Text from the report, safe to stand in the page."""
    return escape(words.shown(text))
