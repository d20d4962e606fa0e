"""What a check could not find, in words: one phrase for evidence of a kind that is wholly absent."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final

from gdiag.measures.run import RunView

KINDS: Final = {
    "steps": "step log", "layers": "per-layer columns", "gpus": "GPU telemetry", "events": "console events", "collectives": "nccl-tests output",
    "devices": "device list", "ports": "port counters", "facts": "hardware facts", "baselines": "baseline to compare with",
    "operations": "timings of single collectives", "nvlinks": "NVLink screens", "modules": "transceiver pages", "switches": "states of switches",
    "failures": "nccl-tests output",
}  # fmt: skip


def held(run: RunView) -> frozenset[str]:
    """The tables of which the run has rows."""
    return frozenset(table for table in KINDS if run.has(table))


def absent(tables: Set[str], lacking: Sequence[str]) -> str:
    """'no lr', 'no GPU telemetry', 'no update_norm or per-layer update_norm': `lacking` are needs as in NEEDS.

    Where evidence of a kind is wholly absent from the `tables` that there are, that alone is said: what else is lacking
    matters only with it.
    """
    parts = [" or ".join(dict.fromkeys(_words(tables, column) for column in need.split("|"))) for need in lacking]
    kinds = [part for part in parts if part in KINDS.values()]
    return f"no {', no '.join(dict.fromkeys(kinds[:1] or parts))}"


def _words(tables: Set[str], column: str) -> str:
    table, _, name = column.partition(".")
    if table not in tables:
        return KINDS[table]
    if table == "steps" or name == "rank":
        return name
    return {"layers": f"per-layer {name}", "gpus": f"GPU {name}"}.get(table, column)
