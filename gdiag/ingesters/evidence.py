"""What consoles say beside their step lines: checkpoints, restarts, how the job ended, tracebacks, out of memory.

Sources of the wordings: Megatron-LM training/checkpointing.py and core/rerun_state_machine.py, transformers trainer.py,
DeepSpeed runtime/engine.py and launcher/launch.py, torchtitan train.py and components/checkpoint.py, torch.distributed.elastic
and distributed/run.py, ProcessGroupNCCL.cpp, slurmstepd. Start of a process: Megatron-LM training/initialize.py and those.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

import numpy as np
import polars as pl

from gdiag.ingesters import machine_lines, prefixes
from gdiag.ingesters import text as console
from gdiag.model import Exit
from gdiag.schema import TABLES

_Kind = Literal["checkpoint", "restart", "exit", "oom", "nccl_timeout", "nccl_warning", "gpu_lost", "megatron_rerun"]
_STEP_NAME: Final = r"(?:checkpoint-|iter_0*|global_?step_?0*|step[-_=]?0*|step |iteration[ :=]+|iter )"
_NEEDLES: Final = (
    "checkpoint", "ckpt", "saving ", "saved model", "resum", "restor", "cancelled at", "signal", "sigterm",
    "sigkill", "exit", "killed", "traceback (most recent", "out of memory", "outofmemory", "oom-kill", "oom_kill",
    "watchdog caught", "nccl warn", "fallen off the bus", "unexpected result", "possible transient error",
    "possible persistent error", "segmentation fault", "core dumped", "bus error", "training complete", "training finished",
    "training is done", "finished training", "training done", "end of training", "error:", "device-side assert", "preempt",
    "restarting worker", "exception:", "interrupt", "done training", "initializing torch distributed", "running training *",
    "training starts at step", "world info dict", "setting omp_num_threads",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: _Kind
    hints: tuple[str, ...]
    """Lower case words of which every text has one that the pattern finds: they cost a hundredth of it."""
    pattern: re.Pattern[str]
    end: Literal["clean", "abnormal", ""] = ""


def _rule(kind: _Kind, hints: str, pattern: str, end: Literal["clean", "abnormal", ""] = "") -> _Rule:
    return _Rule(kind, tuple(hints.split("|")), re.compile(pattern, re.IGNORECASE), end)


_RULES: Final = (
    _rule("oom", "out of memory|outofmemory|oom", r"cuda out of memory|OutOfMemoryError|oom[-_]kill|out of memory: killed process|HIP out of memory", "abnormal"),
    _rule("gpu_lost", "fallen off|gpu is lost", r"fallen off the bus|GPU is lost", "abnormal"),
    _rule("nccl_timeout", "watchdog", r"watchdog caught collective operation timeout", "abnormal"),
    _rule("nccl_warning", "nccl warn", r"NCCL WARN "),
    _rule(
        "megatron_rerun", "unexpected|possible",
        r"unexpected result .*\bat iteration #?(?P<step>\d+)|possible (?:transient|persistent) error|rerun: unexpected result",
    ),
    _rule("exit", "cancelled at", r"cancelled at \S+(?: due to (?P<why>[\w ]+?))? \*\*\*", "abnormal"),
    _rule("exit", "signal", r"(?:received|got signal:?|sent) (?P<value>\d+) death signal|got signal: ?(?P<value2>\d+)", "abnormal"),
    _rule("exit", "exit", r"\bexit ?code\s*:?\s*(?P<value>-?[1-9]\d*)\b", "abnormal"),
    _rule("exit", "exit|return code", r"exited with (?:exit )?code (?P<value>[1-9]\d*)|return code (?:is|=)? ?(?P<value2>-?[1-9]\d*)", "abnormal"),
    _rule("exit", "sig|segmentation|core dumped|killed|bus error", r"\bSIG(?:TERM|KILL|SEGV|ABRT|BUS)\b|segmentation fault|core dumped|^\s*killed\s*$|bus error", "abnormal"),
    _rule("exit", "keyboardinterrupt|preempt", r"keyboardinterrupt|preempted|due to preemption", "abnormal"),
    _rule("exit", "success|exited", r"^process \d+ exits? successfully|\bexits successfully\b|exited with (?:exit )?code 0\b", "clean"),
    _rule(
        "exit", "training|exiting",
        r"\btraining (?:is )?(?:completed?|finished|done)\b|\b(?:finished|done) training\b(?! warm)|\bend of training\b|"
        r"exiting program (?:at|after) iteration",
        "clean",
    ),
    _rule(
        "restart", "load|resum|restor",
        r"(?:successfully )?(?:load(?:ed|ing)|resum(?:ed|ing)|restor(?:ed|ing))\b.{0,300}?(?:checkpoint|ckpt|iteration|step)"
        r"(?:.{0,300}?\b(?:iteration|step)\s*[:=#]?\s*(?P<step>\d+)|.{0,300}?" + _STEP_NAME + r"(?P<step2>\d+))?",
    ),
    _rule("restart", "restarting worker", r"restarting workers?\b"),
    _rule("checkpoint", "checkpoint|ckpt", r"(?:checkpoint|ckpt)s? (?:for|at) (?:step|iteration) (?P<step>\d+) (?:was )?saved"),
    _rule(
        "checkpoint", "sav|wrote|writing|store",
        r"\b(?:saved|saving|wrote|writing|save|stored?)\b.{0,60}?\b(?:checkpoint|ckpt|model|state)s?\b(?!\w)"
        r"(?:.{0,400}?" + _STEP_NAME + r"\s*(?P<step>\d+)|\s+(?P<step2>\d+)\.\.\.)?",
    ),
    _rule("checkpoint", "saving|saved|wrote|writing", r"\b(?:saving|saved|wrote|writing)\b.{0,300}?(?:checkpoint-|iter_0*|global_?step_?0*)(?P<step>\d+)"),
    _rule("checkpoint", "finished saving", r"\bfinished saving\b.{0,40}\bcheckpoint"),
)  # fmt: skip
_LAUNCH: Final = re.compile(
    r"> initializing torch distributed|\*{3,} running training \*{3,}|\btraining starts at step \d|\bworld info dict:|"
    r"setting OMP_NUM_THREADS environment variable for each process",
    re.IGNORECASE,
)
"""What is printed once at the start of a process; behind step lines, it is that of another one."""
_ERROR_LINE: Final = re.compile(r"^(?:[A-Za-z_][\w]*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?::|$)")
_FRAME: Final = re.compile(r"^(?:\s|During handling|The above exception|Traceback|\.\.\.|$)")
_ZONED: Final = r"\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)\b"
_AT_STEP: Final = r"(?i)\bat (?:step|iteration)\W{0,3}(\d{1,15})"
_MOST: Final = 20_000
"""Events of one console at most: past that they say nothing new."""
_LATEST: Final = 4e9
"""No clock is above this, s: 2096."""
_LOOK: Final = 800
"""Characters of a line that are looked at."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Events of a console and what they say about its end."""

    events: pl.DataFrame | None
    exit: Exit


def scan(rest: pl.DataFrame, steps: pl.DataFrame, tz: str | None = None, *, finished: bool = False) -> Evidence:
    """Look through the lines that are no step lines.

    Args:
        rest: `line`, `text` of the console's other lines.
        steps: `line`, `step` of its step lines; an event without a step of its own takes the last one before it. Their `time`,
            where they have one, completes clocks of the kernel, which are printed without a year.
        tz: zone of clocks printed without one.
        finished: the step lines themselves reached the announced last step.
    """
    first, last = (int(str(steps["line"].min())), int(str(steps["line"].max()))) if len(steps) else (None, 0)
    if not len(rest):
        return Evidence(None, _exit([], last, finished=finished))
    likely = _with_any(rest, (*_NEEDLES, *machine_lines.WORDS))
    hits = _with_any(likely, _NEEDLES)
    rows: list[dict[str, object]] = []
    ends: list[tuple[int, str]] = []
    tails = _tracebacks(rest, hits)
    inside = 0
    for line, raw in hits.iter_rows():
        if line < inside or len(rows) >= _MOST:
            continue
        prefix, message = console.peel(raw[:_LOOK])
        if first is not None and line > first and launches(message):
            rows.append(_row(line, prefix, "restart", message, None, None))
            continue
        row, end = _judge(line, prefix, message, tails)
        inside = max(inside, tails.get(line, (0, ""))[0])
        if row is None or (end == "clean" and line < last):
            continue
        if end:
            ends.append((line, end))
        rows.append(row)
    machine = _of_machine(likely, steps, tz)
    machine = machine.filter(pl.col("kind") != "oom")  # what a program says of it may be the end of a traceback
    taken = set(machine["line"])
    events = _placed(_events([row for row in rows if row["line"] not in taken], tz), steps, ())
    if len(machine):
        reported = _placed(machine, steps, ("rank", "host", "bus_id", "value"))
        events = pl.concat([e for e in (events, reported) if len(e)], how="diagonal").sort("line")
    return Evidence(events if len(events) else None, _exit(ends, last, finished=finished))


def _of_machine(likely: pl.DataFrame, steps: pl.DataFrame, tz: str | None) -> pl.DataFrame:
    """Events that the machine reports, those without a year in that of the step line before them."""
    known = steps.select("line", "time").drop_nulls().sort("line") if "time" in steps.columns else steps.clear()
    known = known.filter(pl.col("time").is_between(0, _LATEST)) if len(known) else known
    year = datetime.fromtimestamp(float(known["time"][0]), UTC).year if len(known) else None
    found, notes = machine_lines.among(likely, tz, year)
    found = found.head(_MOST)
    if year is None or machine_lines.NO_YEAR not in notes:
        return found
    near = (
        found.select("line").join_asof(known.rename({"time": "near"}), on="line")["near"].fill_null(strategy="backward")
    )
    return machine_lines.in_year_of(found, near.fill_null(float(known["time"][0])))


def _with_any(table: pl.DataFrame, words: Sequence[str]) -> pl.DataFrame:
    """Lines with one of the words in whatever case."""
    return table.filter(pl.col("text").str.contains_any(list(words), ascii_case_insensitive=True))


def launches(text: str) -> bool:
    """Whether the words of a restart are those of a process that starts, and not of a checkpoint that is loaded."""
    return _LAUNCH.search(text) is not None


def ending(texts: Sequence[str]) -> Exit:
    """What the words of events that follow a run's last step say of its end."""
    ends = [_judge(0, "", text, {})[1] for text in texts]
    return _exit([(0, end) for end in ends if end], 0, finished=False)


def others(table: pl.DataFrame, taken: pl.Series) -> pl.DataFrame:
    """The lines whose numbers are not taken; line numbers count from 1."""
    if not len(table) or not len(taken):
        return table
    free = np.ones(max(int(str(table["line"].max())), int(str(taken.max()))) + 1, dtype=bool)
    free[taken.to_numpy()] = False
    return table.filter(pl.Series(free[table["line"].to_numpy()]))


def _judge(
    line: int, prefix: str, message: str, tails: dict[int, tuple[int, str]]
) -> tuple[dict[str, object] | None, str]:
    if line in tails:
        text = tails[line][1]
        kind = "oom" if _RULES[0].pattern.search(text) else "exit"
        return _row(line, prefix, kind, text, None, None), "abnormal"
    lower = message.lower()
    for rule in _RULES:
        match = rule.pattern.search(message) if any(hint in lower for hint in rule.hints) else None
        if match is None:
            continue
        if rule.kind in ("checkpoint", "restart") and re.search(
            r"\b(?:not|no|without|skip\w*|unable|fail\w*|every|interval)\b", message[: match.end()], re.I
        ):
            return None, ""
        got = {name: value for name, value in match.groupdict().items() if value is not None}
        step = next((int(v) for n, v in got.items() if n.startswith("step") and len(v) < 16), None)
        value = next((float(v) for n, v in got.items() if n.startswith("value") and len(v) < 10), None)
        return _row(line, prefix, rule.kind, message, step, value), rule.end
    if _ERROR_LINE.match(message):
        return _row(line, prefix, "exit", message, None, None), "abnormal"
    return None, ""


def _row(line: int, prefix: str, kind: str, text: str, step: int | None, value: float | None) -> dict[str, object]:
    return {
        "line": line,
        "prefix": prefix,
        "kind": kind,
        "step": step,
        "value": value,
        "text": console.redact(text.strip()),
    }


def _tracebacks(others: pl.DataFrame, hits: pl.DataFrame) -> dict[int, tuple[int, str]]:
    """First line of each traceback → the line behind it and the error it ends with."""
    starts = (
        hits.filter(pl.col("text").str.contains("Traceback (most recent", literal=True))["line"].head(200).to_list()
    )
    found: dict[int, tuple[int, str]] = {}
    if not starts:
        return found
    numbers = others["line"]
    for start in starts:
        at = int(numbers.search_sorted(start, side="right"))
        for line, raw in others.slice(at, 400).iter_rows():
            message = console.peel(raw)[1]
            if not _FRAME.match(message):
                found[start] = (line + 1, message)
                break
    return found


def _events(rows: list[dict[str, object]], tz: str | None) -> pl.DataFrame:
    """Rows of `events` in the order of the console."""
    types = TABLES["events"]
    frame = pl.DataFrame(
        rows, schema={"prefix": pl.String} | {c: types[c] for c in ("line", "kind", "step", "value", "text")}
    )
    said = frame.select(pl.col("prefix") + " " + pl.col("text").str.slice(0, 200)).to_series()
    times = prefixes.clocks(said, tz)
    zoned = said.str.contains(_ZONED) if tz is None else pl.repeat(True, len(said), eager=True)
    known = pl.select(pl.when(times.is_not_null()).then(zoned).alias("zone_known")).to_series()
    return frame.with_columns(times, known, prefixes.ranks(frame["prefix"])).drop("prefix")


def _placed(events: pl.DataFrame, steps: pl.DataFrame, apart: tuple[str, ...]) -> pl.DataFrame:
    """Events at the last step before them; what reads alike and does not differ in `apart` is kept once."""
    if len(steps):
        known = steps.select("line", pl.col("step").cast(pl.Int64).alias("near")).drop_nulls().sort("line")
        events = events.join_asof(known, on="line", strategy="backward")
        said = pl.col("text").str.extract(_AT_STEP).cast(pl.Int64, strict=False)
        later = pl.when((pl.col("kind") == "exit") & (said > pl.col("near"))).then(said)
        events = events.with_columns(pl.coalesce("step", later, "near").alias("step"))
    shape = pl.col("text").str.replace_all(r"\d+", "#").str.slice(0, 120)
    # Every rank that waits is one more that is not missing.
    waits = pl.when(pl.col("kind") == "nccl_timeout").then("rank") if "rank" in events.columns else pl.lit(None)
    told = events.with_columns(waits.alias("waits"))
    events = told.unique(["kind", "step", shape, "waits", *apart], keep="first", maintain_order=True)
    types = TABLES["events"]
    return events.select(pl.col(c).cast(types[c]) for c in types if c in events.columns)


def _exit(ends: list[tuple[int, str]], last_step_line: int, *, finished: bool) -> Exit:
    """Only what stands behind the last step line speaks of the run's end."""
    after = [end for line, end in ends if line >= last_step_line]
    if "abnormal" in after and not (finished and after[0] == "clean"):
        return "abnormal"
    if "clean" in after or finished:
        return "clean"
    return "unknown"
