"""What a run minimises, as far as its columns' names tell: two networks that train against each other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from gdiag.ingesters.aliases import LONGEST_NAME

_LOSS: Final = frozenset(["loss", "losses", "err", "error"])
_SIDES: Final = (frozenset(["g", "generator"]), frozenset(["d", "discriminator"]))
"""Words that beside a loss mean one side alone, as DCGAN's `Loss_D` and StyleGAN's `Loss/G/loss` have them."""
_EITHER: Final = (frozenset(["gen"]), frozenset(["disc", "discr", "critic"]))
"""Words that mean other things too (a generation loss, an actor's critic): both sides must be there."""
_WORDS: Final = re.compile(r"\d+[a-z]*|[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def adversaries(columns: Iterable[str]) -> tuple[str, ...]:
    """The columns that hold the losses of a generator and its discriminator; empty where no name says so.

    Such losses have no level to hold and gradients none to keep: each side's rise is the other's progress.
    """
    sure: list[str] = []
    found: tuple[list[str], list[str]] = ([], [])
    for column in columns:
        words = {word.lower() for word in _WORDS.findall(column)} if len(column) <= LONGEST_NAME else frozenset[str]()
        if not words & _LOSS:
            continue
        if any(words & side for side in _SIDES):
            sure.append(column)
        for names, side in zip(found, _EITHER, strict=True):
            if words & side:
                names.append(column)
    return tuple(sure) or (tuple(found[0] + found[1]) if all(found) else ())
