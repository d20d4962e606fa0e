"""Steps of several files that count epochs, in one unit: train rows every 0.1 epochs and evaluations every 0.5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from gdiag.ingesters.reading import Reading
from gdiag.ingesters.rows import counted_in, fractional, of_each_run, several_runs

_SAID: Final = ("steps are fractions", "no step column:")
"""How the notes begin that a reader of one file wrote about its steps."""


def in_one_unit(readings: list[Reading], members: Sequence[int]) -> bool:
    """Counts the steps of readings anew that stand for the same fractions, so that equal places have equal numbers.

    Args:
        readings: all of them; those of `members` are put back.
        members: the readings that may be one run; nothing is done where none counts in fractions.

    Returns:
        whether any were counted anew.
    """
    axes = {i: axis for i in members if (axis := _axis(readings[i])) is not None}
    if len(axes) < 2 or not any(_is_fraction(axis) for axis in axes.values()):
        return False
    names = {readings[i].source.columns.get("step") for i in axes}
    for i in members:
        # A file of the same counter that happens to hold whole numbers only.
        steps, name = readings[i].steps, readings[i].source.columns.get("step")
        if i not in axes and steps is not None and name is not None and name in names:
            axes[i] = steps.select("step", at=pl.col("step").cast(pl.Float64))
    every = pl.concat([axis["at"] for axis in axes.values()]).unique().sort()
    number, how = counted_in(every)
    table = pl.DataFrame({"at": every, "fresh": number.cast(pl.Int64)})
    for i, axis in axes.items():
        known = axis.unique("step", keep="first").join(table, on="at", how="left").select("step", "fresh")
        readings[i] = _renumbered(readings[i], known, f"steps are fractions, {how} in all files of the run")
    return True


def in_own_units(reading: Reading) -> Reading:
    """The reading with the steps of runs that were told apart in it, each in the unit of its own fractions."""
    steps, columns = reading.steps, reading.source.columns
    if steps is None or not several_runs(steps) or "epoch" not in steps.columns:
        return reading
    counted = columns.get("step") == columns.get("epoch") and fractional(steps["epoch"])
    if not counted or any(note.startswith(_SAID[1]) for note in reading.source.notes):
        return reading
    number, how = of_each_run(steps, "epoch")
    if (number == steps["step"]).all():
        return reading
    fresh = steps.select("run", "step", fresh=number.cast(pl.Int64)).drop_nulls()
    return _renumbered(reading, fresh.unique(["run", "step"], keep="first"), f"steps are fractions: {how}")


def at_steps_of(epochs: Reading, steps: pl.DataFrame, columns: Mapping[str, str]) -> pl.DataFrame | None:
    """The rows of a file that counts epochs at the steps that another file of the run had reached by then, if that has both.

    Rows before its first epoch and behind its last one stand where its mean steps per epoch lead to.

    Args:
        epochs: the file.
        steps: rows of the other one.
        columns: canonical → original names of the other one.
    """
    rows = epochs.steps
    if rows is None or "epoch" not in steps.columns or _by_epoch(steps, columns):
        return rows
    told = steps.select("epoch", fresh="step").drop_nulls().drop_nans("epoch").sort("epoch", "fresh")
    if not _by_epoch(rows, epochs.source.columns) or told["epoch"].n_unique() < 2:
        return rows
    near = rows.join_asof(told, on="epoch", check_sortedness=False)
    (early, first), (late, last) = told.row(0), told.row(-1)
    rate = max(last - first, 0) / (late - early)
    epoch = pl.col("epoch")
    fresh = (
        pl.when(epoch < early)
        .then(pl.max_horizontal(first - rate * (early - epoch), pl.lit(0.0)).round().cast(pl.Int64, strict=False))
        .when(epoch > late)
        .then((last + rate * (epoch - late)).round().cast(pl.Int64, strict=False))
        .otherwise("fresh")
    )
    return near.with_columns(step=pl.coalesce(fresh, "fresh", pl.lit(first))).select(rows.columns)


def _by_epoch(steps: pl.DataFrame, columns: Mapping[str, str]) -> bool:
    """Whether a file has no counter but its epochs, which rise."""
    if "epoch" not in steps.columns or columns.get("step", columns.get("epoch")) != columns.get("epoch"):
        return False
    epoch = steps["epoch"]
    return bool(epoch.len()) and not epoch.null_count() and bool(epoch.is_finite().all()) and epoch.is_sorted()


def _axis(reading: Reading) -> pl.DataFrame | None:
    """`step` and `at`, the fraction it stands for, of a file that counts epochs; None of any other.

    Of rows that were numbered for want of a step only those whose epochs differ are at one.
    """
    steps, columns = reading.steps, reading.source.columns
    if steps is None or several_runs(steps) or not _by_epoch(steps, columns):
        return None
    if "step" not in columns and steps["epoch"].n_unique() < steps.height:
        return None
    return steps.select("step", at=pl.col("epoch").round_sig_figs(9))


def _is_fraction(axis: pl.DataFrame) -> bool:
    return bool((axis["at"] != axis["at"].round()).any())


def _renumbered(reading: Reading, known: pl.DataFrame, said: str) -> Reading:
    """The reading with the steps of all its tables as `known` gives them."""
    kept = [note for note in reading.source.notes if not note.startswith(_SAID)]
    source = replace(reading.source, notes=(*kept, said))
    steps, layers, events = (_moved(table, known) for table in (reading.steps, reading.layers, reading.events))
    return replace(reading, source=source, steps=steps, layers=layers, events=events)


def _moved(table: pl.DataFrame | None, known: pl.DataFrame) -> pl.DataFrame | None:
    if table is None or "step" not in table.columns:
        return table
    order = table.columns
    keys = [key for key in ("run", "step") if key in known.columns and key in order]
    moved = table.join(known.unique(keys), on=keys, how="left", nulls_equal=True, maintain_order="left")
    return moved.with_columns(step="fresh").select(order)
