"""gs:// and az:// through their fsspec backends, against a server in this process; no network."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import load, remote
from tests.ingesters.object_stores import ACCOUNT, PRIVATE, serving

pytestmark = pytest.mark.filterwarnings("default")
"""What the backends' makers announce is no fault of ours."""

LOG = b"".join(b'{"step": %d, "loss": %d}\n' % (i, 100 - i) for i in range(100))
FILES = {
    "runs/a/log.jsonl": LOG, "runs/a/checkpoint-50/model.safetensors": b"w" * 1000, "runs/a/.cache/x.jsonl": LOG,
    "runs/b/part 2.jsonl.gz": gzip.compress(LOG), "runs/ab.jsonl": LOG,
}  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The paths asked of a server to which both backends are sent, each in the way its makers provide for emulators."""
    fsspec = pytest.importorskip("fsspec")
    remote._fsspec("gs")
    google = pytest.importorskip("gcsfs")
    pytest.importorskip("adlfs")
    with serving(FILES) as (address, paths):
        key = base64.b64encode(b"key").decode()
        endpoint = f"BlobEndpoint={address}/{ACCOUNT};"
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", f"AccountName={ACCOUNT};AccountKey={key};{endpoint}")
        monkeypatch.setitem(fsspec.config.conf, "gs", {"token": "anon"})
        # Stores are kept by fsspec from one call to the next, and their addresses and listings with them.
        for name in ("gs", "az"):
            fsspec.get_filesystem_class(name).clear_instance_cache()
        assert google.GCSFileSystem.__module__ == "gcsfs.core", "the one that asks nothing over gRPC"
        yield paths


STORES = ("gs://bucket", "az://box")


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("name", ["runs/a/log.jsonl", "runs/b/part 2.jsonl.gz"])
def test_one_file(asked: list[str], store: str, name: str) -> None:
    records = load([f"{store}/{name}"])
    assert records.steps["loss"].to_list() == [100.0 - i for i in range(100)]
    assert [(s.path, s.format) for s in records.sources] == [(f"{store}/{name}", "jsonl")]
    assert asked


@pytest.mark.parametrize("store", STORES)
def test_a_folder(asked: list[str], store: str) -> None:
    records = load([f"{store}/runs/a"])
    assert [(s.path, s.format) for s in records.sources] == [
        (f"{store}/runs/a/checkpoint-50/model.safetensors", "unknown"), (f"{store}/runs/a/log.jsonl", "jsonl"),
        (f"{store}/runs/a/checkpoint-50…", "checkpoint-folders"),
    ]  # fmt: skip
    assert records.steps.height == 100
    assert records.events["step"].to_list() == [50]


@pytest.mark.parametrize("store", STORES)
def test_a_glob(asked: list[str], store: str) -> None:
    records = load([f"{store}/runs/*.jsonl"])
    assert [s.path for s in records.sources] == [f"{store}/runs/ab.jsonl"]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("name", ["runs/a/none.jsonl", "none"])
def test_what_is_not_there(asked: list[str], store: str, name: str) -> None:
    with pytest.raises(InputError, match=f"{store}/{name} does not exist"):
        load([f"{store}/{name}"])


@pytest.mark.parametrize("store", ["gs", "az"])
def test_a_store_that_refuses(asked: list[str], store: str) -> None:
    with pytest.raises(InputError, match=f"{store}://{PRIVATE}/log.jsonl cannot be read"):
        load([f"{store}://{PRIVATE}/log.jsonl"])
