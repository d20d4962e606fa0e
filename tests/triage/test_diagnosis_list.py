"""The list of symptoms, causes and fixes that the project grew from, walked from log to cause to action."""

from __future__ import annotations

from pathlib import Path

import pytest

from gdiag.model import Finding, Incident, Location, Measure, Pattern, Severity
from gdiag.pipeline import diagnose, load
from gdiag.simulate.case import simulate, write
from gdiag.simulate.training import Setup
from gdiag.triage.about import about
from gdiag.triage.actions import advise, deciding
from gdiag.triage.case import Case
from gdiag.triage.causes import rank

FIXES = {
    "bad_batch": ("filter", "skip the batch", "go on"),
    "lr_too_high": ("halve the peak learning rate", "warm the learning rate up over 1–5 %", "roll back"),
    "missing_warmup": ("1–5 %",),
    "gradient_explosion": ("clip the gradient norm at 1.0", "another seed"),
    "numeric_overflow": ("bf16", "layernorm, softmax and the loss in fp32", "loss scaling", "reproduce"),
    "loss_scale_collapse": ("bf16", "loss scale"),
    "attention_logit_growth": ("qk-norm", "attention scaling"),
    "output_logit_growth": ("z-loss",),
    "optimizer_instability": ("beta2", "stableadamw", "update norms"),
    "vanishing_gradient": ("residual scaling", "pre-norm", "silu or gelu", "reproduce"),
    "dead_layer": ("silu or gelu", "initialization", "optimizer"),
    "bad_initialization": ("first 1,000 steps with another seed", "standard deviation"),
    "weight_decay_too_small": ("weight decay", "every 100–200 steps"),
    "silent_data_corruption": ("ecc monitoring", "checksum", "another", "roll back"),
    "hardware_fault": ("drain", "diagnostics"),
    "thermal_throttling": ("airflow", "power limit", "stagger", "repaste"),
    "power_cap": ("power limit",),
    "lr_too_low": ("learning rate", "shorten the warm-up"),
    "lr_decayed_early": ("wsd", "extend the stable phase"),
    "lr_jump": ("smooth the transition",),
    "lr_batch_mismatch": ("square root", "linear", "lamb or lars"),
    "network_congestion": ("off-hours", "perfquery -x", "ibdiagnet", "ecn/dcqcn"),
    "oversubscribed_fabric": ("spine", "data-parallel degree"),
    "link_fault": ("cable", "nic", "ibdiagnet"),
    "flow_control": ("ecn/dcqcn",),
    "competing_traffic": ("isolate", "storage"),
    "optimizer_state_lost": ("moments",),
    "step_counter_lost": ("step", "optimizer's state"),
    "loss_scale_lost": ("scaler",),
    "resume_mismatch": ("checkpoint",),
    "data_repeated": ("loader's position",),
}
"""Cause → words of the fixes that the two texts and the published accounts name for it."""


@pytest.mark.parametrize("cause", FIXES)
def test_every_fix_named_for_a_cause_is_among_its_actions(cause: str) -> None:
    said = " ".join(about(cause).actions).lower()
    assert [word for word in FIXES[cause] if word not in said] == []


PATHS = {
    "bad-batch": ("bad_batch", "samples"),
    "lr-jump": ("lr_jump", "learning rate"),
    "lr-decayed-early": ("lr_decayed_early", "WSD"),
    "lr-too-low": ("lr_too_low", "Raise the peak learning rate"),
    "overflow-layer": ("numeric_overflow", "BF16"),
    "vanishing-gradient": ("vanishing_gradient", "residual"),
    "dead-layer": ("dead_layer", "SiLU or GELU"),
    "weight-bit-flip": ("silent_data_corruption", "bit by bit"),
    "loss-scale-collapse": ("loss_scale_collapse", "BF16"),
    "resume-optimizer-lost": ("optimizer_state_lost", "moments"),
    "resume-replayed": ("optimizer_state_lost", "moments"),
    "parameter-shrink": ("config_change", "decay"),
    "resume-step-counter": ("step_counter_lost", "go on counting"),
    "resume-scale": ("loss_scale_lost", "scaler's state"),
    "resume-loader": ("data_repeated", "loader's position"),
    "stale-second-moment": ("optimizer_instability", "beta2 from 0.999"),
    "duplicate-tokens": ("bad_batch", "samples"),
}
"""Simulated fault → the cause that must come first in one of its incidents, and what the actions must say."""


@pytest.mark.parametrize("fault", PATHS)
def test_a_log_leads_to_the_cause_and_to_its_fix(fault: str, tmp_path: Path) -> None:
    cause, words = PATHS[fault]
    write(simulate(fault, Setup(seed=3, steps=1200)), tmp_path)
    (tmp_path / "truth.json").unlink()
    incidents = diagnose(load([tmp_path])).incidents
    told = [i for i in incidents if i.severity > Severity.INFO and i.causes and i.causes[0].cause == cause]
    assert told, [(i.title, i.causes[:1]) for i in incidents]
    assert any(words in action for action in told[0].actions)
    assert _figures(told[0])


def _figures(incident: Incident) -> bool:
    """Whether an action quotes a number of the run: a step, samples, a rate."""
    return any(any(c.isdigit() for c in action) for action in incident.actions) or incident.layer is not None


def _case(pattern: Pattern, code: str, **evidence: float | str | bool) -> Case:
    measures = tuple(Measure(name, value) for name, value in evidence.items())
    lead = Finding(code, "n", Severity.WARNING, "m", Location(run="run", step=100), measures)
    return Case(pattern, lead, (lead,), onset=100, last=110)


PAIRS = (
    ("data or state", _case("single_spike", "GD102", grad_lead=0.0), ("bad_batch", "optimizer_instability"), "sample ids"),
    ("gradient first", _case("single_spike", "GD102", grad_lead=3.0), ("optimizer_instability", "bad_batch"), "update norms"),
    ("logits or state", _case("repeated_spikes", "GD103"), ("lr_too_high", "attention_logit_growth"), "attention logit"),
    ("batch or device", _case("single_spike", "GD102", grad_lead=0.0, after_effect=0.0, noise=0.05), ("bad_batch",), "per rank"),
    ("harm or data", _case("step_up", "GD105"), ("optimizer_instability", "data_order"), "validation loss"),
    ("weights or data", _case("resume_jump", "GD109", kind="level"), ("resume_mismatch",), "sample ids"),
    ("seen again or not", _case("resume_jump", "GD109", kind="lower"), ("data_repeated",), "sample ids"),
    ("overflow or device", _case("nonfinite", "GD101"), ("numeric_overflow",), "per-layer gradient norms"),
    ("network or loader", _case("slow_steps", "GD504"), ("network_congestion", "dataloader_stall"), "communication time"),
)  # fmt: skip
"""Pairs that diagnosis cannot separate without a column: (name, what is seen, causes, words for the column)."""


@pytest.mark.parametrize(("case", "causes", "words"), [pair[1:] for pair in PAIRS], ids=[pair[0] for pair in PAIRS])
def test_what_the_log_cannot_separate_is_named_with_the_column_that_would(
    case: Case, causes: tuple[str, ...], words: str
) -> None:
    found = {cause.cause: cause for cause in rank(case)}
    assert set(causes) <= set(found)
    assert any(words in text for name in causes for text in found[name].missing)
    assert all(found[name].band != "high" or len(causes) == 1 for name in causes)


def test_a_close_pair_says_what_to_log() -> None:
    case = _case("step_up", "GD105")
    causes = rank(case)
    (text,) = deciding(causes)
    assert text.startswith("This log cannot tell ")
    assert advise(case, causes)
