"""Two runs beside each other: faults in both or in one, levels, learning rate against batch size, where they part."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gdiag.errors import UsageError
from gdiag.measures.run import RunView
from gdiag.model import Column, Incident, Report, Severity, Table, Value
from gdiag.schema import STEP_METRICS, Records
from gdiag.tables.batches import batch_of
from gdiag.tables.parting import first_difference, first_lasting_difference
from gdiag.tables.scaling import Side, peak_rate, scaling, tokens_per_step
from gdiag.triage.priors import UNKNOWN

TAIL = 0.05
"""Share of the common steps, at their end, that the final level is the median of."""


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def compare(a: tuple[Report, Records], b: tuple[Report, Records]) -> Report:
    """A report with the incidents of both and tables of what differs and since when; the first run of each is used.

    Raises:
        UsageError: a side holds no run.
    """
    if not (a[1].runs and b[1].runs):
        raise UsageError("both sides of a comparison must hold a run")
    sides = tuple(
        Side(label, report, RunView(records.runs[0], records))
        for label, (report, records) in zip("AB", (a, b), strict=True)
    )
    one, two = sides
    tables = [
        _runs(one, two),
        _faults(one, two),
        _levels(one, two),
        scaling(one, two),
        _settings(one, two),
        _parting(one, two),
    ]
    return replace(_joined(one.report, two.report), tables=tuple(table for table in tables if table.title))


def _joined(a: Report, b: Report) -> Report:
    """Both reports in one; B's indices follow A's, and its runs are told apart by their side."""
    names = {r.id: f"A:{r.id}" for r in a.runs}, {r.id: f"B:{r.id}" for r in b.runs}
    findings = tuple(
        replace(f, where=replace(f.where, run=named.get(f.where.run or "", f.where.run)))
        for report, named in zip((a, b), names, strict=True) for f in report.findings
    )  # fmt: skip
    incidents = tuple(
        replace(
            i, run=named.get(i.run, i.run), findings=tuple(n + first for n in i.findings),
            related=tuple(n + before for n in i.related),
        )
        for report, named, first, before in (
            (a, names[0], 0, 0), (b, names[1], len(a.findings), len(a.incidents)),
        )
        for i in report.incidents
    )  # fmt: skip
    runs = tuple(
        replace(r, id=named[r.id], sources=tuple(n + first for n in r.sources))
        for report, named, first in ((a, names[0], 0), (b, names[1], len(a.sources))) for r in report.runs
    )  # fmt: skip
    return Report(
        runs=runs, sources=a.sources + b.sources, findings=findings, incidents=incidents,
        checked=tuple(code for code in a.checked if code in b.checked),
    )  # fmt: skip


def _runs(a: Side, b: Side) -> Table:
    rows: list[tuple[Value | None, ...]] = []
    for side in (a, b):
        segments = side.report.runs[0].segments
        first = min((s.first_step for s in segments), default=None)
        last = max((s.last_step for s in segments), default=None)
        paths = ", ".join(side.report.sources[n].path for n in side.view.run.sources)
        rows.append((side.label, paths, first, last, sum(s.rows for s in segments), len(segments), side.view.run.exit))
    names = ("run", "files", "first step", "last step", "rows", "segments", "exit")
    return Table("Runs", tuple(Column(n) for n in names), tuple(rows))


def _faults(a: Side, b: Side) -> Table:
    """Incidents of warning or above, paired by pattern and layer, then by cause; the same samples point at the data."""
    rows: list[tuple[Value | None, ...]] = []
    left, right = (
        [i for i in s.report.incidents if i.severity >= Severity.WARNING and i.run == s.view.run.id] for s in (a, b)
    )
    twins: dict[int, Incident] = {}
    for same in (_same_pattern, _same_cause):
        for place, incident in enumerate(left):
            alike = [i for i in right if place not in twins and same(incident, i)]
            twin = min(alike, key=lambda i: abs((i.onset_step or 0) - (incident.onset_step or 0)), default=None)
            if twin is not None:
                right.remove(twin)
                twins[place] = twin
    pairs: list[tuple[Incident | None, Incident | None]] = [(one, twins.get(place)) for place, one in enumerate(left)]
    for one, two in (*pairs, *((None, i) for i in right)):
        patterns = dict.fromkeys(i.pattern for i in (one, two) if i is not None)
        onsets = (None if i is None else i.onset_step for i in (one, two))
        rows.append((" / ".join(patterns), *onsets, _verdict(one, two), _cause(one), _cause(two)))
    names = ("pattern", "A at step", "B at step", "", "cause in A", "cause in B")
    title = "Faults" if rows else "Faults: none of warning or above in either run"
    return Table(title, tuple(Column(name) for name in names), tuple(rows))


def _same_pattern(one: Incident, two: Incident) -> bool:
    return one.pattern == two.pattern and one.layer == two.layer


def _same_cause(one: Incident, two: Incident) -> bool:
    """Whether evidence names one cause for both: a fault may take another course with another seed."""
    first, second = (i.causes[0] if i.causes else None for i in (one, two))
    if first is None or second is None or first.cause != second.cause or first.cause == UNKNOWN:
        return False
    return "low" not in (first.band, second.band)


def _cause(incident: Incident | None) -> str | None:
    return (
        f"{incident.causes[0].cause} ({incident.causes[0].band})" if incident is not None and incident.causes else None
    )


def _verdict(one: Incident | None, two: Incident | None) -> str:
    if one is None or two is None:
        return "only in A" if two is None else "only in B"
    if one.pattern != two.pattern:
        return "in both, by another course"
    if (
        one.data is not None
        and two.data is not None
        and max(one.data.first_sample, two.data.first_sample) < min(one.data.last_sample, two.data.last_sample)
    ):
        return "in both, at the same samples"
    return "in both, at the same step" if one.onset_step == two.onset_step else "in both"


def _levels(a: Side, b: Side) -> Table:
    rows: list[tuple[Value | None, ...]] = []
    common = np.intersect1d(a.curve("loss").step, b.curve("loss").step)
    if len(common):
        tail = common[-max(1, math.ceil(TAIL * len(common))) :]
        levels = [float(np.median(s.curve("loss").value[np.isin(s.curve("loss").step, tail)])) for s in (a, b)]
        rows.append((f"loss, median of steps {tail[0]}–{tail[-1]} [nat]", *levels, *_difference(*levels)))
    for name, curve in (("lowest loss [nat]", "loss"), ("lowest validation loss [nat]", "eval_loss")):
        low = [float(s.curve(curve).value.min()) if len(s.curve(curve)) else None for s in (a, b)]
        rows.append((name, *low, *_difference(*low)))
    for name, counted in (("spikes", _spikes), ("hard batches", _hard_batches)):
        counts = [counted(s) for s in (a, b)]
        rows.append((name, *counts, *_difference(*counts)))
    for name in ("grad_norm", "step_time", "tokens_per_s", "batch_size", "seq_len"):
        values = a.median(name), b.median(name)
        unit = f" [{STEP_METRICS[name]}]" if STEP_METRICS[name] else ""
        rows.append((f"{name.replace('_', ' ')}, median{unit}", *values, *_difference(*values)))
    tokens = tokens_per_step(a), tokens_per_step(b)
    rows.append(("tokens per step", *tokens, *_difference(*tokens)))
    rows += _samples(a, b)
    peaks = peak_rate(a), peak_rate(b)
    rows.append(("learning rate, peak", *peaks, *_difference(*peaks)))
    columns = (Column("quantity"), Column("A"), Column("B"), Column("B − A"), Column("B / A"))
    return Table("Levels", columns, tuple(row for row in rows if row[1] is not None or row[2] is not None))


def _samples(a: Side, b: Side) -> list[tuple[Value | None, ...]]:
    """Samples of one optimizer step where they say more than a logged batch size; of one device where its number is all that is known."""
    batches = [batch_of(side.view) for side in (a, b)]
    if all(batch is None or batch.how == "logged" for batch in batches):
        return []
    shares = [label for label, batch in zip("AB", batches, strict=True) if batch is not None and not batch.whole]
    both = all(batch is None or not batch.whole for batch in batches)
    name = "samples per step" + (" of one device" if both else f" ({shares[0]}: of one device)" if shares else "")
    work = tuple(None if batch is None else batch.samples for batch in batches)
    return [(name, *work, *(_difference(*work) if both or not shares else (None, None)))]


def _spikes(side: Side) -> int:
    """Spike episodes: each single one, and those that a finding of repeated spikes counts."""
    own = [f for f in side.report.findings if f.where.run == side.view.run.id]
    several = [f for f in own if f.code == "GD103"]
    spans = [(f.where.step or 0, f.where.last_step or f.where.step or 0) for f in several]
    single = [
        f for f in own
        if f.code == "GD102" and not any(first <= (f.where.step or 0) <= last for first, last in spans)
    ]  # fmt: skip
    return len(single) + sum(int(f.number("spikes") or 2) for f in several)


def _hard_batches(side: Side) -> int:
    own = [f for f in side.report.findings if f.where.run == side.view.run.id and f.code == "GD106"]
    return sum(int(f.number("rows") or 1) for f in own)


def _difference(a: float | None, b: float | None) -> tuple[float | None, float | None]:
    if a is None or b is None:
        return None, None
    return b - a, b / a if a else None


def _settings(a: Side, b: Side) -> Table:
    left, right = a.view.run.config, b.view.run.config
    rows = tuple(
        (key, left.get(key), right.get(key)) for key in sorted({*left, *right}) if left.get(key) != right.get(key)
    )
    return Table("Settings that differ" if rows else "", (Column("setting"), Column("A"), Column("B")), rows)


def _parting(a: Side, b: Side) -> Table:
    """Per column: the first step with any difference; for the loss also the first that noise does not explain."""
    rows: list[tuple[Value | None, ...]] = []
    for name in STEP_METRICS:
        if name in {"time", "elapsed"}:
            continue
        one, two = a.curve(name), b.curve(name)
        common, left, right = np.intersect1d(one.step, two.step, assume_unique=True, return_indices=True)
        if not len(common):
            continue
        x, y = one.value[left], two.value[right]
        at = first_difference(x, y)
        rows.append(
            (name, None, None, None, "never")
            if at is None
            else (name, int(common[at]), float(x[at]), float(y[at]), "any difference")
        )
        lasting = first_lasting_difference(x, y) if name in {"loss", "eval_loss", "grad_norm", "step_time"} else None
        if lasting is not None:
            rows.append((name, int(common[lasting]), float(x[lasting]), float(y[lasting]), "beyond noise, lasting"))
    columns = (Column("column"), Column("first step"), Column("A"), Column("B"), Column("differs"))
    if not rows:
        return Table("Where they part: they have no step of one column in common", columns, ())
    if all(row[1] is None for row in rows):
        return Table(
            f"They part nowhere: {', '.join(str(row[0]) for row in rows)} are the same at every step", columns, ()
        )
    return Table("Where they part", columns, tuple(rows))
