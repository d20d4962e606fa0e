"""The loss of a model that guesses: the same probability for each of K classes costs ln K nat."""

from __future__ import annotations

from math import ceil, exp, log
from typing import Final

CLASSES: Final = (10, 100, 1000)
"""Numbers of classes whose guess is known by its level: those of the usual benchmarks. Two is left out: ln 2 is also where
the discriminator of a healthy adversarial pair and an untouched preference model stand."""


def classes_guessed(level: float, *, within: float = 0.005) -> int | None:
    """The number of classes at whose guess `level` (nat) stands, to a share `within` of it; None for none of them."""
    return next((k for k in CLASSES if abs(level - log(k)) <= within * log(k)), None)


MOST_CLASSES: Final = 10_000
NEAR_LEVEL, NEAR_NAT = 0.03, 0.13
LEAST_SHARE, MOST_SHARE = 0.65, 1.8
"""How near the loss to ln K, as a share of it and in nat, and the accuracy to 1 / K, as a share, must be for a guess among any
number of classes: two columns that only a guess brings together. A guess that knows how frequent classes are is right as often as the most frequent
one comes, which is more than 1 / K."""


def classes_guessed_with(level: float, accuracy: float) -> int | None:
    """The number of classes at whose guess both the loss `level` (nat) and the `accuracy` stand; None for none.

    Few batches hit 1 / K exactly, and classes of unequal frequency cost a little less than ln K.
    """
    if not 0.5 / MOST_CLASSES < accuracy < 1 or not 0.5 < level < log(MOST_CLASSES):
        return None
    likely = round(exp(level))
    return next(
        (
            k
            for k in sorted(
                {max(2, likely), max(2, likely + 1), round(1 / accuracy), ceil(LEAST_SHARE / accuracy) + 1},
                key=lambda k: abs(level - log(k)),
            )
            if abs(level - log(k)) <= min(NEAR_LEVEL * log(k), NEAR_NAT) and LEAST_SHARE <= accuracy * k <= MOST_SHARE
        ),
        None,
    )


MOST_GUESSED: Final = 16.0
"""ln of nine million: a loss above it is no cross-entropy over a vocabulary, but a regression's or a sum."""


def untrained(level: float, least: float) -> bool:
    """Whether `level` (nat) is what a fresh model pays over a vocabulary of exp(`least`) tokens and more."""
    return least <= level <= MOST_GUESSED
