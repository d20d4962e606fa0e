"""What was read, what was checked and what could not be: the part of the report that keeps silence honest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table as Grid
from rich.text import Text

from gdiag.model import Report, Run, Severity, Source, Table
from gdiag.renderers.words import count, number, shown, span, unit

_NARROW = 24
_FEW = 6
"""Files, columns and notes listed without -v."""


def heading(report: Report, *, judged: bool = True) -> Text:
    """One line: what was read and, where it was judged, how much was found."""
    tally = [
        _tally(sum(i.severity is s for i in report.incidents), s)
        for s in sorted(Severity, reverse=True)
        if any(i.severity is s for i in report.incidents)
    ]
    line = Text.assemble(("gdiag", "bold"), f" · {_read(report)}")
    return line.append(f" · {', '.join(tally) or 'nothing found'}", "bold") if judged else line


def _tally(how_many: int, severity: Severity) -> str:
    return count(how_many, severity.label) if severity is Severity.WARNING else f"{how_many} {severity.label}"


def _read(report: Report) -> str:
    rows = sum(source.rows for source in report.sources)
    files = shown(report.sources[0].path) if len(report.sources) == 1 else count(len(report.sources), "file")
    steps = _steps(report.runs[0]) if len(report.runs) == 1 else count(len(report.runs), "run")
    return ", ".join(filter(None, [files, count(rows, "row"), steps]))


def _steps(run: Run) -> str:
    if not run.segments:
        return ""
    return f"steps {span(min(s.first_step for s in run.segments), max(s.last_step for s in run.segments))}"


def nothing_found(report: Report) -> Text:
    """What silence means here, and what it does not mean."""
    if not report.checked:
        return Text("Nothing was judged: what the checks need was not logged. This is not a clean bill of health.")
    text = f"Nothing found by {count(len(report.checked), 'check')}.{_resolution(report)}"
    if report.skipped:
        text += (
            f" {count(len(report.skipped), 'other')} could not run (below): what they look for is unknown, not absent."
        )
    return Text(text)


def _resolution(report: Report) -> str:
    """What is too short to leave a trace, where not every step was logged."""
    spans = [(s.last_step - s.first_step) / (s.rows - 1) for run in report.runs for s in run.segments if s.rows > 1]
    widest = max(spans, default=1.0)
    if widest < 1.5:
        return ""
    return f" One row stands for {widest:.0f} steps: what is shorter may leave no trace."


def sections(report: Report, *, verbose: bool) -> list[RenderableType]:
    """The log itself, checks made and not made, advice."""
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(ratio=1)
    for label, line in _lines(report, verbose=verbose):
        grid.add_row(f" {label}", line)
    return ["", grid]


def tables(report: Report) -> list[RenderableType]:
    """The report's tables, each under its title."""
    parts: list[RenderableType] = []
    for table in report.tables:
        parts += ["", Text(shown(table.title), style="bold")]
        parts += [grid_of(table)] if table.rows else []
    return parts


def notes(report: Report) -> list[RenderableType]:
    """What limits the reading, file by file."""
    lines = [
        Text(f"note: {shown(note if note.startswith(s.path) else f'{s.path}: {note}')}", style="yellow")
        for s in report.sources
        for note in s.notes
    ]
    return ["", *lines] if lines else []


def grid_of(table: Table) -> Grid:
    """A table without rules; numbers to the right."""
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    for index, column in enumerate(table.columns):
        numeric = all(not isinstance(row[index], str) for row in table.rows)
        # A short first column names the row: it is the last to be broken.
        grid.add_column(
            f"{shown(column.name)}{unit(column.unit)}", justify="right" if numeric else "left", overflow="fold",
            no_wrap=index == 0 and _short(table),
        )  # fmt: skip
    for row in table.rows:
        grid.add_row(*(Text(number(cell)) for cell in row))
    return grid


def _short(table: Table) -> bool:
    """Whether the first column is narrow enough to be kept in one piece."""
    return all(len(number(row[0])) <= _NARROW for row in table.rows)


def _lines(report: Report, *, verbose: bool) -> Iterator[tuple[str, Text]]:
    most = len(report.sources) if verbose else _FEW
    for place, source in enumerate(report.sources[:most]):
        yield ("log" if not place else "", Text(_source(source)))
        for note in source.notes[: None if verbose else _FEW]:
            yield "", Text(f"note: {shown(note)}", style="yellow")
        if mapping := _mapping(source, verbose=verbose):
            yield "", Text(mapping, style="dim")
    if len(report.sources) > most:
        yield "", Text(f"and {count(len(report.sources) - most, 'more file')} (-v lists them)")
    if report.checked:
        yield "checked", Text(f"{len(report.checked)}: {codes(report.checked)}")
    by_reason: dict[str, list[str]] = {}
    for skip in report.skipped:
        by_reason.setdefault(skip.reason, []).append(skip.code)
    if verbose:
        for place, (reason, several) in enumerate(by_reason.items()):
            yield ("not checked" if not place else "", Text(f"{shown(reason)}: {codes(several)}"))
    elif by_reason:
        yield (
            "not checked",
            Text(", ".join(f"{codes(several)} ({shown(reason)})" for reason, several in by_reason.items())),
        )
    snippets = False
    for place, advice in enumerate(report.advice):
        sentence, colon, rest = advice.partition(": ")
        snippets |= bool(rest)
        yield ("next time" if not place else "", Text(shown(f"{sentence}{colon}{rest}" if verbose else sentence)))
    if snippets and not verbose:
        yield "", Text("(-v shows a line to paste for each)", style="dim")


def codes(several: Sequence[str]) -> str:
    """GD101–GD108 GD201: consecutive codes as one."""
    groups: list[list[str]] = []
    for code in several:
        if (
            groups
            and code[2:].isdigit()
            and groups[-1][-1][2:].isdigit()
            and int(code[2:]) == int(groups[-1][-1][2:]) + 1
        ):
            groups[-1].append(code)
        else:
            groups.append([code])
    return " ".join(f"{g[0]}–{g[-1]}" if len(g) > 2 else " ".join(g) for g in groups)


def _source(source: Source) -> str:
    rejected = f", {source.rejected:,} rejected" if source.rejected else ""
    return f"{shown(source.path)}: {shown(source.format)}, {count(source.rows, 'row')}{rejected}"


def _mapping(source: Source, *, verbose: bool) -> str:
    """loss=train/loss, …, as --map takes it; only the names that differ unless verbose."""
    pairs = [f"{shown(c)}={shown(n)}" for c, n in source.columns.items() if verbose or c != n]
    more = f", {len(pairs) - _FEW} more (-v)" if not verbose and len(pairs) > _FEW else ""
    return ", ".join(pairs if verbose else pairs[:_FEW]) + more
