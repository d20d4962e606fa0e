"""gdiag explain and gdiag list: what the checks and causes mean."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated

import typer

from gdiag.cli.output import write
from gdiag.errors import UsageError

if TYPE_CHECKING:
    from gdiag.analyzers.analyzer import Analyzer
    from gdiag.triage.about import About


def explain(
    name: Annotated[str, typer.Argument(metavar="CODE|CAUSE", help="GD102, loss-spike or bad_batch.")],
) -> None:
    """Explain a check (what it checks, why it matters, what to do, its thresholds) or a cause."""
    from gdiag.analyzers import ANALYZERS
    from gdiag.triage.about import about, causes

    analyzer = next((a for a in ANALYZERS if name.upper() == a.CODE or name.lower() == a.NAME), None)
    if analyzer is not None:
        write(_check(analyzer), None)
    elif name.lower() in causes():
        write(_cause(about(name.lower())), None)
    else:
        raise UsageError(f"no check or cause is called {name!r}; `gdiag list` shows them")


def listing() -> None:
    """List every check with its code, and every cause."""
    from gdiag.analyzers import ANALYZERS
    from gdiag.triage.about import causes

    longest = max(len(a.NAME) for a in ANALYZERS)
    lines = ["checks", *(f"  {a.CODE}  {a.NAME:<{longest}}  {_summary(a)}" for a in ANALYZERS)]
    lines += ["", "causes", *(f"  {cause}" for cause in causes())]
    write("\n".join([*lines, "", "`gdiag explain NAME` says more."]) + "\n", None)


def _summary(analyzer: Analyzer) -> str:
    return (analyzer.__doc__ or "").strip().partition("\n")[0]


def _check(analyzer: Analyzer) -> str:
    from gdiag.analyzers.selection import defaults

    lines = [f"{analyzer.CODE} {analyzer.NAME}", "", inspect.cleandoc(analyzer.__doc__ or ""), "", "Needs"]
    lines += [f"  {need.replace('|', ' or ')}" for need in analyzer.NEEDS]
    limits = defaults(analyzer)
    if limits:
        lines += ["", f"Thresholds (--set {analyzer.CODE}.name=value)"]
        lines += [f"  {name} = {value}" for name, value in limits.items()]
    return "\n".join(lines) + "\n"


def _cause(card: About) -> str:
    lines = [card.cause, "", "Explains (share of such incidents before any evidence is read)"]
    lines += [f"  {pattern:<22} {share:.1%}" for pattern, share in card.patterns]
    if card.families:
        lines += ["", "Evidence (odds multiplied by at most)", f"  {'':<12} {'for':>8} {'against':>10}"]
        lines += [f"  {family:<12} {_odds(plus):>8} {_odds(minus):>10}" for family, plus, minus in card.families]
    for title, texts in (("Would decide, where it is not logged", card.wanted), ("What to do", card.actions)):
        if texts:
            lines += ["", title, *(f"  - {text}" for text in texts)]
    return "\n".join(lines) + "\n"


def _odds(weight: float) -> str:
    from math import exp

    return f"×{exp(weight):.2g}" if weight else "–"
