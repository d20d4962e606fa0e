"""What prefixes of console lines say: ranks, members of a job, and clocks."""

from __future__ import annotations

import re
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from gdiag.errors import UsageError
from gdiag.ingesters import clocks as clocks_of_cells
from gdiag.ingesters import dates

_LOCAL: Final = r"\[default(\d{1,6})\]"
_ROLE: Final = r"(?:^|\s)\[[A-Za-z_]+(\d{1,6})\]:"
"""The local rank behind the role of torchrun's workers, which is default where none is given."""
_NODE_TASK: Final = r"(?:^|[^\w.:])(?:(\d{1,5}):(?: |\[|$))"
_RANKS: Final = (
    r"\[rank(\d+)\]", r"\[Rank (\d+)\]", r"slurm_procid\s+(\d+)\s*:", r"\|DP=(\d+)", r"^\s*\[\d+,(\d+)\]",
    r"\brank=(\d+)", r"(?:^|\s)[A-Za-z][\w.-]*:(\d{1,5})\s+olmo\w*\.", r"^\s*\[[\w.@:-]+,(\d{1,7})\]<std",
    r"(?i)(?:^|[\s\[(])rank\s?[:=#]?\s?(\d{1,7})\s?[:|\])]", r"(?i)^\s*(?:worker|rank|proc(?:ess)?|task)[_-]?(\d{1,7})\s*\|(?:\s|$)",
)  # fmt: skip
_MEMBERS: Final = (
    r"^\s*((?i:[a-z][\w.-]*?[-_]?\d{1,5}))\s*\|(?:\s|$)", r"^\s*\[pod/([^/\]\s]+)",
    r"^\s*\(([A-Za-z_][\w.]* pid=\d+(?:, ip=[\d.]+)?)\)", r"^\s*([a-z][\w.-]*/\d{1,5})(?:\s|$)",
    r"^\s*([A-Za-z][\w.-]*?\d{1,5}):(?:\s|$)",
)  # fmt: skip
"""Members of a job as docker compose, kubectl, Ray, supervisors and pdsh name them."""
_COUNTED: Final = (
    r"(?i)^(?:ep(?:och)?|step|it(?:er(?:ation)?)?|batch|phase|stage|round|cycle|pass|update|episode)[-_/]?\d"
)
"""What is counted over a run and names no member of a job."""
_OFTEN: Final = 4
"""Lines per prefix from which each prefix is looked at once."""
_SHARED: Final = 0.5
"""Share of the steps that several members print where each speaks for itself."""

_OTHERS: Final = (
    (r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d [AP]M)", f"{dates.LONG} %I:%M:%S %p"),
    (r"(?:^|[^\d/])(\d\d/\d\d/\d\d \d\d:\d\d:\d\d)", f"{dates.SHORT} %H:%M:%S"),
    (r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})", "%b %e %H:%M:%S %Y"),
)
"""Other full clocks: twelve hours a day, the short year of Rich and Spark, that of C's ctime."""
_AMERICAN: Final = r"(\d\d/\d\d/\d{4}) \d\d:\d\d:\d\d"
_OF_YEAR: Final = (
    (r"(?:^|\s)[IWEF](\d{4} \d\d:\d\d:\d\d)", "%m%d %H:%M:%S"),
    (r"(?:^|[\s\[])(\d\d/\d\d \d\d:\d\d:\d\d)", "%m/%d %H:%M:%S"),
    (r"(?:^|[\s\[])([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)", "%b %e %H:%M:%S"),
)
"""Clocks without a year: glog and absl, detectron2, syslog."""
_OF_DAY: Final = r"(?:^\s*|\[|[^\d\s]\s+)((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d+)?)(?:\]|[\s:|-]|$)"
_FRACTION: Final = r"\d\d:\d\d:\d\d[.,](\d{1,9})"
_YEAR: Final = 365 * 86_400.0
_MOMENT: Final = re.compile(
    r"(\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d|\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
)


def ranks(prefixes: pl.Series) -> pl.Series:
    """Rank named in each prefix (Int32, null where none is).

    Null for all when every prefix that names one names the same: one process then speaks for the run. srun -l around
    torchrun --tee gives task and local rank; the rank is then counted node by node.
    """
    nothing = _nothing("rank", len(prefixes), pl.Int32)
    some = _some(prefixes)
    used = [
        pattern for pattern in (_LOCAL, _ROLE, _NODE_TASK, *_RANKS) if any(re.search(pattern, text) for text in some)
    ]
    if not used:
        return nothing
    found = pl.DataFrame({"p": prefixes}).select(
        pl.col("p").str.extract(pattern).cast(pl.Int32, strict=False).alias(pattern) for pattern in used
    )
    named = [pattern for pattern in _RANKS if pattern in used]
    local = next((pattern for pattern in (_LOCAL, _ROLE) if pattern in used), "")
    if local and _NODE_TASK in used and found[local].count() and found[_NODE_TASK].count():
        per_node = int(str(found[local].max())) + 1
        both = pl.col(_NODE_TASK) * per_node + pl.col(local)
        rank = found.select(pl.coalesce(*named, both, _NODE_TASK, local))
    else:
        rank = found.select(pl.coalesce(*named, *(p for p in (local, _NODE_TASK) if p in used)))
    series = rank.to_series().cast(pl.Int32).alias("rank")
    return series if series.drop_nulls().n_unique() > 1 else nothing


def names(prefixes: pl.Series) -> pl.Series:
    """The member of the job that each prefix names (String, null where none is)."""
    used = [pattern for pattern in _MEMBERS if any(re.search(pattern, text) for text in _some(prefixes))]
    if not used:
        return _nothing("member", len(prefixes), pl.String)
    member = pl.coalesce(pl.col("p").str.extract(pattern) for pattern in used).alias("member")
    named = pl.when(~member.str.contains(_COUNTED)).then(member)
    frame = pl.DataFrame({"p": prefixes})
    distinct = frame.unique()
    if _OFTEN * len(distinct) > len(frame):
        return frame.select(named).to_series()
    told = distinct.with_columns(named.alias("member"))  # a prefix without a clock comes again and again
    return frame.join(told, on="p", how="left", nulls_equal=True, maintain_order="left")["member"]


def members(prefixes: pl.Series, steps: pl.Series) -> pl.Series:
    """`rank` or `run` of lines that several members of a job print for the same steps; else null.

    Args:
        prefixes: what stands before each step line.
        steps: their steps.
    """
    nothing = _nothing("run", len(prefixes), pl.String)
    member = names(prefixes)
    if not member.count():
        return nothing
    told = pl.DataFrame({"step": steps, "member": member})
    known = member.drop_nulls().unique().sort()
    shared = told.drop_nulls().group_by("step").agg(pl.col("member").n_unique() > 1)["member"].mean()
    if len(known) < 2 or not isinstance(shared, float) or shared < _SHARED:
        return nothing
    return ranked(told["member"])


def ranked(member: pl.Series) -> pl.Series:
    """`rank` or `run` of the members that `names` found.

    Numbers of members of one name are ranks where they count from 0, as pods of a set do; copies of a service count from 1, and
    each is a run of its own by its name.
    """
    known = member.drop_nulls().unique()
    base, number = (known.str.extract(r"^(.*?)(\d+)$", part) for part in (1, 2))
    if base.n_unique() == 1 and "0" in set(number):
        return member.str.extract(r"(\d+)$").cast(pl.Int32, strict=False).alias("rank")
    return member.alias("run")


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

    Understood: 2026-05-29 15:42:14.66, 2025/11/10T09:43:36,161992, with Z or ±HH:MM, and 10/17/2025 16:31:56,
    whose order of day and month all of them tell together.
    """
    some = _some(prefixes)
    for pattern, form in _OTHERS:
        if any(re.search(pattern, text) for text in some):
            return _parsed(prefixes, pattern, form, tz)
    seen = [match for text in some if (match := _MOMENT.search(text)) is not None]
    if not seen:
        return _nothing("time", len(prefixes), pl.Float64)
    frame = pl.DataFrame({"p": prefixes})
    unsaid = any(match[1][2] == "/" for match in seen)
    day = dates.order(prefixes.str.extract(_AMERICAN), dates.LONG)[0] if unsaid else dates.LONG
    found = frame.select(*_at_one_place(seen, day))
    if found["moment"].null_count():
        found = frame.select(*_anywhere(day))
    return found.select(_unix(tz).alias("time")).to_series()


def _parsed(prefixes: pl.Series, pattern: str, form: str, tz: str | None) -> pl.Series:
    """Unix seconds of clocks of another form."""
    text = prefixes.str.extract(pattern)
    for usual in (dates.SHORT, dates.LONG):
        if form.startswith(usual):
            form = form.replace(usual, dates.order(text.str.extract(r"^(\S+)"), usual)[0])
    fraction = ("0." + prefixes.str.extract(_FRACTION)).cast(pl.Float64, strict=False)
    moment = text.str.to_datetime(form, strict=False, time_unit="us")
    offset = _nothing("offset", len(text), pl.String)
    return pl.DataFrame([moment.alias("moment"), fraction.alias("fraction"), offset]).select(_unix(tz).alias("time"))[
        "time"
    ]


def running(prefixes: pl.Series) -> pl.Series:
    """Seconds since the first of clocks that print no year, or no date, on over New Year and midnight; null where there are none.

    Without a year it is not known whether one is a leap year: over the end of February a day may be missing.
    """
    some = _some(prefixes)
    for pattern, form in _OF_YEAR:
        if any(re.search(pattern, text) for text in some):
            text = prefixes.str.extract(pattern)
            year = "2024" if text.str.contains(r"^(?:0229|02/29|Feb 29)").any() else "2023"
            moment = (year + " " + text).str.to_datetime(f"%Y {form}", strict=False, time_unit="us")
            fraction = ("0." + prefixes.str.extract(_FRACTION)).cast(pl.Float64, strict=False).fill_null(0.0)
            seconds = moment.dt.epoch("us") / 1e6 + fraction
            if not seconds.count():
                break
            turns: pl.Series = (seconds.forward_fill().diff() < -_YEAR / 2).fill_null(False).cum_sum()
            length = _YEAR + (year == "2024") * 86_400.0
            return (seconds + turns * length - float(seconds.drop_nulls()[0])).alias("elapsed")
    if any(re.search(_OF_DAY, text) for text in some):
        told = clocks_of_cells.time_of_day(prefixes.str.extract(_OF_DAY))
        if told is not None:
            return told.alias("elapsed")
    return _nothing("elapsed", len(prefixes), pl.Float64)


def _at_one_place(seen: list[re.Match[str]], unsaid: str) -> list[pl.Expr]:
    """`moment`, `fraction` and `offset` where every clock stands at the same character in the same form.

    Args:
        seen: some clocks.
        unsaid: the form of dates that do not begin with the year.
    """
    first = seen[0]
    start, shown = first.start(), first[1]
    day = f"%Y{shown[4]}%m{shown[4]}%d" if shown[4] in "-/" else unsaid
    form = day + shown[10] + "%H:%M:%S"
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


def _anywhere(unsaid: str) -> list[pl.Expr]:
    """The same by regular expressions."""
    iso = pl.col("p").str.extract(r"(\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d)")
    american = pl.col("p").str.extract(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)")
    plain = iso.str.replace_all("/", "-", literal=True).str.replace("[T_]", " ")
    fraction = "0." + pl.col("p").str.extract(r"\d\d:\d\d:\d\d[.,](\d{1,9})")
    return [
        pl.coalesce(
            plain.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us"),
            american.str.to_datetime(f"{unsaid} %H:%M:%S", strict=False, time_unit="us"),
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
