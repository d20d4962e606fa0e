"""Lines of the log hold no readable row.

What it checks: lines that are no record of the file's format, or cells that are no number, as counted by the reader; a last
line cut off in the middle is one.

Why it matters: a few bad lines are the marks of a crash or of two processes writing at once; many mean that the log was
not understood and that findings rest on part of it.

What to do: look at the lines named (`gdiag doctor` shows them), map columns with --map where a name was not understood,
and write each record with one flushed call.
"""

from __future__ import annotations

from collections import Counter

import polars as pl

from gdiag.measures.run import RunView
from gdiag.model import Finding, Location, Measure, Severity, Source

CODE = "GD001"
NAME = "rejected-lines"
NEEDS: tuple[str, ...] = ()


def analyze(run: RunView, *, share: float = 0.05, lines: int = 10) -> list[Finding]:
    """One finding for each file with rejects; a warning from `share` of the lines and `lines` lines on."""
    rejects = run.records.rejects
    findings: list[Finding] = []
    for index in run.run.sources:
        first_owner = next((r.id for r in run.records.runs if index in r.sources), None)
        if first_owner != run.run.id or index >= len(run.records.sources):
            continue
        source = run.records.sources[index]
        own = rejects.filter(pl.col("source") == index)
        read = run.records.steps.filter(pl.col("source") == index)["line"].unique().implode()
        cells = own.filter(pl.col("line").is_in(read))
        if cells.height and cells["line"].n_unique() == source.rejected:
            findings.append(_cells(source, cells, run.run.id, share, lines))
            continue
        count = max(own["line"].n_unique(), source.rejected)
        if not count:
            continue
        reasons = Counter(own["reason"].to_list()).most_common(3)
        part = count / max(1, source.rows + count)
        line = own["line"][0] if own.height else None
        why = f", most often: {reasons[0][0]}" if reasons else ""
        said = f"{count} of {source.rows + count} lines hold no readable row ({100 * part:.2g} %){why}"
        severe = part >= share and count >= lines
        evidence = (
            Measure("rejected", count, "", lines),
            Measure("share", part, "", share),
            *(Measure("reason", f"{reason} ({times})") for reason, times in reasons),
        )
        where = Location(file=source.path, line=line, run=run.run.id)
        findings.append(Finding(CODE, NAME, Severity.WARNING if severe else Severity.INFO, said, where, evidence))
    return findings


def _cells(source: Source, cells: pl.DataFrame, run: str, share: float, lines: int) -> Finding:
    """Rows that were read but for a cell; a warning only where the loss cannot be read."""
    reason, times = Counter(cells["reason"].to_list()).most_common(1)[0]
    count = cells["line"].n_unique()
    part = count / max(1, source.rows)
    said = (
        f"{count} of {source.rows} rows hold a cell that is no number, most often: {reason}; the rest of them is used"
    )
    loss = source.columns.get("loss")
    severe = loss is not None and reason.endswith(f"column {loss}") and part >= share and count >= lines
    evidence = (Measure("rejected", count, "", lines), Measure("share", part, "", share), Measure("cells", True))
    where = Location(file=source.path, line=cells["line"][0], run=run)
    severity = Severity.WARNING if severe else Severity.INFO
    return Finding(CODE, NAME, severity, said, where, (*evidence, Measure("reason", f"{reason} ({times})")))
