"""Sweeps: ranks from ratios, plateau, shape and agreement hold for any fabric that the tests print."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.measures.bandwidth import Sweep
from gdiag.measures.bandwidth_curves import shapes
from gdiag.measures.bandwidth_steadiness import agreements, jitters
from gdiag.measures.fabric_limits import Said, limit, matches
from tests.analyzers.made_benchmarks import view
from tests.ingesters.nccl_formats import Bench, text

SIZES = tuple(1 << k for k in range(10, 34))


def sweep(bench: Bench) -> Sweep:
    return view(text(bench)).sweeps[0]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["all_reduce", "all_gather", "reduce_scatter"]), st.integers(2, 64), st.floats(40, 900))
def test_the_ratio_allows_the_true_number_of_ranks(collective: str, ranks: int, peak: float) -> None:
    seen = sweep(Bench(collective, ranks=ranks, peak=peak, sizes=SIZES))
    assert seen.ranks is not None
    assert seen.ranks[0] <= ranks <= seen.ranks[1]
    assert seen.n == ranks


@settings(max_examples=20, deadline=None)
@given(st.floats(20, 900), st.floats(5, 400))
def test_plateau_is_near_the_peak_and_never_the_average(peak: float, latency: float) -> None:
    seen = sweep(Bench(peak=peak, latency=latency, sizes=SIZES))
    assert seen.plateau == pytest.approx(peak, rel=0.12)
    assert seen.average is not None
    assert seen.average < seen.plateau


def test_smooth_curves_have_no_shape_and_agree_with_themselves() -> None:
    seen = sweep(Bench(sizes=SIZES))
    curve, figures = shapes(seen.table), agreements(seen.table)
    assert (curve["dip_size"].tolist(), curve["collapse_size"].tolist()) == ([0], [0])
    assert (figures["odd_rows"] == 0).all()
    assert (figures["rows"] > 10).all()
    assert figures["mean_busbw"] == pytest.approx(seen.average or 0, rel=0.005)


def test_limits_by_model_network_and_expectation() -> None:
    node = sweep(Bench(sizes=SIZES, peak=478.0))
    held = limit(node)
    assert held is not None
    assert held.value == 475
    pair = sweep(Bench(ranks=16, hosts=2, sizes=SIZES, peak=190.0))
    assert limit(pair) is None
    assert matches(pair) == "8×200 Gb/s per host"
    network = limit(pair, Said(nic_gbps=1600))
    assert network is not None
    assert network.legal == pytest.approx(200 * 2 * 15 / 16)
    assert limit(pair, Said(expect=180)) is not None


def test_ranks_of_a_list_of_which_only_the_end_was_kept() -> None:
    lines = text(Bench(ranks=1440, hosts=360, peak=400.0, sizes=SIZES)).splitlines(keepends=True)
    kept = [line for line in lines if " Rank " not in line or " 1439 " in line]
    (seen,) = view("".join(kept)).sweeps
    assert seen.n == 1440
    one = [line for line in lines if " Rank " not in line or " Rank  0 " in line]
    (cut,) = view("".join(one)).sweeps
    assert cut.n != 1


def test_gpus_that_the_output_does_not_name_are_matched_by_their_plateau() -> None:
    lines = text(Bench(peak=482.0, sizes=SIZES)).splitlines(keepends=True)
    (seen,) = view("".join(line for line in lines if " Rank " not in line)).sweeps
    assert matches(seen) == "8 healthy H100 SXM or H200"


def test_a_curve_that_rises_beyond_one_gibibyte_is_judged_by_its_end() -> None:
    seen = sweep(Bench(peak=840.0, latency=900.0, sizes=SIZES[-5:]))
    assert seen.plateau > 700


def test_one_rank_names_no_collective() -> None:
    row = "  1073741824     268435456     float     sum      -1   900.12  1192.89    0.00      0     0.35  3067833.8    0.00      0\n"
    header = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    (seen,) = view(header + row).sweeps
    assert seen.collective is None


def test_many_ranks_without_a_list_are_matched_with_cards() -> None:
    lines = text(Bench(ranks=16, hosts=2, peak=190.0, sizes=SIZES)).splitlines(keepends=True)
    (seen,) = view("".join(line for line in lines if " Rank " not in line)).sweeps
    assert matches(seen) == "8×200 Gb/s per host"


def test_times_of_zero_give_an_infinite_ratio_and_no_error() -> None:
    sizes = tuple(8 << k for k in range(13))
    rows = []
    for line in text(Bench(sizes=sizes)).split("\n"):
        cells = line.split()
        if len(cells) > 12 and cells[0].isdigit() and sizes.index(int(cells[0])) % 4:
            cells[5] = cells[9] = "0.00"
        rows.append("  ".join(cells) if len(cells) > 12 and cells[0].isdigit() else line)
    with np.errstate(divide="ignore"):  # as the pipeline has it
        seen = jitters(view("\n".join(rows)).sweeps[0].table)
    assert seen["small_ratio"].tolist() == [float("inf")]
