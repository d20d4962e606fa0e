"""How the GPUs of a host are joined: the links of each, and the matrix of the ways between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import polars as pl

from gdiag.measures.readings import latest

_PAIR: Final = re.compile(r"GPU(\d{1,9}) GPU(\d{1,9})")
NVLINK: Final = "nvlink_"
"""How counters of `ports` begin that belong to NVLinks."""
MODULE: Final = "module_"
"""How those begin that belong to transceivers."""
LISTED: Final = ("nvlink_active", "nvlink_rate")
"""Counters that are the state of a link."""
_GPU: Final = ("owner", "gpu")
_CARD: Final = (*_GPU, "card")
"""What is one GPU: its host and index, and without a host its UUID."""


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
    return pl.col("scope").str.contains(r"^(?:topology|nvlink (?:model|state|uuid))(?: |$)").fill_null(value=False)


def screens(ports: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """Rows of `ports` and `facts` that nvidia-smi topo and nvlink gave: scope, key, value, source, line, and the port's columns."""
    numbers = ports.filter(counted(NVLINK)).select(
        "source", "line", "host", "device", "port", "counter", number="value"
    )
    words = facts.filter(said()).select("source", "line", "section", "scope", "key", "value")
    return pl.concat([numbers, words], how="diagonal")


def links(screens: pl.DataFrame) -> list[Links]:
    """Every GPU of which links, or their absence, were shown: its latest reading, by order of source and line.

    Where no host is named, GPUs of one index with different UUIDs are of different hosts.
    """
    scope = pl.col("scope")
    rows = (
        screens.filter(~scope.str.starts_with("topology").fill_null(value=False))
        .with_columns(
            model=pl.when(scope.str.starts_with("nvlink model")).then("value"),
            silent=pl.when(scope.str.starts_with("nvlink state")).then("value"),
            uuid=pl.when(scope.str.starts_with("nvlink uuid")).then("value"),
            owner=pl.when(scope.is_null()).then("host").otherwise(scope.str.replace(r"^nvlink \w+ ?", "")),
            gpu=pl.coalesce("key", "device"),
        )
        .with_columns(pl.col("owner").replace("", None))
        .sort("source", "line", maintain_order=True)
    )
    # A GPU's name stands above whatever is listed of it.
    rows = rows.with_columns(reading=pl.col("model").is_not_null().cum_sum().over("source", *_GPU))
    card = pl.col("uuid").drop_nulls().first().over("source", *_GPU, "reading")
    rows = rows.with_columns(card=pl.when(pl.col("owner").is_null()).then(card))
    models = {tuple(row[:3]): row[3] for row in rows.drop_nulls("model").select(*_CARD, "model").iter_rows()}
    ends = {row[0]: row[1:] for row in rows.select("source", *_GPU, "reading").iter_rows()}
    told = pl.col("silent").is_not_null() | pl.col("counter").is_in(LISTED)
    full = rows.filter(told.any().over("source", *_GPU, "reading"))
    return [
        _links(part, models, ends)
        for part in latest(full, _CARD, ("source", "reading")).partition_by(_CARD, maintain_order=True)
    ]


def _links(
    part: pl.DataFrame, models: dict[tuple[str | None, ...], str], ends: dict[object, tuple[object, ...]]
) -> Links:
    """One reading of one GPU. ends: source → host, GPU and reading that its last row is of."""
    first = part.row(0, named=True)
    host, gpu = first["owner"], first["gpu"]
    dark = pl.col("counter").eq("nvlink_active") & (pl.col("number") == 0)
    states = dict(part.filter(dark | (pl.col("counter") == "nvlink_rate")).select("port", "number").iter_rows())
    return Links(
        host, int(gpu[3:]), models.get((host, gpu, first["card"])), {link: rate for link, rate in states.items() if rate > 0},
        tuple(sorted(link for link, rate in states.items() if rate == 0)), next(iter(part["silent"].drop_nulls()), None),
        ends[first["source"]] == (host, gpu, first["reading"]), first["source"], first["line"],
    )  # fmt: skip


def matrices(screens: pl.DataFrame) -> Iterator[Matrix]:
    """The latest matrix of each host that nvidia-smi topo -m gave, GPUs only; without its name a file is one host."""
    rows = screens.filter(pl.col("scope").str.starts_with("topology"))
    unnamed = pl.when(pl.col("scope") == "topology").then("source")
    rows = latest(rows, ("scope", unnamed), ("source", "section"))
    for _, part in rows.group_by("source", "section", "scope", maintain_order=True):
        ways: dict[tuple[int, int], str] = {}
        for key, value in part.select("key", "value").iter_rows():
            if pair := _PAIR.fullmatch(key):
                ways[int(pair[1]), int(pair[2])] = value
        gpus = tuple(sorted({gpu for pair in ways for gpu in pair}))
        first = part.row(0, named=True)
        yield Matrix(first["scope"][9:] or None, gpus, ways, first["source"], first["line"])
