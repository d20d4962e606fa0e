"""GD213: a gradient norm that does not calm down."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.unstable_gradients import analyze
from gdiag.model import Severity
from tests.analyzers.made_runs import Floats, view


def rough(*sizes: float, rows: int = 250, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    return np.asarray(np.exp(np.concatenate([rng.normal(0, size, rows) for size in sizes])), dtype=np.float64)


def test_fires_where_it_becomes_rough() -> None:
    (finding,) = analyze(view({"grad_norm": rough(0.15, 0.1, 0.5, 0.8), "lr": np.full(1000, 1e-3)}))
    assert 450 <= (finding.where.step or 0) <= 700
    assert finding.number("lr_share_of_peak") == 1.0
    assert (finding.number("growth") or 0) > 3


def test_rough_from_the_start_with_a_rise() -> None:
    (finding,) = analyze(view({"grad_norm": rough(0.5, 0.5, 0.5, 0.5) * np.geomspace(1, 100, 1000)}))
    assert finding.measure("from_start") is True


@pytest.mark.parametrize(
    "sizes", [(0.3, 0.2, 0.15, 0.1), (0.2, 0.2, 0.2, 0.2), (0.5, 0.45, 0.4, 0.35), (0.05, 0.1, 0.15, 0.2)]
)
def test_quiet_when_it_calms_down_or_stays_small(sizes: tuple[float, ...]) -> None:
    assert analyze(view({"grad_norm": rough(*sizes)})) == []
    assert analyze(view({"grad_norm": rough(0.9, rows=40)})) == []


def test_threshold_sets_the_roughness() -> None:
    run = view({"grad_norm": rough(0.15, 0.1, 0.5, 0.8)})
    assert analyze(run, rough=2.0) == []


def test_a_loss_that_still_falls_makes_it_information() -> None:
    grad = rough(0.5, 0.55, 0.8, 0.8)
    falling, flat = np.geomspace(5, 1, 1000), np.full(1000, 3.2)
    (finding,) = analyze(view({"grad_norm": grad, "loss": falling}))
    assert (finding.severity, finding.measure("loss_improving")) == (Severity.INFO, True)
    (finding,) = analyze(view({"grad_norm": grad, "loss": flat}))
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("end", "rise", "severity"),
    [(0.25, 1.0, Severity.INFO), (0.31, 1.0, Severity.WARNING), (0.1, 1.15, Severity.INFO), (0.1, 1.3, Severity.WARNING)],
)  # fmt: skip
def test_what_is_left_of_the_gradient_jumps_where_nearly_all_is_learned(
    end: float, rise: float, severity: Severity
) -> None:
    """The loss ends at the share `end` of its start, and then at `rise` times its best."""
    loss = np.interp(np.arange(1000), [0, 4, 200, 900, 901], [2.3, 2.3, 2.3 * end, 2.3 * end, 2.3 * end * rise])
    (finding,) = analyze(view({"grad_norm": rough(0.15, 0.1, 0.5, 0.8), "loss": loss}))
    assert finding.severity is severity


@pytest.mark.parametrize(("fall", "severity"), [(0.04, Severity.WARNING), (0.07, Severity.INFO)])
def test_a_loss_still_falls_where_it_ends_well_below_its_middle(fall: float, severity: Severity) -> None:
    loss = np.interp(np.arange(1000), [0, 300, 600, 800], [5.0, 3.0, 3.0, 3.0 * (1 - fall)])
    (finding,) = analyze(view({"grad_norm": rough(0.15, 0.1, 0.5, 0.8), "loss": loss}))
    assert finding.severity is severity


@pytest.mark.parametrize(("last", "told"), [(0.55, 0), (0.62, 1)])
def test_gradients_that_end_calmer_than_they_began_have_settled(last: float, told: int) -> None:
    assert len(analyze(view({"grad_norm": rough(0.85, 0.3, 0.6, last)}))) == told
