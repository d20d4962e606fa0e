"""Counters of two network ports, as a loop of `date; hostname; perfquery` on one host would have written them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import numpy as np

from gdiag.simulate.arrays import Floats

READINGS: Final = 60
"""Readings over the run."""
_WORDS: Final = 2.5e9
"""32-bit words that a port sends in a second: 80 Gb/s."""


def perfquery(end: Floats, errors: Floats) -> str:
    """Readings of ports 1 of two cards, of which the second receives `errors` damaged packets in each step; `end` in Unix s."""
    edges = np.unique(np.linspace(0, len(end) - 1, READINGS).astype(int))
    out = []
    for i in edges:
        moment = datetime.fromtimestamp(float(end[i]), UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
        out.append(f"{moment}\nhostname: node-017\n")
        words = int((end[i] - end[0]) * _WORDS) + 10**9
        for lid, bad in ((31, 0), (32, int(errors[: i + 1].sum()))):
            out.append(
                f"# Port extended counters: Lid {lid} port 1 (CapMask: 0x5A00 CapMask2: 0x0000000)\n"
                f"PortXmitData:....................{words}\nPortRcvData:.....................{words}\n"
                f"SymbolErrorCounter:..............0\nLinkDownedCounter:...............0\n"
                f"PortRcvErrors:...................{bad}\nPortXmitDiscards:................0\n"
            )
    return "".join(out)
