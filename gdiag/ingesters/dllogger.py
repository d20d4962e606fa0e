"""DLLogger files of NVIDIA's example trainers: `DLLL {"step": [1, 20], "data": {"loss": 2.1}}`, one event a line.

`step` is a number, a list of epoch and iteration, an empty list for the summary, or "PARAMETER" for settings. Iterations that
begin again with every epoch are counted on; a row of the epoch alone (its validation) stands at the epoch's last iteration.
Known from source code (dllogger/logger.py, JSONStreamBackend).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import polars as pl

from gdiag.ingesters import console, flat, json_events
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "dllogger"
_MARK: Final = "DLLL "
_SNIFF: Final = re.compile(rb"\bDLLL \{")
_RENAME: Final = {"step_loss": "loss", "average_loss": "loss", "train_loss": "loss", "train.loss": "loss"}


def recognise(given: Input) -> float:
    """By its marks."""
    return 1.0 if console.matches(given, _SNIFF, (b"DLLL {",)) else 0.0


def read(given: Input, options: Options) -> Reading:
    """All metrics of the file, one row a step.

    Raises:
        InputError: no event of a step has a metric.
    """
    table = console.lines_of(given)
    marked = table.filter(pl.col("text").str.contains(_MARK, literal=True))
    bad: list[dict[str, object]] = []
    events = json_events.events(marked, _MARK, "a DLLL event that is no JSON", bad)
    logged = (e for e in events if e[1].get("type", "LOG") == "LOG" and isinstance(e[1].get("data"), dict))
    wide = _frame(list(_placed(logged)))
    rejects = pl.DataFrame(bad, schema=console.no_rejects().schema)
    rest = table.filter(~pl.col("line").is_in(marked["line"].to_list()))
    return console.finish(given, options, FORMAT, Found(rest, wide, rejects), rename=_RENAME)


def _placed(events: Iterator[tuple[int, dict[str, object]]]) -> Iterator[dict[str, flat.Cell]]:
    """Rows with their step: what the finished epochs had, and the iteration in this one where it begins again."""
    before = last = 0
    for line, event in events:
        said = event.get("step")
        at: list[object] = said if isinstance(said, list) else [said]
        numbers = [n for n in at if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**53]
        if not numbers or len(numbers) < len(at):
            continue
        if len(at) > 1 or at is not said:
            if before + numbers[-1] < last and len(at) > 1:
                before = last
            last = before + numbers[-1]
        elapsed = _number(event.get("elapsedtime"))
        yield {
            "line": line, "step": last, "time": _number(event.get("timestamp")), **({"elapsed": elapsed} if elapsed is not None else {}),
            **{name: cell for name, cell in flat.flatten(event["data"]).items() if isinstance(cell, int | float)},  # type: ignore[arg-type]
        }  # fmt: skip


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except ValueError:
        return None


def _frame(rows: list[dict[str, flat.Cell]]) -> pl.DataFrame:
    """One row a step: events of one step that say different things are joined."""
    joined: list[dict[str, flat.Cell]] = []
    for row in rows:
        own = {name for name in row if name not in ("line", "step", "time", "elapsed")}
        if joined and joined[-1]["step"] == row["step"] and not own & set(joined[-1]):
            joined[-1] |= {name: row[name] for name in own}
        elif own:
            joined.append(row)
    names = dict.fromkeys(["line", "step", *(name for row in joined for name in row)])
    types = {name: pl.Int64 if name in ("line", "step") else pl.Float64 for name in names}
    return pl.DataFrame(joined, schema=types, strict=False)
