# ruff: noqa: T201
"""Shift, drift and bump of step time told apart, on simulated step times: the table of published acceptance figures.

    python -m benchmarks.step_time [--runs 200] [--hard 100]

Each case is so many runs of 5,000 steps: log-normal noise of 0.3–3 % with autocorrelation up to 0.5, a slow cycle of up to 1 %, rare stalls,
checkpoints every 150–500 steps in half of them. Hard cases have autocorrelation 0.6 and the noise they say. Gates: no false change in the
healthy runs; at least 95 % of the shifts of +7 % called shifts with a 90th percentile of the onset error of at most 5 steps.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gdiag.measures import levels

Floats = NDArray[np.float64]
STEPS = 5000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--hard", type=int, default=100)
    args = parser.parse_args()
    judge("healthy", healthy, args.runs)
    for size in (0.07, 0.1, 0.3):
        judge(f"shift +{size:.0%}", shifted(size), args.runs)
    for size in (0.08, 0.12, 0.3):
        judge(f"drift +{size:.0%}", drifting(size), args.runs)
    for size in (0.1, 0.3):
        judge(f"bump +{size:.0%}", bumped(size), args.runs)
    for noise in (0.02, 0.05, 0.1):
        judge(f"hard {noise:.0%}: healthy", lambda rng, n=noise: (base(rng, n, 0.6), None), args.hard)
        judge(f"hard {noise:.0%}: shift +7%", shifted(0.07, noise, 0.6), args.hard)
        judge(f"hard {noise:.0%}: drift +12%", drifting(0.12, noise, 0.6), args.hard)


Case = Callable[[np.random.Generator], tuple[Floats, int | None]]


def judge(name: str, case: Case, runs: int) -> None:
    kinds: Counter[str] = Counter()
    errors: list[int] = []
    began = time.process_time()
    for seed in range(runs):
        y, onset = case(np.random.default_rng([seed, 20]))
        up = [c for c in levels.find(2.4 * np.exp(y)).changes if c.kind != "wander" and c.ratio > 1]
        kinds[up[0].kind if up else "none"] += 1
        if up and onset is not None:
            errors.append(abs(up[0].start - onset))
    told = " · ".join(f"{kind} {n}" for kind, n in kinds.most_common())
    error = f"  onset error median {np.median(errors):.0f}, p90 {np.quantile(errors, 0.9):.0f}" if errors else ""
    print(f"{name:24} {told:40}{error}  {1000 * (time.process_time() - began) / runs:.0f} ms each")


def base(rng: np.random.Generator, noise: float | None = None, memory: float | None = None) -> Floats:
    """Logarithm of relative step times without a change."""
    sigma = float(rng.choice([0.003, 0.01, 0.02, 0.03])) if noise is None else noise
    r = float(rng.choice([0.0, 0.3, 0.5])) if memory is None else memory
    white = sigma * np.sqrt(1 - r * r) * rng.standard_normal(STEPS)
    y = np.empty(STEPS)
    y[0] = white[0] / np.sqrt(1 - r * r)
    for i in range(1, STEPS):
        y[i] = r * y[i - 1] + white[i]
    y += float(rng.choice([0.0, 0.005, 0.01])) * np.sin(
        2 * np.pi * rng.uniform(1, 4) * np.arange(STEPS) / STEPS + rng.uniform(0, 6)
    )
    if rng.random() < 0.5:
        y[:: int(rng.integers(150, 500))] += rng.uniform(0.2, 1.5)
    stalls = rng.random(STEPS) < 0.002
    y[stalls] += rng.uniform(0.3, 2, int(stalls.sum()))
    return y


def healthy(rng: np.random.Generator) -> tuple[Floats, int | None]:
    return base(rng), None


def shifted(size: float, noise: float | None = None, memory: float | None = None) -> Case:
    def case(rng: np.random.Generator) -> tuple[Floats, int | None]:
        y, onset = base(rng, noise, memory), int(rng.integers(600, 4400))
        y[onset:] += np.log1p(size)
        return y, onset

    return case


def drifting(size: float, noise: float | None = None, memory: float | None = None) -> Case:
    def case(rng: np.random.Generator) -> tuple[Floats, int | None]:
        y, onset = base(rng, noise, memory), int(rng.integers(300, 3000))
        y[onset:] += np.log1p(size) * np.linspace(0, 1, STEPS - onset)
        return y, onset

    return case


def bumped(size: float) -> Case:
    def case(rng: np.random.Generator) -> tuple[Floats, int | None]:
        y, onset = base(rng), int(rng.integers(600, 3500))
        y[onset : onset + int(rng.integers(400, 1200))] += np.log1p(size)
        return y, onset

    return case


if __name__ == "__main__":
    main()
