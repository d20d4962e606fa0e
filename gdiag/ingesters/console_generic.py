"""Consoles of unknown programs: lines of `key separator number` that come again and again with a step and a metric.

A kind of line is read only when it repeats at least three times, names a step (or an epoch) and another number, and its
step does not jump about. How much of the console that is stands in the notes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import console, console_epochs, fields, tokens, values
from gdiag.ingesters import text as plain
from gdiag.ingesters.aliases import claim, family
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "console-generic"
_LOOK: Final = 1500
_KNOWN: Final = frozenset({"loss", "eval_loss", "grad_norm", "lr", "step_time", "tokens_per_s", "loss_scale"})
_WORTH: Final = re.compile(
    r"(?:step|iter(?:ation)?|\bit|epoch|update|batch|train(?:ing)?)s?(?:[^\n\w]|_){0,16}\d|(?:^|\s)\[\d+\] ",
    re.IGNORECASE,
)
_STEPS: Final = tuple(
    re.compile(rf"(?<![\w.])({words})(\s*[:=#]?\s*[\[(]?\s*|[-_])(?=\d{behind})", re.IGNORECASE)
    for words, behind in (
        (r"global[ _-]?(?:steps?|iter(?:ation)?s?|updates?)", ""),
        (r"(?:global[ _-]?)?(?:steps?|iter(?:ation)?s?|updates?|batch)", ""),
        ("it", r"\d*/\d+\b"),
        ("epoch", ""),
        ("training", r"\d*/\d+\]"),
        ("train", r"[^\n\[]{0,20}\[\s*\d+/\d+"),
    )
)
_BARE: Final = re.compile(r"^\s*\[(\d+)\]\s+[A-Za-z]")


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of line: the literal before its step, the label of the step, how often it came."""

    marker: str
    label: str
    count: int
    known: bool


def recognise(given: Input) -> float:
    """Weakest of all: a repeating line with a step and a metric whose name is known, or at least with a step."""
    kind = _kind(given)
    return 0.0 if kind is None else 0.12 if not kind.known else 0.25


def read(given: Input, options: Options) -> Reading:
    """The kind of line that comes most often.

    Raises:
        InputError: no such line.
    """
    kind = _kind(given)
    if kind is None:
        raise InputError(f"{given.path} has no repeating line with a step and a number")
    table = console.lines_of(given)
    ends = given.data().endswith((b"\n", b"\r"))
    got = fields.read(console.lines_with(table, kind.marker), marker=kind.marker, ends=ends, loose=True)
    got.wide = console_epochs.with_words_behind(got.wide, table, kind.marker)
    whole, fractions = console_epochs.fractions(got.wide, kind.label)
    wide, epochs = (
        (whole, fractions) if fractions else console_epochs.counted(console_epochs.placed(whole, table, kind.label))
    )
    wide, stand_in = _with_stand_in(_sane(console.with_prefix(_with_fields_before(wide), options)))
    if len(wide) < 3:
        raise InputError(f"{given.path} has no repeating line with a step and a number")
    shares = wide.height / max(1, table.filter(pl.col("text") != "").height)
    sure = "fairly sure" if kind.known else "not sure: no loss, gradient norm or learning rate among its numbers"
    notes = (
        f"console of an unknown program, {sure}: {wide.height:,} lines with {kind.label!r} and numbers, "
        f"{shares:.0%} of its lines, are read",
    )
    found = Found(table, wide, console.no_rejects(), (*notes, *epochs, *stand_in, *console.line_notes(got)))
    return console.finish(given, options, FORMAT, found)


def _kind(given: Input) -> _Kind | None:
    if console.is_binary(given):
        return None
    lines = console.sample(given).decode("utf-8", "replace").split("\n")
    lines = lines if len(lines) <= _LOOK else lines[: _LOOK // 3] + lines[-2 * _LOOK // 3 :]
    seen: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
    for line in lines:
        if 4 < len(line) < 4000 and _WORTH.search(line) and (found := _first_step(line)) is not None:
            seen[found] += 1
    best: _Kind | None = None
    for (marker, label, names), count in seen.most_common(50):
        canonical = {_canonical(_said(name)) for name in names}
        known = bool(canonical & _KNOWN)
        if count < 3 or not names:
            continue
        kind = _Kind(marker, label, count, known)
        if best is None or (kind.known, kind.count) > (best.known, best.count):
            best = kind
    return best


def _canonical(name: str) -> str:
    """What the name means, '' when nothing that is known."""
    found = claim(name) or family(name)
    return "" if found is None else found.canonical


def _first_step(line: str) -> tuple[str, str, tuple[str, ...]] | None:
    """The literal before the step, its label and the names behind it."""
    message = plain.peel(line)[1]
    match = next((m for pattern in _STEPS if (m := pattern.search(message)) is not None), None)
    if _BARE.match(message) and (match is None or match[1].lower() == "epoch"):
        names = tuple(n for n, _ in tokens.pairs(message.split("]", 1)[1], None))
        return ("[", "[step]", names) if len(names) > 1 else None
    if match is None or match.start() > 200:
        return None
    separated = match[2].strip() != ""
    rest = message[match.end() :]
    names = tuple(n for n, _ in tokens.pairs(rest, None, ("step",)))[1:]
    names += tuple(n for n, _ in tokens.pairs(message[: match.start()], None) if _canonical(_said(n)) in _KNOWN)
    punctuated = re.search(r"[\w)%]\s*[:=]\s*[-+\d.n]", rest) is not None or "|" in rest
    named = punctuated or any(_canonical(n) in _KNOWN for n in names)
    if not names or not (separated or named) or any(len(n) > 60 for n in names):
        return None
    return match[1] + match[2].rstrip() + ("" if separated else " "), match[1], names


def _with_fields_before(wide: pl.DataFrame) -> pl.DataFrame:
    """Metrics that stand before the step (`Loss 2.31  LR 0.001  Global Step: 20`) beside those behind it."""
    if "prefix" not in wide.columns or not len(wide):
        return wide
    before = wide.select("line", pl.col("prefix").fill_null("").alias("text"))
    before = before.filter(pl.col("text").str.contains(r"\d|(?i:nan|inf)"))
    got = fields.read(before, first=(), shape="").wide if len(before) else before
    news = {n: _said(n) for n in fields.names_of(got) if _canonical(_said(n)) in _KNOWN}
    news = {old: new for old, new in news.items() if new not in wide.columns}
    if not news or len(set(news.values())) < len(news):
        return wide
    return wide.join(got.select("line", *news).rename(news), on="line", how="left", maintain_order="left")


def _with_stand_in(wide: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Where no number is a known metric and some turn NaN or infinite, the first that does stands in for the loss."""
    names = fields.names_of(wide)
    if {_canonical(n) for n in names} & _KNOWN:
        return wide, ()
    wild = [n for n in names if wide[n].dtype == pl.Float64 and not wide[n].drop_nulls().is_finite().all()]
    if not wild:
        return wide, ()
    note = f"no loss is known: {values.escape(wild[0], 60)} is read as the loss, for it is not finite"
    return wide.rename({wild[0]: "loss"}), (note,)


def _said(name: str) -> str:
    """A name without the logger that may stand before it: `INFO:tensorflow:loss`."""
    return name if _canonical(name) else name.rsplit(":", 1)[-1].strip()


def _sane(wide: pl.DataFrame) -> pl.DataFrame:
    """Without rows of no step or of nothing else; a `time` that is no clock is what the program calls a time."""
    if not len(wide):
        return wide
    values = [name for name in fields.names_of(wide) if name not in ("step", "time", "rank")]
    wide = wide.filter(pl.col("step").is_not_null() & pl.any_horizontal(False, pl.col(values).is_not_null()))
    if "time" in wide.columns and (wide["time"].max() or 0.0) < 1e8:  # type: ignore[operator]
        wide = wide.rename({"time": "time of the line"})
    return wide
