"""The failure that comes first at a run's end, told from what follows of it: time-outs, lost connections, launchers that give up.

Wordings: PyTorch's ProcessGroupNCCL.cpp, elastic launcher and caffe2/serialize/inline_container.cc, safetensors, the errors of libc,
NCCL src/misc/socket.cc.
"""

from __future__ import annotations

import re
from typing import Any, Final

import polars as pl

STORAGE: Final = re.compile(
    r"No space left on device|Disk quota exceeded|StorageFull|Read-only file system|Stale file handle|Input/output error|"
    r"file write failed|failed writing file|\bunexpected pos \d+ vs \d+",
    re.IGNORECASE,
)
"""What is said where a file cannot be written; the last ones are torch.save's on a disk that fills up."""
_SHARED_MEMORY: Final = re.compile(r"/dev/shm|shared memory", re.IGNORECASE)
_FOLLOWS: Final = re.compile(
    r"communicator was aborted|ncclRemoteError|ncclSystemError|DistBackendError|ChildFailedError|collective operation timeout|"
    r"Connection (?:reset|closed|refused)|Broken ?pipe|socket timeout|death signal|closing signal|\bSIG(?:TERM|ABRT|KILL)\b|"
    r"exit(?:ed with)?(?: exit)? ?code|core dumped|\bAborted\b|cancelled at",
    re.IGNORECASE,
)
"""What other ranks and the launcher say after one rank has failed."""
_RAISED: Final = re.compile(r"(?:^|[\s:\]])(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b")


def is_storage(text: object) -> bool:
    """Whether a file could not be written; a full /dev/shm is memory."""
    return STORAGE.search(str(text)) is not None and _SHARED_MEMORY.search(str(text)) is None


def first_failure(events: pl.DataFrame, last_step: int | None) -> dict[str, Any] | None:
    """The event at the run's end that the time-outs and lost connections after it follow from; None where nothing is told.

    A failed write is the first wherever it stands: no time-out brings it about. An exception is where it stands before them in
    the same file, or by the clock.

    Args:
        events: the run's, in the order of its files' lines.
        last_step: the last step logged; what was said before it did not end the run.
    """
    rows = [
        row for row in events.filter(pl.col("kind").is_in(["exit", "message", "nccl_timeout", "nccl_warning"])).iter_rows(named=True)
        if last_step is None or row["step"] is None or row["step"] >= last_step
    ]  # fmt: skip
    failed = next((row for row in rows if is_storage(row["text"])), None)
    if failed is not None:
        return failed
    waiting: dict[object, dict[str, Any]] = {}
    for row in rows:
        if row["kind"] == "nccl_timeout":
            waiting.setdefault(row["source"], row)
    raised = (row for row in rows if row["kind"] == "exit" and _raises(str(row["text"])))
    first = (row for row in raised if all(_before(row, other) for other in waiting.values()))
    return next(first, None) if waiting else None


def _raises(text: str) -> bool:
    """Whether a program's own exception is told of, and no consequence of another's."""
    return _RAISED.search(text) is not None and _FOLLOWS.search(text) is None


def _before(one: dict[str, Any], other: dict[str, Any]) -> bool:
    if one["source"] == other["source"] and None not in (one["line"], other["line"]):
        return bool(one["line"] < other["line"])
    return None not in (one["time"], other["time"]) and bool(one["time"] < other["time"])
