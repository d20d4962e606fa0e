"""Which column of a frame becomes which metric, layer or key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gdiag.ingesters import layer_names, parts, splits, values
from gdiag.ingesters.alias_table import RANK, RUN
from gdiag.ingesters.aliases import WEAK, Claim, claim, family, simplify, stem
from gdiag.ingesters.ranks import are_ranks, split_rank
from gdiag.ingesters.reading import Options
from gdiag.schema import Quantity

_SHARE: Final = 0.1
"""A better-named column with under this share of the fullest rival's values is a summary row, not the series."""

_ROWS: Final = 3
"""Rows from which a column is no summary at the end of a run."""
_OF_MANY_KINDS: Final = frozenset({"step", "time", "elapsed", "loss", "eval_loss"})
"""Metrics whose names may tell other quantities."""

_ABOVE: Final = 1.5
"""How far above another group's rate the first one of a group that is warmed down lies; Ultralytics' defaults give 0.1 against 0."""


@dataclass(slots=True)
class Plan:
    """Which column becomes what."""

    metrics: dict[str, tuple[str, Claim]] = field(default_factory=dict)
    renamed: dict[str, list[tuple[str, Claim]]] = field(default_factory=dict)
    """Metric → other columns that hold it where its own does not: it was renamed on the way."""
    layers: dict[str, tuple[Quantity, str]] = field(default_factory=dict)
    layer_sources: dict[str, str] = field(default_factory=dict)
    per_rank: dict[int, dict[str, tuple[str, Claim]]] = field(default_factory=dict)
    rank: str | None = None
    run: str | None = None
    unmapped: list[str] = field(default_factory=list)


def known(names: Sequence[str], options: Options) -> set[str]:
    """Canonical names that these column names could be, `layers` for per-layer ones."""
    found: set[str] = set(options.columns) & {c for c, o in options.columns.items() if o in names}
    for name in names:
        _, base = split_rank(parts.plain(name))
        if (what := claim(base)) is not None:
            found.add(what.canonical)
        elif layer_names.parse(base) is not None:
            found.add("layers")
        elif (what := family(base)) is not None:
            found.add(what.canonical)
    return found


def wanted(name: str, options: Options) -> bool:
    """Whether a column of this name can be of use, whatever it holds."""
    if name.endswith(parts.MARK):
        return parts.speaks(name.removesuffix(parts.MARK))
    special = simplify(name) in RANK or simplify(name) in RUN or splits.speaks(name)
    return special or name in options.columns.values() or bool(known([name], options))


def plan(frame: pl.DataFrame, names: list[str], options: Options) -> Plan:
    """Every column's part: key, metric, layer, rank's metric, or none; among rivals for a metric the best-named full one wins."""
    chosen = Plan()
    schema = frame.schema
    mapped = {original: canonical for canonical, original in options.columns.items() if original in names}
    rivals: dict[tuple[int | None, str], list[tuple[Claim, str]]] = {}
    layers = _layers(names)
    for name in names:
        if mapped.get(name) == "rank":
            chosen.rank = name
            continue
        if name in mapped:
            rivals.setdefault((None, mapped[name]), []).append((Claim(mapped[name], -1), name))
            continue
        if simplify(name) in RANK and chosen.rank is None and are_ranks(frame[name]):
            chosen.rank = name
            continue
        if simplify(name) in RUN and chosen.run is None and schema[name] in (pl.String, pl.Int64):
            chosen.run = name
            continue
        rank, base = split_rank(parts.plain(name))
        found = claim(base)
        layer = layers.get(name)
        if layer is not None and _usable(schema[name]):
            column = f"{layer[0]}:{layer[1]}"
            if column not in chosen.layers:
                chosen.layers[column] = layer
                chosen.layer_sources[column] = name
                continue
        found = found or family(base)
        if found is None or not (_usable(schema[name]) or found.canonical in ("time", "elapsed", "param_checksum")):
            if values.are_numbers(frame[name]):
                chosen.unmapped.append(name)
            continue
        rivals.setdefault((rank, found.canonical), []).append((found, name))
    _choose(chosen, frame, rivals)
    return chosen


def _layers(names: Sequence[str]) -> dict[str, tuple[Quantity, str]]:
    """The layer of each column that is of one: layers/head and head are told apart where both are there."""
    bases = {name: base for name in names for rank, base in [split_rank(parts.plain(name))] if rank is None}
    found = {n: layer for n, b in bases.items() if claim(b) is None and (layer := layer_names.parse(b)) is not None}
    many = Counter(found.values())
    return {n: layer_names.parse(bases[n], contained=many[f] > 1) or f for n, f in found.items()}


def _choose(plan: Plan, frame: pl.DataFrame, rivals: dict[tuple[int | None, str], list[tuple[Claim, str]]]) -> None:
    for (rank, canonical), candidates in rivals.items():
        ranked = sorted(candidates, key=lambda candidate: candidate[0].rank)
        if len(ranked) > 1 and ranked[0][0].rank >= 0:
            counts = {name: frame[name].count() for _, name in ranked}
            enough = _SHARE * max(counts.values())
            ranked = [c for c in ranked if counts[c[1]] >= max(enough, 1)] or ranked
        if canonical == "lr" and len(ranked) > 1:
            ends = {name: _ends(frame[name]) for _, name in ranked}
            ranked = sorted(ranked, key=lambda c: _warms_down(c[1], ends))
        found, name = ranked[0]
        if rank is None:
            plan.metrics[canonical] = (name, found)
            plan.renamed[canonical] = _renamed(frame, name, found, candidates)
        else:
            plan.per_rank.setdefault(rank, {})[canonical] = (name, found)
        used = {name, *(n for n, _ in plan.renamed.get(canonical, ()))} if rank is None else {name}
        plan.unmapped.extend(n for _, n in candidates if n not in used)


def _renamed(
    frame: pl.DataFrame, name: str, found: Claim, candidates: Sequence[tuple[Claim, str]]
) -> list[tuple[str, Claim]]:
    """The columns of the same metric that are empty where this one is not, behind or above all of it.

    A logger that was changed between two starts writes `loss` here and `train/loss` there. Columns whose names differ only
    in case may take turns. Losses, steps and clocks of other names may be others.
    """
    if found.rank < 0 or len(candidates) < 2:
        return []
    filled = frame[name].is_not_null()
    joined: list[tuple[str, Claim]] = []
    for other, its in candidates:
        if its == name or other.rank >= WEAK or found.rank >= WEAK or filled.all():
            continue
        more = frame[its].is_not_null()
        if int(more.sum()) < _ROWS or (more & filled).any():
            continue
        alike = found.canonical not in _OF_MANY_KINDS or stem(its) == stem(name)
        if simplify(its) == simplify(name) or (alike and _apart(filled, more)):
            joined.append((its, other))
            filled |= more
    return joined


def _apart(one: pl.Series, other: pl.Series) -> bool:
    """Whether the rows of one mask all stand above or all below those of the other."""
    a, b = one.arg_true(), other.arg_true()
    return bool(a.len() and b.len()) and (a[-1] < b[0] or b[-1] < a[0])


def _warms_down(name: str, ends: Mapping[str, tuple[float, float] | None]) -> bool:
    """Whether a rate begins above those of the other parameter groups and joins them: biases are warmed up from above (YOLO).

    Args:
        name: the rate's.
        ends: first and last value of each group's.
    """
    mine = ends[name]
    alike = simplify(name)[:-1]
    others = [e for g, e in ends.items() if e is not None and g != name and simplify(g)[:-1] == alike]
    return mine is not None and any(
        mine[0] > _ABOVE * first and abs(mine[1] - last) <= 0.01 * last for first, last in others
    )


def _ends(column: pl.Series) -> tuple[float, float] | None:
    """The first and the last number of a column, None where there are not two."""
    at = column.is_not_null().arg_true()
    if at.len() < 2:
        return None
    both = _numbers(column.gather([at[0], at[-1]]))
    if both.null_count():  # texts among the numbers
        both = _numbers(column).drop_nulls()
    return (float(both[0]), float(both[-1])) if both.len() > 1 else None


def _numbers(column: pl.Series) -> pl.Series:
    return column.cast(pl.String, strict=False).str.strip_chars().cast(pl.Float64, strict=False)


def _usable(kind: pl.DataType) -> bool:
    return kind.is_numeric() or kind in (pl.String, pl.Boolean, pl.Null) or kind.is_temporal()
