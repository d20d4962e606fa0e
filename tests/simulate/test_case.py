"""Whole cases: the same bytes for a seed, every fault in every style that can carry it, refusals."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from gdiag.errors import UsageError
from gdiag.ingesters import load
from gdiag.simulate.case import simulate, write
from gdiag.simulate.faults import FAULTS
from gdiag.simulate.faults.fault import Fault
from gdiag.simulate.styles import STYLES, Style
from gdiag.simulate.training import Setup

CAUSES = {
    "bad_batch", "lr_too_high", "missing_warmup", "lr_jump", "lr_decayed_early", "lr_too_low", "gradient_explosion",
    "numeric_overflow", "loss_scale_collapse", "attention_logit_growth", "output_logit_growth", "optimizer_instability",
    "optimizer_state_lost", "resume_mismatch", "data_repeated", "data_order", "config_change", "lr_batch_mismatch",
    "overfitting", "vanishing_gradient", "dead_layer", "bad_initialization", "weight_decay_too_small",
    "silent_data_corruption", "replica_divergence", "hardware_fault", "thermal_throttling", "power_cap", "power_brake",
    "straggler", "network_congestion", "link_fault", "dataloader_stall", "periodic_pause", "memory_pressure", "software_fault",
    "unknown_step_time_drift", "unknown", "step_counter_lost", "loss_scale_lost",
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_seed_gives_the_same_bytes_and_a_truth(fault: Fault) -> None:
    setup = Setup(seed=5, steps=120, every=2)
    first = simulate(fault.name, setup)
    assert first == simulate(fault.name, setup)
    truth = first.truth
    assert truth.healthy or truth.events
    for event in truth.events:
        assert set(event.accept) <= CAUSES
        assert 0 <= event.onset <= truth.steps + 1
        assert event.benign == truth.healthy
    json.dumps(truth.json(), allow_nan=False)


def test_seeds_differ() -> None:
    assert simulate("spike", Setup(seed=5, steps=120)).files != simulate("spike", Setup(seed=6, steps=120)).files


READ = tuple(style for style in STYLES if style.name not in ("hf-state", "nanogpt"))


@pytest.mark.parametrize("style", READ, ids=lambda style: style.name)
def test_every_style_can_be_read(style: Style, tmp_path: Path) -> None:
    name = "nan" if "grad" in style.carries else "step-up"
    write(simulate(name, Setup(seed=2, steps=120, style=style.name)), tmp_path)
    records = load([tmp_path / style.file])
    reduced = records.steps.filter(pl.col("rank").is_null() & pl.col("loss").is_not_null())
    assert reduced.height == 120
    assert reduced["step"].n_unique() == 120
    if name == "nan":
        assert reduced["loss"].is_nan().any()


@pytest.mark.parametrize("index", range(len(FAULTS)), ids=[fault.name for fault in FAULTS])
def test_every_fault_can_be_read(index: int, tmp_path: Path) -> None:
    fault = FAULTS[index]
    able = [style for style in READ if fault.needs <= style.carries]
    style = able[0 if fault.damage is not None else index % len(able)]
    write(simulate(fault.name, Setup(seed=2, steps=120, style=style.name)), tmp_path)
    assert load([tmp_path / style.file]).steps["loss"].count() >= 100


def test_a_frozen_block_is_named_by_the_config(tmp_path: Path) -> None:
    case = simulate("frozen-layer", Setup(seed=2, steps=120))
    write(case, tmp_path)
    config = load([tmp_path / name for name in case.files]).runs[0].config
    assert str(config["frozen_modules"]) in str(case.files["run.jsonl"])
    assert config["total_steps"] == 120


def test_replicas_as_columns_are_read_as_replicas(tmp_path: Path) -> None:
    write(simulate("replica-divergence", Setup(seed=2, steps=120, style="wandb")), tmp_path / "columns")
    write(simulate("replica-divergence", Setup(seed=2, steps=120, style="plain")), tmp_path / "rows")
    frames = [load([tmp_path / folder]).steps.filter(pl.col("rank") == 1) for folder in ("columns", "rows")]
    keys = ["step", "loss", "grad_norm", "param_checksum"]
    assert frames[0].select(keys).equals(frames[1].select(keys))


def test_a_style_refuses_what_it_cannot_log() -> None:
    with pytest.raises(UsageError, match="cannot log"):
        simulate("dead-layer", Setup(style="nanogpt"))


@pytest.mark.parametrize(
    ("name", "setup", "said"),
    [
        ("no-such-fault", Setup(), "no fault"),
        ("spike", Setup(style="nothing"), "no style"),
        ("spike", Setup(steps=10), "at least"),
        ("spike", Setup(steps=1000, every=100), "at least"),
        ("spike", Setup(amplitude=-1.0), "above 0"),
    ],
)
def test_refuses(name: str, setup: Setup, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        simulate(name, setup)


def test_writes_compressed_files_and_truth(tmp_path: Path) -> None:
    case = simulate("power-brake", Setup(seed=1, steps=200), gz=True)
    write(case, tmp_path / "case")
    assert sorted(path.name for path in (tmp_path / "case").iterdir()) == [
        "nvidia-smi.csv.gz",
        "run.jsonl.gz",
        "truth.json",
    ]
    rows = gzip.decompress((tmp_path / "case" / "run.jsonl.gz").read_bytes()).splitlines()
    assert json.loads(rows[0])["loss"] > 0
    assert json.loads((tmp_path / "case" / "truth.json").read_text())["events"][0]["kind"] == "power_brake"


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        write(simulate("healthy", Setup(steps=100)), tmp_path / "file")
