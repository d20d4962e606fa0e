"""Finds attention logits that grow until the softmax saturates.

What it checks: the largest attention logit of each layer, where logged: above `level`, `factor` times its earlier
level and there to the end. Where it is not logged, its trace in the gradients: when the softmax saturates no gradient
passes to queries and keys, so the gradient of the query-key-value projection falls against that of the output projection
of the same block and stays low.

Why it matters: logits that grow make attention one-hot, its gradient vanish, and the loss jump; values above 100 call for
QK-clip (Kimi K2), above 1,000 runs have been lost, near 10,000 small models fail. It begins in one layer: the first
named here. Logits that grow from the first steps, or after the gradients or the loss became unstable, are a consequence, not
the cause: those are info. One layer of several that leaves all others far behind is no consequence: what else drives logits
drives those of other layers too.

What to do: QK-norm, QK-clip at 100 or a soft cap; a lower learning rate only delays it; softmax in FP32.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.attribution import contrast
from gdiag.measures.depth import block_path
from gdiag.measures.gradients import lasting_rise, surges
from gdiag.measures.growth import Growth, sustained_growth
from gdiag.measures.layers import Floats, LayerTable
from gdiag.measures.run import RunView
from gdiag.measures.segments import interval
from gdiag.model import Finding, Measure, Severity
from gdiag.schema import LayerColumn

CODE = "GD210"
NAME = "attention-logit-growth"
NEEDS: tuple[str, ...] = ("layers.attention_logit|steps.attention_logit|layers.grad_norm",)


def analyze(
    run: RunView,
    *,
    level: float = 100.0,
    severe: float = 1000.0,
    factor: float = 3.0,
    fall: float = 3.0,
    z: float = 5.0,
) -> list[Finding]:
    """At most one finding: the first layer, with what the others do.

    Args:
        run: the run.
        level: largest attention logit.
        severe: the same from which it is critical.
        factor: growth over the earlier level.
        fall: fall of the query-key-value gradient against the output projection's.
        z: robust standard deviations of that fall.
    """
    return _logged(run, level, severe, factor) or _saturation(run, fall, z)


def _logged(run: RunView, level: float, severe: float, factor: float) -> list[Finding]:
    table = run.layer_table("attention_logit")
    growths: list[tuple[int, str | None, Growth]] = []
    total = 1
    if table is not None:
        total = len(table.columns)
        for i, column in enumerate(table.columns):
            grown = sustained_growth(table.values(i), level, factor)
            if grown is not None:
                growths.append((int(table.step[grown.row]), column.layer, grown))
    else:
        curve = run.series("attention_logit")
        grown = sustained_growth(curve.value, level, factor)
        if grown is not None:
            growths.append((int(curve.step[grown.row]), None, grown))
    if not growths:
        return []
    step, block, first = min(growths, key=lambda g: (g[0], -g[2].last))
    layer = _projection(run, block)
    lead = _lead(run, step)
    alone = first.last >= severe and _alone(table, growths, first)
    early = (first.row < 50 and not alone) or not run.steady_before(step)
    severity = Severity.INFO if early else Severity.CRITICAL if first.last >= severe else Severity.WARNING
    place = f" of {block}" if block else ""
    row = table.row_near(step) if table is not None else None
    return [
        Finding(
            CODE, NAME, severity,
            f"Largest attention logit{place} grows from {first.start:.3g}{f' past {level:g}' if first.start < level else ''} at step {step} to {first.last:.3g}",
            run.where(row, step=step, last_step=_last_step(run), layer=layer),
            (
                Measure("level_before", first.start), Measure("level_after", first.last, limit=level),
                Measure("ratio", first.factor, limit=factor), Measure("z", first.z),
                Measure("layers_moved", len(growths)), Measure("layers_total", total),
                Measure("lead", lead, "step"), Measure("from_start", first.row < 50), Measure("logged", True),
                Measure("layer_kind", "attention_qkv"),
            ),
        )
    ]  # fmt: skip


ALONE_OF, FAR = 3, 30.0
"""Layers of which one may be alone, and how many times the others' largest logit its own is then."""


def _alone(table: LayerTable | None, growths: list[tuple[int, str | None, Growth]], first: Growth) -> bool:
    """Whether one layer of several grows and ends far above the others."""
    if table is None or len(growths) > 1 or len(table.columns) < ALONE_OF:
        return False
    lasts = []
    for i in range(len(table.columns)):
        values = table.values(i)
        values = values[np.isfinite(values)]
        lasts.append(float(np.median(values[-max(1, len(values) // 10) :])) if len(values) else 0.0)
    return first.last >= FAR * sorted(lasts)[-2]


def _projection(run: RunView, block: str | None) -> str | None:
    """The query-key-value projection of a block whose logits are logged under the block's name: the one that grew most."""
    grads, params = run.layer_table("grad_norm"), run.layer_table("param_norm")
    table = params or grads
    if block is None or table is None:
        return block
    inside = [i for i, c in enumerate(table.columns) if c.kind == "attention_qkv" and _same_block(c, block)]
    if not inside or any(c.layer == block for c in table.columns):
        return block
    grown = [_growth_of(table.values(i)) if params is not None else 0.0 for i in inside]
    return table.columns[inside[int(np.argmax(grown))]].layer


def _same_block(column: LayerColumn, block: str) -> bool:
    return block in (block_path(column), column.layer) or block.startswith(block_path(column) + ".")


def _growth_of(values: Floats) -> float:
    values = values[np.isfinite(values)]
    return float(np.median(values[-5:]) / np.median(values[:5])) if len(values) >= 10 and values[0] > 0 else 0.0


def _saturation(run: RunView, fall: float, z: float) -> list[Finding]:
    table = run.layer_table("grad_norm")
    if table is None or len(table.step) < 60:
        return []
    pairs = _pairs(table)
    hits = []
    for query, output in pairs:
        change, score = contrast(table, query, output)
        row = _onset(change, score, fall, z)
        if row is not None:
            hits.append((row, query, change))
    if not hits:
        return []
    row, query, change = min(hits, key=lambda h: (h[0], float(np.nanmin(h[2]))))
    step, name = int(table.step[row]), table.columns[query].layer
    lead = _lead(run, step)
    # A disturbance that has gone on for more than a few rows saturates attention by itself.
    usual = interval(run.grad_norm.step)
    moved = any(3 * usual < step - event.onset_step < 100 * usual for event in run.losses[0].events)
    steady = run.steady_before(step) and not -100 * usual < lead < -3 * usual and not moved
    severity = Severity.INFO if row < 50 or not steady else Severity.WARNING
    lowest = float(np.exp(np.nanmin(change[row : row + 100])))
    return [
        Finding(
            CODE, NAME, severity,
            f"Gradient of {name} falls to {lowest:.2g} of its usual share of the output projection's from step {step} on, as "
            "when its softmax saturates; attention logits are not logged",
            run.where(table.row_near(step), step=step, last_step=_last_step(run), layer=name),
            (
                Measure("ratio", lowest, limit=1 / fall), Measure("layers_moved", len(hits)),
                Measure("layers_total", len(pairs)), Measure("lead", lead, "step"), Measure("from_start", row < 50),
                Measure("logged", False), Measure("layer_kind", "attention_qkv"),
            ),
        )
    ]  # fmt: skip


def _pairs(table: LayerTable) -> list[tuple[int, int]]:
    """(query-key-value, output) projections of one block; separate projections are each paired with the output."""
    outputs = {block_path(c): i for i, c in enumerate(table.columns) if c.kind == "attention_output"}
    queries = [(i, block_path(c)) for i, c in enumerate(table.columns) if c.kind == "attention_qkv"]
    return [(i, outputs[path]) for i, path in queries if path in outputs]


def _onset(change: Floats, score: Floats, fall: float, z: float) -> int | None:
    """First row from which the contrast is low in at least eight of ten rows."""
    with np.errstate(invalid="ignore"):
        low = (change < -np.log(fall)) & (score < -z)
    if len(low) < 10:
        return None
    runs = np.flatnonzero(np.convolve(low, np.ones(10), "valid") >= 8)
    return int(runs[0] + np.argmax(low[runs[0] :])) if len(runs) else None


def _lead(run: RunView, step: int) -> int:
    """Steps from `step` to the first disturbance of the gradient norm (3-fold, or a lasting rise); negative when it was before.

    0 when there is none.
    """
    curve = run.grad_norm
    onsets = [int(curve.step[s.first]) for s in surges(curve.value, 4.0) if s.rows >= 3 or s.ratio >= 10]
    rise = lasting_rise(curve.value)
    if rise is not None:
        onsets.append(int(curve.step[rise[0]]))
    onsets = [o for o in onsets if o > curve.step[min(len(curve) - 1, 20)]]
    return min(onsets) - step if onsets else 0


def _last_step(run: RunView) -> int | None:
    step = run.series("loss").step
    return int(step[-1]) if len(step) else None
