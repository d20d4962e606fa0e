"""Clocks that fall below a GPU's own earlier level under load, where no event reason says why.

Under load an NVIDIA GPU runs at its highest clock unless heat, power or somebody holds it back; its own past is a peer that
every GPU has, also where all of them slow down at once. What then stands at its limit tells which it was: the temperature,
or the power. Where power stands at a limit that is not lowered, the clock is what that limit gives, and nothing is wrong. A
limit counts as lowered against the default one, also where it never changed, and against the limit before the fall where no
default is logged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from gdiag.measures.gpu_health import Unit
from gdiag.measures.throttling import AT_LIMIT, HOT_MARGIN, KEYS, MARGIN_LEFT, Partial

Why = Literal["heat", "power limit", "unknown"]
LOWERED: Final = 0.95
"""Share of the earlier or the default limit below which a power limit counts as lowered."""
_STEADY: Final = 5
"""Bins of the running median that a level is taken from."""
_SUSTAINED: Final = 0.8
"""Share of the next twice `least` bins that must be low."""
_WORK: Final = 4.0
"""Power falls no faster than with this power of the clock; where it does, there is less work."""


@dataclass(frozen=True, slots=True)
class Drop:
    """GPUs whose clocks fall at the same time, for the same reason."""

    units: tuple[Unit, ...]
    why: Why
    start: float
    end: float
    clock_before: float
    clock: float
    temperature: float | None
    """Highest inside [°C]."""
    limit: float | None
    """Temperature at which the model lowers its clocks [°C], None where it is not known."""
    power: float | None
    """Mean inside [W]."""
    power_limit: float | None
    power_limit_before: float | None
    default_limit: float | None
    """The limit that the board has by default, None where it is not logged [W]."""
    share: float
    """Share of the loaded bins that are low."""
    lacking: tuple[str, ...]
    """What would tell why, and was not logged."""

    @property
    def usual_limit(self) -> float | None:
        """What the power limit is held against [W]: the default, else the one before the fall."""
        return self.default_limit or self.power_limit_before


def drops(part: Partial, *, ratio: float = 0.95, least: int = 10) -> list[Drop]:
    """Sustained falls below `ratio` of the level of at least `least` earlier bins; none at a power limit that is not lowered."""
    loaded = part.bins.filter(
        (pl.col("judged") == 0) & (pl.col("clock_rows") > 0) & (2 * pl.col("busy") >= pl.col("rows"))
        & (pl.col("utilization_most").is_not_null() | (pl.col("limit_least").is_not_null() & (pl.col("power_rows") > 0)))
    ).with_columns((pl.col("clock_sum") / pl.col("clock_rows")).alias("clock"))  # fmt: skip
    over = list(KEYS)
    # Of a fleet, only those that ever fell are looked at over time.
    span = loaded.group_by(over).agg(pl.col("clock").min().alias("low"), pl.col("clock").max().alias("high"))
    fell = span.filter(pl.col("low") < ratio * pl.col("high"))
    if not fell.height:
        return []
    rows = (
        loaded.join(fell, on=over, how="semi", nulls_equal=True)
        .sort(*over, "bin")
        .with_columns(
            pl.col("clock").rolling_median(_STEADY).cum_max().shift(1).over(over).alias("level"),
            pl.int_range(pl.len()).over(over).alias("at"),
        )
        .with_columns((pl.col("clock") < ratio * pl.col("level")).fill_null(value=False).alias("low"))
        .with_columns(
            pl.col("low").cast(pl.Float64).reverse().rolling_mean(2 * least).reverse().over(over).alias("ahead"),
            (~pl.col("low")).cast(pl.Int32).cum_sum().over(over).alias("high"),
        )
        .with_columns(
            ((pl.col("ahead") >= _SUSTAINED) & pl.col("low") & (pl.col("high") >= least + _STEADY)).cum_max().over(over).alias("fallen")
        )
    )  # fmt: skip
    fallen = rows.filter(pl.col("fallen") & pl.col("low")).select(over).unique()
    parts = rows.join(fallen, on=over, how="semi", nulls_equal=True).partition_by(over, maintain_order=True)
    found = [drop for own in parts if (drop := _drop(part, own)) is not None]
    return _together(found, part.width)


def _drop(part: Partial, own: pl.DataFrame) -> Drop | None:
    """What one GPU's fall tells; None where its power stands at a limit that is not lowered."""
    inside = own.filter(pl.col("fallen") & pl.col("low"))
    host, gpu = inside["host"][0], int(inside["gpu"][0])
    before = own.filter(pl.col("at") < inside["at"][0])
    known = part.units.filter(pl.col("host").eq_missing(pl.lit(host)) & (pl.col("gpu") == gpu))
    limit = _number(known["slowdown"].max())
    heat, margin = _number(inside["temperature_most"].max()), _number(inside["margin_least"].min())
    power, power_before = _mean(inside, "power"), _mean(before, "power")
    capped, capped_before = _number(inside["limit_least"].median()), _number(before["limit_most"].median())
    clock, clock_before = float(inside["clock"].mean()), float(inside["level"].max())  # type: ignore[arg-type]
    at_limit = power is not None and capped is not None and power >= AT_LIMIT * capped
    default = _number(own["default_limit"].max())
    usual = default or capped_before
    lowered = capped is not None and usual is not None and capped < LOWERED * usual
    hot = (heat is not None and limit is not None and heat >= limit - HOT_MARGIN) or (
        margin is not None and margin <= MARGIN_LEFT
    )
    if at_limit and not lowered:
        return None
    idler = power is not None and power_before and power < 0.9 * power_before * (clock / clock_before) ** _WORK
    why: Why = "power limit" if at_limit else "heat" if hot and not idler else "unknown"
    lacking = ["event reasons"]
    lacking += (
        ["temperature"]
        if heat is None and margin is None
        else ["the model's name, for its limit"]
        if limit is None and margin is None
        else []
    )
    lacking += [] if power is not None else ["power and its limit"] if capped is None else ["power"]
    low_share = inside.height / own.height
    start, end = float(inside["first_time"].min()), float(inside["last_time"].max())  # type: ignore[arg-type]
    return Drop(
        ((host, gpu),), why, start, end, clock_before, clock, heat, limit, power, capped, capped_before, default, low_share, tuple(lacking)
    )  # fmt: skip


def _together(found: list[Drop], width: float) -> list[Drop]:
    """Drops of one kind that overlap, as one."""
    merged: list[Drop] = []
    for drop in sorted(found, key=lambda d: (d.why, d.start)):
        last = merged[-1] if merged else None
        if last is None or last.why != drop.why or drop.start > last.end + 10 * width:
            merged.append(drop)
            continue
        n = len(last.units)

        def mean(a: float | None, b: float | None, n: int = n) -> float | None:
            return None if a is None or b is None else (a * n + b) / (n + 1)

        merged[-1] = Drop(
            (*last.units, *drop.units), last.why, min(last.start, drop.start), max(last.end, drop.end),
            (last.clock_before * n + drop.clock_before) / (n + 1), (last.clock * n + drop.clock) / (n + 1),
            max((t for t in (last.temperature, drop.temperature) if t is not None), default=None), last.limit or drop.limit,
            mean(last.power, drop.power), last.power_limit, last.power_limit_before, last.default_limit, (last.share * n + drop.share) / (n + 1),
            tuple(dict.fromkeys((*last.lacking, *drop.lacking))),
        )  # fmt: skip
    return merged


def _mean(bins: pl.DataFrame, name: str) -> float | None:
    rows = float(bins[f"{name}_rows"].sum())
    return float(bins[f"{name}_sum"].sum()) / rows if rows else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
