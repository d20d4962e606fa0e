"""What a run minimises, as far as its columns' names tell: two networks against each other, or a weighted sum of terms."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from gdiag.ingesters.aliases import LONGEST_NAME

_LOSS: Final = frozenset(["loss", "losses", "err", "error"])
_SIDES: Final = (frozenset(["g", "generator"]), frozenset(["d", "discriminator"]))
"""Words that beside a loss mean one side alone, as DCGAN's `Loss_D` and StyleGAN's `Loss/G/loss` have them."""
_NETWORKS: Final = frozenset(["generator", "discriminator"])
_EITHER: Final = (frozenset(["gen"]), frozenset(["disc", "discr", "critic"]))
"""Words that mean other things too (a generation loss, an actor's critic): both sides must be there."""
_TERMS: Final = (frozenset(["recon", "reconstruction", "rec", "recons"]), frozenset(["kl", "kld", "kldiv"]))
"""Words of the two terms of a variational bound."""
_WORTH: Final = ("loss", "err", "generator", "discriminator", "rec", "kl")
"""A name that holds none of these is none of the above."""
_WORDS: Final = re.compile(r"\d+[a-z]*|[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def adversaries(columns: Iterable[str]) -> tuple[str, ...]:
    """The columns that hold the losses, or else the layers, of a generator and its discriminator; empty where no name says so.

    Such losses have no level to hold and gradients none to keep: each side's rise is the other's progress.
    """
    sure: list[str] = []
    found: tuple[list[str], list[str]] = ([], [])
    layers: dict[str, str] = {}
    for column in columns:
        words = _words(column)
        for network in sorted(words & _NETWORKS):
            layers.setdefault(network, column)
        if not words & _LOSS:
            continue
        if any(words & side for side in _SIDES):
            sure.append(column)
        for names, side in zip(found, _EITHER, strict=True):
            if words & side:
                names.append(column)
    if sure or all(found):
        return tuple(sure or found[0] + found[1])
    return tuple(layers.values()) if len(layers) == len(_NETWORKS) else ()


def variational(columns: Iterable[str]) -> tuple[str, ...]:
    """The columns that hold reconstruction and divergence of a variational autoencoder; empty where one is missing.

    The weight of the divergence is commonly raised over the run (KL annealing, Bowman et al. 2016), and the sum with it.
    """
    named = [(column, _words(column)) for column in columns]
    found = [next((column for column, words in named if words & term), None) for term in _TERMS]
    return tuple(column for column in found if column is not None) if all(found) else ()


def _words(column: str) -> set[str]:
    """The words of a name; none where none of them can matter, as in those of thousands of layers."""
    lower = column[:LONGEST_NAME].lower()
    if len(column) > LONGEST_NAME or not any(part in lower for part in _WORTH):
        return set()
    return {word.lower() for word in _WORDS.findall(column)}
