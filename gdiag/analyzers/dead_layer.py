"""Finds layers that get no gradient any more.

What it checks: layers, or whole blocks, whose gradient stays below `share` of the strong layers' from some step to the
end; beside it whether their parameters stand still, and whether the config says that something is frozen. Embedding
and lowest blocks that never had a gradient and never moved are frozen by the look of it, and info. Where most of the
network has no gradient from the start and the loss does not fall either, nobody chose to freeze it. Layers that have a
gradient and never move while the others do.

Why it matters: a dead layer costs memory and time and adds nothing; dead from the first step it is mostly not in the
graph, not in the optimizer or frozen by mistake, dead later its units have saturated or died.

What to do: compare with what the config freezes on purpose; look whether the layer's output is used, whether its
parameters are in an optimizer group and require a gradient; for units that died, SiLU or GELU instead of ReLU, a lower
learning rate, another initialization; a two-block network that contains the layer reproduces it in minutes.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from gdiag.measures.depth import Dead, block_path, dead_layers, profile
from gdiag.measures.layers import Floats, LayerTable
from gdiag.measures.parameters import last_digit
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity
from gdiag.schema import LayerColumn

CODE = "GD203"
NAME = "dead-layer"
NEEDS: tuple[str, ...] = ("layers.grad_norm",)
LEARNT = 0.95
"""Share of the first loss above which a run whose layers were frozen on purpose would not stay."""


def analyze(run: RunView, *, share: float = 1e-6, rows: int = 200, most: int = 8) -> list[Finding]:
    """One finding per dead block or layer; one for all when a whole kind of layer carries no gradient.

    Args:
        run: the run.
        share: gradient below this share of the strong layers' is none.
        rows: logged rows, or a fifth of a shorter run.
        most: findings.
    """
    table = run.layer_table("grad_norm")
    dead = dead_layers(table, rows, share) if table is not None else []
    if table is None:
        return []
    frozen = _frozen_by_config(run)
    found = [] if frozen else _never_updated(run, table, dead)[:most]
    depth = profile(table) if dead else None
    if not dead or (depth is not None and depth.ratio <= share and depth.geometric):
        return found  # without a gradient that vanishes on the way: GD202
    chosen, reason, idle = _by_choice(run, table, dead, frozen)
    found += [_all(run, table, chosen, reason, share, idle=idle)] if chosen else []
    return found + [_one(run, table, d, share, frozen) for d in dead if d not in chosen][:most]


LEAST_ROWS = 50
"""Rows of both norms that show a layer that is never updated."""
STIRS = 1e-3
"""Relative change of a norm over the run from which a layer was updated: rounding to four digits is below it."""
DIGITS = 1e-3
"""Last digit of a norm, as a share of it, above which a small move would not show."""
GRADIENT = 1e-2
"""Median gradient, as a share of that of the layers that move, from which it would have moved this one."""


def _never_updated(run: RunView, table: LayerTable, dead: list[Dead]) -> list[Finding]:
    """Layers whose parameters stay exactly where they began although they have a gradient, while most others move.

    What reaches a layer and does not move it is not in the optimizer.
    """
    norms = run.layer_table("param_norm")
    if norms is None:
        return []
    place = {c.layer: i for i, c in enumerate(table.columns)}
    gone = {c.layer for d in dead for c in d.columns}
    held = {
        c.layer: (_finite(norms.values(i)), _finite(table.values(place[c.layer])))
        for i, c in enumerate(norms.columns)
        if c.kind != "norm" and c.layer in place and c.layer not in gone
    }
    judged = {layer: pair for layer, pair in held.items() if min(map(len, pair)) >= LEAST_ROWS}
    moving = [pair[1] for pair in judged.values() if np.ptp(pair[0]) > STIRS * abs(float(pair[0][0]))]
    if len(moving) < max(3, 2 * len(judged) // 3):
        return []
    usual = float(np.median([np.median(gradient) for gradient in moving]))
    found = []
    for name, (values, gradients) in judged.items():
        norm, gradient = float(values[0]), float(np.median(gradients))
        coarse = float(last_digit(values[:1, None])[0, 0]) > DIGITS * abs(norm)
        if np.ptp(values) > 0 or coarse or not gradient > GRADIENT * usual:
            continue
        evidence = (
            Measure("never_updated", True), Measure("grad_level", gradient), Measure("level_peers", usual),
            Measure("from_start", True), Measure("layers", 1), Measure("layers_total", len(table.columns)),
        )  # fmt: skip
        text = f"The parameters of {name} never move (norm {norm:.4g} in all rows) although their gradient is {gradient:.3g}, while the other layers learn"
        where = run.where(
            norms.row_near(int(norms.step[0])), step=int(norms.step[0]), last_step=int(norms.step[-1]), layer=name
        )
        found.append(Finding(CODE, NAME, Severity.WARNING, text, where, evidence))
    return found


def _finite(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def _by_choice(run: RunView, table: LayerTable, dead: list[Dead], frozen: bool) -> tuple[list[Dead], str, bool]:
    """Layers that nobody left without gradient by accident, why, and whether a loss that does not fall says otherwise."""
    still = [d for d in dead if d.from_start and d.exact]
    if sum(len(d.columns) for d in still) > 0.5 * len(table.columns):
        return still, "most of the network is frozen", not frozen and _idle(run)
    bottom = _bottom(run, table, still)
    if bottom:
        top = max((c for d in bottom for c in d.columns), key=lambda column: column.depth or 0)
        return bottom, f"everything up to {block_path(top)} is frozen by the look of it", not frozen and _idle(run)
    alike = _in_every_block(table, [d for d in dead if d.from_start])
    return alike, "the same layer of every block is frozen, outside the graph or not seen by the loss", False


def _bottom(run: RunView, table: LayerTable, still: list[Dead]) -> list[Dead]:
    """The embedding and every block up to some depth, where none of them has ever moved: how fine-tuning freezes.

    A graph that is cut there by accident leaves the same zeros, but weight decay still moves the parameters.
    """
    gone = {c.column for d in still for c in d.columns}
    alive = [c.depth for c in table.columns if c.depth is not None and c.column not in gone]
    top = min(alive, default=-1)
    below = [d for d in still if all(c.depth is not None and c.depth < top for c in d.columns)]
    deep = {c.depth for d in below for c in d.columns}
    if not {-1, 0} <= deep or any(_parameters_stand_still(run, d) is False for d in below):
        return []
    return below


def _in_every_block(table: LayerTable, dead: list[Dead]) -> list[Dead]:
    """Those whose namesakes in all of at least two blocks carry no gradient either: a choice or a symmetry, not an accident.

    The bias of a key projection is one: the softmax does not see it and its gradient is rounding noise.
    """
    inside = [d for d in dead if block_path(d.columns[0]) not in (d.layer, d.columns[0].layer)]
    gone = Counter(_inner(c) for d in inside for c in d.columns)
    there = Counter(_inner(c) for c in table.columns if block_path(c) != c.layer)
    return [d for d in inside if all(there[_inner(c)] == gone[_inner(c)] >= 2 for c in d.columns)]


def _inner(column: LayerColumn) -> str:
    return column.layer.removeprefix(block_path(column))


def _one(run: RunView, table: LayerTable, dead: Dead, share: float, frozen: bool) -> Finding:
    still = _parameters_stand_still(run, dead)
    since = "from the start" if dead.from_start else f"since step {dead.first_step}"
    level = "zero" if dead.exact else f"{dead.level:.1g}"
    size = f", all {len(dead.columns)} layers of it" if len(dead.columns) > 1 else ""
    moves = "" if still is None else f", its parameters {'stand still' if still else 'still move'}"
    after = not dead.from_start and not run.steady_before(dead.first_step)
    evidence = [
        Measure("looks_frozen", dead.from_start and dead.exact and still is True),
        Measure("ratio", _share(dead), limit=share),
        Measure("exact_zero", dead.exact),
        Measure("rows", dead.rows),
        Measure("from_start", dead.from_start),
        Measure("frozen_by_config", frozen),
        Measure("after_turmoil", after),
        Measure("layers", len(dead.columns)),
        Measure("layers_total", len(table.columns)),
        Measure("level_peers", dead.peers),
    ]
    if still is not None:
        evidence.append(Measure("parameters_still", still))
    return Finding(
        CODE, NAME, Severity.INFO if frozen or after else Severity.WARNING,
        f"Gradient of {dead.layer} is {level} {since} while the strong layers have {dead.peers:.3g}{size}{moves}",
        run.where(table.row_near(dead.first_step), step=dead.first_step, last_step=dead.last_step, layer=dead.layer),
        tuple(evidence),
    )  # fmt: skip


def _share(dead: Dead) -> float:
    """Gradient as a share of the strong layers'; 0 where they have none either."""
    return dead.level / dead.peers if dead.peers > 0 else 0.0


def _idle(run: RunView) -> bool:
    """Whether the loss hardly falls at all."""
    progress = run.learning
    return progress is not None and progress.best > LEARNT * progress.first > 0


def _all(
    run: RunView, table: LayerTable, dead: list[Dead], reason: str, share: float, *, idle: bool = False
) -> Finding:  # fmt: skip
    count = sum(len(d.columns) for d in dead)
    first = min(d.first_step for d in dead)
    return Finding(
        CODE, NAME, Severity.WARNING if idle else Severity.INFO,
        f"{count} of {len(table.columns)} layers have no gradient from the start: {reason}{', and the loss does not fall' if idle else ''}",
        run.where(table.row_near(first), step=first, last_step=dead[0].last_step),
        (
            Measure("learns", not idle),
            Measure("layers", count), Measure("layers_total", len(table.columns)), Measure("from_start", True),
            Measure("exact_zero", all(d.exact for d in dead)), Measure("ratio", max(_share(d) for d in dead), limit=share),
            Measure("first_layers", ", ".join(d.layer for d in dead[:3])),
        ),
    )  # fmt: skip


def _parameters_stand_still(run: RunView, dead: Dead) -> bool | None:
    """Whether the layer's parameters stay the same while it is dead, by their norms or updates; None when neither is logged."""
    names = {c.layer for c in dead.columns}
    table = run.layer_table("param_norm")
    if table is None:
        updates = run.layer_table("update_norm")
        own = [i for i, c in enumerate(updates.columns) if c.layer in names] if updates is not None else []
        if updates is None or not own:
            return None
        late = updates.step >= dead.first_step
        return not any(np.nan_to_num(updates.values(i)[late]).any() for i in own)
    after = table.step >= dead.first_step
    spread = []
    for i, column in enumerate(table.columns):
        if column.layer in names:
            values = table.values(i)[after]
            values = values[np.isfinite(values)]
            if len(values) >= 2:
                spread.append(float(np.ptp(values) / max(abs(float(values[0])), 1e-30)))
    return max(spread) < 1e-5 if spread else None


def _frozen_by_config(run: RunView) -> bool:
    """Whether a config key that speaks of freezing or adapters is set."""
    words = ("freeze", "frozen", "lora", "adapter", "trainable_layers", "requires_grad")
    off = ("", "0", "false", "none", "null", "[]", "no")
    return any(any(w in key.lower() for w in words) and str(v).lower() not in off for key, v in run.run.config.items())
