"""Names and numbers of one console line: which word names which number, in which unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from gdiag.ingesters.text import NUMBER

_TOKEN: Final = re.compile(rf"(?<![\w.]){NUMBER}")
_UNIT: Final = re.compile(r"^(?:[A-Za-zµ%]+(?:/[A-Za-z]+)*|\s(?:ms|us|s|sec|seconds|[KMGT]i?B)(?![\w/:=]))?")
_WORD_AFTER: Final = re.compile(r"\s+[A-Za-z][\w ]*[:=]")
_SCALES: Final = {
    "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "s": 1.0, "sec": 1.0, "seconds": 1.0, "min": 60.0,
    "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12,
}  # fmt: skip
"""Units glued to a number → factor to s or B, and SI suffixes. (GB as printed by torch is 2**30 or 1e9: within 7 %.)"""
_PACES: Final = (
    (re.compile(r"\s?(?:s|secs?|seconds)/(?:steps?|it|iter|batch)\b"), "seconds_per_step"),
    (re.compile(r"\s?(?:steps?|its?|iters?|batch)/s(?:ec)?\b"), "steps_per_second"),
)
_KEYS: Final = ("line", "prefix", "run", "source")
"""Names that rows bear already."""
_APART: Final = re.compile(r"[A-Za-z][,;]\s+$")
"""A comma between a name and a number: the name belongs to the number before it (`1.23 avg loss, 0.001 rate`)."""
_EDGE: Final = " \t:=|,;()[]{}<>'\"~-"


def label(literal: str) -> str:
    """The name in a literal that stands before a number: '' when there is none."""
    if _APART.search(literal):
        return ""
    text = re.sub(r"^[\s|(\[/\d.,:%]*\d\S*\s+", "", literal.strip())
    name = re.split(r"[|,;](?=\s)|\s{2,}|\s[-/]\s|\t", text.strip(_EDGE + "/#"))[-1]
    if name.count("(") > name.count(")"):
        name += ")"
    name = name.strip(_EDGE.replace(")", "") + "/#").lstrip(")")
    name = re.sub(r"\s+(?:is|was|of|at)$", "", name)
    name = re.sub(r"\s+", " ", name) if re.search(r"[A-Za-z]", name) else ""
    return f"{name} value" if name in _KEYS else name


def later_label(literal: str) -> str:
    """The name in a literal between two numbers, the unit of the first one aside."""
    return label(_UNIT.sub("", literal))


def pace(literal: str) -> str:
    """What a number is that names itself by its unit: `(0.51 sec/step)`, `2.45 step/s`; '' for any other."""
    return next((name for pattern, name in _PACES if pattern.match(literal)), "")


def scale(literal: str) -> float:
    """Factor of the unit that a literal behind a number begins with."""
    unit = _UNIT.match(literal)
    return _SCALES.get(unit[0].strip(), 1.0) if unit else 1.0


def literals(text: str) -> tuple[list[str], list[str]]:
    """The text between the numbers (one piece more than numbers) and the numbers."""
    between: list[str] = []
    numbers: list[str] = []
    end = 0
    for match in _TOKEN.finditer(text):
        word = match[0][-1].isalpha() and text[: match.start()].rstrip()[-1:] not in (":", "=")
        if word and _WORD_AFTER.match(text, match.end()):
            continue  # the word in "number of nan iterations: 0"
        between.append(text[end : match.start()])
        numbers.append(match[0])
        end = match.end()
    between.append(text[end:])
    return between, numbers


def pieces(text: str, separator: str | None) -> list[str]:
    """The line cut at its separator; whole when it has none."""
    return text.split(separator) if separator else [text]


def pairs(text: str, separator: str | None, first: Sequence[str] = ()) -> list[tuple[str, float]]:
    """Names and numbers of one line, in order; `first` names the first numbers."""
    found: list[tuple[str, float]] = []
    for piece in pieces(text, separator):
        between, numbers = literals(piece)
        for position, number in enumerate(numbers):
            before = between[position]
            name = first[len(found)] if len(found) < len(first) else (later_label if position else label)(before)
            if not name or name.lower() == "speed":
                name = pace(between[position + 1]) or name
            if name:
                found.append((name, float(number.replace(",", "")) * scale(between[position + 1])))
    return found
