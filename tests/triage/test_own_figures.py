"""Actions quote the run's own settings and evidence, and stay general without them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gdiag.model import Finding, Location, Measure, Severity, Value
from gdiag.triage import own_figures as own
from gdiag.triage import state
from gdiag.triage.case import Case
from gdiag.triage.facts import RunFacts
from gdiag.triage.layer_actions import connect_layer
from gdiag.triage.rate_actions import check_lr, lower_lr
from gdiag.triage.state_actions import replay_batch, resume_again, return_or_evaluate, roll_back


def case(config: dict[str, Value] | None = None, code: str = "GD102", **evidence: Value) -> Case:
    measures = tuple(Measure(name, value) for name, value in evidence.items())
    lead = Finding(
        code, "finding", Severity.WARNING, "a finding", Location(run="run", step=267, last_step=271), measures
    )
    facts = RunFacts("run", config=config or {}, peak_lr=4e-4)
    return Case("single_spike", lead, (lead,), facts=facts, onset=267, last=271, rank=3)


@pytest.mark.parametrize(
    ("action", "given", "said"),
    [
        (own.clip, case({"clip": 1.0}), "from 1 to 0.3"),
        (own.rate_before, case(code="GD302", lr_before=2.09e-4), "of 0.000209 that was due"),
        (check_lr, case(code="GD306", at_restart=True, lr_ratio=0.01), "scheduler's state with the checkpoint"),
        (own.second_moment, case({"beta2": 0.999}), "from 0.999 to 0.95"),
        (own.loss_scale, case(scale_before=65536.0), "32768"),
        (own.decay, case({"weight_decay": 0.01}), "from 0.01 to 0.02"),
        (own.stop_early, case(code="GD110", eval_best=2.5), "2.5 at step 267"),
        (own.scale_rate, case(batch_ratio=4.0), "from 0.0004 to 0.0008"),
        (own.compare_settings, case(batch_ratio=2.0, seq_len_ratio=1.0), "batch size ×2"),
        (own.compare_resumed, case(code="GD109", level_before=2.0, peak_excess=0.5), "here 2.5 where 2 is due"),
        (
            own.load_again,
            case(code="GD109", kind="level", level_before=2.0, peak_excess=0.5),
            "here 2.5 where 2 is due",
        ),
        (own.load_again, case(code="GD109", kind="older_checkpoint", like_step=120.0), "from about step 120"),
        (own.load_again, case(code="GD109", kind="fresh_model"), "keys that are missing or unexpected"),
        (own.restore_counter, case(code="GD117", step_before=900.0), "(it is 901 here)"),
        (own.apart_checkpoints, case(), "from step 267 on"),
        (own.restore_scale, case(code="GD118", scale_before=4096.0), "(to 4096 here)"),
        (check_lr, case(code="GD306", schedule_steps_per_step=8.0), "it is stepped 8 times"),
        (resume_again, case(code="GD306", at_restart=True, lr_ratio=0.01), "scheduler's state with the checkpoint"),
        (resume_again, case(code="GD109", kind="fresh_model"), "the weights were not loaded"),
        (own.first_loss, case({"vocab_size": 50257}), "10.82"),
        (own.pause, case(period=500.0), "every 500 steps"),
        (own.loader, case(), "steps 267–271"),
        (own.memory, case(memory_after=78.5), "78.5 GiB"),
        (own.memory, case(code="GD008", text="oom-kill:constraint=CONSTRAINT_MEMCG"), "loader workers"),
        (own.memory, case(code="GD008", text="torch.OutOfMemoryError: CUDA out of memory"), "micro-batch"),
        (return_or_evaluate, case(code="GD111", training_finite=True), "before step 267 and the one after it in FP32"),
        (return_or_evaluate, case(code="GD111", training_finite=False), "Roll back to the last checkpoint before"),
        (roll_back, case(code="GD101", isolated=True), "no rollback is needed"),
        (roll_back, case(code="GD101", isolated=False), "before step 267 (before the onset, not the peak)"),
        (roll_back, case({"checkpoint_interval": 100}), "step 200, as they are due every 100"),
        (
            connect_layer,
            case(code="GD203", looks_frozen=True, from_start=True),
            "it never had a gradient and never moved",
        ),
        (connect_layer, case(code="GD203", looks_frozen=False, from_start=False), "at step 267: its units died"),
        (connect_layer, case(code="GD203", from_start=True), "connected to the loss"),
        (replay_batch, case(), "another node than that of rank 3"),
    ],
)
def test_quotes_what_the_run_says(action: Callable[[Case], str], given: Case, said: str) -> None:
    assert said in action(given)


@pytest.mark.parametrize("value", [True, "none", 0, -1.0, float("nan"), float("inf")])
def test_settings_that_are_no_positive_number_are_not_quoted(value: Value) -> None:
    assert state.setting(case({"clip": value}), "clip") is None
    assert "at 1.0" in own.clip(case({"clip": value}))


def test_a_fault_of_the_first_rows_is_started_again() -> None:
    def begun(first: int, onset: int, checkpoints: tuple[int, ...] = ()) -> Case:
        facts = RunFacts("run", first_step=first, last_step=900, interval=10.0, checkpoints=checkpoints, peak_lr=1.5)
        return replace(case(), facts=facts, onset=onset)

    assert roll_back(begun(0, 10)) == "Start again: there is no state before the fault to go back to"
    assert lower_lr(begun(0, 10)).endswith("from 1.5 to 0.75 and start again")
    assert roll_back(replace(begun(0, 9), facts=replace(begun(0, 9).facts, interval=1.0))).startswith("Start again")
    for later in (begun(0, 30), begun(4000, 4000), begun(0, 10, checkpoints=(5,))):
        assert roll_back(later).startswith("Roll back to ")
        assert lower_lr(later).endswith("and resume")
