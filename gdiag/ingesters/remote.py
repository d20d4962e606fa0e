"""Files in object stores and on web servers, through fsspec: fetched whole, and only when the user names them.

Credentials come from where fsspec's backends look for them (environment, profiles, instance roles); none is asked for,
kept or shown. Links and addresses found inside a log are never followed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import re
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, TypeVar

from gdiag.errors import InputError
from gdiag.ingesters import text

SCHEMES: Final = ("s3", "gs", "gcs", "az", "abfs", "abfss", "https")
_WEB: Final = "https"
_URL: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*)://(.+)$", re.DOTALL)
_MAGIC: Final = re.compile(r"[*?\[]")
_WEIGHTS: Final = (
    ".pt",
    ".pth",
    ".bin",
    ".safetensors",
    ".ckpt",
    ".distcp",
    ".npy",
    ".npz",
    ".msgpack",
    ".tar",
    ".zip",
)
"""Files of a remote folder that are named in the report and not fetched: a checkpoint may hold a terabyte."""
_BLOCK: Final = 1 << 22
_CONNECT: Final = 10
"""Seconds for a server to accept a connection."""
_SILENCE: Final = 60
"""Seconds without a byte after which a connection is given up."""
_SHORT_SILENCE: Final = 20
"""The same where the backend tries again several times and cannot be told not to."""
_ANSWER: Final = 60.0
"""Seconds for a store's answer to one question, its backend's own tries included."""
_LISTING: Final = 120.0
"""Seconds for a listing, which may take many questions, or for a block of a file."""
_CLOSING: Final = 5.0
"""Seconds to close a file that was read."""
_TALKATIVE: Final = ("gcsfs", "adlfs", "azure")
"""Backends that log, as errors with a traceback, what they also raise."""
T = TypeVar("T")


def scheme(given: str) -> str | None:
    """The scheme of an address such as s3://bucket/run, None for what is none.

    Raises:
        InputError: a scheme that is not read.
    """
    matched = _URL.match(given)
    if matched is None:
        return None
    name = matched[1].lower()
    if name not in SCHEMES:
        raise InputError(f"{name}:// is not read; what is: local paths, s3://, gs://, az:// and https://")
    return name


def fetch(given: str, limit: int) -> Iterator[tuple[str, bytes | str]]:
    """Every file at an address, below a folder or under a glob: its name and its content, or why there is none.

    Names are shown without what stands behind '?' in them: signed addresses carry their keys there.

    Args:
        given: the address; on a web server one file, in a store a file, a folder or a glob.
        limit: largest content that is fetched into memory [B].

    Raises:
        InputError: no fsspec, no such file, or the store refuses.
    """
    protocol = scheme(given) or ""
    shown = given.split("?")[0].split("#")[0] if protocol == _WEB else given
    shown = text.redact(shown)
    store, place = _reached(protocol, shown, lambda: _fsspec(protocol).core.url_to_fs(given, **_patience(protocol)))
    names = [place] if protocol == _WEB else _files(protocol, shown, store, place)
    if not names:
        raise InputError(f"{shown} does not exist" if not _MAGIC.search(place) else f"no file fits {shown}")
    silent = False
    for name in names:
        label = shown if name == place else f"{protocol}://{name.lstrip('/')}"
        if len(names) > 1 and name.lower().endswith(_WEIGHTS):
            yield label, f"{label} is not fetched: by its name it holds weights"
            continue
        if silent:
            yield label, f"{label} is not asked for: the store stopped answering"
            continue
        try:
            content: bytes | str = _content(protocol, label, store, name, limit)
        except InputError as error:
            content, silent = str(error), isinstance(error, _SilentError)
        yield label, content


def _fsspec(protocol: str) -> Any:
    # gcsfs asks of every bucket over gRPC how it is laid out, a minute each time where only HTTPS is let through, and logs
    # that it could not; reading needs no layout. Who reads a zonal bucket says so in this variable.
    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    for name in _TALKATIVE:
        if not (log := logging.getLogger(name)).handlers:  # else what nobody handles goes to standard error
            log.addHandler(logging.NullHandler())
    try:
        return import_module("fsspec")
    except ImportError:
        raise InputError(f"{protocol}:// needs fsspec: pip install 'gdiag[remote]'") from None


def _patience(protocol: str) -> dict[str, Any]:
    """Settings with which a server that does not answer is given up within a few minutes; a slow one may take its time."""
    if protocol == "s3":
        return {
            "config_kwargs": {"connect_timeout": _CONNECT, "read_timeout": _SILENCE, "retries": {"max_attempts": 2}}
        }
    if protocol.startswith("a"):
        return {"connection_timeout": _CONNECT, "read_timeout": _SHORT_SILENCE}
    google = protocol in ("gs", "gcs")
    if not google and protocol != _WEB:
        return {}
    try:
        web = import_module("aiohttp")
    except ImportError:
        return {}
    silence = _SHORT_SILENCE if google else _SILENCE
    patience = web.ClientTimeout(total=None, sock_connect=_CONNECT, sock_read=silence)
    return {"requests_timeout": patience} if google else {"client_kwargs": {"timeout": patience}}


def _files(protocol: str, shown: str, store: Any, place: str) -> list[str]:
    """The files at a place of a store, in order of name, without hidden ones below it."""

    def ask(question: Callable[[], T], seconds: float) -> T:
        return _reached(protocol, shown, question, seconds)

    roots = sorted(ask(lambda: store.glob(place), _LISTING)) if _MAGIC.search(place) else [place]
    found: list[str] = []
    for root in roots:
        # Not isfile: that takes a refusal for "no file", and the store would be asked once more.
        kind = ask(lambda root=root: store.info(root)["type"], _ANSWER)  # type: ignore[misc]
        below = [root] if kind == "file" else sorted(ask(lambda root=root: store.find(root), _LISTING))  # type: ignore[misc]
        found += [name for name in below if name == root or not _hidden(name.removeprefix(root))]
    return list(dict.fromkeys(found))


def _hidden(below: str) -> bool:
    return below.endswith("/") or any(part.startswith(".") for part in below.split("/"))


def _content(protocol: str, label: str, store: Any, name: str, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    file = _reached(protocol, label, lambda: store.open(name, "rb"))
    try:
        while block := _reached(protocol, label, lambda: file.read(_BLOCK), _LISTING):
            size += len(block)
            if size > limit:
                raise InputError(
                    f"{name.split('?')[0]} is larger than {limit / 2**30:.0f} GiB: fetch it, then read the file"
                )
            pieces.append(block)
    finally:
        # A backend may take leave of a store that says nothing; what was read is read.
        with contextlib.suppress(Exception):
            _within(_CLOSING, label, file.close)
    return b"".join(pieces)


class _SilentError(InputError):
    """A store that does not answer."""


def _within(seconds: float, shown: str, ask: Callable[[], T]) -> T:
    """What `ask` gives, in a thread that is left behind where it takes longer.

    Raises:
        _SilentError: it does.
    """
    answers: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((ask(), None))
        except BaseException as error:  # noqa: BLE001 (raised again where the answer is waited for)
            answers.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        answer, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise _SilentError(f"{shown} cannot be read: no answer within {seconds:.0f} s") from None
    if error is not None:
        raise error
    return answer  # type: ignore[return-value]


def _reached(protocol: str, shown: str, ask: Callable[[], T], seconds: float | None = None) -> T:
    """What the store answers within some seconds, _ANSWER where none are given.

    Raises:
        InputError: a missing backend, or whatever kind of error the backend has for its refusals.
    """
    try:
        return _within(_ANSWER if seconds is None else seconds, shown, ask)
    except InputError:
        raise
    except ImportError:
        raise InputError(f"{protocol}:// needs its fsspec backend: pip install 'gdiag[remote]'") from None
    except FileNotFoundError as error:
        # fsspec says so of every page that a web server does not give; what was the matter stands behind it.
        behind = error.__cause__ if protocol == _WEB else None
        if behind is None or getattr(behind, "status", None) in (404, 410):
            raise InputError(f"{shown} does not exist") from None
        raise _refused(shown, behind) from None
    except Exception as error:  # noqa: BLE001 (every backend raises kinds of its own, few of them OSError)
        raise _refused(shown, error) from None


def _refused(shown: str, error: BaseException) -> InputError:
    """One sentence about a store's refusal, without signatures and keys."""
    said = text.redact(re.sub(r"\?\S+", "", " ".join(str(error).split())))[:200]
    return InputError(f"{shown} cannot be read: {said or type(error).__name__}")
