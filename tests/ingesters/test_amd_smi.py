from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import amd_smi, recognise
from gdiag.ingesters.reading import Input, Options, Reading


def read(text: str) -> Reading:
    data = text.encode()
    given = Input("amd", data[:65536], None, data)
    assert amd_smi.recognise(given) > 0.9
    return amd_smi.read(given, Options())


CARD = {
    "Temperature (Sensor edge) (C)": "53.0", "Temperature (Sensor junction) (C)": "85.0", "sclk clock speed:": "(1300Mhz)",
    "Average Graphics Package Power (W)": "236.0", "GPU use (%)": "98", "PCI Bus": "0000:83:00.0", "Fan speed (%)": "N/A",
}  # fmt: skip


def test_json_judges_the_junction() -> None:
    frame = read(json.dumps({"card0": CARD, "card2": CARD, "system": {"Driver version": "6"}})).gpus
    assert frame is not None
    assert frame["gpu"].to_list() == [0, 2]
    assert frame.select("temperature", "clock_sm", "power", "utilization", "bus_id").row(0) == (
        85,
        1300,
        236,
        98,
        "0000:83:00",
    )


def test_edge_stands_in_where_the_junction_is_not_logged() -> None:
    frame = read(json.dumps({"card0": {"Temperature (Sensor edge) (C)": "53.0"}})).gpus
    assert frame is not None
    assert frame["temperature"][0] == 53


def test_csv_of_both_tools() -> None:
    rocm = read(
        "device,Temperature (Sensor edge) (C),Temperature (Sensor junction) (C),GPU use (%)\ncard1,64.0,79.0,99%\n"
    ).gpus
    assert rocm is not None
    assert rocm.select("gpu", "temperature", "utilization").row(0) == (1, 79, 99)
    watch = read(
        "timestamp,gpu,gfx_activity,socket_power,gfx_0_clk,edge,hotspot,mem\r\n1789515524,0,95,1180,2100,N/A,78,60\r\n"
    ).gpus
    assert watch is not None
    assert watch.select("time", "power", "clock_sm", "temperature", "memory_temperature").row(0) == (
        1789515524.0,
        1180,
        2100,
        78,
        60,
    )


def test_damage_is_said() -> None:
    with pytest.raises(InputError, match="without a value"):
        read('{"card0": {"GPU use (%)": ')
    assert read("device,GPU use (%),Temperature (Sensor edge) (C)\ncard1,9%,30\ncard1,9\n").source.rejected == 1


def test_documents_one_a_line_are_no_jsonl() -> None:
    text = "".join(json.dumps({"card0": CARD, "card1": CARD}) + "\n" for _ in range(5))
    data = text.encode()
    assert recognise(Input("rocm.json", data, None, data)) is amd_smi
    frame = read(text).gpus
    assert frame is not None
    assert frame.height == 10


def test_of_a_damaged_document_what_is_complete_is_kept() -> None:
    whole = json.dumps({"card0": CARD, "card1": CARD}, indent=4)
    cut = read(whole[: whole.rindex('"GPU use')])
    assert cut.gpus is not None
    assert cut.gpus["gpu"].to_list() == [0, 1]
    assert cut.gpus["power"].to_list() == [236, 236]
    assert cut.gpus["utilization"].to_list() == [98, None]
    assert cut.source.rejected == 1
    bad = read(whole.replace('"236.0"', "", 1)).gpus
    assert bad is not None
    assert bad["power"].to_list() == [None, 236]
    assert bad["temperature"].to_list() == [85, 85]


def test_documents_after_a_damaged_one_are_read() -> None:
    one = json.dumps({"card0": CARD})
    reading = read(f"{one}\n{one[:120]}\n{one}\n")
    assert reading.gpus is not None
    assert reading.gpus["line"].to_list() == [1, 2, 3]
    assert reading.source.rejected == 1


def test_documents_of_another_card_than_the_first_are_read_past_damage() -> None:
    one = json.dumps({"card1": CARD})
    reading = read("\n".join([one, one, one[:120], *[one] * 7]) + "\n")
    assert reading.gpus is not None
    assert reading.gpus["line"].to_list() == list(range(1, 11))
    assert reading.gpus["temperature"].null_count() == 0
    assert reading.source.rejected == 1


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 300))
def test_any_cut_keeps_the_cards_before_it(cut: int) -> None:
    whole = json.dumps({"card0": CARD, "card1": CARD})
    reading = read(whole[: len(whole) - min(cut, 250)])
    assert reading.gpus is not None
    assert reading.gpus["temperature"][0] == 85


METRIC = {
    "gpu": 3, "usage": {"gfx_activity": {"value": 97, "unit": "%"}}, "power": {"socket_power": {"value": 742, "unit": "W"}},
    "clock": {"gfx_0": {"clk": {"value": 2100, "unit": "MHz"}, "max_clk": {"value": 2100, "unit": "MHz"}}},
    "temperature": {"edge": "N/A", "hotspot": {"value": 78, "unit": "C"}, "mem": {"value": 60, "unit": "C"}},
    "mem_usage": {"total_vram": {"value": 196608, "unit": "MB"}, "used_vram": {"value": 4096, "unit": "MB"}},
}  # fmt: skip


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"gpu_data": rows}])
def test_the_tree_of_amd_smi(wrap: Callable[[object], object]) -> None:
    frame = read(json.dumps(wrap([METRIC, METRIC | {"gpu": 4}]), indent=2)).gpus
    assert frame is not None
    names = ("gpu", "temperature", "memory_temperature", "power", "clock_sm", "utilization", "memory_used")
    assert frame.select(names).row(0) == (3, 78, 60, 742, 2100, 97, 2.0**32)
    assert frame["gpu"].to_list() == [3, 4]


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"gpu_data": rows}])
def test_a_cut_tree_keeps_its_complete_gpus_and_values(wrap: Callable[[object], object]) -> None:
    text = json.dumps(wrap([METRIC, METRIC | {"gpu": 4}]), indent=2)
    reading = read(text[: text.rindex('"mem_usage"')])
    assert reading.gpus is not None
    assert reading.gpus.select("gpu", "power", "temperature", "memory_used").rows() == [
        (3, 742, 78, 2.0**32),
        (4, 742, 78, None),
    ]
    assert reading.rejects is not None
    assert reading.rejects["reason"].to_list() == ["damaged JSON: 7 complete values of it are kept"]


def test_a_damaged_gpu_costs_no_other() -> None:
    text = json.dumps({"gpu_data": [METRIC | {"gpu": i} for i in range(4)]}, indent=2)
    at = text.index('"hotspot"', text.index('"gpu": 1'))
    frame = read(text[:at] + "?" + text[at:] + text).gpus
    assert frame is not None
    assert frame["gpu"].to_list() == [0, 1, 2, 3] * 2
    assert frame["temperature"].null_count() <= 1
    assert frame["power"].null_count() == 0
