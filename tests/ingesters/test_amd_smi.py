from __future__ import annotations

import json

import pytest

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
    with pytest.raises(InputError, match="damaged"):
        read('{"card0": {"GPU use (%)": ')
    assert read("device,GPU use (%),Temperature (Sensor edge) (C)\ncard1,9%,30\ncard1,9\n").source.rejected == 1


def test_documents_one_a_line_are_no_jsonl() -> None:
    text = "".join(json.dumps({"card0": CARD, "card1": CARD}) + "\n" for _ in range(5))
    data = text.encode()
    assert recognise(Input("rocm.json", data, None, data)) is amd_smi
    frame = read(text).gpus
    assert frame is not None
    assert frame.height == 10
