"""Console text: lines, the prefixes that launchers put before them, clocks and secrets."""

from __future__ import annotations

import io
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import polars as pl

from gdiag.errors import UsageError
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
_ORIGIN: Final = (
    r"(?x:\[[A-Za-z_][\w./]*(?::\w+){1,3}\]|\[(?:root|titan|deepspeed)\]|(?:\d+\ +)?\w[\w.]*\.(?:py|cc):\d+[:\]]?|-)"
)
LAUNCHER: Final = rf"(?:{_TAG}|{_CLOCK}|{_LEVEL}|{_ORIGIN})"
"""One part of a prefix."""
PREFIX: Final = rf"^(?:\s*{LAUNCHER}\s*:?)*"
"""What launchers and loggers put before a message; matches the empty string."""
_PREFIX: Final = re.compile(PREFIX)

_LOCAL: Final = r"\[default(\d{1,6})\]"
_NODE_TASK: Final = r"(?:^|[^\w.:])(?:(\d{1,5}):(?: |\[|$))"
_RANKS: Final = (
    r"\[rank(\d+)\]", r"\[Rank (\d+)\]", r"slurm_procid\s+(\d+)\s*:", r"\|DP=(\d+)", r"^\s*\[\d+,(\d+)\]",
    r"\brank=(\d+)", r"(?:^|\s)[A-Za-z][\w.-]*:(\d{1,5})\s+olmo\w*\.",
)  # fmt: skip

_MOMENT: Final = re.compile(
    r"(\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d|\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
)

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
        if b"\n" not in data:
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


def ranks(prefixes: pl.Series) -> pl.Series:
    """Rank named in each prefix (Int32, null where none is).

    Null for all when every prefix that names one names the same: one process then speaks for the run. srun -l around
    torchrun --tee gives task and local rank; the rank is then counted node by node.
    """
    nothing = _nothing("rank", len(prefixes), pl.Int32)
    some = _some(prefixes)
    used = [pattern for pattern in (_LOCAL, _NODE_TASK, *_RANKS) if any(re.search(pattern, text) for text in some)]
    if not used:
        return nothing
    found = pl.DataFrame({"p": prefixes}).select(
        pl.col("p").str.extract(pattern).cast(pl.Int32, strict=False).alias(pattern) for pattern in used
    )
    named = [pattern for pattern in _RANKS if pattern in used]
    if _LOCAL in used and _NODE_TASK in used and found[_LOCAL].count() and found[_NODE_TASK].count():
        per_node = int(str(found[_LOCAL].max())) + 1
        both = pl.col(_NODE_TASK) * per_node + pl.col(_LOCAL)
        rank = found.select(pl.coalesce(*named, both, _NODE_TASK, _LOCAL))
    else:
        rank = found.select(pl.coalesce(*named, *(p for p in (_LOCAL, _NODE_TASK) if p in used)))
    series = rank.to_series().cast(pl.Int32).alias("rank")
    return series if series.drop_nulls().n_unique() > 1 else nothing


def _nothing(name: str, count: int, kind: type[pl.DataType]) -> pl.Series:
    """So many nulls; a list of them takes milliseconds."""
    return pl.Series(name, [], dtype=kind).extend_constant(None, count)


def _some(texts: pl.Series) -> list[str]:
    """At most 192 of the texts, from all through them and of every length, each once, for a first look."""
    spread = texts.gather_every(max(1, len(texts) // 64)).head(96)
    lengths = texts.gather(texts.str.len_bytes().arg_unique().head(96))
    return [text for text in dict.fromkeys([*spread, *lengths]) if text]


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
    seen = [match for text in _some(prefixes) if (match := _MOMENT.search(text)) is not None]
    if not seen:
        return _nothing("time", len(prefixes), pl.Float64)
    frame = pl.DataFrame({"p": prefixes})
    found = frame.select(*_at_one_place(seen))
    if found["moment"].null_count():
        found = frame.select(*_anywhere())
    return found.select(_unix(tz).alias("time")).to_series()


def _at_one_place(seen: list[re.Match[str]]) -> list[pl.Expr]:
    """`moment`, `fraction` and `offset` where every clock stands at the same character in the same form."""
    first = seen[0]
    start, shown = first.start(), first[1]
    day = "%Y{0}%m{0}%d" if shown[4] in "-/" else "%m{0}%d{0}%Y"
    form = day.format(shown[4] if shown[4] in "-/" else shown[2]) + shown[10] + "%H:%M:%S"
    digits = len(first[2]) if first[2] else 0
    alike = all(m.start() == start and len(m[2] or "") == digits and bool(m[3]) == bool(first[3]) for m in seen)
    here = pl.col("p").str.slice(start, 19) if alike else pl.lit(None, pl.String)
    fraction = (
        pl.col("p").str.slice(start + 20, digits).cast(pl.Float64, strict=False) / 10**digits if digits else pl.lit(0.0)
    )
    offset = (
        pl.col("p").str.slice(start + 19 + (digits + 1 if digits else 0), len(first[3]))
        if first[3]
        else pl.lit(None, pl.String)
    )
    return [
        here.str.to_datetime(form, strict=False, time_unit="us", cache=False).alias("moment"),
        fraction.alias("fraction"),
        offset.alias("offset"),
    ]


def _anywhere() -> list[pl.Expr]:
    """The same by regular expressions."""
    iso = pl.col("p").str.extract(r"(\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d)")
    american = pl.col("p").str.extract(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)")
    plain = iso.str.replace_all("/", "-", literal=True).str.replace("[T_]", " ")
    fraction = "0." + pl.col("p").str.extract(r"\d\d:\d\d:\d\d[.,](\d{1,9})")
    return [
        pl.coalesce(
            plain.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us"),
            american.str.to_datetime("%m/%d/%Y %H:%M:%S", strict=False, time_unit="us"),
        ).alias("moment"),
        fraction.cast(pl.Float64, strict=False).fill_null(0.0).alias("fraction"),
        pl.col("p").str.extract(r"\d\d:\d\d:\d\d(?:[.,]\d+)?(Z|[+-]\d\d:?\d\d)\b").alias("offset"),
    ]


def _unix(tz: str | None) -> pl.Expr:
    """Unix seconds of `moment`, `fraction` and `offset`; without an offset in the zone `tz`."""
    zone = zone_minutes(tz)
    naive = pl.col("moment").dt.epoch("us") / 1e6
    if isinstance(zone, ZoneInfo):
        local = pl.col("moment").dt.replace_time_zone(zone.key, ambiguous="earliest", non_existent="null")
        seconds = local.dt.epoch("us") / 1e6
    else:
        seconds = naive - zone * 60.0
    digits = pl.col("offset").str.replace(":", "", literal=True)
    hours, minutes = (
        digits.str.slice(1, 2).cast(pl.Float64, strict=False),
        digits.str.slice(3, 2).cast(pl.Float64, strict=False),
    )
    east = pl.when(digits.str.starts_with("-")).then(-1.0).otherwise(1.0) * (hours * 3600 + minutes * 60)
    said = naive - pl.when(pl.col("offset") == "Z").then(0.0).otherwise(east)
    return pl.when(pl.col("offset").is_null()).then(seconds).otherwise(said) + pl.col("fraction").fill_null(0.0)


def redact(text: str, limit: int = 500) -> str:
    """`text`, at most `limit` characters, with what looks like a token, key or password replaced by ***."""
    text = text[: 4 * limit]
    for pattern in _SECRETS:
        if "value" in pattern.groupindex:
            text = pattern.sub(lambda m: m[0][: m.start("value") - m.start()] + "***", text)
        else:
            text = pattern.sub("***", text)
    return text if len(text) <= limit else text[: limit - 1] + "…"
