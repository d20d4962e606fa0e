"""ibswinfo: a switch's power supplies, fans and temperature."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.model import Source
from gdiag.schema import SWITCH

FORMAT: Final = "ibswinfo"
_LONGEST: Final = 1 << 9
"""Characters of a line that are looked at."""
_CELL: Final = re.compile(r"^( *)([\w#/ ().:-]+?) *\| ?(.*?)\s*$")
_CERTAIN: Final = re.compile(rb"(?m)^PSID +\| |^PSU\d+ status +\|")


def recognise(given: Input) -> float:
    return 0.97 if _CERTAIN.search(given.head[:16384]) else 0.0


def read(given: Input, options: Options) -> Reading:  # noqa: ARG001 - nothing to map
    """Facts of scope `switch NAME`: key as printed (`PSU1 DC power`), value as printed, empty where it is missing.

    Raises:
        InputError: no state of a switch is in it.
    """
    lines = [line[:_LONGEST] for line in given.data().decode("utf-8", "replace").splitlines()]
    rows: list[tuple[int, int, str, str]] = []
    names: dict[int, str] = {}
    keys: set[str] = set()
    above, number = "", -1
    for at, line in enumerate(lines, start=1):
        found = _CELL.match(line)
        if found is None:
            continue
        indent, key, value = len(found[1]), found[2].strip(), found[3].strip()
        if indent:
            key = f"{above} {key}"
        else:
            above = key.split()[0] if key.startswith("PSU") else ""
        if number < 0 or key in keys or key == "part number":  # each key stands once in a screen, this one first
            number, keys = number + 1, set()
        keys.add(key)
        if key in {"GUID", "node description"} and value:
            names[number] = value
        rows.append((at, number, key, value))
    if not rows:
        raise InputError(f"{given.path} is the inventory of ibswinfo but holds no line of it")
    table = pl.DataFrame(
        [(at, f"{SWITCH}{names.get(n, n + 1)}", key, value) for at, n, key, value in rows],
        schema={"line": pl.Int64, "scope": pl.String, "key": pl.String, "value": pl.String}, orient="row",
    ).with_columns(section=pl.lit(None, pl.Int32))  # fmt: skip
    said = [
        f"{SWITCH}{names.get(n, n + 1)}: {_said([(k, v) for _, m, k, v in rows if m == n])}" for n in range(number + 1)
    ]
    return Reading(Source(given.path, FORMAT, len(rows), notes=tuple(said[:20])), facts=table)


def _said(cells: list[tuple[str, str]]) -> str:
    supplies = sum(key.startswith("PSU") and key.endswith(" status") and key.count(" ") == 1 for key, _ in cells)
    fans = sum(key.startswith("fan#") for key, _ in cells)
    product = next((value for key, value in cells if key == "product name"), "")
    return f"{product + ', ' if product else ''}{supplies} power supplies, {fans} fans"
