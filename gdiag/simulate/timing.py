"""Step times: compute at the pace of the slowest replica's clock, collectives, data loading, pauses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gdiag.simulate.arrays import Floats
from gdiag.simulate.forces import Forces


@dataclass(slots=True)
class Times:
    """Seconds, (n,) each; `rank_compute` (n, ranks)."""

    step: Floats
    compute: Floats
    comm: Floats
    data: Floats
    end: Floats
    """Unix time at which the step is logged."""
    rank_compute: Floats


def times(forces: Forces, clocks: Callable[[float], Floats] | None = None) -> Times:
    """Times of every executed step; `clocks` gives each GPU's share of its full clock at a Unix time."""
    made, n = forces.model, forces.n
    rng = np.random.default_rng([forces.setup.seed, 404])
    base = made.step_time
    spread = 0.004 * rng.standard_normal((n, made.ranks)) + 0.004 * rng.standard_normal((n, 1))
    own = 0.78 * base * np.exp(spread + forces.compute[:, None] + forces.rank_compute)
    comm = 0.19 * base * np.exp(0.03 * rng.standard_normal(n) + forces.comm)
    data = 0.02 * base * np.exp(0.15 * rng.standard_normal(n) + forces.data)
    own[0] *= 1.0 + float(rng.uniform(0.0, 6.0))
    out = Times(np.zeros(n), np.zeros(n), comm, data, np.zeros(n), own)
    now = made.clock
    for i in range(n):
        if i in forces.restarts:
            now += 60.0 + 200.0 * base
        if clocks is not None:
            share = clocks(now)
            own[i] /= share[np.arange(made.ranks) % len(share)]
        out.compute[i] = own[i].max()
        out.step[i] = out.compute[i] + comm[i] + data[i] + forces.pause[i]
        now += float(out.step[i])
        out.end[i] = now
    return out
