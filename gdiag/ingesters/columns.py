"""Any wide frame in the file's own names → `steps` and `layers` in canonical names and units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import layer_names, values
from gdiag.ingesters.aliases import RANK, RUN, Claim, claim, family, simplify
from gdiag.ingesters.ranks import split_rank, with_rank_rows
from gdiag.ingesters.reading import Options, Reading
from gdiag.ingesters.rows import coalesce, drop_empty, fill_steps
from gdiag.model import Source
from gdiag.schema import KEYS, STEP_METRICS, LayerColumn, Quantity, empty

LINE: Final = "line"
_KEY_ORDER: Final = tuple(key for key in KEYS if key != "source")
_TRAINING: Final = frozenset({"step", "loss", "eval_loss", "grad_norm", "lr", "step_time", "layers", "loss_scale"})
_SHARE: Final = 0.1
"""A better-named column with under this share of the fullest rival's values is a summary row, not the series."""


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


@dataclass(slots=True)
class _Plan:
    metrics: dict[str, tuple[str, Claim]] = field(default_factory=dict)
    layers: dict[str, tuple[Quantity, str]] = field(default_factory=dict)
    layer_sources: dict[str, str] = field(default_factory=dict)
    per_rank: dict[int, dict[str, tuple[str, Claim]]] = field(default_factory=dict)
    rank: str | None = None
    run: str | None = None
    unmapped: list[str] = field(default_factory=list)


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
    frame = values.open_infinities(frame)
    names = [name for name in frame.columns if name != line]
    plan = _plan(frame, names, options)
    notes: list[str] = []
    bad: list[pl.DataFrame] = []
    rank_metrics = {(rank, m) for rank, got in plan.per_rank.items() for m in got}
    out: dict[str, pl.Series] = {}

    def read(canonical: str, original: str, found: Claim) -> pl.Series:
        parsed = values.read(frame[original], canonical, found, options.tz)
        if parsed.bad is not None:
            texts = frame[original].filter(parsed.bad)
            bad.append(values.rejected(lines.filter(parsed.bad), texts, original))
        notes.extend(parsed.notes)
        return parsed.series

    for canonical, (original, found) in plan.metrics.items():
        out[canonical] = read(canonical, original, found).alias(canonical)
    for column, original in plan.layer_sources.items():
        out[column] = read(column, original, Claim(column, 0)).alias(column)
    ranked = {rank: {m: read(m, *got).alias(m) for m, got in found.items()} for rank, found in plan.per_rank.items()}
    data = pl.DataFrame({LINE: lines, **out})
    data = data.with_columns(
        rank=pl.lit(None, pl.Int32)
        if plan.rank is None
        else values.integers(frame[plan.rank]).cast(pl.Int32, strict=False),
        run=pl.lit(None, pl.String) if plan.run is None else frame[plan.run].cast(pl.String),
    )
    if not ranked:
        data = drop_empty(data, (LINE, "rank", "run"))
    run_name, data = _one_run(data, plan.run)
    columns = {c: original for c, (original, _) in plan.metrics.items()}
    data, step_notes = _steps(data, columns)
    if ranked:
        data = with_rank_rows(data, ranked)
    data = values.derive(data, columns, notes)
    notes.extend(step_notes)
    layer_names_found = list(plan.layers)
    data = coalesce(data)
    steps, layers = _split(data, layer_names_found)
    columns.update(_examples(plan, rank_metrics))
    return Canonical(
        steps=steps, layers=layers, layer_columns=layer_names.catalogue(plan.layers) if layers is not None else (),
        columns=columns, unmapped=tuple(plan.unmapped), notes=tuple(dict.fromkeys(notes)),
        rejects=pl.concat(bad) if bad else empty("rejects").drop("source"), run_name=run_name,
    )  # fmt: skip


def reading(
    path: str, kind: str, frame: pl.DataFrame, options: Options, *, rejects: pl.DataFrame | None = None,
    notes: Sequence[str] = (), line: str | None = LINE, rows: int | None = None,
) -> Reading:  # fmt: skip
    """What a format module returns for one wide frame: canonical tables, the mapping used, what was left out."""
    got = canonicalise(frame, options, line)
    parts = [part for part in (rejects, got.rejects) if part is not None and part.height]
    bad = pl.concat(parts).sort(LINE, maintain_order=True) if parts else None
    said = [*notes, *got.notes]
    if got.unmapped:
        shown = ", ".join(values.escape(name, 40) for name in got.unmapped[:4])
        more = f" and {len(got.unmapped) - 4} more" if len(got.unmapped) > 4 else ""
        said.append(f"{len(got.unmapped)} numeric columns not used: {shown}{more}")
    return Reading(
        source=Source(
            path, kind, frame.height if rows is None else rows, 0 if bad is None else bad[LINE].n_unique(), got.columns,
            tuple(said),
        ),
        steps=got.steps, layers=got.layers, layer_columns=got.layer_columns, rejects=bad, run_name=got.run_name,
    )  # fmt: skip


def known(names: Sequence[str], options: Options) -> set[str]:
    """Canonical names that these column names could be, `layers` for per-layer ones."""
    found: set[str] = set(options.columns) & {c for c, o in options.columns.items() if o in names}
    for name in names:
        _, base = split_rank(name)
        if (what := claim(base)) is not None:
            found.add(what.canonical)
        elif layer_names.parse(base) is not None:
            found.add("layers")
        elif (what := family(base)) is not None:
            found.add(what.canonical)
    return found


def refuse_other(path: str, frame: pl.DataFrame, options: Options) -> None:
    """Refuses a table that no training loop wrote.

    Raises:
        InputError: no column is a loss, gradient norm, learning rate, step time or layer metric, nor a step with numbers.
    """
    found = known([name for name in frame.columns if name != LINE], options)
    if found & _TRAINING:
        return
    raise InputError(
        f"{path} holds no loss, gradient norm, learning rate, step time or step count in its columns: no training log"
    )


def _plan(frame: pl.DataFrame, names: list[str], options: Options) -> _Plan:
    plan = _Plan()
    schema = frame.schema
    mapped = {original: canonical for canonical, original in options.columns.items() if original in names}
    rivals: dict[tuple[int | None, str], list[tuple[Claim, str]]] = {}
    for name in names:
        if name in mapped:
            rivals.setdefault((None, mapped[name]), []).append((Claim(mapped[name], -1), name))
            continue
        if simplify(name) in RANK and schema[name].is_numeric() and plan.rank is None:
            plan.rank = name
            continue
        if simplify(name) in RUN and plan.run is None and schema[name] in (pl.String, pl.Int64):
            plan.run = name
            continue
        rank, base = split_rank(name)
        found = claim(base)
        layer = layer_names.parse(base) if rank is None and found is None else None
        if layer is not None and _usable(schema[name]):
            column = f"{layer[0]}:{layer[1]}"
            if column not in plan.layers:
                plan.layers[column] = layer
                plan.layer_sources[column] = name
                continue
        found = found or family(base)
        if found is None or not (_usable(schema[name]) or found.canonical in ("time", "elapsed", "param_checksum")):
            if schema[name].is_numeric():
                plan.unmapped.append(name)
            continue
        rivals.setdefault((rank, found.canonical), []).append((found, name))
    _choose(plan, frame, rivals)
    return plan


def _choose(plan: _Plan, frame: pl.DataFrame, rivals: dict[tuple[int | None, str], list[tuple[Claim, str]]]) -> None:
    for (rank, canonical), candidates in rivals.items():
        ranked = sorted(candidates, key=lambda candidate: candidate[0].rank)
        if len(ranked) > 1 and ranked[0][0].rank >= 0:
            counts = {name: frame[name].count() for _, name in ranked}
            enough = _SHARE * max(counts.values())
            ranked = [c for c in ranked if counts[c[1]] >= max(enough, 1)] or ranked
        found, name = ranked[0]
        if rank is None:
            plan.metrics[canonical] = (name, found)
        else:
            plan.per_rank.setdefault(rank, {})[canonical] = (name, found)
        plan.unmapped.extend(n for _, n in candidates if n != name)


def _usable(kind: pl.DataType) -> bool:
    return kind.is_numeric() or kind in (pl.String, pl.Boolean, pl.Null) or kind.is_temporal()


def _one_run(data: pl.DataFrame, column: str | None) -> tuple[str | None, pl.DataFrame]:
    """A run column with one value names the file's only run."""
    if column is None:
        return None, data
    distinct = data["run"].drop_nulls().unique()
    if distinct.len() == 1:
        return str(distinct[0]), data.with_columns(run=pl.lit(None, pl.String))
    return None, data.with_columns(pl.col("run").forward_fill())


def _steps(data: pl.DataFrame, columns: dict[str, str]) -> tuple[pl.DataFrame, list[str]]:
    """`step` as Int64: the step column, else whole epochs, else the row's number."""
    if "step" in data.columns and data["step"].is_finite().any():
        return fill_steps(data)
    data = data.drop("step", strict=False)
    columns.pop("step", None)
    if "epoch" in data.columns:
        epoch = data["epoch"]
        whole = epoch.drop_nulls()
        if whole.len() and bool((whole == whole.round()).all()) and 3 * whole.n_unique() > whole.len():
            columns["step"] = columns["epoch"]
            filled, notes = fill_steps(data.with_columns(step=pl.col("epoch")))
            return filled, [*notes, "no step column: epochs are used as steps"]
    numbered = data.with_columns(step=pl.int_range(pl.len(), dtype=pl.Int64))
    return numbered, ["no step column: rows are numbered from 0"]


def _split(data: pl.DataFrame, layer_columns: list[str]) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    metrics = [m for m in STEP_METRICS if m in data.columns]
    steps = data.select(*_KEY_ORDER, *metrics)
    if not layer_columns:
        return steps, None
    layers = drop_empty(data.select(*_KEY_ORDER, *layer_columns), _KEY_ORDER)
    return steps, layers if layers.height else None


def _examples(plan: _Plan, rank_metrics: set[tuple[int, str]]) -> dict[str, str]:
    """One entry per family of columns: `layers.grad_norm` → the first such column, `loss[rank]` → rank0/loss."""
    found: dict[str, str] = {}
    for column, (quantity, _) in plan.layers.items():
        found.setdefault(f"layers.{quantity}", plan.layer_sources[column])
    for rank, metric in sorted(rank_metrics):
        found.setdefault(f"{metric}[rank]", plan.per_rank[rank][metric][0])
    if plan.rank is not None:
        found["rank"] = plan.rank
    if plan.run is not None:
        found["run"] = plan.run
    return found
