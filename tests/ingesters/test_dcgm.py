from __future__ import annotations

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import dcgm
from gdiag.ingesters.reading import Input, Options, Reading


def read(text: str) -> Reading:
    data = text.encode()
    given = Input("metrics.prom", data[:65536], None, data)
    assert dcgm.recognise(given) > 0.9
    return dcgm.read(given, Options())


def scrape(temperature: int) -> str:
    label = '{gpu="0",UUID="GPU-a",modelName="NVIDIA H100 80GB HBM3",Hostname="node1"}'
    return (
        f"# TYPE DCGM_FI_DEV_GPU_TEMP gauge\nDCGM_FI_DEV_GPU_TEMP{label} {temperature}\n"
        f"DCGM_FI_DEV_FB_USED{label} 1024\nDCGM_FI_DEV_CLOCK_THROTTLE_REASONS{label} 32\n"
        f"DCGM_FI_DEV_MEMORY_TEMP{label} 9223372036854775794\nDCGM_FI_DEV_XID_ERRORS{label} 31\n"
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",GPU_I_ID="2"} 60\ngo_gc_duration_seconds{quantile="0.5"} 0.001\n'
    )


def test_scrapes_one_after_another_are_rows() -> None:
    reading = read(scrape(41) + scrape(42))
    assert reading.gpus is not None
    row = reading.gpus.row(0, named=True)
    assert (row["host"], row["gpu"], row["temperature"], row["reasons"]) == ("node1", 0, 41, 32)
    assert row["memory_used"] == 2**30
    assert "memory_temperature" not in row
    assert reading.gpus["temperature"].to_list() == [41, 42]


def test_the_last_xid_is_one_event() -> None:
    events = read(scrape(41) + scrape(42)).events
    assert events is not None
    assert events.select("kind", "value", "gpu").rows() == [("xid", 31.0, 0)]


def test_a_line_without_a_value_is_a_reject() -> None:
    assert read(scrape(41) + 'DCGM_FI_DEV_GPU_TEMP{gpu="0"} \n').source.rejected == 1


def test_a_list_of_field_names_is_refused() -> None:
    with pytest.raises(InputError, match="names DCGM fields"):
        read("DCGM_FI_DEV_GPU_TEMP\nDCGM_FI_DEV_POWER_USAGE\n")


def test_nvlink_counters_of_scrapes_are_readings_of_ports() -> None:
    def scrape(replays: int) -> str:
        names = (
            "DCGM_FI_DEV_GPU_TEMP",
            "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
            "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L3",
        )
        return "".join(f'{n}{{gpu="2",Hostname="node7"}} {v}\n' for n, v in zip(names, (60, replays, 5), strict=True))

    ports = read(scrape(0) + scrape(4)).ports
    assert ports is not None
    rows = ports.select("host", "device", "port", "counter", "value", "snapshot").rows()
    assert rows[0] == ("node7", "GPU2", None, "nvlink_replay_errors", 0, 0)
    assert rows[1][2:4] == (3, "nvlink_crc_flit_errors")
    assert rows[2][4:] == (4, 1)
