"""In which order values stop being finite: loss, norms, layers and ranks, as evidence of the two checks that see it."""

from __future__ import annotations

from gdiag.measures.origin import origin
from gdiag.measures.ranks import by_rank, nonfinite_ranks
from gdiag.measures.run import RunView

WORDS = {"grad_norm": "gradients", "param_norm": "parameters"}


def nonfinite_order(run: RunView, first: int, last: int | None) -> str:
    """What is not finite from step `first` to `last`, by its first step: 'grad_norm 410, loss 411 (gradients of fc 410)'.

    Columns in order of appearance, then the layers of either quantity and the ranks, each with its first step; what
    appears at one step keeps no order.
    """
    seen: dict[str, int] = {}
    for stretch in run.nonfinite:
        for name, step in stretch.columns:
            if _inside(step, first, last):
                seen.setdefault(name, step)
    parts = [f"{name} {step}" for name, step in sorted(seen.items(), key=lambda item: item[1])]
    where: list[str] = []
    for quantity in ("grad_norm", "param_norm"):
        table = run.layer_table(quantity)
        found = origin(table) if table is not None else None
        if found is not None and _inside(found.step, first, last):
            where.append(f"{WORDS[quantity]} of {found.layer or f'{found.nonfinite} layers at once'} {found.step}")
    for name in ("loss", "grad_norm"):
        ranked = by_rank(run.steps, name)
        ranks = nonfinite_ranks(ranked) if ranked is not None else None
        if ranks is not None and _inside(ranks[0], first, last):
            where.append(f"{name} of rank {', '.join(map(str, ranks[1]))} {ranks[0]}")
    return ", ".join(parts) + (f" ({'; '.join(where)})" if where and parts else "; ".join(where))


def _inside(step: int, first: int, last: int | None) -> bool:
    return step >= first and (last is None or step <= last)
