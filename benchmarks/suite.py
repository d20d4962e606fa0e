"""Runs gdiag on some 450 labelled, simulated runs and prints how right it is.

python benchmarks/suite.py                     the range for tuning
python benchmarks/suite.py --range report      the range for reporting
python benchmarks/suite.py --only spike,nan -v misses with the command that writes each
python benchmarks/suite.py --write DIR         the cases as folders with a truth.json each
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.cases import RANGES, Recipe, recipes
from benchmarks.figures import Outcome, figures
from benchmarks.matching import judge
from gdiag.simulate.case import write


def outcome(recipe: Recipe) -> Outcome:
    """Make a case, diagnose it in this process, hold the report against the truth."""
    from gdiag.ingesters import load
    from gdiag.pipeline import diagnose

    case = recipe.make()
    with tempfile.TemporaryDirectory() as folder:
        for name, content in case.files.items():
            (Path(folder) / name).write_bytes(content)
        started = time.perf_counter()
        try:
            report = diagnose(load([folder]))
        except Exception:  # noqa: BLE001 a crash is a result here
            return Outcome(
                recipe.command, case.truth, None, traceback.format_exc(limit=-3), time.perf_counter() - started
            )
        return Outcome(recipe.command, case.truth, judge(report, case.truth), "", time.perf_counter() - started)


def main() -> None:
    """Run the suite as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--range", choices=sorted(RANGES), default="tune")
    parser.add_argument("--only", default="", help="comma-separated faults")
    parser.add_argument("--scale", type=float, default=1.0, help="this many times as many cases")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", type=Path, help="write the cases here instead")
    parser.add_argument("-v", "--verbose", action="store_true", help="list every miss and false incident")
    args = parser.parse_args()
    chosen = list(recipes(RANGES[args.range], frozenset(filter(None, args.only.split(","))), args.scale))
    if args.write is not None:
        for recipe in chosen:
            write(recipe.make(), args.write / f"{recipe.fault}-{recipe.setup.seed}")
        return
    started = time.perf_counter()
    if args.jobs > 1:
        with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
            outcomes = pool.map(outcome, chosen, chunksize=4)
    else:
        outcomes = [outcome(recipe) for recipe in chosen]
    sys.stdout.write(figures(outcomes, verbose=args.verbose))
    sys.stdout.write(f"{len(outcomes)} runs of range {args.range!r} in {time.perf_counter() - started:.0f} s\n")


if __name__ == "__main__":
    main()
