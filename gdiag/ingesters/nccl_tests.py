"""nccl-tests and rccl-tests output, text or JSON, however it was launched, cut or mixed with other lines."""

from __future__ import annotations

from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import nccl_facts, nccl_json, nccl_rows
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.model import Exit, Source

FORMAT: Final = "nccl-tests"
_CERTAIN: Final = ("Avg bus bandwidth", "Out of bounds values", "nccl-tests version", "rccl-tests: Version")
_LIKELY: Final = ("algbw", "busbw", "nThread ")
_STARTS: Final = ["nThread ", "nccl-tests version", "Collective test starting", "rccl-tests: Version"]


def recognise(given: Input) -> float:
    head = given.head.decode("utf-8", "replace")
    if nccl_json.looks_like(head):
        return 1.0
    if any(words in head for words in _CERTAIN) or ("algbw" in head and "busbw" in head):
        return 0.95
    if any(words in head for words in _LIKELY):
        return 0.7
    if not nccl_rows.rows(nccl_rows.stripped(_lines(head)), _no_headers())[0].is_empty():
        return 0.7
    return 0.3 if "_perf" in head and "nccl" in head else 0.0


def read(given: Input, options: Options) -> Reading:  # noqa: ARG001 - benchmark output has no columns to map
    text = given.data().decode("utf-8", "replace")
    if nccl_json.looks_like(text[:4096]) or (text.lstrip().startswith("{") and nccl_json.looks_like(text)):
        return _document(given, text)
    lines = nccl_rows.stripped(_lines(text))
    heads = nccl_rows.headers(lines)
    rows, rejects = nccl_rows.rows(lines, heads)
    devices, facts = nccl_facts.devices(lines), nccl_facts.facts(lines)
    if not (rows.height or rejects.height or devices.height) and not _is_output(text, facts):
        raise InputError(f"{given.path} speaks of nccl-tests but holds no output of it")
    starts = _sections(lines, heads, rows, facts)
    rows = _cycled(_placed(rows, starts)).join(
        _collectives(facts, starts), on="section", how="left", maintain_order="left"
    )
    return _reading(
        given, rows, _placed(devices, starts), _placed(facts, starts), rejects, _notes(rows, facts, rejects)
    )


def _is_output(text: str, facts: pl.DataFrame) -> bool:
    """Whether text without rows is output all the same: a table whose rows were edited, a start, or a failure."""
    said = facts.filter(pl.col("scope").is_in(["failure", "footer", "version"])).height
    return said > 0 or ("algbw" in text and "busbw" in text) or "nThread " in text


def _document(given: Input, text: str) -> Reading:
    rows, devices, said, whole = nccl_json.read(text)
    facts = pl.DataFrame(
        [(None, *fact) for fact in said],
        schema={"line": pl.Int64, "scope": pl.String, "key": pl.String, "value": pl.String}, orient="row",
    )  # fmt: skip
    collective = next((value for scope, key, value in said if (scope, key) == ("config", "collective")), None)
    section = pl.lit(0, pl.Int32).alias("section")
    rows = _cycled(rows.with_columns(section)).with_columns(collective=pl.lit(collective, pl.String))
    notes = () if whole else ("the JSON document is cut: complete results before the cut are used",)
    return _reading(given, rows, devices.with_columns(section), facts.with_columns(section), None, notes)


def _reading(
    given: Input, rows: pl.DataFrame, devices: pl.DataFrame, facts: pl.DataFrame, rejects: pl.DataFrame | None,
    notes: tuple[str, ...],
) -> Reading:  # fmt: skip
    failed = facts.filter(pl.col("scope") == "failure").height > 0
    ended: Exit = "abnormal" if failed else "unknown"
    if not failed and facts.filter(pl.col("key") == "average_busbw").height:
        ended = "clean"
    distinct = rows.select("line").n_unique() if rows.height else 0
    return Reading(
        source=Source(given.path, FORMAT, distinct, rejected=rejects.height if rejects is not None else 0, notes=notes),
        collectives=rows, devices=devices, facts=facts, rejects=rejects, exit=ended,
    )  # fmt: skip


def _lines(text: str) -> pl.DataFrame:
    texts = pl.Series("text", text.split("\n"), dtype=pl.String)
    return pl.DataFrame({"line": pl.int_range(1, len(texts) + 1, dtype=pl.Int64, eager=True), "text": texts})


def _no_headers() -> pl.DataFrame:
    flags = ("has_root", "per_iteration", "milliseconds", "cpu_time", "in_place_only")
    return pl.DataFrame(schema={"line": pl.Int64, **dict.fromkeys(flags, pl.Boolean)})


def _sections(lines: pl.DataFrame, heads: pl.DataFrame, rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """First line of every test run in the file: a start or header line that follows rows or a footer."""
    begins = lines.filter(pl.col("text").str.contains_any(_STARTS)).select("line", start=pl.lit(value=True))
    columns = heads.select("line", start=pl.lit(value=True))
    inside = rows.select("line", start=pl.lit(value=False)).unique("line")
    footers = facts.filter(pl.col("key") == "average_busbw").select("line", start=pl.lit(value=False))
    marks = pl.concat([begins, columns, inside, footers]).sort("line")
    first = marks.filter(pl.col("start") & ~pl.col("start").shift(fill_value=False)).select("line")
    if not first.height:
        first = pl.DataFrame({"line": [1]}, schema={"line": pl.Int64})
    return first.with_row_index("section").with_columns(pl.col("section").cast(pl.Int32))


def _placed(table: pl.DataFrame, starts: pl.DataFrame) -> pl.DataFrame:
    """`table` with the section each line belongs to; what stands before the first start belongs to it too."""
    placed = table.sort("line").join_asof(starts, on="line", strategy="backward")
    return placed.with_columns(pl.col("section").fill_null(0))


def _collectives(facts: pl.DataFrame, starts: pl.DataFrame) -> pl.DataFrame:
    """Each section's collective by the nearest line that names it, inside the section or just before it."""
    named = facts.filter((pl.col("scope") == "config") & (pl.col("key") == "collective")).select(
        "line", collective="value"
    )
    inside = _placed(named, starts).group_by("section").agg(own=pl.col("collective").first())
    return (
        starts.join_asof(named, on="line", strategy="backward")
        .join(inside, on="section", how="left")
        .select("section", collective=pl.coalesce("own", "collective"))
    )


def _cycled(rows: pl.DataFrame) -> pl.DataFrame:
    """Repeats of -N: sizes that fall back to the smallest without a new header start a new cycle."""
    smallest = pl.col("size").min().over("section")
    previous = pl.col("size").shift().over("section")
    again = ((pl.col("size") == smallest) & (previous > pl.col("size"))).fill_null(value=False)
    return rows.with_columns(cycle=again.cast(pl.Int32).cum_sum().over("section"))


def _notes(rows: pl.DataFrame, facts: pl.DataFrame, rejects: pl.DataFrame) -> tuple[str, ...]:
    notes: list[str] = []
    if not rows.height:
        failure = facts.filter(pl.col("scope") == "failure")["value"].to_list()
        notes.append(f"no complete row{f': {failure[0][:160]}' if failure else ''}")
    elif not facts.filter(pl.col("key") == "average_busbw").height:
        notes.append("no footer: the output is cut, the rows before the cut are used")
    if rejects.height:
        notes.append(f"{rejects.height} rows hold no complete set of figures")
    return tuple(notes)
