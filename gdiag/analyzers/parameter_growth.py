"""Finds parameter norms that keep growing.

What it checks: parameter norms that still grow at the end of the run: one layer by `factor` over the last fifth, steadily
(Mann-Kendall) and `family` times faster than the median layer of its kind (norm layers and embeddings are not judged), or
the whole network by `together` (healthy runs: below 1.1); or norms of most layers that begin to grow `faster` times
faster in the middle of the run, whatever the learning rate, and grow `overall`-fold until its end (of 28 small networks
that were really trained, one grew that much after its peak rate, at 0.9 times the pace before); or one layer that begins
to outgrow the median layer `sudden` times faster than before and ends `apart` times larger beside it (healthy ones: 1.8
at most in 120 runs).

Why it matters: with weight decay a norm settles where decay balances the updates; one that keeps growing makes the
relative step ever smaller, and a growing head or query-key projection is how output and attention logits grow.

What to do: weight decay on that tensor, z-loss for the head (1e-4), QK-norm for attention; check whether the parameter
was left out of the decayed group by mistake.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.growth import accelerated, growth_onset, rate_at, weight_logs
from gdiag.measures.layers import Floats, LayerTable
from gdiag.measures.parameters import trend
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD207"
NAME = "parameter-growth"
NEEDS: tuple[str, ...] = ("layers.param_norm|steps.param_norm",)


def analyze(
    run: RunView, *, factor: float = 1.5, together: float = 1.2, family: float = 3.0, z: float = 4.0, most: int = 5,
    faster: float = 2.0, overall: float = 2.0, sudden: float = 5.0, apart: float = 2.5,
) -> list[Finding]:  # fmt: skip
    """The fastest growing layers, or the whole network where only its norm is logged.

    Args:
        run: the run.
        factor: growth of one layer over the last fifth of the run.
        together: the same of the median layer, or of the norm of all parameters.
        family: growth rate over that of the median layer of the same kind.
        z: Mann-Kendall score.
        most: findings.
        faster: pace of the median layer after over before.
        overall: growth of the median layer from there to the end.
        sudden: pace of one layer beside the median layer, after over before.
        apart: growth of that layer beside the median layer from there to the end.
    """
    table = run.layer_table("param_norm")
    if table is None:
        return _whole(run, together, z)
    rows = len(table.step)
    if rows < 100:
        return []
    logs, judged = weight_logs(table)
    turned = _accelerated(run, table, logs, judged, faster, overall)
    alone = _outgrown(run, table, logs, sudden, apart) if judged >= LEAST_PEERS else []
    if turned and not (alone and _grown(alone[0]) > 2 * _grown(turned[0])):  # else the others follow that one
        return turned
    if alone:
        return alone[:most]
    rate = _rates(table)
    if float(np.median(rate)) >= np.log(together):
        return _network(run, table, rate, together, z)
    found: list[tuple[float, int, float, float]] = []
    for i in np.flatnonzero(rate > np.log(factor)).tolist():
        column = table.columns[i]
        if column.kind in ("norm", "embedding"):
            continue
        mates = [rate[k] for k, c in enumerate(table.columns) if c.kind == column.kind and k != i]
        usual = float(np.median(mates)) if mates else 0.0
        moved = trend(np.log(np.maximum(table.values(i)[-rows // 5 :], 1e-300)))
        if moved is not None and moved.z > z and rate[i] > family * usual:
            found.append((float(rate[i]), i, moved.z, usual))
    return [_one(run, table, i, r, score, usual, factor) for r, i, score, usual in sorted(found, reverse=True)[:most]]


def _grown(finding: Finding) -> float:
    """Logarithm of what a finding's norm is multiplied by."""
    return float(np.log(max(1.0, finding.number("ratio") or 1.0)))


def _rates(table: LayerTable) -> Floats:
    """log growth of each layer's norm over the last fifth; shape (layers,)."""
    rows = len(table.step)
    edge = max(5, rows // 50)
    begin, end = table.frame[rows - rows // 5 :][:edge].median(), table.frame[rows - edge :].median()
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.log(end.to_numpy().astype(float)[0]) - np.log(begin.to_numpy().astype(float)[0])
    return np.where(np.isfinite(rate), rate, -np.inf)


def _accelerated(
    run: RunView, table: LayerTable, logs: Floats, judged: int, faster: float, overall: float
) -> list[Finding]:  # fmt: skip
    """All layers begin to grow faster at one place, as without decay or under steps that all point one way."""
    found = accelerated(logs, rate_at(table.step, run.series("lr")), least=float(np.log(overall)))
    if found is None or found.ratio < faster or found.layers < 0.7 * logs.shape[1]:
        return []
    step, growth = int(table.step[found.row]), float(np.exp(found.growth))
    if run.schedule is not None and any(jump.ratio > 1 and jump.step >= step for jump in run.schedule.jumps):
        return []  # a rate that jumps lengthens weights by itself
    moved = round(found.layers / logs.shape[1] * judged)
    return [
        Finding(
            CODE, NAME, Severity.WARNING if run.steady_before(step) else Severity.INFO,
            f"Parameter norms of {moved} of {judged} layers grow {found.ratio:.1f} times faster from step {step} on, "
            f"{growth:.2f}-fold to the end of the run",
            run.where(table.row_near(step), step=step, last_step=int(table.step[-1])),
            (
                Measure("ratio", growth, limit=overall), Measure("pace_ratio", found.ratio, limit=faster),
                Measure("layers_moved", moved), Measure("layers_total", judged),
            ),
        )
    ]  # fmt: skip


def _outgrown(run: RunView, table: LayerTable, logs: Floats, sudden: float, apart: float) -> list[Finding]:
    """Layers that leave the median layer in mid-run, the earliest first; a jump in one row is GD208's to say."""
    if not np.isfinite(logs).all():
        return []
    usual = np.median(logs - logs[0], axis=1)
    steady = np.ones(len(table.step))
    found: list[tuple[int, int, float, float]] = []
    for i, column in enumerate(table.columns):
        if column.kind in ("norm", "embedding"):
            continue
        own = np.log(np.maximum(table.values(i), 1e-300)) - usual
        if not np.isfinite(own).all() or own[-1] - own.min() < np.log(apart):
            continue
        turn = accelerated(own[:, None], steady, least=float(np.log(apart)))
        if turn is None or turn.ratio < sudden or np.diff(own).max() > 0.5 * turn.growth:
            continue
        found.append((turn.row, i, float(np.exp(turn.growth)), turn.ratio))
    return [_leaving(run, table, *each, apart) for each in sorted(found)]


LEAST_PEERS = 3
"""Layers below which none of them is the usual one."""


def _leaving(run: RunView, table: LayerTable, row: int, i: int, growth: float, pace: float, apart: float) -> Finding:
    step, column = int(table.step[row]), table.columns[i]
    return Finding(
        CODE, NAME, Severity.WARNING if run.steady_before(step) else Severity.INFO,
        f"Parameter norm of {column.layer} begins to outgrow the others at step {step}, {growth:.3g}-fold beside the median layer "
        "to the end of the run",
        run.where(table.row_near(step), step=step, last_step=int(table.step[-1]), layer=column.layer),
        (
            Measure("ratio", growth, limit=apart), Measure("pace_ratio", min(pace, 1000.0)), Measure("alone", True),
            Measure("layer_kind", column.kind),
        ),
    )  # fmt: skip


def _network(run: RunView, table: LayerTable, rate: Floats, together: float, z: float) -> list[Finding]:
    """All layers grow: the norms of all of them, as the mean of their logarithms."""
    pick = np.unique(np.linspace(0, len(rate) - 1, min(len(rate), 64)).astype(int))
    logs = np.stack([np.log(np.maximum(table.values(int(i)), 1e-300)) for i in pick]).mean(axis=0)
    row = growth_onset(logs)
    moved = trend(logs[-len(logs) // 5 :])
    if moved is None or moved.z <= z:
        return []
    step, growth = int(table.step[row]), float(np.exp(np.median(rate)))
    return [
        Finding(
            CODE, NAME, Severity.WARNING if run.steady_before(step) else Severity.INFO,
            f"Parameter norms of {int(np.count_nonzero(rate > 0.5 * np.log(together)))} of {len(rate)} layers grow from step "
            f"{step} on, {growth:.2f}-fold over the last fifth of the run",
            run.where(table.row_near(step), step=step, last_step=int(table.step[-1])),
            (
                Measure("ratio", growth, limit=together), Measure("z", moved.z),
                Measure("layers_moved", int(np.count_nonzero(rate > 0.5 * np.log(together)))),
                Measure("layers_total", len(rate)),
            ),
        )
    ]  # fmt: skip


def _one(run: RunView, table: LayerTable, i: int, rate: float, z: float, usual: float, factor: float) -> Finding:
    first = int(table.step[len(table.step) - len(table.step) // 5])
    name = table.columns[i].layer
    return Finding(
        CODE, NAME, Severity.WARNING if run.steady_before(first) else Severity.INFO,
        f"Parameter norm of {name} grows {np.exp(rate):.2f}-fold over the last fifth of the run, its kind "
        f"{np.exp(usual):.2f}-fold",
        run.where(table.row_near(first), step=first, last_step=int(table.step[-1]), layer=name),
        (
            Measure("ratio", float(np.exp(rate)), limit=factor), Measure("z", z),
            Measure("peers_ratio", float(np.exp(usual))), Measure("layer_kind", table.columns[i].kind),
        ),
    )  # fmt: skip


def _whole(run: RunView, factor: float, z: float) -> list[Finding]:
    curve = run.series("param_norm")
    if len(curve) < 100 or not (curve.value > 0).all():
        return []
    tail = slice(len(curve) - len(curve) // 5, None)
    moved = trend(np.log(curve.value[tail]))
    if moved is None or moved.z <= z or moved.total < np.log(factor):
        return []
    row = growth_onset(np.log(curve.value))
    return [
        Finding(
            CODE, NAME, Severity.WARNING if run.steady_before(int(curve.step[row])) else Severity.INFO,
            f"Parameter norm grows from step {int(curve.step[row])} on, {np.exp(moved.total):.2f}-fold over the last fifth of the run",
            run.where(curve.finite.row(row), last_step=int(curve.step[-1])),
            (Measure("ratio", float(np.exp(moved.total)), limit=factor), Measure("z", moved.z)),
        )
    ]  # fmt: skip
