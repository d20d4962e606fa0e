"""Runs with per-layer norms made by rule: a small transformer under several naming styles, healthy or with one fault."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gdiag.ingesters import layer_places
from gdiag.measures.run import RunView
from gdiag.model import Run, Source, Value
from gdiag.schema import KEYS, LayerColumn, LayerKind, Quantity, Records

Floats = NDArray[np.float64]

PARTS: dict[str, tuple[tuple[str, LayerKind], ...]] = {
    "gpt": (("ln1", "norm"), ("qkv", "attention_qkv"), ("proj", "attention_output"), ("fc", "mlp"), ("out", "mlp")),
    "llama": (
        ("input_layernorm", "norm"), ("self_attn.q_proj", "attention_qkv"), ("self_attn.o_proj", "attention_output"),
        ("mlp.gate_proj", "mlp"), ("mlp.down_proj", "mlp"),
    ),
}  # fmt: skip
PREFIX = {"gpt": "blocks", "llama": "model.layers"}
ENDS = {"gpt": ("wte", "wpe", "ln_f", "lm_head"), "llama": ("tok_embeddings", "pos_embeddings", "model.norm", "output")}


def names(blocks: int, style: str = "gpt") -> list[tuple[str, int, LayerKind]]:
    """(layer, depth, kind) in forward order."""
    token, position, norm, head = ENDS[style]
    found: list[tuple[str, int, LayerKind]] = [(token, -1, "embedding"), (position, -1, "embedding")]
    for b in range(blocks):
        found += [(f"{PREFIX[style]}.{b}.{part}", b, kind) for part, kind in PARTS[style]]
    return [*found, (norm, blocks, "norm"), (head, blocks + 1, "lm_head")]


def norms(rows: int, blocks: int = 3, seed: int = 0, noise: float = 0.15, style: str = "gpt") -> dict[str, Floats]:
    """Healthy gradient norms: each layer its own level, a common factor of the batch, own noise."""
    rng = np.random.default_rng(seed)
    common = rng.normal(0, noise, rows) + (rng.random(rows) < 0.01) * rng.exponential(0.5, rows)
    level = {name: 10 ** rng.uniform(-2, 0) for name, _, _ in names(blocks, style)}
    return {name: level[name] * np.exp(common + rng.normal(0, noise, rows)) for name in level}


def layered(
    grads: dict[str, Floats] | None = None, params: dict[str, Floats] | None = None,
    logits: dict[str, Floats] | None = None, updates: dict[str, Floats] | None = None,
    steps: dict[str, Floats] | None = None, *, every: int = 1, ranks: dict[int, dict[str, Floats]] | None = None,
    rank_steps: dict[int, dict[str, Floats]] | None = None, style: str = "gpt", first: int = 0,
    config: dict[str, Value] | None = None,
) -> RunView:  # fmt: skip
    """A view of one run; `ranks` holds per-rank gradient norms, `rank_steps` per-rank step columns."""
    tables: dict[Quantity, dict[str, Floats]] = {
        "grad_norm": grads or {}, "param_norm": params or {}, "attention_logit": logits or {}, "update_norm": updates or {},
    }  # fmt: skip
    given = [v for t in tables.values() for v in t.values()] + [v for t in (ranks or {}).values() for v in t.values()]
    given += list((steps or {}).values()) + [v for t in (rank_steps or {}).values() for v in t.values()]
    rows = len(given[0])
    entries = [c for q, t in tables.items() for c in catalogue(t, q)]
    entries += [c for t in list((ranks or {}).values())[:1] for c in catalogue(t, "grad_norm")]
    wide = {c.column: tables[c.quantity][c.layer] for c in entries if c.layer in tables[c.quantity]}
    frames = [_rows(wide, rows, every, first, None)] if wide else []
    frames += [
        _rows({f"grad_norm:{n}": v for n, v in t.items()}, rows, every, first, r) for r, t in (ranks or {}).items()
    ]
    lines = [_rows(steps, rows, every, first, None)] if steps else []
    lines += [_rows(t, rows, every, first, r) for r, t in (rank_steps or {}).items()]
    records = Records(
        runs=(Run("run", config=config or {}),), sources=(Source("run.jsonl", "jsonl", rows),),
        steps=pl.concat(lines, how="diagonal") if lines else Records().steps,
        layers=pl.concat(frames, how="diagonal") if frames else Records().layers, layer_columns=tuple(entries),
    )  # fmt: skip
    return RunView(records.runs[0], records)


def catalogue(layers: dict[str, Floats], quantity: Quantity) -> tuple[LayerColumn, ...]:
    return layer_places.catalogue({f"{quantity}:{name}": (quantity, name) for name in layers})


def _rows(values: dict[str, Floats], rows: int, every: int, first: int, rank: int | None) -> pl.DataFrame:
    keys = {
        "run": ["run"] * rows, "rank": [rank] * rows, "step": [first + i * every for i in range(rows)],
        "source": [0] * rows, "line": list(range(1, rows + 1)),
    }  # fmt: skip
    return pl.DataFrame({**keys, **values}, schema_overrides=KEYS)
