"""Rows that bring new names all the time cost what their cells cost, and what is left out of the table is said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from gdiag.ingesters import flat, json_chunks, json_columnar, load, rare
from gdiag.ingesters.files import open_file
from gdiag.ingesters.flat import Cell

ROWS = st.lists(
    st.dictionaries(st.sampled_from("abcd"), st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)), max_size=12
)  # fmt: skip


def naive(rows: Sequence[dict[str, Cell]]) -> pl.DataFrame:
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame([flat.column(n, [row.get(n) for row in rows], [*range(len(rows))], len(rows)) for n in names])


@settings(max_examples=200, deadline=None)
@given(ROWS)
def test_a_frame_of_sparse_rows_is_that_of_full_ones(rows: list[dict[str, Cell]]) -> None:
    assert_frame_equal(flat.to_frame(rows), naive(rows), check_exact=True)


def test_only_what_next_to_no_row_fills_is_left_out_and_the_emptiest_first() -> None:
    counts = {"step": 1000, "early": 2, "eval_loss": 5, "late": 2, "once": 1}
    assert rare.left_out(counts, 1000, 5000) == []
    assert rare.left_out(counts, 1000, 4999) == ["once"]
    assert rare.left_out(counts, 1000, 3000) == ["late", "once"]
    assert rare.left_out(counts, 1000, 0) == ["early", "late", "once"]
    assert rare.left_out({}, 0, 0) == []


def test_the_sentence_counts_and_names_them() -> None:
    assert rare.note([]) == []
    (said,) = rare.note([f"grad_norm/{i}" for i in range(1200)])
    assert "1,200 columns" in said
    assert "grad_norm/3, …" in said


def log(path: Path, count: int, name: str) -> Path:
    path.write_text(
        "".join(json.dumps({"step": i, "loss": 3 - i / count, f"{name}{i}": i / 2}) + "\n" for i in range(count))
    )
    return path


def test_jsonl_whose_rows_bring_new_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rare, "MOST", 200_000)
    records = load([log(tmp_path / "run.jsonl", 8000, "grad_norm/layer.")])
    assert records.steps["loss"].to_list() == [3 - i / 8000 for i in range(8000)]
    (source,) = records.sources
    (said,) = [note for note in source.notes if "not read whole" in note]
    left = int(said.split()[0].replace(",", ""))
    assert left + len(records.layer_columns) == 8000


@pytest.mark.parametrize(("rows", "every", "fresh"), [(600, 1, 1), (1200, 1, 2), (900, 7, 3), (2500, 300, 1)])
def test_nothing_is_left_out_of_a_table_below_the_bound(tmp_path: Path, rows: int, every: int, fresh: int) -> None:
    told = [
        {
            "step": i,
            "loss": 3 - i / rows,
            **({f"grad_norm/layer.{i * fresh + k}": i / 2 + k for k in range(fresh)} if i % every == 0 else {}),
            **({"grad_norm/layer.99999": 1.0} if i % 1000 in (5, 6, 7, 900) or i > rows - 40 else {}),
        }
        for i in range(rows)
    ]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in told))
    records = load([tmp_path / "run.jsonl"])
    assert not [note for note in records.sources[0].notes if "not read" in note]
    names = {name for row in told for name in row} - {"step", "loss"}
    layers = records.layers.drop("run", "rank", "line", "source")
    assert {f"grad_norm/{c.removeprefix('grad_norm:')}" for c in layers.columns if ":" in c} == names
    held = {(row["step"], name): value for row in told for name, value in row.items() if name in names}
    found = layers.unpivot(index="step").drop_nulls("value").rows()
    assert {(step, name.replace(":", "/")): value for step, name, value in found} == held


def test_columns_of_words_and_numbers_that_few_rows_have(tmp_path: Path) -> None:
    rows: list[dict[str, Cell]] = [{"step": i, f"x{i}": 1.0} for i in range(4000)]
    rows[10]["said"] = rows[2000]["said"] = 1.5
    rows[3500]["said"] = "NaN"
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    found = json_chunks.read(lambda a, b: data[a:b], len(data), pieces=(20_000,))
    frame, left = json_chunks.joined(found)
    assert not left
    assert frame["said"].drop_nulls().to_list() == ["1.5", "1.5", "NaN"]
    assert frame.select((pl.col(f"x{i}").drop_nulls().len() == 1) for i in range(4000)).transpose()[:, 0].all()


def test_what_is_kept_aside_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rare, "MOST", 256 * 5)
    aside = rare.Aside()
    for i in range(8):
        aside.put(f"x{i}", [i], [1.0])
    assert [*aside.cells] == [f"x{i}" for i in range(5)]
    assert [*aside.lost] == ["x5", "x6", "x7"]


def test_names_that_nobody_wants_take_no_room(tmp_path: Path) -> None:
    path = log(tmp_path / "run.jsonl", 8000, "x")
    found = json_chunks.read(*open_file(path).opened(), {"step", "loss"}.__contains__)
    assert found.unused == {f"x{i}": True for i in range(8000)}
    assert not found.aside.cells
    assert sum(frame.height for frame in found.frames) == 8000


def test_a_piece_has_few_cells_for_its_bytes(tmp_path: Path) -> None:
    path = log(tmp_path / "run.jsonl", 20_000, "grad_norm/layer.")
    found = json_chunks.read(*open_file(path).opened())
    assert sum(frame.height * frame.width for frame in found.frames) < 20 * path.stat().st_size
    kept = {name for frame in found.frames for name in frame.columns}
    assert kept | set(found.aside.cells) >= {"step", "loss", *(f"grad_norm/layer.{i}" for i in range(20_000))}


@pytest.mark.parametrize("every", [1, 2, 1000])
def test_only_names_that_come_all_the_time_are_read_row_by_row(every: int) -> None:
    rows = [{"step": i, "loss": 2.5, **({f"x{i}": 1.5} if i % every == 0 else {})} for i in range(6000)]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert json_columnar._too_sparse(data[-(32 << 10) :].partition(b"\n")[2], 16 << 20) is (every < 1000)
    assert not json_columnar._too_sparse(data[-(32 << 10) :].partition(b"\n")[2], 32 << 10)


def test_cells_of_objects_that_bring_new_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.csv").write_text(
        "step;loss;grad_norm\n" + "".join(f"{i};2.5;{{'b{i}': {i / 2}, 'head': 0.5}}\n" for i in range(600))
    )
    whole = load([tmp_path / "log.csv"])
    assert len(whole.layer_columns) == 601
    monkeypatch.setattr(rare, "MOST", 600 * 100)
    bounded = load([tmp_path / "log.csv"])
    assert bounded.steps.height == 600
    assert len(bounded.layer_columns) == 100
    assert any(note.startswith("501 columns are not read whole") for note in bounded.sources[0].notes)


@pytest.mark.parametrize("headers", [60, 70])
def test_a_table_whose_headers_bring_new_names(headers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(
        f"step,loss,lr,grad_norm/layer.{h}\n" + "".join(f"{5 * h + i},2.5,,{h}\n" for i in range(5))
        for h in range(headers)
    )
    (tmp_path / "log.csv").write_text(text)
    whole = load([tmp_path / "log.csv"])
    assert whole.steps["step"].to_list() == [*range(5 * headers)]
    assert whole.steps["line"].to_list() == [6 * (i // 5) + i % 5 + 2 for i in range(5 * headers)]
    assert whole.layers is not None
    assert len(whole.layer_columns) == headers
    monkeypatch.setattr(rare, "MOST", 0)
    monkeypatch.setattr(rare, "_SHARE", 50)
    bounded = load([tmp_path / "log.csv"])
    assert len(bounded.layer_columns) == (headers if headers < 64 else 0)
    assert any("not read whole" in note for note in bounded.sources[0].notes) is (headers > 64)
