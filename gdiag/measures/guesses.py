"""The loss of a model that guesses: the same probability for each of K classes costs ln K nat."""

from __future__ import annotations

from math import log
from typing import Final

CLASSES: Final = (10, 100, 1000)
"""Numbers of classes whose guess is known by its level: those of the usual benchmarks. Two is left out: ln 2 is also where
the discriminator of a healthy adversarial pair and an untouched preference model stand."""


def classes_guessed(level: float, *, within: float = 0.005) -> int | None:
    """The number of classes at whose guess `level` (nat) stands, to a share `within` of it; None for none of them."""
    return next((k for k in CLASSES if abs(level - log(k)) <= within * log(k)), None)


MOST_GUESSED: Final = 16.0
"""ln of nine million: a loss above it is no cross-entropy over a vocabulary, but a regression's or a sum."""


def untrained(level: float, least: float) -> bool:
    """Whether `level` (nat) is what a fresh model pays over a vocabulary of exp(`least`) tokens and more."""
    return least <= level <= MOST_GUESSED
