"""Columns whose names say that two networks train against each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from gdiag.ingesters.objectives import adversaries, variational
from gdiag.pipeline import load


@pytest.mark.parametrize(
    "columns",
    [
        ["d_loss", "g_loss"], ["Loss_D", "Loss_G", "D(x)"], ["errD", "errG"], ["loss", "g_loss"], ["lossG"],
        ["Loss/G/loss", "Loss/D/loss"], ["train/discriminator_loss"], ["gen_loss", "disc_loss"], ["critic_loss", "gen_loss"],
        ["loss", "grad_norm/generator.conv1", "grad_norm/discriminator.conv1"],
    ],
)  # fmt: skip
def test_losses_of_two_sides(columns: list[str]) -> None:
    assert adversaries(["step", "lr", *columns])


@pytest.mark.parametrize(
    "columns",
    [
        ["loss"], ["gen_loss"], ["actor_loss", "critic_loss"], ["loss_2d", "loss_3d"], ["dloss"], ["d", "g", "loss"],
        ["grad_norm/generator.0"], ["disc_loss"], ["x" * 100_000 + "d_loss"],
    ],
)  # fmt: skip
def test_other_losses(columns: list[str]) -> None:
    assert adversaries(["step", "lr", *columns]) == ()


def test_the_run_is_marked_and_the_source_says_so(tmp_path: Path) -> None:
    path = tmp_path / "gan.csv"
    path.write_text("step,loss,g_loss\n" + "".join(f"{i},1.{i},0.{i}\n" for i in range(5)))

    records = load([str(path)])

    assert records.runs[0].config["adversarial"] is True
    assert any("g_loss" in note and "no alarm" in note for note in records.sources[0].notes)


def test_terms_of_a_variational_bound() -> None:
    assert variational(["step", "loss", "recon_loss", "kl"]) == ("recon_loss", "kl")
    assert variational(["train/reconstruction_loss", "train/kld_loss"])
    assert variational(["loss", "kl", "policy_loss"]) == variational(["loss", "recon_loss"]) == ()
