"""Devices and facts of nccl-tests output: rank list, versions, configuration, footers, failures, NCCL INFO lines."""

from __future__ import annotations

from typing import Final

import polars as pl

from gdiag.ingesters.text import redact

_DEVICE: Final = (
    r"^\s*#?\s*Rank\s+(?P<rank>\d+)\s+(?:Group\s+(?P<group>\d+)\s+)?(?:Pid\s+(?P<pid>\d+)\s+)?on\s+(?P<host>\S+)\s+"
    r"device\s+(?P<gpu>\d+)\s+\[(?P<bus_id>[^\]]*)\]\s*(?P<model>.*?)\s*$"
)
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
    ("footer", "average_busbw", "Avg bus", r"Avg bus bandwidth\s*: ([\d.e+]+)"),
    ("footer", "average_verdict", "Avg bus", r"Avg bus bandwidth\s*: [\d.e+]+ +(OK|FAILED)"),
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


def devices(lines: pl.DataFrame) -> pl.DataFrame:
    """The rank list: line, rank, group, pid, host, gpu, bus_id, model."""
    found = lines.filter(pl.col("text").str.contains(" device ", literal=True))
    return (
        found.select("line", p=pl.col("text").str.extract_groups(_DEVICE))
        .unnest("p")
        .filter(pl.col("rank").is_not_null())
        .with_columns(
            pl.col("rank", "group", "gpu").cast(pl.Int32, strict=False),
            pl.col("pid").cast(pl.Int64, strict=False),
            pl.col("model").replace("", None),
        )
    )


def facts(lines: pl.DataFrame) -> pl.DataFrame:
    """What the lines say about versions, configuration, footers, failures and NCCL's choices: line, scope, key, value."""
    words = sorted({word for _, _, word, _ in _PATTERNS})
    few = lines.filter(pl.col("text").str.contains_any(words)).with_columns(
        word=pl.col("text").str.extract_many(words, overlapping=True).list.unique()
    )
    few = few.explode("word")
    out = [pl.DataFrame(schema={"line": pl.Int64, "scope": pl.String, "key": pl.String, "value": pl.String})]
    by_word = {str(key[0]): part for key, part in few.partition_by("word", as_dict=True).items()}
    for scope, key, word, pattern in _PATTERNS:
        if word not in by_word:
            continue
        value = pl.col("text").str.extract(pattern)
        hits = by_word[word].select("line", scope=pl.lit(scope), key=pl.lit(key), value=value).drop_nulls("value")
        if scope == "failure":
            hits = hits.with_columns(value=pl.Series([redact(said) for said in hits["value"]], dtype=pl.String))
        out.append(hits)
    return pl.concat(out).sort("line", maintain_order=True)


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
