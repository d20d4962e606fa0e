"""Boxes of the OpenAI baselines logger and its heirs (guided-diffusion, Stable-Baselines3): `| loss | 16.6 |` rows.

Values bear three digits (`1.03e+03`): a step number is put right again from the interval between the first boxes.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from gdiag.ingesters import console
from gdiag.ingesters.aliases import claim
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "openai-logger"
_SNIFF: Final = re.compile(rb"(?m)^-{8,}\s*\n(?:\| [\w ./-]+\|[^|\n]*\|\s*\n){2,}-{8,}\s*$")
_ROW: Final = r"^\|\s*([\w ./%-]*?\S)\s*\|\s*(\S*)\s*\|\s*$"
_STEPS: Final = (
    "step",
    "total_timesteps",
    "timesteps",
    "iterations",
    "misc/total_timesteps",
    "time/total_timesteps",
    "steps",
    "nupdates",
)


def recognise(given: Input) -> float:
    """By its boxes."""
    return min(console.recognise_by(given, _SNIFF, (b"--------",)), 0.9)


def read(given: Input, options: Options) -> Reading:
    """One row per box; a box without its lower edge (the file was cut) is not used."""
    table = console.lines_of(given)
    edge = pl.col("text").str.contains(r"^-{8,}\s*$")
    inside = table.filter(edge | pl.col("text").str.starts_with("|")).with_columns(edge.alias("edge"))
    inside = inside.with_columns(
        pl.col("edge").cum_sum().alias("box"), pl.col("text").str.extract_groups(_ROW).alias("g")
    ).unnest("g")
    cells = inside.filter(~pl.col("edge") & pl.col("1").is_not_null()).with_columns(
        pl.when(pl.col("1").str.ends_with("/"))
        .then(pl.col("1"))
        .forward_fill()
        .over("box")
        .fill_null("")
        .alias("group")
    )
    cells = cells.filter(pl.col("2") != "").select(
        "line",
        "box",
        (pl.col("group") + pl.col("1")).alias("key"),
        pl.col("2").cast(pl.Float64, strict=False).alias("value"),
    )
    closed = inside.filter("edge")["box"].max()
    cells = cells.filter(pl.col("box") < (closed if isinstance(closed, int) else 0))
    wide = pl.DataFrame(schema={"line": pl.Int64})
    notes: tuple[str, ...] = ("values have three digits",)
    if len(cells):
        first = cells.group_by("box", maintain_order=True).agg(pl.col("line").first())
        values = cells.pivot("key", index="box", values="value", aggregate_function="last", maintain_order=True)
        wide = first.join(values, on="box", maintain_order="left").drop("box")
        name = next((s for s in _STEPS if s in wide.columns), None)
        if name is None:
            wide = wide.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("step"))
            notes = (*notes, "no step in the boxes: boxes are numbered from 0")
        else:
            steps, mended = _whole_steps(wide[name])
            wide = wide.with_columns(steps.alias("step"))
            if mended:
                notes = (*notes, f"{name} is put right from the interval of the first boxes")
    keep = [c for c in wide.columns if c in ("line", "step") or claim(c) is not None or c in options.columns.values()]
    found = Found(
        table.filter(~pl.col("line").is_in(inside["line"].to_list())), wide.select(keep), console.no_rejects()
    )
    return console.finish(given, options, FORMAT, found, notes=notes)


def _whole_steps(printed: pl.Series) -> tuple[pl.Series, bool]:
    """Steps with the digits that were rounded off, where a constant interval explains every printed value."""
    rounded = printed.fill_null(strategy="forward").fill_null(0.0)
    steps = rounded.round().cast(pl.Int64)
    if len(steps) < 3 or float(str(rounded.abs().max())) < 1000:
        return steps, False
    gaps = steps.head(8).diff().drop_nulls()
    if gaps.n_unique() != 1 or gaps[0] <= 0:
        return steps, False
    rebuilt = pl.select(steps[0] + pl.int_range(len(steps), dtype=pl.Int64) * gaps[0]).to_series()
    off = (rebuilt - rounded).abs() <= 0.0051 * rounded.abs() + 0.5
    return (rebuilt, True) if bool(off.all()) else (steps, False)
