from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import kernel_log, load
from gdiag.ingesters.reading import Input, Options, Reading


def read(text: str, tz: str | None = None) -> Reading:
    data = text.encode()
    return kernel_log.read(Input("dmesg.log", data[:65536], None, data), Options(tz=tz))


XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid=1234, name=python3, GPU has fallen off the bus."


@pytest.mark.parametrize(
    ("prefix", "time", "zoned"),
    [
        ("[ 4410.332316] ", None, True),
        ("[ 130.456250] [ T1946] ", None, True),
        ("6,3973,227996636,-;", None, True),
        ("[Sun Feb 23 16:24:18 2025] ", 1740327858.0, False),
        ("kern  :warn  : 2025-01-21T04:41:44,283302+00:00 ", 1737434504.283302, True),
        ("2025-01-21T04:41:44.283302+01:00 node7 kernel: ", 1737430904.283302, True),
        ("kernel: ", None, True),
        ("", None, True),
    ],
)
def test_every_clock_in_front_of_an_xid_is_understood(prefix: str, time: float | None, zoned: bool) -> None:
    events = read(prefix + XID + "\n").events
    assert events is not None
    row = events.row(0, named=True)
    assert (row["kind"], row["value"], row["bus_id"]) == ("xid", 79.0, "0000:9b:00")
    assert row["time"] == (pytest.approx(time) if time is not None else None)
    if time is not None:
        assert row["zone_known"] is zoned


def test_a_zone_moves_a_local_clock() -> None:
    events = read(f"[Sun Feb 23 16:24:18 2025] {XID}\n", tz="-05:00").events
    assert events is not None
    assert events["time"][0] == 1740327858.0 + 5 * 3600


@pytest.mark.parametrize(
    ("line", "kind", "value", "bus"),
    [
        ("NVRM: Xid (0000:03:00): 14, Channel 1", "xid", 14, "0000:03:00"),
        (
            "NVRM: Xid (PCI:0003:01:00 GPU-I:05 GPU-CI:00): 94, pid='<unknown>', name=<unknown>, Contained",
            "xid",
            94,
            "0003:01:00",
        ),
        ("nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32", "sxid", 12028, "0000:05:00"),
        ("XidCriticalError: Xid=48 on Device=GPU-455e672a; marking device as unhealthy.", "xid", 48, None),
        ("NVRM: RmInitAdapter failed! GPU 0000:b3:00.0", "gpu_lost", 79, "0000:b3:00"),
    ],
)
def test_forms_of_the_machines_word(line: str, kind: str, value: int, bus: str | None) -> None:
    events = read(line + "\n").events
    assert events is not None
    assert events.select("kind", "value", "bus_id").row(0) == (kind, value, bus)


def test_a_message_over_three_lines_is_one_event() -> None:
    text = (
        "[ 1843.30] NVRM: The NVIDIA GPU 0000:b3:00.0\n           NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
        "           NVRM: fallen off the bus and is not responding to commands.\n"
    )
    events = read(text).events
    assert events is not None
    assert events.select("line", "kind", "bus_id").rows() == [(1, "gpu_lost", "0000:b3:00")]


def test_a_watchdog_line_gives_rank_and_sequence_number() -> None:
    text = (
        "x = f(y) ^^^[rank3]:[E1003 18:37:01.832146912 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=64, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600017 milliseconds\n"
    )
    events = read(text).events
    assert events is not None
    assert events.select("kind", "rank", "value").row(0) == ("nccl_timeout", 3, 64.0)


def test_nccl_warnings_keep_host_and_gpu() -> None:
    events = read("gpu004:220:2206 [3] socket.cc:49 NCCL WARN Connection closed by remote peer\n").events
    assert events is not None
    assert events.select("kind", "host", "gpu").row(0) == ("nccl_warning", "gpu004", 3)


def test_suppressed_repeats_are_said() -> None:
    notes = read(f"[ 1.0] {XID}\n[ 2.0] printk: 35 callbacks suppressed\n").source.notes
    assert any("lower bounds" in n for n in notes)


def test_a_quiet_kernel_log_is_read_and_a_quiet_nccl_log_is_refused() -> None:
    assert read("6,1,2,-;IPv6: eth0: link becomes ready\n").events is None
    with pytest.raises(InputError, match="reports no error"):
        read("n1:1:1 [0] NCCL INFO Bootstrap : Using eth0\n")


def test_training_consoles_are_left_to_their_own_readers() -> None:
    assert kernel_log.recognise(Input("x", b"step 1 loss: 2.3\nNVRM: Xid (PCI:0000:9b:00): 79\n")) == 0
    assert kernel_log.recognise(Input("x", f"[ 1.0] {XID}".encode())) > 0.5


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=120))
def test_no_text_breaks_it(noise: str) -> None:
    events = read(f"{XID}\n{noise}\n").events
    assert events is not None


def test_a_clock_without_a_year_takes_that_of_the_steps_beside_it(tmp_path: Path) -> None:
    steps = "".join(
        f'{{"step": {k}, "time": {1_767_225_000 + 60 * k}, "loss": {3 - k / 100}}}\n' for k in range(60)
    )  # over the end of 2025
    (tmp_path / "run.jsonl").write_text(steps)
    (tmp_path / "kern.log").write_text(f"Jan  1 00:10:00 node7 kernel: {XID}\nDec 31 23:55:00 node7 kernel: {XID}\n")
    events = load([tmp_path]).events
    assert sorted(events["time"]) == [1_767_225_300.0, 1_767_226_200.0]


def test_numbers_that_no_rank_has_lose_no_other_line() -> None:
    watchdog = (
        "[rank99999999999999999999]:[E810 03:04:11.0 ProcessGroupNCCL.cpp:683] [Rank 99999999999999999999] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=78, OpType=BROADCAST, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for 600096 "
        "milliseconds before timing out."
    )
    reading = read(f"[ 10.5] {XID}\n{watchdog}\n")
    assert reading.events is not None
    assert reading.events["kind"].to_list() == ["xid", "nccl_timeout"]
    assert reading.events["rank"].to_list() == [None, None]
