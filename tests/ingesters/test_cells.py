"""Cells that hold more or less than one number: read where they have one meaning, else said to be left out."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import polars as pl
import pytest

from gdiag.ingesters import load, parts
from gdiag.schema import Records

N = 120
LOSS = [4 - i / 50 for i in range(N)]
FORMS = (
    "[{}]",
    "[[{}]]",
    "({},)",
    "tensor({})",
    "tensor({}, device='cuda:0')",
    "tensor([{}], device='cuda:0', dtype=torch.bfloat16)",
    "tensor({}, device='cuda:0', grad_fn=<NllLossBackward0>)",
    "np.float32({})",
    "numpy.float64({})",
    "array({}, dtype=float32)",
    "array([[{}]], dtype=float32)",
    "Array({}, dtype=float32)",
    "<tf.Tensor: shape=(), dtype=float32, numpy={}>",
    "<tf.Tensor: shape=(1,), dtype=float32, numpy=array([{}], dtype=float32)>",
    "Tensor(shape=[1], dtype=float32, place=Place(gpu:0), stop_gradient=False, [{}])",
    "Tensor(shape=[], dtype=Float32, value= {})",
    "{{'value': {}}}",
    '{{"value": {}}}',
)


def jsonl(folder: Path, rows: list[dict[str, object]]) -> Records:
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load([folder / "log.jsonl"])


def losses(records: Records) -> list[float]:
    return records.steps["loss"].round(6).to_list()


@pytest.mark.parametrize("form", FORMS)
def test_one_number_in_a_type_or_brackets(tmp_path: Path, form: str) -> None:
    texts = [form.format(f"{loss:.6f}") for loss in LOSS]
    pl.DataFrame({"step": range(N), "loss": texts}).write_csv(tmp_path / "log.csv")
    assert losses(load([tmp_path / "log.csv"])) == [round(loss, 6) for loss in LOSS]
    assert losses(jsonl(tmp_path, [{"step": i, "loss": text} for i, text in enumerate(texts)])) == losses(
        load([tmp_path / "log.csv"])
    )


@pytest.mark.parametrize(
    "wrap",
    [lambda x: [x], lambda x: [[x]], lambda x: {"value": x}, lambda x: [{"value": x, "unit": "nat"}], lambda x: {"$numberDouble": str(x)}],
)  # fmt: skip
@pytest.mark.parametrize("rows", [N, 20_000])
def test_one_number_in_lists_and_objects(tmp_path: Path, wrap: object, rows: int) -> None:
    assert callable(wrap)
    records = jsonl(tmp_path, [{"step": i, "loss": wrap(LOSS[i % N])} for i in range(rows)])
    assert losses(records) == [round(LOSS[i % N], 6) for i in range(rows)]
    assert records.sources[0].rejected == 0


def test_lists_of_one_and_plain_numbers_in_turn(tmp_path: Path) -> None:
    records = jsonl(tmp_path, [{"step": i, "loss": [LOSS[i]] if i % 2 else LOSS[i]} for i in range(N)])
    assert losses(records) == [round(loss, 6) for loss in LOSS]


@pytest.mark.parametrize(
    ("name", "metric"),
    [("loss_per_rank", "loss"), ("rank_losses", "loss"), ("train/losses_by_rank", "loss"), ("grad_norms_per_gpu", "grad_norm"),
     ("step_times_all_ranks", "step_time"), ("per_rank/losses", "loss")],
)  # fmt: skip
@pytest.mark.parametrize("rows", [N, 20_000])
def test_numbers_per_rank_are_rows_of_ranks(tmp_path: Path, name: str, metric: str, rows: int) -> None:
    cell = {"step_time": 0.5, "loss": 2.0, "grad_norm": 1.5}[metric]
    log = [{"step": i, "lr": 1e-3, name: [cell + r for r in range(4)]} for i in range(rows)]
    records = jsonl(tmp_path, log)
    ranked = records.steps.filter(pl.col("rank").is_not_null())
    assert ranked.height == 4 * rows
    assert ranked.filter(rank=3)[metric].unique().to_list() == [cell + 3]


@pytest.mark.parametrize(
    "name", ["layer_grad_norms", "grad_norm_per_layer", "train/grad_norms_by_layer", "layers/grad_norm"]
)
@pytest.mark.parametrize("rows", [N, 20_000])
def test_numbers_per_layer_are_layers(tmp_path: Path, name: str, rows: int) -> None:
    records = jsonl(tmp_path, [{"step": i, "loss": 2.0, name: [1.0, 2.0, 3.0]} for i in range(rows)])
    assert [(c.quantity, c.layer, c.depth) for c in records.layer_columns] == [
        ("grad_norm", f"layers.{i}", i) for i in range(3)
    ]
    assert records.layers.height == rows


def test_rates_of_parameter_groups(tmp_path: Path) -> None:
    records = jsonl(tmp_path, [{"step": i, "loss": LOSS[i], "lr": [1e-3, 2e-3]} for i in range(N)])
    assert records.steps["lr"].unique().to_list() == [1e-3]
    assert "not used: lr/1" in records.sources[0].notes[0]


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("rows", [N, 20_000])
def test_objects_that_name_their_layer_or_rank(tmp_path: Path, layers: int, rows: int) -> None:
    row = {
        "layers": [{"name": f"blocks.{k}.fc", "grad_norm": k + 1.0} for k in range(layers)],
        "ranks": [{"rank": k, "loss": 2.0 + k, "step_time": 0.5} for k in range(2)],
    }
    records = jsonl(tmp_path, [{"step": i, "loss": 2.5, **row} for i in range(rows)])
    assert [c.layer for c in records.layer_columns] == [f"blocks.{k}.fc" for k in range(layers)]
    assert records.steps.filter(rank=1)["loss"].unique().to_list() == [3.0]


@pytest.mark.parametrize("rows", [N, 20_000])
@pytest.mark.parametrize("name", ["grad_norms", "loss", "step_times"])
def test_lists_without_a_meaning_are_said_to_be_left_out(tmp_path: Path, name: str, rows: int) -> None:
    records = jsonl(tmp_path, [{"step": i, "train_loss": 2.0, name: [1.0, 2.0, 3.0]} for i in range(rows)])
    assert losses(records) == [2.0] * rows
    assert f"{name} left out: {rows} rows hold lists of 3" in records.sources[0].notes[0]


def test_a_longer_list_among_lists_of_one_is_said(tmp_path: Path) -> None:
    records = jsonl(tmp_path, [{"step": i, "loss": [2.0] * (1 + (i == 50))} for i in range(N)])
    assert records.steps["loss"].count() == N - 1
    assert "loss left out: 1 row holds a list of 2" in records.sources[0].notes[0]


@pytest.mark.parametrize("rows", [N, 20_000])
def test_numbers_in_quotation_marks_inside_lists(tmp_path: Path, rows: int) -> None:
    records = jsonl(tmp_path, [{"step": i, "loss_per_rank": ["2.5", "nan"]} for i in range(rows)])
    ranked = records.steps.filter(pl.col("rank").is_not_null())
    assert str(ranked["loss"].unique(maintain_order=True).to_list()) == "[2.5, nan]"


@pytest.mark.parametrize("rows", [N, 20_000])
@pytest.mark.parametrize("cell", [["2.5", "2.4"], ["low", "high"]])
def test_lists_of_text_called_a_loss_are_said_to_be_left_out(tmp_path: Path, cell: list[str], rows: int) -> None:
    said = f"loss left out: {rows} rows hold lists of 2"
    assert (
        said in jsonl(tmp_path, [{"step": i, "grad_norm": 1.0, "loss": cell} for i in range(rows)]).sources[0].notes[0]
    )
    (tmp_path / "log.jsonl").unlink(missing_ok=True)
    pl.DataFrame({"step": range(rows), "loss": [cell] * rows}).write_parquet(tmp_path / "log.parquet")
    assert said in load([tmp_path / "log.parquet"]).sources[0].notes[0]


@pytest.mark.parametrize("rows", [N, 20_000])
def test_records_of_one_name(tmp_path: Path, rows: int) -> None:
    layers = [{"name": name, "grad_norm": k + 1.0} for k, name in enumerate(["fc", "fc", "ln"])]
    records = jsonl(tmp_path, [{"step": i, "loss": 2.5, "layers": layers} for i in range(rows)])
    assert [c.layer for c in records.layer_columns] == ["fc", "fc (2)", "ln"]
    ranks = [{"rank": 0, "layer": "a", "loss": 1.0}, {"rank": 0, "layer": "b", "loss": 2.0}]
    records = jsonl(tmp_path, [{"step": i, "loss": 2.5, "ranks": ranks} for i in range(rows)])
    assert records.steps["rank"].null_count() == rows
    assert "not used: ranks" in records.sources[0].notes[0]


def test_lists_of_other_columns_are_named(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": LOSS[i], "bins": [1, 2], "prompts": ["a", "b"]} for i in range(N)]
    assert jsonl(tmp_path, list(rows)).sources[0].notes == ("1 numeric column not used: bins",)
    pl.DataFrame({"step": range(N), "loss": LOSS, "bins": ["[1, 2]"] * N}).write_csv(tmp_path / "log.csv")
    assert load([tmp_path / "log.csv"]).sources[0].notes == ("1 numeric column not used: bins",)


@pytest.mark.parametrize(
    "text", ["[1.0, 2.0, nan]", "[1. 2. nan]", "array([1., 2., nan], dtype=float32)", "tensor([1., 2., nan])"]
)
def test_lists_as_text(tmp_path: Path, text: str) -> None:
    pl.DataFrame({"step": range(N), "loss": LOSS, "loss_per_rank": [text] * N}).write_csv(tmp_path / "log.csv")
    ranked = load([tmp_path / "log.csv"]).steps.filter(pl.col("rank").is_not_null())
    assert ranked.height == 3 * N
    assert str(ranked["loss"].unique(maintain_order=True).to_list()) == "[1.0, 2.0, nan]"


def test_a_histogram_as_text(tmp_path: Path) -> None:
    text = json.dumps({"_type": "histogram", "values": [4], "bins": [0.0, 2.0]})
    frame = pl.DataFrame({"step": range(N), "loss": LOSS, "gradients/blocks.0.fc": [text] * N})
    frame.write_csv(tmp_path / "log.csv")
    assert load([tmp_path / "log.csv"]).layers["grad_norm:blocks.0.fc"].unique().to_list() == [2.0]


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([[x] for x in LOSS]),
        pl.Series([[x] for x in LOSS], dtype=pl.Array(pl.Float64, 1)),
        pl.Series([{"value": x} for x in LOSS]),
        pl.Series([str(x) for x in LOSS], dtype=pl.Categorical),
        pl.Series([str(x) for x in LOSS]).cast(pl.Binary),
        pl.Series([f"tensor({x})" for x in LOSS]),
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columns_of_parquet_and_arrow(tmp_path: Path, column: pl.Series, kind: str) -> None:
    frame = pl.DataFrame({"step": range(N), "loss": column, "grad_norms": pl.Series([[1.0, 2.0]] * N)})
    path = tmp_path / f"log.{kind}"
    frame.write_parquet(path) if kind == "parquet" else frame.write_ipc(path)
    records = load([path])
    assert losses(records) == [round(loss, 6) for loss in LOSS]
    assert "grad_norms left out" in records.sources[0].notes[0]


def test_cells_of_a_store(tmp_path: Path) -> None:
    store = sqlite3.connect(tmp_path / "log.db")
    store.execute("create table metrics (run_name text, step int, timestamp text, metrics text)")
    for i in range(N):
        cell = {"loss": [LOSS[i]], "grad_norms": [1.0, 2.0], "loss_per_rank": [2.0, 3.0]}
        store.execute("insert into metrics values ('a', ?, null, ?)", (i, json.dumps(cell)))
    store.commit()
    records = load([tmp_path / "log.db"])
    assert records.steps.filter(pl.col("rank").is_null())["loss"].round(6).to_list() == [round(x, 6) for x in LOSS]
    assert records.steps.filter(rank=1)["loss"].unique().to_list() == [3.0]
    assert "grad_norms left out" in records.sources[0].notes[0]


@pytest.mark.parametrize("text", ["[1.0, 2.0", "{'a': }", "tensor(", "[[[1", "array([1, x])", "[" * 5000, "{" * 5000])
def test_text_that_only_begins_like_a_list_is_a_reject(tmp_path: Path, text: str) -> None:
    records = jsonl(tmp_path, [{"step": i, "loss": LOSS[i] if i != 50 else text} for i in range(N)])
    assert records.steps["loss"].count() == N - 1
    assert records.rejects["line"].to_list() == [51]


def test_names() -> None:
    known = {
        "loss": "loss", "loss/value": "loss", "loss_per_rank/3": "rank3/loss", "train/rank_losses/0": "rank0/train/loss",
        "eval/rank_losses/0": "rank0/eval/loss", "lr/1": "lr/group1", "layer_grad_norms/0": "grad_norms/layers.0",
        "grad_norms/0": "grad_norms/0", "value": "value", "loss/12345678": "loss/12345678", "a" * 600: "a" * 600,
        "train_losses": "train_loss", "step_losses": "step_loss", "history/val_losses": "history/val_loss", "lrs": "lr",
        "norms": "norms", "steps": "steps", "samples": "samples", "tokens_per_gpu/0": "rank0/tokens", "process_time/0": "process_time/0",
    }  # fmt: skip
    assert {name: parts.plain(name) for name in known} == known


def test_an_object_of_lists_in_the_plural(tmp_path: Path) -> None:
    document = {"step_losses": LOSS, "train_accs": [0.5] * N, "lrs": [1e-3] * N, "final_loss": 1.6}
    (tmp_path / "metrics.json").write_text(json.dumps(document, indent=2))
    records = load([tmp_path / "metrics.json"])
    assert losses(records) == [round(loss, 6) for loss in LOSS]
    assert records.steps["lr"].to_list() == [1e-3] * N
    both = {"train_losses": LOSS, "val_losses": [x + 1 for x in LOSS]}
    (tmp_path / "metrics.json").write_text(json.dumps({"history": both}))
    records = load([tmp_path / "metrics.json"])
    assert records.steps["eval_loss"].round(6).to_list() == [round(loss + 1, 6) for loss in LOSS]
    assert losses(records) == [round(loss, 6) for loss in LOSS]


def test_a_list_of_ranks_with_a_word_in_it_is_said_to_be_no_numbers(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 2.0, "loss_per_rank": ["1.5", "n/a" if i == 7 else "2.5"]} for i in range(20)]
    note = next(note for note in jsonl(tmp_path, rows).sources[0].notes if "left out" in note)
    assert note == "loss_per_rank left out: 1 row holds a list of 2 that are not all numbers, or too many"
