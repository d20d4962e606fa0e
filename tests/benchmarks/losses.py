"""How well loss events are told apart on made curves: `python -m tests.benchmarks.losses 1000 1100`.

Seeds 0-99 were looked at while the scan was built; figures to quote come from seeds from 1000 on.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np
import polars as pl

from gdiag.measures.curves import Path
from gdiag.measures.loss_events import loss_view
from gdiag.measures.repeats import spike_series
from tests.measures.made import NOISES, Floats, climb, healthy, noise, spike

KINDS = ("none", "lr_steps", "single", "small", "lone", "repeated", "divergence", "slow", "step_up")
WANTED = {"none": "none", "lr_steps": "none", "small": "single", "lone": "single", "slow": "divergence"}


@dataclass(frozen=True, slots=True)
class Case:
    """A curve with at most one event."""

    kind: str
    noise: str
    every: int
    step: np.ndarray[tuple[int], np.dtype[np.int64]]
    loss: Floats
    onset: int | None


def case(kind: str, seed: int) -> Case:
    """The curve of one kind and seed: rows, noise, log interval and event drawn from the seed."""
    rng = np.random.default_rng(1_000_003 * (1 + KINDS.index(kind)) + seed)
    family = NOISES[int(rng.integers(len(NOISES)))]
    every = int(rng.choice([1, 1, 1, 5, 10]))
    rows = int(rng.choice([600, 1500, 4000, 8000])) * (2 if every == 10 else 1)
    loss = healthy(rows, family, seed)
    sigma = float(np.std(noise(family, 2000, rng))) * 3.0
    onset = int(rng.uniform(0.3, 0.8) * rows)
    if kind == "lr_steps":
        for share in (0.5, 0.75):
            loss = loss - rng.uniform(0.1, 0.4) * (1 - np.exp(-np.maximum(0, np.arange(rows) - share * rows) / 30))
    elif kind in ("single", "small"):
        height = rng.uniform(1.0, 3.0) if kind == "single" else rng.uniform(5, 9) * sigma
        height = max(height, 5 * sigma)
        half = rng.uniform(8, 40) * every**0.5
        loss = loss + spike(rows, onset, height, half, rise=int(rng.integers(1, 5)))
    elif kind == "lone":
        onset -= onset % every
        loss[onset] *= rng.uniform(3.5, 15)
    elif kind == "repeated":
        onset = int(0.3 * rows)
        for at in np.linspace(onset, 0.9 * rows, int(rng.integers(4, 8))).astype(int):
            loss = loss + spike(rows, int(at), max(6 * sigma, rng.uniform(1, 3)), 12 * every**0.5)
    elif kind == "divergence":
        loss = loss + climb(rows, onset, rng.uniform(4, 6), int(0.1 * rows))
    elif kind == "slow":
        loss = healthy(rows, family, seed, stops=onset)
        loss = loss + climb(rows, onset, max(4 * sigma, rng.uniform(0.5, 1.2)), rows - onset)
    elif kind == "step_up":
        loss = loss + climb(rows, onset, max(0.3, 2.5 * sigma), 3)
    kept = np.arange(0, rows, every)
    return Case(kind, family, every, kept, loss[kept], None if kind in ("none", "lr_steps") else onset)


def verdict(made: Case) -> tuple[str, int | None]:
    """What is found: none, single, repeated, divergence or step_up, and its onset."""
    frame = pl.DataFrame({"step": made.step, "loss": made.loss})
    frame = frame.with_columns(source=pl.lit(0), line=pl.int_range(1, len(made.step) + 1))
    view = loss_view(Path("trajectory", frame, 0))
    order = {"divergence": 0, "step_up": 1, "spike": 2}
    events = sorted(view.events, key=lambda event: (order[event.kind], event.onset))
    series = spike_series(view)
    if not events:
        return "none", None
    if events[0].kind == "spike":
        return ("repeated" if series is not None else "single"), events[0].onset_step
    return events[0].kind, events[0].onset_step


def main(first: int, last: int) -> None:
    """Print a line for each kind: share right, what else was said, onset error in logged rows."""
    for kind in KINDS:
        said: Counter[str] = Counter()
        errors: list[float] = []
        for seed in range(first, last):
            made = case(kind, seed)
            found, onset = verdict(made)
            said[found] += 1
            if found != WANTED.get(kind, kind):
                said[f"{made.noise}/{made.every}"] += 0
            if made.onset is not None and onset is not None:
                errors.append(abs(onset - made.onset) / made.every)
        error = f"onset error median {np.median(errors):.1f}, p90 {np.quantile(errors, 0.9):.1f} rows" if errors else ""
        right = said[WANTED.get(kind, kind)]
        print(f"{kind:11s} {right}/{last - first} {dict(said)} {error}")  # noqa: T201


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]))
