"""GPUs that stand out: slower or hotter than their peers, fallen silent, or with memory errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from gdiag.measures.gpu_health import LEAST_ROWS, Unit
from gdiag.measures.throttling import KEYS, Partial

WARMER: Final = 10.0
"""Degrees above its peers from which a GPU's heat explains its lower clock: at a lower clock it should be cooler than they are."""


@dataclass(frozen=True, slots=True)
class Outlier:
    """A GPU that runs slower than its peers at the same moments, for no reason that it reports."""

    unit: Unit
    ratio: float
    """Its clock over the peers' median."""
    share: float
    """Share of the comparable moments at which it is slower."""
    clock: float
    peers: float
    start: float
    end: float
    judged: bool
    """Whether event reasons were logged at those moments."""
    temperature: float | None
    """Its mean core temperature at those moments [°C]."""
    warmer: float | None
    """By how much that is above the median of its peers."""

    @property
    def throttled(self) -> bool:
        """Slow and far hotter than its peers, with no reason logged that could say so or deny it."""
        return not self.judged and self.warmer is not None and self.warmer >= WARMER


@dataclass(frozen=True, slots=True)
class Lost:
    """A GPU whose samples stop while others of its host go on."""

    unit: Unit
    last_seen: float
    others_until: float


@dataclass(frozen=True, slots=True)
class EccStep:
    """An ECC counter that rises, or stands above zero from the first sample on."""

    unit: Unit
    corrected: bool
    time: float
    """When the higher count was first seen [s as logged]."""
    before: float
    after: float
    from_start: bool


def clock_outliers(part: Partial, *, ratio: float = 0.95, share: float = 0.2, least: int = 10) -> list[Outlier]:
    """GPUs slower than the median of at least three peers of their model, outside all reported reasons."""
    free = (pl.col("thermal") + pl.col("hot_slow") + pl.col("power_cap") + pl.col("brake") + pl.col("hardware")) == 0
    clocked = (
        part.bins.filter((pl.col("clock_rows") > 0) & (2 * pl.col("busy") >= pl.col("rows")))
        .join(part.units.select(*KEYS, "model"), on=list(KEYS), how="left", nulls_equal=True)
        .with_columns(
            (pl.col("clock_sum") / pl.col("clock_rows")).alias("clock"),
            (pl.col("temperature_sum") / pl.col("temperature_rows")).fill_nan(None).alias("heat"),
        )
        .with_columns(
            pl.col("clock").median().over("bin", "model").alias("peers"),
            pl.len().over("bin", "model").alias("n"),
            (pl.col("heat") - pl.col("heat").median().over("bin", "model")).alias("warmer"),
        )
        .filter((pl.col("n") >= 4) & free)
    )
    slow = pl.col("clock") < ratio * pl.col("peers")
    rows = (
        clocked.group_by(*KEYS)
        .agg(
            slow.mean().alias("share"), pl.len().alias("n"), pl.col("clock").filter(slow).mean(),
            pl.col("peers").filter(slow).mean(), pl.col("first_time").filter(slow).min().alias("start"),
            pl.col("last_time").filter(slow).max().alias("end"), (pl.col("judged").filter(slow).sum() > 0).alias("judged"),
            pl.col("heat", "warmer").filter(slow).mean(),
        )
        .filter((pl.col("share") >= share) & (pl.col("n") >= least))
        .sort(*KEYS)
    )  # fmt: skip
    return [
        Outlier(
            (r["host"], r["gpu"]),
            r["clock"] / r["peers"],
            r["share"],
            r["clock"],
            r["peers"],
            r["start"],
            r["end"],
            r["judged"],
            r["heat"],
            r["warmer"],
        )
        for r in rows.iter_rows(named=True)
    ]


def heat_outliers(part: Partial, *, degrees: float) -> dict[Unit, float]:
    """GPUs on average at least `degrees` hotter than the median of their peers at the same moments, and by how much."""
    rows = (
        part.bins.filter((pl.col("temperature_rows") > 0) & (pl.col("busy") > 0))
        .join(part.units.select(*KEYS, "model"), on=list(KEYS), how="left", nulls_equal=True)
        .with_columns((pl.col("temperature_sum") / pl.col("temperature_rows")).alias("t"))
        .with_columns(
            (pl.col("t") - pl.col("t").median().over("bin", "model")).alias("above"),
            pl.len().over("bin", "model").alias("n"),
        )
        .filter(pl.col("n") >= 4)
        .group_by(*KEYS)
        .agg(pl.col("above").mean())
        .filter(pl.col("above") >= degrees)
    )
    return {(h, int(g)): float(a) for h, g, a in rows.iter_rows()}


def lost(part: Partial, *, seconds: float = 60.0, readings: int = 5) -> list[Lost]:
    """GPUs whose samples end at least `seconds` and `readings` intervals before those of others on their host."""
    if not part.timed:
        return []
    last = (
        part.bins.group_by(*KEYS)
        .agg(pl.col("last_time").max(), pl.col("rows").sum())
        .join(part.units.select(*KEYS, "source"), on=list(KEYS), how="left", nulls_equal=True)
        # GPUs logged into files of their own may end at different times for other reasons.
        .with_columns(pl.col("last_time").max().over("host", "source").alias("others"))
    )
    limit = max(seconds, readings * part.width)
    gone = last.filter((pl.col("others") - pl.col("last_time") > limit) & (pl.col("rows") >= LEAST_ROWS)).sort(*KEYS)
    return [Lost((h, int(g)), t, o) for h, g, t, o in gone.select(*KEYS, "last_time", "others").iter_rows()]


def ecc_steps(part: Partial) -> list[EccStep]:
    """First rise of each GPU's ECC counters, and counters that stand above zero from the start."""
    found: list[EccStep] = []
    for corrected in (False, True):
        name = "ecc_corrected" if corrected else "ecc_uncorrected"
        known = part.bins.filter(pl.col(f"{name}_most").is_not_null()).sort("bin")
        known = known.with_columns(pl.col(f"{name}_most").shift(1).over(list(KEYS)).alias("was"))
        for raw in known.group_by(*KEYS, maintain_order=True):
            bins = raw[1]
            first, top = float(bins[f"{name}_least"][0]), float(bins[f"{name}_most"].max())  # type: ignore[arg-type]
            if top <= 0:
                continue
            unit: Unit = (bins["host"][0], int(bins["gpu"][0]))
            rises = bins.filter(
                (pl.col(f"{name}_most") > pl.col("was")) | (pl.col(f"{name}_most") > pl.col(f"{name}_least"))
            )
            if rises.height:
                row = rises.row(0, named=True)
                before = min(row["was"] if row["was"] is not None else row[f"{name}_least"], row[f"{name}_least"])
                found.append(EccStep(unit, corrected, float(row["first_time"]), float(before), top, False))
            if first > 0:
                found.append(EccStep(unit, corrected, float(bins["first_time"][0]), first, first, True))
    return found
