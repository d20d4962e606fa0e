"""What all console formats share: find the step lines, read their fields, add clocks, ranks, events and the exit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import (
    columns,
    console_evaluations,
    cut_lines,
    dates,
    evidence,
    fields,
    line_kinds,
    nonfinite_lines,
    prefixes,
    raw_lines,
)
from gdiag.ingesters import text as console
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.rows import fractional
from gdiag.model import Value

Fix = Callable[[pl.DataFrame], pl.DataFrame]

_CONTROL: Final = bytes(b for b in range(32) if b not in b"\t\n\r\b\f\x1b\x07") + b"\x7f"
_LAST: list[tuple[bytes, bytes]] = []
OWN_TIME: Final = "time of the step"
"""What a step line itself calls its time, where the prefix holds a clock."""
DAMAGED: Final = r"^[\s:=#\[]*\d+\s*(?:$|[/|,:\]]|\S+[:=])"
_SAMPLES: Final = 64
_HEAD: Final = 2000
"""Lines at the beginning among which step lines are looked up."""
_START: Final = 80
"""Characters of a line in which a clock is looked for."""
_TOTAL: Final = r"^[\s:=]*\d+\s*/\s*(\d+)"


@dataclass(frozen=True, slots=True)
class Grammar:
    """A console whose step lines are regular."""

    format: str
    sniff: re.Pattern[bytes]
    """Matches a step line; searched in a sample of the file."""
    marker: str
    """The literal that introduces the step number."""
    separator: str | None = None
    """Literal between fields; None when labels tell them apart."""
    hints: tuple[bytes, ...] = ()
    """Literals of which a file has one, where not all its files have the marker."""
    shape: str = line_kinds.SHAPE
    """What stands behind the marker of a step line."""
    needs: tuple[str, ...] = ()
    """Further literals of every step line."""
    rename: dict[str, str] = field(default_factory=dict)
    """Label → name understood by `columns`, where the label alone does not say it."""
    drop: tuple[str, ...] = ()
    """Labels that would be misread."""
    beside: str = ""
    """A literal of lines that have the marker and are no damaged step lines."""
    several_runs: bool = False
    """A step number that falls back to the file's first one starts another run."""
    evaluation: str = ""
    """A word before the marker that makes the line one of evaluation: its loss is eval_loss."""
    loss: str = "loss"
    """Label of the loss in such a line."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """Step lines of a console."""

    table: pl.DataFrame
    """`line`, `text`: the console without the step lines that were read before they became text."""
    wide: pl.DataFrame
    """`line`, `step`, then `rank` and `time` where lines bear them, then labels."""
    rejects: pl.DataFrame
    notes: tuple[str, ...] = ()
    config: dict[str, Value] = field(default_factory=dict)
    finished: bool = False
    odd: tuple[int, ...] = ()
    """Lines that are cut or fit no layout."""
    marker: str = ""
    """What introduces the step, where there is such a word."""
    head: tuple[str, ...] = ()
    """Some step lines; those of the file's beginning where none are given."""


def matches(given: Input, pattern: re.Pattern[bytes], hints: Sequence[bytes] = ()) -> int:
    """How often the pattern occurs in a sample of the file, escapes and carriage returns aside; 0 in binary files.

    Nothing is searched unless one of the hints occurs: regular expressions cost hundreds of times what literals do.
    """
    text = sample(given)
    if (hints and not any(hint in text for hint in hints)) or is_binary(given):
        return 0
    return len(pattern.findall(text))


def sample(given: Input) -> bytes:
    """A sample of the file as clean lines; the last one is kept, as all formats ask for the same one by one."""
    if _LAST and _LAST[0][0] is given.head:
        return _LAST[0][1]
    found = console.clean(given.sample()).replace(b"\r", b"\n")
    _LAST[:] = [(given.head, found)]
    return found


def _with_cut(given: Input, found: Found, rest: pl.DataFrame) -> pl.DataFrame:
    """The rejects with the lines that are the beginning of a step line."""
    read = set(found.wide["line"].head(_SAMPLES))
    head = found.head or [
        line
        for number, line in enumerate(sample(given).decode("utf-8", "replace").split("\n")[:_HEAD], 1)
        if number in read
    ]
    rest = rest.join(found.rejects.select("line"), on="line", how="anti", maintain_order="left")
    cut = cut_lines.rejects(rest, len(found.wide), head, found.marker)
    return pl.concat([found.rejects, cut]).sort("line") if len(cut) else found.rejects


def _starts(given: Input) -> pl.Series:
    """What lines of the sample begin with."""
    lines = sample(given).decode("utf-8", "replace").split("\n")
    return pl.Series([line[:_START] for line in lines if line], dtype=pl.String)


def is_binary(given: Input) -> bool:
    """Whether the head is full of bytes that no console prints (a block of NUL, as crashes leave them, aside)."""
    head = given.head[:4096].replace(b"\0" * 8, b"")
    return len(head.translate(None, _CONTROL)) < 0.98 * len(head)


def sureness(count: int) -> float:
    """How sure a format is that saw `count` of its step lines."""
    return 0.0 if count == 0 else 0.75 if count == 1 else 0.95


def recognise_by(given: Input, pattern: re.Pattern[bytes], hints: Sequence[bytes] = ()) -> float:
    """How sure a format is whose lines the pattern finds and the hints foretell."""
    return sureness(matches(given, pattern, hints))


def lines_of(given: Input) -> pl.DataFrame:
    """`line`, `text` of the whole file; lines too long to be looked at are blank."""
    table = console.lines(given.data())
    long = pl.col("text").str.len_bytes() > console.MAX_LINE
    return table.with_columns(pl.when(long).then(pl.lit("")).otherwise(pl.col("text")).alias("text"))


def no_rejects() -> pl.DataFrame:
    """An empty table of rejects."""
    return pl.DataFrame(schema={"line": pl.Int64, "reason": pl.String, "text": pl.String})


def recognise(given: Input, grammar: Grammar) -> float:
    """How sure the grammar is of the file."""
    text = sample(given)
    if not all(word.encode() in text for word in (grammar.marker, *grammar.needs)) and not grammar.hints:
        return 0.0
    return sureness(matches(given, grammar.sniff, grammar.hints))


def read(given: Input, options: Options, grammar: Grammar, fix: Fix | None = None) -> Reading:
    """A whole console by its grammar.

    Raises:
        InputError: no step line has a readable value.
    """
    found = find(given, options, grammar)
    if fix is not None:
        found = replace(found, wide=fix(found.wide))
    if grammar.several_runs:
        found = replace(found, wide=split_runs(found.wide))
    return finish(given, options, grammar.format, found, rename=grammar.rename, notes=grammar.notes)


def find(given: Input, options: Options, grammar: Grammar) -> Found:
    """Step lines of a console and their fields."""
    data = given.held()
    ends = data[-1:] in (b"\n", b"\r")
    kind = line_kinds.kind_of(
        grammar.separator, marker=grammar.marker, shape=grammar.shape, needs=grammar.needs, skip=grammar.drop
    )
    begun, table = raw_lines.begin(data, kind, ends=ends)
    long = console.too_long(table)
    steps = lines_with(table, grammar.marker)
    got = fields.read_on(steps, kind, begun, ends=ends)
    wide = got.wide.drop(grammar.drop, strict=False)
    if grammar.evaluation:
        wide = _evaluation(wide, grammar)
    wide = with_prefix(wide, options)
    left = got.left.filter(pl.col("text").str.contains(DAMAGED)) if len(wide) else got.left.clear()
    if grammar.beside:
        others = steps.filter(pl.col("text").str.contains(grammar.beside, literal=True))
        left = left.join(others, on="line", how="anti", maintain_order="left")
    some = pl.Series([begun.last, *begun.head[:8]]) if begun else steps["text"].tail(1).append(steps["text"].head(8))
    config, finished = _total(some, wide, grammar.marker)
    return Found(
        table,
        wide,
        pl.concat([long, damaged(left, grammar.marker)]).sort("line"),
        line_notes(got),
        config,
        finished,
        tuple(sorted({*got.cut, *got.odd})),
        grammar.marker,
        tuple(some.tail(-1)),
    )


def lines_with(table: pl.DataFrame, marker: str, needs: Sequence[str] = ()) -> pl.DataFrame:
    """The lines that hold the marker and the other literals."""
    words = [pl.col("text").str.contains(word, literal=True) for word in (marker, *needs)]
    return table.filter(*words, pl.col("text").str.len_bytes() <= console.MAX_LINE)


def with_prefix(wide: pl.DataFrame, options: Options) -> pl.DataFrame:
    """`prefix` replaced by the `rank` and `time` it says; `step` as whole number where it is not counted in fractions."""
    if "step" in wide.columns and not fractional(wide["step"]):
        wide = wide.with_columns(pl.col("step").cast(pl.Int64, strict=False))
    prefix = wide["prefix"].fill_null("") if "prefix" in wide.columns else pl.Series([], dtype=pl.String)
    wide = wide.drop("prefix", strict=False)
    if not (prefix.str.len_bytes().max() or 0):
        return wide
    rank, time = prefixes.ranks(prefix), prefixes.clocks(prefix, options.tz)
    said = [rank if rank.count() or "step" not in wide.columns else prefixes.members(prefix, wide["step"]), time]
    if not time.count() and "elapsed" not in wide.columns:
        said.append(prefixes.running(prefix))
    extra = [s for s in said if s.count()]
    taken = [s.name for s in extra if s.name in wide.columns]
    wide = wide.rename({name: OWN_TIME if name == "time" else f"{name} #2" for name in taken})
    return wide.with_columns(extra)


def _evaluation(wide: pl.DataFrame, grammar: Grammar) -> pl.DataFrame:
    """The loss of lines with the word before the marker as eval_loss."""
    if "prefix" not in wide.columns or grammar.loss not in wide.columns:
        return wide
    seen = pl.col("prefix").str.contains(grammar.evaluation, literal=True)
    if not wide.select(seen.any()).item():
        return wide
    return wide.with_columns(
        pl.when(seen).then(pl.col(grammar.loss)).alias("eval_loss"),
        pl.when(~seen).then(pl.col(grammar.loss)).alias(grammar.loss),
    )


def damaged(left: pl.DataFrame, marker: str) -> pl.DataFrame:
    """Rejects for lines that begin as step lines do and hold no readable value."""
    return left.select(
        "line",
        pl.lit("damaged step line: no readable value behind the step").alias("reason"),
        (pl.lit(marker) + pl.col("text"))
        .map_elements(lambda t: console.redact(t, 200), return_dtype=pl.String)
        .alias("text"),
    )


def line_notes(got: fields.Fields) -> tuple[str, ...]:
    """The sentences about step lines that end early, and about those that hold several."""
    said = (
        (got.cut, "are cut short", "their complete fields are used"),
        (got.several, "hold several steps run together", "the first of each is used"),
    )
    return tuple(
        f"{len(lines)} step lines {what} (line {', '.join(map(str, lines[:3]))}{', …' if len(lines) > 3 else ''}): {how}"
        for lines, what, how in said
        if lines
    )


def _total(steps: pl.Series, wide: pl.DataFrame, marker: str) -> tuple[dict[str, Value], bool]:
    """The last step that the last step line announces (`12/500`), else one of the first, and whether it was reached."""
    texts = steps.str.split(marker).list.get(1, null_on_oob=True)
    totals = texts.str.extract(_TOTAL).cast(pl.Int64, strict=False).drop_nulls()
    if not len(totals) or not len(wide):
        return {}, False
    total = int(totals[0])
    last = wide["step"].max()
    return {"total_steps": total}, isinstance(last, int) and last >= total > 0


def split_runs(wide: pl.DataFrame) -> pl.DataFrame:
    """`run` numbers from 1 where the step falls back to the file's first one more than once; else unchanged."""
    if not len(wide):
        return wide
    step = pl.col("step")
    number = ((step < step.shift()) & (step <= step.first())).fill_null(False).cum_sum() + 1
    runs = wide.select(number.cast(pl.String).alias("run"))["run"]
    return wide if runs[-1] == "1" else wide.with_columns(runs)


def finish(
    given: Input,
    options: Options,
    kind: str,
    found: Found,
    *,
    rename: dict[str, str] | None = None,
    notes: Sequence[str] = (),
) -> Reading:
    """The reading of a console from its step rows.

    Raises:
        InputError: there are no step rows.
    """
    if not len(found.wide):
        raise InputError(f"{given.path} is a console log ({kind}) without a readable step line")
    rest = evidence.others(found.table, found.wide["line"])
    found = replace(found, rejects=_with_cut(given, found, rest))
    evaluations, said_of_them = console_evaluations.rows(rest, found.wide)
    parts = [part for part in (nonfinite_lines.rows(rest), evaluations) if len(part)]
    if parts:
        wide = pl.concat([found.wide, *parts], how="diagonal_relaxed").sort("line", maintain_order=True)
        found = replace(found, wide=wide)
    asked = set(options.columns.values())
    names: dict[str, str] = {}
    for label, new in (rename or {}).items():
        old = OWN_TIME if label == "time" and OWN_TIME in found.wide.columns else label
        if old in found.wide.columns and old not in asked and new not in names.values():
            names[old] = new
    wide = found.wide.drop([new for new in names.values() if new in found.wide.columns and new not in names]).rename(
        names
    )
    reading = columns.reading(
        given.path,
        kind,
        wide,
        options,
        rejects=found.rejects if len(found.rejects) else None,
        notes=(*notes, *found.notes, *said_of_them),
    )
    if "time" in found.wide.columns and (doubt := dates.note(_starts(given))):
        reading = replace(reading, source=replace(reading.source, notes=(*reading.source.notes, *doubt)))
    placed = found.wide.select(name for name in ("line", "step", "time") if name in found.wide.columns)
    said = evidence.scan(rest, placed, options.tz, finished=found.finished)
    if reading.steps is not None and "loss" in reading.steps.columns:
        words = nonfinite_lines.last_words(rest, reading.steps)
        reading = replace(reading, steps=pl.concat([reading.steps, words], how="diagonal_relaxed"))
    original = {new: "time" if old == OWN_TIME else old for old, new in names.items()}
    source = replace(reading.source, columns={c: original.get(o, o) for c, o in reading.source.columns.items()})
    return replace(
        reading, source=source, events=said.events, exit=said.exit, config={**found.config, **reading.config}
    )
