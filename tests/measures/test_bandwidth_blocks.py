"""Test runs measured in blocks give what each gives alone, whatever layouts stand beside it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.measures.bandwidth_blocks import middle
from gdiag.measures.bandwidth_curves import by_size, shapes
from gdiag.measures.bandwidth_steadiness import agreements, jitters
from tests.analyzers.made_benchmarks import view
from tests.ingesters.nccl_formats import Bench, text

SIZES = tuple(1 << k for k in range(8, 33))


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["all_reduce", "all_gather"]), st.floats(20, 900), st.integers(10, 25)), min_size=2, max_size=6))  # fmt: skip
def test_runs_side_by_side_measure_as_alone(kinds: list[tuple[str, float, int]]) -> None:
    benches = [Bench(name, peak=peak, sizes=SIZES[:sizes]) for name, peak, sizes in kinds]
    together = view("".join(text(bench) for bench in benches)).sweeps
    assert len(together) == len(benches)
    for sweep, bench in zip(together, benches, strict=True):
        (alone,) = view(text(bench)).sweeps
        names = (
            "collective",
            "listed",
            "ranks",
            "model",
            "plateau",
            "peak",
            "largest",
            "latency",
            "average",
            "host_names",
        )
        assert [getattr(sweep, name) for name in names] == [getattr(alone, name) for name in names]
        for measure in (shapes, jitters, agreements):
            assert {name: values[sweep.number] for name, values in measure(sweep.table).items()} == {
                name: values[0] for name, values in measure(alone.table).items()
            }
        assert np.array_equal(by_size(sweep), by_size(alone))
        assert sweep.fact("average_busbw") == alone.fact("average_busbw")


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], 0.0), ([3.0], 3.0), ([4.0, 1.0, 2.0], 2.0), ([1.0, 4.0], 2.5), ([1.0, np.nan], np.nan)],
)
def test_middle_is_the_median(values: list[float], expected: float) -> None:
    assert middle(np.array([values, values]))[1] == pytest.approx(expected, nan_ok=True)


def test_middle_among_the_smallest_leaves_out_the_rest() -> None:
    values = np.array([[4.0, np.inf, 1.0, 2.0], [3.0, np.inf, np.inf, 1.0]])
    assert middle(values, np.array([3, 2])).tolist() == [2.0, 2.0]
