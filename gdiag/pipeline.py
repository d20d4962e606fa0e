"""load → measure → analyze → triage: the whole story on one screen."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike, fspath
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import polars as pl

from gdiag import ingesters
from gdiag.analyzers import ANALYZERS
from gdiag.analyzers.analyzer import Analyzer, missing
from gdiag.analyzers.needs import absent, held
from gdiag.analyzers.objectives import weighed
from gdiag.errors import InputError, UsageError
from gdiag.ingesters.reading import Options
from gdiag.measures.bandwidth import sweeps
from gdiag.measures.bandwidth_compare import Held, baseline
from gdiag.measures.bandwidth_curves import MIB
from gdiag.measures.bandwidth_table import sweep_series, sweep_tables
from gdiag.measures.envelope import plotted
from gdiag.measures.fabric_limits import Said
from gdiag.measures.run import RunView
from gdiag.measures.runs import each
from gdiag.measures.telemetry import Telemetry
from gdiag.model import Finding, Incident, Report, Run, Series, Severity, Skip, Table, Value
from gdiag.run_facts import facts_of
from gdiag.schema import STEP_METRICS, TABLES, Records
from gdiag.triage import explain, together
from gdiag.triage.advice import advise_logging
from gdiag.triage.facts import RunFacts

Thresholds = Mapping[str, Mapping[str, Value]]
"""Code → keyword parameters of its analyzer."""


def load(
    paths: Sequence[str | PathLike[str]], *, columns: Mapping[str, str] | None = None, tz: str | None = None
) -> Records:
    """Everything recognised under `paths`: files, folders, globs, or '-' for standard input.

    columns: canonical column → name in the files, for what the alias table does not know. tz: zone of clocks printed
    without one.

    Raises:
        InputError: nothing there holds a log that can be read.
        UsageError: an unknown column or zone.
    """
    unknown = sorted(set(columns or {}) - {"step", "rank", *STEP_METRICS})
    if unknown:
        raise UsageError(f"no column is called {unknown[0]!r}; columns are step, rank, {', '.join(STEP_METRICS)}")
    _check_zone(tz)
    records = ingesters.load([fspath(path) for path in paths], Options(columns=dict(columns or {}), tz=tz))
    tables = set(TABLES) - {"steps", "rejects"} | {"layers"}
    told = any(getattr(records, name).height for name in tables) or _measured(records)
    if not told and not any(run.config or run.exit != "unknown" for run in records.runs):
        raise _without_a_number(records)
    return records


def _measured(records: Records) -> bool:
    """Whether a step has a number beside it."""
    return any(records.steps[name].count() for name in STEP_METRICS if name in records.steps.columns)


def _without_a_number(records: Records) -> InputError:
    """What is said of files that hold no row, or steps with nothing beside them."""
    source = next(source for source in records.sources if source.format != "unknown")
    if records.steps.height:
        return InputError(f"{source.path} holds no number beside its steps: nothing in it can be judged")
    if not records.rejects.height:
        return ingesters.without_a_row(source)
    first = records.rejects.row(0, named=True)
    return InputError(f"{source.path} holds no row that can be read: {first['reason']} (line {first['line']})")


def _check_zone(tz: str | None) -> None:
    """Refuse a zone that nobody has, whether or not a clock in the files needs it."""
    offset = re.fullmatch(r"(?:UTC)?[+-](\d\d?):?(\d\d)?", tz or "UTC")
    if tz is None or tz in {"UTC", "Z", "GMT"} or (offset and int(offset[1]) * 60 + int(offset[2] or 0) <= 14 * 60):
        return
    try:
        ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"no time zone is called {tz!r}; write an IANA name such as Europe/Berlin, or ±HH:MM"
        ) from None


def between(records: Records, first: int | None, last: int | None) -> Records:
    """The records with their `steps`, `layers` and stepped events cut to first … last, both inclusive.

    Raises:
        UsageError: no step lies there.
    """
    inside = pl.lit(True)
    if first is not None:
        inside &= pl.col("step") >= first
    if last is not None:
        inside &= pl.col("step") <= last
    steps = records.steps.filter(inside)
    if records.steps.height and not steps.height:
        held = records.steps["step"].drop_nulls().sort()
        wanted = f"{'' if first is None else first}:{'' if last is None else last}"
        raise UsageError(f"no step lies in {wanted}; the log holds {held[0]} to {held[-1]}")
    events = records.events
    if "step" in events.columns:
        events = events.filter(pl.col("step").is_null() | inside)
    return replace(records, steps=steps, layers=records.layers.filter(inside), events=events)


def held_against(records: Records, reference: Records) -> Records:
    """`records` with the benchmarks of `reference`, or its saved baseline, as what their benchmarks are held against.

    Raises:
        UsageError: the reference holds neither, or nothing of the same collective, ranks and sizes.
    """
    table = reference.baselines.select("collective", "ranks", "size", "busbw")
    if not table.height:
        table = baseline(sweeps(reference.collectives, reference.devices, reference.facts))
    if not table.height:
        raise UsageError("the baseline holds no complete benchmark row and no saved baseline")
    own = sweeps(records.collectives, records.devices, records.facts)
    known = Held(table)
    if own and all(known.against(sweep) is None for sweep in own):
        held = table.select("collective", "ranks").unique(maintain_order=True).row(0)
        if int(str(table["size"].max())) < MIB:
            raise UsageError("the baseline ends below 1 MiB: nothing in it can be compared")
        raise UsageError(
            f"the baseline holds nothing to compare with: it has {held[0]} over {held[1] or 'unknown'} ranks, "
            f"the output {own[0].collective or 'an unnamed collective'} over {own[0].n or 'unknown'} (sizes from 1 MiB on are compared)"
        )
    runs = pl.DataFrame(
        {"run": [run.id for run in records.runs], "source": None}, schema={"run": pl.String, "source": pl.Int32}
    )
    return replace(records, baselines=runs.join(table, how="cross"))


@contextmanager
def _any_figures() -> Iterator[None]:
    """Whatever is logged is measured in silence.

    Figures may be as large as floats go: a measure of them overflows to infinity; a stretch that holds none has the
    median NaN. No check takes either for a level.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN|Mean of empty slice", RuntimeWarning)
        yield


@_any_figures()
def diagnose(
    records: Records,
    thresholds: Thresholds | None = None,
    analyzers: Sequence[Analyzer] = ANALYZERS,
    counted: Telemetry | None = None,
) -> Report:
    """Judge every run in `records` with every analyzer whose columns are there, and explain what was found.

    `counted` is telemetry that gdiag.fleet has counted without keeping its rows.
    """
    said = _said(thresholds or {})
    judged = [_judged(view, thresholds or {}, analyzers, said) for view in each(records, counted)]
    told = sorted(((i, n) for i, run in enumerate(judged) for n in range(len(run.findings))),
                  key=lambda at: _by_severity_then_place(judged[at[0]].findings[at[1]]))  # fmt: skip
    findings = tuple(judged[i].findings[n] for i, n in told)
    places: list[list[int]] = [[] for _ in judged]
    for place, (i, _) in enumerate(told):
        places[i].append(place)
    incidents = together([(own, run.incidents) for own, run in zip(places, judged, strict=True)])
    checked, skipped = _extent(judged, analyzers)
    return Report(
        runs=tuple(run.run for run in judged),
        sources=records.sources,
        findings=findings,
        incidents=incidents,
        series=tuple(series for run in judged for series in run.series),
        tables=tuple(table for run in judged for table in run.tables),
        checked=checked,
        skipped=skipped,
        advice=advise_logging([run.facts for run in judged], sum(i.severity > Severity.INFO for i in incidents)),
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """What a report keeps of a run: its view, with every measure in it, goes before the next one comes."""

    run: Run
    findings: tuple[Finding, ...]
    """In the order of the report."""
    incidents: tuple[Incident, ...]
    """Their findings index into the run's own."""
    facts: RunFacts
    series: tuple[Series, ...]
    tables: tuple[Table, ...]
    lacking: dict[str, list[str]]
    """The needs that its columns do not meet, by the code of the check that could not run."""
    held: frozenset[str]
    """The tables of which it has rows."""


def _judged(view: RunView, thresholds: Thresholds, analyzers: Sequence[Analyzer], said: Said) -> _Judged:
    """Everything that is asked of one run."""
    findings: list[Finding] = []
    lacking: dict[str, list[str]] = {}
    for analyzer in analyzers:
        if without := missing(view, analyzer.NEEDS):
            lacking[analyzer.CODE] = without
        else:
            findings += weighed(view, analyzer.analyze(view, **thresholds.get(analyzer.CODE, {})))
    findings.sort(key=_by_severity_then_place)
    facts = facts_of(view, findings)
    incidents = explain(findings, {view.run.id: facts})
    return _Judged(
        run=replace(view.run, segments=view.trajectory.segments, config=_config(view)),
        findings=tuple(findings),
        incidents=incidents,
        facts=facts,
        series=tuple(_plotted(view, incidents, said)),
        tables=tuple(sweep_tables(view, said)),
        lacking=lacking,
        held=held(view),
    )


def _extent(runs: Sequence[_Judged], analyzers: Sequence[Analyzer]) -> tuple[tuple[str, ...], tuple[Skip, ...]]:
    """Codes of the checks that could run on some run, and why the others could on none."""
    there = frozenset[str]().union(*(run.held for run in runs))
    skipped = [
        Skip(analyzer.CODE, absent(there, runs[-1].lacking[analyzer.CODE] if runs else []))
        for analyzer in analyzers
        if all(analyzer.CODE in run.lacking for run in runs)
    ]
    without = {skip.code for skip in skipped}
    return tuple(a.CODE for a in analyzers if a.CODE not in without), tuple(skipped)


def _config(view: RunView) -> dict[str, Value]:
    """What the configuration says, and beside it the schedule that the learning-rate column shows."""
    return {**(view.schedule.settings() if view.schedule is not None else {}), **view.run.config}


def _said(thresholds: Thresholds) -> Said:
    """What the user says about the fabric, for the tables as for GD702."""
    given = thresholds.get("GD702", {})
    figure = {name: float(given.get(name, 0)) for name in ("nic_gbps", "expect", "hosts")}
    return Said(figure["nic_gbps"], figure["expect"], int(figure["hosts"]))


def _plotted(view: RunView, incidents: Sequence[Incident], said: Said) -> list[Series]:
    """The run's series, exact around its incidents."""
    own = [i for i in incidents if i.run == view.run.id]
    windows = [
        (i.onset_step, i.onset_step if i.last_step is None else i.last_step) for i in own if i.onset_step is not None
    ]
    cards = [(i.host, i.gpu) for i in own if i.gpu is not None]
    return plotted(view, windows, [i.layer for i in own if i.layer is not None], cards) + sweep_series(view, said)


def _by_severity_then_place(finding: Finding) -> tuple[object, ...]:
    where = finding.where
    step = where.step if where.step is not None else -1
    place = (where.rank or 0, where.host or "", where.gpu or 0, where.layer or "")
    return (-finding.severity, where.run or "", step, where.time or 0.0, finding.code, place)
