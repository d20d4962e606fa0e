"""Inspector logs and flight-recorder dumps end as the same rows."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import collective_timings
from gdiag.ingesters.reading import Input, Options, Reading


def inspected(number: int = 7, **changed: object) -> str:
    perf = {"coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": 1048576, "coll_exec_time_us": 400,
            "coll_algobw_gbs": 2.6, "coll_busbw_gbs": 4.6} | changed  # fmt: skip
    return json.dumps({
        "header": {"id": "0xabc", "rank": 3, "n_ranks": 8, "nnodes": 2},
        "metadata": {"inspector_output_format_version": "v4.0", "dump_timestamp_us": 1748030377748202, "hostname": "node-2", "pid": 1},
        "coll_perf": perf,
    })  # fmt: skip


def entry(**changed: object) -> dict[str, object]:
    return {
        "record_id": 0, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 5, "p2p_seq_id": 0,
        "profiling_name": "nccl:all_reduce", "time_created_ns": 1724779239936775119, "duration_ms": 3.5,
        "input_sizes": [[3, 4]], "input_dtypes": ["Float"], "state": "completed", "is_p2p": False,
        "time_discovered_completed_ns": 1724779239975811724,
    } | changed  # fmt: skip


def read(text: str | bytes, path: str = "log.jsonl") -> Reading:
    data = text if isinstance(text, bytes) else text.encode()
    given_ = Input(path, data[:65536], content=data)
    assert collective_timings.recognise(given_) > 0.9
    return collective_timings.read(given_, Options())


def test_an_inspectors_line() -> None:
    reading = read(f"{inspected()}\n{inspected(8)}\n")
    assert reading.operations is not None
    assert reading.operations.row(0, named=True) == {
        "line": 1, "time": 1748030377.748202, "host": "node-2", "rank": 3, "group": "0xabc", "sequence": 7,
        "collective": "AllReduce", "size": 1048576, "seconds": 0.0004,
    }  # fmt: skip


def test_a_flight_recorders_dump_takes_its_rank_from_the_name() -> None:
    dump = {"version": "2.5", "pg_config": {}, "entries": [entry(), entry(duration_ms=None), entry(is_p2p=True)]}
    reading = read(json.dumps(dump), "nccl_trace_rank_12.json")
    assert reading.operations is not None
    row = reading.operations.row(0, named=True)
    assert (row["rank"], row["sequence"], row["collective"], row["size"], row["seconds"]) == (
        12,
        5,
        "all_reduce",
        48,
        0.0035,
    )
    assert reading.source.notes == ("1 operations hold no duration: TORCH_NCCL_ENABLE_TIMING=1 records it",)


def test_a_pickled_dump_is_refused_and_not_opened() -> None:
    with pytest.raises(InputError, match="unpickles nothing"):
        read(pickle.dumps({"entries": [entry()]}, protocol=2))


def test_a_dump_without_durations_says_how_to_get_them() -> None:
    with pytest.raises(InputError, match="TORCH_NCCL_ENABLE_TIMING"):
        read(json.dumps({"entries": [entry(duration_ms=None)]}))


@pytest.mark.parametrize("bad", ["{}", "[1]", inspected(coll_exec_time_us="x"), '{"coll_perf": 3}', "[" * 50_000])
def test_lines_without_a_timing_are_rejects(bad: str) -> None:
    reading = read(f"{inspected()}\n{bad}\n")
    assert reading.source.rows == 1
    assert reading.source.rejected == (0 if bad == "{}" else 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 700))
def test_truncation_keeps_complete_lines(cut: int) -> None:
    text = f"{inspected(1)}\n{inspected(2)}\n{inspected(3)}\n"[: 400 + cut]
    data = text.encode()
    reading = collective_timings.read(Input("x", data, content=data), Options())
    assert reading.source.rows >= text.count("\n")
