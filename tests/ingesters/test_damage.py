"""Content that breaks readers: figures no column holds, quotation marks without an end, lines that take for ever."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest

from gdiag.ingesters import jsonl, port_counters, smi_columns
from gdiag.ingesters.aliases import claim, family
from gdiag.ingesters.formats import FORMATS, GUESSES
from gdiag.ingesters.layer_names import parse
from gdiag.ingesters.ranks import split_rank
from gdiag.ingesters.reading import Input, Options
from gdiag.ingesters.values import whole
from gdiag.pipeline import diagnose, load

DIGITS = "9" * 5000


@pytest.mark.parametrize("text", ["²", "٣", DIGITS, "1.0", "", "-", "9223372036854775808"])
def test_what_no_column_holds_is_no_whole_number(text: str) -> None:
    assert whole(text) is None


def test_whole_numbers_up_to_the_width_of_the_column() -> None:
    assert whole("-7") == -7
    assert whole("9223372036854775807") == 2**63 - 1
    assert whole("2147483647", bits=32) == 2**31 - 1
    assert whole("2147483648", bits=32) is None


@pytest.mark.parametrize("figure", [DIGITS, "99999999999999999999999", "0x" + "f" * 400])
def test_a_counter_or_port_that_no_column_holds_costs_no_other_row(figure: str) -> None:
    text = (
        f"# Port counters: Lid 7 port {figure if figure.isdigit() else 1} (CapMask: 0x5A00)\n"
        f"SymbolErrorCounter:..............{figure}\nLinkDownedCounter:...............2\n"
        f"/sys/class/infiniband/mlx5_1/ports/1/counters/link_downed:{figure}\n"
        f"/sys/class/infiniband/mlx5_1/ports/1/counters/link_downed:²\n"
        f"/sys/class/infiniband/mlx5_1/ports/1/rate:... Gb/sec\n"
    ).encode()
    ports = port_counters.read(Input("ports.txt", text), Options()).ports
    assert ports is not None
    assert 2.0 in ports["value"].to_list()


@pytest.mark.parametrize("unit", ["a , ", "a [b] , ", "a,", " ,", "[a] "])
def test_a_header_of_many_cells_is_told_at_once(unit: str) -> None:
    assert smi_columns.header("timestamp, " + unit * 4000 + "!") is None


def test_a_reader_that_stumbles_refuses_its_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("step,loss\n" + "".join(f"{k},2.{k}\n" for k in range(30)))
    (tmp_path / "b.jsonl").write_text("".join(json.dumps({"step": k, "loss": 2.0}) + "\n" for k in range(30)))

    def stumble(given: Input, options: Options) -> None:
        raise OverflowError("\x1b[31mtoo large")

    monkeypatch.setattr(jsonl, "read", stumble)
    records = load([tmp_path])
    assert records.steps.height == 30
    assert "is damaged" in records.sources[1].notes[0]
    assert "\x1b" not in records.sources[1].notes[0]


def test_a_quotation_mark_without_an_end_costs_one_cell(tmp_path: Path) -> None:
    rows = [f"{k},{3 - k / 1000},fine" for k in range(400)]
    rows[7] = '7,2.993,"open'
    rows[200] = '200,2.8,"a note\nover two lines"'
    (tmp_path / "run.csv").write_text("step,loss,note\n" + "\n".join(rows) + "\n")
    records = load([tmp_path])
    assert records.steps["step"].n_unique() >= 399


def test_a_header_longer_than_the_head_is_read_whole(tmp_path: Path) -> None:
    names = [f"grad_norm/layers.{i}.attention.weight" for i in range(3000)]
    lines = [",".join(["step", "loss", *names])]
    lines += [",".join([str(k), "2.5", *["1.0"] * len(names)]) for k in range(3)]
    (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")
    records = load([tmp_path])
    assert records.steps["step"].to_list() == [0, 1, 2]
    assert len(records.layer_columns) == 3000
    assert records.rejects.height == 0


@pytest.mark.parametrize("first", [2**62, 2**63 - 100, 2**64])
def test_steps_that_no_column_holds_leave_the_rows(tmp_path: Path, first: int) -> None:
    rows = [{"step": first + k, "loss": 3.0 if k < 50 else float("nan")} for k in range(100)]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = diagnose(load([tmp_path]))
    assert any("no step is a finite number" in note for note in report.sources[0].notes)
    assert any(incident.onset_step == 50 for incident in report.incidents)


@pytest.mark.parametrize("clock", ["1e300", "NaN", "-1e200", "9" * 40])
def test_a_clock_that_no_calendar_holds_tells_no_time(tmp_path: Path, clock: str) -> None:
    rows = [f"{clock}, 0, {60 + k % 5}, 300, 1500, 0x0000000000000008" for k in range(200)]
    header = "timestamp, index, temperature.gpu, power.draw [W], clocks.sm [MHz], clocks_throttle_reasons.active"
    (tmp_path / "smi.csv").write_text("\n".join([header, *rows]) + "\n")
    report = diagnose(load([tmp_path]))
    assert report.incidents
    assert all(incident.onset_time is None for incident in report.incidents)


UNITS = ("1", "[", ":", "/", "_", ".", "..", "(", ":: ", "|", "\r", "=", " ", "\t", "a , ", "a=1 ", "a=b ")


@pytest.mark.parametrize("start", ["", "step: 1 loss: 2 ", "timestamp, index, "])
def test_lines_of_one_sign_are_refused_or_read_at_once(tmp_path: Path, start: str) -> None:
    # A pattern that can cut such a line in many ways needs minutes for it.
    for unit in UNITS:
        content = (start + unit * (30_000 // len(unit)) + "!\n").encode()
        content += b"".join(b"step: %d loss: 2.5\n" % k for k in range(20))
        for ingester in (known.module() for known in (*FORMATS, *GUESSES)):
            began = process_time()
            ingester.recognise(Input("x.log", content[:65536], content=content))
            assert process_time() - began < 5, (ingester.FORMAT, unit)


@pytest.mark.parametrize("look", [claim, family, parse, split_rank])
def test_a_name_of_a_hundred_thousand_signs_is_none(look: Callable[[str], object]) -> None:
    for unit in (".", "_", "/", "rank1/", "[", "1"):
        name = "loss" + unit * (100_000 // len(unit)) + "!"
        assert look(name) in (None, (None, name))
