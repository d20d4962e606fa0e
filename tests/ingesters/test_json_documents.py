"""JSON documents that hold a whole log."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import json_whole, load, sacred, trainer_state
from gdiag.ingesters.reading import Input, Options
from gdiag.schema import Records


def loaded(folder: Path, document: object, indent: int | None = None) -> Records:
    (folder / "log.json").write_text(json.dumps(document, indent=indent))
    return load([folder / "log.json"])


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_rows(tmp_path: Path, indent: int | None) -> None:
    records = loaded(tmp_path, [{"step": i, "train": {"loss": 2.0 - i}} for i in range(3)], indent)
    assert records.steps["loss"].to_list() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_that_is_cut_gives_its_complete_values(tmp_path: Path, indent: int | None) -> None:
    text = json.dumps([{"step": i, "loss": 2.5} for i in range(40)], indent=indent)
    (tmp_path / "log.json").write_text(text[:-20])
    records = load([tmp_path / "log.json"])
    assert records.steps["step"].to_list() == list(range(39 if indent is None else 40))
    assert records.steps["loss"].drop_nulls().to_list() == [2.5] * 39
    assert records.rejects["line"].to_list() == [1 if indent is None else 3 + 39 * 4]
    assert "not read" in records.rejects["reason"][0]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "document",
    [
        {"rows": [{"step": i, "loss": 2.5} for i in range(40)]},
        {"step": list(range(40)), "loss": [2.5] * 40},
        {"loss": [2.5] * 40},
    ],
    ids=["rows", "columns", "column"],
)
def test_a_cut_object_gives_what_is_complete(tmp_path: Path, document: object, indent: int | None) -> None:
    text = json.dumps(document, indent=indent)
    (tmp_path / "log.json").write_text(text[:-60])
    records = load([tmp_path / "log.json"])
    losses = records.steps["loss"].drop_nulls().to_list()
    assert losses == [2.5] * len(re.findall(r"2\.5\s*[,}\]]", text[:-60]))
    assert records.rejects.height == 1


def test_objects_glued_together_are_all_read(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text("".join(json.dumps({"step": i, "loss": 2.5}) for i in range(40)))
    records = load([tmp_path / "log.json"])
    assert records.steps["step"].to_list() == list(range(40))
    assert records.rejects.height == 0


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("{\nstep,loss\n", False),
        ("[\nstep 1\n", False),
        ('{\n "loss": [', True),
        ("[\n  {", True),
        ("{\n", True),
        ("[\n", False),
    ],
)
def test_a_bracket_opens_a_document_or_nothing(text: str, sure: bool) -> None:
    assert (json_whole.recognise(Input("x", text.encode())) > 0) == sure


@pytest.mark.parametrize("indent", [None, 2])
def test_an_object_of_columns(tmp_path: Path, indent: int | None) -> None:
    records = loaded(tmp_path, {"loss": [float(i) for i in range(9)], "val_loss": [1.0] * 9}, indent)
    assert records.steps["loss"].to_list() == [float(i) for i in range(9)]


@pytest.mark.parametrize(
    "document",
    [{"train_loss": 1.3, "train_runtime": 5.0}, {"betas": [0.9, 0.95]}, {}, [], {"a": [1, 2], "lr": [0.1, 0.2]}],
)
def test_final_values_are_refused(tmp_path: Path, document: object) -> None:
    with pytest.raises(InputError):
        loaded(tmp_path, document)


def state(rows: int = 20) -> str:
    history = [
        {
            "epoch": i / 10,
            "grad_norm": float("nan") if i == 5 else 1.0,
            "learning_rate": 1e-4,
            "loss": 2.0,
            "step": 10 * i,
        }
        for i in range(1, rows)
    ]
    history.insert(6, {"epoch": 0.5, "eval_loss": 1.9, "eval_runtime": 3.0, "step": 50})
    history.append({"epoch": 2.0, "step": 200, "total_flos": 1e15, "train_loss": 1.8, "train_runtime": 60.0})
    return json.dumps(
        {"best_metric": None, "global_step": 200, "logging_steps": 10, "log_history": history, "max_steps": 400},
        indent=2,
    )


def test_trainer_state(tmp_path: Path) -> None:
    (tmp_path / "trainer_state.json").write_text(state())
    records = load([tmp_path / "trainer_state.json"])
    assert records.sources[0].rows == 19
    assert records.steps.height == 20
    assert records.steps["eval_loss"].drop_nulls().to_list() == [1.9]
    assert records.steps["grad_norm"].is_nan().sum() == 1
    assert records.runs[0].config == {"total_steps": 400, "log_interval": 10}
    line = records.steps["line"][0]
    assert state().splitlines()[line - 1].strip() == "{"


def test_checkpoints_in_a_trainer_state_are_events() -> None:
    history = [
        {"loss": 2.0, "step": i, **({"message": f"checkpoint saved to out/{i}"} if i % 10 == 0 else {})}
        for i in range(1, 41)
    ]
    content = json.dumps({"log_history": history}).encode()
    events = trainer_state.read(Input("x", content, content=content), Options()).events
    assert events is not None
    assert events.select("step", "kind").rows() == [(10 * i, "checkpoint") for i in range(1, 5)]


@settings(max_examples=40, deadline=None)
@given(st.integers(100, len(state())))
def test_a_cut_trainer_state_keeps_complete_entries(cut: int) -> None:
    text = state()[:cut]
    content = text.encode()
    complete = max(text.count("}"), 0)
    if not trainer_state.recognise(Input("x", content)) or complete < 2:
        return
    reading = trainer_state.read(Input("x", content, content=content), Options())
    assert reading.steps is not None
    assert reading.steps.height >= min(complete, 19) - 1


@pytest.mark.parametrize("old", [True, False])
def test_megatron_golden_values(tmp_path: Path, old: bool) -> None:
    losses: object = [10.5, 9.5, "nan", 8.0] if old else {"0": 10.5, "5": 9.5, "10": "nan", "15": 8.0}
    series = {"start_step": 0, "end_step": 20, "step_interval": 5}
    records = loaded(
        tmp_path, {"lm loss": {**series, "values": losses}, "num-zeros": {**series, "values": [1, 2, 3, 4]}}, 4
    )
    loss = records.steps.select("step", "loss").drop_nulls()
    assert loss.rows() == [(0, 10.5), (5, 9.5), (15, 8.0)]
    assert records.sources[0].rows == 3


@pytest.mark.parametrize("count", [40, 20_000])
def test_golden_values_that_stand_before_their_steps(tmp_path: Path, count: int) -> None:
    values = [8 - i / 2**15 for i in range(count)]
    places = {"start_step": 10, "end_step": 10 + 5 * count, "step_interval": 5}
    (tmp_path / "golden.json").write_text(json.dumps({"lm loss": {"values": values, **places}}))
    records = load([tmp_path / "golden.json"])
    assert records.sources[0].format == "megatron-golden"
    assert records.steps["step"].to_list() == [10 + 5 * i for i in range(count)]
    assert records.steps["loss"].to_list() == values


def test_sacred(tmp_path: Path) -> None:
    metric = {"steps": [1, 3], "timestamps": ["2024-01-01T00:00:00.5", "2024-01-01T00:00:01.5"], "values": [2.0, 1.0]}
    records = loaded(tmp_path, {"training.loss": metric, "val_loss": {**metric, "steps": [2, 3]}}, 2)
    assert records.steps.select("step", "loss", "eval_loss").rows() == [(1, 2.0, None), (2, None, 2.0), (3, 1.0, 1.0)]


def test_sacred_steps_that_come_again_and_in_halves(tmp_path: Path) -> None:
    steps = [*range(50), *range(40, 90)]
    metric = {"steps": steps, "timestamps": ["2024-01-01T00:00:00"] * 100, "values": [4 - i / 50 for i in range(100)]}
    once = {**metric, "steps": [60, 70], "values": [3.0, 2.5]}
    records = loaded(tmp_path, {"training.loss": metric, "val_loss": once}, None)
    told = records.steps.drop_nulls("loss")
    assert told["step"].to_list() == steps
    assert told["loss"].to_list() == metric["values"]
    assert records.steps.drop_nulls("eval_loss").select("step", "eval_loss").rows() == [(60, 3.0), (70, 2.5)]
    halves = loaded(tmp_path, {"training.loss": {**metric, "steps": [i / 2 for i in range(1, 101)]}}, None)
    assert halves.steps.select("step", "epoch").rows() == [(i, i / 2) for i in range(1, 101)]


@pytest.mark.parametrize("epochs", [2, 3, 4])
def test_a_history_of_few_epochs(tmp_path: Path, epochs: int) -> None:
    losses = [2 - i / 10 for i in range(epochs)]
    assert loaded(tmp_path, {"loss": losses, "val_loss": losses}, None).steps["loss"].to_list() == losses


@pytest.mark.parametrize("orient", ["columns", "index", "split", "records", "list"])
def test_every_way_in_which_pandas_writes_a_table(tmp_path: Path, orient: str) -> None:
    steps, losses = [*range(0, 120, 10)], [4 - i / 10 for i in range(12)]
    rows = [{"step": step, "loss": loss} for step, loss in zip(steps, losses, strict=True)]
    document: dict[str, object] = {
        "columns": {name: {str(i): row[name] for i, row in enumerate(rows)} for name in rows[0]},
        "index": {str(i): row for i, row in enumerate(rows)},
        "split": {"columns": ["step", "loss"], "index": [*range(12)], "data": [[*row.values()] for row in rows]},
        "records": rows, "list": {"step": steps, "loss": losses},
    }  # fmt: skip
    assert loaded(tmp_path, document[orient], None).steps.select("step", "loss").rows() == [
        *zip(steps, losses, strict=True)
    ]


def test_a_history_of_one_epoch_is_no_series(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one object of final values"):
        loaded(tmp_path, {"loss": [2.0], "val_loss": [2.5]}, None)


VALUES = [{"dtype": "float64", "py/object": "numpy.float64", "value": 4.0}, *(3 - i / 64 for i in range(59))]
METRICS = {
    name: {"steps": list(range(60)), "timestamps": [f"2024-01-01T00:00:{i:02d}" for i in range(60)], "values": values}
    for name, values in (("lr", [1e-4] * 60), ("training.loss", VALUES))
}


def sacred_losses(text: str) -> list[float]:
    steps = sacred.read(Input("x", text.encode(), content=text.encode()), Options()).steps
    assert steps is not None
    return steps["loss"].drop_nulls().to_list() if "loss" in steps.columns else []


@settings(max_examples=60, deadline=None)
@given(st.floats(0.0, 1.0), st.sampled_from([None, 2]))
def test_a_cut_sacred_file_gives_every_value_before_the_cut(at: float, indent: int | None) -> None:
    text = json.dumps(METRICS, indent=indent)
    start = text.rindex("values")
    cut = start + int(at * (len(text) - start))
    behind = "".join(text[start:cut].split())
    complete = max(0, (behind.count("},") and behind.partition("},")[2].count(",")) + behind.count("},"))
    read = sacred_losses(text[:cut])
    assert read == [4.0, *VALUES[1:]][: len(read)]
    assert len(read) >= complete


def test_a_sacred_file_damaged_in_mid_value_or_from_the_start() -> None:
    text = json.dumps(METRICS)
    assert sacred_losses(text.replace("2.875", "2.8?5")) == [4.0, *VALUES[1:9], *VALUES[10:]]
    with pytest.raises(InputError, match="damaged JSON document"):
        sacred_losses("}" + text)


def test_commas_inside_a_damaged_string_end_no_value() -> None:
    text = json.dumps({"training.loss": METRICS["training.loss"], "note": "a, b, c, d, e, f\n"})
    assert sacred_losses(text.replace("\\n", "\n")) == [4.0, *VALUES[1:]]


@pytest.mark.parametrize("old", [True, False])
def test_cut_golden_values_give_those_before_the_cut(tmp_path: Path, old: bool) -> None:
    losses = [8 - i / 64 for i in range(100)]
    values: object = losses if old else {str(1 + 5 * i): loss for i, loss in enumerate(losses)}
    series = {"start_step": 1, "end_step": 500, "step_interval": 5, "values": values}
    text = json.dumps({"lm loss": series, "iteration-time": series})
    (tmp_path / "golden.json").write_text(text[:-150])
    records = load([tmp_path / "golden.json"])
    assert records.steps.select("step", "loss").rows() == [(1 + 5 * i, loss) for i, loss in enumerate(losses)]
    assert records.sources[0].rejected == 1
