"""One run's rows of the record tables, as RunView shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gdiag.measures import nvlinks as screens
from gdiag.measures.nvlinks import LISTED, MODULE, NVLINK
from gdiag.schema import SWITCH, LayerColumn

if TYPE_CHECKING:
    from gdiag.measures.run import RunView


def steps(run: RunView) -> pl.DataFrame:
    """This run's rows of `steps`, all ranks, in file order."""
    return run.own(run.records.steps)


def gpus(run: RunView) -> pl.DataFrame:
    """This run's rows of `gpus`."""
    return run.own(run.records.gpus)


def events(run: RunView) -> pl.DataFrame:
    """This run's rows of `events`."""
    return run.own(run.records.events)


def facts(run: RunView) -> pl.DataFrame:
    """This run's rows of `facts`, less those of nvidia-smi's screens of links."""
    return run.own(run.records.facts).filter(~screens.said() & ~_of_switch())


def devices(run: RunView) -> pl.DataFrame:
    """This run's rows of `devices`: the rank lists of benchmarks."""
    return run.own(run.records.devices)


def failures(run: RunView) -> pl.DataFrame:
    """Rows of `facts` with the errors that benchmarks stopped with."""
    return run.facts.filter(pl.col("scope") == "failure")


def switches(run: RunView) -> pl.DataFrame:
    """Rows of `facts` with what switches say of their supplies, fans and temperature, one scope per switch."""
    return run.own(run.records.facts).filter(_of_switch())


def ports(run: RunView) -> pl.DataFrame:
    """This run's rows of `ports`, network ports alone."""
    return run.own(run.records.ports).filter(~screens.counted(NVLINK) & ~screens.counted(MODULE))


def nvlinks(run: RunView) -> pl.DataFrame:
    """What nvidia-smi topo and nvlink showed; see measures.nvlinks."""
    return screens.screens(run.own(run.records.ports), run.own(run.records.facts))


def nvlink_counters(run: RunView) -> pl.DataFrame:
    """Rows of `ports` that count what went wrong on NVLinks."""
    return run.own(run.records.ports).filter(screens.counted(NVLINK) & ~pl.col("counter").is_in(LISTED))


def modules(run: RunView) -> pl.DataFrame:
    """Rows of `ports` with what transceivers say of themselves."""
    return run.own(run.records.ports).filter(screens.counted(MODULE))


def baselines(run: RunView) -> pl.DataFrame:
    """What this run's benchmarks are held against."""
    return run.own(run.records.baselines)


def layer_columns(run: RunView) -> tuple[LayerColumn, ...]:
    """The catalogue of `layers`."""
    return run.records.layer_columns


def _of_switch() -> pl.Expr:
    """Rows of `facts` that a switch says of itself."""
    return pl.col("scope").str.starts_with(SWITCH).fill_null(value=False)
