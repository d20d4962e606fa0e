"""Collective benchmarks: one sweep per test run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gdiag.measures.bandwidth_blocks import FIGURES, SweepRows
from gdiag.measures.bandwidth_curves import MIB, levels
from gdiag.measures.bandwidth_ranks import MANY, collective_of, ranks_of
from gdiag.measures.segments import Ints

_ONE_HOST: Final = 8
"""GPUs of a host at most, racks that share NVLink apart."""
JUDGED_FROM: Final = 256 * MIB
"""A sweep that ends below 256 MiB has not reached the plateau of a fast fabric."""
_COLUMNS: Final = ("source", "section", "collective", "redop", "root", "line", *FIGURES)
_KEY: Final = ("source", "section")
_SECTIONS: Final = 1 << 31
"""Test runs of one source at most."""


@dataclass(frozen=True, slots=True, eq=False)
class _Facts:
    """Facts of all test runs: those of a key are put in order of their runs when one is asked for."""

    frame: pl.DataFrame
    """source, section, key, value."""
    known: dict[str, tuple[Ints, list[str]]] = field(default_factory=dict)
    """Key → the run of each fact, ascending, and the values."""

    def of(self, source: int, section: int, key: str) -> list[str]:
        """Values of the facts of a run that are called `key`, in order."""
        if key not in self.known:
            number = pl.col("source").cast(pl.Int64) * _SECTIONS + pl.col("section")
            mine = self.frame.filter(pl.col("key") == key).select("value", run=number).drop_nulls("run")
            mine = mine.sort("run", maintain_order=True)
            self.known[key] = (mine["run"].to_numpy(), mine["value"].to_list())
        runs, values = self.known[key]
        run = source * _SECTIONS + section
        begin, end = runs.searchsorted(run), runs.searchsorted(run + 1)
        return values[begin:end]


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """One test run over message sizes. Bandwidths in GB/s (1e9), times in µs, sizes in bytes."""

    number: int
    """Its number among all test runs of the table."""
    source: int
    section: int
    collective: str | None
    """As the output says, else inferred from columns and ratio; None when neither tells."""
    table: SweepRows
    facts: _Facts
    listed: int
    """Ranks in the rank list: up to the highest where only its end was kept."""
    n: int | None
    """Number of ranks: from the ratio where it is exact, else from the rank list."""
    ranks: tuple[int, int] | None
    """Smallest and largest number of ranks that busbw/algbw allows at the printed precision; None when it cannot tell."""
    host_names: tuple[str, ...]
    """Hosts of the rank list, sorted."""
    model: str | None
    plateau: float
    peak: float
    largest: int
    latency: float | None
    """Median time of messages up to 64 KiB, the first row left out."""
    average: float | None
    """The printed average bus bandwidth."""

    @property
    def span(self) -> slice:
        """Where in `table` its rows lie."""
        return self.table.span(self.number)

    @property
    def hosts(self) -> int:
        """Number of hosts in the rank list; 0 when it is absent."""
        return len(self.host_names)

    def said(self, key: str) -> list[str]:
        """Values of all its facts called `key`."""
        return self.facts.of(self.source, self.section, key)

    def fact(self, key: str) -> str | None:
        """The first fact called `key`."""
        return next(iter(self.said(key)), None)

    @property
    def rows(self) -> pl.DataFrame:
        """Its rows as a table, made anew: for the few sweeps that are shown."""
        return self.table.frame[self.span]

    def values(self, name: str) -> NDArray[Any]:
        """A column of figures of its rows, without a copy."""
        return self.table.arrays[name][self.span]

    def place(self, *, size: int | None = None, line: object = None) -> dict[str, object]:
        """Source and line of the first row, of the first row of `size`, or of `line`, as RunView.where takes them."""
        at = self.span.start + (0 if size is None else int(np.argmax(self.values("size") == size)))
        return {"source": self.source, "line": self.table.frame["line"][at] if line is None else line}


def sweeps(collectives: pl.DataFrame, devices: pl.DataFrame, facts: pl.DataFrame) -> tuple[Sweep, ...]:
    """One Sweep per source and section that holds rows, in file order."""
    sized = collectives.select(_COLUMNS)
    if sized["size"].null_count():
        sized = sized.filter(pl.col("size").is_not_null())
    if not sized.height:
        return ()
    # Rows of one section lie together: a span of the table is a sweep.
    file, run = (sized[name].fill_null(-1).to_numpy() for name in _KEY)
    begins = np.append(True, (file[1:] != file[:-1]) | (run[1:] != run[:-1]))
    table = SweepRows(sized.drop("redop", "root"), np.flatnonzero(begins))
    heads = _heads(sized, table.starts).join(_listed(devices), on=_KEY, how="left", maintain_order="left")
    heads = heads.join(_averages(facts), on=_KEY, how="left", maintain_order="left")
    seen, told = levels(table), _Facts(facts)
    names = ("plateau", "peak", "largest", "latency", "ratio", "error")
    figures = zip(*(seen[name].tolist() for name in names), strict=True)
    hosts: dict[tuple[str, ...], tuple[str, ...]] = {}
    found = []
    for number, (head, level) in enumerate(zip(heads.iter_rows(), figures, strict=True)):
        source, section, name, redop, root, ranks, listed, model, average = head
        plateau, peak, largest, latency, ratio, error = level
        known = ratio if math.isfinite(ratio) else None
        collective = name or collective_of(redop, root, known)
        several, possible = tuple(listed or ()), ranks_of(collective, known, error)
        found.append(Sweep(
            number, source, section, collective, table, told, ranks or 0, _ranks(ranks or 0, possible, plateau), possible,
            hosts.setdefault(several, several), model, plateau, peak, largest,
            None if math.isnan(latency) else latency, average,
        ))  # fmt: skip
    return tuple(found)


def _ranks(listed: int, possible: tuple[int, int] | None, plateau: float) -> int | None:
    if possible and possible[0] == possible[1]:
        return possible[0]
    if possible and possible[0] <= listed <= possible[1]:
        return listed
    if listed == 1 and plateau > 0:
        # One rank has no bus bandwidth: the list was cut.
        return None
    return listed or None


def shared_gpus(devices: pl.DataFrame) -> pl.DataFrame:
    """GPUs that the rank list of a test run gives to several ranks: source, section, host, gpu, bus_id, ranks, line."""
    place = (*_KEY, "host", "gpu", "bus_id")
    # Nearly all are there once: lists of one rank each would take more memory than the log's rows.
    several = devices.filter(devices.select(place).hash_rows().is_duplicated())
    each = several.group_by(place, maintain_order=True).agg(
        ranks=pl.col("rank").unique().sort(), line=pl.col("line").min()
    )
    return each.filter(pl.col("ranks").list.len() > 1)


def _heads(sized: pl.DataFrame, starts: Ints) -> pl.DataFrame:
    """source, section, collective, redop and root of each run, of the first row that says it."""
    names = ("collective", "redop", "root")
    heads = sized.select(*_KEY, *names)[starts]
    for name in names:
        unsaid = heads[name].is_null().to_numpy()
        if not unsaid.any() or sized[name].null_count() == sized.height:
            continue
        lengths = np.diff(starts, append=sized.height)
        rows = np.repeat(unsaid, lengths)
        run = pl.Series("run", np.repeat(np.arange(len(starts)), lengths)[rows])
        later = pl.DataFrame([run, sized[name].filter(pl.Series(rows))]).drop_nulls().unique("run", keep="first")
        found = pl.DataFrame({"run": np.arange(len(starts))}).join(later, on="run", how="left", maintain_order="left")
        heads = heads.with_columns(pl.col(name).fill_null(found[name]))
    return heads


def _averages(facts: pl.DataFrame) -> pl.DataFrame:
    """source, section and the average that was printed first [GB/s]."""
    said = facts.filter(pl.col("key") == "average_busbw")
    value = pl.col("value").first().cast(pl.Float64, strict=False).alias("average")
    return said.group_by(*_KEY, maintain_order=True).agg(value)


def _listed(devices: pl.DataFrame) -> pl.DataFrame:
    """source, section, ranks (up to the highest where only the list's end was kept), hosts sorted, the commonest model."""
    highest = pl.col("rank").max().cast(pl.Int64) + 1
    return devices.group_by(*_KEY).agg(
        pl.max_horizontal(
            pl.col("rank").drop_nulls().n_unique(), pl.when(highest <= MANY).then(highest).otherwise(0)
        ).fill_null(0).cast(pl.Int64).alias("ranks"),
        # The end of a cut list shows one host of a run that is too large for one.
        pl.when((pl.col("rank").n_unique() < highest) & (highest > _ONE_HOST) & (pl.col("host").n_unique() == 1))
        .then(pl.lit([], pl.List(pl.String)))
        .otherwise(pl.col("host").cast(pl.String).drop_nulls().unique().sort().implode())
        .alias("hosts"),
        pl.col("model").cast(pl.String).drop_nulls().mode().sort().first().alias("model"),
    )  # fmt: skip
