"""Evidence that several gradient checks share: which layers moved around an event."""

from __future__ import annotations

from gdiag.measures.attribution import POSITION, Attribution
from gdiag.model import Measure


def layer_evidence(found: Attribution | None) -> tuple[Measure, ...]:
    """Measures of an attribution: layers_moved, layers_total, layers_tied, lead, first_layers, layer_kind."""
    if found is None:
        return ()
    positions = found.kind == "embedding" and POSITION.search(found.layers[0]) is not None
    return (
        Measure("layers_moved", found.moved, limit=float(found.total)),
        Measure("layers_total", found.total),
        Measure("layers_tied", found.tied),
        Measure("lead", found.lead, "step"),
        Measure("attributable", found.attributable),
        Measure("first_layers", ", ".join(found.layers)),
        Measure("layer_kind", "position_embedding" if positions else found.kind),
    )


def named_layer(found: Attribution | None) -> str | None:
    """The layer that rose first, when so few share the earliest onset that it says anything."""
    return found.layers[0] if found is not None and found.attributable else None


def is_alone(event: Attribution, ratio: float, z: float) -> bool:
    """Whether one layer moved and its peers did not."""
    quiet = 0.5 < event.peers < 2.0
    return event.alone and quiet and event.change / event.peers >= ratio and event.apart >= z
