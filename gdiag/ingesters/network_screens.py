"""Screens of network cards that gdiag knows but does not judge: refused by name, in one sentence."""

from __future__ import annotations

import re
from typing import Final

from gdiag.errors import InputError
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT = "network-screen"

_FORMS: Final = (
    (re.compile(rb"(?m)^\s*Identifier\s+: 0x\w\w \("), "the transceiver page of ethtool -m"),
    (re.compile(rb"(?m)^\s*(?:rx|tx)_(?:prio\d_\w+|pause\w*): \d+"), "counters of ethtool -S"),
    (re.compile(rb"(?m)^/sys/class/infiniband/\S+/hw_counters/\w+:\d+"), "RoCE hardware counters of sysfs"),
    (re.compile(rb"(?m)^\s*Port (?:Tx|Rx)\s+PFC0\s+PFC1"), "the PFC counters of a SONiC switch"),
)


def recognise(given: Input) -> float:
    return 0.3 if any(pattern.search(given.head[:16384]) for pattern, _ in _FORMS) else 0.0


def read(given: Input, options: Options) -> Reading:  # noqa: ARG001
    """Refuse the file by the name of its form.

    Raises:
        InputError: always.
    """
    form = next(name for pattern, name in _FORMS if pattern.search(given.head[:16384]))
    raise InputError(f"{given.path} is {form}: one reading without a time window, which gdiag does not judge")
