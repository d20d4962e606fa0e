"""The curves that other tools were tried on: eight faulty ones, thirty healthy ones, and what gdiag says of each.

    python benchmarks/spikes.py [SEEDS]

2000 steps, loss from about 10.8 down to about 2.9, noise of 3 to 3.5 % of the loss. Healthy curves come in three noise
families: gauss 3-3.5 %, fine-tuning 15-30 %, heavy-tailed with 3 % hard batches. Every curve is one of `gdiag simulate`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.cases import Recipe
from benchmarks.suite import Outcome, outcome
from gdiag.simulate.noise import Noise
from gdiag.simulate.training import Setup, model

INPUTS: Final = (
    ("one spike of 2.7×, gone after some 25 steps", "spike", 4.9),
    ("one point of 4×", "point-spike", 8.7),
    ("one point of 15×", "point-spike", 40.0),
    ("1.35× for 30 steps, no gradient sign", "small-spike", 1.0),
    ("several spikes at similar distances", "repeated-spikes", 4.9),
    ("NaN after a rise", "nan-after-rise", 3.0),
    ("divergence 2.9 → 8.9 and more", "divergence", None),
    ("slow divergence 2.9 → 3.6", "slow-divergence", 0.7),
)
"""What it is, the fault, nats."""
HEALTHY: Final[tuple[Noise, ...]] = ("gauss", "sft", "heavy")


def seeds(noise: Noise, count: int) -> Iterator[int]:
    """Seeds whose model has a large vocabulary and, for gauss, at least 3 % noise."""

    def fits(seed: int) -> bool:
        made = model(Setup(seed=seed, noise=noise))
        return noise == "sft" or (made.start > 10 and (noise != "gauss" or made.noise >= 0.03))

    return itertools.islice(filter(fits, itertools.count(7_000_000)), count)


def _row(name: str, outcomes: list[Outcome]) -> str:
    judged = [o.judged for o in outcomes if o.judged is not None]
    right = sum(all(m.patterned for m in j.matches) for j in judged if j.matches)
    seen = sum(all(m.incident is not None for m in j.matches) for j in judged if j.matches)
    false = sum(len(j.false) for j in judged)
    verdict = (
        f"{seen:2d} seen, {right:2d} named rightly of {len(outcomes):2d}"
        if any(j.matches for j in judged)
        else f"{len(outcomes):2d} runs"
    )
    return f"{name:46s} {verdict:34s} {false} other incidents"


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for name, fault, amplitude in INPUTS:
        chosen = [Recipe(fault, Setup(seed=seed, noise="gauss", amplitude=amplitude)) for seed in seeds("gauss", count)]
        print(_row(name, [outcome(recipe) for recipe in chosen]), flush=True)  # noqa: T201
    for noise in HEALTHY:
        chosen = [Recipe("healthy", Setup(seed=seed, noise=noise)) for seed in seeds(noise, 10)]
        print(_row(f"healthy, {noise}", [outcome(recipe) for recipe in chosen]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
