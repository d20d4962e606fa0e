"""nccl-tests JSON (-J): versions 1 and 3, whole or cut; the environment inside is never read."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from gdiag.ingesters.text import redact

_SLOW_PROCESS: Final = 1.2
"""A process that takes this many times the median of all processes is slow."""


def looks_like(content: bytes) -> bool:
    """Whether the content begins as an nccl-tests JSON document, after whatever blanks."""
    if content[:256].lstrip()[:1] != b"{":
        return False
    return any(key in content for key in (b'"nccl_version"', b'"out_of_place"')) and b'"config"' in content


def read(text: str) -> tuple[pl.DataFrame, pl.DataFrame, list[tuple[str, str, str]], bool]:
    """Rows as nccl_rows.rows gives them, devices, facts (scope, key, value), and whether the document is whole."""
    try:
        document: Any = json.loads(text)
        whole = True
    except ValueError:
        document, whole = _salvaged(text), False
    results = [r for r in document.get("results", []) if isinstance(r, dict)]
    rows = [row for number, result in enumerate(results) for row in _sides(number + 1, result)]
    config = document.get("config") if isinstance(document.get("config"), dict) else {}
    return pl.DataFrame(rows, schema=_schema(), orient="row"), _devices(config), list(_facts(document, config)), whole


def _sides(number: int, result: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for side, in_place in (("out_of_place", False), ("in_place", True)):
        cells = result.get(side)
        if not isinstance(cells, dict):
            continue
        time = _number(cells.get("time", cells.get("cpu_time")))
        busbw = _number(cells.get("bus_bw"))
        if time is None or busbw is None:
            continue
        spread = result.get(f"{side}_per_iter")
        spread = spread if isinstance(spread, dict) else {}
        root = _number(result.get("root"))
        yield (
            number, _whole(result.get("size")), _whole(result.get("count")), str(result.get("type")), str(result.get("redop")),
            None if root is None else int(root), in_place, "cpu_time" in cells, time, _number(cells.get("alg_bw")), busbw,
            _number(cells.get("nwrong")), _number(spread.get("min_us")), _number(spread.get("max_us")),
            _number(spread.get("p99_us")), _number(spread.get("cv_pct")),
        )  # fmt: skip


def _schema() -> dict[str, Any]:
    figures = dict.fromkeys(("time", "algbw", "busbw", "wrong", "t_min", "t_max", "t_p99", "t_cv"), pl.Float64)
    return {"line": pl.Int64, "size": pl.Int64, "count": pl.Int64, "type": pl.String, "redop": pl.String,
            "root": pl.Int32, "in_place": pl.Boolean, "cpu_time": pl.Boolean, **figures}  # fmt: skip


def _devices(config: dict[str, Any]) -> pl.DataFrame:
    listed = config.get("devices")
    rows = [
        (None, _whole(d.get("rank")), _whole(d.get("group")), _whole(d.get("pid")), d.get("hostname"),
         _whole(d.get("device")), d.get("device_hex"), d.get("device_info"))
        for d in (listed if isinstance(listed, list) else []) if isinstance(d, dict)
    ]  # fmt: skip
    schema = {"line": pl.Int64, "rank": pl.Int32, "group": pl.Int32, "pid": pl.Int64, "host": pl.String,
              "gpu": pl.Int32, "bus_id": pl.String, "model": pl.String}  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _facts(document: dict[str, Any], config: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    arguments = document.get("args")
    if isinstance(arguments, list) and arguments:
        name = re.search(r"(\w+?)_perf", str(arguments[0]))
        if name:
            yield "config", "collective", name[1]
    if "nccl_version" in document:
        yield "version", "nccl", str(document["nccl_version"])
    names = {"nthreads": "threads", "ngpus": "gpus_per_thread", "minimum_bytes": "min_bytes", "maximum_bytes": "max_bytes",
             "iterations": "iterations", "validation": "validation"}  # fmt: skip
    for key, name_of in names.items():
        if key in config:
            yield "config", name_of, str(config[key])
    average = document.get("average_bus_bandwidth", document.get("average_bus_bandwidith"))
    if isinstance(average, dict):
        yield "footer", "average_busbw", str(average.get("bandwidth", average.get("bandwidith")))
    bounds = document.get("out_of_bounds")
    if isinstance(bounds, dict):
        yield (
            "footer",
            "out_of_bounds",
            f"{bounds.get('count')} {'OK' if str(bounds.get('okay')) == 'true' else 'FAILED'}",
        )
    yield from _processes(document)
    for error in document.get("errors") or []:
        if str(error).strip() not in {"", "no error"}:
            yield "failure", "test", redact(str(error), 200)


def _processes(document: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Processes whose longest times stand out: (timing, slow_process, "process ratio sizes"), the slowest first."""
    slow: dict[int, list[float]] = {}
    measured = 0
    for result in document.get("results", []):
        for side in ("out_of_place_per_iter", "in_place_per_iter"):
            spread = result.get(side) if isinstance(result, dict) else None
            table = _matrix(spread) if isinstance(spread, dict) else None
            if table is None:
                continue
            measured += 1
            middle = [statistics.median(times) for times in table]
            usual = statistics.median(middle)
            for process, time in enumerate(middle):
                if usual > 0 and time > _SLOW_PROCESS * usual:
                    slow.setdefault(process, []).append(time / usual)
    for process, ratios in sorted(slow.items(), key=lambda item: -len(item[1])):
        if 2 * len(ratios) >= measured:
            yield "timing", "slow_process", f"{process} {statistics.median(ratios):.3g} {len(ratios)}/{measured}"


def _matrix(spread: dict[str, Any]) -> list[list[float]] | None:
    """Times [µs] per process and iteration, whichever of them is written as the outer list; None where absent."""
    written = spread.get("per_process_max_times_us")
    if not isinstance(written, list) or not all(isinstance(times, list) for times in written):
        return None
    rows = [[n for value in times if (n := _number(value)) is not None] for times in written]
    iterations = len(spread.get("times_us") or [])
    if not rows or not rows[0] or any(len(times) != len(rows[0]) for times in rows):
        return None
    if len(rows) == iterations != len(rows[0]):
        rows = [list(times) for times in zip(*rows, strict=True)]
    return rows if len(rows) >= 3 else None


def _salvaged(text: str) -> dict[str, Any]:
    """What a cut document still holds: its scalars, the configuration, and every complete result."""
    decoder = json.JSONDecoder()
    document: dict[str, Any] = {}
    version = re.search(r'"nccl_version"\s*:\s*(\d+)', text)
    if version:
        document["nccl_version"] = version[1]
    for key in ("args", "config"):
        start = re.search(rf'"{key}"\s*:\s*', text)
        if start:
            try:
                document[key] = decoder.raw_decode(text, start.end())[0]
            except ValueError:
                continue
    document["results"] = results = []
    at = re.search(r'"results"\s*:\s*\[\s*', text)
    position = at.end() if at else len(text)
    while position < len(text) and text[position] == "{":
        try:
            result, position = decoder.raw_decode(text, position)
        except ValueError:
            break
        results.append(result)
        following = re.compile(r"\s*,\s*").match(text, position)
        position = following.end() if following else len(text)
    return document


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None or number != number else int(number)
