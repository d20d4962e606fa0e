"""What was read, what was checked and what could not be: the part of the report that keeps silence honest."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table as Grid
from rich.text import Text

from gdiag.model import Report, Source, Table
from gdiag.renderers.summary import by_reason, codes, read, source_line, unchecked, verdict
from gdiag.renderers.words import broken, count, number, shown, unit

_NARROW = 24
_WORD = 10
"""Characters of a number, or of a word in a table's head, that are not parted."""
_MANY = 10
"""Columns of a table from which on blanks are spared before lines are broken."""
_MARGIN = 13
"""Columns that the labels take."""
_FACTS = 30
"""Columns that format and rows take behind a path."""
_FEW = 6
"""Files, columns and notes listed without -v."""


def heading(report: Report, *, judged: bool = True) -> Text:
    """One line: what was read and, where it was judged, how much was found."""
    line = Text.assemble(("gdiag", "bold"), f" · {read(report)}")
    return line.append(f" · {verdict(report)}", "bold") if judged else line


def sections(report: Report, *, verbose: bool, width: int = 80) -> list[RenderableType]:
    """The log itself, checks made and not made, advice."""
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    for label, line in _lines(report, verbose=verbose, width=width - _MARGIN):
        grid.add_row(f" {label}", line)
    return ["", grid]


def tables(report: Report, width: int) -> list[RenderableType]:
    """The report's tables, each under its title."""
    parts: list[RenderableType] = []
    for table in report.tables:
        parts += ["", Text(shown(table.title), style="bold")]
        parts += [grid_of(table, width)] if table.rows else []
    return parts


def notes(report: Report) -> list[RenderableType]:
    """What limits the reading, file by file."""
    lines = [
        Text(f"note: {shown(note if note.startswith(s.path) else f'{s.path}: {note}')}", style="yellow")
        for s in report.sources
        for note in s.notes
    ]
    return ["", *lines] if lines else []


def grid_of(table: Table, width: int) -> Grid:
    """A table without rules; numbers to the right; one blank between many columns where two do not fit into `width`."""
    few = len(table.columns) < _MANY
    blanks = 2 if few or _natural(table) + 2 * (len(table.columns) - 1) <= width else 1
    grid = Grid(box=None, padding=(0, blanks, 0, 0), pad_edge=False, show_edge=False)
    for index, column in enumerate(table.columns):
        numeric = all(not isinstance(row[index], str) for row in table.rows)
        # A short first column names the row: it is the last to be broken.
        head = f"{shown(column.name)}{unit(column.unit)}"
        cells = [number(row[index]) for row in table.rows] if numeric else []
        longest = max(map(len, [*head.split(), *cells]), default=0)
        grid.add_column(
            head, justify="right" if numeric else "left", overflow="fold", no_wrap=index == 0 and _short(table),
            min_width=min(longest, _WORD),
        )  # fmt: skip
    for row in table.rows:
        grid.add_row(*(Text(number(cell)) for cell in row))
    return grid


def _natural(table: Table) -> int:
    """Width of the columns side by side with no line broken and no blank between them."""
    heads = [f"{shown(column.name)}{unit(column.unit)}" for column in table.columns]
    return sum(max(len(head), *(len(number(row[i])) for row in table.rows)) for i, head in enumerate(heads))


def _short(table: Table) -> bool:
    """Whether the first column is narrow enough to be kept in one piece."""
    return all(len(number(row[0])) <= _NARROW for row in table.rows)


def _lines(report: Report, *, verbose: bool, width: int) -> Iterator[tuple[str, Text]]:
    most = len(report.sources) if verbose else _FEW
    folder = _folder(report, width)
    if folder:
        yield "log", Text(f"in {broken(folder, width - 3)}")
    for place, source in enumerate(report.sources[:most]):
        yield ("log" if not place and not folder else "", Text(source_line(source, report, folder)))
        for note in source.notes[: None if verbose else _FEW]:
            yield "", Text(f"note: {shown(note)}", style="yellow")
        if mapping := _mapping(source, verbose=verbose):
            yield "", Text(mapping, style="dim")
    if len(report.sources) > most:
        yield "", Text(f"and {count(len(report.sources) - most, 'more file')} (-v lists them)")
    if report.checked:
        yield "checked", Text(f"{len(report.checked)}: {codes(report.checked)}")
    reasons = by_reason(report)
    if verbose:
        for place, (reason, several) in enumerate(reasons.items()):
            yield ("not checked" if not place else "", Text(f"{shown(reason)}: {codes(several)}"))
    elif reasons:
        yield "not checked", Text(unchecked(report, width))
    snippets = False
    for place, advice in enumerate(report.advice):
        sentence, colon, rest = advice.partition(": ")
        snippets |= bool(rest)
        yield ("next time" if not place else "", Text(shown(f"{sentence}{colon}{rest}" if verbose else sentence)))
    if snippets and not verbose:
        yield "", Text("(-v shows a line to paste for each)", style="dim")


def _folder(report: Report, width: int) -> str:
    """The folder of all files where their paths are too long for a line each, with the stroke behind it; else nothing."""
    paths = [source.path for source in report.sources if "/" in source.path]
    if not paths or len(paths) < len(report.sources) or max(map(len, paths)) < width - _FACTS:
        return ""
    parents = [path.rsplit("/", 1)[0].split("/") for path in paths]
    same = 0
    while all(len(p) > same and p[same] == parents[0][same] for p in parents):
        same += 1
    return "/".join(parents[0][:same]) + "/" if same > 1 or parents[0][0] else ""


def _mapping(source: Source, *, verbose: bool) -> str:
    """loss=train/loss, …, as --map takes it; only the names that differ unless verbose."""
    pairs = [f"{shown(c)}={shown(n)}" for c, n in source.columns.items() if verbose or c != n]
    more = f", {len(pairs) - _FEW} more (-v)" if not verbose and len(pairs) > _FEW else ""
    return ", ".join(pairs if verbose else pairs[:_FEW]) + more
