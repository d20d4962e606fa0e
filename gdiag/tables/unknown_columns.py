"""Columns of numbers that nobody knows, and what their names may mean."""

from __future__ import annotations

import re
from typing import Final

from gdiag.model import Column, Source, Table, Value
from gdiag.schema import Records

_MOST: Final = 40
"""Names that are shown."""
_EVALUATED: Final = r"(?<![a-z])(?:val|valid|validation|eval|evaluation|test|dev|heldout)(?![a-z])"
_LOSS: Final = r"(?:loss|(?<![a-z])(?:nll|xent|ce|obj|objective|cost)(?![a-z])|cross.?entropy)"
_GUESSES: Final[tuple[tuple[str, str], ...]] = (
    (rf"{_EVALUATED}.*{_LOSS}|{_LOSS}.*{_EVALUATED}", "eval_loss"),
    (r"loss.*scale|scaler|scale.*loss", "loss_scale"),
    (_LOSS, "loss"),
    (r"grad.*norm|norm.*grad|gnorm|(?<![a-z])grad(?:ient)?s?(?![a-z])", "grad_norm"),
    (r"(?<![a-z])lr(?![a-z])|learning.?rate", "lr"),
    (r"(?:step|iter|batch|update).*(?:time|sec|(?<![a-z])ms|dur)|(?:time|sec|dur).*(?:step|iter|batch|update)", "step_time"),
    (r"tok.*(?:/|per|_).?s(?:ec)?(?![a-z])|(?<![a-z])tps(?![a-z])|throughput", "tokens_per_s"),
    (r"(?<![a-z])tok(?:en)?s?(?![a-z])", "tokens"),
    (r"(?<![a-z])acc(?:uracy)?(?![a-z])", "accuracy"),
    (r"(?<![a-z])mem(?:ory)?(?![a-z])", "memory"),
    (r"(?<![a-z])(?:global.?)?(?:step|iter|iteration|update)s?(?:.?(?:num|no|idx|count))?(?![a-z])", "step"),
    (r"(?<![a-z])epochs?(?![a-z])", "epoch"),
    (r"time.?stamp|(?<![a-z])(?:date|wall.?time|clock)(?![a-z])", "time"),
    (r"(?<![a-z])rank(?![a-z])", "rank"),
)  # fmt: skip
"""Form of a name in lower case → the metric that it may be; the first that fits."""
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DIGITS: Final = re.compile(r"\d+")


def guess(name: str) -> str | None:
    """The metric that a column may be by the words of its name, None where they say none."""
    lower = _WORDS.sub("_", name[:200]).lower()
    return next((canonical for form, canonical in _GUESSES if re.search(form, lower)), None)


def unknown(records: Records) -> list[Table]:
    """A table per file that has such columns: those whose names differ only in numbers as one, those with a guess first."""
    return [table for source in records.sources if (table := _of(source)) is not None]


def _of(source: Source) -> Table | None:
    families: dict[str, list[str]] = {}
    for name in source.unused:
        families.setdefault(_DIGITS.sub("#", name), []).append(name)
    if not families:
        return None
    guessed = [(names, guess(names[0])) for names in families.values()]
    rows: list[tuple[Value | None, ...]] = [
        (
            names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more",
            len(names),
            _said(names[0], found, source),
        )
        for names, found in sorted(guessed, key=lambda item: item[1] is None)
    ]
    more = f", the first {_MOST}" if len(rows) > _MOST else ""
    title = f"{source.path}: columns of numbers without a use ({len(source.unused):,}{more})"
    columns = (Column("name in the file"), Column("columns"), Column("may be"))
    return Table(title, columns, tuple(rows[:_MOST]))


def _said(name: str, found: str | None, source: Source) -> str | None:
    if found is None:
        return None
    instead = f", in place of {source.columns[found]}" if found in source.columns else ""
    return f"--map '{found}={name}'{instead}"
