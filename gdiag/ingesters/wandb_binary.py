"""Binary `.wandb` files: history, system statistics, configuration, console and exit of a run.

Field numbers are those of wandb/proto/wandb_internal.proto.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import columns, flat, proto, wandb_log, wandb_system
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.run_config import canonical_config
from gdiag.ingesters.values import escape
from gdiag.model import Exit, Source

FORMAT = "wandb"
_HISTORY, _CONFIG, _STATS, _OUTPUT, _RUN, _EXIT = 2, 5, 7, 13, 17, 18
_LINES: Final = 400
"""Console lines kept from the end."""


@dataclass(slots=True)
class _Run:
    rows: list[dict[bytes, bytes]] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    stats: list[dict[str, flat.Cell]] = field(default_factory=list)
    config: dict[str, object] = field(default_factory=dict)
    console: list[str] = field(default_factory=list)
    name: str | None = None
    exit_code: int | None = None
    unread: int = 0


def recognise(given: Input) -> float:
    """The file's magic."""
    return 1.0 if given.head.startswith(wandb_log.MAGIC) else 0.0


def read(given: Input, options: Options) -> Reading:
    """Everything before any damage, and after it from the next block on.

    Raises:
        InputError: no record can be read.
    """
    damage, run = wandb_log.Damage(), _Run()
    count = 0
    for count, record in enumerate(wandb_log.records(given.data(), damage), 1):
        try:
            _take(run, record, count)
        except (ValueError, RecursionError):
            run.unread += 1
    if not count:
        raise InputError(f"{given.path} is a .wandb file without a readable record")
    notes = _notes(run, damage)
    config = canonical_config(run.config)
    gpus = wandb_system.gpus(run.stats)
    exit_, events = _exit(run)
    if not run.rows:
        notes.append("no history: nothing was logged")
        source = Source(given.path, FORMAT, 0, damage.broken + run.unread, {}, tuple(notes))
        return Reading(source, gpus=gpus, events=events, config=config, exit=exit_, run_name=run.name)
    got = columns.reading(given.path, FORMAT, _frame(run), options, rejects=_rejects(damage, run), notes=notes)
    return Reading(
        got.source, got.steps, got.layers, got.layer_columns, gpus=gpus, events=events, rejects=got.rejects, config={**got.config, **config},
        exit=exit_, run_name=run.name,
    )  # fmt: skip


def _take(run: _Run, record: bytes, number: int) -> None:
    for kind, body in proto.fields(record):
        if not isinstance(body, bytes):
            continue
        if kind == _HISTORY:
            _history(run, body, number)
        elif kind == _STATS:
            run.stats.append(_stats(body))
        elif kind == _CONFIG:
            _config(run, body)
        elif kind == _RUN:
            for part, value in proto.fields(body):
                if part == 4 and isinstance(value, bytes):
                    _config(run, value)
                elif part == 8:
                    run.name = proto.text(value) or None
        elif kind == _OUTPUT:
            run.console.extend(proto.text(v) for part, v in proto.fields(body) if part == 3)
            del run.console[:-_LINES]
        elif kind == _EXIT:
            codes = [v for part, v in proto.fields(body) if part == 1 and isinstance(v, int)]
            run.exit_code = proto.signed(codes[0]) if codes else 0


def _history(run: _Run, body: bytes, number: int) -> None:
    row: dict[bytes, bytes] = {}
    step: int | None = None
    position, end = 0, len(body)
    while position < end:
        # Nearly every item is short: key in field 1, JSON text in field 16, all lengths one byte.
        if body[position] == 10 and position + 1 < end and body[position + 1] < 128:
            stop = position + 2 + body[position + 1]
            item = body[position + 2 : stop]
            if len(item) > 4 and item[0] == 10 and (size := item[1]) < 128 and item[2 + size : 4 + size] == b"\x82\x01":
                row[item[2 : 2 + size]] = item[5 + size :] if item[4 + size] < 128 else item[6 + size :]
            else:
                _item(row, item)
            position = stop
            continue
        tag, after = proto.varint(body, position)
        if tag & 7 == 0:
            _, position = proto.varint(body, after)
            continue
        size, start = proto.varint(body, after)
        if tag == 10:
            _item(row, body[start : start + size])
        elif tag == 18:
            step = next(
                (proto.signed(v) for n, v in proto.fields(body[start : start + size]) if n == 1 and isinstance(v, int)),
                0,
            )
        position = start + size
    if row:
        run.rows.append(row)
        run.steps.append(step)
        run.numbers.append(number)


def _item(row: dict[bytes, bytes], item: bytes) -> None:
    """The general form: a key or a nested key, and a value."""
    key, nested, value = b"", [], b""
    for number, part in proto.fields(item):
        if isinstance(part, bytes):
            if number == 1:
                key = part
            elif number == 2:
                nested.append(part)
            elif number == 16:
                value = part
    row[key or b"/".join(nested)] = value


def _stats(body: bytes) -> dict[str, flat.Cell]:
    row: dict[str, flat.Cell] = {}
    for number, part in proto.fields(body):
        if not isinstance(part, bytes):
            continue
        if number == 2:
            clock = {n: v for n, v in proto.fields(part) if isinstance(v, int)}
            row["_timestamp"] = clock.get(1, 0) + clock.get(2, 0) / 1e9
        elif number == 3:
            cells: dict[bytes, bytes] = {}
            _item(cells, part)
            for key, value in cells.items():
                try:
                    row[proto.text(key)] = float(value)
                except ValueError:
                    continue
    return row


def _config(run: _Run, body: bytes) -> None:
    for number, part in proto.fields(body):
        if number == 1 and isinstance(part, bytes):
            cells: dict[bytes, bytes] = {}
            _item(cells, part)
            for key, value in cells.items():
                try:
                    run.config[proto.text(key)] = json.loads(value)
                except (ValueError, RecursionError):
                    continue


def _frame(run: _Run) -> pl.DataFrame:
    """History rows as text or numbers, with the record's number as line."""
    keys = dict.fromkeys(key for row in run.rows for key in row)
    series: dict[str, pl.Series] = {}
    for key in keys:
        cells = [row.get(key) for row in run.rows]
        name = proto.text(key)
        try:
            series[name] = pl.Series([None if c is None else float(c) for c in cells], dtype=pl.Float64)
        except ValueError:
            loaded = [_load(name, c) for c in cells]
            frame = flat.to_frame(loaded)
            series.update({c: frame[c] for c in frame.columns})
    if "_step" not in series and any(step is not None for step in run.steps):
        series["_step"] = pl.Series(run.steps, dtype=pl.Int64)
    if flat.LINE in series:
        series[flat.LOGGED] = series.pop(flat.LINE)
    return pl.DataFrame(series).with_columns(pl.Series(flat.LINE, run.numbers, dtype=pl.Int64))


def _load(name: str, cell: bytes | None) -> dict[str, flat.Cell]:
    if cell is None:
        return {}
    try:
        return flat.flatten({name: json.loads(cell)})
    except (ValueError, RecursionError):
        return {name: cell.decode("utf-8", errors="replace")}


def _exit(run: _Run) -> tuple[Exit, pl.DataFrame | None]:
    if run.exit_code == 0:
        return "clean", None
    # The hook that reports an interrupt may fail itself: its own error says nothing.
    lines = [line.strip() for piece in run.console for line in piece.splitlines()]
    trace = next((line for word in ("KeyboardInterrupt", "Error") for line in reversed(lines) if word in line), "")
    said = "no exit record" if run.exit_code is None else f"exit code {run.exit_code}"
    text = escape(f"{said}: {trace}" if trace else said, 200)
    event = {"kind": ["exit"], "value": [None if run.exit_code is None else float(run.exit_code)], "text": [text]}
    # Without a record and without an error the run was killed, or is still going: nobody knows.
    ended: Exit = "unknown" if run.exit_code is None and not trace else "abnormal"
    return ended, pl.DataFrame(event, schema={"kind": pl.String, "value": pl.Float64, "text": pl.String})


def _notes(run: _Run, damage: wandb_log.Damage) -> list[str]:
    notes = []
    if damage.cut:
        notes.append("the file is cut off: everything before is used")
    if damage.broken or run.unread:
        notes.append(f"{damage.broken + run.unread} damaged pieces skipped")
    if run.exit_code is None:
        notes.append("no exit record: the run was killed or is still going")
    return notes


def _rejects(damage: wandb_log.Damage, run: _Run) -> pl.DataFrame | None:
    lost = damage.broken + run.unread
    if not lost:
        return None
    rows = [(None, f"{lost} records with a wrong checksum or content", "")]
    return pl.DataFrame(rows, schema={"line": pl.Int64, "reason": pl.String, "text": pl.String}, orient="row")
