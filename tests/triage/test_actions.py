"""Every cause has an action, and actions carry the run's own numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from gdiag.model import Cause, DataWindow, Finding, Location, Measure, Pattern, Severity
from gdiag.triage.actions import ACTIONS, advise, deciding
from gdiag.triage.case import Case
from gdiag.triage.codes import PATTERN
from gdiag.triage.evidence import RULES
from gdiag.triage.facts import RunFacts
from gdiag.triage.priors import PRIORS
from gdiag.triage.titles import NAMES
from gdiag.triage.wanted import WANTED

CAUSES = [
    "bad_batch",
    "lr_too_high",
    "missing_warmup",
    "lr_jump",
    "lr_decayed_early",
    "lr_too_low",
    "gradient_explosion",
    "numeric_overflow",
    "loss_scale_collapse",
    "attention_logit_growth",
    "output_logit_growth",
    "optimizer_instability",
    "optimizer_state_lost",
    "resume_mismatch",
    "data_repeated",
    "data_order",
    "config_change",
    "lr_batch_mismatch",
    "overfitting",
    "vanishing_gradient",
    "dead_layer",
    "bad_initialization",
    "weight_decay_too_small",
    "silent_data_corruption",
    "replica_divergence",
    "hardware_fault",
    "thermal_throttling",
    "power_cap",
    "power_brake",
    "straggler",
    "network_congestion",
    "oversubscribed_fabric",
    "competing_traffic",
    "flow_control",
    "link_fault",
    "transport_fallback",
    "software_fault",
    "storage_fault",
    "dataloader_stall",
    "periodic_pause",
    "memory_pressure",
    "unknown_step_time_drift",
    "unknown",
    "time_limit",
    "step_counter_lost",
    "loss_scale_lost",
]


def case(**given: object) -> Case:
    lead = Finding("GD102", "loss-spike", Severity.WARNING, "a spike", Location(run="run", step=267, last_step=271))
    facts = RunFacts("run", checkpoints=(100, 250, 300), peak_lr=3e-4)
    return Case(pattern="single_spike", lead=lead, findings=(lead,), facts=facts, onset=267, last=271, **given)  # type: ignore[arg-type]


def sure(cause: str) -> tuple[Cause, ...]:
    return (Cause(cause, 0.9, "high"),)


def test_spikes_at_equal_distances_lead_to_what_is_read_then() -> None:
    evidence = (Measure("period", 250.0, "step"), Measure("onsets", "340, 590, 840, 1090"))
    lead = Finding(
        "GD103", "repeated-spikes", Severity.WARNING, "spikes", Location(run="run", step=340, last_step=1100), evidence
    )
    made = Case("repeated_spikes", lead, (lead,), facts=RunFacts("run"), onset=340, last=1100)
    texts = [action(made) for action in ACTIONS["bad_batch"]]
    assert texts[0].endswith("the next is due near step 1340")
    assert "every 250 steps" in texts[1]
    assert "steps 340, 590, 840 …" in texts[1]
    assert "340–1100" not in texts[2]


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_has_an_action(cause: str) -> None:
    texts = [text for action in ACTIONS[cause] if (text := action(case()))]
    assert texts
    assert all(len(text) > 20 and not text.endswith(".") for text in texts)


def test_only_known_causes_are_weighed() -> None:
    known = set(CAUSES)
    assert {rule.cause for rule in RULES} <= known
    assert set(WANTED) <= known
    assert {cause for priors in PRIORS.values() for cause in priors} <= known
    assert set(ACTIONS) == known


def test_every_pattern_has_priors_and_a_name() -> None:
    patterns = set(get_args(Pattern))
    assert set(PRIORS) == patterns
    assert set(NAMES) == patterns
    assert set(PATTERN.values()) <= patterns


def test_roll_back_names_the_checkpoint_before_the_onset() -> None:
    assert "step 250" in " ".join(advise(case(), sure("lr_too_high")))


def test_bad_batch_names_the_samples() -> None:
    texts = " ".join(advise(case(data=DataWindow(4272, 4288)), sure("bad_batch")))
    assert "4272–4287" in texts


def test_lower_lr_names_the_rate() -> None:
    assert "0.00015" in " ".join(advise(case(), sure("lr_too_high")))


def test_a_pair_that_the_log_cannot_separate_is_named_with_what_would_decide() -> None:
    one = Cause("bad_batch", 0.4, "medium", missing=("sample ids per step, to replay the batch",))
    two = Cause("optimizer_instability", 0.3, "low", missing=("update norms",))
    (text,) = deciding((one, Cause("unknown", 0.35, "low"), two))
    assert text.startswith("This log cannot tell bad batch from optimizer instability: log sample ids")
    assert "update norms" in text
    assert deciding((one, Cause("lr_jump", 0.1, "low", missing=("x",)))) == ()
    assert deciding((Cause("bad_batch", 0.4, "medium"), Cause("lr_jump", 0.39, "low"))) == ()


def test_what_is_only_worth_knowing_costs_no_rollback() -> None:
    for severity, rolls in ((Severity.INFO, False), (Severity.WARNING, True)):
        told = Finding("GD402", "n", severity, "m", Location(step=10))
        actions = advise(
            Case(pattern="rank_outlier", lead=told, findings=(told,), onset=10), sure("silent_data_corruption")
        )
        assert any(a.startswith("Roll back") for a in actions) is rolls


def test_draining_names_the_bus_and_counts_the_gpus() -> None:
    for bus, text in (
        ("0000:9b:00", "Drain the GPU at 0000:9b:00, reset it"),
        ("not said", "Drain the GPUs in question, reset them"),
    ):
        told = Finding("GD404", "n", Severity.CRITICAL, "m", Location(), (Measure("bus_id", bus),))
        assert advise(Case(pattern="gpu_error", lead=told, findings=(told,)), sure("hardware_fault"))[0].startswith(
            text
        )


def test_a_timed_out_collective_sends_to_the_rank_that_did_not_arrive() -> None:
    told = Finding("GD008", "n", Severity.WARNING, "m", Location(), (Measure("kind", "nccl_timeout"),))
    actions = advise(Case(pattern="abnormal_exit", lead=told, findings=(told,)), sure("software_fault"))
    assert actions[0].startswith("Find the rank that did not arrive")


@pytest.mark.parametrize(
    ("known", "first"),
    [
        (Measure("culprit_rank", 5), "Look at rank 5 first"),
        (Measure("missing_ranks", "17, 41"), "Look at ranks 17, 41 first"),
        (Measure("victims", "0, 1"), "Find the rank that did not arrive"),
    ],
)
def test_a_hang_sends_to_the_rank_that_is_missing_and_touches_no_hardware(known: Measure, first: str) -> None:
    told = Finding("GD009", "n", Severity.WARNING, "m", Location(), (Measure("timeouts", 7), known))
    causes = (*sure("software_fault"), replace(sure("hardware_fault")[0], basis="prior"))
    actions = advise(Case("hang", told, (told,)), causes)
    assert actions[0].startswith(first)
    assert not any("Drain" in action for action in actions)


def test_what_could_not_be_written_is_not_gone_on_from() -> None:
    words = (Measure("storage", True), Measure("text", "OSError: [Errno 28] No space left on device"))
    told = Finding("GD008", "n", Severity.WARNING, "m", Location(run="run", step=500), words)
    for saved, goes_on in {
        (400, 500): "the checkpoint of step 400: 100 steps",
        (): "the last checkpoint that was written whole",
    }.items():
        facts = RunFacts("run", first_step=0, last_step=500, checkpoints=saved)
        actions = advise(Case("abnormal_exit", told, (told,), facts=facts, onset=500), sure("storage_fault"))
        assert actions[0].startswith("Free space")
        assert goes_on in actions[1]


def test_a_lone_gradient_jump_asks_for_no_rollback() -> None:
    evidence = (Measure("recovered", True), Measure("rows", 1), Measure("spikes", 1), Measure("loss_moved", False))
    lead = Finding("GD206", "gradient-spike", Severity.WARNING, "jumps", Location(run="run", step=36), evidence)
    made = Case("gradient_explosion", lead, (lead,), facts=RunFacts("run"), onset=36)
    assert all(
        "No rollback" in ACTIONS[cause][k](made) for cause, k in (("lr_too_high", 1), ("optimizer_instability", 1))
    )
    assert ACTIONS["bad_batch"][0](made).startswith("The loss does not follow")


def spiked(recovered: bool, *more: Finding, cause: str = "lr_too_high") -> tuple[str, ...]:
    measures = (Measure("recovered", recovered), *((Measure("recovery_step", 290, "step"),) if recovered else ()))
    lead = Finding("GD102", "loss-spike", Severity.WARNING, "a spike", Location(run="run", step=267), measures)
    facts = RunFacts("run", first_step=0, last_step=900, checkpoints=(250,), peak_lr=3e-4)
    given = Case(pattern="single_spike", lead=lead, findings=(lead, *more), facts=facts, onset=267, last=289)
    return advise(given, sure(cause))


@pytest.mark.parametrize(
    "cause", ["lr_too_high", "optimizer_instability", "gradient_explosion", "attention_logit_growth"]
)
def test_what_is_over_is_not_rolled_back(cause: str) -> None:
    over, lasting = spiked(True, cause=cause), spiked(False, cause=cause)
    assert over[0].startswith("Nothing to roll back: the level is regained by step 290")
    assert not any(text.startswith(("Roll back", "Lower the peak")) for text in over)
    assert any(text.startswith("Roll back to the checkpoint of step 250") for text in lasting)


def test_a_spike_that_a_divergence_follows_is_not_over() -> None:
    grave = Finding("GD104", "loss-divergence", Severity.CRITICAL, "diverges", Location(run="run", step=300))
    assert any(text.startswith("Roll back") for text in spiked(True, grave))


def test_a_run_that_learns_nothing_at_its_rate_is_not_given_half_of_it() -> None:
    lead = Finding("GD108", "loss-plateau", Severity.WARNING, "flat", Location(run="run", step=0, last_step=900))
    facts = RunFacts("run", first_step=0, last_step=900, peak_lr=0.08)
    told = advise(
        Case(pattern="plateau", lead=lead, findings=(lead,), facts=facts, onset=0, last=900), sure("lr_too_high")
    )
    assert "from 0.08 to 0.008" in told[0]
    assert "range test" in told[0]


def test_a_rate_that_was_borne_while_it_rose_is_halved() -> None:
    measures = (Measure("lr_at_onset", 4e-4), Measure("lr_share_of_peak", 0.13), Measure("lr_ratio", 1.1))
    lead = Finding("GD104", "loss-divergence", Severity.CRITICAL, "diverges", Location(run="run", step=120), measures)
    facts = RunFacts("run", first_step=0, last_step=2000, peak_lr=3e-3)
    told = advise(Case(pattern="divergence", lead=lead, findings=(lead,), facts=facts, onset=120), sure("lr_too_high"))
    assert "from 0.003 to 0.0002, half of what it was (0.0004)" in told[0]


def test_a_longer_warm_up_is_no_advice_for_what_happens_late() -> None:
    assert not any("Warm the learning rate" in text for text in spiked(False))


def ended(text: str, step: int | None = 500) -> tuple[str, ...]:
    measures = (Measure("kind", "exit"), Measure("text", text))
    lead = Finding("GD008", "abnormal-exit", Severity.WARNING, "ends", Location(run="run", step=step), measures)
    facts = RunFacts("run", first_step=0, last_step=step, checkpoints=(400,) if step else ())
    return advise(
        Case(pattern="abnormal_exit", lead=lead, findings=(lead,), facts=facts, onset=step), sure("software_fault")
    )


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("There are not enough slots available in the system to satisfy the 16", "slot for each rank"),
        ("ModuleNotFoundError: No module named 'apex'", "what is missing on every host"),
        ("OSError: [Errno 98] Address already in use", "MASTER_PORT"),
        ("OSError: [Errno 28] No space left on device", "Free space"),
        (
            "RuntimeError: PytorchStreamWriter failed writing file data/1: file write failed",
            "health of the file system",
        ),
        (
            "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-1, error: No space left on device",
            "shared memory",
        ),
        ("RuntimeError: CUDA error: device-side assert triggered", "CUDA_LAUNCH_BLOCKING"),
        ("exitcode : -9 (pid: 3021)", "out-of-memory killer"),
        ("Signals.SIGSEGV: 11 Segmentation fault (core dumped)", "backtrace"),
        ("slurmstepd: error: *** JOB 17 ON n3 CANCELLED AT 2026-01-01T00:00:00 ***", "sacct"),
    ],
)
def test_the_last_words_name_the_fix(text: str, asked: str) -> None:
    told = ended(text)
    assert asked in told[0]
    assert not any("versions against" in action for action in told[1:])


def test_a_run_that_was_stopped_goes_on_from_its_checkpoint_and_a_launch_that_failed_does_not() -> None:
    assert ended("exitcode : -9")[1] == "Then resume from the checkpoint of step 400: 100 steps are lost"
    assert len(ended("There are not enough slots available")) == 1
    assert ended("something happened", None)[1].startswith("Check driver")


def test_spikes_that_come_back_are_not_rolled_back_to_the_first() -> None:
    lead = Finding(
        "GD103", "repeated-spikes", Severity.WARNING, "spikes", Location(run="run", step=100, last_step=900),
        (Measure("recovered", True),),
    )  # fmt: skip
    facts = RunFacts("run", first_step=0, last_step=1000, peak_lr=3e-4)
    told = advise(
        Case(pattern="repeated_spikes", lead=lead, findings=(lead,), facts=facts, onset=100, last=900),
        sure("lr_too_high"),
    )
    assert told[0] == "Lower the peak learning rate from 0.0003 to 0.00015 and resume"
    assert "latest checkpoint" in told[1]


def test_starting_again_is_said_once() -> None:
    lead = Finding("GD101", "loss-not-finite", Severity.CRITICAL, "lost", Location(run="run", step=7))
    facts = RunFacts("run", first_step=0, last_step=90, peak_lr=0.18)
    told = advise(
        Case(pattern="nonfinite", lead=lead, findings=(lead,), facts=facts, onset=7), sure("gradient_explosion")
    )
    assert [text for text in told if "tart again" in text] == [
        "Lower the peak learning rate from 0.18 to 0.09 and start again"
    ]


def test_pauses_of_a_known_kind_are_that_kinds() -> None:
    measures = (
        Measure("period", 55.0, "step"),
        Measure("matches", "evaluation (evaluations 55)"),
        Measure("time_share", 52.9, "%"),
    )
    lead = Finding("GD503", "periodic-slow-steps", Severity.INFO, "pauses", Location(run="run", step=55), measures)
    told = advise(Case(pattern="periodic_slow_steps", lead=lead, findings=(lead,), onset=55), sure("periodic_pause"))
    assert told[0].startswith("The pauses every 55 steps are those of the evaluation, no fault")
    assert "52.9 % of the time" in told[0]


def test_an_error_of_the_program_is_looked_for_in_the_program() -> None:
    assert ended("TypeError: 'NoneType' object is not callable")[0].startswith("Mend the program")
    assert "TORCH_COMPILE_DISABLE" in ended("torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:")[0]
    lead = Finding("GD404", "xid", Severity.WARNING, "Xid 31", Location(gpu=0))
    told = advise(Case(pattern="gpu_error", lead=lead, findings=(lead,)), sure("software_fault"))
    assert "compute-sanitizer" in told[0]


def test_what_is_over_is_said_once_and_as_far_as_it_is_over() -> None:
    measures = (
        Measure("recovered", True), Measure("recovery_step", 290, "step"), Measure("after_effect", 0.2), Measure("noise", 0.03),
        Measure("peak_excess", 1.0),
    )  # fmt: skip
    lead = Finding("GD102", "loss-spike", Severity.WARNING, "a spike", Location(run="run", step=267), measures)
    facts = RunFacts("run", first_step=0, last_step=900, checkpoints=(250,))
    given = Case(pattern="single_spike", lead=lead, findings=(lead,), facts=facts, onset=267, last=289)
    told = advise(given, (Cause("optimizer_instability", 0.5, "medium"), Cause("bad_batch", 0.3, "low")))
    assert told[0].startswith(
        "Go on: the loss is back by step 290 but for +0.200 nat; return to the checkpoint of step 250"
    )
    assert not any("no rollback is needed" in text for text in told)
    assert any(text.startswith("Find the onset's batch") for text in told)


def test_a_logger_that_hides_nan_is_to_show_it() -> None:
    lead = Finding("GD116", "hidden-nan", Severity.CRITICAL, "zeros", Location(run="run", step=7))
    told = advise(Case(pattern="nonfinite", lead=lead, findings=(lead,), onset=7), sure("numeric_overflow"))
    assert any("logging_nan_inf_filter=False" in text for text in told)


def test_a_benchmark_that_says_little_is_run_as_it_should_be() -> None:
    def told(*evidence: Measure) -> str:
        lead = Finding("GD705", "inconsistent-output", Severity.INFO, "odd", Location(), evidence)
        return advise(Case(pattern="inconsistent_output", lead=lead, findings=(lead,)), ())[0]

    assert told(Measure("ranks", 1, "", 2.0)).startswith("Run on all GPUs of a host")
    assert told(Measure("ranks", 2, "", 1.0)).startswith("Give each rank a GPU of its own")
    assert "--expect" in told(Measure("busbw", 900.0, "GB/s", 400.0))
    assert told(Measure("mean_busbw", 9.0, "GB/s", 4.0)).startswith("Run again and keep the whole output")


def test_updates_that_were_skipped_for_a_while_left_the_weights_alone() -> None:
    lead = Finding("GD112", "skipped-steps", Severity.CRITICAL, "skips", Location(run="run", step=719, last_step=748))
    facts = RunFacts("run", first_step=0, last_step=1199)
    for last, said in ((748, "updates skipped in steps 719–748"), (1199, "every update since step 719")):
        given = Case(pattern="skipped_steps", lead=lead, findings=(lead,), facts=facts, onset=719, last=last)
        assert any(said in text for text in advise(given, sure("loss_scale_collapse")))


def test_a_warm_up_that_is_there_is_lengthened() -> None:
    where = Location(run="run", step=60, last_step=1000)
    lead = Finding("GD307", "unstable", Severity.WARNING, "unstable", where)
    config: dict[str, object] = {"lr_warmup_steps": 120, "total_steps": 1200}
    facts = RunFacts("run", first_step=0, last_step=1199, peak_lr=0.05, config=config)  # type: ignore[arg-type]
    told = Case("divergence", lead, (lead,), facts=facts, onset=60, last=1000)
    assert "Lengthen the warm-up from 120 to some 240 steps" in advise(told, sure("lr_too_high"))


def test_a_fault_of_the_first_steps_that_cost_the_run_is_not_over() -> None:
    where = Location(run="run", step=5, last_step=1839)
    back = (Measure("recovered", value=True),)
    lead = Finding("GD307", "unstable", Severity.WARNING, "unstable", where, back)
    facts = RunFacts("run", first_step=0, last_step=1999, peak_lr=9e-4)
    told = Case("divergence", lead, (lead,), facts=facts, onset=5, last=1839)
    assert advise(told, sure("lr_too_high"))[0] == "Lower the peak learning rate from 0.0009 to 0.00045 and start again"
    brief = Case("divergence", lead, (lead,), facts=facts, onset=5, last=90)
    assert any(action.startswith("Should it happen again") for action in advise(brief, sure("lr_too_high")))


def test_a_failed_transfer_leads_to_the_peer_before_its_cable() -> None:
    said = (Measure("text", "NCCL WARN NET/IB : Got completion from peer 10.2.0.5<33092> with error 12, opcode 0"),)
    lead = Finding("GD008", "abnormal-exit", Severity.WARNING, "ends", Location(run="run", host="node-2"), said)
    told = advise(Case("abnormal_exit", lead, (lead,), host="node-2"), sure("link_fault"))
    assert told[0].startswith("Look at the peer 10.2.0.5 first")
    assert "of node-2" in told[0]
