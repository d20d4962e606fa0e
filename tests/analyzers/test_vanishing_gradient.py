"""GD202: gradients that fade towards the input, or altogether."""

from __future__ import annotations

import numpy as np
import pytest

from gdiag.analyzers.vanishing_gradient import analyze
from gdiag.model import Severity
from tests.analyzers.made_layers import Floats, layered, names, norms
from tests.analyzers.made_runs import view


def decaying(rows: int, blocks: int, decades: float, style: str = "gpt") -> dict[str, Floats]:
    made = norms(rows, blocks, style=style)
    for name, depth, _ in names(blocks, style):
        made[name] = made[name] * 10.0 ** (-decades * max(0, blocks - 1 - max(depth, 0)))
    return made


@pytest.mark.parametrize(("style", "block"), [("gpt", "blocks.0"), ("llama", "model.layers.0")])
def test_fires_on_a_decay_through_the_blocks(style: str, block: str) -> None:
    (finding,) = analyze(layered(decaying(200, 6, 2.0, style), style=style))
    assert (finding.where.layer, finding.where.step, finding.severity) == (block, 0, Severity.CRITICAL)
    assert finding.measure("from_start") is True


def test_a_later_decay_is_information() -> None:
    made, late = norms(200, 6), decaying(400, 6, 2.0)
    (finding,) = analyze(layered({n: np.concatenate([made[n], late[n]]) for n in made}))
    assert (finding.where.step, finding.severity) == (200, Severity.INFO)


def test_a_decay_that_sets_in_with_the_first_updates_is_the_networks_own() -> None:
    made, late = norms(10, 6), decaying(390, 6, 2.0)
    (finding,) = analyze(layered({n: np.concatenate([made[n], late[n]]) for n in made}))
    assert (finding.where.step, finding.severity) == (10, Severity.CRITICAL)
    assert "since step 10" in finding.message


def test_a_network_wrecked_by_its_first_updates_is_information() -> None:
    made, late = norms(10, 6), decaying(390, 6, 2.0)
    loss = 3.4 + 2.2 * np.exp(-np.arange(400) / 3) + np.random.default_rng(2).normal(0, 0.05, 400)
    for peak, severity in ((5.6, Severity.CRITICAL), (7.8, Severity.INFO)):
        loss[4] = peak
        (finding,) = analyze(layered({n: np.concatenate([made[n], late[n]]) for n in made}, steps={"loss": loss}))
        assert finding.severity is severity


def test_quiet_on_healthy_and_on_frozen_layers() -> None:
    assert analyze(layered(norms(200, 6))) == []
    frozen = norms(200, 6)
    for name, depth, _ in names(6):
        if depth < 3:
            frozen[name][:] = 0.0
    assert analyze(layered(frozen)) == []


def test_threshold_sets_the_share() -> None:
    made = decaying(200, 6, 0.5)
    assert analyze(layered(made), steep=1e-4) == analyze(layered(made), decades=0.7) == []
    assert len(analyze(layered(made))) == len(analyze(layered(made), share=0.1)) == 1


def test_half_a_decade_a_block_vanishes_over_many_blocks() -> None:
    (finding,) = analyze(layered(decaying(300, 9, 0.6)))
    assert (finding.severity, finding.where.step) == (Severity.WARNING, 0)


def test_a_shallow_network_is_judged_by_the_loss_per_block() -> None:
    (finding,) = analyze(layered(decaying(300, 3, 1.7)))
    assert (finding.severity, finding.where.step) == (Severity.WARNING, 0)


def test_a_gradient_that_fades_while_the_loss_stands_still() -> None:
    rng = np.random.default_rng(0)
    grad = np.exp(rng.normal(0, 0.2, 1000)) * np.where(np.arange(1000) < 400, 1, 1e-5)
    flat, falling = np.full(1000, 6.9) + rng.normal(0, 0.02, 1000), np.geomspace(7, 0.01, 1000)
    (finding,) = analyze(view({"grad_norm": grad, "loss": flat}))
    assert finding.where.step == 400
    assert analyze(view({"grad_norm": grad, "loss": falling})) == []
