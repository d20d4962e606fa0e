from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError, UsageError
from gdiag.ingesters import load, nvidia_smi, telemetry
from gdiag.ingesters.reading import Input, Options, Reading


def read(text: str, path: str = "smi.csv", tz: str | None = None) -> Reading:
    data = text.encode()
    return nvidia_smi.read(Input(path, data[:65536], None, data), Options(tz=tz))


def sure(text: str) -> float:
    return nvidia_smi.recognise(Input("x.csv", text.encode()))


NEW = (
    "timestamp, hostname, index, name, uuid, pci.bus_id, temperature.gpu, temperature.memory, power.draw [W], "
    "power.limit [W], clocks.current.sm [MHz], clocks.max.sm [MHz], utilization.gpu [%], memory.used [MiB], "
    "ecc.errors.uncorrected.volatile.total, clocks_event_reasons.active\n"
    "2026/03/01 10:00:00.250, rack2-n07, 5, NVIDIA H200, GPU-aa, 00000000:1B:00.0, 71, 80, 640.50 W, 700.00 W, "
    "1905 MHz, 1980 MHz, 98 %, 1024 MiB, 2, 0x0000000000000020\n"
)
OLD = (
    "timestamp, index, temperature.gpu, utilization.gpu [%], clocks_throttle_reasons.sw_power_cap, "
    "clocks_throttle_reasons.hw_thermal_slowdown, clocks_throttle_reasons.gpu_idle\n"
    "2026/03/01 10:00:00.250, 0, 88, 99, Not Active, Active, Not Active\n"
    "2026/03/01 10:00:00.252, 1, [N/A], 99, Active, [N/A], Not Active\n"
)


def test_units_masks_and_identity_come_out_canonical() -> None:
    reading = read(NEW)
    assert reading.gpus is not None
    row = reading.gpus.row(0, named=True)
    assert row["host"] == "rack2-n07"
    assert row["gpu"] == 5
    assert row["bus_id"] == "0000:1b:00"
    assert row["power"] == 640.5
    assert row["memory_used"] == 1024 * 2**20
    assert row["reasons"] == 0x20
    assert row["ecc_uncorrected"] == 2
    assert row["time"] == pytest.approx(1772359200.25)
    assert row["zone_known"] is False
    assert reading.source.columns["clock_sm"] == "clocks.current.sm [MHz]"
    assert sure(NEW) > 0.9


def test_single_reason_columns_of_the_old_names_make_a_mask() -> None:
    frame = read(OLD).gpus
    assert frame is not None
    assert frame["reasons"].to_list() == [0x40, 0x4]
    assert frame["temperature"].to_list() == [88.0, None]


@pytest.mark.parametrize(
    ("tz", "shift"), [("+02:00", 7200), ("-0530", -19800), ("UTC", 0), ("America/New_York", -18000)]
)
def test_a_zone_moves_local_time(tz: str, shift: int) -> None:
    frame = read(NEW, tz=tz).gpus
    assert frame is not None
    assert frame["time"][0] == pytest.approx(1772359200.25 - shift)
    assert frame["zone_known"][0] is True


def test_an_unknown_zone_is_the_users_to_correct() -> None:
    with pytest.raises(UsageError, match="unknown time zone"):
        read(NEW, tz="Mars/Olympus")


def test_repeated_headers_noise_and_a_torn_line_do_not_stop_it() -> None:
    header, row = OLD.splitlines()[0], OLD.splitlines()[1]
    text = f"nohup: ignoring input\n{header}\n{row}\n{header}\n{row}\nUnable to determine the device handle for GPU0000:1B:00.0: GPU is lost.\n{row[:30]}"
    reading = read(text)
    assert reading.source.rows == 2
    assert reading.source.rejected == 1
    assert reading.rejects is not None
    assert reading.rejects["reason"].to_list() == ["cut off in mid-row"]
    assert reading.rejects["line"].to_list() == [7]
    assert reading.events is not None
    assert reading.events.select("kind", "bus_id").row(0) == ("gpu_lost", "0000:1b:00")


def test_a_cell_that_is_no_number_is_a_reject_and_null() -> None:
    reading = read(
        "timestamp, index, temperature.gpu\n2026/03/01 10:00:00.250, 0, hot\n2026/03/01 10:00:01.250, 0, 61\n"
    )
    assert reading.gpus is not None
    assert reading.gpus["temperature"].to_list() == [None, 61.0]
    assert reading.rejects is not None
    assert reading.rejects.row(0) == (2, "temperature.gpu is no number", "hot")


def test_rows_without_header_are_told_by_their_units() -> None:
    text = "0, NVIDIA A10, GPU-aa, 45, 30 %, 25.02 W, 150.00 W, 6 MiB, 23028 MiB\n" * 3
    assert sure(text) > 0.5
    reading = read(text)
    assert reading.gpus is not None
    row = reading.gpus.row(0, named=True)
    assert (row["temperature"], row["utilization"], row["power"], row["power_limit"]) == (45, 30, 25.02, 150)
    assert "no timestamp" in reading.source.notes[0]


def test_a_single_column_is_read_and_its_limits_are_said() -> None:
    reading = read("temperature.gpu\n65\n66\n67\n")
    assert reading.gpus is not None
    assert reading.gpus["temperature"].to_list() == [65, 66, 67]
    assert len(reading.source.notes) == 2


def test_loggers_with_epochs_and_parentheses_are_read() -> None:
    text = "timestamp,gpu,gpu_util(%),memory_used(MB),temperature(C)\n1740565077.475,3,97,4851.00,40.0\n"
    frame = read(text).gpus
    assert frame is not None
    assert frame.select("time", "gpu", "utilization", "memory_used").row(0) == (1740565077.475, 3, 97.0, 4851e6)


@pytest.mark.parametrize(
    ("path", "host"),
    [("logs/smi_node-003.csv", "node-003"), ("gpu12.nvidia-smi.csv.gz", None), ("smi.csv", None), ("r12c3-smi.csv", "r12c3")],
)  # fmt: skip
def test_a_host_is_taken_from_the_files_name_only_when_it_is_one(path: str, host: str | None) -> None:
    frame = read(OLD, path).gpus
    assert frame is not None
    assert (frame["host"][0] if "host" in frame.columns else None) == host


def test_retired_pages_become_events_and_none_is_none() -> None:
    head = "timestamp, gpu_name, gpu_bus_id, gpu_serial, gpu_uuid, retired_pages.address, retired_pages.timestamp, retired_pages.cause\n"
    none = read(
        head + "2026/03/01 10:00:00.250, NVIDIA A10, 00000000:1B:00.0, 0, GPU-a, [N/A], [N/A], Single Bit ECC\n"
    )
    assert none.source.rows == 1
    assert none.events is None
    some = read(
        head
        + "2026/03/01 10:00:00.250, T4, 00000000:1B:00.0, 0, GPU-a, 0x12, 2025/12/24 01:02:03.000, Double Bit ECC\n"
    )
    assert some.events is not None
    assert some.events["text"][0] == "retired page: Double Bit ECC"


@pytest.mark.parametrize("text", ["step,loss\n1,2.0\n", "a,b,c\n1,2,3\n", "hello\n", "", "time,name\n1,2\n"])
def test_other_tables_are_not_taken(text: str) -> None:
    assert sure(text) == 0


def test_a_header_without_rows_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="holds no nvidia-smi rows"):
        read("timestamp, index, temperature.gpu\n")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n"), max_size=60), max_size=8))
def test_no_line_breaks_the_reader(noise: list[str]) -> None:
    header, row = OLD.splitlines()[:2]
    reading = read("\n".join([header, row, *noise]))
    assert reading.gpus is not None
    assert reading.gpus.height >= 1


def rows_without_names(*, shuffled: bool = False) -> str:
    """Two GPUs, noheader and nounits: idle, then under load."""
    lines = []
    for tick in range(40):
        busy = tick >= 8
        for gpu in range(2):
            cells = [
                f"2026/03/01 10:{tick:02d}:00.{gpu:03d}", str(gpu), "NVIDIA A100-SXM4-80GB", str(61 + tick % 3 if busy else 33),
                str(66 + tick % 4 if busy else 38), f"{380.25 + tick if busy else 62.5:.2f}", "400.00",
                str(1395 - 15 * (tick % 4) if busy else 210), "1410", str(96 + tick % 4 if busy else 0),
                str(61022 + tick if busy else 640), "81920", "0",
            ]  # fmt: skip
            lines.append(", ".join(cells[:1] + cells[1:][::-1] if shuffled else cells))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("shuffled", [False, True])
def test_rows_without_header_and_units_are_told_by_their_values(shuffled: bool) -> None:
    text = rows_without_names(shuffled=shuffled)
    assert sure(text) > 0.5
    frame = read(text).gpus
    assert frame is not None
    row = frame.row(-1, named=True)
    known = ("gpu", "power", "power_limit", "clock_sm", "clock_sm_max", "utilization", "memory_total")
    assert tuple(row[c] for c in known) == (1, 419.25, 400, 1350, 1410, 99, 81920 * 2.0**20)
    assert row["model"] == "NVIDIA A100-SXM4-80GB"
    assert (row["temperature"] == 61) is not shuffled  # two temperatures side by side: the first is taken for the GPU's


def test_rows_that_could_be_anything_ask_for_the_list_of_columns() -> None:
    text = "".join(f"GPU-aa-{k % 2}, {40 + k % 2}, {50 + k % 3}\n" for k in range(40))
    assert sure(text) > 0.5
    with pytest.raises(InputError, match="given to --query-gpu"):
        read(text)
    named = "uuid, temperature.gpu, utilization.gpu\n" + text
    frame = read(named).gpus
    assert frame is not None
    assert frame["temperature"].max() == 41


def test_memory_without_a_unit_is_in_mebibytes() -> None:
    frame = read("index, memory.used, memory.total\n0, 512, 81920\n").gpus
    assert frame is not None
    assert frame["memory_used"].to_list() == [512 * 2.0**20]


def test_the_highest_clock_is_not_taken_for_the_memorys() -> None:
    text = "".join(f"{k % 2}, GPU-aa{k % 2}, {1395 + 15 * (k % 2)} MHz, 1410 MHz, 99 %\n" for k in range(6))
    frame = read(text).gpus
    assert frame is not None
    assert frame["clock_sm_max"].unique().to_list() == [1410]


def local_clock(*stamps: str) -> str:
    return "timestamp, index, temperature.gpu\n" + "".join(f"{s}, 0, 60\n" for s in stamps)


@pytest.mark.parametrize(
    ("stamps", "gaps"),
    [
        (("2026/03/29 01:59:40", "2026/03/29 01:59:50", "2026/03/29 03:00:00", "2026/03/29 03:00:10"), [10, 10, 10]),
        (("2025/10/26 02:59:40", "2025/10/26 02:59:50", "2025/10/26 02:00:00", "2025/10/26 02:00:10"), [10, 10, 10]),
        (("2026/03/26 01:59:40", "2026/03/26 01:59:50", "2026/03/26 03:00:00", "2026/03/26 03:00:10"), [10, 3610, 10]),
        (("2026/03/29 01:59:40", "2026/03/29 01:59:50", "2026/03/29 02:40:00", "2026/03/29 02:40:10"), [10, 2410, 10]),
    ],
)
def test_a_clock_that_is_changed_at_night_runs_on(stamps: tuple[str, ...], gaps: list[float]) -> None:
    frame = read(local_clock(*stamps)).gpus
    assert frame is not None
    assert frame["time"].diff().drop_nulls().to_list() == gaps


def test_the_hour_that_comes_twice_in_a_named_zone() -> None:
    stamps = ("2025/10/26 02:59:50", "2025/10/26 02:00:00", "2025/10/26 02:59:50", "2025/10/26 03:00:00")
    frame = read(local_clock(*stamps), tz="Europe/Berlin").gpus
    assert frame is not None
    assert frame["time"].diff().drop_nulls().to_list() == [10, 3590, 10]


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("smi_node-003.csv", "node-003"), ("smi_gpu-a12.csv", "gpu-a12"), ("gpu_node7.csv", "node7"), ("hgx07_gpu.csv", "hgx07"),
        ("nvidia-smi_gpu-node-12_20260302.csv", "gpu-node-12"), ("smi_HGX07_2026-03-02_10-11-12.log", "HGX07"),
        ("node-3.cluster.internal.csv", "node-3.cluster.internal"), ("gpu0.csv", None), ("smi-20260302.csv", None),
        ("run1.csv", None), ("telemetry.csv", None),
    ],
)  # fmt: skip
def test_hosts_in_names_of_files(name: str, host: str | None) -> None:
    assert telemetry.host_in_name(f"/logs/{name}") == host


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows, lambda rows: [*rows[:-1], rows[-1][:20]], lambda rows: [*rows[:5], rows[0], *rows[5:]],
        lambda rows: [*rows[:5], "", *rows[5:]], lambda rows: [*rows[:5], rows[5] + ", 7", *rows[6:]],
        lambda rows: [*rows[:5], "lost, row", *rows[5:]], lambda rows: [r + "\r" for r in rows],
        lambda rows: [*rows[:5], rows[5].replace("A10", "A\xff10"), *rows[6:]],
    ],
    ids=["plain", "torn", "header again", "blank", "long row", "noise", "crlf", "not ASCII"],
)  # fmt: skip
@pytest.mark.parametrize("end", ["", "\n"])
def test_the_quick_way_and_the_long_way_read_alike(change: Callable[[list[str]], list[str]], end: str) -> None:
    rows = ["timestamp, index, name, temperature.gpu, power.draw [W]"]
    rows += [f"2026/03/01 10:00:{k // 2:02d}.250, {k % 2}, NVIDIA A10, {60 + k % 5}, {100 + k}.25 W" for k in range(40)]
    data = ("\n".join(change(rows)) + end).encode()
    given = Input("smi.csv", data, None, data)
    quick, slow = nvidia_smi._plain(data), nvidia_smi._parts(given)
    if quick is not None:
        (fields, cells), (others, lines) = quick[0][0], slow[0][0]
        assert fields == others
        assert cells.equals(lines.select(cells.columns))
        assert len(quick[2]) == len(slow[2]) + slow[1].height  # a stump without a comma is no row to the long way
    reading = nvidia_smi.read(given, Options())
    assert reading.gpus is not None
    assert reading.gpus.height >= 39


def smi(temperature: int, *, hour: int = 10) -> str:
    rows = "".join(f"2026/03/01 {hour}:{k:02d}:00, {k % 2}, {temperature}\n" for k in range(40))
    return f"timestamp, index, temperature.gpu\n{rows}"


def test_files_of_the_same_gpus_and_hours_are_hosts(tmp_path: Path) -> None:
    for name, temperature in (("smi_alpha.csv", 60), ("smi_beta.csv", 70)):
        (tmp_path / name).write_text(smi(temperature))
    records = load([tmp_path])
    hottest = records.gpus.group_by("host").agg(pl.col("temperature").max()).sort("host").rows()
    assert hottest == [("alpha", 60), ("beta", 70)]
    assert any("host beta taken" in note for note in records.sources[1].notes)


def test_a_log_that_goes_on_in_another_file_is_one_host(tmp_path: Path) -> None:
    (tmp_path / "smi_alpha.csv").write_text(smi(60))
    (tmp_path / "smi_beta.csv").write_text(smi(60, hour=11))
    assert load([tmp_path]).gpus["host"].null_count() == 80


def test_cells_that_the_driver_could_not_read_are_counted_in_a_note() -> None:
    lost = OLD.replace("99, Active", "[Unknown Error], [Unknown Error]")
    assert (
        "2 cells say Unknown Error: the driver could not read the GPU; taken as not logged" in read(lost).source.notes
    )
    assert not any("could not read" in note for note in read(OLD).source.notes)
