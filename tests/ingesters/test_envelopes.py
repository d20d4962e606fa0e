"""Log lines inside JSON give the events of the lines themselves, with their collector's clock and host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import _read, envelope_lines, envelopes
from gdiag.ingesters.files import open_file
from gdiag.ingesters.reading import Input, Options, Reading

XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
SXID = "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error"
LOST = "NVRM: GPU at PCI:0000:9b:00: GPU-1: the GPU has fallen off the bus"
WATCHDOG = (
    "[rank1]:[E810 03:04:11.061727749 ProcessGroupNCCL.cpp:683] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=78, "
    "OpType=BROADCAST, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for 600096 milliseconds before timing out."
)
AT = 1732364609.95
ISO = "2024-11-23T12:23:29.95Z"


def read(text: str) -> Reading:
    data = text.encode()
    return _read(Input("log.json", data[:65536], None, data), Options())


def event(reading: Reading) -> dict[str, object]:
    assert reading.events is not None
    return reading.events.row(0, named=True)


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


FORMS = {
    "journal": lambda m: lines(
        {"__REALTIME_TIMESTAMP": "1732364600000000", "_HOSTNAME": "node7", "MESSAGE": "Started session 3"},
        {"__REALTIME_TIMESTAMP": str(int(AT * 1e6)), "_HOSTNAME": "node7", "_TRANSPORT": "kernel", "MESSAGE": m},
    ),
    "journal as bytes": lambda m: lines({"__REALTIME_TIMESTAMP": str(int(AT * 1e6)), "_HOSTNAME": "node7", "MESSAGE": list(m.encode())}),
    "fluent-bit": lambda m: lines({"log": m + "\n", "time": ISO, "stream": "stderr", "kubernetes": {"host": "node7", "pod_name": "a-0"}}),
    "node name": lambda m: lines({"message": m, "@timestamp": ISO, "kubernetes": {"node_name": "node7"}}),
    "beats": lambda m: lines({"@timestamp": ISO, "message": m, "host": {"name": "node7"}}),
    "loki lines": lambda m: lines({"timestamp": ISO, "labels": {"node": "node7"}, "line": m}),
    "loki answer": lambda m: json.dumps(
        {"status": "success", "data": {"result": [{"stream": {"hostname": "node7"}, "values": [[str(int(AT * 1e9)), m]]}]}}, indent=1
    ),
    "cloudwatch": lambda m: json.dumps({"events": [{"timestamp": int(AT * 1000), "message": m, "logStreamName": "node7"}]}, indent=2),
    "cloudwatch insights": lambda m: json.dumps(
        {"results": [[{"field": "@timestamp", "value": "2024-11-23 12:23:29.950"}, {"field": "@message", "value": m}, {"field": "host", "value": "node7"}]]}
    ),
    "stackdriver": lambda m: json.dumps([{"textPayload": m, "timestamp": ISO, "resource": {"labels": {"node_name": "node7"}}}]),
    "elasticsearch": lambda m: json.dumps({"hits": {"hits": [{"_source": {"@timestamp": ISO, "message": m, "hostname": "node7"}}]}}),
    "splunk": lambda m: lines({"preview": False, "result": {"_raw": m, "_time": ISO, "host": "node7"}}),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("message", "kind"), [(XID, "xid"), (SXID, "sxid"), (LOST, "gpu_lost"), (WATCHDOG, "nccl_timeout")]
)
def test_every_form_keeps_kind_clock_and_host(form: str, message: str, kind: str) -> None:
    found = event(read(FORMS[form](message)))
    assert (found["kind"], found["host"]) == (kind, "node7")
    assert found["time"] == pytest.approx(AT, abs=0.06)
    assert found["zone_known"] is not False


def test_docker_without_a_host_has_its_clock_and_line() -> None:
    found = event(
        read(lines({"log": "hello\n", "stream": "stdout", "time": ISO}, {"log": XID, "stream": "stderr", "time": ISO}))
    )
    assert (found["line"], found["bus_id"], found["time"]) == (2, "0000:9b:00", AT)


def test_a_console_of_steps_inside_json_is_read_as_one() -> None:
    rows = [{"log": f"step: {i} loss: {3 - i / 10} lr: 0.001\n", "stream": "stdout", "time": ISO} for i in range(8)]
    reading = read(lines(*rows))
    assert reading.steps is not None
    assert reading.steps["loss"].to_list() == pytest.approx([3 - i / 10 for i in range(8)])
    assert envelopes.NOTE in reading.source.notes


def test_machine_lines_among_the_rows_of_a_step_log() -> None:
    rows: list[object] = [{"step": i, "loss": 3.0 - i / 100} for i in range(20)]
    rows.insert(9, {"timestamp": ISO, "host": "node7", "message": XID})
    reading = read(lines(*rows) + f"Nov 23 12:24:00 node7 kernel: {XID}\n" + "what is this\n")
    assert reading.steps is not None
    assert reading.steps.height == 20
    assert reading.events is not None
    assert reading.events.filter(pl.col("kind") == "xid")["line"].to_list() == [10, 22]
    assert reading.rejects is not None
    assert reading.rejects["line"].to_list() == [23]


def test_a_step_log_with_messages_is_no_wrapped_log() -> None:
    reading = read(lines(*({"ts": 1732364600 + i, "msg": "train", "loss": 2.5, "step": i} for i in range(6))))
    assert reading.source.format == "jsonl"


@pytest.mark.parametrize("extra", [[], [WATCHDOG]])
def test_a_step_log_may_begin_with_messages(extra: list[str]) -> None:
    said = [{"ts": 1732364600 + i, "level": "info", "msg": "loading"} for i in range(45)]
    said += [{"ts": 1732364650, "level": "warning", "msg": text} for text in extra]
    steps = [{"ts": 1732364700 + i, "level": "info", "msg": "train", "step": i, "loss": 3.0} for i in range(199)]
    reading = read(lines(*said, *steps))
    assert reading.steps is not None
    assert reading.steps["loss"].count() == 199
    assert (0 if reading.events is None else reading.events.height) == len(extra)


def test_what_is_no_object_is_looked_at_as_it_stands() -> None:
    whole = {"__REALTIME_TIMESTAMP": str(int(AT * 1e6)), "_HOSTNAME": "node7", "_TRANSPORT": "kernel", "MESSAGE": XID}
    reading = read(lines(*[whole] * 4) + f"Nov 23 12:24:00 node8 kernel: {XID}\n" + json.dumps(whole)[:-1])
    assert reading.events is not None
    assert reading.events["line"].to_list() == [1, 2, 3, 4, 5, 6]
    assert reading.events["host"].to_list()[:5] == [*["node7"] * 4, "node8"]


def test_one_record_and_a_cut_one_are_a_wrapped_log() -> None:
    whole = json.dumps(
        {"__REALTIME_TIMESTAMP": str(int(AT * 1e6)), "_HOSTNAME": "node7", "_TRANSPORT": "kernel", "MESSAGE": XID}
    )
    found = event(read(f"\0{whole}\n{whole[:60]}"))
    assert (found["kind"], found["host"]) == ("xid", "node7")


def test_a_message_of_bytes_among_the_rows_of_a_step_log() -> None:
    rows: list[object] = [{"step": i, "loss": 3.0} for i in range(20)]
    rows.insert(9, {"__REALTIME_TIMESTAMP": str(int(AT * 1e6)), "_HOSTNAME": "node7", "MESSAGE": list(XID.encode())})
    found = event(read(lines(*rows)))
    assert (found["kind"], found["line"], found["host"]) == ("xid", 10, "node7")


def test_fields_of_other_types_do_not_hide_the_message() -> None:
    record = {"@timestamp": ISO, "log": {"offset": 7}, "message": XID, "host": {"name": "node7"}}
    assert event(read(lines(record, record)))["host"] == "node7"


def test_objects_inside_an_envelope_are_read_as_objects() -> None:
    rows = [
        {"log": json.dumps({"step": i, "loss": 3 - i / 10}) + "\n", "stream": "stdout", "time": ISO} for i in range(8)
    ]
    reading = read(lines(*rows))
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == list(range(8))


def test_an_answer_that_comes_newest_first_is_turned_round() -> None:
    said = [
        *(f"step: {i} loss: {3 - i / 10} lr: 0.001" for i in range(8)),
        "Traceback (most recent call last):",
        "RuntimeError: no",
    ]
    pairs = [[str(int(AT * 1e9) + 1_000_000_000 * i), text] for i, text in enumerate(said)]
    reading = read(json.dumps({"data": {"result": [{"stream": {"pod": "a"}, "values": pairs[::-1]}]}}, indent=1))
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == list(range(8))
    assert reading.exit == "abnormal"


def test_a_needle_in_many_lines_hides_no_other() -> None:
    rows: list[object] = [{"step": i, "loss": 3.0, "note": "NCCL INFO NET/IB : Using mlx5_0"} for i in range(20_001)]
    reading = read(lines(*rows) + "Nov 23 12:24:00 node7 kernel: Out of memory: Killed process 4711 (python)\n")
    assert reading.events is not None
    assert "oom" in reading.events["kind"].to_list()


def test_unknown_lines_inside_json_are_refused_by_that_name() -> None:
    with pytest.raises(InputError, match="wraps log lines in JSON"):
        read(lines(*({"log": "hello\n", "time": ISO, "stream": "stdout"} for _ in range(5))))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 400), st.sampled_from(["journal", "loki answer", "cloudwatch", "fluent-bit"]))
def test_a_cut_export_raises_nothing_but_refusals(cut: int, form: str) -> None:
    text = FORMS[form](XID)
    try:
        reading = read(text[: max(1, len(text) - cut)])
    except InputError:
        return
    if reading.events is not None:
        assert set(reading.events["kind"]) <= {"xid"}


def test_a_host_that_nobody_named_is_none() -> None:
    assert event(read(lines(*({"log": m, "stream": "stderr", "time": ISO} for m in ("hello", XID)))))["host"] is None


def test_messages_that_could_be_columns_are_looked_at_too() -> None:
    rows: list[object] = [{"step": i, "loss": 3.0 - i / 100, "time": 1732364600.0 + i} for i in range(20)]
    rows.insert(9, {"ts": ISO, "level": "error", "node": "node7", "message": XID})
    reading = read(lines(*rows))
    assert reading.events is not None
    assert reading.events.select("line", "kind", "host").rows() == [(10, "xid", "node7")]


@pytest.mark.parametrize("size", [70_000, 1_500_000])
@pytest.mark.parametrize("form", ["journal", "fluent-bit", "beats"])
def test_a_first_record_longer_than_the_head(form: str, size: int) -> None:
    found = event(read(FORMS[form]("core dump follows: " + "0x7f " * (size // 5)) + FORMS[form](XID)))
    assert found["kind"] == "xid"
    assert found["host"] == "node7" or form == "fluent-bit"


@pytest.mark.parametrize("form", ["journal", "fluent-bit", "splunk"])
def test_lines_of_any_number_are_unwrapped_from_a_file(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(envelopes, "_LARGEST", 1000)
    path = tmp_path / "long.json"
    path.write_text("".join(FORMS[form](f"Started session {i}") for i in range(400)) + FORMS[form](XID))
    found = event(_read(open_file(path), Options()))
    assert (found["kind"], found["host"]) == ("xid", "node7")


def test_a_long_document_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envelopes, "_LARGEST", 100)
    data = FORMS["loki answer"](XID).encode()
    assert envelopes.unwrapped(Input("log.json", data, None, data)) is None


def test_an_object_and_then_nothing_ends() -> None:
    data = b'{"MESSAGE":' + b"\0" * 300_000
    assert envelopes.unwrapped(Input("log.json", data[:65536], None, data)) is None


@given(st.binary(max_size=60).map(lambda b: b.replace(b"a", b"\n").replace(b"b", b"\n")), st.integers(1, 9))
def test_lines_are_those_of_split_whatever_the_block(data: bytes, block: int) -> None:
    found = list(envelope_lines.each(lambda a, b: data[a:b], len(data), block))
    assert found == (data.rstrip(b"\n").split(b"\n") if data.rstrip(b"\n") else [])


@given(st.lists(st.sampled_from(["a", "b", None])))
def test_hosts_are_those_given(names: list[str | None]) -> None:
    hosts = envelope_lines.Hosts()
    for line, name in enumerate(names, 1):
        hosts.add(line, name)
    assert [hosts.get(line) for line in range(1, len(names) + 1)] == names
    assert hosts.get(0) is None


def test_a_step_log_without_messages_is_not_searched_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"step": i, "loss": 3 - i / 100, "x": i} for i in range(50)]
    searched: list[bytes] = []
    events = envelopes.events

    def search(data: bytes, *more: Any) -> tuple[pl.DataFrame | None, list[str]]:
        searched.append(data)
        return events(data, *more)

    monkeypatch.setattr(envelopes, "events", search)
    read(lines(*rows))
    assert not searched
    for message in ({"msg": XID}, {"jsonPayload": {"message": XID}}, {"line": XID}):
        read(lines(*rows, {"timestamp": ISO, **message}))
    assert len(searched) == 3
    bare = f"Nov 23 12:24:00 node7 kernel: {XID}"
    found = event(read(lines(*rows) + f"what is this\n{bare}\n" + lines(*rows)))
    assert searched[3:] == [f"what is this\n{bare}".encode()]
    assert (found["kind"], found["line"]) == ("xid", 52)
