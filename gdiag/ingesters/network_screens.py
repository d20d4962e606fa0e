"""Screens of network cards that gdiag knows but that count nothing: refused by name, in one sentence."""

from __future__ import annotations

import re
from typing import Final

from gdiag.errors import InputError
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT = "network-screen"

_FORMS: Final = ((re.compile(rb"(?m)^VM_hostname \S+\n0*[0-9a-f]{12,}"), "a list of hosts and port GUIDs"),)


def recognise(given: Input) -> float:
    return 0.3 if any(pattern.search(given.head[:16384]) for pattern, _ in _FORMS) else 0.0


def read(given: Input, options: Options) -> Reading:  # noqa: ARG001
    """Refuse the file by the name of its form.

    Raises:
        InputError: always.
    """
    form = next(name for pattern, name in _FORMS if pattern.search(given.head[:16384]))
    raise InputError(f"{given.path} is {form}: it holds no counters, and gdiag judges none of it")
