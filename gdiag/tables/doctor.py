"""What was recognised, how columns were mapped, which checks can run, and what would unlock the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from gdiag.analyzers import ANALYZERS
from gdiag.analyzers.analyzer import Analyzer, missing
from gdiag.analyzers.needs import absent, held
from gdiag.ingesters.text import redact
from gdiag.measures.runs import each
from gdiag.model import Column, Report, Run, Skip, Table, Value
from gdiag.schema import TABLES, Records
from gdiag.tables.unknown_columns import unknown

_REJECTS: Final = 20
MEANING: Final = {
    "loss": "training loss", "eval_loss": "validation loss", "grad_norm": "gradient norm before clipping",
    "lr": "learning rate", "step_time": "seconds per step", "rank": "rank of each row", "epoch": "epoch",
    "sample_start": "first sample id of the step", "loss_scale": "fp16 loss scale", "update_norm": "norm of the update",
    "param_norm": "norm of the parameters", "param_checksum": "checksum of the parameters per rank",
    "token_entropy": "token entropy of the batch", "duplicate_share": "share of duplicates in the batch", "output_logit": "mean log Z or largest logit",
    "step log": "JSONL, CSV or console log with one row per step",
    "per-layer columns": "grad_norm/<layer>, param_norm/<layer>, …", "per-layer grad_norm": "grad_norm/<layer>",
    "per-layer param_norm": "param_norm/<layer>", "per-layer update_norm": "update_norm/<layer>",
    "per-layer attention_logit": "attn_max_logit/<layer>", "GPU telemetry": "CSV of nvidia-smi --query-gpu",
    "console events": "console or kernel log with restarts, Xids, exits", "nccl-tests output": "text or JSON of nccl-tests",
    "port counters": "perfquery or ibdiagnet output", "baseline to compare with": "gdiag nccl --baseline FILE", "comm_time": "seconds per step in collectives",
    "NVLink screens": "nvidia-smi topo -m, nvidia-smi nvlink -s and -e", "transceiver pages": "ethtool -m", "states of switches": "ibswinfo",
    "timings of single collectives": "NCCL inspector log, flight-recorder dump as JSON",
}  # fmt: skip
"""What is lacking, as needs.absent names it → what it is, or the name to log it by."""
FAMILIES: Final = {
    "GD0": "the log", "GD1": "loss", "GD2": "gradients and layers", "GD3": "learning rate", "GD4": "replicas, memory errors",
    "GD5": "step time", "GD6": "GPUs", "GD7": "network",
}  # fmt: skip


def examine(records: Records, analyzers: Sequence[Analyzer] = ANALYZERS) -> Report:
    """A report without findings: tables of columns, of checks, of what would unlock the others, of rejected lines."""
    runs: list[Run] = []
    there: frozenset[str] = frozenset()
    without: dict[str, list[list[str]]] = {analyzer.CODE: [] for analyzer in analyzers}
    for view in each(records):
        runs.append(replace(view.run, segments=view.trajectory.segments))
        there |= held(view)
        for analyzer in analyzers:
            without[analyzer.CODE].append(missing(view, analyzer.NEEDS))
    able: list[Analyzer] = []
    unable: dict[str, list[Analyzer]] = {}
    for analyzer in analyzers:
        lacking = without[analyzer.CODE]
        if lacking and not all(lacking):
            able.append(analyzer)
        else:
            fewest: list[str] = min(lacking, key=len, default=list(analyzer.NEEDS))
            unable.setdefault(absent(there, fewest), []).append(analyzer)
    tables = [*_columns(records), *unknown(records), _checks(able), _unlocking(unable), _rejects(records)]
    return Report(
        runs=tuple(runs),
        sources=records.sources,
        tables=tuple(table for table in tables if table.rows or table.columns[0].name == "column"),
        checked=tuple(analyzer.CODE for analyzer in able),
        skipped=tuple(Skip(a.CODE, reason) for reason, several in unable.items() for a in several),
    )


def _columns(records: Records) -> list[Table]:
    """One table per file: canonical column, its name there, how many values it gave."""
    tables = []
    for index, source in enumerate(records.sources):
        own = {name: table.filter(pl.col("source") == index) for name, table in _held(records).items()}
        rows: list[tuple[Value | None, ...]] = []
        for column, name in source.columns.items():
            table, dot, quantity = column.partition(".")
            if dot and table == "layers":
                several = [c.column for c in records.layer_columns if c.quantity == quantity]
                values = max((own["layers"][c].count() for c in several if "layers" in own), default=0)
                rows.append((column, f"{name} and {len(several) - 1} more" if len(several) > 1 else name, values))
            else:
                held = [
                    frame[quantity or column].count() for frame in own.values() if (quantity or column) in frame.columns
                ]
                rows.append((column, name, max(held, default=None)))
        rejected = f", {source.rejected:,} rejected" if source.rejected else ""
        title = f"{source.path}: {source.format}, {source.rows:,} {'row' if source.rows == 1 else 'rows'}{rejected}"
        columns = (Column("column"), Column("name in the file"), Column("values"))
        tables.append(Table(title, columns, tuple(rows)))
    return tables


def _held(records: Records) -> dict[str, pl.DataFrame]:
    tables = {name: getattr(records, name) for name in (*TABLES, "layers")}
    return {name: table for name, table in tables.items() if table.height and name != "rejects"}


def _checks(able: list[Analyzer]) -> Table:
    rows = []
    for family, name in FAMILIES.items():
        own = [a for a in able if a.CODE.startswith(family)]
        if own:
            rows.append((name, ", ".join(f"{a.CODE} {a.NAME}" for a in own)))
    return Table(f"Checks that can run ({len(able)})", (Column("about"), Column("checks")), tuple(rows))


def _unlocking(unable: dict[str, list[Analyzer]]) -> Table:
    """What to log for the others, what unlocks most first."""
    rows = []
    for reason, several in sorted(unable.items(), key=lambda item: -len(item[1])):
        lacking = reason.removeprefix("no ").split(", no ")
        known = dict.fromkeys(MEANING.get(part, "") for need in lacking for part in need.split(" or "))
        checks = ", ".join(f"{a.CODE} {a.NAME}" for a in several)
        rows.append((" and ".join(lacking), "; ".join(filter(None, known)) or None, checks))
    title = f"What would unlock the other {sum(len(several) for several in unable.values())}"
    return Table(title, (Column("not logged"), Column("which is"), Column("checks")), tuple(rows))


def _rejects(records: Records) -> Table:
    rejects = records.rejects
    rows = [
        (records.sources[row["source"]].path, row["line"], row["reason"], redact(row["text"] or "", 200))
        for row in rejects.head(_REJECTS).iter_rows(named=True)
    ]
    title = f"Rejected lines ({rejects.height:,}{f', the first {_REJECTS}' if rejects.height > _REJECTS else ''})"
    return Table(title, (Column("file"), Column("line"), Column("reason"), Column("text")), tuple(rows))
