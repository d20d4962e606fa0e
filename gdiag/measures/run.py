"""RunView: one run's records and everything measured of them, each measure computed once, on first use."""

from __future__ import annotations

from functools import cached_property

import polars as pl

from gdiag.measures import run_machine as machine
from gdiag.measures import run_tables as tables
from gdiag.measures import run_training as training
from gdiag.measures.curves import Curve
from gdiag.measures.layers import LayerTable, layer_table
from gdiag.measures.telemetry import Telemetry
from gdiag.model import Location, Run
from gdiag.schema import KEYS, Quantity, Records


class RunView:
    """One run as analyzers see it, and all they see: what it logged, and what is measured of that.

    The class is a table of contents. What a measure is computed from says the plain function of a RunView behind its
    name, in run_tables, run_training or run_machine; how, a pure function of its own module.
    """

    def __init__(self, run: Run, records: Records, telemetry: Telemetry | None = None) -> None:
        """A view of one run; `telemetry` that a fleet's engine has counted stands for rows of `gpus`."""
        self.run = run
        self.records = records
        self.counted = telemetry
        self._layer_tables: dict[Quantity, LayerTable | None] = {}
        self._held: dict[str, bool] = {}

    # What was logged.
    steps = cached_property(tables.steps)
    layers = cached_property(training.layers)
    layer_columns = property(tables.layer_columns)
    gpus = cached_property(tables.gpus)
    events = cached_property(tables.events)
    facts = cached_property(tables.facts)
    devices = cached_property(tables.devices)
    failures = cached_property(tables.failures)
    switches = cached_property(tables.switches)
    ports = cached_property(tables.ports)
    nvlinks = cached_property(tables.nvlinks)
    nvlink_counters = cached_property(tables.nvlink_counters)
    modules = cached_property(tables.modules)
    baselines = cached_property(tables.baselines)

    # Its order, and where it was taken up again.
    as_logged = cached_property(training.as_logged)
    hidden_nan = cached_property(training.hidden_nan)
    trajectory = cached_property(training.trajectory)
    paths = cached_property(training.paths)
    proven_resumes = cached_property(training.proven_resumes)
    resume_places = cached_property(training.resume_places)
    resumes = cached_property(training.resumes)
    counter_losses = cached_property(training.counter_losses)
    begins_trained = cached_property(training.begins_trained)
    scale_resets = cached_property(training.scale_resets)
    fresh_start = cached_property(training.fresh_start)
    scheduler_mismatches = cached_property(training.scheduler_mismatches)

    # Loss, validation and data.
    losses = cached_property(training.losses)
    learning = cached_property(training.learning)
    nonfinite = cached_property(training.nonfinite)
    skipping = cached_property(training.skipping)
    loss_factors = cached_property(training.loss_factors)
    overfit = cached_property(training.overfit)
    eval_unit = cached_property(training.eval_unit)
    eval_change = training.eval_change
    sample_breaches = cached_property(training.sample_breaches)
    sample_returns = cached_property(training.sample_returns)
    batch_window = training.batch_window
    batch_z = training.batch_z

    # Gradients, layers and the learning rate.
    grad_norm = cached_property(training.grad_norm)
    grad_scaling = cached_property(training.grad_scaling)
    steady_before = training.steady_before
    update_norm = cached_property(training.update_norm)
    layer_scan = cached_property(training.layer_scan)
    attribution = training.attribution
    schedule = cached_property(training.schedule)
    peak_instability = cached_property(training.peak_instability)
    peak_stall = cached_property(training.peak_stall)
    gradient_surge = cached_property(training.gradient_surge)
    gradient_calming = cached_property(training.gradient_calming)
    carried_off = cached_property(training.carried_off)

    # Times, GPUs and collectives.
    step_times = cached_property(machine.step_times)
    slow_rows = cached_property(machine.slow_rows)
    rank_times = cached_property(machine.rank_times)
    stragglers = cached_property(machine.stragglers)
    telemetry = cached_property(machine.telemetry)
    placed = machine.placed
    coupling = cached_property(machine.coupling)
    clock_drops = cached_property(machine.clock_drops)
    reported = cached_property(machine.reported)
    nic_events = cached_property(machine.nic_events)
    collective_timeouts = cached_property(machine.collective_timeouts)
    collective_waits = cached_property(machine.collective_waits)
    sweeps = cached_property(machine.sweeps)

    def series(self, name: str) -> Curve:
        """A canonical column of `steps` on the trajectory: each step once, finite and non-finite apart."""
        return self.paths[0].curve(name)

    def logged(self, name: str) -> Curve:
        """The same as it was logged, with zeros that stand for NaN."""
        return self.as_logged.paths[0].curve(name)

    def layer_table(self, quantity: Quantity) -> LayerTable | None:
        """One quantity of all layers, one row per logged step; None when it was not logged."""
        if quantity not in self._layer_tables:
            self._layer_tables[quantity] = layer_table(self.layers, self.layer_columns, quantity)
        return self._layer_tables[quantity]

    def own(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of `frame` that belong to this run."""
        if "run" not in frame.columns or not frame.height or len(self.records.runs) == 1:
            return frame
        return frame.filter(pl.col("run") == self.run.id)

    def has(self, column: str) -> bool:
        """Whether a column such as steps.loss, layers.grad_norm or gpus.clock_sm holds a value in this run."""
        if column not in self._held:  # every check asks for a few, and most for the same
            self._held[column] = self._holds(column)
        return self._held[column]

    def _holds(self, column: str) -> bool:
        table, _, name = column.partition(".")
        if table == "gpus" and self.counted is not None:
            return not name or name in self.counted.columns
        if table == "layers" and name not in KEYS:
            names = [c.column for c in self.layer_columns if not name or c.quantity == name]
            held = set(self.layers.columns)
            return self.layers.height > 0 and any(self.layers[n].count() for n in names if n in held)
        frame: pl.DataFrame = (
            getattr(self, table) if hasattr(type(self), table) else self.own(getattr(self.records, table))
        )
        if not name:
            return frame.height > 0
        return name in frame.columns and frame[name].count() > 0

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
            gpu=gpu, time=time, last_time=last_time, zone_known=row is None or row.get("zone_known") is not False,
        )  # fmt: skip
