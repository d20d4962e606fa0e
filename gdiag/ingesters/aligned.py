"""Whitespace-aligned tables on a console: a header line, then rows of numbers (`Step  Loss  Grad Norm  Param Norm  g/p Ratio`),
or a layer and its numbers (`Layer  Grad Norm`).

Where the header's columns stand one blank apart, its words are put together into as many names as a row has cells,
preferring names that mean something. A table of layers belongs to the step named last before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import polars as pl

from gdiag.ingesters import console, layer_names
from gdiag.ingesters import text as plain
from gdiag.ingesters.aliases import claim
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.values import whole

FORMAT: Final = "aligned-table"
_HEADER: Final = re.compile(r"^[\s|]*(?:Step|Iter(?:ation)?|Epoch|Layer|Param(?:eter)?|Module|Name)\b[\s|]+\S.*$", re.I)
_NUMBER: Final = re.compile(plain.NUMBER + "$")
_EMPTY: Final = re.compile(r"(?:-|n/a|None|\d+:\d\d(?::\d\d)?|[\d.]+[KMG]i?B?)$")
"""Nothing, or a duration or a size, which are not read."""
_BAR: Final = re.compile(r":\s*(\d{1,3})%\s?(?:\||[━─╸])")
"""The progress bar behind a row that is still growing (ultralytics)."""
_OF: Final = re.compile(r"^(\d+)/\d+$")
_RULE: Final = re.compile(r"^[\s|+=:-]*$")
_STEP: Final = re.compile(r"\b(?:step|iteration|iter)\W{0,3}(\d{1,18})", re.I)
_LAYERED: Final = ("layer", "parameter", "param", "module", "name")


@dataclass(frozen=True, slots=True)
class _Table:
    names: list[str]
    rows: list[tuple[int, list[str]]]
    step: int | None


def recognise(given: Input) -> float:
    """By a header with two rows below it."""
    if console.is_binary(given):
        return 0.0
    lines = console.sample(given).decode("utf-8", "replace").split("\n")
    found, _ = _tables(enumerate(lines, 1))
    rows = sum(len(table.rows) for table in found)
    return 0.6 if rows >= 2 else 0.0


def read(given: Input, options: Options) -> Reading:
    """The tables' rows as steps; tables of layers as one row of layers each."""
    table = console.lines_of(given)
    tables, bad = _tables(table.iter_rows())
    wide_rows: list[dict[str, float]] = []
    lines: list[int] = []
    for number, found in enumerate(tables):
        lines.extend(line for line, _ in found.rows)
        if found.names[0].lower() in _LAYERED:
            wide_rows.append(_layers(found, found.step if found.step is not None else number))
        else:
            wide_rows.extend(
                {"line": line, **{n: _float(c) for n, c in zip(found.names, cells, strict=True) if _NUMBER.match(c)}}
                for line, cells in found.rows
            )
    names = dict.fromkeys(name for row in wide_rows for name in row)
    wide = pl.DataFrame(
        wide_rows, schema={n: pl.Int64 if n == "line" else pl.Float64 for n in names} or {"line": pl.Int64}
    )
    if "step" not in wide.columns and len(wide):
        epoch = next((n for n in wide.columns if (c := claim(n)) is not None and c.canonical == "epoch"), None)
        step = pl.col(epoch) if epoch is not None and not wide[epoch].null_count() else pl.int_range(pl.len())
        wide = wide.with_columns(step.cast(pl.Int64).alias("step"))
    rejects = pl.DataFrame(bad, schema=console.no_rejects().schema)
    found_all = Found(table.filter(~pl.col("line").is_in(lines)), wide, rejects)
    return console.finish(given, options, FORMAT, found_all, notes=(f"{len(tables)} aligned tables",))


def _float(cell: str) -> float:
    return float(cell.replace(",", ""))


def _layers(found: _Table, step: int) -> dict[str, float]:
    row: dict[str, float] = {"line": found.rows[0][0], "step": step}
    for _, cells in found.rows:
        for name, cell in zip(found.names[1:], cells[1:], strict=True):
            if _NUMBER.match(cell):
                row[f"{name.lower().replace(' ', '_')}/{cells[0]}"] = _float(cell)
    return row


def _tables(lines: object) -> tuple[list[_Table], list[dict[str, object]]]:
    """Tables in the lines, and rows inside them that have the wrong number of cells."""
    tables: list[_Table] = []
    bad: list[dict[str, object]] = []
    header, step = "", None
    current: _Table | None = None
    for line, text in lines:  # type: ignore[attr-defined]
        if len(text) > 2000:
            continue
        if match := _STEP.search(text):
            step = whole(match[1])
        if bar := _BAR.search(text):
            if not bar[1].startswith("100"):
                continue  # drawn again and again until the row is whole
            text = text[: bar.start()]
        cells = text.replace("|", " ").split()
        cells = [_OF.sub(r"\1", cell) for cell in cells[:1]] + cells[1:]
        if "\t" not in text and _HEADER.match(text) and not any(_NUMBER.match(c) for c in cells) and len(cells) < 40:
            header, current = text, None
            continue
        if not header or _RULE.match(text):
            header = header if text.strip() or current is None else ""
            current = current if _RULE.match(text) and text.strip() else None
            continue
        if current is None:
            current = _begin(header, cells, step)
            if current is None:
                header = ""
                continue
            tables.append(current)
        if len(cells) == len(current.names) and _is_row(cells, current.names):
            current.rows.append((line, cells))
        elif cells and _NUMBER.match(cells[0]) and len(cells) > 1:
            bad.append(
                {
                    "line": line,
                    "reason": f"{len(cells)} cells under a header of {len(current.names)}",
                    "text": plain.redact(text, 200),
                }
            )
        else:
            header, current = "", None
    return [table for table in tables if table.rows], bad


def _is_row(cells: list[str], names: list[str]) -> bool:
    numbers = cells[1:] if names[0].lower() in _LAYERED else cells
    return all(_NUMBER.match(cell) or _EMPTY.match(cell) for cell in numbers) and bool(numbers)


def _begin(header: str, cells: list[str], step: int | None) -> _Table | None:
    """A table whose first row are these cells, if the header can be cut into as many names."""
    wide = [name for name in re.split(r"\s{2,}|\s*\|\s*|\t", header.strip(" |")) if name]
    if len(wide) != len(cells):
        words = header.replace("|", " ").split()
        wide = _group(words, len(cells)) if len(cells) <= len(words) <= 3 * len(cells) else []
    if not wide or len(wide) < 2 or not _is_row(cells, wide):
        return None
    if wide[0].lower() in _LAYERED:
        known = any(layer_names.parse(f"{n.lower().replace(' ', '_')}/{cells[0]}") for n in wide[1:])
    else:
        known = any((c := claim(n)) is not None and c.canonical != "step" for n in wide[1:])
    if (first := claim(wide[0])) is not None and first.canonical == "step":
        wide[0] = "step"
    return _Table(wide, [], step) if known else None


def _group(words: list[str], count: int) -> list[str]:
    """Words put together into `count` names (one to three words each) so that most names mean something."""
    best: dict[tuple[int, int], tuple[float, list[str]]] = {(0, 0): (0.0, [])}
    for start in range(len(words)):
        for made in range(count):
            if (start, made) not in best:
                continue
            score, names = best[start, made]
            for end in range(start + 1, min(start + 3, len(words)) + 1):
                name = " ".join(words[start:end])
                worth = score + (1.0 if claim(name) is not None else 0.4 if name.lower().endswith("ratio") else 0.0)
                key = (end, made + 1)
                if key not in best or worth > best[key][0]:
                    best[key] = (worth, [*names, name])
    return best.get((len(words), count), (0.0, []))[1]
