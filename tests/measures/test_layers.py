"""Per-layer series: reduction over ranks, sparse rows, history, thresholds, many columns."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.measures.attribution import attribute, contrast, embeddings, layer_events
from gdiag.measures.layers import column_median, layer_table, row_median, scan_layers, spans
from gdiag.schema import KEYS, LayerColumn
from tests.analyzers.made_layers import Floats, catalogue, layered, norms


def frame(step: list[int], rank: list[int | None], **columns: list[float | None]) -> pl.DataFrame:
    keys = {"run": ["r"] * len(step), "source": [0] * len(step), "line": list(range(1, len(step) + 1))}
    return pl.DataFrame({**keys, "step": step, "rank": rank, **columns}, schema_overrides=KEYS)


CATALOGUE = tuple(LayerColumn(name, name, "grad_norm", i, "mlp") for i, name in enumerate(["a", "b"]))


def test_sparse_rows_of_one_step_are_joined_and_ordered() -> None:
    made = layer_table(
        frame([2, 1, 1, 3], [None] * 4, a=[4.0, 1.0, None, None], b=[None, None, 2.0, None]), CATALOGUE, "grad_norm"
    )
    assert made is not None
    assert made.step.tolist() == [1, 2]
    assert made.frame.rows() == [(1.0, 2.0), (4.0, None)]
    assert made.row_near(2)["line"] == 1


def test_the_later_writing_of_a_step_wins() -> None:
    made = layer_table(frame([1, 2, 2], [None] * 3, a=[1.0, 2.0, 9.0], b=[1.0, 2.0, 3.0]), CATALOGUE, "grad_norm")
    assert made is not None
    assert made.frame.rows() == [(1.0, 1.0), (9.0, 3.0)]


def test_ranks_are_reduced_by_their_median_unless_reduced_rows_are_there() -> None:
    ranks = frame([1, 1, 1], [0, 1, 2], a=[1.0, 2.0, 9.0], b=[None, 5.0, None])
    made = layer_table(ranks, CATALOGUE, "grad_norm")
    assert made is not None
    assert made.frame.rows() == [(2.0, 5.0)]
    both = pl.concat([ranks, frame([1], [None], a=[7.0], b=[None])])
    reduced = layer_table(both, CATALOGUE, "grad_norm")
    assert reduced is not None
    assert reduced.frame.rows() == [(7.0,)]


def test_what_was_not_logged_is_no_table() -> None:
    assert layer_table(frame([1], [None], a=[None], b=[None]), CATALOGUE, "grad_norm") is None
    assert layer_table(frame([1], [None], a=[1.0], b=[1.0]), CATALOGUE, "param_norm") is None


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 2**31))
def test_medians_ignore_what_is_missing(rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((rows, columns)) < 0.3, np.nan, rng.normal(size=(rows, columns)))
    for i in range(columns):
        seen = values[:, i][~np.isnan(values[:, i])]
        expected = float(np.median(seen)) if len(seen) else math.nan
        assert column_median(values)[i] == pytest.approx(expected, nan_ok=True)
    assert np.allclose(row_median(values), column_median(values.T), equal_nan=True)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3000), st.integers(8, 100))
def test_spans_cover_every_row_once_and_look_back_only(rows: int, block: int) -> None:
    seen = 0
    for start, stop, begin in spans(rows, block):
        assert start == seen
        assert start < stop <= start + block
        assert 0 <= begin <= start
        assert start - begin <= 2 * block
        seen = stop
    assert seen == rows


def test_a_scaled_log_gives_the_same_changes() -> None:
    made = norms(400)
    plain, scaled = layered(made).layer_scan, layered({n: v * 1e4 for n, v in made.items()}, first=10**6).layer_scan
    assert plain is not None
    assert scaled is not None
    assert np.allclose(plain.change, scaled.change, atol=1e-4)


def spread(rows: int, layers: int, first: int, onset: int, delay: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Layers that follow one of them `delay` rows later, to 0.6-1.2 of its rise."""
    made = {f"blocks.{i}.fc": np.exp(rng.normal(0, 0.15, rows)) * 10 ** rng.uniform(-2, 0) for i in range(layers)}
    for i, name in enumerate(made):
        begin = onset if i == first else onset + delay
        size = 3.0 if i == first else 3.0 * rng.uniform(0.6, 1.2)
        made[name][begin : begin + 8] *= np.exp(size)
    return made


def test_the_earliest_layer_is_named() -> None:
    right = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        first = int(rng.integers(12))
        found = layered(spread(400, 12, first, 300, 1, rng)).attribution(299, 306)
        assert found is not None
        right += found.attributable and found.layers[0] == f"blocks.{first}.fc" and found.step == 300
    assert right >= 18


def test_layers_that_rise_together_are_not_attributable() -> None:
    found = layered(spread(400, 12, 0, 300, 0, np.random.default_rng(1))).attribution(300, 306)
    assert found is not None
    assert not found.attributable
    assert (found.moved, found.total, found.lead) == (12, 12, 0)


def test_layers_logged_seldom_name_nothing_far_away() -> None:
    made = norms(200)
    made["blocks.1.fc"][100] *= 30
    steps = np.arange(200) * 20
    view = layered(made, every=20)
    assert view.layer_scan is not None
    assert attribute(view.layer_scan, int(steps[100]) + 15, int(steps[100]) + 16, before=10) is None
    assert attribute(view.layer_scan, int(steps[100]) + 5, int(steps[100]) + 6, before=10) is not None


@pytest.mark.parametrize("seed", range(5))
def test_healthy_layers_have_no_large_event(seed: int) -> None:
    view = layered(norms(1000, 6, seed))
    assert view.layer_scan is not None
    assert [e for e in layer_events(view.layer_scan, 100) if e.apart > 8] == []


def test_a_layer_alone_after_the_network_came_back_is_another_event() -> None:
    made = norms(400, 12)
    for values in made.values():
        values[250] *= 20
    made["blocks.3.fc"][255] *= 20
    view = layered(made)
    assert view.layer_scan is not None
    together, alone = layer_events(view.layer_scan, 100)
    assert (together.step, together.alone) == (250, False)
    assert (alone.step, alone.layers, alone.alone) == (255, ("blocks.3.fc",), True)
    made["blocks.3.fc"][252] *= 20  # without calm rows in between it is the same event
    view = layered(made)
    assert view.layer_scan is not None
    assert len(layer_events(view.layer_scan, 100)) == 1


def test_a_contrast_shows_what_one_layer_does_against_another() -> None:
    made = norms(300)
    made["wte"][200] *= 6
    for values in made.values():
        values[200] *= 20
    view = layered(made)
    table = view.layer_table("grad_norm")
    assert table is not None
    pair = embeddings(table)
    assert pair == (0, 1)
    change, z = contrast(table, *pair)
    assert np.exp(change[200]) == pytest.approx(6, rel=0.6)
    assert z[200] > 4


def test_without_a_position_embedding_there_is_no_pair() -> None:
    made = norms(100)
    del made["wpe"]
    table = layered(made).layer_table("grad_norm")
    assert table is not None
    assert embeddings(table) is None


def test_two_thousand_healthy_layers_are_quiet() -> None:
    rng = np.random.default_rng(0)
    wide = {f"blocks.{i}.fc": np.exp(rng.normal(0, 0.2, 500)) for i in range(2000)}  # 2,000 columns as in a large model
    assert len(catalogue(wide, "grad_norm")) == 2000
    view = layered(wide)
    assert view.layer_scan is not None
    assert layer_events(view.layer_scan, 100) == []


def test_the_threshold_grows_with_the_layers() -> None:
    few, many = layered(norms(50, 1)).layer_scan, scan_layers(layered(norms(50, 12)).layer_table("grad_norm"))  # type: ignore[arg-type]
    assert few is not None
    assert few.threshold < many.threshold < 8
