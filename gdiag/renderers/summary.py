"""What was read, found, checked and not checked, in sentences: shared by the forms that people read."""

from __future__ import annotations

from collections.abc import Sequence

from gdiag.model import Finding, Incident, Report, Run, Severity, Source
from gdiag.renderers.words import count, shown, span, tail


def verdict(report: Report) -> str:
    """1 critical, 2 warnings; or nothing found."""
    counts = {s: sum(i.severity is s for i in report.incidents) for s in sorted(Severity, reverse=True)}
    return ", ".join(_tally(n, severity) for severity, n in counts.items() if n) or "nothing found"


def _tally(how_many: int, severity: Severity) -> str:
    return count(how_many, severity.label) if severity is Severity.WARNING else f"{how_many} {severity.label}"


def read(report: Report) -> str:
    """run.jsonl, 1,200 rows, steps 0–1199."""
    rows = sum(source.rows for source in report.sources)
    files = tail(report.sources[0].path) if len(report.sources) == 1 else count(len(report.sources), "file")
    steps = _steps(report.runs[0]) if len(report.runs) == 1 else count(len(report.runs), "run")
    return ", ".join(filter(None, [files, count(rows, "row"), steps]))


def _steps(run: Run) -> str:
    if not run.segments:
        return ""
    return f"steps {span(min(s.first_step for s in run.segments), max(s.last_step for s in run.segments))}"


def silence(report: Report) -> str:
    """What "nothing found" means here, and what it does not mean."""
    if not report.checked:
        return "Nothing was judged: what the checks need was not logged. This is not a clean bill of health."
    text = f"Nothing found by {count(len(report.checked), 'check')}.{_resolution(report)}"
    if report.skipped:
        text += (
            f" {count(len(report.skipped), 'other')} could not run (below): what they look for is unknown, not absent."
        )
    return text


def _resolution(report: Report) -> str:
    """What is too short to leave a trace, where not every step was logged."""
    spans = [(s.last_step - s.first_step) / (s.rows - 1) for run in report.runs for s in run.segments if s.rows > 1]
    widest = max(spans, default=1.0)
    if widest < 1.5:
        return ""
    return f" One row stands for {widest:,.0f} steps: what is shorter may leave no trace."


def said(incident: Incident, report: Report) -> str:
    """What was measured, with the log's own words, where neither the title nor a cause says it; else nothing."""
    findings = [report.findings[index] for index in incident.findings]
    if not findings:
        return ""
    titled = [f for f in findings if _told(f, incident)]
    top = max(titled or findings, key=lambda f: (f.severity, f.measure("culprit_rank") is not None))
    quoted = top.measure("text")
    words = f": “{shown(quoted)}”" if isinstance(quoted, str) and quoted and quoted not in top.message else ""
    told = any(cause.supports for cause in incident.causes[:1])
    if titled:
        return words.removeprefix(": ")
    return f"{shown(top.message)}{words}" if words or not told else ""


def _told(finding: Finding, incident: Incident) -> bool:
    """Whether the title is the finding's own sentence, with or without the place."""
    return bool(finding.message) and all(
        part in incident.title.casefold() for part in finding.message.casefold().split("; ")
    )


def source_line(source: Source, report: Report, folder: str = "") -> str:
    """run.jsonl: jsonl, 1,200 rows, 2 rejected; the path below `folder`."""
    cells = any(f.where.file == source.path and f.measure("cells") is True for f in report.findings)
    rejected = f", {source.rejected:,} {'with a cell left out' if cells else 'rejected'}" if source.rejected else ""
    return f"{shown(source.path.removeprefix(folder))}: {shown(source.format)}, {count(source.rows, 'row')}{rejected}"


def unchecked(report: Report, width: int) -> str:
    """What could not run and why where `width` columns hold it, else how many and the commonest reasons."""
    whole = ", ".join(f"{codes(several)} ({shown(reason)})" for reason, several in by_reason(report).items())
    if len(whole) <= width:
        return whole
    counts = sorted(((len(c), reason) for reason, c in by_reason(report).items()), key=lambda pair: -pair[0])
    said = f"{len(report.skipped)}, -v names each:"
    for place, (how_many, reason) in enumerate(counts):
        more = f"{' ' if not place else ', '}{shown(reason)} ({how_many})"
        if place and len(said) + len(more) > width - 3:
            return f"{said}, …"
        said += more
    return said


def by_reason(report: Report) -> dict[str, list[str]]:
    """Reason → the codes of the checks that could not run for it."""
    reasons: dict[str, list[str]] = {}
    for skip in report.skipped:
        reasons.setdefault(skip.reason, []).append(skip.code)
    return reasons


def codes(several: Sequence[str]) -> str:
    """GD101–GD108 GD201: consecutive codes as one."""
    groups: list[list[str]] = []
    for code in several:
        if (
            groups
            and code[2:].isdigit()
            and groups[-1][-1][2:].isdigit()
            and int(code[2:]) == int(groups[-1][-1][2:]) + 1
        ):
            groups[-1].append(code)
        else:
            groups.append([code])
    return " ".join(f"{g[0]}–{g[-1]}" if len(g) > 2 else " ".join(g) for g in groups)
