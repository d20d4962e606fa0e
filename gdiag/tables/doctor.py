"""What was recognised, how columns were mapped, which checks can run, and what would unlock the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import polars as pl

from gdiag.analyzers import ANALYZERS
from gdiag.analyzers.analyzer import Analyzer, missing
from gdiag.analyzers.needs import absent
from gdiag.measures.run import RunView
from gdiag.model import Column, Report, Skip, Table, Value
from gdiag.schema import TABLES, Records

_REJECTS: Final = 20
MEANING: Final = {
    "steps.loss": "training loss", "steps.eval_loss": "validation loss", "steps.grad_norm": "gradient norm before clipping",
    "steps.lr": "learning rate", "steps.step_time": "seconds per step", "steps.rank": "rank of each row",
    "steps.sample_start": "first sample id of the step", "steps.loss_scale": "fp16 loss scale",
    "steps.param_checksum": "checksum of the parameters per rank", "steps.token_entropy": "token entropy of the batch",
    "layers.grad_norm": "gradient norm of every layer: grad_norm/<layer>",
    "layers.param_norm": "parameter norm of every layer: param_norm/<layer>",
    "layers.update_norm": "update norm of every layer: update_norm/<layer>",
    "layers.attention_logit": "largest attention logit of every block: attn_max_logit/<layer>",
    "gpus.clock_sm": "nvidia-smi: clocks.sm", "gpus.temperature": "nvidia-smi: temperature.gpu",
    "gpus.power": "nvidia-smi: power.draw", "gpus.reasons": "nvidia-smi: clocks_event_reasons.active",
    "collectives.busbw": "output of nccl-tests", "events": "console log with restarts, Xids or checkpoints",
    "ports": "perfquery or ibdiagnet counters",
}  # fmt: skip
"""What the more frequent columns are, in words and in the name to log them by."""


def examine(records: Records, analyzers: Sequence[Analyzer] = ANALYZERS) -> Report:
    """A report without findings: tables of columns, of checks, of what would unlock the others, of rejected lines."""
    views = [RunView(run, records) for run in records.runs]
    able: list[Analyzer] = []
    unable: dict[str, list[Analyzer]] = {}
    for analyzer in analyzers:
        lacking: list[list[str]] = [missing(view, analyzer.NEEDS) for view in views]
        if lacking and not all(lacking):
            able.append(analyzer)
        else:
            fewest: list[str] = min(lacking, key=len, default=list(analyzer.NEEDS))
            unable.setdefault(" and ".join(fewest), []).append(analyzer)
    tables = [*_columns(records), _checks(able), _unlocking(unable), _rejects(records)]
    return Report(
        runs=tuple(replace(view.run, segments=view.trajectory.segments) for view in views),
        sources=records.sources,
        tables=tuple(table for table in tables if table.rows or table.columns[0].name == "column"),
        checked=tuple(analyzer.CODE for analyzer in able),
        skipped=tuple(
            Skip(a.CODE, absent(views, needs.split(" and "))) for needs, several in unable.items() for a in several
        ),
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
        title = f"{source.path}: {source.format}, {source.rows:,} rows{rejected}"
        columns = (Column("column"), Column("name in the file"), Column("values"))
        tables.append(Table(title, columns, tuple(rows)))
    return tables


def _held(records: Records) -> dict[str, pl.DataFrame]:
    tables = {name: getattr(records, name) for name in (*TABLES, "layers")}
    return {name: table for name, table in tables.items() if table.height and name != "rejects"}


def _checks(able: list[Analyzer]) -> Table:
    return Table("Checks that can run", (Column("code"), Column("check")), tuple((a.CODE, a.NAME) for a in able))


def _unlocking(unable: dict[str, list[Analyzer]]) -> Table:
    rows = []
    for needs, several in unable.items():
        words = "; ".join(MEANING[n] for n in needs.replace("|", " and ").split(" and ") if n in MEANING)
        rows.append((_spoken(needs), words or None, " ".join(f"{a.CODE} {a.NAME}" for a in several)))
    return Table(
        "What would unlock the other checks", (Column("not logged"), Column("which is"), Column("checks")), tuple(rows)
    )


def _spoken(needs: str) -> str:
    return needs.replace("|", " or ").replace("steps.", "")


def _rejects(records: Records) -> Table:
    rejects = records.rejects
    rows = [
        (records.sources[row["source"]].path, row["line"], row["reason"], row["text"])
        for row in rejects.head(_REJECTS).iter_rows(named=True)
    ]
    title = f"Rejected lines ({rejects.height:,}{f', the first {_REJECTS}' if rejects.height > _REJECTS else ''})"
    return Table(title, (Column("file"), Column("line"), Column("reason"), Column("text")), tuple(rows))
