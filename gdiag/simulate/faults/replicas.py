"""Faults that only some replicas have."""

from __future__ import annotations

from typing import Final

import numpy as np

from gdiag.simulate.faults.fault import Fault, needs
from gdiag.simulate.forces import Forces
from gdiag.simulate.truth import Event


def _grad_flip(forces: Forces) -> list[Event]:
    at, rank = forces.pick(0.25, 0.9), int(forces.rng.integers(forces.model.ranks))
    layer = forces.model.network.find("fc", int(forces.rng.integers(forces.model.network.blocks)))
    size = float(forces.rng.uniform(4.0, 8.0))
    forces.rank_grad[at, rank] += size
    forces.layer_gain[at, layer] += max(1.0, size - np.log(forces.model.ranks))
    causes = ("silent_data_corruption", "replica_divergence")
    name = forces.model.network.module(layer)
    return [
        Event(
            "grad_bit_flip_rank",
            causes,
            ("rank_mismatch", "rank_outlier"),
            forces.seen(at),
            name,
            rank,
            data=forces.samples(at),
        )
    ]


def _divergence(forces: Forces) -> list[Event]:
    at, rank = forces.pick(0.25, 0.8), int(forces.rng.integers(forces.model.ranks))
    grown = np.arange(1, forces.n - at + 1, dtype=np.float64)
    forces.checksum[at:, rank] = float(10 ** forces.rng.uniform(-6.5, -4.5)) * np.sqrt(grown)
    causes = ("replica_divergence", "silent_data_corruption")
    return [
        Event(
            "replica_divergence",
            causes,
            ("rank_mismatch", "rank_outlier"),
            forces.seen(at),
            rank=rank,
            tolerates_more=True,
        )
    ]


def _same_batch(forces: Forces) -> list[Event]:
    at, rank = forces.pick(0.25, 0.7), int(forces.rng.integers(forces.model.ranks))
    learned = 1 - np.exp(-np.arange(forces.n - at) / forces.rng.uniform(15, 60))
    forces.rank_excess[at:, rank] -= float(forces.rng.uniform(0.3, 0.9)) * forces.model.floor * learned
    forces.rank_grad[at:, rank] -= float(forces.rng.uniform(0.9, 2.5)) * learned
    causes = ("data_repeated", "bad_batch")
    return [Event("rank_same_batch", causes, ("rank_outlier",), forces.seen(at), rank=rank, tolerates_more=True)]


_RANKS: Final = needs("grad", "ranks", "checksum")
FAULTS: Final = (
    Fault("grad-bit-flip", "one replica's gradient is corrupted in one step", _grad_flip, _RANKS | needs("layers", "ids"), sudden=False),
    Fault("rank-same-batch", "one replica is given the same batch again and again and learns it by heart", _same_batch, needs("grad", "ranks"), sudden=False),
    Fault("replica-divergence", "one replica's weights drift away from the others'", _divergence, _RANKS, sudden=False),
)  # fmt: skip
