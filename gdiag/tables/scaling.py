"""One side of a comparison, and what its learning rate should be by the rules of batch scaling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdiag.measures.curves import Curve
from gdiag.measures.run import RunView
from gdiag.model import Column, Report, Table, Value
from gdiag.tables.batches import batch_of, growth


@dataclass(frozen=True, slots=True)
class Side:
    """One run of the two, its diagnosis and its measures."""

    label: str
    """A or B."""
    report: Report
    view: RunView

    def curve(self, name: str) -> Curve:
        """A column of `steps`."""
        return self.view.series(name)

    def median(self, name: str) -> float | None:
        """Median of a column's finite values; None when not logged."""
        values = self.curve(name).value
        return float(np.median(values)) if len(values) else None

    def setting(self, name: str) -> Value | None:
        """A value of the run's configuration."""
        return self.view.run.config.get(name)


def peak_rate(side: Side) -> float | None:
    """The highest learning rate logged, else the configured one."""
    values = side.curve("lr").value
    if len(values):
        return float(values.max())
    said = side.setting("lr")
    return float(said) if isinstance(said, int | float) else None


def tokens_per_step(side: Side) -> float | None:
    """The usual growth of the token counter."""
    counter = side.curve("tokens")
    return growth(counter.step.astype(np.float64), counter.value)


def scaling(a: Side, b: Side) -> Table:
    """What the learning rate of B should be by either rule, from A's rate and both batch sizes.

    Square root: Malladi et al. 2022 (arXiv:2205.10287) for Adam-like optimizers; linear: Goyal et al. 2017
    (arXiv:1706.02677) for SGD at moderate batch sizes.
    """
    sides = batch_of(a.view), batch_of(b.view)
    alike = len({batch.whole for batch in sides if batch is not None}) < 2
    counts = [(" tokens", tokens_per_step(a), tokens_per_step(b))]
    if alike:
        one, two = (None if batch is None else batch.samples for batch in sides)
        counts.insert(0, ("", one, two))
    unit, *batches = next((found for found in counts if None not in found), ("", None, None))
    if None in batches and not alike:
        less = "A" if sides[0] is not None and not sides[0].whole else "B"
        return Table(
            f"Learning rate not held against the batch: {less}'s configuration does not tell its number of devices",
            (),
            (),
        )
    how = ["" if unit or batch is None or batch.how == "logged" else f" ({batch.how})" for batch in sides]
    rates = peak_rate(a), peak_rate(b)
    columns = (Column("rule"), Column("LR of B"), Column("B has, of that"))
    if None in batches or None in rates or batches[0] == batches[1]:
        return Table("", columns, ())
    small, large, rate, has = batches[0] or 1.0, batches[1] or 1.0, rates[0] or 0.0, rates[1] or 0.0
    rows: list[tuple[Value | None, ...]] = []
    for rule, power in (
        ("square root of the batch ratio", 0.5),
        ("linear in the batch ratio", 1.0),
        ("unchanged", 0.0),
    ):
        wanted = rate * (large / small) ** power
        rows.append((rule, wanted, has / wanted if wanted else None))
    title = f"Learning rate for batch {large:,.7g}{unit}{how[1]} from {rate:g} at batch {small:,.7g}{unit}{how[0]}; B has {has:g}"
    return Table(title, columns, tuple(rows))
