"""Kernel, syslog, fabric-manager and NCCL logs: no steps in them, only what the machine reported."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import console, machine_lines
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.model import Source

FORMAT = "kernel-log"

_KERNEL = re.compile(
    rb"(?m)NVRM: |nvidia-nvswitch\d+: |nvidia-peermem |mlx5_core |mlx5_\w+:\d+:\(pid |^(?:\d+,\d+,\d+,\S*;)|^kern  :\w+ *: |^\[[ \d]+\.\d{6}\] |"
    rb"^\w{3} +\d+ \d\d:\d\d:\d\d \S+ kernel: |^\d{4}-\d\d-\d\dT\S+ \S+ kernel: |\] \[(?:INFO|ERROR|WARN\w*)\] \[tid \d+\] |XidCriticalError"
)
_NCCL = re.compile(rb"NCCL (?:WARN|INFO) |ProcessGroupNCCL\.cpp:\d+\]|Watchdog caught collective")
_STEPS = re.compile(rb"(?i)\b(?:loss|lr|learning.rate)\b\s*[:=|]\s*\S*\d")


def recognise(given: Input) -> float:
    """Sure of kernel lines, weaker for NCCL lines, which training consoles hold too."""
    if _STEPS.search(given.head) or b"# nThread" in given.head or b"out-of-place" in given.head:
        return 0.0
    if _KERNEL.search(given.head):
        return 0.7
    return 0.35 if _NCCL.search(given.head) else 0.0


def read(given: Input, options: Options) -> Reading:
    """Events of the log.

    Raises:
        InputError: nothing in it reports an error that gdiag knows.
    """
    table = console.lines_of(given)
    events, notes = machine_lines.among(table, options.tz, _year(given))
    if not events.height and not _KERNEL.search(given.head):
        raise InputError(f"{given.path} is an NCCL log that reports no error")
    if not events.height:
        notes.append("no error of a GPU, link or collective is reported in it")
    return Reading(
        Source(given.path, FORMAT, table.filter(pl.col("text").str.strip_chars() != "").height, notes=tuple(notes)),
        events=events if events.height else None,
    )


def _year(given: Input) -> int | None:
    """The year of the file's last change, for clocks that print none."""
    if given.file is None:
        return None
    try:
        return datetime.fromtimestamp(given.file.stat().st_mtime, tz=UTC).year
    except OSError:
        return None
