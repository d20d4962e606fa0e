"""One module per fault; this tuple lists them by hand, in order of code."""

from __future__ import annotations

from gdiag.analyzers.analyzer import Analyzer

ANALYZERS: tuple[Analyzer, ...] = ()
