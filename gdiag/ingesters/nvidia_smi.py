"""nvidia-smi --query-gpu and --query-retired-pages as CSV, and loggers that imitate it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import smi_cells, smi_columns, telemetry
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.smi_columns import Field
from gdiag.model import Source

FORMAT: Final = "nvidia-smi-csv"

_PREFIX: Final = r"^(?:\[[\d,]+\](?:<std\w+>)?:|[A-Za-z0-9][\w.-]*:) ?"
_LOST: Final = r"(?i)(gpu is lost|unable to determine the device handle|no devices were found|fallen off the bus|rminitadapter failed)"


def recognise(given: Input) -> float:
    lines = [line for line in given.head.decode("utf-8", "replace").splitlines()[:40] if line.strip()]
    for line in lines:
        fields = smi_columns.header(_bare(line))
        if fields is not None:
            return smi_columns.certainty(fields)
    bare = [_bare(line) for line in lines]
    return 0.6 if smi_columns.headerless(bare) or smi_columns.like_rows(bare) else 0.0


def read(given: Input, options: Options) -> Reading:
    parts, noise, reject = _plain(given.data()) or _parts(given)
    if not parts:
        raise InputError(f"{given.path} holds no nvidia-smi rows")
    gpus: list[pl.DataFrame] = []
    events: list[pl.DataFrame] = []
    notes = _unanswered(given.data())
    columns: dict[str, str] = {}
    retired = 0
    for fields, cells in parts:
        if any(f.name.startswith("retired_pages.address") for f in fields):
            retired += cells.height
            events.append(_retired(cells, fields, options))
            continue
        frame, bad, said, named = smi_cells.canonical(cells, fields, options, given.path)
        gpus.append(frame)
        reject += bad
        notes += [n for n in said if n not in notes]
        columns |= named
    lost, said, bad = _noise(noise)
    events += lost
    notes += said
    reject += bad
    table = pl.concat(gpus, how="diagonal_relaxed") if gpus else None
    rows_read = (table.height if table is not None else 0) + retired
    happened = [e for e in events if e.height]
    return Reading(
        source=Source(given.path, FORMAT, rows_read, len(reject), columns, tuple(notes)),
        gpus=table,
        events=pl.concat(happened, how="diagonal_relaxed") if happened else None,
        rejects=telemetry.rejects(sorted(reject)) if reject else None,
    )


FAILED: Final = (b"Unknown Error", b"GPU is lost", b"GPU requires reset", b"ERR!")
"""What the driver prints where it could not ask the GPU: other cells without a number are of sensors that are not there."""


def _unanswered(data: bytes) -> list[str]:
    """How many cells the driver could not read."""
    found = [(words.decode(), count) for words in FAILED if (count := data.count(words))]
    return [
        f"{count:,} {'cell says' if count == 1 else 'cells say'} {words}: the driver could not read the GPU; taken as not logged"
        for words, count in found
    ]


Parts = tuple[list[tuple[list[Field], pl.DataFrame]], pl.DataFrame, list[tuple[int, str, str]]]
"""Cells under each header, lines that are none, rows that are cut."""


def _plain(data: bytes) -> Parts | None:
    """A file of one header and rows of as many cells, split by the CSV reader in one go; None for any other file."""
    first, end = data.find(b"\n"), data.rfind(b"\n")
    fields = smi_columns.header(data[: max(0, first)].decode("utf-8", "replace").rstrip("\r"))
    body, last = data[first + 1 : end], data[end + 1 :]
    if fields is None or len(fields) < 2 or not body or re.match(_PREFIX.encode(), body[:200]):
        return None
    names = [f"c{i}" for i in range(len(fields))]
    rows = body.count(b"\n") + 1
    if last.count(b",") == len(fields) - 1:
        body, rows, last = body + b"\n" + last, rows + 1, b""
    try:
        cells = pl.read_csv(body, has_header=False, quote_char=None, schema=dict.fromkeys(names, pl.String))
    except pl.exceptions.PolarsError:
        return None
    # The reader refuses longer rows and fills up shorter ones: these are told by their commas, headers by their first cell.
    if cells.height != rows or body.count(b",") != rows * (len(fields) - 1) or (cells["c0"] == fields[0].printed).any():
        return None
    torn = [(rows + 2, "cut off in mid-row", last.decode("utf-8", "replace"))] if last.strip() else []
    cells = cells.with_columns(telemetry.measured(pl.all())).with_row_index("line", offset=2)
    nothing = pl.DataFrame(schema={"line": pl.Int64, "text": pl.String})
    return [(fields, cells.with_columns(pl.col("line").cast(pl.Int64)))], nothing, torn


def _parts(given: Input) -> Parts:
    """Any other file, line by line: headers that come again, prefixes, noise, no header at all."""
    lines = _lines(given.data())
    blocks, noise = _blocks(given, lines)
    torn: list[tuple[int, str, str]] = []
    parts: list[tuple[list[Field], pl.DataFrame]] = []
    for fields, rows in blocks:
        whole, cut = _cut(rows, len(fields), lines)
        torn += cut
        parts.append((fields, _cells(whole, len(fields))))
    return parts, noise, torn


def _lines(data: bytes) -> pl.DataFrame:
    """All lines that are not blank, with their 1-based numbers: columns line, text."""
    text = pl.Series("text", data.decode("utf-8", "replace").split("\n"), dtype=pl.String)
    frame = pl.DataFrame({"line": pl.int_range(1, text.len() + 1, dtype=pl.Int64, eager=True), "text": text})
    frame = frame.with_columns(pl.col("text").str.strip_chars_end("\r"))
    frame = frame.filter(pl.col("text").str.strip_chars() != "")
    if frame.height and frame["text"].head(50).str.contains(_PREFIX + r"(\d{4}[/-]|timestamp|index|\d+,)").any():
        frame = frame.with_columns(pl.col("text").str.extract(r"^([A-Za-z][\w.-]*): ", 1).alias("host"))
        frame = frame.with_columns(pl.col("text").str.replace(_PREFIX, ""))
    return frame


def _bare(line: str) -> str:
    return re.sub(_PREFIX, "", line, count=1) if re.match(_PREFIX + r"(\d{4}[/-]|timestamp|index|\d+,)", line) else line


def _blocks(given: Input, lines: pl.DataFrame) -> tuple[list[tuple[list[Field], pl.DataFrame]], pl.DataFrame]:
    """Rows under each distinct header, and the lines that are neither header nor row."""
    # NOTE: a header is printed once, or before every row when a shell loop calls nvidia-smi; distinct ones are few.
    candidate = lines.filter(pl.col("text").str.contains(smi_columns.HEADER))
    heads = {text: smi_columns.header(text) for text in candidate["text"].unique().to_list()}
    known = {text: fields for text, fields in heads.items() if fields is not None}
    if not known:
        sample = _sample(lines)
        fields = smi_columns.headerless(sample)
        if fields is None and smi_columns.like_rows(sample):
            raise InputError(
                f"{given.path} holds nvidia-smi rows without a header or units whose columns cannot be told apart: put the list "
                "that was given to --query-gpu before them as the first line, or log with --format=csv"
            )
        if fields is None:
            return [], lines
        row = pl.col("text").str.count_matches(",", literal=True) == len(fields) - 1
        return [(fields, lines.filter(row))], lines.filter(~row)
    marked = lines.with_columns(
        pl.when(pl.col("text").is_in(list(known))).then(pl.col("text")).forward_fill().alias("under"),
        pl.col("text").is_in(list(known)).alias("is_header"),
    ).filter(~pl.col("is_header"))
    blocks: list[tuple[list[Field], pl.DataFrame]] = []
    noise = [marked.filter(pl.col("under").is_null())]
    for text, fields in known.items():
        under = marked.filter(pl.col("under") == text)
        row = _looks_like_row(len(fields))
        blocks.append((fields, under.filter(row)))
        noise.append(under.filter(~row))
    return [b for b in blocks if b[1].height], pl.concat(noise).sort("line")


def _sample(lines: pl.DataFrame) -> list[str]:
    """Lines from five places in the file: its head may lie before the load began."""
    starts = [lines.height * k // 5 for k in range(5)] if lines.height > 4000 else [0]
    return [text for start in starts for text in lines["text"].slice(start, 4000 // len(starts))]


def _looks_like_row(width: int) -> pl.Expr:
    if width == 1:
        return pl.col("text").str.contains(r"^\s*(\d+(\.\d+)?\s*(%|[A-Za-z]+)?|\[?N/A\]?|\[[A-Za-z ]+\])\s*$")
    return pl.col("text").str.count_matches(",", literal=True) >= 1


def _cut(rows: pl.DataFrame, width: int, lines: pl.DataFrame) -> tuple[pl.DataFrame, list[tuple[int, str, str]]]:
    """Rows with as many cells as the header, and the others as rejects."""
    right = pl.col("text").str.count_matches(",", literal=True) == width - 1
    wrong = rows.filter(~right)
    last = lines["line"][-1]
    return rows.filter(right), [
        (n, "cut off in mid-row" if n == last else f"not {width} cells as in the header", text)
        for n, text in wrong.select("line", "text").iter_rows()
    ]


def _cells(rows: pl.DataFrame, width: int) -> pl.DataFrame:
    """One text column per field, named by position, beside line and the host of a prefix."""
    names = [f"c{i}" for i in range(width)]
    split = pl.col("text").str.splitn(",", width).struct.rename_fields(names)
    return (
        rows.with_columns(split.alias("cells"))
        .drop("text")
        .unnest("cells")
        .with_columns(telemetry.measured(pl.col(*names)))
    )


def _retired(cells: pl.DataFrame, fields: Sequence[Field], options: Options) -> pl.DataFrame:
    """Retired pages as events; a row whose address is [N/A] says that there are none."""
    at = {f.name: f"c{i}" for i, f in enumerate(fields)}
    pages = cells.filter(pl.col(at["retired_pages.address"]).is_not_null())
    if not pages.height:
        return pl.DataFrame()
    when = at.get("retired_pages.timestamp") or at.get("timestamp")
    time = telemetry.clock(pages[when], options.tz)[0] if when else pl.lit(None, dtype=pl.Float64)
    cause = (
        pl.col(at["retired_pages.cause"]).str.strip_chars() if "retired_pages.cause" in at else pl.lit("unknown cause")
    )
    identity = at.get("gpu_bus_id") or at.get("pci.bus_id")
    place = (
        pl.col(identity).map_elements(telemetry.bus, return_dtype=pl.String)
        if identity
        else pl.lit(None, dtype=pl.String)
    )
    return pages.select(
        "line", pl.lit("message").alias("kind"), pl.lit(time).alias("time") if isinstance(time, pl.Series) else time.alias("time"),
        place.alias("bus_id"), pl.concat_str(pl.lit("retired page: "), cause).alias("text"),
    )  # fmt: skip


def _noise(noise: pl.DataFrame) -> tuple[list[pl.DataFrame], list[str], list[tuple[int, str, str]]]:
    """Lines that are no rows: lost GPUs become events, the rest rejects."""
    lost = noise.filter(pl.col("text").str.contains(_LOST))
    events = lost.select(
        "line", pl.lit("gpu_lost").alias("kind"), pl.col("text").str.slice(0, 300),
        pl.col("text").str.extract(r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.\d)?)", 1)
        .map_elements(telemetry.bus, return_dtype=pl.String).alias("bus_id"),
    )  # fmt: skip
    rest = noise.filter(~pl.col("text").str.contains(_LOST))
    quiet = rest.filter(~pl.col("text").str.contains(r"(?i)^nohup: |^\s*$"))
    said = ["nohup banner skipped"] if quiet.height < rest.height else []
    return (
        [events] if events.height else [],
        said,
        [(n, "no row of the table", text) for n, text in quiet.select("line", "text").head(10_000).iter_rows()],
    )
