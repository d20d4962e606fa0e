"""Screens of links: every form ends as links and pairs; a list of GPUs alone is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import nvlink
from gdiag.ingesters.reading import Input, Options, Reading

MATRIX = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV12\tNV12\tPIX\t0-31\t0\t\tN/A\n"
    "GPU1\tNV12\t X \tSYS\tNODE\t0-31\t0\t\tN/A\n"
    "GPU2\tNV12\tSYS\t X \tSYS\t32-63\t1\t\tN/A\n"
    "NIC0\tPIX\tNODE\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n\nNIC Legend:\n\n  NIC0: mlx5_0\n"
)
STATUS = (
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n"
    "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n"
)
ERRORS = (
    "GPU 0: Tesla V100-SXM2-32GB (UUID: GPU-0)\n\t Link 0: Replay Errors: 0\n\t Link 0: Recovery Errors: 2\n"
    "\t Link 0: CRC Errors: 17\n\n\t Link 1: Replay Errors: 0\n"
)


def read(text: str) -> Reading:
    data = text.encode()
    given = Input("links.txt", data[:65536], None, data)
    assert nvlink.recognise(given) > 0
    return nvlink.read(given, Options())


def pairs(reading: Reading) -> dict[str, str]:
    if reading.facts is None:
        return {}
    rows = reading.facts.filter(reading.facts["scope"].str.starts_with("topology"))
    return dict(rows.select("key", "value").iter_rows())


def test_a_matrix_gives_every_pair_with_its_network_cards() -> None:
    found = pairs(read(MATRIX))
    assert (found["GPU0 GPU1"], found["GPU1 GPU2"], found["GPU2 GPU1"]) == ("NV12", "SYS", "SYS")
    assert (found["GPU1 NIC0"], found["NIC0 GPU0"]) == ("NODE", "PIX")
    assert read(MATRIX).source.notes == ("topology of 3 GPUs: NV12, SYS",)


def test_a_cell_with_nothing_in_it_moves_no_other() -> None:
    torn = MATRIX.replace("GPU1\tNV12\t X \tSYS", "GPU1\t\t X \tSYS")
    whole = pairs(read(MATRIX))
    assert pairs(read(torn)) == {pair: way for pair, way in whole.items() if pair != "GPU1 GPU0"}


def test_a_rate_that_no_link_has_is_no_rate() -> None:
    ports = read(STATUS.replace("26.562", "9" * 400, 1)).ports
    assert ports is not None
    assert ports.filter(ports["counter"] == "nvlink_rate")["value"].to_list() == [26.562, 26.562]


def test_a_matrix_without_its_head_is_read_in_order() -> None:
    found = pairs(read(MATRIX.partition("\n")[2]))
    assert found["GPU0 GPU2"] == "NV12"
    assert found["GPU2 GPU1"] == "SYS"


def test_a_matrix_of_one_gpu_is_read() -> None:
    reading = read("\t\x1b[4mGPU0\tCPU Affinity\tNUMA Affinity\x1b[0m\nGPU0\t X \t0-19\t0\n")
    assert reading.source.notes == ("topology of 1 GPU: no pair of GPUs",)


def test_states_and_rates_of_links() -> None:
    ports = read(STATUS).ports
    assert ports is not None
    rows = ports.filter(ports["device"] == "GPU0").select("port", "counter", "value").rows()
    assert rows == [(0, "nvlink_active", 1), (0, "nvlink_rate", 26.562), (1, "nvlink_active", 0)]
    assert read(STATUS).source.notes == ("3 of 4 NVLinks active at 26.562 GB/s",)


def test_error_counters_of_links_and_their_second_reading() -> None:
    ports = read(ERRORS + "Mon Nov 30 02:16:40 UTC 2026\n" + ERRORS.replace("CRC Errors: 17", "CRC Errors: 19")).ports
    assert ports is not None
    crc = ports.filter(ports["counter"] == "nvlink_crc_errors")
    assert crc.select("value", "snapshot").rows() == [(17, 0), (19, 1)]
    assert crc["time"][1] is not None


def test_hosts_in_front_of_the_lines_are_kept_apart() -> None:
    one = "".join(f"node{n}: {line}\n" for n in (1, 2) for line in STATUS.splitlines())
    ports = read(one).ports
    assert ports is not None
    assert ports["host"].unique(maintain_order=True).to_list() == ["node1", "node2"]
    assert pairs(read("".join(f"node1: {line}\n" for line in MATRIX.splitlines())))["GPU0 GPU1"] == "NV12"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("Nvlink queries are not supported for Devices in MIG mode", "MIG"),
        ("Device does not have or support Nvlink", "no NVLink"),
        ("NVML: Unable to retrieve Nvlink information as all links are inActive", "inactive"),
    ],
)
@pytest.mark.parametrize("between", ["\n", " "])
def test_what_is_said_instead_of_links(line: str, why: str, between: str) -> None:
    reading = read(f"GPU 0: NVIDIA H100 (UUID: GPU-0){between}{line}\n")
    assert why in reading.source.notes[0]


def test_a_list_of_gpus_alone_is_refused() -> None:
    with pytest.raises(InputError, match="nvidia-smi -L"):
        read("GPU 0: NVIDIA H200 (UUID: GPU-0000)\nGPU 1: NVIDIA H200 (UUID: GPU-0001)\n")


@settings(max_examples=40, deadline=None)
@given(st.integers(1, len(MATRIX + STATUS + ERRORS)))
def test_a_cut_copy_keeps_what_is_complete(length: int) -> None:
    text = (MATRIX + STATUS + ERRORS)[:length]
    try:
        found = pairs(read(text)) if nvlink.recognise(Input("x", text.encode())) else {}
    except InputError:
        return
    assert found.items() <= pairs(read(MATRIX)).items(), text[-40:]


def test_banners_above_the_outputs_are_their_hosts() -> None:
    later = ERRORS.replace("CRC Errors: 17", "CRC Errors: 5017")
    for between in ("", "\n", "Mon Nov 30 02:16:40 UTC 2026\n"):
        ports = read(f"=== node01 ===\n{between}{ERRORS}=== node02 ===\n{between}{later}").ports
        assert ports is not None
        crc = ports.filter(ports["counter"] == "nvlink_crc_errors")
        assert crc.select("host", "value", "snapshot").rows() == [("node01", 17, 0), ("node02", 5017, 0)]
    two = read(f"*** node01 ***\n{MATRIX}*** node02 ***\n{MATRIX}").facts
    assert two is not None
    assert two["scope"].unique(maintain_order=True).to_list() == ["topology node01", "topology node02"]


def test_a_gpu_under_two_banners_is_one_gpu() -> None:
    first = ERRORS.replace("GPU-0)", "GPU-5b0a1c2d-0011-2233-4455-66778899aabb)")
    ports = read(f"=== before ===\n{first}=== after ===\n{first}").ports
    assert ports is not None
    assert ports.filter(ports["counter"] == "nvlink_crc_errors")["snapshot"].to_list() == [0, 1]


@pytest.mark.parametrize(
    "names", [("rocep65s0f0", "ens9np0"), ("NIC0", "NIC1"), ("mlx5_bond_0", "GPUDirect"), ("hsn0", "xscale_1")]
)
def test_a_matrix_takes_its_columns_from_its_header(names: tuple[str, str]) -> None:
    first, last = names
    found = pairs(
        read(
            f"\tGPU0\t{first}\tGPU1\t{last}\tCPU Affinity\tNUMA Affinity\n"
            f"GPU0\t X \tPIX\tNV4\tSYS\t0-31\t0\n{first}\tPIX\t X \tNODE\tPHB\n"
            f"GPU1\tNV4\tNODE\t X \tPXB\t0-31\t0\n{last}\tSYS\tPHB\tPXB\t X \n"
        )
    )
    ways = {"GPU0": ("X", "PIX", "NV4", "SYS"), first: ("PIX", "X", "NODE", "PHB")}
    ways |= {"GPU1": ("NV4", "NODE", "X", "PXB"), last: ("SYS", "PHB", "PXB", "X")}
    columns = ("GPU0", first, "GPU1", last)
    wanted = {f"{a} {b}": way for a, row in ways.items() for b, way in zip(columns, row, strict=True) if way != "X"}
    assert found == wanted


@pytest.mark.parametrize(
    "line", ["\t Link {}: 26.562 GB/s", "\t Link {}: CRC Errors: 5", "GPU {}: NVIDIA H100 (UUID: GPU-9)"]
)
def test_numbers_that_no_link_or_gpu_has_are_passed_over(line: str) -> None:
    ports, plain = read(f"{STATUS}{line.format(9**25)}\n").ports, read(STATUS).ports
    assert ports is not None
    assert plain is not None
    assert ports.equals(plain)


def test_links_of_a_gpu_without_a_number_are_no_other_gpus() -> None:
    ports = read(f"{STATUS}GPU {9**25}: NVIDIA H100 (UUID: GPU-9)\n\t Link 7: 26.562 GB/s\n").ports
    assert ports is not None
    assert 7 not in ports["port"].to_list()


@pytest.mark.parametrize("clock", ["Date: Mon Nov 30 02:16:40 UTC 2026", "time: 2026-11-30 02:16:40"])
def test_the_label_of_a_clock_is_no_host(clock: str) -> None:
    ports = read(f"{ERRORS}{clock}\n{ERRORS}").ports
    assert ports is not None
    assert ports["host"].null_count() == ports.height
    assert ports.filter(ports["counter"] == "nvlink_crc_errors")["time"].to_list() == [None, 1796005000.0]


def test_clocks_and_blank_lines_behind_hosts_are_read() -> None:
    for clock in ("Mon Nov 30 02:16:40 UTC 2026", "2026-11-30 02:16:40"):
        text = "".join(f"gpu-{n}.x: {line}\n" for n in (1, 2) for line in f"{clock}\n{ERRORS}".splitlines())
        ports = read(text).ports
        assert ports is not None
        assert ports.select("host", "time").unique(maintain_order=True).rows() == [
            ("gpu-1.x", 1796005000.0),
            ("gpu-2.x", 1796005000.0),
        ]
