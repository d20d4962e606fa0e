"""The faults that can be simulated, listed by hand; one module per family."""

from __future__ import annotations

from typing import Final

from gdiag.errors import UsageError
from gdiag.simulate.faults import gpus, loss, none, pace, rates, records, replicas, restarts, tensors, validation
from gdiag.simulate.faults.fault import Fault

FAULTS: Final[tuple[Fault, ...]] = (
    *none.FAULTS, *loss.FAULTS, *rates.FAULTS, *tensors.FAULTS, *restarts.FAULTS, *replicas.FAULTS, *validation.FAULTS,
    *records.FAULTS, *pace.FAULTS, *gpus.FAULTS,
)  # fmt: skip


def fault(name: str) -> Fault:
    """The fault of that name.

    Raises:
        UsageError: there is none.
    """
    found = next((known for known in FAULTS if known.name == name), None)
    if found is None:
        raise UsageError(f"no fault {name!r}; `gdiag simulate --list` shows all {len(FAULTS)}")
    return found
