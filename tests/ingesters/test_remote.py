"""Addresses: fetched through fsspec where it is there, a clear sentence where not; no network."""

from __future__ import annotations

import gzip
import io
import socket
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gdiag.cli import main
from gdiag.errors import InputError
from gdiag.ingesters import files, load, remote

LOG = b"".join(b'{"step": %d, "loss": %d}\n' % (i, 100 - i) for i in range(100))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """fsspec's store in memory, readable under memory://."""
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setattr(remote, "SCHEMES", (*remote.SCHEMES, "memory", "file"))
    store = fsspec.filesystem("memory")
    yield store
    store.store.clear()
    store.pseudo_dirs[:] = [""]


def test_a_file_in_a_store(store: Any) -> None:
    store.pipe("/bucket/run.jsonl.gz", gzip.compress(LOG))
    records = load(["memory://bucket/run.jsonl.gz"])
    assert records.steps["loss"].to_list() == [100.0 - i for i in range(100)]
    assert [(s.path, s.format) for s in records.sources] == [("memory://bucket/run.jsonl.gz", "jsonl")]


def test_a_folder_and_a_glob_without_weights_and_hidden_files(store: Any) -> None:
    store.pipe("/b/run/a.jsonl", LOG)
    store.pipe("/b/run/model.safetensors", LOG)
    store.pipe("/b/run/.cache/x.jsonl", LOG)
    records = load(["memory://b/run"])
    assert [(s.path, s.format) for s in records.sources] == [
        ("memory://b/run/a.jsonl", "jsonl"),
        ("memory://b/run/model.safetensors", "unknown"),
    ]
    assert "not fetched" in records.sources[1].notes[0]
    assert load(["memory://b/*/a.json*", "memory://b/run/a.jsonl"]).steps.height == 100


def test_checkpoint_folders_of_a_store_become_events(store: Any) -> None:
    store.pipe("/b/run/log.jsonl", LOG)
    for name in (
        "checkpoint-20/model.safetensors",
        "checkpoint-20/optimizer.pt",
        "checkpoints/step40/x.distcp",
        "e/epoch=1-step=60.ckpt",
    ):
        store.pipe(f"/b/run/{name}", b"weights")
    records = load(["memory://b/run"])
    found = records.events.filter(records.events["kind"] == "checkpoint")
    assert found.select("step", "text", "time").rows() == [
        (20, "checkpoint-20", None), (40, "step40", None), (60, "epoch=1-step=60.ckpt", None)
    ]  # fmt: skip
    assert [s.path for s in records.sources if s.format == "checkpoint-folders"] == [
        "memory://b/run/checkpoint-20…", "memory://b/run/step40…", "memory://b/run/e/epoch=1-step=60.ckpt…"
    ]  # fmt: skip


def test_a_file_through_the_local_backend(store: Any, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_bytes(LOG)
    assert load([f"file://{tmp_path}/run.jsonl"]).steps.height == 100


def test_content_past_the_limits_is_refused(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CEILING", 1000)
    store.pipe("/b/run.jsonl", LOG)
    with pytest.raises(InputError, match="is larger than"):
        load(["memory://b/run.jsonl"])
    monkeypatch.setattr(files, "CEILING", 1 << 20)
    monkeypatch.setattr(files, "FLOOR", 1 << 16)
    store.pipe("/b/bomb.gz", gzip.compress(b"\n" * (1 << 24)))
    with pytest.raises(InputError, match="grows past"):
        load(["memory://b/bomb.gz"])


@pytest.mark.parametrize("address", ["memory://b/none.jsonl", "memory://b/none/*.jsonl"])
def test_what_is_not_there(store: Any, address: str) -> None:
    with pytest.raises(InputError, match=r"does not exist|no file fits"):
        load([address])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The address of a web server in this process that has /run.jsonl and keeps /private from everybody."""
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp", reason="aiohttp, which fsspec reads web servers with, is absent")
    monkeypatch.setattr(remote, "SCHEMES", ("http",))
    monkeypatch.setattr(remote, "_WEB", "http")

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = {"/run.jsonl": 200, "/private": 403}.get(self.path.partition("?")[0], 404)
            body = LOG if known == 200 else b"no"
            self.send_response(known)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_file_of_a_web_server(server: str) -> None:
    records = load([f"{server}/run.jsonl?X-Amz-Signature=abc123"])
    assert records.steps["loss"].to_list() == [100.0 - i for i in range(100)]
    assert records.sources[0].path == f"{server}/run.jsonl"


@pytest.mark.parametrize(("page", "words"), [("none.jsonl", "does not exist"), ("private", "cannot be read: 403")])
def test_a_web_server_that_refuses(server: str, page: str, words: str) -> None:
    with pytest.raises(InputError, match=f"{page} {words}"):
        load([f"{server}/{page}"])


def test_a_web_server_that_is_not_there(server: str) -> None:
    with pytest.raises(InputError, match=r"^http://127.0.0.1:9/run.jsonl cannot be read: Cannot connect"):
        load(["http://127.0.0.1:9/run.jsonl"])


@pytest.mark.parametrize("address", ["memory://b/run.jsonl", "memory://b/run"])
def test_a_refusal_is_not_taken_for_absence(store: Any, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def info(*_: object, **__: object) -> None:
        raise PermissionError("Forbidden")

    store.pipe("/b/run.jsonl", LOG)
    monkeypatch.setattr(type(store), "info", info)
    with pytest.raises(InputError, match=f"{address} cannot be read: Forbidden"):
        load([address])


class Refusing:
    """A store that refuses with an error kind of its own."""

    class core:  # noqa: N801 (fsspec's module of this name)
        @staticmethod
        def url_to_fs(address: str, **_: object) -> object:
            raise RuntimeError(f"403 for {address}")


def test_a_refusal_is_one_sentence_without_the_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", Refusing)
    with pytest.raises(InputError) as caught:
        load(["https://host/run.jsonl?X-Amz-Signature=abc123"])
    assert str(caught.value) == "https://host/run.jsonl cannot be read: 403 for https://host/run.jsonl"


@pytest.mark.parametrize("address", ["s3://bucket/run", "gs://bucket/run", "az://box/run", "https://host/run.jsonl"])
def test_without_fsspec_the_extra_is_named(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(SystemExit) as left:
        main(["analyze", address])
    assert left.value.code == 2
    assert "pip install 'gdiag[remote]'" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["info", "find", "glob", "open"])
def test_a_store_that_stays_silent_is_given_up(
    store: Any, where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b", "c"):
        store.pipe(f"/b/run/{name}.jsonl", LOG)
    answered = threading.Event()
    monkeypatch.setattr(remote, "_ANSWER", 0.2)
    monkeypatch.setattr(remote, "_LISTING", 0.2)
    monkeypatch.setattr(type(store), where, lambda *_, **__: answered.wait(20))
    begun = time.monotonic()
    with pytest.raises(SystemExit) as left:
        main(["analyze", "memory://b/run/*.jsonl" if where == "glob" else "memory://b/run"])
    answered.set()
    assert left.value.code == 2
    assert time.monotonic() - begun < 5
    said = capsys.readouterr().err
    assert said.count("no answer within 0 s") == 1
    assert "Traceback" not in said


def test_a_file_whose_closing_hangs_is_read(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store.pipe("/b/run.jsonl", LOG)
    answered = threading.Event()
    opened = type(store).open
    monkeypatch.setattr(remote, "_CLOSING", 0.2)

    def never_closed(self: Any, name: str, *more: Any, **how: Any) -> Any:
        content = opened(self, name, *more, **how).read()
        return SimpleNamespace(read=io.BytesIO(content).read, close=lambda: answered.wait(20))

    monkeypatch.setattr(type(store), "open", never_closed)
    begun = time.monotonic()
    assert load(["memory://b/run.jsonl"]).steps.height
    answered.set()
    assert time.monotonic() - begun < 5


def test_files_of_a_store_that_stops_answering_are_not_asked_for(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        store.pipe(f"/b/run/{name}.jsonl", LOG)
    answered = threading.Event()
    opened = type(store).open
    monkeypatch.setattr(remote, "_ANSWER", 0.2)

    def some(self: Any, name: str, *more: Any, **how: Any) -> Any:
        return opened(self, name, *more, **how) if name.endswith("a.jsonl") else answered.wait(20)

    monkeypatch.setattr(type(store), "open", some)
    records = load(["memory://b/run"])
    answered.set()
    assert [s.format for s in records.sources] == ["jsonl", "unknown", "unknown"]
    assert "no answer within" in records.sources[1].notes[0]
    assert "is not asked for: the store stopped answering" in records.sources[2].notes[0]


def test_a_web_server_that_stays_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("aiohttp", reason="aiohttp, which fsspec reads web servers with, is absent")
    monkeypatch.setattr(remote, "SCHEMES", ("http",))
    monkeypatch.setattr(remote, "_WEB", "http")
    monkeypatch.setattr(remote, "_ANSWER", 0.5)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        with pytest.raises(InputError, match="no answer within"):
            load([f"http://127.0.0.1:{port}/run.jsonl"])


def test_other_schemes_are_refused() -> None:
    with pytest.raises(InputError, match="ftp:// is not read"):
        load(["ftp://host/run.jsonl"])
