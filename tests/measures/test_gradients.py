"""The global gradient norm: scale, surges, lasting rises, roughness."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.measures.gradients import lasting_rise, roughness, scaling, steady, surges, unscaled
from tests.analyzers.made_layers import layered, norms
from tests.analyzers.made_runs import Floats, view


def noise(rows: int, size: float = 0.2, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    return np.asarray(np.exp(rng.normal(0, size, rows)), dtype=np.float64)


def backing_off(rows: int) -> Floats:
    scale = np.full(rows, 65536.0)
    for k, at in enumerate(range(100, rows, 150)):
        scale[at:] = 131072.0 if k % 2 else 32768.0
    return scale


@pytest.mark.parametrize("raw", [True, False])
def test_a_norm_multiplied_by_the_scale_is_recognised(raw: bool) -> None:
    scale = backing_off(900)
    grad = noise(900)
    run = view({"grad_norm": grad * scale if raw else grad, "loss_scale": scale})
    found = scaling(run.series("grad_norm"), run.series("loss_scale"))
    assert found is not None
    assert found.scaled is raw
    assert found.slope == pytest.approx(float(raw), abs=0.25)
    assert np.allclose(run.grad_norm.value, grad)


def test_a_constant_scale_says_nothing() -> None:
    run = view({"grad_norm": noise(100), "loss_scale": np.full(100, 1024.0)})
    assert run.grad_scaling is None
    assert unscaled(run.series("grad_norm"), run.series("lr")) is run.series("grad_norm")


def test_without_a_total_the_layers_stand_for_it() -> None:
    made = norms(50)
    run = layered(made)
    assert np.allclose(run.grad_norm.value, np.sqrt(sum(v**2 for v in made.values())))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.floats(1e-6, 1e6))
def test_healthy_noise_has_no_surge_in_any_unit(seed: int, unit: float) -> None:
    value = noise(2000, 0.25, seed)
    assert surges(value * unit, 10.0) == surges(value, 10.0) == []
    assert lasting_rise(value * unit) is None
    assert steady(value * unit)


def test_a_surge_keeps_its_level_and_its_bounds() -> None:
    value = noise(1000)
    value[600:700] *= 40 * np.exp(-np.arange(100) / 60)
    (found,) = surges(value, 5.0)
    assert found.first == 600
    assert 650 <= found.last <= 720
    assert found.ratio == pytest.approx(40, rel=0.6)
    assert found.level == pytest.approx(1, rel=0.2)
    assert found.recovered


def test_an_explosion_does_not_become_its_own_baseline() -> None:
    value = noise(1500)
    value[500:] *= 50
    (found,) = surges(value, 5.0)
    assert (found.first, found.last, found.recovered) == (500, 1499, False)


@pytest.mark.parametrize("length", [10, 60, 200])
def test_the_onset_of_a_ramp_is_near_its_start(length: int) -> None:
    value = noise(1500)
    value[700 : 700 + length] *= np.geomspace(1, 500, length)
    value[700 + length :] *= 500
    found = surges(value, 5.0)[0]
    assert abs(found.first - 700) <= 4 + 0.1 * length


def test_a_slow_rise_is_found_against_the_lowest_level() -> None:
    value = noise(2000)
    value[800:1200] *= np.exp(np.linspace(0, 3.5, 400))
    value[1200:] *= np.exp(3.5)
    found = lasting_rise(value)
    assert found is not None
    row, ratio = found
    assert 850 <= row <= 1100
    assert ratio > 20
    assert not steady(value[:1250])
    assert steady(value[:700])
    assert steady(value)  # at its new level for long


def test_roughness_falls_when_healthy_and_grows_when_unstable() -> None:
    calm = noise(1000) ** np.linspace(1.5, 0.6, 1000)
    found = roughness(calm)
    assert found is not None
    assert found.quarters[0] > found.quarters[3]
    assert found.growth < 1.1
    wild = noise(1000)
    wild[600:] = noise(1000, 0.8, 1)[600:]
    rough = roughness(wild)
    assert rough is not None
    assert rough.growth > 2
    assert 500 <= rough.onset <= 700
    assert roughness(noise(20)) is None


def test_gradients_that_wake_to_their_old_size_have_not_exploded() -> None:
    value = noise(2000, 0.1)
    value[1000:1400] *= 0.25
    value[1400:1404] *= 4
    (surge,) = surges(value, 10.0)
    assert surge.recovered
    assert (surge.first, surge.last < 1420) == (1400, True)
    value[1400:] *= 4
    (surge,) = surges(value, 10.0)
    assert not surge.recovered


def test_what_blows_up_long_after_gradients_woke_has_its_own_onset() -> None:
    grad = 0.25 * noise(300)
    grad[20:] *= np.minimum(6.0, 1.3 ** np.arange(280))  # the network begins to learn
    woke, *_ = surges(grad)
    grad[250:] *= 4.0 ** np.arange(1, 51)
    first, second = surges(grad)
    assert first.first == woke.first
    assert second.first == pytest.approx(250, abs=2)
    assert not second.recovered
    assert second.ratio > 1e6
