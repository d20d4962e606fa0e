# ruff: noqa: T201
"""Reads every file below a path and prints what came of it, one line a file.

    python tools/survey.py PATH [--expected EXPECTED.tsv] [--only metrics/] [--failures]

With an expectation file (columns file, expect, rows, why; expect is read, refuse, evidence or reference; paths relative to the
file's folder) each line ends with whether it holds: `read` files must be read with that row count, `refuse` files refused in one
sentence, and where the reason is CONDITION either will do, if the sentence names the form. `reference` files are no logs: anything
but a traceback holds.
"""

from __future__ import annotations

import argparse
import csv
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import load
from gdiag.schema import Records

CONDITION = "where gdiag supports the form"
UNNAMED = "is of no format that gdiag knows"


@dataclass(frozen=True)
class Outcome:
    format: str
    rows: int | None
    figures: str
    verdict: str
    said: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--expected", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--failures", action="store_true", help="print only what does not hold")
    args = parser.parse_args()
    expected = expectations(args.expected) if args.expected else {}
    held = total = 0
    print("file\tformat\trows\tsteps\tloss first/last/min/max\tnon-finite\trejects\tverdict\tholds")
    for path in sorted(p for p in args.path.rglob("*") if p.is_file()) if args.path.is_dir() else [args.path]:
        name = str(path.relative_to(args.expected.parent)) if args.expected else str(path)
        if args.only not in name or (expected and name not in expected):
            continue
        outcome = survey(path)
        holds = judge(outcome, *expected[name]) if name in expected else ""
        total += 1
        held += not holds.startswith("NO")
        if not args.failures or holds.startswith("NO"):
            rows = "" if outcome.rows is None else outcome.rows
            print(f"{name}\t{outcome.format}\t{rows}\t{outcome.figures}\t{outcome.verdict}\t{holds}  {outcome.said}")
    print(f"{held} of {total} hold" if expected else f"{total} files")
    return 0 if held == total or not expected else 1


def expectations(path: Path) -> dict[str, tuple[str, str, str]]:
    """File → what is expected of it, its row count and the reason."""
    with path.open(newline="") as lines:
        return {name: (expect, rows, why) for name, expect, rows, why in list(csv.reader(lines, delimiter="\t"))[1:]}


def survey(path: Path) -> Outcome:
    try:
        records = load([path])
    except InputError as error:
        return Outcome("-", None, "\t\t\t", "refused", str(error).replace(str(path), path.name))
    except Exception:  # noqa: BLE001 (a traceback is what this looks for)
        return Outcome("-", None, "\t\t\t", "TRACEBACK", traceback.format_exc().splitlines()[-1])
    source = records.sources[0]
    return Outcome(source.format, source.rows, figures(records), "read", "; ".join(source.notes))


def figures(records: Records) -> str:
    steps = records.steps
    span = "" if not steps.height else f"{steps['step'].min()!r}-{steps['step'].max()!r}"
    loss, wild = "", 0
    if "loss" in steps.columns and steps["loss"].count():
        values = steps["loss"].drop_nulls()
        finite = values.filter(values.is_finite())
        low, high = finite.min(), finite.max()
        loss = f"{values[0]:.4g}/{values[-1]:.4g}/{number(low)}/{number(high)}" if finite.len() else "none finite"
    metrics = [c for c, kind in steps.schema.items() if kind == pl.Float64]
    if metrics:
        wild = sum(steps.select((pl.col(m).is_not_null() & ~pl.col(m).is_finite()).sum()).item() for m in metrics)
    return f"{span}\t{loss}\t{wild}\t{records.rejects.height}"


def number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)


def judge(outcome: Outcome, expect: str, rows: str, why: str = "") -> str:
    """Whether the outcome is what was expected; a refusal that names the form holds where reading is conditional."""
    if outcome.verdict == "TRACEBACK":
        return "NO: traceback"
    if expect == "refuse":
        return "yes" if outcome.verdict == "refused" else "NO: was read"
    if expect in {"evidence", "reference"}:
        return "yes"
    if outcome.verdict != "read":
        if why.startswith(CONDITION):
            return "holds (named)" if UNNAMED not in outcome.said else "NO: was refused without a name"
        return "NO: was refused"
    if rows and outcome.rows != int(rows):
        return f"NO: {rows} rows expected"
    return "yes"


if __name__ == "__main__":
    sys.exit(main())
