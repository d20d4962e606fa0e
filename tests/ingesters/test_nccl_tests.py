"""Every version's table is read whole; damage costs only what it hit."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import load, nccl_tests
from gdiag.ingesters.reading import Input, Options, Reading
from tests.ingesters.nccl_formats import Bench, Version, document, text

SMALL = Bench(sizes=(1 << 20, 1 << 24, 1 << 28))


def read(content: str) -> Reading:
    data = content.encode()
    given_input = Input("bench.txt", data[:65536], content=data)
    assert nccl_tests.recognise(given_input) > 0.5
    return nccl_tests.read(given_input, Options())


def rows(reading: Reading) -> pl.DataFrame:
    assert reading.collectives is not None
    return reading.collectives


UNIFIED = product(
    ("2.0", "2.13", "2.17", "2.19", "rccl"), ("all_reduce", "all_gather", "broadcast", "reduce", "alltoall")
)


@pytest.mark.parametrize(("version", "collective"), [("1.0", "all_reduce"), *UNIFIED])
def test_reads_every_version_and_collective(version: Version, collective: str) -> None:
    bench = Bench(collective)
    table = rows(read(text(bench, version)))
    assert table.height == 2 * len(bench.sizes)
    largest = table.filter((pl.col("size") == bench.sizes[-1]) & ~pl.col("in_place"))
    time, _, busbw = bench.cells(bench.sizes[-1])
    assert largest["busbw"][0] == pytest.approx(busbw, abs=0.01)
    assert largest["time"][0] == pytest.approx(time, rel=0.01)


def test_devices_and_facts() -> None:
    reading = read(text(Bench(ranks=16, hosts=2), prefix="[1,0]<stdout>:"))
    assert reading.devices is not None
    assert reading.facts is not None
    assert reading.devices["host"].unique().sort().to_list() == ["node-0", "node-1"]
    assert reading.devices["gpu"].max() == 7
    said = dict(zip(reading.facts["key"], reading.facts["value"], strict=True))
    assert said["nccl_tests"] == "2.19.6"
    assert said["collective"] == "all_reduce"
    assert reading.exit == "clean"


@pytest.mark.parametrize(
    "prefix", ["", "0: ", "[1,0]<stdout>:", "[0] ", "2026-03-01T10:00:00Z ", "pod/nccl-0 ", "host-1: "]
)
def test_launcher_prefixes(prefix: str) -> None:
    assert rows(read(text(SMALL, prefix=prefix))).height == 6


def test_time_stamps_and_per_iteration_columns() -> None:
    table = rows(read(text(SMALL, stamps=True, per_iteration=True)))
    assert table.height == 6
    assert table["t_cv"].unique().to_list() == [1.5]
    assert table["t_max"][0] == pytest.approx(table["time"][0] * 1.05, rel=0.02)


def test_cycles_without_header() -> None:
    table = rows(read(text(SMALL, cycles=3)))
    assert table["cycle"].unique().sort().to_list() == [0, 1, 2]
    assert table["section"].unique().to_list() == [0]


def test_several_runs_are_sections() -> None:
    table = rows(read(text(SMALL) + text(Bench("all_gather", sizes=(1 << 20,)))))
    assert table.group_by("section").agg(pl.col("collective").first()).sort("section")["collective"].to_list() == [
        "all_reduce",
        "all_gather",
    ]


@pytest.mark.parametrize("version", ["2.19", "rccl"])
def test_in_place_only(version: Version) -> None:
    table = rows(read(text(SMALL, version, in_place_only=True)))
    assert table["in_place"].unique().to_list() == [True]
    assert table.height == 3


def test_not_validated_is_null_not_zero() -> None:
    assert rows(read(text(SMALL, validation=False)))["wrong"].null_count() == 6


def test_wrong_results_are_counted() -> None:
    assert rows(read(text(Bench(sizes=(1 << 20,), wrong=131072))))["wrong"].to_list() == [131072, 131072]


def test_row_split_by_log_lines() -> None:
    info = "node-0:1:2 [0] NCCL INFO AllReduce: opCount 0 count 2097152 datatype 7\n"
    split = (
        "# nThread 1 nGpus 2\n#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
        f"     8388608       2097152     float     sum      -1{info}{info}"
        f"    83.33  100.66  100.66      0{info}{info}    80.98  103.59  103.59      0\n"
    )
    table = rows(read(split))
    assert table["busbw"].to_list() == [100.66, 103.59]
    assert table["in_place"].to_list() == [False, True]


def test_failure_without_rows_is_abnormal() -> None:
    reading = read(
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 16\nhost3: Test NCCL failure common.cu:1125 'unhandled system error'\n"
    )
    assert reading.exit == "abnormal"
    assert reading.source.rows == 0
    assert "unhandled system error" in reading.source.notes[0]


def test_document_and_its_environment() -> None:
    reading = read(document(SMALL))
    assert rows(reading).height == 6
    assert "do-not-show" not in repr(reading)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 4000))
def test_cut_document_keeps_complete_results(cut: int) -> None:
    whole = document(SMALL)
    data = whole[: 700 + cut % max(1, len(whole) - 700)].encode()
    reading = nccl_tests.read(Input("bench.json", data, content=data), Options())
    complete = data.decode().count('"in_place": {') - (0 if data.decode().rstrip().endswith("}") else 1)
    assert rows(reading).height >= 2 * max(0, complete - 1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3000), st.sampled_from(["", "0: ", "[1,0]<stdout>:"]), st.sampled_from(["2.0", "2.13", "2.19"]))
def test_truncation_keeps_every_complete_row(cut: int, prefix: str, version: Version) -> None:
    whole = text(SMALL, version, prefix=prefix)
    kept = whole[: min(cut, len(whole))]
    data = kept.encode()
    complete = sum(line.count("float") for line in kept.split("\n")[:-1])
    try:
        table = rows(nccl_tests.read(Input("bench.txt", data, content=data), Options()))
    except InputError:
        assert complete == 0
    else:
        assert table.select("line").n_unique() >= complete


def test_prose_about_the_benchmark_is_refused() -> None:
    data = b"Run nccl-tests during off-hours:\n\nmpirun -np 16 ./all_reduce_perf -b 1M -e 1G -f 2 -g 1\n"
    with pytest.raises(InputError, match="no output"):
        nccl_tests.read(Input("page.txt", data, content=data), Options())


_NO_CHECK = """\
#       size         count      type   redop    root     time   algbw   busbw
#        (B)    (elements)                             (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    40.00   26.21   45.87
  1073741824     268435456     float     sum      -1  4521.10  237.50  415.62
# Avg bus bandwidth    : 230.7
"""


def test_tables_without_the_column_of_wrong_elements() -> None:
    data = _NO_CHECK.encode()
    table = rows(nccl_tests.read(Input("bench.txt", data, content=data), Options()))
    assert table["time"].to_list() == [40.0, 4521.1]
    assert table["busbw"].to_list() == [45.87, 415.62]
    assert table["wrong"].null_count() == 2
    assert table["root"].to_list() == [-1, -1]


@pytest.mark.parametrize("gap", ["", " ", "  "])
def test_mean_and_verdict_of_the_footer_are_facts(gap: str) -> None:
    data = _NO_CHECK.replace(": 230.7", f":{gap}230.7 OK").encode()
    facts = nccl_tests.read(Input("bench.txt", data, content=data), Options()).facts
    assert facts is not None
    footer = dict(facts.filter(facts["scope"] == "footer").select("key", "value").rows())
    assert footer == {"average_busbw": "230.7", "average_verdict": "OK"}


def test_colours_and_counts_in_powers_change_no_figure() -> None:
    plain = text(Bench(sizes=(1 << 20, 1 << 30)))
    shown = plain.replace(" 268435456 ", "   2.68e+8 ")
    data = "".join(f"\x1b[32m{line}\x1b[0m\n" for line in shown.splitlines()).encode()
    table = rows(nccl_tests.read(Input("bench.txt", data, content=data), Options()))
    known = rows(nccl_tests.read(Input("bench.txt", plain.encode(), content=plain.encode()), Options()))
    same = [name for name in known.columns if name != "count"]
    assert table.select(same).equals(known.select(same))


def test_a_row_that_lost_its_last_cell_takes_no_root_for_a_time() -> None:
    data = b"     1048576        262144     float     sum      -1    40.00   26.21   45.87      0    41.00   25.57   44.75 \n"
    table = rows(nccl_tests.read(Input("bench.txt", data, content=data), Options()))
    assert table["busbw"].to_list() == [45.87]
    assert table["wrong"].to_list() == [0]


@pytest.mark.parametrize("collective", ["all_reduce", "broadcast", "alltoall"])
def test_no_cut_makes_wrong_elements(collective: str) -> None:
    whole = text(Bench(collective, sizes=(1 << 10, 1 << 20, 1 << 30)))
    for cut in range(whole.rindex("1073741824") - 140, len(whole), 3):
        data = whole[:cut].encode()
        found = nccl_tests.read(Input("bench.txt", data, content=data), Options()).collectives
        if found is not None and found.height:
            assert found["wrong"].fill_null(0).max() == 0
            assert (found["time"] > 0).all()


@pytest.mark.parametrize("tag", ["", "[1,4]<stdout>:"])
def test_a_log_of_nothing_but_a_failure_names_its_host(tag: str, tmp_path: Path) -> None:
    lines = ["node-3:77:77 [4] NCCL INFO enqueue.cc:405 -> 3"] * 900 + [
        "node-3: Test NCCL failure all_reduce.cu:57 'internal error'", " .. node-3: Test failure common.cu:378",
    ]  # fmt: skip
    log = tmp_path / "failed.txt"
    log.write_text("".join(f"{tag}{line}\n" for line in lines))
    records = load([str(log)])
    assert [s.format for s in records.sources] == ["nccl-tests"]
    failures = records.facts.filter(pl.col("scope") == "failure")["value"].to_list()
    assert failures[0] == "node-3: Test NCCL failure all_reduce.cu:57 'internal error'"
