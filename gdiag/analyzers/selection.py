"""Which analyzers run, and with which thresholds: what the user typed, checked against what there is."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence

from gdiag.analyzers.analyzer import Analyzer
from gdiag.errors import UsageError
from gdiag.model import Value


def choose(analyzers: Sequence[Analyzer], select: Iterable[str] = (), ignore: Iterable[str] = ()) -> list[Analyzer]:
    """The analyzers that `select` names (all when empty) less those that `ignore` names, in their order.

    A name is a code (GD102), the beginning of codes (GD1) or an analyzer's name (loss-spike).

    Raises:
        UsageError: a name fits no analyzer, or none is left.
    """
    wanted, unwanted = [_named(analyzers, name) for name in select], [_named(analyzers, name) for name in ignore]
    kept = set().union(*wanted) if wanted else {analyzer.CODE for analyzer in analyzers}
    kept = kept.difference(*unwanted)
    if not kept:
        raise UsageError("what is selected and what is ignored leave no check")
    return [analyzer for analyzer in analyzers if analyzer.CODE in kept]


def _named(analyzers: Sequence[Analyzer], name: str) -> set[str]:
    upper = name.strip().upper()
    codes = {
        a.CODE for a in analyzers if a.NAME.upper() == upper or (upper.startswith("GD") and a.CODE.startswith(upper))
    }
    if not codes:
        families = ", ".join(sorted({a.CODE[:3] for a in analyzers}))
        raise UsageError(f"no check is called {name!r}; `gdiag list` shows codes and names, families are {families}")
    return codes


def defaults(analyzer: Analyzer) -> dict[str, Value]:
    """The thresholds of an analyzer: its keyword parameters and their defaults."""
    parameters = inspect.signature(analyzer.analyze).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def checked(
    analyzers: Sequence[Analyzer], thresholds: Mapping[str, Mapping[str, Value]]
) -> dict[str, dict[str, Value]]:
    """`thresholds` by code, each value of its parameter's own type; an analyzer may be given by code or by name.

    Raises:
        UsageError: an unknown analyzer or threshold, or a value of another type.
    """
    found: dict[str, dict[str, Value]] = {}
    for given, values in thresholds.items():
        analyzer = next((a for a in analyzers if given.upper() == a.CODE or given.lower() == a.NAME), None)
        if analyzer is None:
            raise UsageError(f"no check is called {given!r}; `gdiag list` shows codes and names")
        known = defaults(analyzer)
        for name, value in values.items():
            if name not in known:
                allowed = ", ".join(known) or "none"
                raise UsageError(f"{analyzer.CODE} has no threshold {name!r}; its thresholds are {allowed}")
            found.setdefault(analyzer.CODE, {})[name] = _typed(f"{analyzer.CODE}.{name}", value, known[name])
    return found


def _typed(name: str, value: Value, default: Value) -> Value:
    """`value` in the type of `default`; text is parsed, other types are only widened from int to float."""
    if isinstance(default, bool):
        words: dict[object, bool] = {"true": True, "false": False, True: True, False: False}
        key = value.lower() if isinstance(value, str) else value
        if isinstance(key, bool | str) and key in words:
            return words[key]
        raise UsageError(f"{name} is {value!r}; it must be true or false")
    if isinstance(default, str):
        return str(value)
    kind = "a whole number" if isinstance(default, int) else "a number"
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except ValueError:
        number = math.nan
    whole = isinstance(default, int)
    if not math.isfinite(number) or (whole and not number.is_integer()):
        raise UsageError(f"{name} is {value!r}; it must be {kind}, such as {default}")
    return int(number) if whole else number
