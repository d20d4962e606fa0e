"""Whatever a launcher, other processes or a kill do to the text, every complete row is read and nothing is raised."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import load, nccl_pieces, nccl_tests
from gdiag.ingesters.reading import Input, Options
from tests.ingesters.nccl_formats import Bench, Version, document, text

BENCH = Bench(sizes=(1 << 20, 1 << 24, 1 << 28))
VERSIONS: tuple[Version, ...] = ("1.0", "2.0", "2.13", "2.17", "2.19", "rccl")
INFO = (
    "node-0:4001:4101 [0] NCCL INFO AllReduce: opCount 3 count 2097152 datatype 7 op 0 root 0 comm 0x1 [nranks=8]\n",
    "[2] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n",
    "node-1:77:99 [1] NCCL WARN NET/IB : Got async event : port error\n",
)
ODD_PREFIXES = (
    "", "0: ", "[1,0]<stdout>:", "[3] ", "2026-03-01T10:00:00Z ", "pod/nccl-0 ", "host-1: ", "# ", "> ",
    "Mar  1 10:20:30 node-7 job[1234]: ", "2026-03-01 10:20:30,123 | ", "10:20:30 node7 | ", "[nccl-worker-0] ", "\t",
)  # fmt: skip


def figures(content: str) -> list[tuple[object, ...]]:
    data = content.encode()
    try:
        reading = nccl_tests.read(Input("bench.txt", data[:65536], content=data), Options())
    except InputError:
        return []
    assert reading.collectives is not None
    return reading.collectives.select("size", "in_place", "time", "algbw", "busbw").rows()


@settings(max_examples=10, deadline=None)
@given(
    st.sampled_from(VERSIONS), st.sampled_from(ODD_PREFIXES), st.sampled_from(["all_reduce", "broadcast", "alltoall"])
)
def test_any_prefix_keeps_every_row(version: Version, prefix: str, collective: str) -> None:
    bench = Bench(collective if version != "1.0" else "all_reduce", sizes=BENCH.sizes)
    assert figures(text(bench, version, prefix=prefix)) == figures(text(bench, version))


def test_rows_with_a_root_and_rows_with_an_operation_behind_an_odd_prefix() -> None:
    data = "".join(
        text(Bench(name, sizes=BENCH.sizes), "2.0", prefix="10:20:30 node7 | ") for name in ("broadcast", "all_reduce")
    )
    reading = nccl_tests.read(Input("x", b"", content=data.encode()), Options())
    assert reading.collectives is not None
    told = reading.collectives.select(pl.col("redop").cast(pl.String), "root").unique(maintain_order=True)
    assert told.rows() == [(None, 0), ("sum", None)]


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(VERSIONS), st.data())
def test_log_lines_between_and_inside_rows(version: Version, data: st.DataObject) -> None:
    cells = st.lists(st.sampled_from(INFO), min_size=0, max_size=3)
    whole = text(BENCH, version, breaks="\0")
    parts = whole.split("\0")
    content = parts[0]
    for part in parts[1:]:
        content += "".join(data.draw(cells)) + part
    assert figures(content) == figures(text(BENCH, version))


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(VERSIONS), st.integers(0, 7), st.randoms(use_true_random=False))
def test_rank_tokens_inside_rows(version: Version, rank: int, random: object) -> None:
    lines = text(BENCH, version).split("\n")
    marked = [line.replace("  ", f"  [{rank}] ", 3) if "float" in line else line for line in lines]
    assert figures("\n".join(marked)) == figures(text(BENCH, version))


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(VERSIONS), st.data())
def test_two_copies_interleaved_line_by_line(version: Version, data: st.DataObject) -> None:
    one = text(BENCH, version).splitlines(keepends=True)
    two = text(Bench("all_gather" if version != "1.0" else "all_reduce", sizes=(1 << 20, 1 << 22)), version)
    rest = two.splitlines(keepends=True)
    mixed: list[str] = []
    while one or rest:
        source = one if one and (not rest or data.draw(st.booleans())) else rest
        mixed.append(source.pop(0))
    expected = sorted(map(repr, figures(text(BENCH, version)) + figures(two)))
    assert sorted(map(repr, figures("".join(mixed)))) == expected


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(VERSIONS), st.floats(0, 1), st.sampled_from(ODD_PREFIXES))
def test_truncation_keeps_the_rows_before_the_cut(version: Version, share: float, prefix: str) -> None:
    whole = text(BENCH, version, prefix=prefix)
    kept = whole[: int(share * len(whole))]
    complete = "".join(line for line in kept.splitlines(keepends=True) if line.endswith("\n"))
    expected = figures(complete)
    assert figures(kept)[: len(expected)] == expected
    rows = sum(" float " in line for line in complete.split("\n"))
    assert len({row[0] for row in expected}) == rows


@settings(max_examples=10, deadline=None)
@given(st.text(alphabet=st.sampled_from(" \n\r\t0123456789.-_[]:#floatsumNCCLINFOTest/A")), st.sampled_from(VERSIONS))
def test_garbage_in_the_middle_raises_nothing(noise: str, version: Version) -> None:
    whole = text(BENCH, version)
    half = whole.index("float") + 30
    figures(whole[:half] + noise + whole[half:])


@pytest.mark.parametrize("separator", ["_", ","])
def test_thousands_separators(separator: str) -> None:
    size, count = f"{1 << 28:,}".replace(",", separator), f"{1 << 26:,}".replace(",", separator)
    row = f"  {size}  {count}     float     sum      -1  1{separator}234.50  200.10  350.20      0  1300.1  201.10  351.20      0\n"
    header = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    assert figures(header + row) == [(1 << 28, False, 1234.5, 200.1, 350.2), (1 << 28, True, 1300.1, 201.1, 351.2)]


@pytest.mark.parametrize(
    "failure",
    [
        "node-1dgx: Test timeout (60s) common.cu:523\n", "node-1: Test NCCL failure common.cu:1005 'unhandled cuda error / last'\n",
        "node-3: Test CUDA failure common.cu:301 'out of memory'\n .. node-3 pid 77: Test failure common.cu:401\n",
    ],
)  # fmt: skip
def test_failure_in_the_middle_of_a_row(failure: str) -> None:
    whole = text(BENCH)
    cut = whole.rindex("float") + 20
    reading = nccl_tests.read(Input("x", b"", content=(whole[:cut] + failure).encode()), Options())
    assert reading.exit == "abnormal"
    assert reading.collectives is not None
    assert reading.collectives["size"].unique().sort().to_list() == [1 << 20, 1 << 24]
    assert reading.source.rejected == 1


@settings(max_examples=10, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(VERSIONS))
def test_bytes_of_no_text_between_tables_cost_no_row(noise: bytes, version: Version) -> None:
    whole = text(BENCH, version)
    data = whole.encode() + b"\n\xff" + noise.replace(b"\x1b", b"") + b"\xfe\n" + whole.encode()
    reading = nccl_tests.read(Input("bench.txt", data[:65536], content=data), Options())
    assert reading.collectives is not None
    assert reading.collectives.height >= 2 * len(figures(whole))


@pytest.mark.parametrize("root", ["N/A", "-inf", "1e300", "0.5"])
def test_a_root_that_is_no_number_stops_no_file(root: str) -> None:
    whole = text(Bench(sizes=BENCH.sizes), "2.13")
    torn = whole.replace("    -1  ", f"   {root}  ", 1)
    assert torn != whole
    assert set(figures(whole)[2:]) <= set(figures(torn))


def test_a_rank_line_with_a_row_behind_it_keeps_the_row() -> None:
    whole = text(Bench(sizes=BENCH.sizes), "2.13")
    at = whole.index(f" {BENCH.sizes[0]} ")
    glued = whole[:at] + "#  Rank  0 Group  0 Pid   4000 on     node-0 device  0 [0000:10:00] NVIDIA H100 " + whole[at:]
    assert figures(glued) == figures(whole)


def test_memory_and_blocking_lines_are_no_rows() -> None:
    memory = (
        "# Blocking Enabled: wait for completion and barrier after each collective\n"
        "# GPU memory usage     : Initialization 2.29 GB | User-Allocated 3.00 GB | Collective 12.0 MB | Total  5.30 GB\n"
    )
    assert figures(memory + text(BENCH) + memory) == figures(text(BENCH))


def test_first_version_has_a_footer_without_a_hash() -> None:
    data = text(BENCH, "1.0").encode()
    reading = nccl_tests.read(Input("x", data, content=data), Options())
    assert reading.exit == "clean"
    assert reading.facts is not None
    assert reading.facts.filter(pl.col("key") == "average_busbw").height == 1


def test_pieces_of_a_long_file_are_read_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    content = text(BENCH) * 3 + text(Bench("all_gather", sizes=BENCH.sizes), per_iteration=True) + text(BENCH, "1.0")
    data = content.encode()
    whole = nccl_tests.read(Input("x", b"", content=data), Options())
    for size in (700, 1500, 4096):
        monkeypatch.setattr(nccl_pieces, "CHUNK", size)
        pieces = nccl_tests.read(Input("x", b"", content=data), Options())
        assert pieces.collectives is not None
        assert whole.collectives is not None
        assert pieces.collectives.equals(whole.collectives)
        assert pieces.facts is not None
        assert whole.facts is not None
        assert pieces.facts.equals(whole.facts)


def test_documents_are_recognised_before_other_json(tmp_path: Path) -> None:
    whole = document(BENCH)
    for name, content in (("whole.json", whole), ("cut.json", whole[: int(0.7 * len(whole))])):
        (tmp_path / name).write_text(content)
        records = load([tmp_path / name])
        assert records.sources[0].format == "nccl-tests"
        assert records.collectives.height >= 2
