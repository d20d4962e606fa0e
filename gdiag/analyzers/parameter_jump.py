"""Finds parameters that move further than an optimizer can move them.

What it checks: a parameter norm that moves `factor` times further in one logged row than in any of the rows before,
with the learning rate divided out, and moves as usual again after it, while the other layers move as usual.

Why it matters: an optimizer moves a tensor by about the learning rate in every element and never far beyond its own
earlier steps; clipping and Adam bound even a broken gradient. A single layer that moves hundreds of times further was
changed by something that is no update: a flipped bit in the weights, a wrong tensor loaded, a collective that wrote into
it. Flips of low exponent bits are too small to be seen in a norm.

After the gradients have become unstable such a jump is one of many consequences, and info, unless the one layer moves
10,000 times further than in all that turmoil while the others do not; at a resume half of the layers that jump together
are another checkpoint's weights, and a warning. So they are without the mark of a resume where calm gradients were before and
the norms are those of an earlier row: what that did, the loss tells. Where the logged update surges at that step and is as
large as the jump, the optimizer made it: info.

What to do: compare the layer's checksum across replicas and with the last checkpoint, restore from the last checkpoint
before this step, test the node's memory; when many layers jump together look at the learning rate, at a resume or at a
loaded checkpoint instead.
"""

from __future__ import annotations

import numpy as np

from gdiag.measures.layers import LayerTable
from gdiag.measures.parameters import Jump, jumps, like_row, whole_network
from gdiag.measures.run import RunView
from gdiag.measures.segments import interval
from gdiag.model import Finding, Measure, Severity
from gdiag.reference.figures import multiple

CODE = "GD208"
NAME = "parameter-jump"
NEEDS: tuple[str, ...] = ("layers.param_norm|steps.param_norm",)


def analyze(
    run: RunView, *, factor: float = 20.0, severe: float = 100.0, share: float = 1e-3, most: int = 5
) -> list[Finding]:
    """One finding per row with a jump, at most `most`.

    Args:
        run: the run.
        factor: move over the largest move before.
        severe: the same from which one layer alone is critical.
        share: smallest relative change of the norm.
        most: findings.
    """
    table = run.layer_table("param_norm")
    if table is None and len(run.series("param_norm")) >= 16:
        table = whole_network(run.series("param_norm"))
    if table is None:
        return []
    by_row: dict[int, list[Jump]] = {}
    for jump in [j for j in jumps(table, run.series("lr"), factor / 2, share) if j.single]:
        by_row.setdefault(jump.row, []).append(jump)
    found: list[Finding] = []
    last = -100
    for row in sorted(by_row):
        group = sorted(by_row[row], key=lambda j: -j.excess)
        if group[0].excess < factor or row <= last + 10:
            continue  # the rows after a jump of many layers belong to it
        found.append(_finding(run, table, group, factor, severe))
        last = row if len(group) > 1 else last
        if len(found) == most:
            break
    return found


def _finding(run: RunView, table: LayerTable, group: list[Jump], factor: float, severe: float) -> Finding:
    lead, total = group[0], len(table.columns)
    whole = total == 1 and not table.columns[0].layer
    alone = len(group) <= max(1, total // 10) and (len(group) == 1 or group[1].excess < 0.5 * lead.excess)
    step, name = int(table.step[lead.row]), table.columns[lead.layer].layer
    steady = run.steady_before(step) or (alone and lead.excess >= BEYOND)
    resumed = any(place <= step <= place + 2 * interval(table.step) for place, _ in run.resume_places)
    together = len(group) >= 0.5 * total
    own = _within_update(run, table, lead)
    like = like_row(table, lead.row) if together and not alone else None
    other = together and (resumed or (steady and not own and like is not None))
    severity = (
        Severity.WARNING
        if other and resumed
        else Severity.INFO
        if not alone or not steady or own
        else Severity.CRITICAL
        if lead.excess >= severe and not whole
        else Severity.WARNING
    )
    place = "" if whole else f" of {name}"
    who = (
        f"Parameter norm{place} jumps from {lead.before:.5g} to {lead.after:.5g} at step {step}"
        if alone
        else f"Parameter norms of {len(group)} of {total} layers jump at step {step}, {name} from {lead.before:.5g} to {lead.after:.5g}"
    )
    beside = ", the other layers move as usual" if alone and not whole else ""
    beside = f"{', at a resume' if resumed else ''}: the weights are another checkpoint's" if other else beside
    beside = f"{beside}, near those of step {int(table.step[like])}" if other and like is not None else beside
    beside = f"{beside}, and no further than the surge of the logged update" if own else beside
    return Finding(
        CODE, NAME, severity, f"{who}, {multiple(lead.excess)} times its largest step before{beside}",
        run.where(table.row_near(step), step=step, layer=name if alone and not whole else None),
        (
            Measure("excess", lead.excess, limit=factor),
            Measure("level_before", lead.before),
            Measure("level_after", lead.after),
            Measure("ratio", lead.after / lead.before if lead.before else float("inf")),
            Measure("share", lead.share),
            Measure("layers_moved", len(group)),
            Measure("layers_total", total),
            Measure("lr_divided_out", len(run.series("lr")) > 1),
            Measure("alone", alone),
            Measure("at_restart", resumed),
            Measure("other_weights", other),
            *([Measure("like_step", int(table.step[like]), "step")] if other and like is not None else []),
            Measure("steady_before", steady),
            Measure("within_update", own),
            Measure("layer_kind", table.columns[lead.layer].kind),
        ),
    )  # fmt: skip


BEYOND = 1e4
"""Times its largest step before from which no turmoil of the gradients explains the move of one layer alone."""
SURGED = 3.0
"""Times its own level from which an update is large enough to be the story itself."""


def _within_update(run: RunView, table: LayerTable, jump: Jump) -> bool:
    """Whether the norm moved no further than an update that surged there: by the triangle inequality the optimizer can do that."""
    update = run.update_norm
    first, last = int(table.step[max(0, jump.row - 1)]), int(table.step[jump.row])
    near, before = (update.step >= first) & (update.step <= last), update.value[update.step < first]
    if not near.any() or len(before) < 8:
        return False
    largest = float(update.value[near].max())
    return largest >= SURGED * float(np.median(before)) and abs(jump.after - jump.before) <= largest * (last - first)
