"""Advice names what is missing and nothing that is there."""

from __future__ import annotations

import pytest

from gdiag.triage.advice import advise_logging
from gdiag.triage.facts import RunFacts


def test_names_what_is_missing() -> None:
    texts = " ".join(advise_logging([RunFacts("run", columns=frozenset({"steps.loss", "steps.lr"}))], incidents=1))
    assert "per layer" in texts
    assert "param_groups" not in texts


def test_quiet_without_incidents_or_when_all_is_logged() -> None:
    assert advise_logging([RunFacts("run", columns=frozenset({"steps.loss"}))], incidents=0) == ()
    full = ["loss", "lr", "grad_norm", "sample_start", "param_checksum"]
    columns = frozenset({f"steps.{name}" for name in full} | {"layers.grad_norm"})
    assert advise_logging([RunFacts("run", columns=columns)], incidents=3) == ()


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("megatron", "--log-params-norm"),
        ("megatron", "--check-weight-hash-across-dp-replicas-interval"),
        ("trainer-state", "on_pre_optimizer_step"),
        ("hf-console", "args.process_index"),
        ("deepspeed", "safe_get_full_grad"),
        ("torchtitan", "full_tensor"),
        ("blocks", "OptimizerMonitor"),
        ("openmmlab", "message_hub"),
        ("maxtext", "jax.process_index"),
        ("csv", "named_parameters"),
        ("csv", "Lightning"),
    ],
)
def test_uses_the_frameworks_own_way(form: str, said: str) -> None:
    run = RunFacts("run", columns=frozenset({"steps.loss"}), formats=frozenset({form}))
    assert said in " ".join(advise_logging([run], incidents=1))
