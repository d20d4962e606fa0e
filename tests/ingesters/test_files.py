"""Paths, folders, archives, encodings."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import time
import zlib
from pathlib import Path
from threading import Thread

import polars as pl
import pyarrow as pa
import pytest

from gdiag import pipeline
from gdiag.errors import InputError
from gdiag.ingesters import files, load, pipes
from gdiag.ingesters.files import gather

LOG = b"".join(b'{"step": %d, "loss": %d}\n' % (i, 100 - i) for i in range(100))


def zstd(content: bytes) -> bytes:
    packed = pa.compress(content, codec="zstd", asbytes=True)
    assert isinstance(packed, bytes)
    return packed


@pytest.mark.parametrize(
    "content",
    [
        LOG,
        b"\xef\xbb\xbf" + LOG,
        LOG.replace(b"\n", b"\r\n"),
        LOG.replace(b"\n", b"\r"),
        LOG.decode().encode("utf-16"),
        LOG.decode().encode("utf-16-le"),
        gzip.compress(LOG),
        bz2.compress(LOG),
        lzma.compress(LOG),
        zstd(LOG),
        gzip.compress(b"\xef\xbb\xbf" + LOG),
        gzip.compress(LOG[:1250]) + gzip.compress(LOG[1250:]),
    ],
)
def test_the_same_log_packed_differently(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    records = load([path])
    assert records.steps["loss"].to_list() == [100.0 - i for i in range(100)]
    assert records.rejects.height == 0


@pytest.mark.parametrize("end", [b"\r", b"\r\n"])
def test_a_table_whose_lines_end_by_carriage_returns_is_read_row_by_row(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "run.csv"
    path.write_bytes(
        b"step,loss\n".replace(b"\n", end) + b"".join(b"%d,%d%s" % (i, 9000 - i, end) for i in range(9000))
    )
    assert load([path]).steps["loss"].to_list() == [9000.0 - i for i in range(9000)]


def test_a_cut_archive_gives_what_stands_before_the_cut(tmp_path: Path) -> None:
    rows = b"".join(b'{"step": %d, "loss": %f}\n' % (i, (i * 7919 % 1000) / 7) for i in range(20000))
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(rows)[:-40000])
    records = load([path])
    assert 1000 < records.steps.height < 20000
    assert records.steps["step"].to_list() == list(range(records.steps.height))


def test_a_cut_archive_is_said_to_be_cut(tmp_path: Path) -> None:
    # Flushed at a line's end, what can be unpacked ends with a whole line: nothing else tells of the cut.
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    whole = LOG[: LOG.index(b"\n", len(LOG) // 2) + 1]
    (tmp_path / "cut.gz").write_bytes(packer.compress(whole) + packer.flush(zlib.Z_SYNC_FLUSH))
    (tmp_path / "cut.bz2").write_bytes(bz2.compress(LOG)[:-3])
    (tmp_path / "whole.gz").write_bytes(gzip.compress(LOG))
    notes = {Path(source.path).name: source.notes for source in load([tmp_path]).sources}
    assert any("cut off" in note for note in notes["cut.gz"])
    assert not any("cut off" in note for note in notes["whole.gz"])


def test_an_archive_that_explodes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FLOOR", 1 << 16)
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"\n" * (1 << 24)))
    with pytest.raises(InputError, match="grows past"):
        load([path])


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(LOG)

    monkeypatch.setattr("sys.stdin", Stdin())
    assert load(["-"]).steps.height == 100


def test_folder_and_glob(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.jsonl").write_bytes(LOG)
    (tmp_path / "a" / "notes.md").write_text("nothing to see")
    (tmp_path / ".hidden.jsonl").write_bytes(LOG)
    records = load([tmp_path])
    assert [(Path(s.path).name, s.format) for s in records.sources] == [("notes.md", "unknown"), ("run.jsonl", "jsonl")]
    assert load([str(tmp_path / "*" / "*.jsonl")]).steps.height == 100


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("none", None, "does not exist"), ("empty", b"", "empty"), ("text", b"hello", "no format")],
)
def test_what_cannot_be_used_is_said(tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        load([tmp_path / name])


def test_a_pipe_is_read_whole_and_a_device_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = b"step,loss\n" + b"".join(b"%d,2.0\n" % k for k in range(30_000))
    writer = Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    given = gather([pipe])
    writer.join()
    assert given[0].data() == content
    assert "neither a file nor a pipe" in gather(["/dev/zero"])[0].refusal


def test_a_pipe_into_which_nobody_writes_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "_WAIT", 0.2)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no program has written into it"):
        load([tmp_path / "pipe"])


def test_a_pipe_whose_writer_is_slow_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "_WAIT", 0.2)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb") as out:
            time.sleep(0.6)
            out.write(LOG)

    writer = Thread(target=write)
    writer.start()
    assert load([pipe]).steps.height == 100
    writer.join()


@pytest.mark.parametrize("folders", [[".aim"], [".aim", ".git", ".empty"]])
def test_hidden_folders_are_named(tmp_path: Path, folders: list[str]) -> None:
    (tmp_path / "run.jsonl").write_bytes(LOG)
    for name in folders:
        (tmp_path / name).mkdir()
        if name != ".empty":
            (tmp_path / name / "run.jsonl").write_bytes(LOG)
    said = [source.notes[0] for source in load([tmp_path]).sources if source.format == "unknown"]
    assert len(said) == 1
    assert "hidden folder" in said[0]
    assert all(name in said[0] for name in folders if name != ".empty")


def test_a_header_without_a_row_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "head.csv").write_text("step,loss,lr\n")
    with pytest.raises(InputError, match="without a row"):
        load([tmp_path / "head.csv"])
    (tmp_path / "run.jsonl").write_bytes(LOG)
    pl.DataFrame(schema={"step": pl.Int64, "loss": pl.Float64}).write_parquet(tmp_path / "none.parquet")
    with pytest.raises(InputError, match="without a row"):
        pipeline.load([tmp_path / "none.parquet"])
    records = load([tmp_path])
    assert records.steps.height == 100
    assert "without a row" in records.sources[0].notes[0]


def test_a_name_longer_than_a_file_system_takes_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"cannot be read|does not exist"):
        gather(["a" * 5000])


def test_a_link_that_leads_to_itself_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "ring").symlink_to("ring")
    with pytest.raises(InputError):
        load([tmp_path / "ring"])
    (tmp_path / "good.jsonl").write_bytes(LOG)
    assert load([tmp_path]).steps.height == 100
    assert load([str(tmp_path / "*")]).steps.height == 100


ABOVE = [
    b"a warning, printed first, before all",
    b"\x1b[0m",
    b"\xff\xff",
    b'"',
    b"x" * 200_000,
    b"[[[[",
    b"one\ntwo\n\nthree",
]
CHART = b'"Step","r - loss","r - loss__MIN","r - loss__MAX"\n' + b"".join(
    b'"%d","%d","%d","%d"\n' % (i, 100 - i, 100 - i, 100 - i) for i in range(100)
)


@pytest.mark.parametrize("above", ABOVE)
@pytest.mark.parametrize(
    "log",
    [b"step,loss\n" + b"".join(b"%d,%d\n" % (i, 100 - i) for i in range(100)), LOG, CHART],
    ids=["csv", "jsonl", "chart"],
)
def test_lines_of_something_else_above_a_log_cost_themselves(tmp_path: Path, above: bytes, log: bytes) -> None:
    path = tmp_path / "run"
    path.write_bytes(above + b"\n" + log)
    records = load([path])
    assert records.steps["loss"].to_list() == [100.0 - i for i in range(100)]
    assert records.steps["line"][-1] == path.read_bytes().count(b"\n")
    assert records.rejects.height == records.sources[0].rejected == len([line for line in above.split(b"\n") if line])


@pytest.mark.parametrize("above", [6, 60])
def test_what_stands_below_many_lines_of_something_else_is_no_log(tmp_path: Path, above: int) -> None:
    (tmp_path / "notes.txt").write_bytes(b"words and more words\n" * above + b"step,loss\n1,2\n2,3\n")
    with pytest.raises(InputError, match="of no format"):
        load([tmp_path / "notes.txt"])


@pytest.mark.parametrize(
    "above",
    [
        "{\n",
        "[\n",
        "\n{\n",
        "Traceback (most recent call last):\n",
        "Traceback (most recent call last):\n  f()\nE: x\n",
    ],
)
@pytest.mark.parametrize("log", ["step,loss\n" + "".join(f"{i},{3 - i / 99}\n" for i in range(60)),
                                 "".join(f'{{"step": {i}, "loss": {3 - i / 99}}}\n' for i in range(60))])  # fmt: skip
def test_a_bracket_or_a_traceback_above_a_log_misleads_nobody(tmp_path: Path, above: str, log: str) -> None:
    (tmp_path / "run.log").write_text(above + log)
    records = load([tmp_path / "run.log"])
    assert records.steps["step"].to_list() == list(range(60))
    if above != "[\n" or log[0] != "{":
        assert records.rejects.height == len(above.split("\n")) - 1 - above.startswith("\n")
