"""The report as text: the worst incident with cause, evidence and next action in the first screen, the rest shorter."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from gdiag.model import Cause, Incident, Report, Severity
from gdiag.renderers import coverage, plot, summary, words

STYLES: Final = {
    Severity.CRITICAL: "bold white on red",
    Severity.WARNING: "bold black on yellow",
    Severity.INFO: "bold black on cyan",
}
_WIDE: Final = 112
"""Columns from which the plot stands beside the first incident instead of under it."""
_SHORT_LIST: Final = 8
"""Further incidents shown without -v."""
_ALIKE: Final = 3
"""Incidents of one kind that are shown one by one without -v, where they are only worth knowing."""


@dataclass(frozen=True, slots=True)
class Screen:
    """What the place that the text goes to can show."""

    width: int = 80
    color: bool = False
    verbose: bool = False
    quiet: bool = False
    judged: bool = True
    """False for reports that are tables and no diagnosis."""


def render(report: Report, screen: Screen = Screen()) -> str:
    """The report as text of `screen.width` columns; escape sequences only where it shows colour."""
    out = io.StringIO()
    draw(report, screen, console(screen, out))
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))


def console(screen: Screen, out: io.StringIO, *, record: bool = False) -> Console:
    """A console that shows `screen`, takes no markup from texts, and asks the environment nothing."""
    return Console(
        file=out, width=screen.width, force_terminal=screen.color, color_system="256" if screen.color else None,
        no_color=not screen.color, markup=False, emoji=False, highlight=False, legacy_windows=False, safe_box=True,
        record=record,
    )  # fmt: skip


def draw(report: Report, screen: Screen, onto: Console) -> None:
    """Print the report's parts in their order."""
    for part in _quiet(report) if screen.quiet else _parts(report, screen):
        onto.print(part, soft_wrap=screen.quiet)


def _quiet(report: Report) -> list[RenderableType]:
    """A line an incident, with the run before it where there are several."""
    several = len(report.runs) > 1
    return [
        Text.assemble(
            _label(i), " ", f"{words.shown(i.run)}: " if several and i.run else "", words.shown(i.title),
            f" ({words.when(i)})" if words.when(i) else "",
        )
        for i in report.incidents
    ]  # fmt: skip


def _parts(report: Report, screen: Screen) -> list[RenderableType]:
    if not screen.judged:
        incidents = [part for i in report.incidents for part in ("", _further(i, report, screen))]
        return [
            coverage.heading(report, judged=False),
            *incidents,
            *coverage.tables(report, screen.width),
            *coverage.notes(report),
        ]
    parts: list[RenderableType] = [coverage.heading(report)]
    if report.incidents:
        parts += ["", _first(report, screen)]
        rest = report.incidents[1:]
        kinds = [(i, 1) for i in rest] if screen.verbose else _kinds(rest, report)
        shown = kinds if screen.verbose else kinds[:_SHORT_LIST]
        for incident, alike in shown:
            parts += ["", _further(incident, report, screen)]
            if alike > 1:
                parts.append(Text(f" and {alike - 1} more like it (-v shows each)"))
        if (left := sum(alike for _, alike in kinds[len(shown) :])) > 0:
            parts += ["", Text(f"and {words.count(left, 'further incident')} of no greater severity (-v shows them)")]
    else:
        parts += ["", Text(summary.silence(report))]
    parts += _sweeps(report, screen)
    parts += coverage.tables(report, screen.width)
    parts += coverage.sections(report, verbose=screen.verbose, width=screen.width)
    return parts


def _kinds(incidents: Sequence[Incident], report: Report) -> list[tuple[Incident, int]]:
    """Incidents with how many each stands for: what is only worth knowing, of one check and in one run, is shown once where it is
    there more than _ALIKE times."""

    def kind(place: int, incident: Incident) -> tuple[object, ...]:
        codes = tuple(sorted({report.findings[n].code for n in incident.findings}))
        return (incident.run, incident.pattern, codes) if incident.severity is Severity.INFO and codes else (place,)

    kinds = [kind(place, incident) for place, incident in enumerate(incidents)]
    count = Counter(kinds)
    first = {of: place for place, of in reversed(list(enumerate(kinds)))}
    many = [count[of] > _ALIKE for of in kinds]
    return [
        (incident, count[of] if several else 1)
        for place, (incident, of, several) in enumerate(zip(incidents, kinds, many, strict=True))
        if not several or first[of] == place
    ]


def _label(incident: Incident) -> Text:
    return Text(f" {incident.severity.label.upper()} ", style=STYLES[incident.severity])


def _head(incident: Incident, style: str = "") -> Grid:
    """Severity and title; the title's second line starts under its first."""
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1, overflow="fold", style=style)
    grid.add_row(_label(incident), words.shown(incident.title))
    return grid


def _first(report: Report, screen: Screen) -> RenderableType:
    incident = report.incidents[0]
    head = _head(incident, "bold")
    beside = screen.width >= _WIDE
    drawing = _drawing(report, incident, 46 if beside else screen.width - 2, 8 if beside else 4)
    facts = _facts(incident, report, screen, whole=True)
    if drawing is None:
        return Group(head, facts)
    if not beside:
        return Group(head, facts, Padding(drawing, (0, 0, 0, 1)))
    both = Grid.grid(padding=(0, 2), expand=True)
    both.add_column(ratio=1, overflow="fold")
    both.add_column(width=46)
    both.add_row(facts, drawing)
    return Group(head, both)


def _further(incident: Incident, report: Report, screen: Screen) -> RenderableType:
    return Group(_head(incident), _facts(incident, report, screen, whole=screen.verbose))


def _facts(incident: Incident, report: Report, screen: Screen, *, whole: bool) -> Grid:
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(style="dim", min_width=6, no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")

    def row(label: str, content: str | RenderableType) -> None:
        if content:
            grid.add_row(f" {label}", content)

    row("run", words.shown(incident.run) if len(report.runs) > 1 else "")
    row("what", summary.said(incident, report))
    row("when", words.when(incident))
    row("where", words.where(incident))
    row("cost", words.cost(incident.cost))
    for place, cause in enumerate(incident.causes if screen.verbose else incident.causes[:1]):
        row("or" if place else "cause", _cause(cause))
        for line in _evidence(cause, (99, 99, 99) if screen.verbose else (3, 2, 2) if whole else (1, 1, 1)):
            row("", line)
    if whole and not screen.verbose:
        row("or", Text(", ").join(_other(cause) for cause in incident.causes[1:3]))
    actions = incident.actions if screen.verbose else incident.actions[: 3 if whole else 1]
    more = len(incident.actions) - len(actions)
    for place, action in enumerate(actions):
        told = words.shown(action) + (f" · {more} more (-v)" if more and place + 1 == len(actions) else "")
        row("" if place else "do", _hanging(f"{place + 1}.", told) if whole else told)
    row("seen", _seen(incident, report))
    if screen.verbose:
        for index in incident.findings:
            row("", _finding(report, index))
    return grid


def _cause(cause: Cause) -> Text:
    return Text.assemble((words.shown(cause.cause), "bold"), f" {words.confidence(cause)}")


def _other(cause: Cause) -> Text:
    """A cause named in passing."""
    return Text.assemble((words.shown(cause.cause), "bold"), f" {cause.band} ({cause.score:.2f})")


def _evidence(cause: Cause, most: tuple[int, int, int]) -> list[RenderableType]:
    """What speaks for the cause, what against it, and what is missing, `most` of each."""
    kinds = (("+", "green", cause.supports), ("−", "red", cause.contradicts), ("?", "yellow", cause.missing))
    lines: list[RenderableType] = []
    hidden = 0
    for (sign, style, texts), shown in zip(kinds, most, strict=True):
        lines += [_hanging(sign, words.shown(text), style) for text in texts[:shown]]
        hidden += max(0, len(texts) - shown)
    return [*lines, Text(f"  {hidden} more (-v)", style="dim")] if hidden else lines


def _hanging(sign: str, text: str, style: str = "") -> Grid:
    """`text` whose second line starts under its first, beside `sign`."""
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(style=style, no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    grid.add_row(sign, text)
    return grid


def _seen(incident: Incident, report: Report) -> str:
    """Codes to explain, and the line of the first finding to look at."""
    findings = [report.findings[index] for index in incident.findings]
    names = list(dict.fromkeys(f"{f.code} {f.name}" for f in findings))
    first = next((f.where for f in findings if f.where.file and f.where.line), None)
    place = (
        ""
        if first is None
        else f"line {first.line}"
        if len(report.sources) == 1
        else f"{words.tail(str(first.file))}:{first.line}"
    )
    return " · ".join(filter(None, [", ".join(names[:4]) + (" …" if len(names) > 4 else ""), place]))


def _finding(report: Report, index: int) -> Text:
    finding = report.findings[index]
    measures = "; ".join(words.quantity(m) for m in finding.evidence)
    return Text(f"{finding.code} {words.shown(finding.message)} [{words.place(finding.where)}] {measures}")


def _drawing(report: Report, incident: Incident, width: int, height: int) -> Group | None:
    of = plot.subject(report, incident)
    if of is None:
        return None
    drawn = plot.draw(of.series, of.onset, of.last, width=width, height=height, label=of.label)
    return _lines(drawn, of.series.layer) if drawn is not None else None


def _sweeps(report: Report, screen: Screen) -> list[RenderableType]:
    """Bandwidth over message size of the first test run."""
    curve = next((s for s in report.series if s.name == "busbw"), None)
    if curve is None:
        return []
    held = next((s.high[0] for s in report.series if s.name == "busbw limit"), None)
    drawn = plot.sweep(curve, held, width=min(screen.width - 2, 100), height=8)
    return ["", Padding(_lines(drawn, None), (0, 0, 0, 1))] if drawn is not None else []


def _lines(drawn: plot.Plot, layer: str | None) -> Group:
    margin = " " * (len(drawn.labels[0]) + 1)
    title = words.shown(f"{drawn.title}{f' of {layer}' if layer else ''}")
    lines = [Text(f"{margin}{title}", style="dim")]
    lines += [
        Text.assemble((label, "dim"), " ", (row, "cyan")) for label, row in zip(drawn.labels, drawn.rows, strict=True)
    ]
    marks = Text(margin + drawn.marks)
    marks.highlight_regex("▲", "bold yellow")
    marks.highlight_regex("×", "bold red")
    below = [marks] if drawn.marks else []
    return Group(*lines, *below, Text(margin + drawn.axis, style="dim"))
