"""Console text: lines, the prefixes that launchers put before them, clocks and secrets."""

from __future__ import annotations

import io
import re
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from gdiag.errors import UsageError

MAX_LINE: Final = 1 << 20
"""Characters of a line that are looked at; a longer line is no log line."""

NUMBER: Final = (
    r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?"
    r"|(?i:nan|inf(?:inity)?)(?=(?:ms|us|s|%)?(?![A-Za-z0-9_])))"
)
"""A number as programs print it; thousands separators, nan and inf allowed."""

_ESCAPE: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")

_TAG: Final = r"""(?x:
    \d{1,5}:\ ?(?=\D|\d{1,5}:)                      # srun -l
  | \[\d+,\d+\](?:<std(?:out|err)>)?:?\ ?           # mpirun --tag-output
  | \[(?:default|rank|Rank\ )\d+\]:?\ ?             # torchrun --tee, torch
  | slurm_procid\ +\d+\ *:\ ?
  | \((?:\w+\ )?pid=\d+[^)]*\)\ ?                   # Ray workers
  | \[[A-Z]+(?:\|[A-Z]+=\d+)+(?:\|[^\]\n]*)?\]:?\ ? # nanotron
)"""
_CLOCK: Final = r"""(?x:
    \[?\d{4}[-/]\d\d[-/]\d\d[T\ _]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?
  | \[?\d\d/\d\d/\d{4}\ \d\d:\d\d:\d\d(?:[.,]\d+)?\]?
  | [IWEF]\d{4}\ \d\d:\d\d:\d\d(?:\.\d+)?
)"""
_LEVEL: Final = r"(?x:\[?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|[IWEF])\]?(?=[\s:\[]))"
_ORIGIN: Final = r"(?x:\[[A-Za-z_][\w./]*(?::\w+){1,3}\]|\[(?:root|titan|deepspeed)\]|\w[\w.]*\.(?:py|cc):\d+[:\]]?|-)"
PREFIX: Final = rf"^(?:\s*(?:{_TAG}|{_CLOCK}|{_LEVEL}|{_ORIGIN})\s*:?)*"
"""What launchers and loggers put before a message; matches the empty string."""
_PREFIX: Final = re.compile(PREFIX)

_NODE_TASK: Final = r"(?:^|[^\w.:])(?:(\d{1,5}):(?: |\[|$))"
_RANKS: Final = (
    r"\[rank(\d+)\]", r"\[Rank (\d+)\]", r"slurm_procid\s+(\d+)\s*:", r"\|DP=(\d+)", r"^\s*\[\d+,(\d+)\]",
    r"\brank=(\d+)", r"^\S+ \S+:(\d+)\s+\w+\.",
)  # fmt: skip

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
    """Console bytes without terminal escapes and NUL, every line ended by one newline, \\r kept inside lines."""
    if b"\x1b" in data:
        data = _ESCAPE.sub(b"", data)
    if b"\0" in data:
        data = data.replace(b"\0", b"")
    if b"\x01" in data:
        data = data.replace(b"\x01", b" ")
    if b"\r" in data:
        data = re.sub(rb"\r+\n", b"\n", data)
        if b"\n" not in data:
            data = data.replace(b"\r", b"\n")
    return data


def lines(data: bytes) -> pl.DataFrame:
    """Lines of a console: `line` (Int64, 1-based) and `text` (String, never null, blank ones included).

    Terminal escapes and NUL bytes are gone; what stood between carriage returns (progress bars redrawn in place) becomes
    rows of their own with the same line number. Bytes that are no UTF-8 become U+FFFD.
    """
    data = clean(data)
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


def ranks(prefixes: pl.Series) -> pl.Series:
    """Rank named in each prefix (Int32, null where none is).

    Null for all when every prefix that names one names the same: one process then speaks for the run. srun -l around
    torchrun --tee gives task and local rank; the rank is then counted node by node.
    """
    nothing = pl.Series("rank", [None] * len(prefixes), dtype=pl.Int32)
    if prefixes.str.len_bytes().max() in (None, 0):
        return nothing
    table = pl.DataFrame({"prefix": prefixes})
    local = table.select(pl.col("prefix").str.extract(r"\[default(\d{1,6})\]").cast(pl.Int32, strict=False)).to_series()
    task = table.select(pl.col("prefix").str.extract(_NODE_TASK).cast(pl.Int32, strict=False)).to_series()
    named = table.select(
        pl.coalesce([pl.col("prefix").str.extract(pattern).cast(pl.Int32, strict=False) for pattern in _RANKS])
    ).to_series()
    if local.null_count() < len(local) and task.null_count() < len(task):
        per_node = int(str(local.max())) + 1
        both = task * per_node + local
        found = named.zip_with(named.is_not_null(), both.zip_with(both.is_not_null(), task))
    else:
        found = pl.select(pl.coalesce([named, local, task])).to_series()
    return found.cast(pl.Int32).rename("rank") if found.drop_nulls().n_unique() > 1 else nothing


def zone_minutes(tz: str | None) -> int | ZoneInfo:
    """A `--tz` value: minutes east of UTC, or the IANA zone. None means UTC.

    Raises:
        UsageError: no such zone.
    """
    if tz is None:
        return 0
    offset = re.fullmatch(r"(?:UTC)?([+-])(\d\d):?(\d\d)", tz)
    if offset:
        minutes = int(offset[2]) * 60 + int(offset[3])
        return minutes if offset[1] == "+" else -minutes
    try:
        return ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UsageError(f"no time zone is called {tz}") from error


def clocks(prefixes: pl.Series, tz: str | None = None) -> pl.Series:
    """Unix seconds of the first full date and time in each string (Float64, null where there is none).

    Understood: 2026-05-29 15:42:14.66, 2025/11/10T09:43:36,161992, with Z or ±HH:MM, and 10/17/2025 16:31:56
    (month first, as Python's logging configurations print it).
    """
    empty = pl.Series("time", [None] * len(prefixes), dtype=pl.Float64)
    if prefixes.str.len_bytes().max() in (None, 0):
        return empty
    frame = pl.DataFrame({"p": prefixes})
    iso = pl.col("p").str.extract(r"(\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d)")
    american = pl.col("p").str.extract(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)")
    frame = frame.with_columns(
        pl.coalesce(
            iso.str.replace_all("/", "-", literal=True)
            .str.replace("[T_]", " ")
            .str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False),
            american.str.to_datetime("%m/%d/%Y %H:%M:%S", strict=False),
        ).alias("moment"),
        pl.col("p").str.extract(r"\d\d:\d\d:\d\d[.,](\d{1,9})").alias("fraction"),
        pl.col("p").str.extract(r"\d\d:\d\d:\d\d(?:[.,]\d+)?(Z|[+-]\d\d:?\d\d)\b").alias("offset"),
    )
    if frame["moment"].null_count() == len(frame):
        return empty
    zone = zone_minutes(tz)
    seconds = pl.col("moment").dt.epoch("us") / 1e6
    if isinstance(zone, ZoneInfo):
        local = pl.col("moment").dt.replace_time_zone(zone.key, ambiguous="earliest", non_existent="null")
        seconds = local.dt.epoch("us") / 1e6
        zone = 0
    digits = pl.col("offset").str.replace(":", "", literal=True)
    sign = pl.when(digits.str.starts_with("-")).then(-1).otherwise(1)
    said = sign * (
        digits.str.slice(1, 2).cast(pl.Float64, strict=False) * 3600
        + digits.str.slice(3, 2).cast(pl.Float64, strict=False) * 60
    )
    east = pl.when(pl.col("offset") == "Z").then(0.0).otherwise(said)
    naive = pl.col("moment").dt.epoch("us") / 1e6
    fraction = ("0." + pl.col("fraction")).cast(pl.Float64, strict=False).fill_null(0.0)
    return frame.select(
        (pl.when(pl.col("offset").is_not_null()).then(naive - east).otherwise(seconds - zone * 60.0) + fraction).alias(
            "time"
        )
    ).to_series()


def redact(text: str, limit: int = 500) -> str:
    """`text`, at most `limit` characters, with what looks like a token, key or password replaced by ***."""
    text = text[: 4 * limit]
    for pattern in _SECRETS:
        if "value" in pattern.groupindex:
            text = pattern.sub(lambda m: m[0][: m.start("value") - m.start()] + "***", text)
        else:
            text = pattern.sub("***", text)
    return text if len(text) <= limit else text[: limit - 1] + "…"
