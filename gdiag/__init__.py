"""gdiag reads the logs of a training run after the fact and says what went wrong, where, why and what to do.

    report = gdiag.diagnose(gdiag.load(["run.jsonl"]))

Names are imported on first use, so that `import gdiag` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from gdiag.version import VERSION

if TYPE_CHECKING:
    from gdiag.errors import GdiagError, InputError, UsageError
    from gdiag.model import (
        Cause,
        Cost,
        DataWindow,
        Finding,
        Incident,
        Location,
        Measure,
        Report,
        Run,
        Segment,
        Series,
        Severity,
        Skip,
        Source,
        Table,
    )
    from gdiag.pipeline import diagnose, load
    from gdiag.schema import Records

__all__ = [
    "Cause", "Cost", "DataWindow", "Finding", "GdiagError", "Incident", "InputError", "Location", "Measure", "Records",
    "Report", "Run", "Segment", "Series", "Severity", "Skip", "Source", "Table", "UsageError", "__version__", "diagnose",
    "load",
]  # fmt: skip

__version__ = VERSION

_HOMES = {
    "diagnose": "pipeline", "load": "pipeline", "Records": "schema", "GdiagError": "errors", "InputError": "errors",
    "UsageError": "errors",
}  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'gdiag' has no attribute {name!r}")
    return getattr(import_module(f"gdiag.{_HOMES.get(name, 'model')}"), name)
