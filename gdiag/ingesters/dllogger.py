"""DLLogger files of NVIDIA's example trainers: `DLLL {"step": [1, 20], "data": {"loss": 2.1}}`, one event a line.

`step` is a number, a list of epoch and iteration (a third number is the validation's iteration or how many the epoch has), an
empty list for the summary, or "PARAMETER" for settings. Iterations that begin again with every epoch are counted on; a row of the
epoch alone (its validation) stands at the epoch's last iteration.
Known from source code (dllogger/logger.py, JSONStreamBackend).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import polars as pl

from gdiag.ingesters import console, flat, json_events
from gdiag.ingesters.console import Found
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.run_config import canonical_config
from gdiag.ingesters.values import whole

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
    logged = [e for e in events if e[1].get("type", "LOG") == "LOG" and isinstance(e[1].get("data"), dict)]
    wide = _frame(list(_rows(logged)))
    said = [canonical_config(event["data"]) for _, event in logged if event.get("step") == "PARAMETER"]  # type: ignore[arg-type]
    config = {name: value for settings in reversed(said) for name, value in settings.items()}
    rejects = pl.DataFrame(bad, schema=console.no_rejects().schema)
    rest = table.filter(~pl.col("line").is_in(marked["line"].to_list()))
    return console.finish(given, options, FORMAT, Found(rest, wide, rejects, config=config), rename=_RENAME)


def _position(said: object) -> tuple[int, ...] | None:
    """Epoch and iteration, the epoch alone, () for the summary; a plain number is an iteration of one epoch. Else None."""
    at: list[object] = said if isinstance(said, list) else [0, said]
    read = [whole(n, bits=53) if isinstance(n, str) else n for n in at]
    numbers = tuple(n for n in read if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**53)
    return numbers[:2] if len(numbers) == len(at) else None


def _steps(positions: Sequence[tuple[int, ...]]) -> list[int]:
    """The step of every position: iterations on top of what the epochs before had, where they begin again with each.

    They do where the first of an epoch lies below the last of the epoch before or repeats the only one that it had; those that
    are counted over the whole run lie above. Without iterations the epochs are the steps.
    """
    iterations = any(len(at) > 1 for at in positions)
    below: dict[int, int] = {}
    steps: list[int] = []
    epoch = first = last = step = 0
    for at in positions:
        if len(at) > 1:
            epoch_before, epoch, iteration = epoch, *at
            if epoch not in below:
                base = below.get(epoch_before, 0)
                again = bool(below) and (iteration < last or (iteration == last and (base > 0 or first == last)))
                below[epoch] = base + last + (iteration == 0) if again else base
                first = iteration
            last = iteration
            step = below[epoch] + iteration
        elif at and not iterations:
            step = at[0]
        steps.append(step)
    return steps


def _rows(events: Iterable[tuple[int, dict[str, object]]]) -> Iterator[dict[str, flat.Cell]]:
    """Rows with their step; of the summary what no row before it names, for the rest are means over the run."""
    placed = [(line, event, at) for line, event in events if (at := _position(event.get("step"))) is not None]
    known: set[str] = set()
    for (line, event, at), step in zip(placed, _steps([at for _, _, at in placed]), strict=True):
        cells = flat.flatten(event["data"])  # type: ignore[arg-type]
        metrics = {n: c for n, c in cells.items() if isinstance(c, int | float) and (at or (known and n not in known))}
        known |= metrics.keys()
        elapsed = _number(event.get("elapsedtime"))
        yield {
            "line": line, "step": step, "time": _number(event.get("timestamp")),
            **({"elapsed": elapsed} if elapsed is not None else {}), **metrics,
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
