"""JSONL step logs."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import json_chunks, json_rows, load
from gdiag.ingesters.files import open_file


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(content: bytes, chunk: int = 2000, piece: int = 400) -> json_chunks.Chunks:
    return json_chunks.read(lambda start, end: content[start:end], len(content), chunk=chunk, pieces=(piece,))


def frame(chunks: json_chunks.Chunks) -> pl.DataFrame:
    return pl.concat(chunks.frames, how="diagonal_relaxed")


def clean(rows: int = 300) -> bytes:
    return b"".join(b'{"step": %d, "loss": %f, "lr": 0.001}\n' % (i, 3.0 + i / 7) for i in range(rows))


def test_reads_steps_and_layers(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"step": i, "train/loss": 3.0 - i, "optim/total_grad_norm": 1.0, "grad/blocks.0.fc.norm": 0.5} for i in range(3)
    ]
    records = load([write(tmp_path / "run.jsonl", rows)])
    assert records.steps["loss"].to_list() == [3.0, 2.0, 1.0]
    assert records.steps["run"].unique().to_list() == ["run"]
    assert records.layers["grad_norm:blocks.0.fc"].to_list() == [0.5] * 3
    assert [(c.layer, c.depth, c.kind) for c in records.layer_columns] == [("blocks.0.fc", 0, "mlp")]
    assert records.sources[0].columns["loss"] == "train/loss"


def test_a_bad_line_is_a_reject(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"step": 0, "loss": NaN}\n{"step": 1, "lo\n{"step": 2, "loss": "inf"}\n')
    records = load([path])
    assert records.rejects["line"].to_list() == [2]
    assert records.steps["loss"].is_nan().to_list() == [True, False]
    assert records.steps["line"].to_list() == [1, 3]


def test_a_request_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no training log"):
        load([write(tmp_path / "requests.jsonl", [{"latency_p99": 0.1, "user": "a"}] * 3)])


def test_not_a_number_is_neither_null_nor_a_reject(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    cells = ["NaN", "Infinity", "-Infinity", "1e999", '"NaN"', '"2.5"', "7", "null"]
    path.write_text("".join(f'{{"step": {i}, "loss": {cell}}}\n' for i, cell in enumerate(cells)) + '{"step": 8}\n')
    loss = load([path]).steps["loss"].to_list()
    assert math.isnan(loss[0])
    assert loss[1:4] == [math.inf, -math.inf, math.inf]
    assert math.isnan(loss[4])
    assert loss[5:] == [2.5, 7.0, None, None]
    assert load([path]).rejects.height == 0


def test_text_in_a_numeric_column_is_a_reject(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"step": 0, "loss": 1.0}\n{"step": 1, "loss": "\\u001b[31mred"}\n{"step": 2, "loss": 1.5}\n')
    records = load([path])
    assert records.rejects.select("line", "reason").rows() == [(2, "no number in column loss")]
    assert "\x1b" not in records.rejects["text"][0]
    assert records.steps["loss"].to_list() == [1.0, None, 1.5]


def test_late_keys_and_mixed_numbers_survive_the_fast_path() -> None:
    late = b'{"step": 300, "loss": 1, "extra": 5, "nested": {"a": {"b": 2}}}\n'
    got = frame(read(clean() + late + clean()))
    assert got.height == 601
    assert got["extra"].drop_nulls().to_list() == [5.0]
    assert got["nested/a/b"].drop_nulls().to_list() == [2.0]
    assert got["line"].to_list() == list(range(1, 602))


def test_keys_that_come_late_and_stay_need_no_second_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    rows = [json.dumps({"step": i, "loss": 1.5, **({"late": i} if i >= 150 else {})}) + "\n" for i in range(300)]
    got = read("".join(rows).encode(), 3000, 400)
    assert len(got.frames) <= 5, "a chunk was cut into pieces"
    assert frame(got)["late"].to_list() == [None] * 150 + [float(i) for i in range(150, 300)]


def test_not_a_number_stays_on_the_fast_path() -> None:
    words = b'{"step": 1, "loss": NaN, "lr": -Infinity}\n{"step": 2, "loss": Infinity, "note": "NaN seen", "lr": 1.0}\n'
    got = frame(read(b'{"step": 0, "loss": 1.0, "note": "x", "lr": 1.0}\n' * 60 + words, 1 << 20, 1 << 10))
    assert str(got["loss"].to_list()[-2:]) == "[nan, inf]"
    assert got["lr"].to_list()[-2:] == [-math.inf, 1.0]
    assert got["note"].to_list()[-2:] == [None, "NaN seen"]


def test_the_last_of_two_equal_keys_wins() -> None:
    got = frame(read(clean() + b'{"step": 300, "loss": 1, "loss": 2}\n'))
    assert got["loss"][-1] == 2.0


def test_damage_costs_only_the_damaged_line() -> None:
    damage = [
        b'{"step": 1, "lo', b'{"step": 2, "loss": 1.0}{"step": 3, "loss": 2.0}', b"\0" * 90 + b'{"step": 4, "loss": 3.0}',
        b'{"step": 5, "note": "\xff\xfe", "loss": 4.0}', b'{"step": 6, "note": "\\ud800", "loss": 5.0}', b"[" * 5000, b"starting up",
        b'{"step": ' + b'{"a":' * 3000 + b"1" + b"}" * 3000 + b"}",
    ]  # fmt: skip
    for cut in range(1, 5):
        blocks = [clean(97 * cut) + line + b"\n" for line in damage]
        chunks = read(b"".join(blocks))
        got = frame(chunks)
        assert got.height == 97 * cut * len(damage) + 5
        lines = [(97 * cut + 1) * (i + 1) for i in (0, 5, 6, 7)]
        assert [bad.line for bad in chunks.bad] == lines
        assert chunks.glued == 1
        assert chunks.repaired == 2


def test_a_line_that_lost_its_end_gives_the_object_glued_to_it() -> None:
    rows = json_rows.parse(b'{"step": 1, "loss": 2.{"step": 2, "loss": 3.0}', 1)
    assert rows.rows == [{"step": 2, "loss": 3.0}]
    assert [bad.reason for bad in rows.bad] == ["cut off at the end of the file"]


def test_histograms_become_norms_on_both_paths() -> None:
    line = b'{"step": %d, "gradients/w": {"_type": "histogram", "values": [2, 0, 1], "bins": [-1, 0, 1, 3]}, "loss": 1.5}\n'
    content = b"".join(line % i for i in range(200))
    expected = math.sqrt(2 * 0.25 + 4)
    for chunks in (read(content), read(content, 1 << 20, 1 << 20)):
        assert frame(chunks)["gradients/w"].to_list() == pytest.approx([expected] * 200)


def test_ranks_become_rows(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"step": i, "loss": 2.0, "rank0/loss": 1.0, "loss/rank1": 3.0} for i in range(2)]
    steps = load([write(tmp_path / "run.jsonl", rows)]).steps
    assert steps["rank"].to_list() == [None, 0, 1] * 2
    assert steps["loss"].to_list() == [2.0, 1.0, 3.0] * 2


def test_runs_in_one_file_are_told_apart(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"run": name, "step": i, "loss": 1.0} for i in range(3) for name in ("a", "b")]
    records = load([write(tmp_path / "run.jsonl", rows)])
    assert [run.id for run in records.runs] == ["a", "b"]
    assert records.steps["run"].to_list() == ["a", "b"] * 3


def test_steps_that_are_absent_are_said(tmp_path: Path) -> None:
    records = load([write(tmp_path / "run.jsonl", [{"loss": 1.0}, {"loss": 0.9}])])
    assert records.steps["step"].to_list() == [0, 1]
    assert any("no step column" in note for note in records.sources[0].notes)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 400), st.sampled_from([b"\n", b"\r\n", b"\n\n"]))
def test_a_cut_anywhere_keeps_every_complete_row(rows: int, newline: bytes) -> None:
    lines = clean(12).splitlines()
    content = newline.join(lines) + newline
    cut = content[: rows * len(content) // 400]
    whole = cut.count(b"}")
    chunks = read(cut, 150, 60)
    assert chunks.objects == whole


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(["step", "loss", "x", "line"]), JSON, max_size=4), min_size=1, max_size=15)
)
def test_chunks_and_lines_agree(rows: list[dict[str, object]]) -> None:
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    fast = read(clean(40) + content, 500, 100)
    assert fast.objects == 40 + len(rows)
    assert not fast.bad
    expected = [json.loads(json.dumps(row)).get("loss") for row in rows]
    got = frame(fast)
    losses = got["loss"].tail(len(rows)) if "loss" in got.columns else pl.Series([None] * len(rows))
    for want, have in zip(expected, losses.to_list(), strict=True):
        if isinstance(want, int | float) and not isinstance(want, bool) and got.schema["loss"] == pl.Float64:
            assert have == pytest.approx(float(want), nan_ok=True)


def test_columns_that_nothing_reads_are_named_and_not_kept(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"step": i, "loss": 1.5, "fancy": 0.5, "remark": "x"} for i in range(9000)]
    path = write(tmp_path / "run.jsonl", rows)
    records = load([path])
    assert records.sources[0].notes == ("1 numeric column not used: fancy",)
    kept = json_chunks.read(*open_file(path).opened(), {"step", "loss"}.__contains__)
    assert {column for part in kept.frames for column in part.columns} == {"line", "step", "loss"}
    assert kept.unused == {"fancy": True, "remark": False}


CELL = (
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.integers(2**60, 2**80) | st.floats() | st.floats(0, 1)
    | st.sampled_from(["NaN", "1.5", "-Infinity", "warm", "quo\"ted", "null", ""])
)  # fmt: skip
DIRT = st.sampled_from(
    [b"", b"starting up", b'{"step": 1, "lo', b"\0\0", b'{"step": 7}{"step": 8}', b'{"loss": 1, "loss": 2}', b"[1]", b'{"note": "\xff"}']
)  # fmt: skip


def cells(chunks: json_chunks.Chunks) -> list[dict[str, object]]:
    """Rows without what is null; what reads as a number or a truth value is one, whatever its column is."""
    return [
        {name: plain(cell) for name, cell in row.items() if cell is not None} for row in frame(chunks).to_dicts()
    ] if chunks.frames else []  # fmt: skip


def plain(cell: object) -> str:
    text = str(cell).lower()
    try:
        return str(float({"true": "1", "false": "0"}.get(text, text)))
    except ValueError:
        return text


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(["step", "loss", "note", "n"]), CELL | st.dictionaries(st.just("a"), CELL), max_size=4)),
    st.lists(st.tuples(st.integers(0, 60), DIRT), max_size=3),
    st.booleans(),
)  # fmt: skip
def test_the_fast_path_reads_what_the_line_wise_one_reads(
    rows: list[dict[str, object]], dirt: list[tuple[int, bytes]], ended: bool
) -> None:
    lines = [*clean(40).splitlines(), *(json.dumps(row).encode() for row in rows)]
    for place, line in dirt:
        lines.insert(place, line)
    content = b"\n".join(lines) + b"\n" * ended
    fast, slow = read(content, 700, 100), read(content, piece=len(content))
    assert cells(fast) == cells(slow)
    assert [(bad.line, bad.text) for bad in fast.bad] == [(bad.line, bad.text) for bad in slow.bad]
    assert (fast.objects, fast.glued, fast.repaired) == (slow.objects, slow.glued, slow.repaired)


def test_a_file_is_read_in_parts_behind_its_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + clean(50))
    take, size = open_file(path).opened()
    assert size == len(clean(50))
    assert take(0, 9) + take(9, size) == clean(50)


def test_a_step_with_its_total_and_a_spelled_duration(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        "".join(
            f'{{"loss": 0.5, "global_step/max_steps": "{i}/2161", "elapsed_time": "1h {i}m 1s", "percentage": "27.9%"}}\n'
            for i in range(1, 9)
        )
    )
    records = load([log])
    assert records.steps["step"].to_list() == list(range(1, 9))
    assert records.steps["elapsed"].to_list() == [3601 + 60 * i for i in range(1, 9)]
    assert records.rejects.height == 0


def test_rows_that_speak_are_events_at_the_step_before(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"step": i * 10, "loss": 4 - i / 10, "time": 1.7e9 + i} for i in range(20)]
    rows.insert(5, {"event": "checkpoint saved", "path": "out/ckpt", "time": 1.7e9 + 4.5})
    rows.insert(9, {"level": "ERROR", "exception": "OutOfMemoryError: CUDA out of memory", "time": 1.7e9 + 7.5})
    rows.insert(
        12, {"message": "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.", "time": 1.7e9 + 9.5}
    )
    rows.insert(15, {"step": 115, "msg": "resumed from checkpoint out/ckpt"})
    rows.append({"level": "ERROR", "message": "Traceback (most recent call last):\n  x\nRuntimeError: NCCL error"})
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    records = load([tmp_path / "run.jsonl"])
    assert records.events.select("line", "step", "kind").rows() == [
        (6, 40, "checkpoint"), (10, 70, "oom"), (13, 90, "xid"), (16, 115, "restart"), (25, 190, "exit")
    ]  # fmt: skip
    assert records.events["time"].to_list()[:3] == [1.7e9 + 4.5, 1.7e9 + 7.5, 1.7e9 + 9.5]
    assert records.events["text"][-1] == "RuntimeError: NCCL error"
    assert records.runs[0].exit == "abnormal"
    assert records.steps["loss"].drop_nulls().to_list() == [4 - i / 10 for i in range(20)]


@pytest.mark.parametrize("words", ["step done", "train", "ok", ""])
def test_rows_that_say_nothing_of_note_are_no_events(tmp_path: Path, words: str) -> None:
    rows = [{"step": i, "loss": 4 - i / 10, "msg": words} for i in range(20)]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    records = load([tmp_path / "run.jsonl"])
    assert (records.events.height, records.runs[0].exit) == (0, "unknown")


def test_what_stands_far_behind_in_a_bad_line_is_an_event(tmp_path: Path) -> None:
    lines = [json.dumps({"step": i, "loss": 3 - i / 100}) for i in range(50)]
    lines.insert(10, "x" * 3000 + " NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.")
    (tmp_path / "run.jsonl").write_text("\n".join(lines) + "\n")
    assert load([tmp_path]).events["kind"].to_list() == ["xid"]
