"""Devices and facts of nccl-tests output: rank list, versions, configuration, footers, failures, NCCL INFO lines."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

_DEVICE: Final = (
    r"^\s*#?\s*Rank\s+(?P<rank>\d+)\s+(?:Group\s+(?P<group>\d+)\s+)?(?:Pid\s+(?P<pid>\d+)\s+)?on\s+(?P<host>\S+)\s+"
    r"device\s+(?P<gpu>\d+)\s+\[(?P<bus_id>[^\]]*)\]\s*(?P<model>.*?)\s*$"
)
_PATTERNS: Final[tuple[tuple[str, str, str], ...]] = (
    ("version", "nccl_tests", r"nccl-tests version (\S+(?: \(\w+\))?)"),
    ("version", "nccl", r"nccl-library=(\d+)"),
    ("version", "nccl", r"NCCL version (\d[\w.+-]*)"),
    ("version", "nccl", r"compiled with NCCL (\S+)"),
    ("version", "rccl_tests", r"rccl-tests: Version (\S+)"),
    ("config", "collective", r"Collective test starting: (\w+?)_perf"),
    ("config", "collective", r"(?:^|[/\s])(\w+?)_perf(?:_mpi)?\s+-"),
    ("config", "threads", r"nThread (\d+)"),
    ("config", "gpus_per_thread", r"nGpus (\d+)"),
    ("config", "min_bytes", r"minBytes (\d+)"),
    ("config", "max_bytes", r"maxBytes (\d+)"),
    ("config", "warmup_iterations", r"warmup iters: (\d+)"),
    ("config", "iterations", r" iters: (\d+)"),
    ("config", "validation", r"validation: (\d+)"),
    ("footer", "out_of_bounds", r"Out of bounds values : (\d+ \w+)"),
    ("footer", "average_busbw", r"Avg bus bandwidth\s*: ([\d.e+]+)"),
    ("footer", "average_verdict", r"Avg bus bandwidth\s*: [\d.e+]+ +(OK|FAILED)"),
    ("wrong", "rank", r"^\s*rank=(\d+) #wrong="),
    ("failure", "test", r"(\S*:? ?Test (?:NCCL|CUDA) failure .*)$"),
    ("failure", "timeout", r"(\S*: Test timeout .*)$"),
    ("failure", "gpus", r"(Invalid number of GPUs: .*)$"),
    ("failure", "launch", r"(There are not enough slots available.*|.*process returned a non-zero exit code.*)$"),
    ("nccl", "network", r"Using network (.+?)\s*$"),
    ("nccl", "ib_devices", r"NET/IB : Using (.+?)(?: ; OOB| \[RO\]|$)"),
    ("nccl", "ofi_provider", r"Selected [Pp]rovider is (\S+)"),
    ("nccl", "ofi_nics", r"found (\d+) nics"),
    ("nccl", "coll_channels", r"(\d+) coll channels"),
    ("nccl", "nvls_channels", r"(\d+) nvls channels"),
    ("nccl", "topology_file", r"NCCL_TOPO_FILE set (?:by environment )?to (\S+)"),
    ("nccl", "p2p_disabled", r"(P2P is disabled\b.*)$"),
    ("nccl", "nvls_unavailable", r"(NVLS multicast support is not available\b.*)$"),
    ("nccl", "duplicate_gpu", r"(Duplicate GPU detected.*)$"),
)  # fmt: skip
_TRANSPORT: Final = r"via ((?:P2P|SHM|NET|COLLNET)[\w/ ]*?(?:/\d+)?(?:/GDRDMA|/Shared)*)(?:\s|$|\()"


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
    words = ["version", "Version", "compiled", "Collective", "_perf", "nThread", "Out of bounds", "Avg bus", "#wrong=",
             "Test ", "Invalid", "slots", "non-zero", "network", "NET/", "rovider", "nics", "channels", "TOPO",
             "P2P is", "NVLS", "Duplicate"]  # fmt: skip
    few = lines.filter(pl.col("text").str.contains_any(words))
    out: list[tuple[int, str, str, str]] = []
    for scope, key, pattern in _PATTERNS:
        hits = few.select("line", value=pl.col("text").str.extract(pattern)).drop_nulls("value")
        if scope == "nccl":
            hits = hits.unique("value", keep="first", maintain_order=True)
        out += [(line, scope, key, value) for line, value in hits.iter_rows()]
    via = lines.filter(pl.col("text").str.contains(" via ", literal=True))
    carried = via.select("line", value=pl.col("text").str.extract(_TRANSPORT)).drop_nulls("value")
    carried = carried.with_columns(value=pl.col("value").str.replace(r"/\d+", ""))
    for value, line, count in (
        carried.group_by("value", maintain_order=True).agg(pl.col("line").first(), pl.len()).iter_rows()
    ):
        out.append((line, "nccl", "transport", f"{value} ×{count}"))
    out.sort()
    return pl.DataFrame(
        out, schema={"line": pl.Int64, "scope": pl.String, "key": pl.String, "value": pl.String}, orient="row"
    )


def ib_device_count(value: str) -> int:
    """Network devices named by a `NET/IB : Using [0]mlx5_0:1/IB [1]…` line."""
    return len(set(re.findall(r"\[(\d+)\]", value)))
