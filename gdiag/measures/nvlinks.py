"""How the GPUs of a host are joined: the links of each, and the matrix of the ways between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

import polars as pl

_PAIR: Final = re.compile(r"GPU(\d{1,9}) GPU(\d{1,9})")
NVLINK: Final = "nvlink_"
"""How counters of `ports` begin that belong to NVLinks."""
MODULE: Final = "module_"
"""How those begin that belong to transceivers."""


@dataclass(frozen=True, slots=True)
class Links:
    """The links of one GPU."""

    host: str | None
    gpu: int
    model: str | None
    rates: dict[int, float]
    """Active links and their rates [GB/s]."""
    dark: tuple[int, ...]
    """Links that are listed and inactive."""
    silent: str | None
    """What was said instead of the links."""
    last: bool
    """Whether nothing follows in its file: the list may be cut."""
    source: int | None
    line: int | None


@dataclass(frozen=True, slots=True)
class Matrix:
    """The ways between the GPUs of one host."""

    host: str | None
    gpus: tuple[int, ...]
    ways: dict[tuple[int, int], str]
    """(row, column) → as printed: NV18, PIX, SYS."""
    source: int | None
    line: int | None

    def links(self, one: int, other: int) -> int | None:
        """NVLinks of the pair, 0 where the way is another; None where neither cell was read."""
        ways = [way for key in ((one, other), (other, one)) if (way := self.ways.get(key)) is not None]
        return min((int(w[2:]) if w.startswith("NV") else 0 for w in ways), default=None)


def counted(prefix: str) -> pl.Expr:
    """Rows of `ports` whose counter begins so."""
    return pl.col("counter").str.starts_with(prefix)


def said() -> pl.Expr:
    """Rows of `facts` that nvidia-smi topo and nvlink gave."""
    return pl.col("scope").str.contains(r"^(?:topology|nvlink (?:model|state))(?: |$)").fill_null(value=False)


def screens(ports: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """Rows of `ports` and `facts` that nvidia-smi topo and nvlink gave: scope, key, value, source, line, and the port's columns."""
    numbers = ports.filter(counted(NVLINK)).select(
        "source", "line", "host", "device", "port", "counter", number="value"
    )
    words = facts.filter(said()).select("source", "line", "section", "scope", "key", "value")
    return pl.concat([numbers, words], how="diagonal")


def links(screens: pl.DataFrame) -> list[Links]:
    """Every GPU of which links, or their absence, were shown; of several readings the last counts."""
    found: dict[tuple[object, str], dict[str, object]] = {}
    rows = screens.filter(~pl.col("scope").fill_null("").str.starts_with("topology")).sort("source", "line")
    for row in rows.iter_rows(named=True):
        if row["scope"] is not None:
            kind, host = row["scope"][:12], row["scope"][13:] or None
            own = found.setdefault((host, row["key"]), {"source": row["source"], "line": row["line"], "states": {}})
            own["model" if kind == "nvlink model" else "silent"] = row["value"]
        elif row["counter"] in ("nvlink_active", "nvlink_rate"):
            key = (row["host"], row["device"])
            own = found.setdefault(key, {"source": row["source"], "line": row["line"], "states": {}})
            states = cast(dict[int, float], own["states"])
            if row["counter"] == "nvlink_rate" or row["number"] == 0:
                states[row["port"]] = row["number"]
    ends = {own["source"]: key for key, own in found.items()}
    return [
        Links(
            host if isinstance(host, str) else None, int(name[3:]), _text(own.get("model")),
            {link: rate for link, rate in states.items() if rate > 0},
            tuple(sorted(link for link, rate in states.items() if rate == 0)),
            _text(own.get("silent")), ends[own["source"]] == (host, name), own["source"], own["line"],  # type: ignore[arg-type]
        )
        for (host, name), own in found.items()
        if (states := cast(dict[int, float], own["states"])) or own.get("silent")
    ]  # fmt: skip


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def matrices(screens: pl.DataFrame) -> Iterator[Matrix]:
    """The matrices of nvidia-smi topo -m, GPUs only."""
    rows = screens.filter(pl.col("scope").str.starts_with("topology"))
    for _, part in rows.group_by("source", "section", "scope", maintain_order=True):
        ways: dict[tuple[int, int], str] = {}
        for key, value in part.select("key", "value").iter_rows():
            if pair := _PAIR.fullmatch(key):
                ways[int(pair[1]), int(pair[2])] = value
        gpus = tuple(sorted({gpu for pair in ways for gpu in pair}))
        first = part.row(0, named=True)
        yield Matrix(first["scope"][9:] or None, gpus, ways, first["source"], first["line"])
