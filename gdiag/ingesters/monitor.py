"""Monitors of Stable-Baselines3: a row an episode below a line that gives the start."""

from __future__ import annotations

import json
from typing import Final

import polars as pl

from gdiag.ingesters.columns import LINE

_LONGEST: Final = 1e9
"""Steps above which the length of an episode is a damaged cell."""


def episodes(frame: pl.DataFrame, data: bytes) -> tuple[pl.DataFrame, list[str]]:
    """Stable-Baselines3 monitor: a row is an episode of `l` steps, `t` the seconds since the start that the line above gives.

    Every program writes such a line of its own, so that a second one begins another run. Where `t` falls back without one
    (a monitor that was told to append), a program of unknown start goes on: its rows have no time.
    """
    starts = [(number, _start(line)) for number, line in enumerate(data.split(b"\n"), 1) if line.startswith(b"#{")]
    figure = pl.col("l").cast(pl.Float64, strict=False)
    length = pl.when(figure.is_between(0, _LONGEST)).then(figure.round()).otherwise(0).cast(pl.Int64)
    heads = pl.DataFrame(starts, schema={"head": pl.Int64, "start": pl.Float64}, orient="row")
    frame = frame.join_asof(heads, left_on=LINE, right_on="head", check_sortedness=False)
    since = pl.col("t").cast(pl.Float64, strict=False)
    # Of a start that nobody knows the seconds are the run's own clock, but none beside other runs' dates.
    start = pl.col("start") if heads["start"].count() else pl.lit(0.0)
    fell = (since < since.shift()).fill_null(False).cum_max().over("head")
    frame = frame.with_columns(
        step=length.cum_sum().over("head"),
        time=pl.when(fell.not_()).then(since + start),
        run=pl.when(pl.lit(len(starts) > 1)).then(pl.col("head").rank("dense").cast(pl.String)),
    )  # fmt: skip
    notes = ["episodes of a reinforcement-learning monitor: the step counts their steps; rewards are not judged"]
    if len(starts) > 1:
        notes.append(f"{len(starts)} runs one after the other, told apart by the lines that give their start")
    if frame.select(fell).to_series().any():
        notes.append("the clock falls back: the episodes from there on are of a later program and have no time")
    return frame.drop("l", "t", "head", "start", *(["run"] if len(starts) < 2 else [])), notes


def _start(line: bytes) -> float | None:
    """Unix seconds at which a monitor's program started, None where its line is damaged."""
    try:
        start = json.loads(line.lstrip(b"#"))["t_start"]
    except (ValueError, KeyError, TypeError):
        return None
    return float(start) if isinstance(start, int | float) else None
