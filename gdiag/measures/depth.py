"""Layers along the depth of the network: dead ones, and gradients that vanish towards the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gdiag.measures.layers import Floats, LayerTable, column_median
from gdiag.schema import LayerColumn

SOON = 0.05
"""Share of the rows within which a profile that fades was never one to learn with: it shows in the first updates."""
NEGLIGIBLE = 1e-6
"""Share of the strong layers' gradient below which a layer does not learn: diagnosis A10."""


@dataclass(frozen=True, slots=True)
class Dead:
    """A layer, or a whole block, whose gradient is nothing beside its peers'."""

    layer: str
    columns: tuple[LayerColumn, ...]
    first_step: int
    last_step: int
    rows: int
    from_start: bool
    exact: bool
    """Exactly 0, not only small."""
    level: float
    """Median gradient norm there."""
    peers: float
    """Upper-quartile gradient norm of all layers in those rows."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Gradient norm along the depth, medians over the run."""

    depth: tuple[int, ...]
    """Depths of the blocks, shallow first."""
    level: tuple[float, ...]
    """Median gradient norm of each block without its norm layers."""
    head: float
    """Largest of the levels of the last block and the head."""
    shallow: str
    """Path of the shallowest block."""
    ratio: float
    """Level of the shallowest block / head."""
    decades: float
    """Mean decades lost from one block to the next above it, over blocks with a gradient; 0 with fewer than two levels."""
    monotone: float
    """Share of neighbouring blocks whose gradient does not grow towards the input."""
    geometric: bool
    """Falls through the blocks, rather than stopping at an edge as with frozen layers."""
    onset: int
    """First step since which the shallowest block stays below NEGLIGIBLE of the head, or ten times `ratio`, if larger."""
    from_start: bool
    """Within the first SOON of the rows."""


def forward_order(columns: Sequence[LayerColumn]) -> list[int]:
    """Indices of `columns` from input to loss: by depth, then as logged; a layer without depth stays beside its neighbour."""
    known, last = [], -1
    for column in columns:
        last = column.depth if column.depth is not None else last
        known.append(last)
    return sorted(range(len(columns)), key=lambda i: (known[i], i))


def block_path(column: LayerColumn) -> str:
    """Path of the block a layer belongs to: blocks.2.fc → blocks.2; the layer itself when it is in no block."""
    return column.block or column.layer


def dead_layers(table: LayerTable, least_rows: int = 200, share: float = NEGLIGIBLE) -> list[Dead]:
    """Layers whose gradient stays below `share` of the strong layers' from some row to the end.

    At least `least_rows` rows, or a fifth of a shorter run (20 at least). Blocks dead as a whole are one entry.
    """
    rows, layers = len(table.step), len(table.columns)
    need = max(20, min(least_rows, rows // 5))
    if rows < need or layers < 3:
        return []
    strong = strong_level(table)
    onset = np.full(layers, rows)
    level, exact = np.zeros(layers), np.zeros(layers, bool)
    for first, values in table.blocks():
        alive = (np.abs(values) > share * strong[:, None]) & np.isfinite(strong)[:, None]
        some = np.isfinite(values)
        last_alive = np.where(alive.any(axis=0), rows - 1 - alive[::-1].argmax(axis=0), -1)
        for j in np.flatnonzero(last_alive < rows - need):
            tail = slice(int(last_alive[j]) + 1, rows)
            seen = values[tail, j][some[tail, j]]
            if len(seen) >= need:
                onset[first + j] = last_alive[j] + 1
                level[first + j], exact[first + j] = float(np.median(seen)), bool((seen == 0).all())
    return _by_block(table, onset, level, exact, strong)


def _by_block(
    table: LayerTable, onset: NDArray[np.int64], level: Floats, exact: NDArray[np.bool_], strong: Floats
) -> list[Dead]:
    rows = len(table.step)
    paths = [block_path(c) for c in table.columns]
    dead = [i for i in forward_order(table.columns) if onset[i] < rows]
    found: list[Dead] = []
    for path in dict.fromkeys(paths[i] for i in dead):
        inside = [i for i in dead if paths[i] == path]
        whole = sum(p == path for p in paths) == len(inside)
        groups = [(path, inside)] if whole else _dying_together(table, path, inside, onset)
        for name, group in groups:
            begin = int(max(onset[i] for i in group))
            found.append(
                Dead(
                    name, tuple(table.columns[i] for i in group), int(table.step[begin]), int(table.step[-1]), rows - begin,
                    begin <= 1, all(exact[i] for i in group), float(np.median(level[group])),
                    float(np.nanmedian(strong[begin:])) if np.isfinite(strong[begin:]).any() else float("nan"),
                )
            )  # fmt: skip
    return found


def _dying_together(
    table: LayerTable, path: str, inside: list[int], onset: NDArray[np.int64]
) -> list[tuple[str, list[int]]]:
    """(module, layers) of one block that died within two rows of one another; layers of no common module stay apart."""
    groups: dict[tuple[str, int], list[int]] = {}
    for i in sorted(inside, key=lambda i: int(onset[i])):
        module = table.columns[i].layer.removeprefix(path).strip(".").rpartition(".")[0].partition(".")[0]
        near = next((k for k in groups if k[0] == module and module and onset[i] - k[1] <= 2), None)
        groups.setdefault(near or (module or str(i), int(onset[i])), []).append(i)
    return [(f"{path}.{key[0]}" if len(g) > 1 else table.columns[g[0]].layer, g) for key, g in groups.items()]


def strong_level(table: LayerTable, peers: int = 256) -> Floats:
    """90th percentile of the finite layer norms of each row, over at most `peers` layers; shape (n,)."""
    pick = np.unique(np.linspace(0, len(table.columns) - 1, min(len(table.columns), peers)).astype(int))
    values = table.frame.select(table.columns[i].column for i in pick).to_numpy().astype(np.float64)
    values = np.sort(np.where(np.isfinite(values), values, np.nan), axis=1)
    count = np.count_nonzero(~np.isnan(values), axis=1)
    at = np.clip(np.ceil(0.9 * count).astype(int) - 1, 0, values.shape[1] - 1)
    strong: Floats = values[np.arange(len(values)), at]
    return strong


def profile(table: LayerTable) -> Profile | None:
    """Gradient norm of each block, median over the run; None with fewer than three blocks."""
    medians = np.full(len(table.columns), np.nan)
    for first, values in table.blocks():
        medians[first : first + values.shape[1]] = column_median(np.where(np.isfinite(values), values, np.nan))
    blocks: dict[int, list[int]] = {}
    for i, column in enumerate(table.columns):
        inside = column.depth is not None and column.depth >= 0 and column.kind not in ("lm_head", "norm", "embedding")
        if inside and np.isfinite(medians[i]):
            blocks.setdefault(column.depth or 0, []).append(i)
    depth = sorted(blocks)
    if len(depth) < 3:
        return None
    level = [float(np.median(medians[blocks[d]])) for d in depth]
    heads = [float(medians[i]) for i, c in enumerate(table.columns) if c.kind == "lm_head" and np.isfinite(medians[i])]
    head = max([float(medians[blocks[depth[-1]]].max()), *heads])
    if head <= 0:
        return None
    with np.errstate(divide="ignore"):
        logs = np.log10(np.asarray(level))
    live = logs[np.isfinite(logs)]
    falls = np.array([a <= b * 1.05 for a, b in pairwise(level)])
    top = blocks[depth[-1]] + [i for i, c in enumerate(table.columns) if c.kind == "lm_head"]
    onset = _since(table, blocks[depth[0]], top, max(NEGLIGIBLE, 10 * level[0] / head))
    lowest = min((m for i in blocks.values() for m in medians[i].tolist() if m > 0), default=head)
    return Profile(
        depth=tuple(depth), level=tuple(level), head=head, shallow=block_path(table.columns[blocks[depth[0]][0]]),
        ratio=level[0] / head, decades=float((live[-1] - live[0]) / (len(live) - 1)) if len(live) > 1 else 0.0,
        monotone=float(falls.mean()), geometric=bool(np.log10(head / lowest) >= 3.0),
        onset=int(table.step[onset]), from_start=onset <= max(1, SOON * len(table.step)),
    )  # fmt: skip


def _since(table: LayerTable, shallow: Sequence[int], top: Sequence[int], share: float) -> int:
    """Row since which the median of the layers `shallow` is below `share` of the largest of `top` in 9 of 10 rows."""
    low = column_median(_of(table, shallow).T)
    high = np.max(np.nan_to_num(_of(table, top), nan=0.0), axis=1)
    below = np.nan_to_num(low, nan=0.0) < share * high
    often = np.cumsum(below[::-1])[::-1] / np.arange(len(below), 0, -1)
    lasting = below & (often >= 0.9)
    return int(np.argmax(lasting)) if lasting.any() else len(below) // 2


def _of(table: LayerTable, which: Sequence[int]) -> Floats:
    """Finite values of some layers, shape (n, len(which)); NaN otherwise."""
    values = table.frame.select(table.columns[i].column for i in which).to_numpy().astype(np.float64)
    return np.where(np.isfinite(values), values, np.nan)
