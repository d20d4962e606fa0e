"""What an analyzer is: a module for one fault, judged by thresholds that are its own keyword parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gdiag.measures.run import RunView
from gdiag.model import Finding


class Analyzer(Protocol):
    """A plain module; its docstring says what it checks, why it matters and what to do (`gdiag explain CODE`)."""

    __doc__: str | None
    CODE: str
    """GD102: never reused, never changed in meaning."""
    NAME: str
    """loss-spike: the module's name with hyphens."""
    NEEDS: tuple[str, ...]
    """Columns without which the check cannot run: 'steps.loss', 'layers.grad_norm', 'gpus.clock_sm'.

    All are needed; 'a|b' stands for either. What is missing becomes a Skip."""
    analyze: Callable[..., list[Finding]]
    """analyze(run: RunView, *, threshold=…): keyword parameters with defaults are what `--set CODE.name=` changes."""


def missing(run: RunView, needs: tuple[str, ...]) -> list[str]:
    """The needs that this run's columns do not meet."""
    return [need for need in needs if not any(run.has(column) for column in need.split("|"))]
