"""Cells of GPU telemetry in CSV form → rows of `gpus`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import polars as pl

from gdiag.ingesters import smi_columns, telemetry
from gdiag.ingesters.reading import Options
from gdiag.ingesters.smi_columns import Field
from gdiag.reference import gpus as reference

_REASON: Final = r"clocks_(?:event|throttle)_reasons\.(\w+)"
_COUNTER: Final = r"clocks_(?:event|throttle)_reasons_counters\.(\w+)"


def canonical(
    cells: pl.DataFrame, fields: Sequence[Field], options: Options, path: str
) -> tuple[pl.DataFrame, list[tuple[int, str, str]], list[str], dict[str, str]]:
    """Rows of `gpus`, rejects, notes, and canonical → printed names, from text cells c0, c1, ….

    A row with a cell that is no number loses that cell and is listed among the rejects.
    """
    at: dict[str, int] = {}
    for position, f in enumerate(fields):
        at.setdefault(f.name, position)
    named: dict[str, str] = {}
    out: dict[str, pl.Series] = {"line": cells["line"]}
    bad: list[tuple[int, str, str]] = []
    notes: list[str] = []

    def take(canon: str, names: Sequence[str]) -> int | None:
        wanted = options.columns.get(canon)
        found = next(
            (at[n] for n in ((wanted.lower(), *names) if wanted else names) if n in at and _alive(cells, at[n])), None
        )
        if found is not None:
            named[canon] = fields[found].printed
        return found

    for canon, names in smi_columns.NUMERIC.items():
        if (i := take(canon, names)) is not None:
            out[canon] = telemetry.numbers(cells, f"c{i}", fields[i].unit)
            broken = telemetry.unreadable(cells, f"c{i}", out[canon])
            if broken.any():
                rows = cells.filter(broken).head(1000)
                bad += [
                    (n, f"{fields[i].printed} is no number", t) for n, t in rows.select("line", f"c{i}").iter_rows()
                ]
    for canon, names in smi_columns.FLAGS.items():
        if (j := take(canon, names)) is not None:
            cell = cells[f"c{j}"].str.to_lowercase()
            out[canon] = cell.replace_strict(
                {"yes": True, "no": False, "1": True, "0": False}, default=None, return_dtype=pl.Boolean
            )
    out |= _ecc(cells, fields, named)
    out |= _reasons(cells, fields, named)
    frame = pl.DataFrame(out)
    texts = {canon: k for canon, names in smi_columns.TEXT.items() if (k := take(canon, names)) is not None}
    frame = _identity(frame, cells, texts, path, notes)
    frame = _timed(frame, cells, texts, options, notes)
    return telemetry.canonical(frame), bad, notes, named


def _identity(
    frame: pl.DataFrame, cells: pl.DataFrame, texts: dict[str, int], path: str, notes: list[str]
) -> pl.DataFrame:
    for canon in ("host", "uuid", "bus_id", "model"):
        if canon in texts:
            frame = frame.with_columns(cells[f"c{texts[canon]}"].alias(canon))
    if "bus_id" in frame.columns:
        spelled = {b: telemetry.bus(b) for b in frame["bus_id"].unique().drop_nulls()}
        frame = frame.with_columns(pl.col("bus_id").replace_strict(spelled, default=None, return_dtype=pl.String))
    if "host" not in frame.columns and "host" in cells.columns and cells["host"].count():
        frame = frame.with_columns(cells["host"])
    if "host" not in frame.columns and (host := telemetry.host_in_name(path)):
        frame = frame.with_columns(pl.lit(host).alias("host"))
        notes.append(f"host {host} taken from the file's name")
    if "gpu" in texts:
        index = cells[f"c{texts['gpu']}"].str.extract(r"(\d+)$", 1).cast(pl.Int32, strict=False)
        if index.count():
            return frame.with_columns(index.alias("gpu"))
    for key in ("bus_id", "uuid"):
        if key in frame.columns and frame[key].count():
            order = (
                sorted(frame[key].unique().drop_nulls())
                if key == "bus_id"
                else frame[key].unique(maintain_order=True).drop_nulls().to_list()
            )
            notes.append(f"no index column: GPUs numbered by {'bus id' if key == 'bus_id' else 'their first row'}")
            return frame.with_columns(
                pl.col(key)
                .replace_strict({k: i for i, k in enumerate(order)}, default=None, return_dtype=pl.Int32)
                .alias("gpu")
            )
    notes.append("no index column: rows cannot be told apart by GPU")
    return frame


def _timed(
    frame: pl.DataFrame, cells: pl.DataFrame, texts: dict[str, int], options: Options, notes: list[str]
) -> pl.DataFrame:
    if "time" not in texts:
        notes.append("no timestamp column: nothing can be placed in time")
        return frame
    time, known = telemetry.clock(cells[f"c{texts['time']}"], options.tz)
    if not known:
        notes.append("local time without a zone")
    frame = frame.with_columns(time.alias("time"), pl.lit(known).alias("zone_known"))
    if "gpu" not in frame.columns:
        # NOTE: rows of one reading follow each other within milliseconds; a single GPU never has two of them.
        same = (pl.col("time").diff().abs() < 0.2) & (pl.col("time").diff() >= 0)
        tick = (~same).fill_null(True).cum_sum()
        place = frame.select((pl.int_range(pl.len()).over(tick)).cast(pl.Int32).alias("gpu"), tick.alias("tick"))
        sizes = place.group_by("tick").len()["len"]
        if (sizes > 1).mean() > 0.8:  # type: ignore[operator]
            notes.append("no index column: GPUs numbered by their order within a reading")
            frame = frame.with_columns(place["gpu"])
    return frame


def _ecc(cells: pl.DataFrame, fields: Sequence[Field], named: dict[str, str]) -> dict[str, pl.Series]:
    """Volatile totals, else aggregate totals, else the sum of the parts that are logged."""
    out: dict[str, pl.Series] = {}
    for kind in ("corrected", "uncorrected"):
        for scope in ("volatile", "aggregate"):
            stem = f"ecc.errors.{kind}.{scope}."
            parts = [i for i, f in enumerate(fields) if f.name == stem + "total" and _alive(cells, i)] or [
                i
                for i, f in enumerate(fields)
                if f.name.removeprefix(stem) in smi_columns.ECC_PARTS and f.name.startswith(stem) and _alive(cells, i)
            ]
            if parts:
                counts = pl.DataFrame([telemetry.numbers(cells, f"c{i}") for i in parts])
                out[f"ecc_{kind}"] = counts.select(pl.sum_horizontal(pl.all(), ignore_nulls=True)).to_series()
                out[f"ecc_{kind}"] = out[f"ecc_{kind}"].set(
                    counts.select(pl.all_horizontal(pl.all().is_null())).to_series(), None
                )
                named[f"ecc_{kind}"] = ", ".join(fields[i].printed for i in parts)
                break
    return out


def _reasons(cells: pl.DataFrame, fields: Sequence[Field], named: dict[str, str]) -> dict[str, pl.Series]:
    """The reason mask from its own column, else put together from the columns of single reasons."""
    bits = {r.name: r.bit for r in reference.reasons()}
    out: dict[str, pl.Series] = {}
    mask = pl.Series("reasons", [None] * cells.height, dtype=pl.Int64)
    used: list[str] = []
    for i, f in enumerate(fields):
        found = re.fullmatch(_REASON, f.name)
        if not found or not _alive(cells, i):
            continue
        cell = cells[f"c{i}"]
        if found[1] == "active":
            whole = cell.str.strip_prefix("0x").str.to_integer(base=16, strict=False)
            mask = whole.cast(pl.Int64).fill_null(mask) if whole.count() else mask
            used.append(f.printed)
        elif found[1] in bits:
            active = cell.replace_strict(
                {"Active": bits[found[1]], "Not Active": 0, "1": bits[found[1]], "0": 0},
                default=None,
                return_dtype=pl.Int64,
            )
            both = pl.DataFrame({"a": mask, "b": active})
            mask = both.select(pl.coalesce(pl.col("a") | pl.col("b"), "a", "b")).to_series()
            used.append(f.printed)
    if used:
        out["reasons"] = mask
        named["reasons"] = ", ".join(used)
    counters = [i for i, f in enumerate(fields) if (c := re.fullmatch(_COUNTER, f.name)) and c[1] in (
        "sw_thermal_slowdown", "hw_thermal_slowdown") and _alive(cells, i)]  # fmt: skip
    if counters:
        seconds = pl.DataFrame([telemetry.numbers(cells, f"c{i}", fields[i].unit or "us") for i in counters])
        out["throttle_time"] = seconds.select(pl.sum_horizontal(pl.all())).to_series()
        named["throttle_time"] = ", ".join(fields[i].printed for i in counters)
    return out


def _alive(cells: pl.DataFrame, i: int) -> bool:
    """Whether a column holds anything measured."""
    return cells[f"c{i}"].count() > 0
