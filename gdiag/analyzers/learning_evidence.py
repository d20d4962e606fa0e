"""Evidence on a run's progress: shared by the analyzers of learning, plateau and a rate that is too low."""

from __future__ import annotations

from math import log
from typing import Final

import numpy as np

from gdiag.measures.changes import Learning
from gdiag.measures.guesses import classes_guessed, classes_guessed_with
from gdiag.measures.run import RunView
from gdiag.measures.segments import interval
from gdiag.model import Measure

TOKENS: Final = ("tokens", "tokens_per_s", "seq_len", "token_entropy")
"""Columns of a language model, whose classes are its vocabulary: at ln 10 it has learned."""


def learning_measures(run: RunView, found: Learning, limit: float) -> tuple[Measure, ...]:
    """Levels, flat share and learning rate of a run; `limit` is what the best level was held against (nat)."""
    measures = [
        Measure("level_before", found.first, "nat"),
        Measure("level_after", found.end, "nat"),
        Measure("best_level", found.best, "nat", limit),
        Measure("flat_share", found.flat_share),
        Measure("slope", found.slope, "nat per e-fold of steps"),
        Measure("log_interval", run.losses[0].every, "step"),
    ]
    share = flat_lr_share(run, found)
    if share is not None:
        measures.append(Measure("lr_share_of_peak", share))
        measures.append(Measure("lr_at_onset", share * float(run.series("lr").value.max())))
    return tuple(measures)


MOVED = 1.5
"""Growth of the weights' norm from which they have moved by as much as they were: no fine-tuning does that."""


def weights_moved(run: RunView) -> float | None:
    """The largest norm of all weights over the first, where it is MOVED and more."""
    norm = run.series("param_norm").value
    if len(norm) < 8 or norm[0] <= 0:
        return None
    growth = float(np.max(norm)) / float(norm[0])
    return growth if growth >= MOVED else None


def guessed(run: RunView, *, within: float = 0.005) -> int | None:
    """The number of classes among which a model guesses in both quarters of the later half of its run.

    With an accuracy, loss and accuracy must both stand there, of any number of classes. Without one None for a language
    model, and for a log that begins late in a run: such a level may be what it has learned.
    """
    loss, accuracy = run.series("loss"), run.series("accuracy")
    if len(loss) >= 8 and len(accuracy) >= len(loss) // 2:
        later = [part[len(part) // 2 :] for part in (loss.value, accuracy.value)]
        return classes_guessed_with(float(np.median(later[0])), float(np.mean(later[1])))
    if len(loss) < 8 or not _from_its_start(run) or any(run.has(f"steps.{name}") for name in TOKENS):
        return None
    quarters = np.array_split(loss.value[len(loss) // 2 :], 2)
    third, last = (classes_guessed(float(np.median(part)), within=within) for part in quarters)
    return third if third == last else None


def guess_measures(run: RunView, classes: int | None) -> tuple[Measure, ...]:
    """Among how many classes a run guesses, and its first loss as a multiple of what that costs; empty without a guess."""
    if classes is None:
        return ()
    first = float(run.series("loss").value[0])
    return Measure("classes_guessed", classes), Measure("first_over_guess", first / log(classes))


def _from_its_start(run: RunView) -> bool:
    """Whether the log begins where the run does: by its step count, or by a rate that is warmed up from next to nothing."""
    loss, rate = run.series("loss"), run.series("lr")
    if loss.step[0] <= interval(loss.step):
        return True
    return len(rate) > 2 and rate.step[0] <= loss.step[0] and bool(rate.value[0] < 0.1 * rate.value.max() > 0)


def flat_lr_share(run: RunView, found: Learning, quantile: float = 0.5) -> float | None:
    """A quantile of the learning rate over the flat part as a share of its peak; None when not logged."""
    rate = run.series("lr")
    if not len(rate) or float(rate.value.max()) <= 0:
        return None
    loss = run.series("loss")
    start = int(loss.step[found.flat_from])
    flat = rate.value[rate.step >= start]
    return float(np.quantile(flat, quantile)) / float(rate.value.max()) if len(flat) else None
