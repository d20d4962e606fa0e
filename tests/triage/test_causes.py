"""Evidence moves the ranking, its absence is listed, and a curve's shape alone is never sure."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdiag.model import Cause, DataWindow, Finding, Location, Measure, Pattern, Severity
from gdiag.triage import explain
from gdiag.triage.case import Case
from gdiag.triage.causes import RESERVED, TEMPERATURE, logits, rank, weigh
from gdiag.triage.codes import PATTERN
from gdiag.triage.facts import RunFacts
from gdiag.triage.loss_sentences import after_effect, no_after_effect
from gdiag.triage.priors import PRIORS, UNKNOWN_SHARE


def spike(*evidence: Measure, columns: frozenset[str] = frozenset()) -> Case:
    lead = Finding("GD102", "loss-spike", Severity.WARNING, "a spike", Location(run="run", step=100), evidence)
    return Case("single_spike", lead, (lead,), facts=RunFacts("run", columns=columns), onset=100, last=104)


def test_shape_alone_is_never_of_high_band() -> None:
    causes = rank(spike(Measure("grad_lead", 0.0), Measure("after_effect", 0.0), Measure("noise", 0.05)))
    assert causes[0].cause == "bad_batch"
    assert (causes[0].band, causes[0].basis) == ("medium", "curve")


def test_that_numbers_are_gone_is_a_shape_as_well() -> None:
    evidence = (Measure("rows", 40), Measure("grad_before", 1.0), Measure("grad_rise", 1.0))
    lead = Finding("GD101", "loss-not-finite", Severity.CRITICAL, "NaN", Location(run="run", step=500), evidence)
    case = Case("nonfinite", lead, (lead,), facts=RunFacts("run"), onset=500, last=540)
    assert {cause.band for cause in rank(case)} <= {"low", "medium"}
    assert {cause.basis for cause in rank(case)} <= {"curve", "prior"}


def test_without_evidence_a_score_is_the_usual_share_and_its_band_is_low() -> None:
    lead = Finding("GD106", "hard-batches", Severity.INFO, "rows far out", Location(run="run", step=100))

    best, *others = rank(Case("hard_batches", lead, (lead,), onset=100))

    shares = PRIORS["hard_batches"]
    assert best.score == pytest.approx(shares["bad_batch"] / (sum(shares.values()) + UNKNOWN_SHARE), abs=1e-3)
    assert (best.band, best.basis) == ("low", "prior")
    assert all(other.band == "low" for other in others)


def test_logits_that_were_seen_to_grow_are_more_than_a_curve() -> None:
    lead = Finding("GD102", "loss-spike", Severity.WARNING, "a spike", Location(run="run", step=100))
    grown = Finding("GD210", "attention-logit-growth", Severity.WARNING, "logits grow", Location(run="run", step=90))

    best = rank(Case("single_spike", lead, (lead, grown), onset=100))[0]

    assert (best.cause, best.basis, best.band) == ("attention_logit_growth", "evidence", "high")


def test_moved_entropy_makes_a_bad_batch_probable() -> None:
    before = rank(spike())[0].score
    causes = rank(spike(Measure("token_entropy_z", -9.0), Measure("grad_lead", 0.0)))
    assert causes[0].cause == "bad_batch"
    assert causes[0].score > before + 0.2
    assert causes[0].band == "high"


@pytest.mark.parametrize("name", ["token_entropy_z", "duplicate_share_z", "seq_len_z"])
def test_any_statistic_of_the_batch_that_differs_speaks_for_it(name: str) -> None:
    causes = rank(spike(Measure(name, 9.0)))
    assert (causes[0].cause, causes[0].band) == ("bad_batch", "high")
    assert rank(spike(Measure(name, 3.0)))[0].score < causes[0].score


def test_gradient_lead_speaks_against_one_bad_batch_without_a_verdict() -> None:
    causes = {c.cause: c for c in rank(spike(Measure("grad_lead", 3.0)))}
    assert causes["bad_batch"].contradicts
    assert causes["optimizer_instability"].supports
    assert all(c.band != "high" for c in causes.values())


@pytest.mark.parametrize(("since", "cause"), [(0, "optimizer_state_lost"), (10, "bad_batch")])
def test_a_spike_in_the_first_row_after_a_restart_is_the_restarts(since: int, cause: str) -> None:
    same = (Measure("grad_lead", 0.0), Measure("after_effect", 0.0), Measure("noise", 0.05))
    case = spike(Measure("steps_since_restart", since, "step"), Measure("log_interval", 10, "step"), *same)
    assert rank(case)[0].cause == cause


def test_missing_columns_are_named_until_they_are_logged() -> None:
    bare = next(c for c in rank(spike()) if c.cause == "bad_batch")
    full = next(
        c
        for c in rank(spike(columns=frozenset({"steps.samples", "steps.token_entropy", "steps.rank"})))
        if c.cause == "bad_batch"
    )
    assert any("sample ids" in text for text in bare.missing)
    assert not full.missing


@given(
    st.sampled_from([p for p in PRIORS if PRIORS[p]]),
    st.dictionaries(
        st.sampled_from(["grad_lead", "token_entropy_z", "after_effect", "noise", "lr_ratio"]), st.floats(-100, 100)
    ),
)
def test_scores_are_a_distribution_with_unknown_in_the_race(pattern: str, figures: dict[str, float]) -> None:
    evidence = tuple(Measure(name, value) for name, value in figures.items())
    lead = Finding("GD102", "loss-spike", Severity.WARNING, "a spike", Location(run="run", step=1), evidence)
    causes = rank(Case(pattern, lead, (lead,), onset=1))  # type: ignore[arg-type]
    assert 0 < sum(c.score for c in causes) <= 1.0 + 0.01
    assert [c.score for c in causes] == sorted((c.score for c in causes), reverse=True)


def test_an_exit_at_the_time_limit_is_no_fault_of_the_software() -> None:
    text = Measure("text", "slurmstepd: error: *** JOB 1 CANCELLED DUE TO TIME LIMIT ***")
    lead = Finding(
        "GD008", "abnormal-exit", Severity.WARNING, "ends", Location(run="run"), (Measure("kind", "exit"), text)
    )
    assert rank(Case("abnormal_exit", lead, (lead,)))[0].cause == "time_limit"


def step_up(*evidence: Measure) -> Case:
    levels = (Measure("level_before", 3.0), Measure("level_after", 3.5))
    lead = Finding("GD105", "loss-step-up", Severity.WARNING, "up", Location(run="run", step=100), (*levels, *evidence))
    return Case("step_up", lead, (lead,), onset=100, last=100)


def scores(case: Case) -> dict[str, float]:
    return {c.cause: c.score for c in rank(case)}


def validation(after: float, z: float) -> tuple[Measure, ...]:
    return Measure("eval_before", 3.1), Measure("eval_after", after), Measure("eval_z", z)


def test_flat_validation_speaks_for_data_and_moved_validation_for_a_harmed_model() -> None:
    bare, flat, moved = (
        scores(step_up()),
        scores(step_up(*validation(3.11, 0.4))),
        scores(step_up(*validation(3.6, 9.0))),
    )
    assert flat["data_order"] > 1.5 * bare["data_order"]
    assert flat.get("optimizer_instability", 0.0) < bare["optimizer_instability"] < moved["optimizer_instability"]


def test_a_change_of_batch_or_sequence_length_supports_config_change() -> None:
    for name in ("batch_ratio", "seq_len_ratio"):
        causes = rank(step_up(Measure(name, 2.0)))
        assert causes[0].cause == "config_change"
        assert "×2 at the onset" in causes[0].supports[0]
        assert scores(step_up(Measure(name, 1.02))) == scores(step_up())
    assert scores(step_up(Measure("planned", True)))["config_change"] > scores(step_up())["config_change"]


def test_a_jump_of_the_rate_at_a_restart_speaks_for_the_scheduler() -> None:
    lead = Finding(
        "GD306", "scheduler-not-restored", Severity.WARNING, "jump", Location(run="run", step=100), (Measure("at_restart", True),)
    )  # fmt: skip
    case = Case("lr_discontinuity", lead, (lead,), onset=100)
    found = next(c for c in rank(case) if c.cause == "resume_mismatch")
    assert "the scheduler was not restored" in found.supports[0]


def test_nothing_is_said_to_rise_not_where_the_incident_begins_earlier() -> None:
    where = Location(run="run", step=12, last_step=90)
    flat = Finding("GD101", "n", Severity.CRITICAL, "m", where, (Measure("without_run_up", value=True),))
    said = ("nothing rises in the rows before it",)
    for onset, texts in ((12, said), (9, ())):
        causes = rank(Case(pattern="nonfinite", lead=flat, findings=(flat,), onset=onset))
        assert next(c for c in causes if c.cause == "numeric_overflow").supports == texts


@pytest.mark.parametrize(
    ("pattern", "code", "evidence", "cause"),
    [
        ("abnormal_exit", "GD008", Measure("kind", "oom"), "memory_pressure"),
        ("abnormal_exit", "GD008", Measure("kind", "gpu_lost"), "hardware_fault"),
        ("abnormal_exit", "GD008", Measure("text", "NET/IB : Got completion with error 12"), "link_fault"),
        ("abnormal_exit", "GD008", Measure("text", "NET/IB : Got completion from peer with status=12"), "link_fault"),
        (
            "abnormal_exit",
            "GD008",
            Measure("text", "CUDA error: uncorrectable ECC error encountered"),
            "hardware_fault",
        ),
        ("port_errors", "GD706", Measure("pauses", 15000), "flow_control"),
    ],
)
def test_what_the_log_says_in_words_decides(pattern: Pattern, code: str, evidence: Measure, cause: str) -> None:
    told = Finding(code, "n", Severity.WARNING, "m", Location(run="run"), (evidence,))
    assert rank(Case(pattern=pattern, lead=told, findings=(told,)))[0].cause == cause


def test_a_gpu_that_is_only_hot_is_not_throttled() -> None:
    hot = Finding("GD605", "hot-gpu", Severity.INFO, "m", Location(run="run"), ())
    causes = rank(Case(pattern="thermal_slowdown", lead=hot, findings=(hot,)))
    assert causes[0].cause == "unknown"
    assert all(cause.score < 0.5 for cause in causes[1:])


def _rising(grad_ratio: float, slow: bool) -> Finding:
    evidence = (Measure("grad_ratio", grad_ratio), Measure("z", 80.0), Measure("slow", slow), Measure("lr_ratio", 1.0))
    return Finding("GD104", "loss-divergence", Severity.CRITICAL, "a rise", Location(run="run", step=100), evidence)


def test_a_gradient_that_stays_speaks_against_a_rate_that_is_too_high() -> None:
    def share(grad_ratio: float, slow: bool) -> float:
        lead = _rising(grad_ratio, slow)
        causes = rank(Case("divergence", lead, (lead,), onset=100, last=900))
        return next(c.score for c in causes if c.cause == "lr_too_high")

    assert share(1.2, slow=False) < 0.5 * share(5.0, slow=False)
    assert share(1.2, slow=True) == share(5.0, slow=True)


def test_a_rate_that_is_steady_after_its_jump_is_no_excuse() -> None:
    lead = _rising(5.0, slow=True)
    jump = Finding("GD302", "lr-discontinuity", Severity.WARNING, "a jump", Location(run="run", step=98))
    (first, *_) = rank(Case("divergence", lead, (lead, jump), onset=98, last=900))
    assert (first.cause, first.contradicts) == ("lr_jump", ())


def _jumped(alone: bool, at_restart: bool, moved: int) -> Case:
    evidence = (
        Measure("alone", alone),
        Measure("at_restart", at_restart),
        Measure("other_weights", moved >= 10),
        Measure("layers_moved", moved),
        Measure("layers_total", 20),
    )
    lead = Finding("GD208", "parameter-jump", Severity.WARNING, "a jump", Location(run="run", step=100), evidence)
    return Case("parameter_jump", lead, (lead,), onset=100)


def test_weights_that_jump_together_at_a_resume_are_another_checkpoints() -> None:
    assert rank(_jumped(alone=True, at_restart=False, moved=1))[0].cause == "silent_data_corruption"
    assert rank(_jumped(alone=True, at_restart=True, moved=1))[0].cause == "silent_data_corruption"
    assert rank(_jumped(alone=False, at_restart=True, moved=15))[0].cause == "resume_mismatch"
    assert rank(_jumped(alone=False, at_restart=False, moved=15))[0].cause == "resume_mismatch"


@pytest.mark.parametrize(
    ("code", "kind", "cause"),
    [
        ("GD109", "transient", "optimizer_state_lost"),
        ("GD109", "level", "resume_mismatch"),
        ("GD109", "older_checkpoint", "resume_mismatch"),
        ("GD109", "fresh_model", "resume_mismatch"),
        ("GD115", "repeated_samples", "data_repeated"),
        ("GD117", "counter_reset", "step_counter_lost"),
        ("GD118", "scale_reset", "loss_scale_lost"),
    ],
)
def test_every_kind_of_a_resume_has_its_cause(code: str, kind: str, cause: str) -> None:
    lead = Finding(code, "n", Severity.WARNING, "m", Location(run="run", step=100), (Measure("kind", kind),))
    assert rank(Case(PATTERN[code], lead, (lead,), onset=100))[0].cause == cause


def test_large_first_updates_speak_for_lost_moments() -> None:
    def share(update_jump: float) -> float:
        evidence = (Measure("kind", "transient"), Measure("update_jump", update_jump))
        lead = Finding("GD109", "n", Severity.WARNING, "m", Location(run="run", step=100), evidence)
        return next(
            c.score for c in rank(Case("resume_jump", lead, (lead,), onset=100)) if c.cause == "optimizer_state_lost"
        )

    assert share(2.2) > share(1.1)


def test_a_rise_where_repeated_samples_end_is_no_harm() -> None:
    lead = Finding("GD105", "loss-step-up", Severity.WARNING, "up", Location(run="run", step=700))
    seen = (Measure("kind", "repeated_samples"), Measure("sample_start", 0), Measure("sample_end", 8000))
    again = Finding("GD115", "repeated-data", Severity.WARNING, "m", Location(run="run", step=200), seen)
    for window, cause in ((DataWindow(8000, 8016), "data_repeated"), (DataWindow(9000, 9016), None)):
        causes = rank(Case("step_up", lead, (lead,), others=(again,), onset=700, data=window))
        assert (causes[0].cause == "data_repeated") is (cause is not None)


@pytest.mark.parametrize(("marked", "first"), [(True, "resume_mismatch"), (False, "lr_jump")])
def test_a_schedule_stepped_twice_is_put_down_to_the_resume_where_there_is_one(marked: bool, first: str) -> None:
    evidence = (
        Measure("kind", "advanced_twice"),
        Measure("at_restart", marked),
        Measure("schedule_steps_per_step", 2.0),
    )
    lead = Finding("GD306", "n", Severity.WARNING, "m", Location(run="run", step=100), evidence)
    causes = rank(Case("lr_discontinuity", lead, (lead,), onset=100))
    assert {"lr_jump", first} <= {c.cause for c in causes[:2]}


def test_a_stale_second_moment_is_a_hypothesis_until_it_is_logged() -> None:
    def share(*evidence: Measure, columns: frozenset[str] = frozenset()) -> Cause:
        lead = Finding("GD102", "loss-spike", Severity.WARNING, "a spike", Location(run="run", step=100))
        stale = Finding("GD214", "stale-second-moment", Severity.INFO, "quiet", Location(run="run", step=100), evidence)
        found = rank(Case("single_spike", lead, (lead, stale), onset=100, facts=RunFacts("run", columns=columns)))
        return next(c for c in found if c.cause == "optimizer_instability")

    estimated, measured = share(), share(Measure("measured_rms", 3.0), columns=frozenset({"layers.second_moment"}))
    assert estimated.score < measured.score
    assert estimated.band != "high"
    assert {"update norms", "Adam's second moment (exp_avg_sq) per layer"} <= set(estimated.missing)
    assert "Adam's second moment (exp_avg_sq) per layer" not in measured.missing


@pytest.mark.parametrize(
    ("evidence", "others", "cause"),
    [
        ((Measure("at_once", True), Measure("grad_ratio", 2.1)), (), "config_change"),
        ((Measure("at_once", True),), (), "config_change"),
        ((Measure("at_once", True), Measure("grad_ratio", 80.0)), (), "lr_too_high"),
        ((Measure("at_once", True),), ("GD201",), "lr_too_high"),
        ((Measure("at_once", True),), ("GD307",), "lr_too_high"),
        (
            (Measure("at_once", True), Measure("level_before", 0.05), Measure("level_after", 2.2)),
            ("GD201",),
            "config_change",
        ),
        ((Measure("at_once", False), Measure("grad_ratio", 2.1)), (), "lr_too_high"),
    ],
)
def test_a_leap_without_exploding_gradients_is_not_put_down_to_the_rate(
    evidence: tuple[Measure, ...], others: tuple[str, ...], cause: str
) -> None:
    where = Location(run="run", step=100)
    lead = Finding("GD104", "loss-divergence", Severity.CRITICAL, "a divergence", where, evidence)
    beside = tuple(Finding(code, "x", Severity.WARNING, "x", where, (Measure("ratio", 16.5),)) for code in others)

    best = next(c for c in rank(Case("divergence", lead, (lead, *beside), onset=100)) if c.cause != "unknown")

    assert best.cause == cause


def test_clocks_that_fell_make_data_and_network_needless() -> None:
    slow = Finding("GD501", "step-time-shift", Severity.WARNING, "slower", Location(run="run", step=100))
    fell = Finding(
        "GD604",
        "clock-outlier",
        Severity.INFO,
        "clocks fall",
        Location(run="run", step=100),
        (Measure("lacking", "event reasons"),),
    )
    plain = {c.cause: c.score for c in rank(Case("step_time_shift", slow, (slow,), onset=100))}
    found = rank(Case("step_time_shift", slow, (slow, fell), onset=100))
    assert found[0].cause == "unknown_step_time_drift"
    assert "clocks fall" in found[0].supports
    assert {c.cause: c.score for c in found}.get("dataloader_stall", 0.0) < 0.5 * plain["dataloader_stall"]


@pytest.mark.parametrize(
    ("layer", "said"), [("wte", "the embedding wte moves first"), (None, "the embedding moves first")]
)
def test_a_kind_of_layer_is_named_with_the_layer_where_one_is_known(layer: str | None, said: str) -> None:
    lead = Finding(
        "GD206",
        "gradient-spike",
        Severity.WARNING,
        "x",
        Location(run="run", step=9),
        (Measure("layer_kind", "embedding"),),
    )
    case = Case("gradient_explosion", lead, (lead,), onset=9, layer=layer)
    assert any(text.startswith(said) for cause in rank(case) for text in cause.supports)


def test_a_spike_that_lasts_was_no_batch_alone() -> None:
    same = (Measure("after_effect", 0.0), Measure("noise", 0.05), Measure("log_interval", 1))
    brief, long = (rank(spike(*same, Measure("recovery_step", 100 + n)))[0] for n in (5, 60))
    assert (brief.cause, long.cause) == ("bad_batch", "bad_batch")
    assert brief.score > long.score
    assert not any("no after-effect" in text for text in long.supports)


def test_a_rate_on_its_way_up_has_not_decayed() -> None:
    def told(ratio: float) -> bool:
        case = spike(Measure("lr_share_of_peak", 0.15), Measure("lr_ratio", ratio))
        return ("lr_too_high", "schedule", False) in weigh(case)

    assert (told(0.98), told(2.4)) == (True, False)


def test_the_whole_networks_norm_that_jumps_at_a_resume_is_another_checkpoints() -> None:
    step = Finding("GD105", "loss-step-up", Severity.WARNING, "a step", Location(run="run", step=100))
    moved = (Measure("layers_moved", 1), Measure("layers_total", 1))

    def first(*, resumed: bool) -> str:
        jump = Finding(
            "GD208", "parameter-jump", Severity.WARNING, "a jump", Location(run="run", step=100),
            (*moved, Measure("at_restart", resumed), Measure("other_weights", resumed)),
        )  # fmt: skip
        return explain((jump, step), {"run": RunFacts("run")})[0].causes[0].cause

    assert first(resumed=True) == "resume_mismatch"
    assert first(resumed=False) == "silent_data_corruption"


def test_a_step_up_with_grown_output_logits_is_theirs() -> None:
    step = Finding("GD105", "loss-step-up", Severity.WARNING, "a step", Location(run="run", step=100))
    grown = Finding("GD211", "output-logit-growth", Severity.WARNING, "logits grow", Location(run="run", step=110))
    assert rank(Case("step_up", step, (step, grown), onset=100))[0].cause == "output_logit_growth"


def test_the_first_of_many_layers_that_rise_in_one_row_names_no_kind() -> None:
    def told(*evidence: Measure) -> bool:
        return ("bad_batch", "layer", True) in weigh(spike(Measure("layer_kind", "embedding"), *evidence))

    assert told(Measure("attributable", value=True))
    assert not told(Measure("attributable", value=False))
    assert told(Measure("attributable", value=False), Measure("embedding_excess", 2.0))


@pytest.mark.parametrize("factor", [0.01, 1.0, 100.0])
def test_an_after_effect_is_held_against_the_rise_not_against_a_nat(factor: float) -> None:
    def said(effect: float) -> tuple[bool, bool]:
        figures = {"peak_excess": 2.0, "after_effect": effect, "noise": 0.001}
        case = spike(*(Measure(name, factor * value, "nat") for name, value in figures.items()))
        return no_after_effect(case) is not None, after_effect(case) is not None

    assert [said(effect) for effect in (0.01, 0.07, 0.2)] == [(True, False), (False, False), (False, True)]


ALIKE = {"noise_ratio": 1.1, "level_kept": 0.9, "level_before": 2.0, "level_after": 2.6}


@pytest.mark.parametrize(
    ("figures", "cause"),
    [
        ({}, "config_change"),
        ({"grad_level_ratio": 1.1, "grad_roughness_ratio": 1.0}, "config_change"),
        ({"noise_ratio": 30.0}, "lr_too_high"),
        ({"level_kept": 1.6}, "lr_too_high"),
        ({"grad_level_ratio": 40.0, "grad_roughness_ratio": 1.0}, "lr_too_high"),
        ({"grad_level_ratio": 0.4, "grad_roughness_ratio": 2.4}, "lr_too_high"),
    ],
)
def test_in_a_sparse_log_how_training_goes_on_tells_a_step_from_a_rate(figures: dict[str, float], cause: str) -> None:
    measures = [Measure(name, value) for name, value in (ALIKE | figures).items()]
    evidence = (Measure("at_once", True), Measure("log_interval", 50), *measures)
    lead = Finding(
        "GD104", "loss-divergence", Severity.CRITICAL, "a divergence", Location(run="run", step=100), evidence
    )
    best = rank(Case("divergence", lead, (lead,), onset=100))[0]
    assert best.cause == cause


def test_rougher_gradients_speak_against_other_data_at_a_step_of_the_loss() -> None:
    def share(ratio: float) -> float:
        return scores(step_up(Measure("at_once", True), Measure("grad_roughness_ratio", ratio)))["config_change"]

    assert share(2.5) < 0.5 * share(1.0)


def test_a_loss_that_learns_again_names_the_checkpoint_and_what_would_decide() -> None:
    best = rank(step_up(Measure("at_once", True), Measure("like_step", 120.0)))[0]
    assert (best.cause, best.band) == ("resume_mismatch", "medium")
    assert "from step 120 on" in best.supports[0]
    assert any("checkpoint" in column for column in best.missing)
    assert any("sample ids" in column for column in best.missing)


@pytest.mark.parametrize(("back", "named"), [(104, False), (180, True)])
def test_a_spike_that_wears_off_may_follow_a_restart_that_nothing_marks(back: int, named: bool) -> None:
    causes = {c.cause: c for c in rank(spike(Measure("recovery_step", back), Measure("log_interval", 1)))}
    assert ("optimizer_state_lost" in causes) is named
    if named:
        assert causes["optimizer_state_lost"].missing == ("restart and checkpoint lines of the console",)


@pytest.mark.parametrize(("moved_at", "rough_at", "supported"), [(60, 64, True), (800, 801, False), (800, 500, True)])
def test_gradients_that_turn_rough_with_a_late_event_say_nothing_of_the_rate(
    moved_at: int, rough_at: int, supported: bool
) -> None:
    lead = Finding("GD104", "loss-divergence", Severity.CRITICAL, "rises", Location(run="run", step=moved_at))
    rough = Finding("GD213", "unstable-gradients", Severity.WARNING, "rough", Location(run="run", step=rough_at))
    facts = RunFacts("run", first_step=0, last_step=1000)
    causes = rank(Case("divergence", lead, (lead, rough), facts=facts, onset=moved_at, last=1000))
    told = [text for cause in causes if cause.cause == "lr_too_high" for text in cause.supports]
    assert ("rough" in told) is supported


@pytest.mark.parametrize(("onset", "best"), [(8, "lr_too_high"), (500, "lr_decayed_early")])
def test_no_schedule_decays_where_a_run_begins(onset: int, best: str) -> None:
    lead = Finding("GD108", "loss-plateau", Severity.WARNING, "flat", Location(run="run", step=onset))
    facts = RunFacts("run", first_step=0, last_step=1000)
    assert rank(Case("plateau", lead, (lead,), facts=facts, onset=onset, last=1000))[0].cause == best


def test_scores_are_log_odds_over_a_temperature() -> None:
    shape = spike(Measure("after_effect", 0.0), Measure("noise", 0.05), Measure("peak_excess", 2.0))
    moved = spike(Measure("token_entropy_z", 9.0))
    for case in (shape, moved):
        odds = logits(case, weigh(case))
        top = max(odds.values())
        due = 1 / sum(exp((value - top) / TEMPERATURE) for value in odds.values())
        assert rank(case)[0].score == pytest.approx(min(due, 1 - RESERVED), abs=0.02)
    assert TEMPERATURE < 1


def test_no_amount_of_evidence_is_a_verdict() -> None:
    sure = spike(Measure("token_entropy_z", 40.0), Measure("returns_at_same_samples", True), Measure("grad_lead", 0))
    assert rank(sure)[0].score <= 1 - RESERVED


@pytest.mark.parametrize("columns", [frozenset[str](), frozenset({"steps.lr"}), frozenset({"steps.grad_norm"})])
def test_a_step_that_a_raised_rate_would_make_too_names_it_with_the_column(columns: frozenset[str]) -> None:
    measures = tuple(Measure(name, value) for name, value in ALIKE.items())
    lead = Finding(
        "GD105", "loss-step-up", Severity.WARNING, "a step", Location(run="run", step=9), (Measure("at_once", True), *measures),
    )  # fmt: skip
    found = rank(Case("step_up", lead, (lead,), facts=RunFacts("run", columns=columns), onset=9))
    named = {c.cause: c.missing for c in found}
    assert ("lr_jump" in named) is (not columns)
    assert columns or named["lr_jump"] == ("the learning rate per step",)


@pytest.mark.parametrize(("half", "every", "against"), [(5.0, 1, False), (20.0, 1, True), (20.0, 10, False)])
def test_batches_do_not_wear_off_slowly(half: float, every: int, against: bool) -> None:
    causes = rank(spike(Measure("half_life", half), Measure("log_interval", every)))
    told = [text for cause in causes if cause.cause == "bad_batch" for text in cause.contradicts]
    assert any("wears off" in text for text in told) is against


def lost(step: int, first: int = 0, facts_rows: int = 500) -> Case:
    evidence = (Measure("rows", 40), Measure("without_run_up", True))
    lead = Finding("GD101", "loss-not-finite", Severity.CRITICAL, "NaN", Location(run="run", step=step), evidence)
    facts = RunFacts("run", first_step=first, rows=np.arange(first, first + facts_rows))
    return Case("nonfinite", lead, (lead,), facts=facts, onset=step, last=facts_rows)


def test_nothing_can_rise_before_the_first_row() -> None:
    supports = {text for cause in rank(lost(0)) for text in cause.supports}
    assert not any("nothing rises" in text for text in supports)
    assert any("nothing rises" in text for cause in rank(lost(300)) for text in cause.supports)


def test_no_rate_loses_a_loss_before_the_first_update() -> None:
    def share(case: Case) -> float:
        return next((cause.score for cause in rank(case) if cause.cause == "lr_too_high"), 0.0)

    assert share(lost(0)) < share(lost(300))
    assert share(lost(4000, first=4000)) >= share(lost(0))


def test_a_batch_that_changed_at_the_onset_counts_where_a_later_finding_is_level() -> None:
    where = Location(run="run", step=755, last_step=785)
    lead = Finding("GD101", "loss-not-finite", Severity.CRITICAL, "NaN", where, (Measure("batch_ratio", 1.0),))
    rise = Finding("GD102", "loss-spike", Severity.WARNING, "a rise", where, (Measure("batch_ratio", 1 / 32),))
    best = rank(Case("nonfinite", lead, (lead, rise), facts=RunFacts("run"), onset=755, last=785))[0]
    assert best.cause == "config_change"
    assert "the batch size changes ×0.0312 at the onset" in best.supports


def test_a_layer_whose_units_all_die_with_a_jump_was_not_hit_by_one_flipped_bit() -> None:
    where = Location(run="run", step=243, last_step=243, layer="blocks.2.fc")
    jump = Finding("GD208", "parameter-jump", Severity.CRITICAL, "fc jumps", where, (Measure("alone", value=True),))
    alone = rank(Case("parameter_jump", jump, (jump,), facts=RunFacts("run"), onset=243, layer="blocks.2.fc"))
    assert alone[0].cause == "silent_data_corruption"
    died = (Measure("from_start", value=False), Measure("exact_zero", value=True))
    dead = Finding("GD203", "dead-layer", Severity.WARNING, "no gradient", where, died)
    both = rank(Case("parameter_jump", jump, (jump, dead), facts=RunFacts("run"), onset=243, layer="blocks.2.fc"))
    assert [cause.cause for cause in both[:2]] == ["dead_layer", "silent_data_corruption"]
    assert both[0].score < 0.9


def test_a_loss_that_flies_far_above_where_it_then_stays_was_not_moved_by_a_setting() -> None:
    where = Location(run="run", step=102, last_step=161)
    levels = (Measure("level_before", 7.0), Measure("level_after", 19.0))
    for peak, first in ((1000.0, "optimizer_instability"), (14.0, "config_change")):
        evidence = (
            *levels,
            Measure("peak_excess", peak),
            Measure("recovered", value=False),
            Measure("at_once", value=True),
        )
        lead = Finding("GD105", "loss-step-up", Severity.WARNING, "a step up", where, evidence)
        best = rank(Case("step_up", lead, (lead,), facts=RunFacts("run"), onset=102, last=161))[0]
        assert best.cause == first


@pytest.mark.parametrize(("share", "cause"), [(1.0, "bad_batch"), (0.5, "optimizer_instability")])
def test_a_spike_at_its_height_in_its_first_row_is_no_drift_of_the_weights(share: float, cause: str) -> None:
    evidence = (Measure("z", 28.0), Measure("log_interval", 1), Measure("first_share", share), Measure("grad_lead", 0))
    spike = Finding("GD102", "loss-spike", Severity.WARNING, "a spike", Location(run="run", step=100), evidence)
    outgrown = Finding(
        "GD214", "stale-second-moment", Severity.INFO, "m", Location(run="run", step=100), (Measure("moment_rms", 5.0),)
    )
    assert rank(Case("single_spike", spike, (spike, outgrown), onset=100))[0].cause == cause


@pytest.mark.parametrize(("then", "fall", "cause"), [(0.6, 0.3, "lr_too_high"), (None, None, "lr_decayed_early")])
def test_a_loss_stuck_while_the_rate_is_high_speaks_for_one_too_high(
    then: float | None, fall: float | None, cause: str
) -> None:
    known = [Measure(name, value) for name, value in (("lr_share_then", then), ("lr_fall", fall)) if value is not None]
    flat = Finding(
        "GD108",
        "loss-plateau",
        Severity.WARNING,
        "flat",
        Location(run="run", step=100),
        (Measure("falls_on", True), *known),
    )
    assert rank(Case("plateau", flat, (flat,), onset=100))[0].cause == cause


@pytest.mark.parametrize(("kind", "cause"), [("weights", "lr_too_high"), ("rough", "config_change")])
def test_decay_that_takes_back_what_updates_carried_off_is_no_change(kind: str, cause: str) -> None:
    at = Location(run="run", step=2)
    carried = (Measure("kind", kind), Measure("growth", 3.0), Measure("pace", 0.03))
    away = Finding("GD307", "unstable-at-peak-lr", Severity.WARNING, "m", at, carried)
    shrink = Finding("GD215", "parameter-shrink", Severity.WARNING, "m", at)
    assert rank(Case("divergence", away, (away, shrink), onset=2))[0].cause == cause
