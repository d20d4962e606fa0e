"""A folder of everything: each file is read or refused with one sentence, and none goes unnamed."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from gdiag.cli import main
from gdiag.errors import InputError
from gdiag.ingesters import archives, files, load


def jsonl(level: float) -> bytes:
    return "".join(json.dumps({"step": i, "loss": level - i / 100}) + "\n" for i in range(60)).encode()


def table(level: float, separator: str = ",", point: str = ".") -> bytes:
    rows = (f"{i}{separator}{f'{level - i / 100:.2f}'.replace('.', point)}\n" for i in range(60))
    return f"step{separator}loss\n{''.join(rows)}".encode()


def zipped(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(members: dict[str, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


READ = {
    "a.jsonl": jsonl(11), "b.csv": table(12), "semicolon.csv": table(13, ";", ","), "tab.tsv": table(14, "\t"),
    "bom.csv": b"\xef\xbb\xbf" + table(15), "utf16.csv": table(16).decode().encode("utf-16"), "pipe.csv": table(17, "|"),
    "utf16be.jsonl": jsonl(18).decode().encode("utf-16-be"), "utf16le.txt": table(19).decode().encode("utf-16-le"),
    "utf32.csv": table(20).decode().encode("utf-32"), "nul.jsonl": jsonl(21).replace(b'"step": 30', b'\0\0"step": 30'),
    "mac.csv": table(22).replace(b"\n", b"\r"), "crlf.csv": table(23).replace(b"\n", b"\r\n"),
    "latin.csv": table(24).replace(b"loss\n", b"loss,note\n").replace(b"0\n", b"0,caf\xe9\n"), "c.gz": gzip.compress(jsonl(25)),
    "d.bz2": bz2.compress(table(26)), "e.xz": lzma.compress(jsonl(27)), "f.zst": pa.Codec("zstd").compress(jsonl(28), asbytes=True),
    "g.lz4": pa.Codec("lz4").compress(jsonl(29), asbytes=True), "new\nline.jsonl": jsonl(30), "esc\x1b[31mred.csv": table(31),
    "sp ace [bold].jsonl": jsonl(32), "right\u202eleft.jsonl": jsonl(33), "bad\udcff.csv": table(34), "spaced.txt": table(35, " "),
}  # fmt: skip
ARCHIVES = {
    "logs.zip": (zipped({"run/log.jsonl": jsonl(41), "run/x.csv.gz": gzip.compress(table(42)), ".git/y": b"x"}), 2),
    "logs.tar.gz": (tarred({"run/log.jsonl": jsonl(43), "run/x.csv": table(44)}, "w:gz"), 2),
    "plain.tar": (tarred({"./log.jsonl": jsonl(45)}), 1),
    "logs.tar.xz": (tarred({"log.jsonl": jsonl(46), "notes.bin": b"\0\1\2\3" * 50}, "w:xz"), 2),
}
REFUSED = {
    "empty.log": (b"", "is empty"), "blank.log": (b"\n \n", "is empty"), "binary.bin": (bytes(range(256)) * 9, "is binary"),
    "plot.png": (b"\x89PNG\r\n\x1a\n" + b"\0" * 90, "is a picture"), "ckpt.pkl": (pickle.dumps({"step": 3}), "is a pickled object"),
    "model.pt": (zipped({"m/data.pkl": pickle.dumps([1]), "m/version": b"3"}), "holds weights"),
    "book.xlsx": (zipped({"xl/workbook.xml": b"<x/>"}), "is a spreadsheet"), "none.zip": (zipped({}), "archive without files"),
    "x.npy": (b"\x93NUMPY\x01\0" + b" " * 90, "is a NumPy array"), "s.7z": (b"7z\xbc\xaf\x27\x1c" + b"\0" * 40, "unpack it first"),
    "bad.gz": (b"\x1f\x8b\x08\0garbage", "is a damaged archive"), "bad.zip": (b"PK\x03\x04garbage", "is a damaged archive"),
    "page.html": (b"<html><body>x</body></html>", "is a web page"), "README.md": (b"# run\nhello\n", "of no format that gdiag knows"),
    "r.rar": (b"Rar!\x1a\x07\0" + b"\0" * 40, "unpack it first"),
}  # fmt: skip


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    folder = tmp_path / "mixed"
    folder.mkdir()
    for name, content in READ.items():
        (folder / name).write_bytes(content)
    for name, (content, _) in {**ARCHIVES, **REFUSED}.items():
        (folder / name).write_bytes(content)
    (folder / "ring").symlink_to("ring")
    (folder / "nowhere.jsonl").symlink_to("none")
    (folder / "again.jsonl").symlink_to("a.jsonl")
    (folder / "sub").mkdir()
    (folder / "sub" / "up").symlink_to("..")
    (folder / "out").symlink_to(tmp_path)
    (folder / ".hidden.jsonl").write_bytes(jsonl(99))
    os.mkfifo(folder / "pipe.log")
    return folder


def test_every_file_is_read_or_refused(mixed: Path) -> None:
    records = load([mixed])
    found = {source.path.removeprefix(f"{mixed}/"): source for source in records.sources}
    for name in READ:
        assert (found[name].format, found[name].rows, found[name].rejected) != ("unknown", 0, 0), name
        assert found[name].rows == 60, name
    for name, (_, members) in ARCHIVES.items():
        assert sum(path.startswith(f"{name}/") for path in found) == members
    for name, (_, why) in REFUSED.items():
        assert found[name].format == "unknown"
        assert why in found[name].notes[0], name
    for name, why in (
        ("ring", "leads nowhere"), ("nowhere.jsonl", "leads nowhere"), ("again.jsonl", "which is read"),
        ("pipe.log", "neither a file nor a folder"), ("out", "is not followed"),
    ):  # fmt: skip
        assert why in found[name].notes[0]
    told = {name.split("/")[0] for name in found}
    assert {path.name for path in mixed.iterdir()} - told == {".hidden.jsonl", "sub"}
    first = records.steps.filter(records.steps["step"] == 0)["loss"].sort().to_list()
    assert first == [*(11.0 + i for i in range(len(READ))), *(41.0 + i for i in range(6))]


@pytest.mark.parametrize("form", ["text", "json", "markdown", "html", "sarif"])
def test_names_cannot_act_on_a_terminal(mixed: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["analyze", str(mixed), "--format", form, "--fail-on", "never"])
    assert left.value.code in (0, None)
    assert "\x1b[31m" not in capsys.readouterr().out


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.jsonl").write_bytes(jsonl(11))
    (tmp_path / "closed").mkdir()
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    sources = load([tmp_path]).sources
    assert [(s.format, s.notes) for s in sources] == [
        ("jsonl", ()),
        ("unknown", (f"{tmp_path}/closed cannot be read: Permission denied",)),
    ]


def test_an_archive_with_a_password_and_a_large_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = zipped({"a.jsonl": jsonl(11), "b.jsonl": jsonl(12) * 9})
    locked = bytearray(zipped({"c.jsonl": jsonl(13)}))
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(magic) + at] |= 1
    (tmp_path / "x.zip").write_bytes(content)
    (tmp_path / "y.zip").write_bytes(bytes(locked))
    monkeypatch.setattr(files, "FLOOR", len(jsonl(11)) + 10)
    notes = [note for source in load([tmp_path]).sources for note in source.notes]
    assert any("b.jsonl is larger than" in note for note in notes)
    assert any("c.jsonl is encrypted" in note for note in notes)


def test_an_archive_of_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_MEMBERS", 2)
    (tmp_path / "x.zip").write_bytes(zipped({f"{i}.jsonl": jsonl(11 + i) for i in range(5)}))
    sources = load([tmp_path]).sources
    assert len(sources) == 3
    assert "more than 2 files" in sources[-1].notes[0]


@pytest.mark.parametrize("cut", [10, 100, 600, 1300])
def test_a_cut_archive_never_raises(tmp_path: Path, cut: int) -> None:
    for name, content in (("x.zip", ARCHIVES["logs.zip"][0]), ("x.tar", ARCHIVES["plain.tar"][0])):
        (tmp_path / name).write_bytes(content[:-cut])
    with suppress(InputError):
        assert load([tmp_path]).sources


def test_dots_that_part_thousands(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step;loss\n" + "".join(f"{i};1.{i + 100},5\n" for i in range(20)))
    assert load([tmp_path / "log.csv"]).steps["loss"].to_list() == [1000 + i + 100.5 for i in range(20)]


def test_what_stands_before_the_cut_of_an_archive_is_read(tmp_path: Path) -> None:
    whole = tarred({"a.csv": table(1), "b.csv": table(2), "c.csv": table(3)})
    (tmp_path / "cut.tar").write_bytes(whole[: 2 * 1024 + 700])
    sources = load([tmp_path]).sources
    assert [source.rows for source in sources if source.path.endswith(("a.csv", "b.csv"))] == [60, 60]
    assert "is a damaged archive" in sources[-1].notes[0]


def test_a_link_to_a_folder_whose_name_begins_alike_is_named(tmp_path: Path) -> None:
    for name in ("run1", "run10"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.csv").write_bytes(table(len(name)))
    (tmp_path / "run1" / "other").symlink_to(tmp_path / "run10")
    assert "is a link to a folder elsewhere" in load([tmp_path / "run1"]).sources[-1].notes[0]


def test_an_archive_of_many_files_may_not_outgrow_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FLOOR", 1500)
    monkeypatch.setattr(files, "RATIO", 1)
    (tmp_path / "logs.zip").write_bytes(zipped({f"{i}.csv": table(i) for i in range(1, 6)}))
    told = [source.notes for source in load([tmp_path]).sources]
    assert told[0] == ()
    assert "its archive grows past" in told[-1][0]


def cut_zips() -> dict[str, bytes]:
    """Archives of three logs without their last quarter: sizes in the headers, sizes behind (streamed), not packed."""
    logs = {f"run{i}/log.jsonl": jsonl(50 + i) for i in range(3)}
    streamed, stored = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(Unseekable(streamed), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in logs.items():
            archive.writestr(name, content)
    with zipfile.ZipFile(stored, "w") as archive:
        for name, content in logs.items():
            archive.writestr(name, content)
    whole = {"plain": zipped(logs), "streamed": streamed.getvalue(), "stored": stored.getvalue()}
    return {name: content[: content.rindex(b"PK\x03\x04") + 200] for name, content in whole.items()}


class Unseekable(io.RawIOBase):
    """A pipe: zip writes the sizes behind each member."""

    def __init__(self, out: io.BytesIO) -> None:
        self.out = out

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        return self.out.write(data)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["plain", "streamed", "stored"])
def test_a_cut_zip_gives_the_files_before_the_cut(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "logs.zip"
    path.write_bytes(cut_zips()[kind])
    sources = {source.path.removeprefix(f"{path}"): source for source in load([path]).sources}
    assert [sources[f"/run{i}/log.jsonl"].rows for i in range(2)] == [60, 60]
    assert 0 < sources["/run2/log.jsonl"].rows < 60
    assert "cut off" in sources["/run2/log.jsonl"].notes[0]
    assert sources[""].notes[0].endswith("the 3 files before the damage are listed, what follows is lost")


def test_a_cut_zip_at_any_place_never_raises(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    whole = cut_zips()["streamed"]
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with suppress(InputError):
            assert load([path]).steps["loss"].is_finite().all()


def test_a_cut_zip_that_explodes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FLOOR", 1 << 16)
    monkeypatch.setattr(archives, "_MOST", 1 << 16)
    (tmp_path / "bomb.zip").write_bytes(zipped({"log.jsonl": b'{"step": 1, "loss": 2.0}\n' * (1 << 16)})[:-60])
    with pytest.raises(InputError, match=r"larger than|grows past"):
        load([tmp_path / "bomb.zip"])


def test_a_cut_tar_gives_the_part_of_its_last_file(tmp_path: Path) -> None:
    (tmp_path / "logs.tar").write_bytes(tarred({"a.jsonl": jsonl(51), "b.jsonl": jsonl(52)})[:3800])
    sources = load([tmp_path / "logs.tar"]).sources
    assert sources[0].rows == 60
    assert 0 < sources[1].rows < 60
    assert "cut off" in sources[1].notes[0]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"inner.zip": zipped({"log.jsonl": jsonl(51)})}, "is an archive inside an archive"),
        ({"inner.tar.gz": tarred({"log.jsonl": jsonl(51)}, "w:gz")}, "is an archive inside an archive"),
        ({".git/x": b"x", "__MACOSX/._log": b"x"}, "holds 2 hidden files and no other"),
        ({"empty/": b""}, "is an archive without files"),
    ],
)
def test_an_archive_that_gives_no_file_is_one_sentence(tmp_path: Path, members: dict[str, bytes], said: str) -> None:
    (tmp_path / "logs.zip").write_bytes(zipped(members))
    with pytest.raises(InputError, match=said):
        load([tmp_path / "logs.zip"])


def test_a_checkpoint_stored_in_a_cut_zip_is_one_of_its_files(tmp_path: Path) -> None:
    out, model = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(model, "w") as archive:
        archive.writestr("archive/data.pkl", b"a" * 100)
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("run/log.csv", table(11))
        archive.writestr("run/checkpoint.pt", model.getvalue())
    (tmp_path / "run.zip").write_bytes(out.getvalue()[:-30])
    assert load([tmp_path / "run.zip"]).steps["loss"][0] == 11.0


@pytest.mark.parametrize("behind", [0, 300])
def test_a_tar_cut_between_its_members_is_said(tmp_path: Path, behind: int) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("a.csv", "b.csv"):
            entry = tarfile.TarInfo(name)
            entry.size = len(table(11))
            archive.addfile(entry, io.BytesIO(table(11)))
    end = tarfile.BLOCKSIZE * (1 + -(-len(table(11)) // tarfile.BLOCKSIZE))
    (tmp_path / "run.tar").write_bytes(out.getvalue()[: end + behind])
    records = load([tmp_path / "run.tar"])
    assert records.steps.height == 60
    said = [note for source in records.sources for note in source.notes if str(tmp_path) in note]
    assert len(said) == 1
    assert "has no end marker: its file is whole" in said[0] if not behind else "its end is missing" in said[0]


def archive_of(kind: str, count: int) -> bytes:
    """An archive of so many logs, and a folder behind them."""
    out = io.BytesIO()
    if kind == "tar":
        with tarfile.open(fileobj=out, mode="w") as tar:
            for i in range(count):
                entry = tarfile.TarInfo(f"{i}.csv")
                entry.size = len(table(i + 1))
                tar.addfile(entry, io.BytesIO(table(i + 1)))
        return out.getvalue()
    method = zipfile.ZIP_STORED if kind == "stored" else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(Unseekable(out) if kind == "streamed" else out, "w", method) as archive:
        for i in range(count):
            archive.writestr(f"{i}.csv", table(i + 1))
        archive.writestr("empty/", b"")
    return out.getvalue()


@pytest.mark.parametrize("kind", ["tar", "stored", "deflated", "streamed"])
@pytest.mark.parametrize("count", [1, 3])
def test_only_what_is_lost_is_said_to_be_lost(tmp_path: Path, kind: str, count: int) -> None:
    path = tmp_path / "logs.zip"
    whole = archive_of(kind, count)
    contents = whole.find(b"PK\x01\x02")
    if kind == "tar":
        contents = tarfile.BLOCKSIZE * count * (1 + -(-len(table(1)) // tarfile.BLOCKSIZE)) + 1
    for cut in {*range(200, len(whole), 61), *range(contents - 30, contents + 30), len(whole) - 1}:
        path.write_bytes(whole[:cut])
        with suppress(InputError):
            sources = load([path]).sources
            read = [source for source in sources if source.rows == 60 and not source.notes]
            said = " ".join(note for source in sources for note in source.notes)
            assert "before the damage are listed" not in said or len(sources) > 2
            if cut >= contents + 4:
                assert (len(read), said) == (count, "")
            elif len(read) == count:
                assert "what follows is lost" not in said or cut < contents
            else:
                assert said
