"""Any wide frame in the file's own names → `steps` and `layers` in canonical names and units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import claims, derived, layer_places, long_table, opened, parts, splits, values
from gdiag.ingesters.aliases import Claim, claim
from gdiag.ingesters.claims import Plan
from gdiag.ingesters.objectives import adversaries, variational
from gdiag.ingesters.ranks import labelled, of_cells, with_rank_rows
from gdiag.ingesters.reading import Options, Reading
from gdiag.ingesters.rows import coalesce, drop_empty, repeated, steps_of
from gdiag.model import Source, Value
from gdiag.schema import KEYS, STEP_METRICS, LayerColumn, empty

LINE: Final = "line"
_KEY_ORDER: Final = tuple(key for key in KEYS if key != "source")
_METRICS: Final = frozenset({"loss", "eval_loss", "grad_norm", "layers", "loss_scale"})
_PLACED: Final = frozenset({"step", "lr", "step_time"})
"""What speaks of training beside a step, an epoch or a clock: alone they may be the settings of many runs."""


_OF_A_LOSS: Final = re.compile(r"loss|entropy|xent|nll|(?<![a-z])(?:l1|l2|kl|norm)(?![a-z])", re.IGNORECASE)
_SHOWN: Final = 6
_WILD: Final = 3
"""Columns that are named."""


@dataclass(frozen=True, slots=True)
class Canonical:
    """A frame in canonical names."""

    steps: pl.DataFrame
    """KEYS without `source`, then the metrics that the frame had, Float64."""
    layers: pl.DataFrame | None
    layer_columns: tuple[LayerColumn, ...]
    columns: dict[str, str]
    """Canonical name → original name; per-layer families are given once, by an example."""
    unmapped: tuple[str, ...]
    """Numeric columns that no canonical name fits."""
    notes: tuple[str, ...]
    rejects: pl.DataFrame
    run_name: str | None = None
    events: pl.DataFrame | None = None
    """Checkpoints that rows speak of."""


def canonicalise(frame: pl.DataFrame, options: Options, line: str | None = LINE) -> Canonical:
    """Split a wide frame into the parts of the records.

    Args:
        frame: one row per logged row, columns under their own names: numbers, text, booleans or clocks.
        options: `--map` entries win over the alias table; `tz` is used for clocks printed without a zone.
        line: the column that holds the 1-based line; absent, rows are numbered.
    """
    lines = (
        frame[line].cast(pl.Int64) if line is not None and line in frame.columns
        else pl.int_range(1, frame.height + 1, dtype=pl.Int64, eager=True)
    )  # fmt: skip
    frame = values.open_infinities(frame.drop(line, strict=False) if line is not None else frame)
    plan = claims.plan(frame, frame.columns, options)
    reader = _Reader(frame, lines, options.tz)
    data, ranked = _read(plan, reader)
    if (split := splits.find(frame)) is not None and "loss" in data.columns:
        data = splits.separate(data, frame[split])
        reader.notes.append(f"rows are told apart by {values.escape(split, 60)}")
        plan.metrics.setdefault("eval_loss", plan.metrics["loss"])
    data = splits.mark_checkpoints(frame, data)
    if not ranked:
        data = splits.without_others(data, frame)
        data = drop_empty(data, (LINE, "rank", "run"))
    run_name, data = _one_run(data, plan.run, reader.notes)
    columns = {c: original for c, (original, _) in plan.metrics.items()}
    data, step_notes = steps_of(data, columns)
    data, events = splits.take_checkpoints(data)
    if ranked:
        data = with_rank_rows(data, ranked)
    elif plan.rank is not None:
        data, said = labelled(data)
        step_notes += said
    step_notes += repeated(data)
    data = derived.derive(data, columns, {c: claim for c, (_, claim) in plan.metrics.items()}, reader.notes)
    steps, layers = _split(coalesce(data), list(plan.layers))
    columns.update(_examples(plan))
    return Canonical(
        steps=steps, layers=layers, layer_columns=layer_places.catalogue(plan.layers) if layers is not None else (),
        columns=columns, unmapped=tuple(plan.unmapped), notes=tuple(dict.fromkeys([*reader.notes, *step_notes])), events=events,
        rejects=pl.concat(reader.bad) if reader.bad else empty("rejects").drop("source"), run_name=run_name,
    )  # fmt: skip


@dataclass(slots=True)
class _Reader:
    """Cells of one frame as numbers, with what was bad or worth saying."""

    frame: pl.DataFrame
    lines: pl.Series
    tz: str | None
    notes: list[str] = field(default_factory=list)
    bad: list[pl.DataFrame] = field(default_factory=list)

    def read(self, canonical: str, original: str, found: Claim) -> pl.Series:
        parsed = values.read(self.frame[original], canonical, found, self.tz)
        if parsed.bad is not None:
            texts = self.frame[original].filter(parsed.bad)
            self.bad.append(values.rejected(self.lines.filter(parsed.bad), texts, original))
        self.notes.extend(parsed.notes)
        return parsed.series

    def ranks(self, original: str) -> pl.Series:
        """The rank of each row, Int32."""
        cells = self.frame[original]
        found = of_cells(cells)
        bad = found.is_null() & values.told(cells)
        if bad.any():
            self.bad.append(values.rejected(self.lines.filter(bad), cells.filter(bad), original, "rank"))
        return found


def _read(plan: Plan, reader: _Reader) -> tuple[pl.DataFrame, dict[int, dict[str, pl.Series]]]:
    """Key columns and every metric under its canonical name; series of single ranks beside them."""
    out: dict[str, pl.Series] = {}
    asked = frozenset(plan.metrics)
    for wanted, (original, found) in list(plan.metrics.items()):
        series = reader.read(wanted, original, found)
        for name, its in plan.renamed.get(wanted, ()):
            more = reader.read(wanted, name, its)
            series = series.fill_null(more)
            named = values.escape(original, 40), values.escape(name, 40)
            reader.notes.append(f"{wanted} is read from {named[0]} and, in {more.count():,} rows, from {named[1]}")
        canonical = derived.read_clock(wanted, series)
        if canonical != wanted:
            del plan.metrics[wanted]
            if canonical in plan.metrics:
                plan.unmapped.append(original)
                continue
            plan.metrics[canonical] = (original, found)
        out[canonical] = series.alias(canonical)
    if "time" in asked:
        # A clock before the line and what the program calls its time: one says when, the other for how long.
        clocks = [n for n in plan.unmapped if (c := claim(n)) is not None and c.canonical == "time"]
        for original in (n for n in clocks if reader.frame.schema[n].is_numeric()):
            series = reader.read("time", original, Claim("time", 0))
            if (canonical := derived.read_clock("time", series)) not in out and series.count():
                out[canonical] = series.alias(canonical)
                plan.metrics[canonical] = (original, Claim(canonical, 0))
                plan.unmapped.remove(original)
    for column, original in plan.layer_sources.items():
        out[column] = reader.read(column, original, Claim(column, 0)).alias(column)
    ranked = {
        rank: {metric: reader.read(metric, *claimed).alias(metric) for metric, claimed in found.items()}
        for rank, found in plan.per_rank.items()
    }
    rank = pl.lit(None, pl.Int32)
    if plan.rank is not None:
        rank = pl.lit(reader.ranks(plan.rank))
    run = pl.lit(None, pl.String) if plan.run is None else pl.lit(reader.frame[plan.run].cast(pl.String))
    return pl.DataFrame({LINE: reader.lines, **out}).with_columns(rank=rank, run=run), ranked


def reading(
    path: str, kind: str, frame: pl.DataFrame, options: Options, *, rejects: pl.DataFrame | None = None,
    notes: Sequence[str] = (), line: str | None = LINE, rows: int | None = None, unused: Sequence[str] = (),
) -> Reading:  # fmt: skip
    """What a format module returns for one wide frame: canonical tables, the mapping used, what was left out.

    `unused` are numeric columns that no canonical name fits and that the frame therefore lacks.
    """
    rows = frame.height if rows is None else rows
    frame, about_long = long_table.widened(frame, line, options)
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    useful = [name for name in texts if claims.wanted(name, options) or parts.speaks(name)]
    idle = [name for name in texts if name not in useful and opened.is_list(frame[name])]
    frame, about_rare = opened.opened(frame, useful)
    frame, listed, more_lists = parts.left_out(frame)
    got = canonicalise(frame, options, line)
    refused = [part for part in (rejects, got.rejects) if part is not None and part.height]
    bad = pl.concat(refused).sort(LINE, maintain_order=True) if refused else None
    said = [*notes, *about_long, *about_rare, *got.notes, *listed]
    if unmapped := (*unused, *got.unmapped, *more_lists, *idle):
        shown = ", ".join(values.escape(name, 40) for name in unmapped[:4])
        more = f" and {len(unmapped) - 4} more" if len(unmapped) > 4 else ""
        what = "numeric column" if len(unmapped) == 1 else "numeric columns"
        said.append(f"{len(unmapped)} {what} not used: {shown}{more}")
    said += _wild(frame, got.unmapped)
    config, about = _objective([*frame.columns, *unused])
    said += about
    return Reading(
        source=Source(
            path, kind, rows, 0 if bad is None else bad[LINE].n_unique(), got.columns,
            tuple(said), unmapped,
        ),
        steps=got.steps, layers=got.layers, layer_columns=got.layer_columns, rejects=bad, run_name=got.run_name,
        events=got.events, config=config,
    )  # fmt: skip


def of_a_loss(name: str) -> bool:
    """Whether a column of this name may hold what a loss is made of."""
    return _OF_A_LOSS.search(name) is not None


def _wild(frame: pl.DataFrame, unmapped: Sequence[str]) -> list[str]:
    """A note about columns without a use that a loss may be made of and that turn NaN or infinite: no check sees them."""
    wild = []
    for name in unmapped:
        if of_a_loss(name):
            bad = int((~values.numbers(frame[name]).series.drop_nulls().is_finite()).sum())
            wild += [f"{values.escape(name, 40)} ({bad})"] if bad else []
    if not wild:
        return []
    shown = ", ".join(wild[:_WILD]) + (f" and {len(wild) - _WILD} more" if len(wild) > _WILD else "")
    return [f"not finite in columns that are not used (rows): {shown}"]


def _objective(names: Sequence[str]) -> tuple[dict[str, Value], list[str]]:
    """What the names of all columns say of the objective: a setting of the run, and a note."""
    for key, found, what in (
        ("adversarial", adversaries(names), "two networks train against each other ({}): levels of loss and gradient are no alarm"),
        ("variational", variational(names), "the loss is a sum whose weights may change ({}): its level alone is no alarm"),
    ):  # fmt: skip
        if found:
            return {key: True}, [what.format(" and ".join(values.escape(name, 40) for name in found[:2]))]
    return {}, []


def refuse_other(path: str, frame: pl.DataFrame, options: Options) -> None:
    """Refuses a table that no training loop wrote.

    Raises:
        InputError: no column is a loss, gradient norm or layer metric, nor a step, nor a learning rate or step time in time.
    """
    found = [claims.known([name.removesuffix(parts.MARK)], options) for name in frame.columns if name != LINE]
    every = frozenset().union(*found)
    if every & _METRICS or "step" in every or (every & _PLACED and every & {"epoch", "time"}):
        return
    names = [values.escape(name, 40) for name in frame.columns if name != LINE]
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    which, hint = (f" ({shown})", "; where one of them is, --map loss=NAME says so") if names else ("", "")
    raise InputError(f"{path} holds no loss, gradient norm or step in its columns{which}: no training log{hint}")


def _one_run(data: pl.DataFrame, column: str | None, notes: list[str]) -> tuple[str | None, pl.DataFrame]:
    """A run column with one value names the file's only run; of several a row without one takes that of the row before."""
    if column is None:
        return None, data
    distinct = data["run"].drop_nulls().unique()
    if distinct.len() == 1:
        return str(distinct[0]), data.with_columns(run=pl.lit(None, pl.String))
    if distinct.len() and (lost := data["run"].null_count()):
        notes.append(f"{lost:,} {'row' if lost == 1 else 'rows'} without a run: taken for the run of the row before")
    return None, data.with_columns(pl.col("run").forward_fill())


def _split(data: pl.DataFrame, layer_columns: list[str]) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    metrics = [m for m in STEP_METRICS if m in data.columns]
    steps = data.select(*_KEY_ORDER, *metrics)
    if not layer_columns:
        return steps, None
    layers = drop_empty(data.select(*_KEY_ORDER, *layer_columns), _KEY_ORDER)
    return steps, layers if layers.height else None


def _examples(plan: Plan) -> dict[str, str]:
    """One entry per family of columns: `layers.grad_norm` → the first such column, `loss[rank]` → rank0/loss."""
    found: dict[str, str] = {}
    for column, (quantity, _) in plan.layers.items():
        found.setdefault(f"layers.{quantity}", plan.layer_sources[column])
    for _, metrics in sorted(plan.per_rank.items()):
        for metric, (original, _) in metrics.items():
            found.setdefault(f"{metric}[rank]", original)
    if plan.rank is not None:
        found["rank"] = plan.rank
    if plan.run is not None:
        found["run"] = plan.run
    return found
