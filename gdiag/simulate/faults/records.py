"""Faults of the log, not of the training."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, zip_longest
from typing import Final

from gdiag.simulate.faults.fault import Fault
from gdiag.simulate.forces import Forces
from gdiag.simulate.rows import Row, rows
from gdiag.simulate.training import model
from gdiag.simulate.trajectory import run
from gdiag.simulate.truth import Event


def _nothing(_forces: Forces) -> list[Event]:
    return []


def _interleaved(forces: Forces, found: list[Row]) -> list[Row]:
    """A second run of the same recipe and another seed writes into the same file."""
    setup = replace(forces.setup, seed=forces.setup.seed + 7919)
    other = Forces(
        setup, replace(model(setup), network=forces.model.network, first_step=forces.model.first_step), forces.rng
    )
    other.log, other.layer_every, other.averaged = forces.log, forces.layer_every, forces.averaged
    return [row for row in chain.from_iterable(zip_longest(found, rows(run(other)))) if row is not None]


def _gaps(forces: Forces, found: list[Row]) -> list[Row]:
    dropped: set[int] = set()
    for _ in range(3):
        at = int(forces.rng.integers(len(found) // 5, len(found) - len(found) // 10))
        dropped |= set(range(at, at + len(found) // 40))
    return [row for i, row in enumerate(found) if i not in dropped]


def _damaged(forces: Forces, content: bytes) -> bytes:
    """Three corrupt lines and a tail that was cut in mid-line."""
    lines = content.splitlines(keepends=True)
    for at in sorted({int(forces.rng.integers(len(lines) // 4, len(lines) - 5)) for _ in range(3)}):
        lines[at] = lines[at][: len(lines[at]) // 3] + b"\x00\xff" + b"\n"
    lines[-1] = lines[-1][: len(lines[-1]) // 2]
    return b"".join(lines)


FAULTS: Final = (
    Fault("two-writers", "two runs write into one file by turns", _nothing, healthy=True, note="two healthy writers in one file",
          tolerated=("log_quality",), rewrite=_interleaved),
    Fault("gaps", "stretches of steps were not logged", _nothing, healthy=True, note="logging gaps: info at most", rewrite=_gaps),
    Fault("damaged", "corrupt lines and a truncated tail", _nothing, healthy=True, note="corrupt lines", tolerated=("log_quality", "abnormal_exit"),
          damage=_damaged),
)  # fmt: skip
