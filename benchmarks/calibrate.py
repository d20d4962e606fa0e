"""Fits the temperature of the causes' scores on simulated runs and writes the reliability table.

python benchmarks/calibrate.py [SCALE]    fit on the tuning range, report on the other, write docs/calibration.md

One temperature divides all log-odds (Guo et al. 2017, temperature scaling). It is fitted by the smallest logarithmic loss
of "the first cause is right" over the events that the tuning range makes visible, and reported on seeds never used for it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.cases import RANGES, recipes
from benchmarks.suite import outcome
from gdiag.triage.causes import TEMPERATURE

ROOT = Path(__file__).parent.parent
BINS = 10
GRID = [round(0.2 + 0.05 * k, 2) for k in range(57)]


@dataclass(frozen=True, slots=True)
class Guess:
    """One event: the scores of the causes that its incident names, best first, and whether the first is right."""

    scores: tuple[float, ...]
    right: bool

    def top(self, temperature: float) -> float:
        """Score of the first cause had the log-odds been divided by `temperature` instead of the present one.

        What is not listed counts as one more candidate.
        """
        power = TEMPERATURE / temperature
        rest = max(1.0 - sum(self.scores), 1e-6)
        powers = [math.exp(power * math.log(max(score, 1e-9))) for score in (*self.scores, rest)]
        return powers[0] / sum(powers)


def guesses(name: str, scale: float) -> list[Guess]:
    """Every visible, detected event of a range of seeds whose incident names a cause."""
    found = []
    for recipe in recipes(RANGES[name], frozenset(), scale):
        judged = outcome(recipe).judged
        for match in judged.matches if judged is not None else ():
            if match.visible and match.incident is not None and match.incident.causes:
                scores = tuple(cause.score for cause in match.incident.causes)
                found.append(Guess(scores, match.caused))
    return found


def loss(seen: Sequence[Guess], temperature: float) -> float:
    """Mean negative log-likelihood of the first cause being right or wrong."""
    total = 0.0
    for guess in seen:
        p = min(max(guess.top(temperature), 1e-6), 1 - 1e-6)
        total -= math.log(p if guess.right else 1 - p)
    return total / len(seen)


def brier(seen: Sequence[Guess], temperature: float) -> float:
    """Mean squared distance of the first cause's score from right (1) or wrong (0)."""
    return sum((guess.top(temperature) - guess.right) ** 2 for guess in seen) / len(seen)


def reliability(seen: Sequence[Guess], temperature: float) -> tuple[list[tuple[float, int, float, float]], float]:
    """(lower edge, events, mean score, share right) per tenth of the score, and the expected calibration error."""
    rows, error = [], 0.0
    for k in range(BINS):
        inside = [g for g in seen if k <= min(g.top(temperature) * BINS, BINS - 1e-9) < k + 1]
        if inside:
            mean = sum(g.top(temperature) for g in inside) / len(inside)
            share = sum(g.right for g in inside) / len(inside)
            rows.append((k / BINS, len(inside), mean, share))
            error += len(inside) / len(seen) * abs(mean - share)
    return rows, error


def main() -> None:
    """Fit, report, write."""
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    tune, report = guesses("tune", scale), guesses("report", scale)
    best = min(GRID, key=lambda t: loss(tune, t))
    rows, error = reliability(report, TEMPERATURE)
    lines = [
        "# Calibration of the causes' scores", "",
        "A score is meant to be the share of incidents with that score whose first cause is right. It is fitted and checked on",
        "runs that `gdiag simulate` writes: mechanisms carry over to real runs, shares of causes may not, so on real runs a",
        "score orders causes and its band says how much evidence stands behind it.", "",
        f"`python benchmarks/calibrate.py {scale:g}` fits one temperature on {len(tune)} events of one range of seeds (best {best:g},",
        f"in use {TEMPERATURE:g}) and reports on {len(report)} events of another. The best temperature is not used where it is",
        "sharper than the one in use: simulated faults are cleaner than real ones, and a bare spike counts as explained by any",
        "of several causes. The scores are therefore cautious: on simulated runs the first cause is right more often than its",
        "score says, and on real runs nobody has labelled enough of them to say more.", "",
        f"- Brier score {brier(report, TEMPERATURE):.3f}, expected calibration error {error:.3f}", "",
        "| score of the first cause | events | mean score | share right |", "|---|---|---|---|",
        *(f"| {low:.1f}–{low + 0.1:.1f} | {n} | {mean:.2f} | {share:.2f} |" for low, n, mean, share in rows),
    ]  # fmt: skip
    (ROOT / "docs" / "calibration.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.stdout.write("\n".join(lines[7:]) + f"\nbest temperature on the tuning range: {best:g}\n")


if __name__ == "__main__":
    main()
