"""GD204: the layer in which gradients turned non-finite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdiag.analyzers.nonfinite_origin import analyze
from gdiag.measures.run import RunView
from gdiag.model import Severity
from gdiag.pipeline import diagnose
from tests.analyzers.made_layers import layered, names, norms


def test_names_the_layer_and_stays_critical_when_the_run_is_lost() -> None:
    made = norms(200, 4)
    for name, depth, _ in names(4):
        made[name][150 if depth <= 1 else 151 :] = np.nan
    loss = np.full(200, 2.0)
    loss[151:] = np.nan
    (finding,) = analyze(layered(made, steps={"loss": loss}))
    assert (finding.where.step, finding.where.layer, finding.severity) == (150, "blocks.1", Severity.CRITICAL)
    assert finding.measure("loss_nonfinite") is False
    assert finding.measure("isolated") is False
    assert finding.number("finite_deeper") == 12
    assert finding.where.line == 151


def test_all_at_once_names_none_and_says_whether_the_parameters_are_finite() -> None:
    made, params = norms(200), {n: np.full(200, 3.0) for n, _, _ in names(3)}
    for name in made:
        made[name][150:] = np.nan
        params[name][150:] = np.nan
    (finding,) = analyze(layered(made, params=params))
    assert finding.where.layer is None
    assert finding.measure("parameters_nonfinite") is True
    assert "parameters" in finding.message


def test_one_skipped_step_is_a_warning() -> None:
    made = norms(200)
    for name in made:
        made[name][150] = np.inf
    (finding,) = analyze(layered(made))
    assert (finding.severity, finding.measure("isolated")) == (Severity.WARNING, True)


def test_the_rank_that_turned_first_is_named() -> None:
    made = norms(200)
    for name in made:
        made[name][150:] = np.nan
    local = {r: {"grad_norm": np.ones(200)} for r in range(4)}
    local[2]["grad_norm"][150] = np.nan
    (finding,) = analyze(layered(made, rank_steps=local))
    assert finding.where.rank == 2


def test_a_rise_before_it_is_evidence() -> None:
    made = norms(200)
    for name in made:
        made[name][149] *= 60
        made[name][150:] = np.nan
    (finding,) = analyze(layered(made))
    assert (finding.number("grad_ratio") or 0) > 20


def test_quiet_when_all_is_finite() -> None:
    assert analyze(layered(norms(100))) == []


def test_layers_logged_too_late_name_nothing() -> None:
    made = norms(40)
    for name, depth, _ in names(3):
        if depth < 2:
            made[name][30:] = np.nan
    view = layered(made, every=10)
    loss = layered(steps={"loss": np.where(np.arange(400) < 295, 2.0, np.nan)})
    records = replace(view.records, steps=loss.records.steps)
    (finding,) = analyze(RunView(records.runs[0], records))
    assert (finding.where.layer, finding.severity, finding.measure("logged_late")) == (None, Severity.INFO, True)
    assert "step 295" in finding.message


def test_an_overflow_that_backs_off_is_information_and_the_last_one_counts() -> None:
    made = norms(200)
    for values in made.values():
        values[[3, 60]] = np.inf
    scale = np.where(np.arange(200) <= 60, 65536.0, 32768.0)
    scale[:4] = 131072.0
    (finding,) = analyze(layered(made, steps={"loss_scale": scale, "grad_norm": np.ones(200)}))
    assert (finding.where.step, finding.severity, finding.measure("backed_off")) == (3, Severity.INFO, True)
    for name, depth, _ in names(3):
        if depth < 1:
            made[name][150:] = np.nan
    (finding,) = analyze(layered(made, steps={"loss_scale": scale, "grad_norm": np.ones(200)}))
    assert (finding.where.step, finding.where.layer, finding.severity) == (150, "blocks.0", Severity.CRITICAL)


def test_layers_written_only_where_lost_do_not_end_the_run() -> None:
    made = norms(200)
    for name in made:
        made[name][:] = np.inf
    made = {name: np.where(np.isin(np.arange(200), (0, 90, 120)), value, np.nan) for name, value in made.items()}
    run = layered(made, steps={"loss": np.full(200, 2.0), "grad_norm": np.ones(200)})
    layers = run.records.layers.filter(np.isin(np.arange(200), (0, 90, 120)))
    (finding,) = analyze(RunView(run.run, replace(run.records, layers=layers)))
    assert (finding.severity, finding.measure("isolated")) == (Severity.WARNING, True)


def test_a_layer_that_no_loss_scale_makes_finite_is_named_in_the_title() -> None:
    made = norms(200)
    for name in made:
        made[name][150:153] = np.inf
    made["blocks.1.fc"][150:] = np.inf
    scale = np.full(200, 65536.0)
    scale[151:] = np.maximum(1.0, 65536.0 * 0.5 ** np.arange(1, 50))
    norm = np.ones(200)
    norm[150:] = np.inf
    run = layered(
        made, steps={"loss": np.full(200, 2.0) + 0.01 * np.sin(np.arange(200)), "grad_norm": norm, "loss_scale": scale}
    )
    (finding,) = analyze(run)
    assert (finding.where.step, finding.where.layer, finding.severity) == (153, "blocks.1.fc", Severity.CRITICAL)
    lost = next(i for i in diagnose(run.records).incidents if i.pattern == "nonfinite")
    assert lost.title == "Gradient norm is not finite at step 150 (blocks.1.fc)"
    assert lost.causes[0].cause == "numeric_overflow"
    assert lost.causes[0].supports[0].startswith("blocks.1.fc stays not finite, at any loss scale")
    assert any("No rollback is needed: the loss stays finite" in action for action in lost.actions)
