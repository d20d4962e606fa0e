"""What belongs together is one incident; what does not stays apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdiag.model import Cost, DataWindow, Finding, Incident, Location, Measure, Severity
from gdiag.triage import explain, together
from gdiag.triage.facts import RunFacts
from gdiag.triage.grouping import group

WARNING, INFO, CRITICAL = Severity.WARNING, Severity.INFO, Severity.CRITICAL


def finding(
    code: str, step: int | None, last: int | None = None, severity: Severity = WARNING, **where: object
) -> Finding:
    evidence = where.pop("evidence", ())
    place = Location(run="run", step=step, last_step=last if last is not None else step, **where)  # type: ignore[arg-type]
    return Finding(code, code.lower(), severity, f"{code} is seen", place, evidence)  # type: ignore[arg-type]


def incidents(*findings: Finding, facts: RunFacts | None = None) -> tuple[Incident, ...]:
    return explain(findings, {"run": facts or RunFacts("run")})


def test_spike_with_its_gradient_and_layer_is_one_incident() -> None:
    found = incidents(
        finding("GD102", 267, 271), finding("GD206", 266, 270, INFO), finding("GD205", 266, 268, INFO, layer="wte")
    )
    assert [i.pattern for i in found] == ["single_spike"]
    assert found[0].layer == "wte"
    assert found[0].onset_step == 267


def test_two_spikes_far_apart_are_two_incidents() -> None:
    assert [i.onset_step for i in incidents(finding("GD102", 100, 105), finding("GD102", 400, 410))] == [100, 400]


def test_what_follows_a_divergence_belongs_to_it() -> None:
    found = incidents(
        finding("GD104", 300, 900, CRITICAL), finding("GD201", 500, 600), finding("GD101", 880, 900, CRITICAL)
    )
    assert len(found) == 1
    assert found[0].onset_step == 300


def test_time_and_model_faults_stay_two_incidents() -> None:
    found = incidents(
        finding("GD102", 300, 305), finding("GD601", 290, 900, gpu=0, host="n0"), finding("GD502", 295, 900)
    )
    assert sorted(i.pattern for i in found) == ["single_spike", "thermal_slowdown"]


def test_uncorrectable_ecc_at_a_spike_is_one_incident_on_its_gpu() -> None:
    found = incidents(finding("GD102", 300, 305), finding("GD403", 299, 299, CRITICAL, gpu=2, host="n0"))
    assert [(i.pattern, i.gpu, i.host) for i in found] == [("ecc_error", 2, "n0")]
    assert found[0].causes[0].cause == "hardware_fault"


def test_two_gpus_throttling_are_two_incidents() -> None:
    found = incidents(finding("GD601", 290, 900, gpu=0, host="n0"), finding("GD601", 290, 900, gpu=3, host="n1"))
    assert [i.gpu for i in found] == [0, 3]


def test_not_learning_because_unstable_is_one_incident() -> None:
    found = incidents(finding("GD307", 60, 700, CRITICAL), finding("GD107", 0, 700))
    assert [i.pattern for i in found] == ["divergence"]
    assert found[0].onset_step == 60


def test_gradients_that_vanish_in_weights_carried_off_are_their_consequence() -> None:
    kind = (Measure("kind", "weights"), Measure("pace", 0.2))
    found = incidents(
        finding("GD307", 0, 20, evidence=kind), finding("GD202", 12, 600, CRITICAL), finding("GD108", 30, 600)
    )
    assert [(i.pattern, i.onset_step, i.causes[0].cause) for i in found] == [("divergence", 0, "lr_too_high")]


def test_a_layer_that_died_long_before_dates_nothing() -> None:
    died = (Measure("from_start", value=False),)
    found = incidents(
        finding("GD203", 162, 799, evidence=died, layer="experts.3"), finding("GD208", 573, severity=CRITICAL)
    )
    assert [(i.pattern, i.onset_step) for i in found] == [("parameter_jump", 573), ("dead_layer", 162)]


def test_a_run_that_learns_no_more_near_its_peak_rate_is_one_incident() -> None:
    kind, back = (Measure("kind", "stalled"),), (Measure("recovered", value=True), Measure("recovery_step", 82))
    batch = (Measure("sample_start", 1296), Measure("sample_end", 1312))
    found = incidents(
        finding("GD307", 81, 1199, evidence=kind), finding("GD102", 81, 81, evidence=(*back, *batch)),
        finding("GD202", 24, 1199), finding("GD108", 24, 1199), facts=RunFacts("run", first_step=0, last_step=1199),
    )  # fmt: skip
    assert [(i.pattern, i.onset_step, i.last_step, i.cost.steps) for i in found] == [("divergence", 24, 1199, 1176)]
    assert found[0].title.startswith("Loss stops falling as the rate nears its peak")
    assert not any("regained" in action for action in found[0].actions)
    assert found[0].data is None  # the spike's batch is not that of the onset


def test_a_restart_is_no_consequence_of_what_grows_over_the_run() -> None:
    found = incidents(finding("GD210", 133, 719), finding("GD120", 317, 357))
    assert [(i.pattern, i.onset_step) for i in found] == [("layer_outlier", 133), ("resume_jump", 317)]


def test_cost_counts_seconds_and_gpu_hours() -> None:
    facts = RunFacts("run", step_seconds=2.0, ranks=1800)
    cost = incidents(finding("GD102", 10, 19), facts=facts)[0].cost
    assert (cost.steps, cost.seconds, cost.gpu_hours) == (10, 20.0, 10.0)


def test_indices_point_into_the_findings_given() -> None:
    given = (finding("GD403", 900, 900, CRITICAL, gpu=1), finding("GD102", 10, 12), finding("GD206", 11, 12, INFO))
    found = explain(given, {})
    assert [i.findings for i in found] == [(0,), (1, 2)]


def test_neighbours_in_time_are_related() -> None:
    found = incidents(finding("GD102", 300, 305), finding("GD504", 302, 303))
    assert [i.related for i in found] == [(1,), (0,)]


def test_lr_jump_explains_the_spike_that_follows() -> None:
    ratio = (Measure("lr_ratio", 12.0, ""),)
    found = incidents(finding("GD302", 604, 604, evidence=ratio), finding("GD102", 605, 640, CRITICAL))
    assert len(found) == 1
    assert found[0].onset_step == 604
    assert found[0].causes[0].cause == "lr_jump"


def test_a_sharp_event_dates_a_slow_rise() -> None:
    slow = (Measure("slow", value=True),)
    ratio = (Measure("lr_ratio", 150.0, ""),)
    found = incidents(
        finding("GD104", 815, 1499, CRITICAL, evidence=slow), finding("GD302", 1039, 1043, evidence=ratio)
    )
    assert [(i.pattern, i.onset_step, i.causes[0].cause) for i in found] == [("divergence", 1039, "lr_jump")]


def test_a_slow_rise_does_not_date_the_resume_that_it_follows_from() -> None:
    slow = (Measure("slow", value=True),)
    found = incidents(finding("GD109", 1417, 1592, CRITICAL), finding("GD104", 1218, 2000, evidence=slow))
    assert [(i.pattern, i.onset_step) for i in found] == [("resume_jump", 1417)]


def test_a_plateau_begins_where_the_rate_was_gone() -> None:
    found = incidents(finding("GD108", 288, 1199), finding("GD303", 400, 1199))
    assert [(i.pattern, i.onset_step, i.last_step) for i in found] == [("plateau", 400, 1199)]


def test_a_shape_names_the_incident_and_a_hint_explains_it() -> None:
    found = incidents(
        finding("GD210", 1356, 1999, CRITICAL, layer="layers.0"),
        finding("GD103", 1420, 1928),
        finding("GD205", 1417, 1452, INFO, layer="layers.0.q_proj"),
    )
    assert [(i.pattern, i.severity, i.layer) for i in found] == [("repeated_spikes", CRITICAL, "layers.0.q_proj")]
    assert found[0].causes[0].cause == "attention_logit_growth"


def test_growth_of_the_head_belongs_to_its_logits() -> None:
    found = incidents(finding("GD211", 1480, 1999, layer="lm_head"), finding("GD207", 1600, 1999, layer="lm_head"))
    assert len(found) == 1
    assert found[0].causes[0].cause == "output_logit_growth"


def test_an_onset_has_its_samples_where_ids_are_logged() -> None:
    windows = {400: DataWindow(6400, 6416), 100: DataWindow(1600, 1616)}
    facts = RunFacts("run", windows=windows)
    (explosion,) = incidents(finding("GD201", 400, 420), finding("GD206", 401, 410, INFO), facts=facts)
    assert explosion.data == DataWindow(6400, 6416)
    (named,) = incidents(
        finding("GD102", 400, evidence=(Measure("sample_start", 9), Measure("sample_end", 12))), facts=facts
    )
    assert named.data == DataWindow(9, 12)
    (slow,) = incidents(finding("GD501", 100, 900), facts=facts)
    assert slow.data is None


def test_titles_say_what_the_finding_is() -> None:
    assert incidents(finding("GD111", 100))[0].title == "Validation loss is not finite from step 100"
    assert incidents(finding("GD605", 100, severity=INFO))[0].title == "GPU runs hot from step 100"
    assert incidents(finding("GD404", None))[0].title == "GD404 is seen"
    assert incidents(finding("GD008", 100, rank=3))[0].title == "GD008 is seen (rank 3)"


def test_steps_that_have_more_to_do_are_named_so() -> None:
    more = finding("GD501", 100, severity=INFO, evidence=(Measure("load_ratio", 2.0), Measure("ratio", 1.97)))
    assert incidents(more)[0].title == "Steps have 2 times the work from step 100"
    assert incidents(more)[0].causes[0].cause == "config_change"
    grown = finding("GD501", 100, severity=INFO, evidence=(Measure("batch", "grown"), Measure("ratio", 1.97)))
    assert incidents(grown)[0].title == "Batch size may have grown: longer steps from step 100"
    assert incidents(grown)[0].causes[0].cause == "config_change"
    same = finding("GD501", 100, evidence=(Measure("load_ratio", 1.0), Measure("ratio", 1.97)))
    assert incidents(same)[0].title == "Step time shifts up from step 100"
    trifle = finding("GD501", 100, severity=INFO, evidence=(Measure("load_ratio", 1.0), Measure("ratio", 1.3)))
    assert incidents(trifle)[0].title == "Step time shifts up from step 100"
    assert "config_change" not in {c.cause for c in incidents(same)[0].causes}


def test_a_non_finite_loss_is_dated_to_itself_in_the_title() -> None:
    (incident,) = incidents(finding("GD101", 12, 90, CRITICAL), finding("GD102", 9, 11))
    assert incident.onset_step == 9
    assert incident.title == "Loss or gradient is not finite at step 12, unstable from step 9"


def test_slow_steps_cost_their_own_number_and_not_the_stretch() -> None:
    slow = (Measure("slow_steps", 5), Measure("seconds_lost", 32.0, "s"))
    (incident,) = incidents(finding("GD504", 100, 9000, INFO, evidence=slow))
    assert (incident.cost.steps, incident.cost.seconds) == (5, 32.0)


def test_the_logs_own_quality_comes_after_what_happened() -> None:
    found = incidents(finding("GD007", 0, 900, INFO), finding("GD504", 500, 600, INFO))
    assert [i.pattern for i in found] == ["slow_steps", "log_quality"]


def test_periodic_steps_cost_the_slow_ones() -> None:
    evidence = (Measure("hits", 8), Measure("seconds_lost", 40.0, "s"))
    assert incidents(finding("GD503", 100, 800, INFO, evidence=evidence))[0].cost.steps == 8


def test_what_is_dated_to_a_quarter_of_the_run_dates_no_jump() -> None:
    jump, rough = finding("GD208", 573, severity=CRITICAL, layer="inp"), finding("GD213", 550, 799)
    (both,) = incidents(jump, rough)
    assert (both.pattern, both.onset_step) == ("parameter_jump", 573)
    assert incidents(rough)[0].onset_step == 550


def test_gradients_that_jump_with_hard_batches_are_one_incident() -> None:
    hard = finding("GD106", 250, 750, evidence=(Measure("steps", "250, 500, 750"),))
    jumps = [finding("GD206", step, step, INFO) for step in (250, 500, 750, 900)]
    found = incidents(hard, *jumps)
    assert [(i.pattern, i.onset_step, len(i.findings)) for i in found] == [
        ("hard_batches", 250, 4), ("gradient_explosion", 900, 1),
    ]  # fmt: skip


def test_layers_that_rise_together_are_not_called_one() -> None:
    (incident,) = incidents(finding("GD205", 255, 255, INFO, evidence=(Measure("simultaneous", True),)))
    assert incident.title == "Gradients of many layers rise together at step 255"


def test_a_benchmark_that_stopped_or_contradicts_itself_is_run_again() -> None:
    for evidence, words in (
        ((Measure("failure", "host3: Test NCCL failure"),), "the host that failed first"),
        ((Measure("ranks_listed", 16), Measure("ranks_measured", 1)), "MPI=1"),
        ((Measure("odd_rows", 3),), "keep the whole output"),
    ):
        (incident,) = incidents(finding("GD705", None, None, WARNING, evidence=evidence))
        assert words in incident.actions[0]


def test_what_does_not_come_back_lasts_until_its_level_is_regained_or_the_log_ends() -> None:
    lost, facts = Measure("recovered", value=False), RunFacts("run", first_step=0, last_step=2000)
    up = (lost, Measure("peak_excess", 0.5, "nat"))
    (incident,) = incidents(finding("GD105", 1000, 1120, evidence=up), facts=facts)
    assert (incident.onset_step, incident.last_step, incident.cost.steps) == (1000, 2000, 1001)
    assert incident.title.endswith("+0.50 nat, not recovered")
    made_good = (*up, Measure("regained_step", 1190, "step"))
    (incident,) = incidents(finding("GD105", 1000, 1120, evidence=made_good), facts=facts)
    assert (incident.last_step, incident.title.rpartition(", ")[2]) == (
        1189,
        "back at the level of before only by step 1190",
    )
    aside = (*up, Measure("taken_back", value=True))
    (incident,) = incidents(finding("GD105", 1000, 1120, evidence=aside), facts=facts)
    assert incident.last_step == 1120


def test_a_spike_after_a_step_up_is_its_own_incident() -> None:
    up = finding("GD105", 1000, 1120, evidence=(Measure("recovered", value=False),))
    found = incidents(up, finding("GD102", 1500, 1504), facts=RunFacts("run", first_step=0, last_step=2000))
    assert [i.onset_step for i in found] == [1000, 1500]


def test_steps_below_zero_end_at_zero() -> None:
    (incident,) = incidents(finding("GD102", -5, 0))
    assert (incident.onset_step, incident.last_step) == (-5, 0)


def test_layers_that_rise_in_a_hard_batch_are_the_batch_s() -> None:
    batch = finding("GD106", 255, 255, INFO, evidence=(Measure("steps", "255"), Measure("z", 11.0)))
    rise = finding(
        "GD205",
        255,
        280,
        INFO,
        evidence=(Measure("alone", value=False), Measure("layers_moved", 15), Measure("layers_total", 22)),
    )
    (incident,) = incidents(batch, rise)
    assert (incident.pattern, incident.onset_step, incident.last_step) == ("hard_batches", 255, 255)
    alone = finding("GD205", 255, 255, WARNING, layer="fc", evidence=(Measure("alone", value=True),))
    assert len(incidents(batch, alone)) == 2


def test_logits_that_grow_from_the_first_steps_are_no_batch() -> None:
    early = finding(
        "GD210", 39, 639, INFO, layer="blocks.0.qkv",
        evidence=(Measure("layers_moved", 2), Measure("layers_total", 2), Measure("logged", value=True), Measure("from_start", value=True)),
    )  # fmt: skip
    (incident,) = incidents(early)
    assert incident.title == "Attention logits grow from step 39 (blocks.0.qkv)"
    assert incident.causes[0].cause == "attention_logit_growth"
    assert incident.actions[0].startswith("Nothing to change for the logits alone")
    flat, _ = incidents(finding("GD108", 28, 639), early)
    assert (flat.causes[0].cause, flat.causes[0].supports) == ("lr_too_high", ("GD210 is seen",))


def test_no_loss_is_said_to_recover_that_never_moved() -> None:
    (incident,) = incidents(
        finding("GD205", 30, 30, INFO, evidence=(Measure("alone", value=False), Measure("layer_kind", "embedding")))
    )
    assert incident.actions[0].startswith("The loss stays at its level")


def test_rows_count_where_the_log_is_sparse() -> None:
    rows = np.concatenate([np.arange(100), 930 + 971 * np.arange(60)])
    rise = finding("GD102", 5785, 8698, WARNING, evidence=(
        Measure("recovered", value=False), Measure("level_before", 4.4), Measure("peak_excess", 644.0),
    ))  # fmt: skip
    facts = RunFacts("run", first_step=0, last_step=58000, rows=rows)
    lost = finding("GD101", 9669, 58000, CRITICAL)
    (incident,) = incidents(rise, lost, facts=facts)
    assert incident.onset_step == 5785
    grown = "the loss grew 147-fold in the 3884 steps before: it overflowed by growing"
    assert grown in next(c for c in incident.causes if c.cause == "lr_too_high").supports
    assert len(incidents(rise, finding("GD101", 930 + 971 * 30, 58000, CRITICAL), facts=facts)) == 2


def test_a_crash_loop_is_an_exit_whose_cause_its_end_tells() -> None:
    for same, words in (
        (True, "resume without the batch after step 513"),
        (False, "the host of each of the 4 attempts"),
    ):
        evidence = (Measure("kind", "crash_loop"), Measure("restarts", 4), Measure("same_step", same))
        (incident,) = incidents(finding("GD003", 500, 513, WARNING, evidence=evidence))
        assert (incident.pattern, incident.title, incident.causes[0].cause) == (
            "abnormal_exit",
            "GD003 is seen",
            "software_fault",
        )
        assert words in incident.actions[0]


def test_first_updates_that_did_harm_name_a_missing_warm_up_beside_the_rate() -> None:
    full_rate = finding(
        "GD305", 0, None, INFO, evidence=(Measure("worse_step", 6, "step"), Measure("worse_ratio", 1.4))
    )
    flat = next(i for i in incidents(finding("GD108", 28, 639), full_rate) if i.pattern == "plateau")
    causes = {cause.cause: cause.supports for cause in flat.causes}
    assert causes["missing_warmup"] == (
        "the first updates, at the full rate, drive the loss to 1.4 times its start by step 6",
    )


def test_gradients_that_grow_with_a_resume_are_its_consequence() -> None:
    resumed = finding(
        "GD109", 564, None, WARNING, evidence=(Measure("kind", "level"), Measure("recovered", value=False))
    )
    (incident,) = incidents(
        finding("GD201", 556, 898, CRITICAL), resumed, facts=RunFacts("run", first_step=0, last_step=898)
    )
    assert (incident.pattern, incident.onset_step, incident.severity) == ("resume_jump", 564, CRITICAL)


def test_what_is_only_worth_knowing_binds_nothing_together() -> None:
    grown = finding("GD201", 48, 728, INFO)
    found = incidents(grown, finding("GD102", 300, 304), finding("GD104", 690, 1198, CRITICAL))
    assert sorted(i.onset_step or 0 for i in found) == [48, 300, 690]
    rises = next(i for i in found if i.onset_step == 48)
    assert rises.title.startswith("Gradient norm rises from step 48")
    assert rises.actions[0].startswith("Nothing to change while the run learns with it")


def test_a_log_that_begins_late_is_no_resume_by_itself() -> None:
    begun = (Measure("kind", "fresh_model"),)
    (cut,) = incidents(finding("GD109", 1100, None, INFO, evidence=begun))
    assert (cut.pattern, cut.title, cut.causes) == ("log_quality", "GD109 is seen", ())
    assert cut.actions[0].startswith("Nothing to do where the log is cut from a longer one")
    (resumed,) = incidents(finding("GD109", 1100, None, WARNING, evidence=begun))
    assert (resumed.pattern, resumed.causes[0].cause) == ("resume_jump", "resume_mismatch")


def test_a_rate_that_never_changes_is_no_evidence() -> None:
    up = finding("GD104", 500, 999, CRITICAL, evidence=(Measure("lr_share_of_peak", 1.0),))
    for steady, told in ((False, ("the learning rate is at 100% of its peak",)), (True, ())):
        (incident,) = incidents(up, facts=RunFacts("run", first_step=0, last_step=999, steady_lr=steady))
        assert next(c for c in incident.causes if c.cause == "lr_too_high").supports == told


def test_a_spike_that_is_over_skips_nothing() -> None:
    (incident,) = incidents(
        finding("GD102", 300, 304, evidence=(Measure("recovered", value=True), Measure("token_entropy_z", 9.0)))
    )
    assert incident.actions[0].startswith("The loss recovered: go on")
    assert not any(action.startswith("Skip") for action in incident.actions)


def test_a_non_fatal_error_drains_nothing() -> None:
    switch = (Measure("sxid", 12028), Measure("hardware", value=True), Measure("bus_id", "0000:86:00"))
    handled = finding("GD404", None, None, WARNING, evidence=(*switch, Measure("fatal", value=False)))
    (incident,) = incidents(handled)
    assert incident.actions[0].startswith("Nothing to drain for a non-fatal error")
    assert not any(a.startswith(("Drain", "Roll back")) for a in incident.actions)
    (grave,) = incidents(finding("GD404", None, None, CRITICAL, evidence=(*switch, Measure("fatal", value=True))))
    assert grave.actions[0].startswith("Drain the switch at 0000:86:00")


def test_a_warm_up_on_purpose_is_left_alone() -> None:
    (incident,) = incidents(finding("GD306", 239, 239, INFO, evidence=(Measure("kind", "restarted"),)))
    assert incident.actions[0].startswith("Nothing to do where the warm-up after the restart was meant")


def test_a_lone_gradient_spike_changes_nothing() -> None:
    (incident,) = incidents(finding("GD206", 263, 264, INFO))
    assert incident.title == "Gradient norm jumps at step 263"
    assert incident.actions == (
        "Nothing to change while the loss does not follow: go on, and look again if it returns",
    )


def test_a_gradient_spike_that_moves_the_loss_is_not_said_to_leave_it() -> None:
    (incident,) = incidents(finding("GD206", 263, 264, INFO, evidence=(Measure("loss_moved", True),)))
    assert incident.actions == (
        "Nothing to change for one jump that passes: compare the loss after it with that before, and look again if it returns",
    )


def test_ports_that_grow_when_steps_are_slow_are_evidence_of_the_same_incident() -> None:
    def found(code: str, first: float, last: float, *evidence: Measure) -> Finding:
        where = Location(run="run", step=100 if code == "GD504" else None, last_step=200, time=first, last_time=last)
        return Finding(code, code, Severity.WARNING, code, where, evidence)

    slow = found("GD504", 1000.0, 2000.0)
    meets = found("GD706", 1500.0, 1600.0, Measure("meets_slow_steps", value=True), Measure("kind", "errors"))
    apart = found("GD706", 1500.0, 1600.0, Measure("meets_slow_steps", value=False))
    later = found("GD706", 5000.0, 5100.0, Measure("meets_slow_steps", value=True))
    groups = group((slow, meets, apart, later), RunFacts("run"))
    assert [slow, meets] in groups
    assert len(groups) == 3


def test_an_exit_over_numbers_belongs_to_them() -> None:
    said = (Measure("kind", "exit"), Measure("numeric", True), Measure("loss_scale_at_minimum", False))
    found = incidents(finding("GD101", 537, 537, CRITICAL), finding("GD008", 499, evidence=said))
    assert [(i.pattern, i.onset_step) for i in found] == [("nonfinite", 537)]
    plain = (Measure("kind", "exit"),)
    assert len(incidents(finding("GD101", 537, 537, CRITICAL), finding("GD008", 536, evidence=plain))) == 1
    assert len(incidents(finding("GD101", 537, 9000, CRITICAL), finding("GD008", 9000, evidence=plain))) == 2


def test_the_last_words_of_a_program_are_evidence() -> None:
    scale = (Measure("kind", "exit"), Measure("numeric", True), Measure("loss_scale_at_minimum", True))
    assert incidents(finding("GD008", 499, evidence=scale))[0].causes[0].cause == "loss_scale_collapse"
    loss = (*scale[:2], Measure("loss_scale_at_minimum", False))
    assert incidents(finding("GD008", 499, evidence=loss))[0].causes[0].cause == "numeric_overflow"


def test_a_throttled_gpu_without_a_clock_joins_the_only_slow_down() -> None:
    def untimed(gpu: int) -> Finding:
        where = Location(run="run", gpu=gpu)
        return Finding("GD601", "thermal-slowdown", Severity.WARNING, "throttles", where)

    slow, later = finding("GD501", 500), finding("GD501", 1500)
    (one,) = incidents(slow, untimed(3))
    assert (one.onset_step, one.gpu) == (500, 3)
    assert len(incidents(slow, later, untimed(3))) == 3
    assert len(incidents(untimed(3))) == 1


def test_a_surge_of_updates_belongs_to_the_spike_it_makes() -> None:
    surge = finding("GD209", 998, 1002, evidence=(Measure("grad_lead", 0.0),))
    spike = finding("GD102", 1000, 1030)
    (incident,) = explain([surge, spike], {})
    assert (incident.pattern, incident.onset_step) == ("single_spike", 998)
    (alone,) = explain([surge], {})
    assert (alone.pattern, alone.title) == ("gradient_explosion", "Update norm surges from step 998")


def test_a_gap_in_the_log_costs_nothing() -> None:
    facts = RunFacts("run", interval=10.0, gaps=((1040, 5000), (9000, 9900)), step_seconds=2.0)
    spike = finding("GD102", 1000, 1040, evidence=(Measure("recovery_step", 5000),))
    assert incidents(spike, facts=facts)[0].cost.steps == 50
    assert incidents(finding("GD102", 8000, 8040), facts=facts)[0].cost.steps == 41


def test_a_jump_of_the_rate_has_its_cost_in_its_consequences() -> None:
    assert incidents(finding("GD306", 1000))[0].cost.steps is None


def test_the_title_of_a_long_episode_names_its_largest_row() -> None:
    def title(peak: float) -> str:
        evidence = (Measure("peak_excess", 2.5), Measure("peak_step", peak), Measure("recovered", False))
        return incidents(finding("GD102", 1000, 1400, evidence=evidence))[0].title

    assert title(1300) == "Loss spike at step 1000: +2.50 nat at step 1300, not recovered"
    assert title(1005) == "Loss spike at step 1000: +2.50 nat, not recovered"


def test_a_layer_that_dies_with_the_loss_is_one_incident() -> None:
    lived, always = (Measure("from_start", False),), (Measure("from_start", True),)
    loss = finding("GD104", 300, 900, CRITICAL)
    found = incidents(loss, *(finding("GD203", 300, 900, layer=f"fc{k}", evidence=lived) for k in range(2)))
    assert [(i.pattern, i.layer, i.causes[0].cause) for i in found] == [("divergence", "fc0", "dead_layer")]
    assert len(incidents(loss, finding("GD203", 300, 900, layer="fc0", evidence=always))) == 2


def test_the_rank_that_others_wait_for_is_named_before_one_that_gave_up() -> None:
    at = {"run": "run", "time": 9.0}
    gave_up = Finding("GD008", "abnormal-exit", Severity.WARNING, "a time-out", Location(rank=0, **at))  # type: ignore[arg-type]
    waits = Finding(
        "GD009", "hang", Severity.WARNING, "7 ranks wait for rank 4", Location(rank=4, **at), (Measure("culprit_rank", 4),)  # type: ignore[arg-type]
    )  # fmt: skip
    (incident,) = explain([gave_up, waits], {"run": RunFacts("run")})
    assert (incident.pattern, incident.rank) == ("hang", 4)


def test_an_incident_ends_at_the_time_of_its_last_step() -> None:
    facts = RunFacts("run", times={110: 2000.0})
    (found,) = incidents(finding("GD102", 100, 110, time=1000.0), facts=facts)
    assert (found.onset_time, found.last_time) == (1000.0, 2000.0)
    (found,) = incidents(finding("GD102", 100, 110, time=1000.0, last_time=1500.0), facts=facts)
    assert found.last_time == 1500.0
    (found,) = incidents(finding("GD102", 100, 110), facts=facts)
    assert (found.onset_time, found.last_time) == (None, None)


def test_runs_explained_one_by_one_are_as_explained_together() -> None:
    one = [finding("GD102", 267, 271), finding("GD206", 266, 270, INFO), finding("GD601", 290, 900, gpu=0, host="n0")]
    two = [
        finding("GD101", 880, 900, CRITICAL),
        finding("GD102", 100, 105),
        finding("GD102", 117, 118),
        finding("GD002", 5),
    ]
    moved = [
        [replace(f, where=replace(f.where, run=run)) for f in own] for run, own in (("a", one), ("b", two), ("c", one))
    ]
    every = [moved[1][0], moved[2][1], *moved[0], *moved[1][1:], moved[2][0], moved[2][2]]
    facts = {run: RunFacts(run) for run in "abc"}
    parts = []
    for run, own in zip("abc", moved, strict=True):
        here = [f for f in every if any(f is g for g in own)]
        places = [i for i, f in enumerate(every) if any(f is g for g in own)]
        parts.append((places, explain(here, {run: facts[run]})))
    assert together(parts) == explain(every, facts)
    assert any(incident.related for incident in together(parts))


def test_the_name_of_the_schedule_joins_only_what_is_about_the_rate() -> None:
    spike, jump = finding("GD102", 3, 5), finding("GD302", 300, 300)
    named = finding("GD301", 0, 900, INFO)
    by_lead = {i.pattern: len(i.findings) for i in incidents(named, spike, jump)}
    assert by_lead == {"single_spike": 1, "lr_discontinuity": 1}
    near = finding("GD301", 300, 900, INFO)
    assert [len(i.findings) for i in incidents(near, jump)] == [2]


def test_a_rhythm_of_two_steps_is_no_checkpoint() -> None:
    (found,) = incidents(finding("GD503", 0, 900, INFO, evidence=(Measure("period", 1.99, "step"),)))
    assert "every 2 steps" in found.actions[0]
    assert "checkpoint" not in found.actions[0]


def test_rows_that_stand_out_while_the_loss_is_away_are_no_batches() -> None:
    away = finding("GD103", 850, 1199, evidence=(Measure("recovered", True),))
    rows = finding("GD106", 920, 939, INFO, evidence=(Measure("steps", "920, 931, 939"),))
    assert [len(i.findings) for i in incidents(away, rows)] == [2]
    apart = finding("GD106", 20, 939, INFO, evidence=(Measure("steps", "20, 931, 939"),))
    assert [len(i.findings) for i in incidents(away, apart)] == [1, 1]


def test_validation_that_is_lost_after_training_is_no_event_of_its_own() -> None:
    lost = finding("GD101", 744, 1199, CRITICAL)
    after = finding("GD111", 760, 1160, evidence=(Measure("training_finite", False),))
    assert [len(i.findings) for i in incidents(lost, after)] == [2]
    alone = finding("GD111", 760, 1160, evidence=(Measure("training_finite", True),))
    assert len(incidents(alone)[0].findings) == 1
    assert incidents(alone)[0].cost == Cost()
    assert incidents(alone)[0].actions[0].startswith("Evaluate the last checkpoint before step 760")


def test_a_layer_that_dies_with_a_jump_lasts_on() -> None:
    jump = finding("GD208", 300, 300, CRITICAL)
    dead = finding("GD203", 300, 999, evidence=(Measure("from_start", False),))
    (found,) = incidents(jump, dead)
    assert (found.last_step, found.cost.steps) == (999, 700)


def test_time_that_is_not_known_to_be_lost_is_no_cost() -> None:
    (capped,) = incidents(finding("GD602", 0, 1199), facts=RunFacts("run", step_seconds=3.0))
    assert capped.cost == Cost()
    slow = finding("GD504", 10, 900, evidence=(Measure("slow_steps", 9), Measure("seconds_lost", 16.0)))
    shift = finding("GD501", 5, 900, evidence=(Measure("seconds_lost", 200.0),))
    (found,) = incidents(slow, shift)
    assert found.cost.seconds == (16.0 if found.pattern == "slow_steps" else 200.0)


def test_a_level_that_is_regained_does_not_stay() -> None:
    moved = (Measure("peak_excess", 0.15), Measure("recovered", False), Measure("regained_step", 1206))
    (found,) = incidents(finding("GD105", 825, 900, evidence=moved))
    assert found.title == "Loss steps up from step 825: +0.15 nat, back at the level of before only by step 1206"
    assert found.last_step == 1205


def test_a_run_that_ends_over_a_lost_gpu_is_one_incident_with_its_address() -> None:
    lost = replace(
        finding("GD606", None, severity=CRITICAL), message="the log says that a GPU is lost: NVRM: GPU 0000:b3:00.0 has fallen off"
    )  # fmt: skip
    ended = finding("GD008", None, evidence=(Measure("kind", "gpu_lost"), Measure("text", "fallen off the bus")))
    (found,) = incidents(lost, ended)
    assert len(found.findings) == 2
    assert found.actions[0].startswith("Drain the GPU at 0000:b3:00.0")


def test_a_longer_step_time_that_went_back_is_not_said_to_last() -> None:
    passed = (Measure("recovered", True), Measure("seconds_lost", 700.0, "s"))
    (found,) = incidents(finding("GD501", 100, 300, evidence=passed))
    assert found.title == "Step time rises for a while from step 100"
    assert not any("from step 100 on" in action for action in found.actions)
    assert any("other jobs" in action for action in found.actions)


def test_gradients_that_grow_where_one_rank_leaves_are_that_ranks() -> None:
    grown = finding("GD201", 312, 399, CRITICAL)
    left = finding("GD402", 312, 353, rank=1)
    (found,) = incidents(grown, left)
    assert (found.pattern, found.rank, found.severity) == ("rank_outlier", 1, CRITICAL)
    assert found.causes[0].cause == "silent_data_corruption"
    (before,) = incidents(grown, finding("GD402", 340, 353, rank=1))
    assert before.pattern == "gradient_explosion"


def test_who_waits_leads_who_gave_up_and_what_came_first_leads_both() -> None:
    waits = finding("GD009", 100, evidence=(Measure("timeouts", 7), Measure("waited", 600.0, "s")))
    gave_up = finding("GD008", 100, evidence=(Measure("kind", "nccl_timeout"),))
    assert [i.pattern for i in incidents(gave_up, waits)] == ["hang"]
    culprit = replace(waits, evidence=(*waits.evidence, Measure("culprit_rank", 3)))
    first = finding("GD008", 100, evidence=(Measure("first_error", True), Measure("storage", True)))
    (incident,) = incidents(first, culprit)
    assert incident.pattern == "abnormal_exit"
    assert incident.causes[0].cause == "storage_fault"
    assert incident.causes[0].band == "high"


def test_a_run_that_ended_costs_what_is_trained_again_and_waited_for() -> None:
    end = finding("GD008", 1000)
    facts = RunFacts("run", last_step=1000, step_seconds=2.0, ranks=8, checkpoints=(500, 900))
    assert incidents(end, facts=facts)[0].cost == Cost(100, 200.0, 0.444)
    assert incidents(end, facts=replace(facts, checkpoints=()))[0].cost == Cost()
    waits = finding("GD009", 1000, evidence=(Measure("timeouts", 1), Measure("waited", 600.0, "s")))
    assert incidents(end, waits, facts=facts)[0].cost == Cost(100, 800.0, 1.778)
    assert incidents(end, facts=replace(facts, checkpoints=(1000,)))[0].cost == Cost()
    half = finding("GD008", 1000, evidence=(Measure("storage", True),))
    assert incidents(half, facts=replace(facts, checkpoints=(900, 1000)))[0].cost.steps == 100


def driver(code: int, time: float, severity: Severity, gpu: str = "0000:3b:00", after: int | None = None) -> Finding:
    told = (Measure("xid", code), Measure("bus_id", gpu), Measure("hardware", severity is CRITICAL))
    follows = (Measure("follows", after), Measure("follows_on", gpu)) if after is not None else ()
    return replace(
        finding("GD404", None, severity=severity, time=time, evidence=(*told, *follows)), message=f"Xid {code}"
    )


def test_an_xid_and_those_right_after_it_are_one_incident() -> None:
    found = incidents(
        driver(109, 8.0, WARNING, after=13), driver(13, 8.0, WARNING), driver(45, 9.0, INFO, after=13),
        driver(31, 9.0, WARNING, "0000:5e:00"),
    )  # fmt: skip
    assert [(i.title, len(i.findings)) for i in found] == [("Xid 13", 3), ("Xid 31", 1)]


def test_a_lone_row_of_a_rank_has_no_cause_and_asks_for_nothing() -> None:
    evidence = (Measure("kind", "once"),)
    (incident,) = incidents(finding("GD402", 250, severity=INFO, rank=5, evidence=evidence))
    assert incident.causes == ()
    assert incident.actions[0].startswith("Nothing to do for one row")


def test_a_recovery_behind_a_gap_of_the_log_is_said_to_be_there() -> None:
    back = (Measure("peak_excess", 5.9, "nat"), Measure("recovered", True), Measure("recovery_step", 33240))
    spike = finding("GD102", 29050, 29090, evidence=back)
    (found,) = incidents(spike, facts=RunFacts("run", interval=10, gaps=((29090, 33240),)))
    assert found.title == "Loss spike at step 29050: +5.90 nat, back behind a gap of the log (steps 29090 to 33240)"
    assert found.actions[0].startswith("Look up what was done between steps 29090 and 33240")
    (plain,) = incidents(spike, facts=RunFacts("run", interval=10, gaps=((33240, 43680),)))
    assert plain.title == "Loss spike at step 29050: +5.90 nat, recovered"


def test_what_is_only_worth_knowing_changes_no_rate() -> None:
    (unsteady,) = incidents(finding("GD213", 0, 20640, INFO), facts=RunFacts("run", first_step=0, last_step=20640))
    assert unsteady.causes == ()
    assert unsteady.actions == (
        "Nothing to change while the loss falls: hold the gradient norm against an earlier run, and clip it at 1.0 if the loss follows it",
    )
    (quiet,) = incidents(finding("GD105", 300, 900, INFO), facts=RunFacts("run", peak_lr=1e-3))
    assert not any("learning rate" in action for action in quiet.actions)


def test_sockets_that_may_be_all_there_is_ask_for_nothing() -> None:
    (told,) = incidents(finding("GD702", None, severity=INFO, evidence=(Measure("sockets", True),)))
    assert told.causes == ()
    assert told.actions[0].startswith("Nothing to do where the hosts have no InfiniBand")


def test_two_rhythms_of_one_pattern_are_one_incident() -> None:
    def rhythm(period: float, first: int, last: int) -> Finding:
        return finding("GD503", first, last, INFO, evidence=(Measure("period", period, "step"),))

    assert len(incidents(rhythm(50, 50, 1450), rhythm(100, 100, 1400))) == 1
    assert len(incidents(rhythm(50, 50, 1450), rhythm(70, 70, 1400))) == 2
    assert len(incidents(rhythm(50, 50, 400), rhythm(100, 500, 1400))) == 2


def test_title_cost_and_action_name_one_step_of_recovery() -> None:
    long = finding(
        "GD104", 54, 1027, CRITICAL,
        evidence=(Measure("peak_excess", 11.4, "nat"), Measure("recovered", False), Measure("regained_step", 1028)),
    )  # fmt: skip
    spike = finding("GD102", 54, 400, evidence=(Measure("recovered", True), Measure("recovery_step", 408)))
    (found,) = incidents(long, spike, facts=RunFacts("run", first_step=0, last_step=1495))
    assert "only by step 1028" in found.title
    assert found.cost.steps == 1028 - 54
    assert not any("408" in action for action in found.actions)


def test_an_incident_begins_when_the_finding_that_dates_it_does() -> None:
    (found,) = incidents(
        finding("GD101", 2994, 2999, CRITICAL, time=5000.0), finding("GD104", 1555, 2999, CRITICAL, time=1000.0)
    )
    assert (found.onset_step, found.onset_time) == (1555, 1000.0)
