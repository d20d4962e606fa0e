"""Which files are one run."""

from __future__ import annotations

import json
import random
from pathlib import Path

import polars as pl
import pytest

from gdiag.errors import InputError
from gdiag.ingesters import load
from tests.ingesters import encoders


def log(path: Path, steps: range, level: float = 3.0, **more: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = ({"step": s, "loss": level - s / 1000 + (s * 7919 % 13) / 100, **more} for s in steps)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_seeds_are_runs_of_their_own(tmp_path: Path) -> None:
    log(tmp_path / "seed1.jsonl", range(50), 3.0)
    log(tmp_path / "seed2.jsonl", range(50), 3.5)
    records = load([tmp_path])
    assert [run.id for run in records.runs] == ["seed1", "seed2"]
    assert records.steps["run"].value_counts()["count"].to_list() == [50, 50]


@pytest.mark.parametrize("start", [45, 50, 52])
def test_a_log_that_goes_on_is_the_same_run(tmp_path: Path, start: int) -> None:
    log(tmp_path / "version_0" / "metrics.jsonl", range(50))
    log(tmp_path / "version_1" / "metrics.jsonl", range(start, 100))
    records = load([tmp_path])
    assert [run.id for run in records.runs] == ["run"]
    assert records.steps.height == 150 - start
    assert records.runs[0].sources == (0, 1)


def test_rank_files_are_one_run(tmp_path: Path) -> None:
    for rank in range(3):
        log(tmp_path / f"metrics_rank{rank}.jsonl", range(10))
    records = load([tmp_path])
    assert len(records.runs) == 1
    assert sorted(records.steps["rank"].unique().to_list()) == [0, 1, 2]


def test_twins_are_used_once(tmp_path: Path) -> None:
    log(tmp_path / "run.jsonl", range(50), grad_norm=1.0)
    lines = [f"{s},{round(3.0 - s / 1000 + (s * 7919 % 13) / 100, 3)},0.1" for s in range(0, 50, 2)]
    (tmp_path / "curve.csv").write_text("\n".join(["step,loss,lr", *lines]))
    records = load([tmp_path])
    assert len(records.runs) == 1
    assert records.steps.height == 50
    assert records.steps["lr"].count() == 25
    assert [s.rows for s in records.sources] == [25, 50]


def losses(count: int, seed: int = 0) -> list[float]:
    drawn = random.Random(seed)
    return [2 + 2 / (1 + i / 50) + drawn.gauss(0, 0.05) for i in range(count)]


def event_file(folder: Path, found: list[float], more: str = "train/lr") -> None:
    points = [
        (1.6e9 + i, i, name, value) for i, x in enumerate(found) for name, value in (("train/loss", x), (more, 0.1))
    ]
    (folder / "events.out.tfevents.1").write_bytes(encoders.tf_events(points))


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_an_export_of_some_rows_is_of_the_run_of_its_events(tmp_path: Path, share: float) -> None:
    found = losses(2000)
    event_file(tmp_path, found)
    kept = sorted(random.Random(1).sample(range(2000), int(share * 2000)))
    lines = [f"{i},{found[i]:.4f},{i / 500:.3f}" for i in kept]
    (tmp_path / "export.csv").write_text("\n".join(["step,loss,epoch", *lines]) + "\n")
    records = load([tmp_path])
    assert len(records.runs) == 1
    assert records.steps.height == 2000
    assert records.steps["epoch"].count() == len(kept)


def test_rows_that_only_the_twin_has_are_kept(tmp_path: Path) -> None:
    found = losses(1000)
    event_file(tmp_path, found[:800])
    kept = [*range(0, 800, 3), *range(800, 1000)]
    evaluated = dict.fromkeys(range(1, 1000, 300), 3.0)
    lines = [
        f"{i},{f'{found[i]:.4f}' if i in kept else ''},{evaluated.get(i, '')}" for i in sorted({*kept, *evaluated})
    ]
    (tmp_path / "export.csv").write_text("\n".join(["step,loss,val_loss", *lines]) + "\n")
    records = load([tmp_path])
    assert len(records.runs) == 1
    assert records.steps.drop_nulls("loss")["step"].to_list() == [*range(1000)]
    assert records.steps.drop_nulls("eval_loss")["step"].to_list() == sorted(evaluated)


def test_rows_of_a_twin_among_restarts_are_said_to_be_left(tmp_path: Path) -> None:
    found = losses(500)
    log(tmp_path / "run.jsonl", range(0))
    rows = [{"step": i, "loss": found[i], "lr": 0.1} for i in [*range(0, 400, 2), *range(300, 500, 2)]]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [f"{i},{found[i]:.4f}" for i in range(0, 480, 3)]
    (tmp_path / "export.csv").write_text("\n".join(["step,loss", *lines]) + "\n")
    records = load([tmp_path])
    assert len(records.runs) == 1
    assert any("80 rows at steps that" in note for source in records.sources for note in source.notes)


def test_settings_are_evidence(tmp_path: Path) -> None:
    log(tmp_path / "files" / "run.jsonl", range(5))
    (tmp_path / "files" / "config.yaml").write_text(
        "_wandb:\n  desc: null\n  value:\n    cli_version: 0.18\nlearning_rate:\n  desc: null\n  value: 0.0006\nwarmup_iters:\n  value: 100\n"
        "grad_clip:\n  value: 1.0\ndtype:\n  value: bfloat16\nmax_iters:\n  value: 5000\n"
    )
    records = load([tmp_path])
    assert records.runs[0].config == {
        "lr": 0.0006, "warmup_steps": 100, "clip": 1.0, "precision": "bfloat16", "total_steps": 5000
    }  # fmt: skip
    with pytest.raises(InputError, match="settings of a run"):
        load([tmp_path / "files" / "config.yaml"])


@pytest.mark.parametrize("indent", [None, 2])
def test_a_configuration_with_lists_is_settings(tmp_path: Path, indent: int | None) -> None:
    log(tmp_path / "run.jsonl", range(5))
    settings = {
        "lr": 3e-4,
        "max_steps": 1000,
        "betas": [0.9, 0.95],
        "layers": list(range(24)),
        "model": {"dims": [1, 2]},
    }
    (tmp_path / "config.json").write_text(json.dumps(settings, indent=indent))
    records = load([tmp_path])
    assert [s.format for s in records.sources] == ["settings", "jsonl"]
    assert records.runs[0].config == {"lr": 3e-4, "total_steps": 1000, "beta1": 0.9, "beta2": 0.95}


def test_parameters_of_an_mlflow_folder_are_settings_of_their_run(tmp_path: Path) -> None:
    for run, rate in (("a1", "0.001"), ("b2", "0.01")):
        home = tmp_path / "mlruns" / "0" / run
        for folder in ("metrics", "params", "tags"):
            (home / folder).mkdir(parents=True)
        (home / "meta.yaml").write_text("run_id: x\nrun_name: y\nstatus: 3\n")
        points = (f"{1_600_000_000_000 + 1000 * i} {3 - i / 100} {i}\n" for i in range(30))
        (home / "metrics" / "loss").write_text("".join(points))
        (home / "params" / "learning_rate").write_text(rate)
        (home / "params" / "epochs").write_text("3")
        (home / "tags" / "mlflow.user").write_text("someone")
    records = load([tmp_path])
    assert [run.config for run in records.runs] == [{"lr": 0.001}, {"lr": 0.01}]
    assert not [s.path for s in records.sources if s.format == "unknown"]


def wandb_folder(path: Path, every: int = 1, level: float = 3.0) -> None:
    """A run's folder as wandb leaves it: the binary log, and in `files` the console, settings and last values."""
    (path / "files").mkdir(parents=True)
    (path / "logs").mkdir()
    losses = [round(level - i / 100, 4) for i in range(40)]
    rows = [encoders.history({"train/loss": v, "_step": i, "_runtime": float(i)}) for i, v in enumerate(losses)]
    (path / "run-abcd1234.wandb").write_bytes(encoders.wandb_file([*rows, encoders.exit_record(0)]))
    (path / "files" / "output.log").write_text(
        "".join(f"step {every * i} loss {v} lr 0.001\n" for i, v in enumerate(losses) if i % 2 == 0)
    )
    (path / "files" / "config.yaml").write_text("learning_rate:\n  desc: null\n  value: 0.001\n")
    (path / "logs" / "debug.log").write_text("2024-01-01 10:00:00,123 INFO    MainThread:1 [wandb_init.py] done\n" * 9)


@pytest.mark.parametrize(
    ("status", "ended"),
    [("COMPLETED", "clean"), ("FAILED", "abnormal"), ("INTERRUPTED", "abnormal"), ("RUNNING", "unknown")],
)
def test_the_record_of_a_sacred_run_says_how_it_ended(tmp_path: Path, status: str, ended: str) -> None:
    series = {
        name: {
            "steps": [*range(30)],
            "timestamps": [f"2020-06-20T00:09:{10 + i}.5" for i in range(30)],
            "values": values,
        }
        for name, values in (("training.loss", [3 - i / 100 for i in range(30)]), ("testing.loss", [3.1] * 30))
    }
    (tmp_path / "metrics.json").write_text(json.dumps(series, indent=2))
    (tmp_path / "config.json").write_text(json.dumps({"training": {"lr": 0.001, "batch_size": 128}, "seed": 3}))
    record = {
        "artifacts": [], "experiment": {"name": "x"}, "heartbeat": "2020-06-20T00:15:27.3", "resources": [], "result": None,
        "start_time": "2020-06-20T00:09:13.5", "status": status, "stop_time": "2020-06-20T00:15:27.3",
        **({"fail_trace": ["Traceback", "ValueError: no data"]} if status == "FAILED" else {}),
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(record, indent=2))
    records = load([tmp_path])
    assert [run.exit for run in records.runs] == [ended]
    assert records.runs[0].config["lr"] == 0.001
    assert records.steps["eval_loss"].count() == 30
    notes = " ".join(note for source in records.sources for note in source.notes)
    assert f"record of a Sacred run ({status}" in notes
    assert ("ValueError: no data" in notes) == (status == "FAILED")


@pytest.mark.parametrize("name", ["run-20240101_100000-abcd1234", "offline-run-20240101_100000-abcd1234"])
@pytest.mark.parametrize("every", [1, 16])
def test_a_wandb_folder_is_one_run(tmp_path: Path, name: str, every: int) -> None:
    wandb_folder(tmp_path / "wandb" / name, every)
    (tmp_path / "wandb" / "latest-run").symlink_to(name)
    for given in (tmp_path, tmp_path / "wandb" / name, tmp_path / "wandb" / "latest-run"):
        records = load([given])
        assert [run.exit for run in records.runs] == ["clean"]
        assert records.steps["step"].to_list() == list(range(40))
        assert len(records.sources) == 4


def test_several_wandb_folders_are_several_runs(tmp_path: Path) -> None:
    for k in range(3):
        wandb_folder(tmp_path / "wandb" / f"run-2024010{k}_100000-abcd123{k}", every=8, level=3.0 + k)
    records = load([tmp_path])
    assert len(records.runs) == 3
    assert records.steps.height == 120


def test_dvclive_keeps_a_metric_a_file(tmp_path: Path) -> None:
    for split, metric, every in (("train", "loss", 1), ("train", "lr", 1), ("eval", "loss", 5)):
        path = tmp_path / "dvclive" / "plots" / "metrics" / split / f"{metric}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"step\t{metric}\n" + "".join(f"{i}\t{3 - i / 50}\n" for i in range(0, 40, every)))
    records = load([tmp_path])
    assert [run.id for run in records.runs] == ["run"]
    assert records.steps["step"].to_list() == list(range(40))
    assert [records.steps[c].count() for c in ("loss", "lr", "eval_loss")] == [40, 40, 8]


def test_mlflow_runs_are_told_apart_and_their_files_joined(tmp_path: Path) -> None:
    for run, status, level in (("a" * 32, 3, 3.0), ("b" * 32, 5, 4.0)):
        folder = tmp_path / "mlruns" / "0" / run
        for metric, rows in (("train/loss", 40), ("lr", 40), ("val/loss", 4), ("system/gpu_0_memory_usage", 90)):
            path = folder / "metrics" / metric
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{1_700_000_000_000 + 1000 * i} {level - i / 50} {i}\n" for i in range(rows)))
        said = f"artifact_uri: x\nrun_id: {run}\nrun_name: cat-{run[0]}\nstatus: {status}\nstart_time: 1\n"
        (folder / "meta.yaml").write_text(said)
    records = load([tmp_path])
    assert [(run.id, run.name, run.exit) for run in records.runs] == [
        ("a" * 32, "cat-a", "clean"), ("b" * 32, "cat-b", "abnormal")
    ]  # fmt: skip
    assert records.steps["step"].to_list() == [*range(40)] * 2
    assert records.steps["eval_loss"].count() == 8


def test_nothing_recognised_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("hello")
    (tmp_path / "b.bin").write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="more files"):
        load([tmp_path])


def test_a_resume_that_logs_no_metric_keeps_its_rows(tmp_path: Path) -> None:
    for version, steps in ((0, range(30)), (1, range(28, 60))):
        folder = tmp_path / f"version_{version}"
        folder.mkdir()
        rows = ({"step": s, "elapsed_time": 2 * s, **({"lr": 1e-3} if version == 0 else {})} for s in steps)
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    records = load([tmp_path])
    assert [run.id for run in records.runs] == ["run"]
    assert set(records.steps["step"]) == {*range(60)}


@pytest.mark.parametrize(("one", "other"), [("k1", "z2"), ("12345678", "87654321")])
@pytest.mark.parametrize("first", [0, 40])
def test_two_runs_in_one_wandb_folder_are_told_apart(tmp_path: Path, one: str, other: str, first: int) -> None:
    folder = tmp_path / "wandb" / f"run-20260101_120000-{one}"
    (folder / "files").mkdir(parents=True)
    for run, start, level in ((one, 0, 3.0), (other, first, 5.0)):
        rows = [encoders.history({"_step": s, "loss": level - s / 100}) for s in range(start, start + 40)]
        (folder / f"run-{run}.wandb").write_bytes(encoders.wandb_file(rows))
    (folder / "files" / "output.log").write_text("".join(f"step {s} loss {3 - s / 100:.4f}\n" for s in range(0, 40, 2)))
    records = load([tmp_path])
    assert sorted(run.id for run in records.runs) == [f"run-{one}", f"run-{other}"]
    assert records.steps.filter(pl.col("loss") < 3.1)["run"].unique().to_list() == [f"run-{one}"]
    console = next(i for i, source in enumerate(records.sources) if source.path.endswith(".log"))
    assert [run.id for run in records.runs if console in run.sources] == [f"run-{one}"]
