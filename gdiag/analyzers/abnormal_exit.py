"""The run ended abnormally.

What it checks: what the log says about the end: an exit with an error, out of memory, a lost GPU, a timeout of a
collective, a connection that NCCL lost. A run that somebody stopped by hand (an interrupt) and a tracker's file without
its exit record (the run was killed, or is still going) are context only.

Why it matters: steps since the last checkpoint are lost, and the same cause ends the next attempt.

What to do: read the first error of the first rank that failed, not the last line; out of memory: lower the micro-batch or
turn on activation checkpointing; a timeout: find the rank that did not arrive (GD009).
"""

from __future__ import annotations

import re

import polars as pl

from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD008"
NAME = "abnormal-exit"
NEEDS: tuple[str, ...] = ("events.kind",)
FATAL = {
    "oom": "out of memory", "gpu_lost": "a lost GPU", "nccl_timeout": "a timeout of a collective",
    "nccl_warning": "a failed connection or transfer of NCCL",
}  # fmt: skip
BROKEN = r"with error|with status=[1-9]|Connection refused|Connection closed|(?:recv|send) failed|unhandled|Cuda failure|segfault"
"""NCCL's warnings after which the communicator is lost; the others are advice (wordings: NCCL src/misc and src/transport)."""
NUMERIC = r"(?i)\bloss\b.{0,30}\b(?:nan|inf\w*|not finite|non-?finite)\b|non-?finite (?:loss|grad)|\bfound (?:nan|inf)\b|\bnan (?:loss|grad)"
SCALE = r"(?i)minimum loss scale|loss scale (?:is )?(?:already )?at (?:its )?minimum"
"""What programs say that stop over a loss that is no number, or a loss scale that cannot fall further (fairseq, DeepSpeed)."""

BY_HAND = r"\bKeyboardInterrupt\b|\bSIGINT\b|\bexit code 130\b"
"""An interrupt: Ctrl-C, or a launcher that passes it on."""


def analyze(run: RunView, *, most_text: int = 200) -> list[Finding]:
    """At most one finding; `most_text` is how many characters of the log's own words are quoted."""
    ends = run.events.filter(pl.col("kind").is_in([*FATAL, "exit"]))
    lost = (pl.col("kind") != "nccl_warning") | pl.col("text").str.contains(BROKEN)
    fatal = ends.filter(pl.col("kind").is_in(list(FATAL)) & lost)
    ends = ends.filter(pl.col("kind") != "nccl_warning")
    if run.run.exit != "abnormal" and not (fatal.height and run.run.exit == "unknown" and _last(run, fatal)):
        return _open(run, ends) if run.run.exit == "unknown" and not fatal.height else []
    shown = fatal if fatal.height else ends
    row = shown.row(0, named=True) if shown.height else {}
    kind = str(row.get("kind") or "exit")
    crash = kind == "nccl_warning" and "segfault" in str(row.get("text"))
    why = f" with {'a segmentation fault in NCCL' if crash else FATAL[kind]}" if kind in FATAL else ""
    steps = run.paths[0].frame["step"]
    step = row.get("step") if row.get("step") is not None else (int(steps[-1]) if len(steps) else None)
    at = f" at step {step}" if step is not None else ""
    by_hand = kind == "exit" and ends.filter(pl.col("text").str.contains(BY_HAND)).height > 0
    measures = [Measure("kind", kind), *([Measure("by_hand", True)] if by_hand else [])]
    if row.get("text"):
        measures.append(Measure("text", str(row["text"])[:most_text]))
        at_minimum = re.search(SCALE, str(row["text"])) is not None
        if at_minimum or re.search(NUMERIC, str(row["text"])):
            measures += [Measure("numeric", True), Measure("loss_scale_at_minimum", at_minimum)]
    where = run.where(row, step=step, last_step=step, rank=row.get("rank"), host=row.get("host"), gpu=row.get("gpu"))
    said = f"Run is stopped by hand{at}" if by_hand else f"Run ends abnormally{why}{at}"
    return [Finding(CODE, NAME, Severity.INFO if by_hand else Severity.WARNING, said, where, tuple(measures))]


def _open(run: RunView, ends: pl.DataFrame) -> list[Finding]:
    """Context where a tracker's file has no exit record (an exit event without a value)."""
    missing = ends.filter(pl.col("value").is_null())
    if not missing.height:
        return []
    row = missing.row(0, named=True)
    steps = run.paths[0].frame["step"]
    step = int(steps[-1]) if len(steps) else None
    at = f" after step {step}" if step is not None else ""
    said = f"Log ends without an exit record{at}: the run was killed or is still going"
    return [
        Finding(
            CODE, NAME, Severity.INFO, said, run.where(row, step=step, last_step=step),
            (Measure("kind", "exit"), Measure("exit_recorded", False)),
        )
    ]  # fmt: skip


def _last(run: RunView, fatal: pl.DataFrame) -> bool:
    """Whether no step follows the fatal event."""
    row = fatal.row(fatal.height - 1, named=True)
    steps = run.paths[0].frame
    if row["time"] is not None and "time" in steps.columns and steps["time"].count():
        return float(row["time"]) >= float(steps["time"].max())  # type: ignore[arg-type]
    if row["step"] is not None and steps.height:
        return int(row["step"]) >= int(steps["step"][-1])
    same = steps.filter(pl.col("source") == row["source"])
    lines = same["line"].drop_nulls()
    return not len(lines) or int(row["line"] or 0) >= int(lines.to_numpy().max())
