"""Evidence that several gradient checks share: which layers moved around an event."""

from __future__ import annotations

from gdiag.measures.attribution import POSITION, Attribution
from gdiag.model import Measure


def layer_evidence(found: Attribution | None) -> tuple[Measure, ...]:
    """Measures of an attribution: layers_moved, layers_total, layers_tied, lead, first_layers, layer_kind."""
    if found is None:
        return ()
    return (
        Measure("layers_moved", found.moved, limit=float(found.total)),
        Measure("layers_total", found.total),
        Measure("layers_tied", found.tied),
        Measure("lead", found.lead, "step"),
        Measure("attributable", found.attributable),
        Measure("first_layers", ", ".join(found.layers)),
        Measure("layer_kind", "position_embedding" if _positions(found) else found.kind),
    )


def named_layer(found: Attribution | None) -> str | None:
    """The layer that rose first, when so few share the earliest onset that it says anything."""
    return found.layers[0] if found is not None and found.attributable else None


POSITIONS = 2.0
"""Times as far as any other layer the embedding of positions must be alone: each of its rows has the gradient of one position
only, and five and six times their level come from healthy batches (3 of 68 healthy runs of networks really trained)."""


def is_alone(event: Attribution, ratio: float, z: float) -> bool:
    """Whether one layer moved and its peers did not."""
    quiet, least = 0.5 < event.peers < 2.0, ratio * (POSITIONS if _positions(event) else 1.0)
    return event.alone and quiet and event.change / event.peers >= least and event.apart >= z


def dominates(event: Attribution, dominant: float, z: float) -> bool:
    """Whether the first layer is far above all others, which rose less in the same row."""
    return (
        event.change >= dominant * event.together and event.change >= 0.5 * dominant * event.second and event.apart >= z
    )


def _positions(event: Attribution) -> bool:
    return event.kind == "embedding" and POSITION.search(event.layers[0]) is not None
