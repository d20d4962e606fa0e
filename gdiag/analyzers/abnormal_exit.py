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
from typing import Any

import polars as pl

from gdiag.measures.first_failure import first_failure, is_storage
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
    steps = run.paths[0].frame["step"]
    last = int(steps[-1]) if len(steps) else None
    first = first_failure(run.events, last)
    grave = fatal if first is None else pl.concat([fatal, pl.DataFrame([first], schema=fatal.schema)])
    if run.run.exit != "abnormal" and not (grave.height and run.run.exit == "unknown" and _last(run, grave)):
        return _open(run, ends) if run.run.exit == "unknown" and not grave.height else []
    shown = fatal if fatal.height else _of_the_end(ends, last)
    row = first or (shown.row(0, named=True) if shown.height else {})
    kind = str(row.get("kind") or "exit").replace("message", "exit")
    step = row.get("step") if row.get("step") is not None else last
    at = f" at step {step}" if step is not None else ""
    by_hand = kind == "exit" and first is None and ends.filter(pl.col("text").str.contains(BY_HAND)).height > 0
    measures = [Measure("kind", kind), *([Measure("by_hand", True)] if by_hand else [])]
    waiting = fatal.filter(pl.col("kind") == "nccl_timeout")
    # A machine that fails does so minutes before the others' watchdogs notice.
    root = first is not None or (waiting.height > 0 and kind in {"oom", "gpu_lost"})
    measures += [Measure("first_error", True)] if root else []
    measures += [Measure("storage", True)] if is_storage(row.get("text")) else []
    if row.get("text"):
        measures.append(Measure("text", str(row["text"])[:most_text]))
        at_minimum = re.search(SCALE, str(row["text"])) is not None
        if at_minimum or re.search(NUMERIC, str(row["text"])):
            measures += [Measure("numeric", True), Measure("loss_scale_at_minimum", at_minimum)]
    several = kind == "nccl_timeout" and waiting["rank"].n_unique() > 1  # one of many victims is no place
    rank, host = (None, None) if several else (row.get("rank"), row.get("host"))
    where = run.where(row, step=step, last_step=step, rank=rank, host=host, gpu=row.get("gpu"))
    said = f"Run is stopped by hand{at}" if by_hand else f"Run ends abnormally{_why(row, kind)}{at}"
    if root and waiting.height:
        ranks = waiting["rank"].drop_nulls().n_unique()
        said += f"; {f'{ranks} other ranks' if ranks > 1 else 'another rank'} then {'time' if ranks > 1 else 'times'} out in a collective"
    return [Finding(CODE, NAME, Severity.INFO if by_hand else Severity.WARNING, said, where, tuple(measures))]


def _of_the_end(ends: pl.DataFrame, last: int | None) -> pl.DataFrame:
    """Exits after the last step; all of them where none is: earlier ones ended an earlier attempt."""
    late = ends.filter(pl.col("step").is_null() | (pl.col("step") >= last)) if last is not None else ends
    return late if late.height else ends


def _why(row: dict[str, Any], kind: str) -> str:
    """What ended the run, where the kind of event or its words name it."""
    text = str(row.get("text") or "")
    if is_storage(text):
        return " with a failed write"
    if kind == "nccl_warning" and "segfault" in text:
        return " with a segmentation fault in NCCL"
    if "time limit" in text.lower():
        return " by the scheduler's time limit"
    return f" with {FATAL[kind]}" if kind in FATAL else ""


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
