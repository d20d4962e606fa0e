"""Console text: lines, the prefixes that launchers put before them, clocks and secrets."""

from __future__ import annotations

import io
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from gdiag.ingesters.reading import Held

MAX_LINE: Final = 1 << 20
"""Characters of a line that are looked at; a longer line is no log line."""

NUMBER: Final = (
    r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?"
    r"|(?i:nan|inf(?:inity)?)(?=(?:ms|us|s|%|x+)?(?![A-Za-z0-9_])))"
)
"""A number as programs print it; thousands separators, nan and inf allowed, also filled up with x as PaddlePaddle does."""

_ESCAPE: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")

_WRAPPED: Final = re.compile(
    rb"\b(?:np\.(?:b?float|u?int|bool)\d*_?|tensor)\(\s*\[?\s*([-+\w.]+)\s*\]?(?:,\s*\w+=(?:'[^'\n]*'|<\w*>|[\w.]+))*\s*\)"
)
"""A scalar as numpy 2 and torch print it in a list or dictionary: np.float32(2.5), tensor(2.5, device='cuda:0')."""

_ENDS_TYPE: Final = np.isin(np.arange(256), list(b"0123456789_tlr"))
"""Bytes that end the name of such a type."""
_LONGEST_TYPE: Final = len("np.bfloat16_")
_AT_ONCE: Final = 1 << 20
"""Bytes that are searched at a time: few enough for the processor's cache."""
_PART: Final = 1 << 22
"""Bytes that one thread searches before it takes others."""
_CHANGED: Final = np.isin(np.arange(256), list(b"\x00\x01\r\x1b"))
"""Control characters that do not stay in a clean console."""

_COUNTED: Final = (
    r"(?i:(?:global_?)?(?:step|iter|iteration|epoch|batch|update|round|train|training|val|valid|eval|test)s?)"
)
"""Words whose number is no member's of a job."""
MEMBER: Final = rf"(?!{_COUNTED}[-_]?\d)[A-Za-z][\w.-]*?[-_]?\d{{1,5}}"
"""A member of a job by its name and number: trainer-1, worker_3."""
_TAG: Final = rf"""(?x:
    \d{{1,5}}:\ ?(?=\D|\d{{1,5}}:)                      # srun -l
  | \[\d+,\d+\](?:<std(?:out|err)>)?:?\ ?             # mpirun --tag-output
  | \[[\w.@:-]+,\d+\]<std(?:out|err)>:?\ ?            # the same of Open MPI 5
  | \[(?:default|rank|Rank\ )\d+\]:?\ ?               # torchrun --tee, torch
  | \[{MEMBER}\]:\ ?                                  # torchrun with a role
  | {MEMBER}\s*\|(?:\ |$)                              # docker compose
  | \[pod/[^\]\s]+\]\ ?                               # kubectl logs --prefix
  | std(?:out|err)\ [FP]\                              # containerd
  | slurm_procid\ +\d+\ *:\ ?
  | \((?:\w+\ )?pid=\d+[^)]*\)\ ?                     # Ray workers
  | \[[A-Z]+(?:\|[A-Z]+=\d+)+(?:\|[^\]\n]*)?\]:?\ ?   # nanotron
)"""
_CLOCK: Final = r"""(?x:
    \[?\d{4}[-/]\d\d[-/]\d\d[T\ _]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?
  | \[?\d\d/\d\d/(?:\d\d){1,2}\ \d\d:\d\d:\d\d(?:[.,]\d+)?(?:\ [AP]M)?\]?
  | [IWEF]\d{4}\ \d\d:\d\d:\d\d(?:\.\d+)?
  | \[?(?:[A-Z][a-z]{2}\ )?[A-Z][a-z]{2}\ [\ \d]\d\ \d\d:\d\d:\d\d(?:\.\d+)?(?:\ \d{4})?\]?
  | \[?(?:\d\d[/-]\d\d\ )?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:\]|(?=[\s:|-]|$))
)"""
_LEVEL: Final = r"(?x:\[?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|[IWEF])\]?(?=[\s:\[]))"
_ORIGIN: Final = r"(?x:\[[A-Za-z_][\w./]*(?::\w+){1,3}\]|\[(?:root|titan|deepspeed)\]|(?:\d+\ +)?\w[\w.]*\.(?:py|cc):\d+[:\]]?|-(?=\s|$))"
LAUNCHER: Final = rf"(?:{_CLOCK}|{_TAG}|{_LEVEL}|{_ORIGIN})"
"""One part of a prefix."""
PREFIX: Final = rf"^(?:\s*{LAUNCHER}\s*:?)*"
"""What launchers and loggers put before a message; matches the empty string."""
_PREFIX: Final = re.compile(PREFIX)

_SECRETS: Final = (
    re.compile(r"\b(?:hf_|sk-|gh[pousr]_|glpat-|xox[abprs]-|AKIA|nvapi-|wandb_v1_)[\w-]{12,}"),
    re.compile(r"\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
    re.compile(
        r"""(?ix)(?:\b|_)(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key(?:[_-]?id)?|authorization|credentials?)
        \b["']?\s*[:=]\s*(?:bearer\s+)?["']?(?P<value>[^\s"',;)}\]]{4,})"""
    ),
    re.compile(r"\b[0-9a-f]{40}\b"),
)


def clean(data: bytes) -> bytes:
    """Console bytes without terminal escapes and NUL, every line ended by one newline, \\r kept inside lines.

    Scalars lose the type that numpy or torch prints around them.
    """
    if b"\x1b" in data:
        data = _ESCAPE.sub(b"", data)
    if b"\0" in data:
        data = data.replace(b"\0", b"")
    if b"\x01" in data:
        data = data.replace(b"\x01", b" ")
    if _typed(data):
        data = _WRAPPED.sub(rb"\1", data)
    if b"\r" in data:
        data = re.sub(rb"(?<!\r)\r+\n", b"\n", data)
        if data.find(b"\n", 0, -1) < 0:  # but perhaps the very last byte
            data = data.replace(b"\r", b"\n")
    return data


def _typed(data: bytes) -> bool:
    """Whether a number is printed with the type of its array anywhere.

    The brackets are found first: one byte is compared many at a time, and a word of three letters costs more than all else here.
    """
    view = np.frombuffer(data, dtype=np.uint8)
    for start in range(0, len(view), _AT_ONCE):
        before = np.flatnonzero(view[start : start + _AT_ONCE] == ord("(")) + (start - 1)
        for at in before[_ENDS_TYPE[view[before]]].tolist():
            word = data[max(0, at - _LONGEST_TYPE) : at + 1]
            if word.endswith(b"tensor") or b"np." in word:
                return True
    return False


def newlines(data: Held) -> npt.NDArray[np.int64] | None:
    """Where the newlines stand; None where there are escapes, carriage returns or bytes that `clean` takes away.

    One look at every byte, parts of the data side by side.
    """
    view = np.frombuffer(data, dtype=np.uint8)
    starts = range(0, len(view), _PART)
    with ThreadPoolExecutor(2) as threads:
        parts = list((threads.map if len(starts) > 1 else map)(lambda at: _ends(view, at, at + _PART), starts))
    if any(part is None for part in parts):
        return None
    return np.concatenate([np.empty(0, np.int64), *(part for part in parts if part is not None)])


def _ends(view: npt.NDArray[np.uint8], start: int, stop: int) -> npt.NDArray[np.int64] | None:
    """As newlines, of one part."""
    found = []
    for at in range(start, min(stop, len(view)), _AT_ONCE):
        piece = view[at : min(at + _AT_ONCE, stop)]
        controls = np.flatnonzero(piece < ord(" "))
        kinds = piece[controls]
        ends = kinds == ord("\n")
        if not ends.all():
            if _CHANGED[kinds].any():
                return None
            controls = controls[ends]
        found.append(controls + at)
    return np.concatenate(found)


def lines(data: bytes) -> pl.DataFrame:
    """Lines of a console: `line` (Int64, 1-based) and `text` (String, never null, blank ones included).

    Terminal escapes and NUL bytes are gone; what stood between carriage returns (progress bars redrawn in place) becomes
    rows of their own with the same line number. Bytes that are no UTF-8 become U+FFFD.
    """
    return lines_of_clean(clean(data))


def lines_of_clean(data: bytes) -> pl.DataFrame:
    """As lines, of data that are clean."""
    if not data:
        return pl.DataFrame(schema={"line": pl.Int64, "text": pl.String})
    table = pl.read_csv(
        io.BytesIO(data),
        separator="\x01",
        has_header=False,
        quote_char=None,
        schema={"text": pl.String},
        truncate_ragged_lines=True,
        encoding="utf8-lossy",
    )
    table = table.select(pl.int_range(1, pl.len() + 1, dtype=pl.Int64).alias("line"), pl.col("text").fill_null(""))
    if b"\r" in data:
        table = table.with_columns(pl.col("text").str.split("\r")).explode("text")
    return table


def too_long(table: pl.DataFrame) -> pl.DataFrame:
    """Lines longer than MAX_LINE as rejects (`line`, `reason`, `text`): they are not looked at."""
    return table.filter(pl.col("text").str.len_bytes() > MAX_LINE).select(
        "line",
        pl.lit(f"the line is longer than {MAX_LINE:,} characters").alias("reason"),
        pl.col("text").str.slice(0, 200),
    )


def peel(text: str) -> tuple[str, str]:
    """A line's launcher and logger prefix, and the message behind it."""
    match = _PREFIX.match(text)
    end = match.end() if match else 0
    return text[:end], text[end:]


def redact(text: str, limit: int = 500) -> str:
    """`text`, at most `limit` characters, with what looks like a token, key or password replaced by ***."""
    text = text[: 4 * limit]
    for pattern in _SECRETS:
        if "value" in pattern.groupindex:
            text = pattern.sub(lambda m: m[0][: m.start("value") - m.start()] + "***", text)
        else:
            text = pattern.sub("***", text)
    return text if len(text) <= limit else text[: limit - 1] + "…"
