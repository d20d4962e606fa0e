from __future__ import annotations

import numpy as np
import polars as pl

from gdiag.measures.run import RunView
from gdiag.model import Report, Table
from gdiag.tables.thermal import MOST, STRIP, THROTTLED, with_tables
from tests.analyzers.made_telemetry import card, noisy, timed, watched


def tables(run: RunView) -> list[Table]:
    return list(with_tables(Report(), run.records).tables)


def hot() -> pl.DataFrame:
    late = np.arange(800) >= 600
    return card(
        1,
        reasons=np.where(late, 32.0, 0.0),
        temperature=np.where(late, 88.0, 60.0),
        clock_sm=np.where(late, 1500.0, 1980.0),
    )


def test_a_line_per_gpu_with_share_and_reason() -> None:
    gpus = tables(watched(timed(noisy()), [card(0), hot()]))[0]
    names = [c.name for c in gpus.columns]
    assert [c.unit for c in gpus.columns][names.index("clock")] == "MHz"
    row = dict(zip(names, gpus.rows[1], strict=True))
    assert (row["gpu"], row["slow"], row["by"], row["max"]) == (1, 25.0, "heat", 88)


def test_the_strip_shows_when_it_throttled() -> None:
    strips = tables(watched(timed(noisy()), [card(0), hot()]))[1]
    cool, warm = (str(row[-1]) for row in strips.rows)
    assert len(cool) == len(warm) == STRIP
    assert THROTTLED not in cool
    assert set(warm[-9:]) == {THROTTLED}
    assert THROTTLED not in warm[:29]


def test_what_cannot_be_judged_is_said() -> None:
    bare = card(0).select("time", "gpu", "temperature")
    judged = tables(watched(timed(noisy()), [bare]))[-1]
    answers = {str(row[0]): str(row[1]) for row in judged.rows}
    assert answers["thermal throttling"].startswith("cannot be judged: no event reasons, no SM clock")
    assert answers["memory errors"].startswith("not monitored")
    assert answers["load"].startswith("assumed")


def test_of_a_fleet_the_worst_are_shown() -> None:
    cards = [card(g, 300.0, host=f"node-{g // 8:02d}") for g in range(64)]
    gpus = tables(watched(timed(noisy(200)), [*cards, hot().with_columns(pl.lit("node-99").alias("host"))]))[0]
    assert len(gpus.rows) == MOST
    assert f"{MOST} of 65" in gpus.title
    assert "node-99" in [row[0] for row in gpus.rows]


def test_a_run_without_telemetry_has_no_tables() -> None:
    run = watched(timed(noisy()), [card(0)])
    assert with_tables(Report(), RunView(run.run, run.records).records).tables != ()
    from tests.analyzers import made_runs

    assert tables(made_runs.view({"loss": [1.0, 2.0]})) == []


def test_of_one_sample_no_strip_is_drawn_and_that_is_said() -> None:
    found = tables(watched(timed(noisy()), [card(0, 5.0), card(1, 5.0)]))
    assert not any("over time" in table.title for table in found)
    answers = {str(row[0]): str(row[1]) for row in found[-1].rows}
    assert answers["time"].startswith("one sample: nothing over time can be judged")
