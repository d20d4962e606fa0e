"""Finds the layer that leaves its own history first.

What it checks: layers whose gradient norm leaves its own history, with a threshold raised for the number of layers. One
layer that moves alone while its peers stay, or far beyond all that rise with it, is an alarm; several are put in order
of their onset: the earliest names the layer, unless more than three share it, and then the event is "simultaneous, not
attributable".

Why it matters: the largest norm names the embedding or the head nearly always (4 % right of 500 trials), the earliest
onset the layer where it began (91-93 %, where the others follow a step later). A single layer that jumps for one row while
all others are quiet is what a flipped bit in one gradient looks like, and no batch does that. Where other events of the
run go about as far, now in this layer and now in that, it is the habit of its gradients, as with tiny batches: info.

What to do: a layer alone: compare the per-rank norms of that step and replay it on another node; attention projections
first: look at attention logits, QK-norm; embedding first: look for rare or repeated tokens in the batch, scale its
gradient; all together: look at the batch and the learning rate, no layer is to blame.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gdiag.analyzers.layer_evidence import dominates, is_alone, layer_evidence, named_layer
from gdiag.measures.attribution import Attribution, contrast, embeddings, layer_events
from gdiag.measures.layers import LayerTable
from gdiag.measures.run import RunView
from gdiag.measures.segments import interval
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import multiple

CODE = "GD205"
NAME = "layer-outlier"
NEEDS: tuple[str, ...] = ("layers.grad_norm",)


def analyze(
    run: RunView, *, ratio: float = 4.0, z: float = 8.0, dominant: float = 8.0, together: float = 5.0, most: int = 8
) -> list[Finding]:
    """Layers alone (warning) and attributions of the largest events (info), at most `most` of each.

    Args:
        run: the run.
        ratio: change of a layer alone, beyond its peers' change.
        z: the same in robust standard deviations.
        dominant: change of the largest beyond its peers' from which it is named although others rose with it.
        together: change of the first layer from which an event of several is told.
        most: findings of either kind.
    """
    scan, table = run.layer_scan, run.layer_table("grad_norm")
    if scan is None or table is None:
        return []
    start = max(scan.warm, min(100, len(scan.step) // 8))
    events = layer_events(scan, start)
    alone = [e for e in events if is_alone(e, ratio, z) or dominates(e, dominant, z)]
    several = [
        e
        for e in events
        if e not in alone and not e.alone and e.change >= together and e.together >= 3.0 and e.moved >= 0.25 * e.total
    ]
    largest = sorted(several, key=lambda e: -e.moved * min(e.change, 1e6))[:most]
    return [_alone(run, table, e, _usual(e, alone + several), ratio, z) for e in alone[:most]] + [
        _several(run, table, e, together) for e in sorted(largest, key=lambda e: e.step)
    ]


HABIT: Final = 2
"""So many other events of a run that go at least half as far make one of them usual."""


def _usual(event: Attribution, events: list[Attribution]) -> bool:
    return sum(other.change >= 0.5 * event.change for other in events if other is not event) >= HABIT


def _alone(run: RunView, table: LayerTable, event: Attribution, usual: bool, ratio: float, z: float) -> Finding:
    steady = run.steady_before(event.step)
    beside = f"while the other layers stay at {event.peers:.2f} times theirs"
    if not event.alone:
        beside = f"and dominates the {event.moved} of {event.total} layers that rise with it, {event.peers:.2f} times their level"
    return Finding(
        CODE, NAME, Severity.WARNING if steady and not usual else Severity.INFO,
        f"Gradient of {event.layers[0]} jumps to {multiple(event.change)} times its own level at step {event.step} {beside}",
        run.where(table.row_near(event.step), step=event.step, last_step=event.last_step, layer=event.layers[0]),
        (
            Measure("ratio", event.change, limit=ratio), Measure("z", event.apart, limit=z),
            Measure("peers_ratio", event.peers), Measure("alone", event.alone), Measure("dominates", True),
            Measure("steady_before", steady), Measure("usual", usual), *layer_evidence(event),
        ),
    )  # fmt: skip


def _several(run: RunView, table: LayerTable, event: Attribution, together: float) -> Finding:
    token = _concentrated(run, table, event)
    layer = named_layer(event)
    evidence = [
        Measure("ratio", event.change, limit=together), Measure("z", event.z), Measure("peers_ratio", event.together),
        Measure("alone", False), Measure("simultaneous", layer is None), *layer_evidence(event),
    ]  # fmt: skip
    if layer is not None:
        text = f"Gradient of {', '.join(event.layers[: event.tied])} rises first at step {event.step}, then {event.moved} of "
        text += f"{event.total} layers, {event.lead} steps later" if event.lead else f"{event.total} layers"
    else:
        text = (
            f"Gradients of {event.moved} of {event.total} layers rise together at step {event.step}, up to {multiple(event.together)} times "
            "their level: simultaneous, not attributable to a layer"
        )
    if token is not None:
        layer, excess, deviation = token
        evidence += [Measure("embedding_excess", excess), Measure("embedding_z", deviation, limit=3.0)]
        evidence = [m for m in evidence if m.name != "layer_kind"] + [Measure("layer_kind", "embedding")]
        text += f", {layer} {excess:.1f} times more than the position embedding: few rows of it take the gradient"
    return Finding(
        CODE, NAME, Severity.INFO, text,
        run.where(table.row_near(event.step), step=event.step, last_step=event.last_step, layer=layer), tuple(evidence),
    )  # fmt: skip


def _concentrated(run: RunView, table: LayerTable, event: Attribution) -> tuple[str, float, float] | None:
    """(token embedding, excess, z) where its gradient rises further than the position embedding's.

    Both embeddings receive the same signal; the position embedding adds it up by place, the token embedding by token.
    Tokens that repeat add up in few rows and raise the token embedding, many different ones lower it (0.5 times in
    garbled batches).
    """
    pair = embeddings(table)
    if pair is None or event.moved < 0.8 * event.total or event.peers < 5:
        return None
    change, z = contrast(table, *pair)
    row = int(np.searchsorted(table.step, event.step))
    before, rate = run.series("lr").at(event.step - 3 * interval(table.step)), run.series("lr").at(event.step)
    jumped = before is not None and rate is not None and rate > 1.5 * before
    if jumped or not (z[row] >= 3.0 and change[row] >= np.log(1.5)):
        return None
    return table.columns[pair[0]].layer, float(np.exp(change[row])), float(z[row])
