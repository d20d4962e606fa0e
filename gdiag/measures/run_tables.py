"""One run's rows of the record tables."""

from __future__ import annotations

from functools import cached_property

import polars as pl

from gdiag.measures import nvlinks as screens
from gdiag.measures.nvlinks import LISTED, MODULE, NVLINK
from gdiag.measures.telemetry import Telemetry
from gdiag.model import Location, Run
from gdiag.schema import SWITCH, LayerColumn, Records


class RunTables:
    """One run's own rows of every record table, and places in them."""

    def __init__(self, run: Run, records: Records, telemetry: Telemetry | None = None) -> None:
        """A view of one run; `telemetry` that a fleet's engine has counted stands for rows of `gpus`."""
        self.run = run
        self.records = records
        self._counted = telemetry

    @cached_property
    def gpus(self) -> pl.DataFrame:
        """This run's rows of `gpus`."""
        return self._own(self.records.gpus)

    @cached_property
    def events(self) -> pl.DataFrame:
        """This run's rows of `events`."""
        return self._own(self.records.events)

    @cached_property
    def facts(self) -> pl.DataFrame:
        """This run's rows of `facts`, less those of nvidia-smi's screens of links."""
        return self._own(self.records.facts).filter(~screens.said() & ~_of_switch())

    @cached_property
    def failures(self) -> pl.DataFrame:
        """Rows of `facts` with the errors that benchmarks stopped with."""
        return self.facts.filter(pl.col("scope") == "failure")

    @cached_property
    def switches(self) -> pl.DataFrame:
        """Rows of `facts` with what switches say of their supplies, fans and temperature, one scope per switch."""
        return self._own(self.records.facts).filter(_of_switch())

    @cached_property
    def ports(self) -> pl.DataFrame:
        """This run's rows of `ports`, network ports alone."""
        return self._own(self.records.ports).filter(~screens.counted(NVLINK) & ~screens.counted(MODULE))

    @cached_property
    def nvlinks(self) -> pl.DataFrame:
        """What nvidia-smi topo and nvlink showed; see measures.nvlinks."""
        return screens.screens(self._own(self.records.ports), self._own(self.records.facts))

    @cached_property
    def nvlink_counters(self) -> pl.DataFrame:
        """Rows of `ports` that count what went wrong on NVLinks."""
        return self._own(self.records.ports).filter(screens.counted(NVLINK) & ~pl.col("counter").is_in(LISTED))

    @cached_property
    def modules(self) -> pl.DataFrame:
        """Rows of `ports` with what transceivers say of themselves."""
        return self._own(self.records.ports).filter(screens.counted(MODULE))

    @cached_property
    def baselines(self) -> pl.DataFrame:
        """What this run's benchmarks are held against."""
        return self._own(self.records.baselines)

    @property
    def layer_columns(self) -> tuple[LayerColumn, ...]:
        """The catalogue of `layers`."""
        return self.records.layer_columns

    def where(
        self, row: dict[str, object] | None = None, *, step: int | None = None, last_step: int | None = None,
        rank: int | None = None, layer: str | None = None, host: str | None = None, gpu: int | None = None,
        time: float | None = None, last_time: float | None = None,
    ) -> Location:  # fmt: skip
        """A Location in this run; file and line are taken from a `steps`, `layers`, `gpus` or `events` row."""
        file = line = None
        if row is not None:
            source, number = row.get("source"), row.get("line")
            if isinstance(source, int):
                file = self.records.sources[source].path
            if isinstance(number, int):
                line = number
            if step is None and isinstance(row.get("step"), int):
                step = row["step"]  # type: ignore[assignment]
            if time is None and isinstance(row.get("time"), float):
                time = row["time"]  # type: ignore[assignment]
        return Location(
            file=file, line=line, run=self.run.id, rank=rank, step=step, last_step=last_step, layer=layer, host=host,
            gpu=gpu, time=time, last_time=last_time,
        )  # fmt: skip

    def _own(self, frame: pl.DataFrame) -> pl.DataFrame:
        if "run" not in frame.columns or not frame.height or len(self.records.runs) == 1:
            return frame
        return frame.filter(pl.col("run") == self.run.id)


def _of_switch() -> pl.Expr:
    """Rows of `facts` that a switch says of itself."""
    return pl.col("scope").str.starts_with(SWITCH).fill_null(value=False)
