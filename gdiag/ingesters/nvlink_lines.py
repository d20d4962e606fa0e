"""Lines of nvidia-smi topo -m and nvlink -s, -e, wherever they stand: links and pairs as rows of `ports` and `facts`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gdiag.ingesters import port_rows
from gdiag.ingesters.port_place import Place
from gdiag.ingesters.values import whole

_HEAD: Final = re.compile(rb"(?m)^(?:[\w.-]+: )?[\s\x1b\[0-9;m]*GPU0\b.*?(CPU Affinity|GPU1\b|NIC0|NUMA)")
_ROW_HEAD: Final = re.compile(rb"(?m)^(?:[\w.-]+: )?[\s\x1b\[0-9;m]*GPU\d+[ \t]+(?:X|NV\d+|SYS|NODE|PHB|PXB|PIX)[ \t]")
_LINK_HEAD: Final = re.compile(
    rb"(?m)\bLink \d+: (?:\d+(?:\.\d+)? GB/s|<inactive>|[A-Z][\w ]*(?:Errors|events|BER)\b)|Nvlink queries are not supported|"
    rb"have or support Nvlink|all links are inActive"
)
_LIST_HEAD: Final = re.compile(rb"(?m)^(?:[\w.-]+: )?GPU \d+: .* \(UUID: ")
_PATH: Final = r"(?:X|NV\d+|SYS|NODE|PHB|PXB|PIX|PSB|SOC|C2C|N/A)"
_ROW: Final = re.compile(rf"^\s*([A-Za-z][\w.-]*)((?:\s+{_PATH}(?=\s|$))+)")
_GPU: Final = re.compile(r"^\s*GPU (\d+): (.*?)\s*(?:\(UUID: ([^)]*)\))?\s*((?:Nvlink|Device|NVML).*)?$")
_BLANK: Final = re.compile(r"\t(?=\t)")
"""A cell of the matrix with nothing in it."""
_STATE: Final = re.compile(r"^\s*Link (\d+): (?:(\d{1,6}(?:\.\d+)?) GB/s|<inactive>)\s*$")
_COUNT: Final = re.compile(r"^\s*Link (\d+): ([A-Za-z][\w /-]*?)\s*: (\d+(?:\.\d+)?(?:[eE]-?\d+)?)\s*$")
_UUID: Final = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SILENT: Final = {
    "not supported for Devices in MIG mode": "MIG mode hides its NVLinks",
    "not have or support": "has no NVLink",
    "all links are inActive": "all its NVLinks are inactive",
}
_HEADER: Final = re.compile(r"^\s*GPU0(?=\s+(?:GPU|NIC|mlx)|\s*$|\s(?:.*\s)?(?:CPU|NUMA)(?:\s|$))")
_BEHIND: Final = re.compile(r"\s(?:CPU|NUMA)(?:\s|$)")
"""Where the names of a header end and the columns of affinities begin."""
_OWN: Final = re.compile(r"(?:GPU|NIC)\d+")


@dataclass(slots=True)
class Screen:
    """What the lines gave."""

    ports: list[tuple[int, str | None, float | None, str, int, str | None, str, float]] = field(default_factory=list)
    """line, host, time, device, port, UUID of the GPU, counter, value"""
    facts: list[tuple[int, int, str, str, str]] = field(default_factory=list)
    """line, section, scope, key, value"""
    gpus: dict[tuple[str | None, int], str] = field(default_factory=dict)
    """Host and index of every GPU named, → what was said instead of its links, or nothing."""
    matrices: int = 0
    kinds: set[str] = field(default_factory=set)


def sureness(head: bytes) -> float:
    """How surely the head of a file is a screen of links: 0.9 with links or a matrix, 0.6 with what only names GPUs."""
    head = head[:16384]
    if _LINK_HEAD.search(head) or (_HEAD.search(head) and _ROW_HEAD.search(head)):
        return 0.9
    return 0.6 if any(p.search(head) for p in (_HEAD, _ROW_HEAD, _LIST_HEAD)) else 0.0


def among(content: bytes) -> bool:
    """Whether a screen of links stands somewhere in the content of another screen."""
    return bool(_LINK_HEAD.search(content) or (_HEAD.search(content) and _ROW_HEAD.search(content)))


def begins_matrix(head: bytes) -> bool:
    """Whether the head of a matrix is there."""
    return bool(_HEAD.search(head))


def whole_part(line: str) -> str:
    """What is surely complete of a last line without its end: NV1 may have been NV12, 3 errors 31."""
    return line if _STATE.match(line) else re.sub(r"\S+\s*$", "", line)


def parse(texts: Mapping[int, str], tz: str | None) -> Screen:
    """Links and matrix rows in numbered lines; everything else is passed over."""
    found = Screen()
    place = Place()
    names: list[str] = []
    gpu: tuple[str | None, int] | None = None
    card: str | None = None
    owners: dict[str, str | None] = {}
    for number, raw in texts.items():
        line = _BLANK.sub("\tN/A", place.bare(raw[:4096]))
        if m := _STATE.match(line):
            if gpu is not None and (link := whole(m[1], bits=31)) is not None:
                where = (number, place.host, place.time, f"GPU{gpu[1]}", link, card)
                found.ports.append((*where, "nvlink_active", float(m[2] is not None)))
                if m[2] is not None:
                    found.ports.append((*where, "nvlink_rate", float(m[2])))
                found.kinds.add("state")
        elif m := _COUNT.match(line):
            if gpu is not None and (link := whole(m[1], bits=31)) is not None:
                where = (number, place.host, place.time, f"GPU{gpu[1]}", link, card)
                found.ports.append((*where, "nvlink_" + re.sub(r"\W+", "_", m[2].lower()), float(m[3])))
                found.kinds.add("errors")
        elif m := _GPU.match(line):
            place.titled()
            card = m[3] if _UUID.fullmatch(m[3] or "") else None
            if card is not None:
                # A GPU that stood under another banner before: the banner names the moment, not the host.
                place.host = owners.setdefault(card, place.host)
            gpu = (place.host, index) if (index := whole(m[1], bits=31)) is not None else None
            if gpu is None:
                continue
            found.gpus.setdefault(gpu, "")
            told = (("nvlink model", m[2]), ("nvlink uuid", card))
            found.facts += [(number, 0, _scope(kind, gpu[0]), f"GPU{gpu[1]}", value) for kind, value in told if value]
            _silent(found, number, gpu, m[4] or "")
        elif (m := _ROW.match(line)) and _named(m, names):
            place.titled()
            _matrix_row(found, number, m, names, place.host)
        elif _HEADER.search(line):
            place.titled()
            names, found.matrices = _BEHIND.split(line, maxsplit=1)[0].split(), found.matrices + 1
        elif gpu is None or not _silent(found, number, gpu, line):
            place.noted(line, tz)
    return found


def _named(row: re.Match[str], names: list[str]) -> bool:
    """Whether it is a row of a matrix: the header names it, it is joined to itself, or it is a GPU or NIC by number."""
    return row[1] in names or "X" in row[2].split() or _OWN.fullmatch(row[1]) is not None


def _matrix_row(found: Screen, number: int, m: re.Match[str], names: list[str], host: str | None) -> None:
    """Cells of one row under the header's names; below a header that is lost, under the GPUs in their order."""
    cells = m[2].split()
    if not names:
        names.extend(f"GPU{i}" for i in range(cells.index("X") + 1 if "X" in cells else 0))
        found.matrices = found.matrices or 1
    columns = names if len(names) >= len(cells) else [*names, *(f"GPU{i}" for i in range(len(names), len(cells)))]
    for column, cell in zip(columns, cells, strict=False):
        if column != m[1] and cell not in ("X", "N/A"):
            found.facts.append((number, found.matrices, _scope("topology", host), f"{m[1]} {column}", cell))
    if _OWN.fullmatch(m[1]) and m[1].startswith("GPU") and (index := whole(m[1][3:], bits=31)) is not None:
        found.gpus.setdefault((host, index), "")
    found.kinds.add("matrix")


def _silent(found: Screen, number: int, gpu: tuple[str | None, int], line: str) -> bool:
    """Whether the line says why the GPU's links are not listed."""
    why = next((why for words, why in _SILENT.items() if words in line), "")
    if why:
        found.gpus[gpu] = why
        found.facts.append((number, 0, _scope("nvlink state", gpu[0]), f"GPU{gpu[1]}", why))
    return bool(why)


def _scope(kind: str, host: str | None) -> str:
    return f"{kind} {host}" if host else kind


def ports(found: Screen) -> pl.DataFrame | None:
    """Rows of `ports`, None where no link was listed."""
    columns = ("line", "host", "time", "device", "port", "guid", "counter", "value")
    return port_rows.table(found.ports, columns) if found.ports else None


def facts(found: Screen) -> pl.DataFrame | None:
    """Rows of `facts`, None where nothing was said."""
    schema = {"line": pl.Int64, "section": pl.Int32, "scope": pl.String, "key": pl.String, "value": pl.String}
    return pl.DataFrame(found.facts, schema=schema, orient="row") if found.facts else None


def said(found: Screen) -> tuple[str, ...]:
    """One line of what was read, and what it could not say."""
    parts = []
    if "matrix" in found.kinds:
        pairs = [v for _, _, scope, key, v in found.facts if scope.startswith("topology") and key.count("GPU") == 2]
        ways = ", ".join(sorted(set(pairs), key=pairs.index)) or "no pair of GPUs"
        number = len(found.gpus)
        parts.append(f"topology of {number} GPU{'s' if number > 1 else ''}: {ways}")
    if "state" in found.kinds:
        up = sum(v == 1 for *_, name, v in found.ports if name == "nvlink_active")
        rates = sorted({v for *_, name, v in found.ports if name == "nvlink_rate"})
        at = f" at {' and '.join(f'{r:g}' for r in rates)} GB/s" if rates else ""
        total = sum(name == "nvlink_active" for *_, name, _ in found.ports)
        parts.append(f"{up} of {total} NVLinks active{at}")
    if "errors" in found.kinds:
        counts = [
            v for *_, name, v in found.ports if name not in ("nvlink_active", "nvlink_rate") and "ber" not in name
        ]
        parts.append(f"{len(counts)} NVLink counters, {sum(v > 0 for v in counts)} above zero")
    for why in dict.fromkeys(why for why in found.gpus.values() if why):
        alike = [i for (_, i), w in found.gpus.items() if w == why]
        named = f"GPU {alike[0]}" if len(alike) == 1 else f"{len(alike)} GPUs"
        parts.append(f"{named}: {why}" + (": the links cannot be judged" if "hides" in why else ""))
    return tuple(parts)
