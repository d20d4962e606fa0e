"""Finds samples seen again, left out at a resume, and spikes that come back at the same samples.

What it checks: logged sample ids along the run: falling back (except into a new epoch), or leaping ahead at a restart;
and loss events whose batches share ids with an earlier event's, or stand at the same place of another epoch.

Why it matters: ids are proof where loss curves only suggest. Repeated samples make the loss look better than the model
is, and the end of a repeated stretch looks like a jump; spikes that return with their samples come from the data.

What to do: save and restore the loader's position with the checkpoint; look at the samples named.
"""

from __future__ import annotations

from gdiag.measures.run import RunView
from gdiag.measures.sample_ids import Breach, Return
from gdiag.model import Finding, Measure, Severity

CODE = "GD115"
NAME = "repeated-data"
NEEDS: tuple[str, ...] = ("steps.sample_start|steps.epoch",)


def analyze(run: RunView, *, most: int = 10) -> list[Finding]:
    """A finding per place. most: places reported of each kind."""
    found = [_breach(run, b) for b in run.sample_breaches[:most]]
    return found + [_return(run, r) for r in run.sample_returns[:most]]


def _breach(run: RunView, seen: Breach) -> Finding:
    repeated = seen.kind == "repeated_samples"
    what = "are seen again" if repeated else "are left out"
    where = "after the restart " if seen.at_restart else ""
    return Finding(
        CODE, NAME, Severity.WARNING if repeated else Severity.INFO,
        f"Samples {seen.first} to {seen.last - 1} {what} {where}from step {seen.step} on",
        run.where(step=seen.step),
        (
            Measure("kind", seen.kind),
            Measure("samples", seen.samples),
            Measure("sample_start", seen.first),
            Measure("sample_end", seen.last),
            Measure("at_restart", seen.at_restart),
        ),
    )  # fmt: skip


def _return(run: RunView, seen: Return) -> Finding:
    ids = seen.first is not None and seen.last is not None
    where = f"samples {seen.first} to {(seen.last or 1) - 1}" if ids else "the same place of the epoch"
    evidence = [
        Measure("kind", "same_samples"),
        Measure("returns_at_same_samples", True),
        Measure("earlier_step", seen.earlier, "step"),
    ]
    if seen.first is not None and seen.last is not None:
        evidence += [Measure("sample_start", seen.first), Measure("sample_end", seen.last)]
    return Finding(
        CODE, NAME, Severity.INFO,
        f"The loss events at steps {seen.earlier} and {seen.step} stand at {where}",
        run.where(step=seen.step), tuple(evidence),
    )  # fmt: skip
