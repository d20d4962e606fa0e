"""Timings of single collectives in a training run: NCCL inspector logs and PyTorch flight-recorder dumps.

The inspector (a profiler plug-in of NCCL 2.27 and later) writes one JSON object a line and operation, a file a process.
The flight recorder (`TORCH_NCCL_TRACE_BUFFER_SIZE`) keeps the last operations of a rank; its JSON form is read, its
pickled one is refused, since nothing is unpickled. Durations are there with `TORCH_NCCL_ENABLE_TIMING=1` only.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.values import whole
from gdiag.model import Source
from gdiag.schema import TABLES

FORMAT: Final = "collective-timings"
_COLUMNS: Final = {n: t for n, t in TABLES["operations"].items() if n not in ("run", "source")}
_RANK: Final = re.compile(r"rank[-_.]?(\d+)|[-_.](\d+)(?:\.json)?$", re.IGNORECASE)
_BYTES: Final = {"double": 8, "long": 8, "float": 4, "int": 4, "half": 2, "bfloat16": 2, "short": 2}
"""Bytes of one element by PyTorch's name of its type; one byte else."""
_LATEST: Final = 4_102_444_800.0
"""The year 2100: a clock beyond it is none."""


def recognise(given: Input) -> float:
    head = given.head
    if b'"coll_perf"' in head and b'"coll_exec_time_us"' in head:
        return 0.98
    recorded = b"collective_seq_id" in head and b"profiling_name" in head
    return 0.98 if recorded and (_pickled(head) or head.lstrip()[:1] == b"{") else 0.0


def _pickled(head: bytes) -> bool:
    return head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05"


def read(given: Input, options: Options) -> Reading:  # noqa: ARG001 - both forms have one clock and one set of names
    """Operations with a duration, one row each.

    Raises:
        InputError: a pickled dump, or one without durations.
    """
    if _pickled(given.head):
        raise InputError(
            f"{given.path} is a pickled flight-recorder dump, and gdiag unpickles nothing: dump it as JSON "
            "(torch._C._distributed_c10d._dump_nccl_trace_json, or json.dump of what pickle.load gives)"
        )
    text = given.data().decode("utf-8", "replace")
    rows: list[tuple[Any, ...]]
    rejects: list[tuple[int, str, str]] = []
    notes: tuple[str, ...] = ()
    if '"coll_perf"' in text[:65536]:
        rows = list(_inspected(text, rejects))
    else:
        rows, without = _recorded(text, _rank_of(given.path))
        notes = (f"{without} operations hold no duration: TORCH_NCCL_ENABLE_TIMING=1 records it",) if without else ()
    if not rows:
        raise InputError(f"{given.path} holds no timing of a collective{f': {notes[0]}' if notes else ''}")
    reasons = pl.DataFrame(rejects, schema={"line": pl.Int64, "reason": pl.String, "text": pl.String}, orient="row")
    return Reading(
        Source(given.path, FORMAT, len(rows), rejected=len(rejects), notes=notes),
        operations=pl.DataFrame(rows, schema=_COLUMNS, orient="row"), rejects=reasons if rejects else None,
    )  # fmt: skip


def _inspected(text: str, rejects: list[tuple[int, str, str]]) -> Iterator[tuple[Any, ...]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            document: Any = json.loads(line)
            header, what, when = (document.get(k, {}) for k in ("header", "coll_perf", "metadata"))
            if not what:
                continue
            seconds = float(what["coll_exec_time_us"]) / 1e6
            name = str(what["coll"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            rejects.append((number, "no timing of a collective", line[:200]))
            continue
        yield (
            number, _moment(when.get("dump_timestamp_us"), 1e6), _word(when.get("hostname") or document.get("hostname")),
            _integer(header.get("rank", document.get("rank")), 32), _word(header.get("id", document.get("id"))),
            _integer(what.get("coll_sn")), name, _integer(what.get("coll_msg_size_bytes")), seconds,
        )  # fmt: skip


def _recorded(text: str, rank: int | None) -> tuple[list[tuple[Any, ...]], int]:
    """Rows, and the number of operations without a duration."""
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        return [], 0
    entries = document.get("entries") if isinstance(document, dict) else None
    rank = _integer(document.get("rank"), 32) if isinstance(document, dict) and "rank" in document else rank
    rows: list[tuple[Any, ...]] = []
    without = 0
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict) or entry.get("is_p2p") is True:
            continue
        milliseconds = entry.get("duration_ms")
        if not isinstance(milliseconds, int | float) or not math.isfinite(milliseconds) or milliseconds <= 0:
            without += 1
            continue
        done = entry.get("time_discovered_completed_ns") or entry.get("time_created_ns")
        group = entry.get("process_group")
        rows.append((
            None, _moment(done, 1e9), _word(document.get("host_name")), rank,
            _word(group[0] if isinstance(group, list) and group else entry.get("pg_id")), _integer(entry.get("collective_seq_id")),
            str(entry.get("profiling_name", "")).removeprefix("nccl:"), _size(entry), float(milliseconds) / 1e3,
        ))  # fmt: skip
    return rows, without


def _size(entry: dict[str, Any]) -> int | None:
    """Bytes of the operation's inputs."""
    try:
        kinds = [_BYTES.get(str(kind).lower(), 1) for kind in entry["input_dtypes"]]
        counts = [math.prod(int(n) for n in shape) for shape in entry["input_sizes"]]
        return _integer(sum(n * size for n, size in zip(counts, kinds, strict=True)))
    except (KeyError, TypeError, ValueError):
        return None


def _rank_of(path: str) -> int | None:
    """The rank in a dump's name: its content does not say it."""
    found = _RANK.search(PurePath(path).name)
    return whole(found[1] or found[2], bits=32) if found else None


def _moment(value: object, scale: float) -> float | None:
    seconds = float(value) / scale if isinstance(value, int | float) else math.nan
    return seconds if 0 < seconds < _LATEST else None


def _integer(value: object, bits: int = 64) -> int | None:
    return whole(str(value), bits=bits) if value is not None else None


def _word(value: object) -> str | None:
    return str(value)[:200] if value not in (None, "") else None
