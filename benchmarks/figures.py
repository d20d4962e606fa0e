"""The suite's tables: recall, onset, causes, calibration, false incidents."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from benchmarks.matching import VISIBLE, Judged, Match
from gdiag.simulate.truth import Truth
from gdiag.triage.priors import UNKNOWN


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case, run."""

    command: str
    truth: Truth
    judged: Judged | None
    """None where gdiag crashed or refused."""
    error: str
    seconds: float


def figures(outcomes: list[Outcome], *, verbose: bool = False) -> str:
    """All tables as text."""
    judged = [o.judged for o in outcomes if o.judged is not None]
    asked = [m for j in judged for m in j.matches if m.visible]
    parts = [_summary(outcomes, judged, asked), _kinds(judged), _causes(asked), _confusion(asked), _calibration(asked)]
    parts += [
        _slices("by log interval", [(str(j.truth.every), m) for j in judged for m in j.matches if m.visible]),
        _slices("by noise", [(j.truth.noise, m) for j in judged for m in j.matches if m.visible]),
        _slices("by style", [(j.truth.style, m) for j in judged for m in j.matches if m.visible]),
        _slices(
            "by strength, spikes", [(_bin(m), m) for j in judged for m in j.matches if m.event.strength is not None]
        ),
        _wrong(outcomes, verbose),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} = {part / whole:.3f}" if whole else "none"


def _summary(outcomes: list[Outcome], judged: list[Judged], asked: list[Match]) -> str:
    steps = sum(j.truth.steps for j in judged if j.truth.healthy)
    healthy = sum(j.truth.healthy for j in judged)
    false = sum(len(j.false) for j in judged if j.truth.healthy)
    extra = sum(len(j.false) for j in judged if not j.truth.healthy)
    found = [m for m in asked if m.incident is not None]
    errors = [m.error for m in found if not m.event.slow and not m.event.whole_run]
    places = [m.located for m in asked if m.located is not None]
    hidden = sum(len(j.matches) for j in judged) - len(asked)
    second = sum(bool(set(m.causes[:2]) & set(m.event.accept)) for m in asked)
    lines = [
        f"detected {_share(len(found), len(asked))} · pattern {_share(sum(m.patterned for m in asked), len(asked))} · "
        f"cause first {_share(sum(m.caused for m in asked), len(asked))} · in first two {_share(second, len(asked))} · "
        f"located {_share(sum(places), len(places))}",
        f"onset error median {statistics.median(errors) if errors else math.nan:g} steps · "
        f"false {false} in {healthy} healthy runs, {1e5 * false / max(1, steps):.2f} per 100k of {steps:,} steps"
        + (f" (95 % below {3e5 / max(1, steps):.2f})" if not false else "")
        + f" · extra {extra} in {len(judged) - healthy} faulty runs",
        f"{hidden} events below the detection limit ({VISIBLE:g} standard deviations in the logged rows) · {sum(o.judged is None for o in outcomes)} crashed or refused · "
        f"{statistics.median(o.seconds for o in outcomes):.2f} s a run (median)",
    ]
    return "\n".join(lines)


def _table(header: str, rows: Iterable[str]) -> str:
    body = list(rows)
    return "\n".join([header, *body]) if body else ""


def _kinds(judged: list[Judged]) -> str:
    by_kind: dict[str, list[Match]] = defaultdict(list)
    for j in judged:
        for m in j.matches:
            if m.visible:
                by_kind[m.event.kind].append(m)
    rows = []
    for kind, found in sorted(
        by_kind.items(), key=lambda item: (sum(m.caused for m in item[1]) / len(item[1]), item[0])
    ):
        errors = [m.error for m in found if m.incident is not None and not m.event.whole_run]
        places = [m.located for m in found if m.located is not None]
        error = f"{statistics.median(errors):6g}" if errors else "     –"
        rows.append(
            f"{kind:26s} {len(found):3d} {sum(m.incident is not None for m in found):4d} {sum(m.patterned for m in found):4d} "
            f"{sum(m.caused for m in found):4d} {f'{sum(places)}/{len(places)}' if places else '–':>6} {error}"
        )
    return _table(f"{'kind':26s}   n seen  pat cause located onset error", rows)


def _causes(asked: list[Match]) -> str:
    named = Counter(m.causes[0] for m in asked if m.causes)
    right = Counter(m.causes[0] for m in asked if m.caused)
    events = Counter(m.event.accept[0] for m in asked)
    recalled = Counter(m.event.accept[0] for m in asked if m.caused)
    rows = [
        f"{cause:26s} {_share(right[cause], named[cause]):>18} {_share(recalled[cause], events[cause]):>18}"
        for cause in sorted(set(named) | set(events))
    ]
    return _table(f"{'cause':26s} {'precision':>18} {'recall':>18}", rows)


def _confusion(asked: list[Match]) -> str:
    wrong = Counter(
        (m.event.kind, m.causes[0] if m.causes else "–") for m in asked if m.incident is not None and not m.caused
    )
    return _table(
        "explained wrongly (kind → first cause)",
        (f"{n:3d}  {kind} → {cause}" for (kind, cause), n in wrong.most_common(25)),
    )


def _calibration(asked: list[Match]) -> str:
    """Scores against shares right, without the events that any of several causes explains: there no answer is wrong."""
    told = [m for m in asked if UNKNOWN not in m.event.accept]
    pairs = [(m.incident.causes[0].score, m.caused) for m in told if m.incident is not None and m.incident.causes]
    if not pairs:
        return ""
    brier = sum((score - right) ** 2 for score, right in pairs) / len(pairs)
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for pair in pairs:
        bins[min(9, int(pair[0] * 10))].append(pair)
    ece = 0.0
    rows = []
    for index, content in sorted(bins.items()):
        mean = sum(score for score, _ in content) / len(content)
        share = sum(right for _, right in content) / len(content)
        ece += len(content) / len(pairs) * abs(mean - share)
        rows.append(f"{index / 10:.1f}–{(index + 1) / 10:.1f} {len(content):5d} {mean:11.2f} {share:6.2f}")
    return _table(
        f"calibration of the first cause, {len(pairs)} events that can be explained wrongly: Brier {brier:.3f} · ECE {ece:.3f}\nscore       n  mean score  right",
        rows,
    )


def _bin(match: Match) -> str:
    strength = match.event.strength or 0.0
    return next((f"below {limit:4d} σ" for limit in (2, 4, 8, 16, 32, 64) if strength < limit), "64 σ and more")


def _slices(title: str, pairs: list[tuple[str, Match]]) -> str:
    groups: dict[str, list[Match]] = defaultdict(list)
    for name, match in pairs:
        groups[name].append(match)
    key: Callable[[str], tuple[int, str]] = lambda name: (int(name) if name.isdigit() else 0, name)  # noqa: E731
    rows = [
        f"{name:16s} {_share(sum(m.incident is not None for m in groups[name]), len(groups[name])):>18} "
        f"{_share(sum(m.caused for m in groups[name]), len(groups[name])):>18}"
        for name in sorted(groups, key=key)
    ]
    return _table(f"{title:16s} {'detected':>18} {'cause first':>18}", rows)


def _wrong(outcomes: list[Outcome], verbose: bool) -> str:
    lines = []
    for o in outcomes:
        if o.judged is None:
            lines.append(f"CRASH {o.command}\n      {o.error.strip().splitlines()[-1]}")
            continue
        for m in o.judged.matches:
            if m.visible and m.incident is None:
                seen = (
                    ", ".join(f"{i.pattern} @{i.onset_step} ({i.severity.label})" for i in o.judged.incidents)
                    or "nothing"
                )
                lines.append(f"missed {m.event.kind} @{m.event.onset}, reported {seen}: {o.command}")
            elif verbose and m.visible and m.incident is not None and (said := _said(m)):
                lines.append(f"{m.event.kind} @{m.event.onset}: {said}: {o.command}")
        for incident in o.judged.false:
            kind = "FALSE" if o.judged.truth.healthy else "extra"
            if verbose or o.judged.truth.healthy:
                lines.append(f"{kind} {incident.pattern} @{incident.onset_step} {incident.title!r}: {o.command}")
    return "\n".join(lines)


def _said(match: Match) -> str:
    """What a report has wrong of an event that it does tell of."""
    found = match.incident
    if found is None:
        return ""
    wrong = [] if match.patterned else [f"pattern {found.pattern} @{found.onset_step}"]
    wrong += [] if match.caused else [f"causes {', '.join(match.causes[:3])}"]
    if match.located is False:
        wanted = [str(place) for place in (match.event.layer, match.event.rank, match.event.gpu) if place is not None]
        wrong.append(f"place {found.layer}, rank {found.rank}, gpu {found.gpu} for {', '.join(wanted)}")
    return "; ".join(wrong)
