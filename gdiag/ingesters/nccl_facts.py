"""Devices and facts of nccl-tests output: rank list, versions, configuration, footers, failures, NCCL INFO lines."""

from __future__ import annotations

from typing import Final

import polars as pl

from gdiag.ingesters.nccl_rows import TYPES, each
from gdiag.ingesters.text import redact

_DEVICE: Final = (
    r"^\s*#?\s*Rank\s+(?P<rank>\d+)\s+(?:Group\s+(?P<group>\d+)\s+)?(?:Pid\s+(?P<pid>\d+)\s+)?on\s+(?P<host>\S+)\s+"
    r"device\s+(?P<gpu>\d+)\s+\[(?P<bus_id>[^\]]*)\]\s*(?P<model>.*?)\s*$"
)
_ROW: Final = rf"\d\s+\d[\d_,]*\s+(?:{TYPES})\s"
"""A row of another process, glued behind."""
_TRANSPORT: Final = r"via ((?:P2P|SHM|NET|COLLNET)[\w/ ]*?(?:/\d+)?(?:/GDRDMA|/Shared)*)(?:\s|$|\()"
_PATTERNS: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("version", "nccl_tests", "nccl-tests version", r"nccl-tests version (\S+(?: \(\w+\))?)"),
    ("version", "nccl", "nccl-library", r"nccl-library=(\d+)"),
    ("version", "nccl", "NCCL version", r"NCCL version (\d[\w.+-]*)"),
    ("version", "nccl", "compiled with", r"compiled with NCCL (\S+)"),
    ("version", "rccl_tests", "rccl-tests: Version", r"rccl-tests: Version (\S+)"),
    ("config", "collective", "Collective test", r"Collective test starting: (\w+?)_perf"),
    ("config", "collective", "_perf", r"(?:^|[/\s])(\w+?)_perf(?:_mpi)?\s+-"),
    ("config", "threads", "nThread ", r"nThread (\d+)"),
    ("config", "gpus_per_thread", "nThread ", r"nGpus (\d+)"),
    ("config", "min_bytes", "nThread ", r"minBytes (\d+)"),
    ("config", "max_bytes", "nThread ", r"maxBytes (\d+)"),
    ("config", "warmup_iterations", "nThread ", r"warmup iters: (\d+)"),
    ("config", "iterations", "nThread ", r" iters: (\d+)"),
    ("config", "validation", "nThread ", r"validation: (\d+)"),
    ("footer", "out_of_bounds", "Out of bounds", r"Out of bounds values : (\d+ \w+)"),
    ("footer", "average_busbw", "Avg bus", r"Avg bus bandwidth\s*: *([\d.e+]+)"),
    ("footer", "average_verdict", "Avg bus", r"Avg bus bandwidth\s*: *[\d.e+]+ +(OK|FAILED)"),
    ("wrong", "rank", "#wrong=", r"^\s*rank=(\d+) #wrong="),
    ("failure", "test", "Test ", r"(\S*:? ?Test (?:NCCL|CUDA) failure .*)$"),
    ("failure", "timeout", "Test ", r"(\S*: Test timeout .*)$"),
    ("failure", "gpus", "Invalid number", r"(Invalid number of GPUs: .*)$"),
    ("failure", "launch", "enough slots", r"(There are not enough slots available.*)$"),
    ("failure", "launch", "non-zero exit", r"(.*process returned a non-zero exit code.*)$"),
    ("nccl", "transport", " via ", _TRANSPORT),
    ("nccl", "network", "Using network", r"Using network (.+?)\s*$"),
    ("nccl", "ib_devices", "NET/IB : Using", r"NET/IB : Using (.+?)(?: ; OOB| \[RO\]|$)"),
    ("nccl", "ofi_provider", "rovider is", r"Selected [Pp]rovider is (\S+)"),
    ("nccl", "nic_speed", "speed=", r"NET/IB.*\bspeed=(\d+)"),
    ("nccl", "platform", "Running on ", r"Running on (\S+) platform"),
    ("nccl", "ofi_nics", " nics", r"found (\d+) nics"),
    ("nccl", "coll_channels", "coll channels", r"(\d+) coll channels"),
    ("nccl", "nvls_channels", "nvls channels", r"(\d+) nvls channels"),
    ("nccl", "topology_file", "NCCL_TOPO_FILE", r"NCCL_TOPO_FILE set (?:by environment )?to (\S+)"),
    ("nccl", "p2p_disabled", "P2P is disabled", r"(P2P is disabled\b.*)$"),
    ("nccl", "nvls_unavailable", "NVLS multicast", r"(NVLS multicast support is not available\b.*)$"),
    ("nccl", "duplicate_gpu", "Duplicate GPU", r"(Duplicate GPU detected.*)$"),
)  # fmt: skip
"""Scope, key, a literal that the line holds, and the pattern whose group is the value."""


def devices(texts: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rank list (line, rank, group, pid, host, gpu, bus_id, model), and the texts that are not of it."""
    text = pl.col("text").str
    listed = texts["text"].str.contains(" device ", literal=True)
    likely, others = texts.filter(listed), texts.filter(~listed)
    found = _parted(likely)
    odd = likely.join(found, on="text", how="anti")
    if odd.height:
        more = odd.with_columns(p=text.extract_groups(_DEVICE)).unnest("p")
        more = more.filter(pl.col("rank").is_not_null() & ~pl.col("model").str.contains(_ROW).fill_null(value=False))
        more = more.with_columns(pl.col("model").replace("", None)).select(found.columns)
        found = pl.concat([found, more.cast(found.schema, strict=False)])
        others = pl.concat([others, odd.join(found, on="text", how="anti")])
    # Thousands of ranks share few hosts and fewer models.
    return each(found.drop("text").with_columns(pl.col("host", "model").cast(pl.Categorical))), others


def _parted(texts: pl.DataFrame) -> pl.DataFrame:
    """Device texts that are nothing else, parted at their words: ten times the speed of a pattern."""

    def cut(column: str, word: str, first: str, second: str) -> pl.Expr:
        return pl.col(column).str.splitn(word, 2).struct.rename_fields([first, second])

    def number(name: str, kind: type[pl.DataType]) -> pl.Expr:
        return pl.col(name).str.strip_chars().cast(kind, strict=False)

    parts = texts.with_columns(cut("text", " on ", "who", "place").alias("p")).unnest("p")
    # The ranks of every run in a log stand in the same few places.
    places = (
        parts.select("place").unique().with_columns(cut("place", " device ", "host", "rest").alias("p")).unnest("p")
    )
    places = places.with_columns(cut("rest", "[", "gpu", "rest").alias("rest")).unnest("rest")
    places = places.with_columns(cut("rest", "]", "bus_id", "model").alias("rest")).unnest("rest")
    places = places.select(
        "place", pl.col("host").str.strip_chars(), number("gpu", pl.Int32), "bus_id", pl.col("model").str.strip_chars()
    ).filter(
        pl.col("gpu").is_not_null() & pl.col("bus_id").is_not_null() & ~pl.col("host").str.contains(" ", literal=True)
        & ~pl.col("model").str.contains(_ROW).fill_null(value=False)
    )  # fmt: skip
    parts = parts.with_columns(cut("who", "Rank", "lead", "who").alias("who")).unnest("who")
    parts = parts.with_columns(cut("who", "Pid", "who", "pid").alias("who")).unnest("who")
    parts = parts.with_columns(cut("who", "Group", "rank", "group").alias("who")).unnest("who")
    parts = parts.select(
        "text", "line", "lead", number("rank", pl.Int32), number("group", pl.Int32), number("pid", pl.Int64), "place"
    ).filter(pl.col("rank").is_not_null() & pl.col("lead").str.strip_chars("# ").eq(""))
    return parts.join(places, on="place").select(
        "text", "line", "rank", "group", "pid", "host", "gpu", "bus_id", pl.col("model").replace("", None)
    )


def facts(texts: pl.DataFrame) -> pl.DataFrame:
    """What the texts say about versions, configuration, footers, failures and NCCL's choices: line, scope, key, value."""
    words = sorted({word for _, _, word, _ in _PATTERNS})
    said = texts.filter(pl.col("text").str.contains_any(words))
    by_word = said.with_columns(word=pl.col("text").str.extract_many(words, overlapping=True).list.unique())
    hits = []
    for (word,), part in by_word.explode("word").partition_by("word", as_dict=True).items():
        values = (
            pl.col("text").str.extract(pattern).alias(str(order))
            for order, (_, _, mine, pattern) in enumerate(_PATTERNS)
            if mine == word
        )
        hits.append(part.select("line", *values).unpivot(index="line", variable_name="order").drop_nulls("value"))
    if not hits:
        return pl.DataFrame(schema={"line": pl.Int64, "scope": pl.String, "key": pl.String, "value": pl.String})
    found = pl.concat(hits).with_columns(pl.col("order").cast(pl.Int32))
    scope, key = (pl.Series(names).gather(found["order"]) for names in list(zip(*_PATTERNS, strict=True))[:2])
    failed = scope == "failure"
    found = found.with_columns(
        scope=scope,
        key=key,
        value=found["value"].scatter(failed.arg_true(), [redact(said) for said in found["value"].filter(failed)]),
    )
    return found.explode("line").sort("line", "order").select("line", "scope", "key", "value")


def condensed(facts: pl.DataFrame) -> pl.DataFrame:
    """`facts` with a section column, NCCL's repeats left out: every rank says the same; transports with their number."""
    key = pl.col("key")
    said = facts.filter(pl.col("scope") != "nccl")
    nccl = facts.filter((pl.col("scope") == "nccl") & (key != "transport"))
    nccl = nccl.unique(["section", "key", "value"], keep="first", maintain_order=True)
    carried = facts.filter(key == "transport").with_columns(pl.col("value").str.replace(r"/\d+", ""))
    carried = carried.group_by("section", "scope", "key", "value", maintain_order=True).agg(
        pl.col("line").first(), times=pl.len()
    )
    carried = carried.with_columns(value=pl.format("{} ×{}", "value", "times")).select(facts.columns)
    return pl.concat([said, nccl, carried]).sort("line", maintain_order=True)
