from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.running import write_run


def test_a_healthy_run_exits_0_with_a_json_report(run: Run, tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl")
    done = run("analyze", "run.jsonl", "--format", "json")
    report = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert report["schema_version"] == 1
    assert report["sources"][0]["path"] == "run.jsonl"
    assert report["sources"][0]["rows"] == 400
    assert done.stderr == b""


def test_a_report_is_the_same_byte_for_byte_on_every_run(run: Run, tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl", nan_from=300)
    first, second = (run("analyze", "run.jsonl", "--format", "json") for _ in range(2))
    assert first.stdout == second.stdout


def test_output_goes_to_a_file_on_request(run: Run, tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl")
    done = run("analyze", "run.jsonl", "--format", "json", "-o", "report.json")
    assert done.stdout == b""
    assert json.loads((tmp_path / "report.json").read_text())["schema_version"] == 1


def test_no_report_takes_the_place_of_the_log(run: Run, tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl")
    before = (tmp_path / "run.jsonl").read_bytes()
    done = run("analyze", "run.jsonl", "-o", "run.jsonl")
    assert (done.returncode, b"would be overwritten" in done.stderr) == (2, True)
    assert (tmp_path / "run.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent.jsonl"], "absent.jsonl"),
        (["run.jsonl", "--format", "yaml"], "json"),
        (["run.jsonl", "--fail-on", "bad"], "never"),
        (["run.jsonl", "--select", "GD9"], "GD9"),
        (["run.jsonl", "--set", "GD102.z"], "--set GD102.z=8"),
        (["run.jsonl", "--set", "z=8"], "GD102.z=8"),
        (["run.jsonl", "--set", "GD999.z=8"], "GD999"),
        (["run.jsonl", "--map", "losss=my/metric"], "losss"),
        (["run.jsonl", "--map", "loss"], "loss=my/metric"),
        (["run.jsonl", "--map", "loss=absent"], "absent"),
        (["run.jsonl", "--tz", "Mars/Phobos"], "Europe/Berlin"),
        (["run.jsonl", "--tz", "+25:00"], "Europe/Berlin"),
        (["run.jsonl", "--tz", "../../etc/passwd"], "Europe/Berlin"),
        (["run.jsonl", "--steps", "a:b"], "200:400"),
        (["run.jsonl", "--steps", "9:1"], "after the last"),
        (["run.jsonl", "--steps", "1000:"], "0 to 399"),
        (["run.jsonl", "--config", "absent.toml"], "absent.toml"),
        (["run.jsonl", "-o", "no/such/folder"], "no/such/folder"),
    ],
)
def test_what_cannot_be_used_is_one_sentence_and_exit_2(
    run: Run, tmp_path: Path, arguments: list[str], says: str
) -> None:
    write_run(tmp_path / "run.jsonl")
    done = run("analyze", *arguments)
    assert done.returncode == 2
    assert done.stdout == b""
    message = done.stderr.decode()
    assert message.startswith("gdiag: ")
    assert message.count("\n") == 1
    assert says in message


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("step,comment\n1,a\n2,b\n", "holds no number beside its steps"),
        ("step,loss\na,b\nc,d\n", "holds no row that can be read: no number in column step (line 2)"),
        ("name,comment\na,b\nc,d\n", "holds no loss, gradient norm or step in its columns"),
    ],
)
def test_a_table_of_words_is_not_healthy(run: Run, tmp_path: Path, table: str, says: str) -> None:
    (tmp_path / "words.csv").write_text(table)
    done = run("analyze", "words.csv")
    assert done.returncode == 2
    assert done.stdout == b""
    assert says in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_an_empty_folder_is_not_healthy(run: Run, tmp_path: Path) -> None:
    assert run("analyze", ".").returncode == 2


def test_steps_outside_the_window_are_not_judged(run: Run, tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl", nan_from=300)
    done = run("analyze", "run.jsonl", "--format", "json", "--steps", ":250")
    report = json.loads(done.stdout)
    assert report["runs"][0]["segments"] == [{"first_step": 0, "last_step": 250, "rows": 251}]


@pytest.mark.parametrize("form", ["text", "json", "html", "markdown", "sarif"])
def test_every_form_is_written(run: Run, tmp_path: Path, form: str) -> None:
    write_run(tmp_path / "run.jsonl", nan_from=300)
    done = run("analyze", "run.jsonl", "--format", form)
    assert done.returncode == 1
    assert b"run.jsonl" in done.stdout


def test_tables_are_no_sarif(run: Run, tmp_path: Path) -> None:
    write_run(tmp_path / "run.jsonl")
    done = run("doctor", "run.jsonl", "--format", "sarif")
    assert done.returncode == 2
    assert b"use analyze" in done.stderr


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+05:30", "-0800", "Z"])
def test_zones_by_name_and_by_offset_are_taken(run: Run, tmp_path: Path, zone: str) -> None:
    write_run(tmp_path / "run.jsonl")
    assert run("analyze", "run.jsonl", "--tz", zone).returncode == 0


def test_a_column_may_be_named_and_only_one_that_is_there(run: Run, tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text("n,quality\n" + "".join(f"{k},{3 - k / 200}\n" for k in range(200)))
    done = run("analyze", "run.csv", "--map", "step=n", "--map", "loss=quality", "--format", "json")
    assert json.loads(done.stdout)["sources"][0]["columns"] == {"step": "n", "loss": "quality"}


def test_telemetry_beside_a_step_log_brings_the_tables_of_thermal(run: Run) -> None:
    sample = Path(__file__).parents[2] / "sample_logs" / "thermal-throttling"
    done = run("analyze", str(sample), "--format", "json", "--fail-on", "never")
    titles = [table["title"] for table in json.loads(done.stdout)["tables"]]
    assert any(title.startswith("GPUs") for title in titles)
    assert any(title.startswith("Temperature over time") for title in titles)
