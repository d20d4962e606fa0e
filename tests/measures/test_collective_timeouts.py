from __future__ import annotations

import polars as pl

from gdiag.measures.collective_timeouts import timeouts
from gdiag.schema import TABLES


def events(*rows: dict[str, object]) -> pl.DataFrame:
    types = TABLES["events"]
    return pl.DataFrame([{c: r.get(c) for c in types} for r in rows], schema=types)


def waited(rank: int, seq: int = 78, *, time: float = 10_000.0, numel: int = 80) -> dict[str, object]:
    text = f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType=BROADCAST, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000) ran for 600096 milliseconds before timing out."
    return {"kind": "nccl_timeout", "rank": rank, "time": time, "value": float(seq), "text": text}


def test_the_rank_that_does_not_time_out_kept_the_others_waiting() -> None:
    found = timeouts(events(*(waited(r) for r in range(8) if r != 5)), 8)
    assert found is not None
    assert (found.operation, found.missing, found.culprit) == ("BROADCAST 78", (5,), 5)
    assert found.start == 10_000.0 - 600.096


def test_the_rank_that_is_a_collective_behind_is_named() -> None:
    rows = [waited(r) for r in range(4)]
    rows += [
        {
            "kind": "nccl_timeout",
            "rank": r,
            "text": f"last enqueued work: 80, last completed work: {76 if r == 2 else 77}",
        }
        for r in range(4)
    ]
    found = timeouts(events(*rows), 4)
    assert found is not None
    assert found.culprit == 2


def test_what_the_machine_said_before_the_wait_is_kept() -> None:
    xid: dict[str, object] = {
        "kind": "xid",
        "time": 9_390.0,
        "host": "n7",
        "value": 48.0,
        "text": "Xid 48 double bit error",
    }
    later: dict[str, object] = {"kind": "xid", "time": 10_500.0, "value": 45.0, "text": "late"}
    found = timeouts(events(xid, later, *(waited(r) for r in range(3))), None)
    assert found is not None
    assert found.earlier == "n7: Xid 48 double bit error"


def test_roots_are_told_from_victims() -> None:
    closed: dict[str, object] = {
        "kind": "nccl_warning",
        "host": "a",
        "text": "NCCL WARN socketProgress: Connection closed by remote peer b",
    }
    broken: dict[str, object] = {
        "kind": "nccl_warning",
        "host": "b",
        "text": "NCCL WARN NET/IB : Got completion from peer with error 12, vendor err 129",
    }
    found = timeouts(events(closed, broken, waited(0), waited(1)), None)
    assert found is not None
    assert found.root is not None
    assert found.root.startswith("b: ")


def test_different_sizes_are_a_fault_of_the_program() -> None:
    found = timeouts(events(waited(0), waited(1, numel=81)), None)
    assert found is not None
    assert found.desynchronised


def test_no_timeouts_say_nothing() -> None:
    assert timeouts(events({"kind": "checkpoint", "text": "saved"}), 8) is None
    assert timeouts(events(), 8) is None
