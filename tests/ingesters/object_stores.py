"""A server in this process that answers as Google Cloud Storage's JSON API and as Azure Blob Storage do.

Only what reading needs: an object's entry, its bytes (whole or a range), and listings with a prefix and a delimiter.
Sources: cloud.google.com/storage/docs/json_api/v1/objects, learn.microsoft.com/rest/api/storageservices (Get Blob, List Blobs).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

ACCOUNT = "account"
PRIVATE = "private"
"""A bucket or container that the server refuses."""
_CLOCK = "Mon, 02 Mar 2026 10:00:00 GMT"


class _Store(BaseHTTPRequestHandler):
    """One bucket or container of `files`, whatever it is called."""

    protocol_version = "HTTP/1.1"
    files: Mapping[str, bytes]
    asked: list[str]

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        asked = {name: found[0] for name, found in parse_qs(address.query).items()}
        self.asked.append(self.path)
        if f"/{PRIVATE}" in address.path:
            self._answer(403, b"")
        elif address.path.startswith(f"/{ACCOUNT}/"):
            self._azure(address.path, asked)
        else:
            self._google(address.path, asked)

    do_HEAD = do_GET  # noqa: N815

    def _google(self, path: str, asked: Mapping[str, str]) -> None:
        listing = re.fullmatch(r"/storage/v1/b/[^/]+/o/?", path)
        entry = re.fullmatch(r"(?:/download)?/storage/v1/b/[^/]+/o/(.+)", path)
        if listing:
            names, folders = self._below(asked)
            body = {"items": [self._entry(name) for name in names], "prefixes": folders}
            self._answer(200, json.dumps(body).encode(), "application/json")
        elif entry is None or (name := unquote(entry[1])) not in self.files:
            self._answer(404, b'{"error": {"code": 404, "message": "No such object"}}', "application/json")
        elif asked.get("alt") == "media":
            self._content(name)
        else:
            self._answer(200, json.dumps(self._entry(name)).encode(), "application/json")

    def _entry(self, name: str) -> dict[str, object]:
        size = str(len(self.files[name]))
        return {"kind": "storage#object", "name": name, "size": size, "updated": "2026-03-02T10:00:00.000Z"}

    def _azure(self, path: str, asked: Mapping[str, str]) -> None:
        container, _, name = unquote(path.removeprefix(f"/{ACCOUNT}/")).partition("/")
        if asked.get("comp") == "list":
            names, folders = self._below(asked)
            blobs = "".join(
                f"<Blob><Name>{escape(n)}</Name><Properties><Last-Modified>{_CLOCK}</Last-Modified><Etag>1</Etag>"
                f"<Content-Length>{len(self.files[n])}</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>"
                for n in names
            )
            folded = "".join(f"<BlobPrefix><Name>{escape(n)}</Name></BlobPrefix>" for n in folders)
            head = f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="{container}">'
            body = f"{head}<Blobs>{blobs}{folded}</Blobs><NextMarker/></EnumerationResults>"
            self._answer(200, body.encode(), "application/xml")
        elif name in self.files:
            self._content(name)
        else:
            self._answer(404, b"", code="BlobNotFound")

    def _below(self, asked: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """Objects under the prefix, and what the delimiter folds into folders."""
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        names, folders = [], dict[str, None]()
        for name in sorted(self.files):
            if name.startswith(prefix):
                head, folded, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
                if folded:
                    folders[prefix + head + delimiter] = None
                else:
                    names.append(name)
        return names, list(folders)

    def _content(self, name: str) -> None:
        content = self.files[name]
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("x-ms-range") or self.headers.get("Range") or "")
        if wanted is None:
            self._answer(200, content)
            return
        start, end = int(wanted[1]), min(int(wanted[2] or len(content)), len(content) - 1)
        self._answer(206, content[start : end + 1], span=f"bytes {start}-{end}/{len(content)}")

    def _answer(
        self, status: int, body: bytes, kind: str = "application/octet-stream", span: str = "", code: str = ""
    ) -> None:
        self.send_response(status)
        headers = {"Content-Length": str(len(body)), "Content-Type": kind, "Last-Modified": _CLOCK, "ETag": '"1"'}
        headers |= {"x-ms-blob-type": "BlockBlob", "Content-Range": span, "x-ms-error-code": code}
        for name, value in headers.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(files: Mapping[str, bytes]) -> Iterator[tuple[str, list[str]]]:
    """The server's address and the paths that were asked of it, while the files are served."""
    asked: list[str] = []
    handler = type("Store", (_Store,), {"files": files, "asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
