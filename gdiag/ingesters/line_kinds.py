"""Kinds of console lines: what introduces the step, what parts the fields, and the layout that a few of them show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from gdiag.ingesters import glued, layouts
from gdiag.ingesters.layouts import Layout

SAMPLES: Final = 32
"""Lines that a layout is learnt from."""
SHAPE: Final = r"[\s:=#\[]*\d"
"""A number behind the word that introduces it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What step lines look like."""

    separator: str | None
    """Literal between fields (' | '), or None when labels alone tell fields apart."""
    marker: str
    """The word that introduces the step number; every text has it. '' when the texts start behind it."""
    first: Sequence[str]
    """Names of the first numbers, where their labels do not name them."""
    begins: re.Pattern[str]
    """What stands behind the marker; other lines are left."""
    needs: Sequence[str]
    """Literals of every line that is worth a look of its own."""
    skip: Sequence[str]
    """Names of numbers that nobody wants."""
    loose: bool = False
    """Whether the marker and a number may stand in the middle of a line, too."""

    @property
    def starts(self) -> glued.Starts:
        """How each of several lines begins that are glued to one."""
        pattern = re.escape(self.marker) + self.begins.pattern
        return glued.Starts(pattern, self.separator, self.first, loose=self.loose)


@dataclass(frozen=True, slots=True)
class Begun:
    """Lines that were read before they became text."""

    layout: Layout
    alike: pl.DataFrame
    """Two rows or more of that layout, as in Fields.wide."""
    head: list[str]
    """The first step lines of all."""
    last: str
    """The last step line of all."""


def kind_of(
    separator: str | None = None,
    *,
    marker: str = "",
    first: Sequence[str] = ("step",),
    shape: str = SHAPE,
    needs: Sequence[str] = (),
    skip: Sequence[str] = (),
    loose: bool = False,
) -> Kind:
    """Step lines as `read` takes them."""
    return Kind(separator, marker, first, re.compile(shape), needs, skip, loose)


def learn(texts: Sequence[str], kind: Kind) -> Layout | None:
    """The layout of the first of some lines, None where it is no step line."""
    samples = [behind(text, kind.marker) for text in texts]
    if not kind.begins.match(samples[0]) or not all(word in texts[0] for word in kind.needs):
        return None
    layout = layouts.learn(samples, kind.separator, kind.first, kind.skip)
    if layout is None or not kind.marker:
        return layout
    return replace(
        layout,
        bare=all(text.startswith(kind.marker) for text in texts),
        late=any((layout.separator or " ") in text.split(kind.marker, 1)[0] for text in texts),
    )


def begins(text: str, kind: Kind) -> bool:
    """Whether a text begins as step lines do behind their marker."""
    return kind.begins.match(behind(text, kind.marker)) is not None


def behind(text: str, marker: str) -> str:
    """The text behind the first marker."""
    return text.split(marker, 1)[-1] if marker else text
