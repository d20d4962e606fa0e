"""Advice names what is missing and nothing that is there."""

from __future__ import annotations

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


def test_uses_the_frameworks_own_switch() -> None:
    run = RunFacts("run", columns=frozenset({"steps.loss"}), formats=frozenset({"megatron-console"}))
    assert "--log-params-norm" in " ".join(advise_logging([run], incidents=1))
