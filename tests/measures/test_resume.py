"""Resumes: levels before and after, in every noise family."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gdiag.measures.resume import Kind, Resume, earlier_stretch
from gdiag.schema import TABLES
from tests.analyzers.made_runs import view
from tests.measures.made import NOISES, Floats, Noise, noise


def resumed(
    kind: Noise, seed: int, excess: Floats | float = 0.0, *, crash: int = 900, back: int = 50, unit: float = 1.0
) -> list[Resume]:
    """A run of 1500 steps that crashed at `crash` and went on `back` steps earlier with `excess` added; all times `unit`."""
    rng = np.random.default_rng(seed)
    level = 2.7 + 8.1 * (1 + np.arange(1500) / 25) ** -0.45
    first, second = (level * np.exp(noise(kind, 1500, rng)) for _ in range(2))
    start = crash - back
    second[start:] += excess
    step = np.concatenate((np.arange(crash), np.arange(start, 1500)))
    return view({"step": step, "loss": unit * np.concatenate((first[:crash], second[start:]))}).resumes


def fading(height: float, half_life: float, rows: int = 650) -> Floats:
    return np.asarray(height * 0.5 ** (np.arange(rows) / half_life), dtype=np.float64)


@pytest.mark.parametrize("kind", NOISES)
def test_clean_resumes_are_clean(kind: Noise) -> None:
    kinds = [resumed(kind, seed)[0].kind for seed in range(12)]
    assert sum(k != "clean" for k in kinds) <= (1 if kind == "ar" else 0), kinds


@pytest.mark.parametrize("kind", ["gauss", "heavy", "skew"])
@pytest.mark.parametrize(("excess", "wanted"), [(fading(1.0, 30), "transient"), (0.6, "level")])
def test_rises_are_told_apart(kind: Noise, excess: Floats | float, wanted: Kind) -> None:
    for seed in range(4):
        (seen,) = resumed(kind, seed, excess)
        assert (seen.kind, seen.step, seen.rewound) == (wanted, 850, 50)


@pytest.mark.parametrize("unit", [0.01, 0.1, 100.0])
@pytest.mark.parametrize("excess", [fading(0.3, 30), fading(1.0, 30), 0.4, 0.0, -0.4])
def test_the_unit_of_the_loss_does_not_matter(excess: Floats | float, unit: float) -> None:
    for seed in range(4):
        (plain,), (scaled,) = resumed("gauss", seed, excess), resumed("gauss", seed, excess, unit=unit)
        assert (scaled.kind, scaled.recovery_step) == (plain.kind, plain.recovery_step)


def test_a_rise_made_good_faster_than_it_was_learnt_is_no_other_level() -> None:
    # The curve flattens faster than its descent before the restart promises: it is back at its level, not where it was due.
    rng = np.random.default_rng(5)
    row = np.arange(2000)
    first, second = (2.0 + 1.5 * np.exp(-row / 380) + 0.02 * rng.standard_normal(2000) for _ in range(2))
    second[1000:] += 0.4 * np.exp(-np.arange(1000) / 100)
    step = np.concatenate((row[:1200], row[1000:]))
    (seen,) = view({"step": step, "loss": np.concatenate((first[:1200], second[1000:]))}).resumes
    assert (seen.kind, seen.regained_step) == ("transient", None)
    assert seen.recovery_step is not None
    assert 1100 <= seen.recovery_step <= 1300


def test_half_life_and_recovery_of_a_transient() -> None:
    (seen,) = resumed("gauss", 1, fading(1.2, 30))
    assert seen.half_life is not None
    assert 15 <= seen.half_life <= 45
    assert seen.recovery_step is not None
    assert seen.recovery_step < 1050


def test_a_restart_event_without_a_rewind_counts() -> None:
    loss = 3 + 0.05 * np.random.default_rng(0).standard_normal(600)
    loss[400:] += fading(0.8, 20, 200)
    events = pl.DataFrame({"run": ["run"], "step": [400], "kind": ["restart"]}, schema_overrides={"step": pl.Int64})
    events = events.with_columns(
        pl.lit(None, t).alias(c) for c, t in TABLES["events"].items() if c not in events.columns
    )
    (seen,) = view({"loss": loss}, events=events).resumes
    assert (seen.step, seen.kind) == (400, "transient")


def test_a_clock_set_back_early_is_no_resume() -> None:
    elapsed = np.concatenate((np.arange(10.0), np.arange(190.0)))
    assert view({"loss": np.full(200, 3.0), "elapsed": elapsed}).resumes == []


@pytest.mark.parametrize(("stops", "found"), [([900], ["fresh_model"]), (list(range(100, 1500, 100)), [])])
def test_a_rare_pause_is_where_a_run_may_have_been_taken_up_again(stops: list[int], found: list[str]) -> None:
    rng = np.random.default_rng(0)
    loss = 2.7 + 8.1 * (1 + np.arange(1500) / 25) ** -0.45 + noise("gauss", 1500, rng)
    loss[900:] += fading(6.0, 100, 600)
    waits = np.full(1500, 0.5)
    waits[stops] += 200.0
    assert [r.kind for r in view({"loss": loss, "time": 1.7e9 + np.cumsum(waits)}).resumes] == found


@pytest.mark.parametrize(("epoch_steps", "seen"), [(5000, 1), (900, 0), (None, 0)])
def test_ids_that_begin_again_at_a_pause_inside_an_epoch_are_repeated(epoch_steps: int | None, seen: int) -> None:
    steps = np.arange(1500)
    waits, ids = np.where(steps == 900, 200.0, 0.5), np.asarray(16 * (steps % 900), dtype=np.float64)
    loss, time = 3.0 + noise("gauss", 1500, np.random.default_rng(0)), 1.7e9 + np.cumsum(waits)
    columns = {"loss": np.asarray(loss, np.float64), "time": np.asarray(time, np.float64)}
    columns |= {"sample_start": ids, "sample_end": ids + 16}
    if epoch_steps is not None:
        columns["epoch"] = steps / epoch_steps
    assert len(view(columns).sample_breaches) == seen


def reloaded(kind: Noise, seed: int, like: int) -> list[Resume]:
    """A run of 1500 steps whose resume at step 900 has the weights of step `like`."""
    rng = np.random.default_rng(seed)
    level = 2.7 + 8.1 * (1 + np.arange(1500) / 25) ** -0.45
    done = np.arange(1500) - np.where(np.arange(1500) < 900, 0, 900 - like)
    step = np.concatenate((np.arange(950), np.arange(900, 1500)))
    first, second = (level[done] * np.exp(noise(kind, 1500, rng)) for _ in range(2))
    first[900:] = level[900:] * np.exp(noise(kind, 600, rng))
    return view({"step": step, "loss": np.concatenate((first[:950], second[900:]))}).resumes


@pytest.mark.parametrize("kind", ["gauss", "heavy", "skew"])
@pytest.mark.parametrize("like", [100, 250])
def test_an_older_checkpoint_goes_on_as_the_curve_once_did(kind: Noise, like: int) -> None:
    seen = [resume for seed in range(6) for resume in reloaded(kind, seed, like)]
    assert sum(resume.kind == "older_checkpoint" for resume in seen) >= 3
    assert all(resume.like_step is not None and 0.6 * like < resume.like_step < 1.6 * like for resume in seen)


def test_what_the_updates_do_after_a_resume() -> None:
    loss, update = np.full(600, 3.0), np.full(600, 0.1)
    loss[400:] += fading(0.8, 20, 200)
    update[400:420] *= 2.2
    step = np.concatenate((np.arange(420), np.arange(400, 580)))
    loss, update = (np.concatenate((v[:420], v[400:580])) for v in (loss, update))
    loss[400:420], update[400:420] = 3.0, 0.1
    (seen,) = view({"step": step, "loss": loss, "update_norm": update}).resumes
    assert seen.update_jump == pytest.approx(2.2)


def test_a_gradient_that_jumps_with_the_loss_proves_a_rise_in_loud_noise() -> None:
    kinds: dict[bool, set[Kind]] = {True: set(), False: set()}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        loss = (1.0 + np.exp(-np.arange(160) / 8)) * (1 + 0.15 * rng.standard_normal(160))
        grad = 0.7 * np.exp(0.1 * rng.standard_normal(160))
        loss[100:] += fading(1.0, 1.5, 60)
        step = np.concatenate((np.arange(104), np.arange(100, 160)))
        rows = np.concatenate((loss[:100], loss[96:100], loss[100:]))
        for jumps in (True, False):
            norm = grad * np.where(
                np.arange(160) < 100, 1, 1 + 3 * jumps * 0.5 ** np.clip(np.arange(160) - 100, 0, None)
            )
            norms = np.concatenate((norm[:100], norm[96:100], norm[100:]))
            kinds[jumps].add(view({"step": step * 50, "loss": rows, "grad_norm": norms}).resumes[0].kind)
    assert kinds[True] <= {"transient", "fresh_model"}
    assert "clean" in kinds[False]


def test_a_rise_that_takes_as_long_as_the_run_once_took_is_no_lost_moment() -> None:
    (seen,) = resumed("gauss", 1, fading(0.5, 250))
    assert seen.kind in ("level", "older_checkpoint")


@pytest.mark.parametrize("start", [60, 100, 200, 400])
def test_a_steep_curve_is_not_lower_after_a_resume(start: int) -> None:
    rng = np.random.default_rng(start)
    loss = 10 * (np.arange(800) + 20.0) ** -0.25 + 0.01 * rng.standard_normal(800)
    step = np.concatenate((np.arange(start), np.arange(start - 1, 800)))
    (seen,) = view({"step": step, "loss": np.concatenate((loss[:start], loss[start - 1 :])), "lr": np.full(801, 1e-3),
                    "time": 2.0 * np.arange(801) + 300 * (np.arange(801) >= start)}).resumes  # fmt: skip
    assert (seen.kind, seen.rewound) == ("clean", 1)


def test_a_loss_lower_than_the_curve_leads_to_is_lower() -> None:
    rng = np.random.default_rng(8)
    loss = 10 * (np.arange(800) + 20.0) ** -0.25 + 0.01 * rng.standard_normal(800)
    loss[200:] -= 0.4
    step = np.concatenate((np.arange(202), np.arange(200, 800)))
    (seen,) = view({"step": step, "loss": np.concatenate((loss[:200], loss[200:202] + 0.4, loss[200:]))}).resumes
    assert seen.kind == "lower"
    assert abs(seen.before - 10 * 220**-0.25) < 0.05
    assert abs(seen.jump + 0.4) < 0.06


def learned_once_more(rows: int, at: int, old: int, seed: int = 0) -> Floats:
    """A curve that from row `at` on runs as it did from row `old` on."""
    place = np.where(np.arange(rows) < at, np.arange(rows), np.arange(rows) - at + old)
    level = 2.7 + 8.1 * (1 + place / 25) ** -0.45
    return np.asarray(level + noise("gauss", rows, np.random.default_rng(seed)) * level, dtype=np.float64)


@pytest.mark.parametrize("unit", [0.01, 1.0, 100.0])
def test_an_older_checkpoint_shows_without_a_mark_of_a_restart(unit: float) -> None:
    for seed in range(4):
        run = view({"loss": unit * learned_once_more(1500, 900, 250, seed)})
        like = earlier_stretch(run.series("loss"), 900)
        assert run.resumes == []
        assert like is not None
        assert abs(like - 250) < 40


@pytest.mark.parametrize("kind", NOISES)
def test_neither_a_step_nor_a_rise_that_fades_learns_again(kind: Noise) -> None:
    level = 2.7 + 8.1 * (1 + np.arange(1500) / 25) ** -0.45
    for seed in range(4):
        loss = level * np.exp(noise(kind, 1500, np.random.default_rng(seed)))
        for excess in (np.full(600, 0.6), fading(1.0, 30, 600), np.full(600, 0.0)):
            moved = loss.copy()
            moved[900:] += excess
            assert earlier_stretch(view({"loss": moved}).series("loss"), 900) is None
