"""Record tables: the columns that ingesters fill and measures read, with units and null rules.

Three things stay apart in every column: null = not logged, NaN or ±inf = logged as such, and a cell that is no number
at all, which becomes a row of `rejects`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

import polars as pl

from gdiag.model import Run, Source

LayerKind = Literal[
    "embedding", "attention_qkv", "attention_output", "mlp", "norm", "lm_head", "block", "other"
]  # fmt: skip
Quantity = Literal[
    "grad_norm", "param_norm", "update_norm", "grad_max", "attention_logit", "activation_norm", "second_moment", "other"
]  # fmt: skip

KEYS: Final = {"run": pl.String, "rank": pl.Int32, "step": pl.Int64, "source": pl.Int32, "line": pl.Int64}
"""Key columns of `steps` and `layers`.

run: run id. rank: null = reduced over ranks or not said. step: the log's own number. source: index into Records.sources.
line: 1-based line (text) or row (binary, tables) in that source."""

STEP_METRICS: Final = {
    "time": "s", "elapsed": "s", "epoch": "", "loss": "nat", "eval_loss": "nat", "grad_norm": "", "grad_norm_clipped": "",
    "lr": "", "step_time": "s", "data_time": "s", "compute_time": "s", "comm_time": "s", "tokens": "", "samples": "",
    "tokens_per_s": "1/s", "samples_per_s": "1/s", "batch_size": "", "seq_len": "", "loss_scale": "", "skipped": "", "param_norm": "",
    "update_norm": "", "param_checksum": "", "sample_start": "", "sample_end": "", "token_entropy": "nat", "duplicate_share": "",
    "memory": "B", "output_logit": "", "attention_logit": "", "accuracy": "",
}  # fmt: skip
"""Canonical metric columns of `steps` and their units; all Float64, null = not logged.

time: Unix seconds. grad_norm: before clipping. tokens, samples: cumulative. skipped: 1 for a step whose update was
skipped, else 0 (cumulative counters are differenced by the ingester). sample_end: exclusive. duplicate_share: repeated
tokens, n-grams or samples of the batch over all of them, 0 to 1. accuracy: share of the training batch's samples that are
right, 0 to 1 (percent are divided by the ingester)."""

TABLES: Final[dict[str, dict[str, pl.DataType | type[pl.DataType]]]] = {
    "steps": {**KEYS, **dict.fromkeys(STEP_METRICS, pl.Float64)},
    "gpus": {
        "run": pl.String, "source": pl.Int32, "line": pl.Int64, "time": pl.Float64, "zone_known": pl.Boolean,
        "host": pl.String, "gpu": pl.Int32, "uuid": pl.String, "bus_id": pl.String, "model": pl.String, "temperature": pl.Float64,
        "memory_temperature": pl.Float64, "temperature_margin": pl.Float64, "power": pl.Float64, "power_limit": pl.Float64,
        "power_default_limit": pl.Float64, "clock_sm": pl.Float64, "clock_sm_max": pl.Float64, "clock_memory": pl.Float64,
        "utilization": pl.Float64, "memory_used": pl.Float64, "memory_total": pl.Float64, "fan": pl.Float64,
        "reasons": pl.Int64, "ecc_corrected": pl.Float64, "ecc_uncorrected": pl.Float64, "remap_pending": pl.Boolean,
        "remap_failure": pl.Boolean, "remap_uncorrectable": pl.Float64, "throttle_time": pl.Float64,
    },
    "events": {
        "run": pl.String, "source": pl.Int32, "line": pl.Int64, "time": pl.Float64, "zone_known": pl.Boolean,
        "step": pl.Int64, "rank": pl.Int32, "host": pl.String, "gpu": pl.Int32, "bus_id": pl.String, "kind": pl.String, "value": pl.Float64, "text": pl.String,
    },
    "collectives": {
        "run": pl.String, "source": pl.Int32, "line": pl.Int64, "section": pl.Int32, "cycle": pl.Int32,
        "collective": pl.Categorical, "size": pl.Int64, "count": pl.Int64, "type": pl.Categorical, "redop": pl.Categorical,
        "root": pl.Int32, "in_place": pl.Boolean, "time": pl.Float64, "cpu_time": pl.Boolean, "algbw": pl.Float64,
        "busbw": pl.Float64, "wrong": pl.Float64, "t_min": pl.Float64, "t_max": pl.Float64, "t_p99": pl.Float64,
        "t_cv": pl.Float64,
    },
    "devices": {
        "run": pl.String, "source": pl.Int32, "line": pl.Int64, "section": pl.Int32, "rank": pl.Int32, "group": pl.Int32,
        "pid": pl.Int64, "host": pl.String, "gpu": pl.Int32, "bus_id": pl.String, "model": pl.String,
    },
    "facts": {
        "run": pl.String, "source": pl.Int32, "line": pl.Int64, "section": pl.Int32, "scope": pl.String, "key": pl.String,
        "value": pl.String,
    },
    "ports": {
        "run": pl.String, "source": pl.Int32, "line": pl.Int64, "time": pl.Float64, "host": pl.String, "device": pl.String,
        "port": pl.Int32, "guid": pl.String, "counter": pl.String, "value": pl.Float64, "saturated": pl.Boolean,
        "snapshot": pl.Int32, "kind": pl.String, "peer": pl.String,
    },
    "operations": {
        "run": pl.String, "source": pl.Int32, "line": pl.Int64, "time": pl.Float64, "host": pl.String, "rank": pl.Int32,
        "group": pl.String, "sequence": pl.Int64, "collective": pl.String, "size": pl.Int64, "seconds": pl.Float64,
    },
    "baselines": {
        "run": pl.String, "source": pl.Int32, "collective": pl.String, "ranks": pl.Int32, "size": pl.Int64,
        "busbw": pl.Float64,
    },
    "rejects": {"source": pl.Int32, "line": pl.Int64, "reason": pl.String, "text": pl.String},
}  # fmt: skip
"""Column → type of every record table. A table may lack metric columns that no source logged.

gpus: temperature °C, power W, clock MHz, memory B, utilization and fan %, reasons the NVML event-reason bit mask,
throttle_time cumulative s slowed for heat, remap_uncorrectable cumulative rows, zone_known False where a local clock without a zone
was read as UTC (gpus, events). events.kind: xid sxid restart checkpoint exit
nccl_warning nccl_timeout oom gpu_lost nic megatron_rerun message. collectives: size B, time µs, algbw and busbw GB/s
(1e9); section numbers the test runs of one file, cycle the repeats of -N. ports.snapshot: 0 for the first reading of a
counter in a file, 1 for the next, …; kind: ports of one kind are alike; peer: the other end of the cable. operations: single collectives of a training run as one rank saw them; time: their
end [Unix s], size B, sequence the number that all ranks of the group give the operation.
"""

SWITCH: Final = "switch "
"""How the scope of `facts` begins that a switch says of itself; its name, or its number in the file, follows."""


@dataclass(frozen=True, slots=True)
class LayerColumn:
    """One column of the wide `layers` table."""

    column: str
    """Column name in `layers`: `<quantity>:<layer>`."""
    layer: str
    """Path as logged without metric prefix, suffix and wrapper parts: blocks.0.fc."""
    quantity: Quantity
    depth: int | None
    """Block number, or the block's place where blocks are numbered anew (encoder and decoder, stages, arms of a U-Net);
    embeddings -1, final norm and head a number above every block; None when the name does not say. Towers side by side
    share depths."""
    kind: LayerKind
    block: str = ""
    """Path of the block it belongs to: blocks.0; empty outside of one."""


@dataclass(frozen=True, slots=True)
class Records:
    """All that was read, in canonical names and units."""

    runs: tuple[Run, ...] = ()
    sources: tuple[Source, ...] = ()
    steps: pl.DataFrame = field(default_factory=lambda: empty("steps"))
    """One row per logged step and rank, in the order of each source; duplicates and rewinds still inside."""
    layers: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=KEYS))
    """KEYS and one Float64 column per catalogue entry; sparse rows are normal."""
    layer_columns: tuple[LayerColumn, ...] = ()
    gpus: pl.DataFrame = field(default_factory=lambda: empty("gpus"))
    events: pl.DataFrame = field(default_factory=lambda: empty("events"))
    collectives: pl.DataFrame = field(default_factory=lambda: empty("collectives"))
    devices: pl.DataFrame = field(default_factory=lambda: empty("devices"))
    facts: pl.DataFrame = field(default_factory=lambda: empty("facts"))
    ports: pl.DataFrame = field(default_factory=lambda: empty("ports"))
    operations: pl.DataFrame = field(default_factory=lambda: empty("operations"))
    baselines: pl.DataFrame = field(default_factory=lambda: empty("baselines"))
    """What benchmarks are held against: saved baselines, or rows that pipeline.held_against puts here."""
    rejects: pl.DataFrame = field(default_factory=lambda: empty("rejects"))


def empty(table: str) -> pl.DataFrame:
    """A record table without rows."""
    return pl.DataFrame(schema=TABLES[table])
