from __future__ import annotations

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import dmon
from gdiag.ingesters.reading import Input, Options, Reading


def read(text: str) -> Reading:
    data = text.encode()
    given = Input("dmon.txt", data[:65536], None, data)
    assert dmon.recognise(given) > 0.8
    return dmon.read(given, Options())


PLAIN = """# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk
# Idx      W      C      C      %      %    MHz    MHz
    0    438     55     61     98      8   2619   1980
    1     69     41      -      0      0   2619    345
"""


def test_rows_and_missing_cells() -> None:
    frame = read(PLAIN).gpus
    assert frame is not None
    assert frame.select("gpu", "power", "temperature", "memory_temperature", "utilization", "clock_sm").rows() == [
        (0, 438, 55, 61, 98, 1980), (1, 69, 41, None, 0, 345),
    ]  # fmt: skip


def test_dates_and_repeated_headers() -> None:
    text = (
        "#Date       Time        gpu    pwr\n#YYYYMMDD   HH:MM:SS    Idx      W\n 20260102   10:00:05      0    101\n"
    )
    frame = read(text + text.replace("10:00:05", "10:00:06")).gpus
    assert frame is not None
    assert frame["time"].to_list() == [1767348005.0, 1767348006.0]


def test_dcgmi_columns_in_any_order() -> None:
    text = "#Entity   GPUTL  POWER  TOTEC     TMPTR\nID                W      mJ        C\nGPU 3     97     59.2   2.07e+11  64\n"
    frame = read(text).gpus
    assert frame is not None
    assert frame.select("gpu", "utilization", "power", "temperature").row(0) == (3, 97, 59.2, 64)


def test_a_torn_last_line_is_a_reject() -> None:
    reading = read(PLAIN + "    0    43")
    assert reading.source.rejected == 1
    assert reading.rejects is not None
    assert reading.rejects["reason"][0] == "cut off in mid-row"


def test_a_header_alone_is_refused() -> None:
    with pytest.raises(InputError, match="no rows"):
        read("# gpu    pwr  gtemp\n")
