"""Finds the layer in which a gradient first stops being finite.

What it checks: at the first row with a gradient that is not finite, which layers still are finite. Backward goes from
the head to the embedding: what turns non-finite inside a layer reaches every shallower layer and no deeper one, so the
deepest non-finite layer below finite deeper ones is where it began.

Why it matters: it turns "the loss is NaN" into one layer to look at. When all layers turn at once the fault lies in the
loss, the head or the parameters, and no layer is named.

What to do: run that step's batch through the named layer with anomaly detection on; in fp16 or bf16 keep its softmax and
norm in FP32, look at the attention mask and at logits that overflow; go back to the last checkpoint before this step.
"""

from __future__ import annotations

from gdiag.analyzers.nonfinite_order import nonfinite_order
from gdiag.measures.origin import Origin, origin
from gdiag.measures.ranks import by_rank, nonfinite_ranks
from gdiag.measures.run import RunView
from gdiag.measures.segments import interval
from gdiag.model import Finding, Measure, Severity

CODE = "GD204"
NAME = "nonfinite-origin"
NEEDS: tuple[str, ...] = ("layers.grad_norm|layers.param_norm",)


def analyze(run: RunView, *, within: int = 20) -> list[Finding]:
    """At most one finding.

    Args:
        run: the run.
        within: rows before the first non-finite one in which a rise of the gradient is looked for.
    """
    grads, params = run.layer_table("grad_norm"), run.layer_table("param_norm")
    of_grads = origin(grads, within) if grads is not None else None
    of_params = origin(params, within) if params is not None else None
    found = of_grads or of_params
    table = grads if of_grads is not None else params
    if found is None or table is None:
        return []
    parameters = of_params is not None and (of_grads is None or of_params.step <= of_grads.step)
    what = "Parameters" if of_grads is None else "Gradients"
    loss = run.series("loss").nonfinite.step
    loss_first = bool(len(loss) and loss[0] <= found.step)
    before = _earlier(run, found.step) if not found.stays else None
    ranks = _rank(run, found.step)
    lasting = found.lasting and not _goes_on(run, int(table.step[-1]))
    handled = not lasting and _backs_off(run, found.step)
    severity = Severity.WARNING if not lasting else Severity.CRITICAL
    if before is not None or handled:
        severity = Severity.INFO
    return [
        Finding(
            CODE, NAME, severity, _message(what, found, parameters, before),
            run.where(
                table.row_near(found.step), step=found.step, layer=found.layer if before is None else None,
                rank=ranks[0] if len(ranks) == 1 else None,
            ),
            (
                Measure("order", nonfinite_order(run, before if before is not None else found.step, None)),
                Measure("rows", found.rows),
                Measure("nonfinite_layers", found.nonfinite),
                Measure("layers_total", found.total),
                Measure("finite_deeper", found.finite_deeper),
                Measure("own_gradient_only", found.isolated),
                Measure("simultaneous", found.layer is None or before is not None),
                Measure("parameters_nonfinite", parameters),
                Measure("loss_nonfinite", loss_first),
                Measure("isolated", not lasting),
                *((Measure("stays", True),) if found.stays else ()),
                Measure("backed_off", bool(handled)),
                Measure("logged_late", before is not None),
                Measure("steady_before", run.steady_before(found.step)),
                *(() if found.ratio is None else (Measure("grad_ratio", found.ratio, limit=10.0),)),
                *(() if not ranks else (Measure("ranks", ", ".join(map(str, ranks))),)),
            ),
        )
    ]  # fmt: skip


def _message(what: str, found: Origin, parameters: bool, before: int | None) -> str:
    if before is not None:
        return (
            f"{what} of {found.nonfinite} of {found.total} layers are not finite at step {found.step}, their first row after "
            f"the run lost its values at step {before}: where it began was not logged"
        )
    if found.layer is None:
        where = "the parameters are not finite either" if parameters else "the loss, the head or the input of backward"
        return f"{what} of all {found.nonfinite} layers with a gradient turn non-finite at once at step {found.step}: {where}"
    if found.stays:
        alone = (
            f"{found.layer} alone stays"
            if found.nonfinite == 1
            else f"{found.nonfinite} layers up to {found.layer} stay"
        )
        return f"{what} of more layers are not finite before; from step {found.step} on {alone} so to the end, {found.rows} rows"
    if found.isolated:
        again = f"; {found.rows - 1} later rows hold such gradients too" if found.rows > 1 and not found.lasting else ""
        return f"{what} of {found.layer} alone turn non-finite at step {found.step}, {found.nonfinite} of {found.total} layers{again}"
    return (
        f"{what} turn non-finite at step {found.step} in {found.layer} and the {found.nonfinite} layers up to there; "
        f"the {found.finite_deeper} layers nearer the loss are finite"
    )


def _earlier(run: RunView, step: int) -> int | None:
    """Step before `step` at which the loss or the gradient norm was not finite already; None when there is none."""
    lost = [int(c.nonfinite.step[0]) for c in (run.series("loss"), run.grad_norm) if len(c.nonfinite)]
    first = min(lost, default=step)
    return first if first < step else None


def _rank(run: RunView, step: int) -> tuple[int, ...]:
    """Ranks whose own loss or gradient is not finite at or before `step` while others' are."""
    for column in ("grad_norm", "loss"):
        table = by_rank(run.steps, column)
        first = nonfinite_ranks(table) if table is not None else None
        if first is not None and first[0] <= step:
            return first[1]
    return ()


def _goes_on(run: RunView, last: int) -> bool:
    """Whether the run has finite values after the last row of layers: some loggers write layers only where one is lost."""
    curve = run.series("grad_norm")
    if not len(curve) and not len(curve.nonfinite):
        curve = run.series("loss")
    return int((curve.step > last).sum()) >= 3


def _backs_off(run: RunView, step: int) -> bool:
    """Whether the loss scale falls or the update is skipped at `step` or right after: an overflow that was handled."""
    scale, skipped = run.series("loss_scale"), run.series("skipped")
    reach = step + 2 * interval(run.grad_norm.step)
    before, after = scale.at(step - 1), scale.at(reach)
    lower = before is not None and after is not None and after < before
    flagged = skipped.value[(skipped.step >= step) & (skipped.step <= reach)]
    return lower or bool((flagged > 0).any()) or (len(scale) > 0 and step <= scale.step[0])
