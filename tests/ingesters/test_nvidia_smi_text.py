from __future__ import annotations

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import nvidia_smi_text
from gdiag.ingesters.reading import Input, Options, Reading


def read(text: str) -> Reading:
    data = text.encode()
    given = Input("q.txt", data[:65536], None, data)
    assert nvidia_smi_text.recognise(given) > 0
    return nvidia_smi_text.read(given, Options())


DUMP = """
==============NVSMI LOG==============

Timestamp                                 : Fri Jun 30 17:20:02 2023
Attached GPUs                             : 2
GPU 00000000:18:00.0
    Product Name                          : NVIDIA H800
    GPU UUID                              : GPU-aaaa
    MIG Mode
        Current                           : Disabled
    Clocks {generation} Reasons
        Idle                              : Not Active
        SW Power Cap                      : Active
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Active
        SW Thermal Slowdown               : Not Active
    ECC Errors
        Volatile
            DRAM Correctable              : 3
            DRAM Uncorrectable            : 1
        Aggregate
            DRAM Uncorrectable            : 9
    Remapped Rows
        Uncorrectable Error               : 2
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Temperature
        GPU Current Temp                  : 88 C
        GPU Slowdown Temp                 : 89 C
        GPU Max Operating Temp            : 87 C
        Memory Current Temp               : N/A
    Power Readings
        Power Draw                        : 612.71 W
        Enforced Power Limit              : 650.00 W
        Default Power Limit               : 700.00 W
    Clocks
        SM                                : 1345 MHz
    Max Clocks
        SM                                : 1980 MHz
GPU 00000000:2A:00.0
    Product Name                          : NVIDIA H800
    Temperature
        GPU Current Temp                  : 61 C
"""


@pytest.mark.parametrize("generation", ["Throttle", "Event"])
def test_a_dump_gives_a_row_per_gpu(generation: str) -> None:
    reading = read(DUMP.format(generation=generation))
    assert reading.gpus is not None
    first, second = reading.gpus.iter_rows(named=True)
    assert (first["gpu"], first["bus_id"], first["temperature"], first["power"]) == (0, "0000:18:00", 88, 612.71)
    assert first["reasons"] == 0x4 | 0x40
    assert (first["ecc_corrected"], first["ecc_uncorrected"]) == (3, 1)
    assert (first["remap_pending"], first["remap_failure"], first["remap_uncorrectable"]) == (True, False, 2)
    assert (first["clock_sm"], first["clock_sm_max"], first["power_limit"]) == (1345, 1980, 650)
    assert (second["gpu"], second["temperature"], second["reasons"]) == (1, 61, None)


def test_limits_of_the_file_are_kept_as_facts() -> None:
    facts = read(DUMP.format(generation="Event")).facts
    assert facts is not None
    assert ("NVIDIA H800", "slowdown_temperature", "89") in facts.rows()


TABLE = """Tue Oct 29 19:01:23 2024
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA L40S                    On  |   00000000:4A:00.0 Off |                    0 |
| N/A   53C    P0            305W /  350W |   11948MiB /  46068MiB |     93%      Default |
|   1  NVIDIA GeForce RTX 2080 ...  WDDM  |   00000000:4B:00.0  On |                  N/A |
| 37%   40C    P8             38W /  250W |     702MiB /   8192MiB |      0%      Default |
"""


def test_the_table_in_a_loop_is_a_series() -> None:
    frame = read(TABLE + TABLE.replace("19:01:23", "19:02:23")).gpus
    assert frame is not None
    assert frame.height == 4
    assert frame.select("gpu", "temperature", "power", "utilization").row(0) == (0, 53, 305, 93)
    assert frame.select("gpu", "model", "fan").row(1) == (1, "NVIDIA GeForce RTX 2080", 37)
    assert frame["time"][2] - frame["time"][0] == 60


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(InputError, match="holds no GPU"):
        read(TABLE.splitlines()[2])


def test_links_below_a_table_or_dump_are_read_too() -> None:
    matrix = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-31\nGPU1\tNV18\t X \t0-31\n"
    links = "GPU 0: NVIDIA H800 (UUID: GPU-aaaa)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n"
    for text in (TABLE, DUMP.format(generation="Event")):
        reading = read(text + "\n" + matrix + "\n" + links)
        assert reading.gpus is not None
        assert reading.facts is not None
        assert ("topology", "GPU0 GPU1", "NV18") in reading.facts.select("scope", "key", "value").rows()
        assert reading.ports is not None
        assert reading.ports.filter(reading.ports["value"] == 0)["port"].to_list() == [1]
        assert "1 of 2 NVLinks active at 26.562 GB/s" in reading.source.notes
