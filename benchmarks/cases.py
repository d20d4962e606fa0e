"""The suite's labelled runs: every fault over noise families, amplitudes, log intervals and naming styles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gdiag.simulate.case import Case, simulate
from gdiag.simulate.faults import FAULTS
from gdiag.simulate.faults.fault import Fault
from gdiag.simulate.noise import NOISES, Noise
from gdiag.simulate.styles import STYLES
from gdiag.simulate.training import Setup

RANGES: Final = {"tune": 2_000_000, "report": 13_000_000}
"""First seed of each range: look at the cases of one, report the figures of the other."""
PER_FAULT: Final = 6
PER_TRAP: Final = 8
PLAIN_HEALTHY: Final = 40
EVERY: Final = (1, 1, 5, 1, 10, 50)
AMPLITUDES: Final = (None, 0.1, 0.3, 1.0, 3.0, None)
SIZED: Final = frozenset({"spike", "small-spike", "step-up", "resume-optimizer-lost"})
"""Faults whose amplitude is walked through from 0.1 nat up; others draw their own."""
BRIEF: Final = frozenset({"bad-batch", "bad-shard", "duplicate-tokens", "rare-token", "grad-bit-flip"})


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make one case again."""

    fault: str
    setup: Setup

    @property
    def command(self) -> str:
        """The command line that writes this case."""
        s = self.setup
        size = f" --amplitude {s.amplitude}" if s.amplitude is not None else ""
        return f"gdiag simulate {self.fault} --seed {s.seed} --style {s.style} --steps {s.steps} --every {s.every} --noise {s.noise}{size}"

    def make(self) -> Case:
        """The case."""
        return simulate(self.fault, self.setup)


def recipes(first_seed: int, only: frozenset[str] = frozenset(), scale: float = 1.0) -> Iterator[Recipe]:
    """Every case of the range that begins at `first_seed`; `scale` multiplies the number of cases."""
    for number, fault in enumerate(FAULTS):
        if only and fault.name not in only:
            continue
        count = PLAIN_HEALTHY if fault.name == "healthy" else PER_TRAP if fault.healthy else PER_FAULT
        for k in range(max(1, round(scale * count))):
            yield _recipe(fault, number, k, first_seed)


def _recipe(fault: Fault, number: int, k: int, first_seed: int) -> Recipe:
    able = [style for style in STYLES if fault.needs <= style.carries]
    heavy = "layers" in fault.needs or "ranks" in fault.needs
    # A one-step event is only in the log where its step is logged. Each further round of six pairs amplitudes with other intervals.
    every = 1 if fault.name in BRIEF else EVERY[(k + k // len(EVERY) + number) % len(EVERY)]
    noises = tuple(noise for noise in NOISES if noise != "sft") if fault.scratch else NOISES
    noise: Noise = noises[(k + number) % len(noises)]
    steps = {1: 800 if heavy else 2000, 5: 3000, 10: 4000, 50: 8000}[every]
    return Recipe(
        fault.name,
        Setup(
            seed=first_seed + 100 * number + k,
            steps=steps,
            every=every,
            style=able[(3 * k + number) % len(able)].name,
            noise=noise,
            amplitude=AMPLITUDES[k % len(AMPLITUDES)] if fault.name in SIZED else None,
        ),
    )
