"""An NVLink is down, slower than the others or counts errors, or GPUs are joined by PCIe where others have NVLinks.

What it checks
    Active links of each GPU (nvidia-smi nvlink -s) against what the model has (`gdiag/reference/nvlinks.tsv`) and
    against the other GPUs of the host; each link's rate against the others. In the matrix of nvidia-smi topo -m: GPUs
    with fewer links than the others where most pairs have some, no pair joined though the model has NVLinks, and cells
    that contradict their mirror. Counters of nvlink -e: one reading says only that it happened since the last reset
    (a note, a warning where it must never happen), two readings what grows. Bridged pairs, cards without NVLink and MIG are no fault; a GPU alone is a note, for
    nothing is lost where no peer is.

Why it matters
    A ring or tree of a collective is as fast as its slowest link; a pair that falls back to PCIe is ten times slower.

What to do
    Drain the host, reset its GPUs and restart the fabric manager; run dcgmi diag -r 3. A link that stays down is the GPU,
    its baseboard or the switch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

import polars as pl

from gdiag.measures.nvlinks import NVLINK, Links, Matrix, links, matrices
from gdiag.measures.ports import Counter, counters, judge
from gdiag.measures.run import RunView
from gdiag.model import Finding, Location, Measure, Severity
from gdiag.reference.nvlinks import nvlinks
from gdiag.reference.port_counters import thresholds

CODE = "GD711"
NAME = "nvlink"
NEEDS: tuple[str, ...] = ("nvlinks.line",)


def analyze(run: RunView, *, rate: float = 0.95, most: int = 50) -> list[Finding]:
    """rate: share of the fastest link's rate below which a link is slow. most: findings at most."""
    seen = links(run.nvlinks)
    found = [*_missing(run, seen), *_slow(run, seen, rate)]
    for matrix in matrices(run.nvlinks):
        found += [*_unjoined(run, matrix), *_uneven(run, matrix), *_contradictions(run, matrix)]
    return [*found, *_errors(run)][:most]


def _missing(run: RunView, seen: Sequence[Links]) -> Iterator[Finding]:
    for own in seen:
        others = [p for p in seen if p is not own and p.host == own.host and p.model == own.model]
        known, fullest = nvlinks(own.model), max((len(p.rates) for p in others), default=0)
        expected = max(known.links if known else 0, fullest)
        down = bool(own.dark) or (own.silent or "").startswith("all")
        if len(own.rates) >= expected or not (down or (own.rates and not own.last)):
            continue  # a list that ends before its last link says nothing of the rest
        which = f" ({_numbers(own.dark)} inactive)" if own.dark else ""
        against = f"the {expected} of its model" if known and known.links == expected else f"{expected} of another GPU"
        text = f"{_named(own.host, own.gpu)} has {len(own.rates)} active NVLinks, not {against}{which}"
        severity = Severity.WARNING if others and (known or len(others) > 1) else Severity.INFO
        evidence = (Measure("active", len(own.rates), "", expected), Measure("kind", "down"))
        yield Finding(CODE, NAME, severity, text, _where(run, own, own.host, own.gpu), evidence)


def _slow(run: RunView, seen: Sequence[Links], share: float) -> Iterator[Finding]:
    for own in seen:
        peers = [r for p in seen if p.host == own.host and p.model == own.model for r in p.rates.values()]
        known = nvlinks(own.model)
        fastest = max([*peers, known.rate if known else 0.0], default=0.0)
        slow = sorted(link for link, rate in own.rates.items() if rate < share * fastest)
        if slow:
            least = min(own.rates[link] for link in slow)
            several = f"{len(slow)} NVLinks run" if len(slow) > 1 else f"NVLink {slow[0]} runs"
            text = f"{_named(own.host, own.gpu)}: {several} at {least:g} GB/s, others at {fastest:g}"
            evidence = (Measure("rate", least, "GB/s", share * fastest), Measure("kind", "slow"))
            yield Finding(CODE, NAME, Severity.WARNING, text, _where(run, own, own.host, own.gpu), evidence)


def _unjoined(run: RunView, matrix: Matrix) -> Iterator[Finding]:
    """GPUs of a model that has NVLinks, none of which joins a pair."""
    named = run.nvlinks.filter(pl.col("scope").str.starts_with("nvlink model"))["value"]
    models = {*named, *(run.gpus["model"].drop_nulls().unique() if "model" in run.gpus.columns else ())}
    known = [nvlinks(model) for model in models]
    ways = list(matrix.ways.values())
    if not ways or not known or any(row is None for row in known) or any(way.startswith("NV") for way in ways):
        return
    links = max(row.links for row in known if row is not None)
    text = f"no pair of GPUs{_on(matrix.host)} is joined by NVLinks ({', '.join(dict.fromkeys(ways))}), though each has {links}"
    evidence = (Measure("links", 0, "", links), Measure("kind", "path"))
    yield Finding(CODE, NAME, Severity.WARNING, text, _where(run, matrix, matrix.host, None), evidence)


def _uneven(run: RunView, matrix: Matrix) -> Iterator[Finding]:
    """GPUs with fewer links than the others, where most pairs have some."""
    pairs = {(a, b): n for a in matrix.gpus for b in matrix.gpus if a < b and (n := matrix.links(a, b)) is not None}
    joined = [pair for pair, n in pairs.items() if n]
    if len(matrix.gpus) < 3 or 2 * len(joined) <= len(pairs):
        return
    total = {g: sum(n for pair, n in pairs.items() if g in pair) for g in matrix.gpus}
    usual = median(total.values())
    few = [g for g in matrix.gpus if total[g] < usual]
    if 2 * len(few) > len(matrix.gpus) or not few:
        return
    without = [pair for pair, n in pairs.items() if not n and (pair[0] in few or pair[1] in few)]
    alone = [g for g in few if not total[g]]
    if len(few) == 2 and without == [(few[0], few[1])]:
        way = matrix.ways.get((few[0], few[1])) or matrix.ways.get((few[1], few[0]))
        text = f"GPU {few[0]} and GPU {few[1]}{_on(matrix.host)} are joined by {way} where the other pairs have NVLinks"
    elif alone:
        text = f"{_several(matrix.host, alone)} no NVLink to any other GPU, where the others are joined by NVLinks"
    else:
        text = f"{_several(matrix.host, few)} fewer NVLinks ({min(total[g] for g in few)}) than the others ({usual:g})"
    worst = min(few, key=lambda g: total[g])
    gpu = worst if len(alone or few) == 1 else None
    evidence = (Measure("links", total[worst], "", usual), Measure("kind", "path"))
    yield Finding(CODE, NAME, Severity.WARNING, text, _where(run, matrix, matrix.host, gpu), evidence)


def _contradictions(run: RunView, matrix: Matrix) -> Iterator[Finding]:
    odd = [
        (a, b) for (a, b), way in matrix.ways.items() if a < b and matrix.ways.get((b, a), way) != way
    ]  # fmt: skip
    if odd:
        a, b = odd[0]
        more = f" and {len(odd) - 1} more pairs" if len(odd) > 1 else ""
        text = (
            f"the matrix{_on(matrix.host)} contradicts itself: GPU {a} to GPU {b} is {matrix.ways[a, b]}, "
            f"back it is {matrix.ways[b, a]}{more}"
        )
        evidence = (Measure("pairs", len(odd)), Measure("kind", "asymmetric"))
        yield Finding(CODE, NAME, Severity.WARNING, text, _where(run, matrix, matrix.host, None), evidence)


def _errors(run: RunView) -> Iterator[Finding]:
    alike: dict[tuple[str | None, str, Severity, bool], list[Counter]] = {}
    for seen in counters(run.nvlink_counters):
        limit = thresholds().get(seen.counter)
        judged = judge(seen, limit) if limit is not None else None
        if judged is not None:
            alike.setdefault((seen.host, seen.counter, *judged), []).append(seen)
    for (host, counter, severity, grown), same in alike.items():
        worst = max(same, key=lambda c: (c.growth or 0.0) if grown else c.last)
        gpus = {c.name.split(" ")[0] for c in same}
        gpu = int(worst.name.split(" ")[0][3:])
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        figure = (
            f"grew by {worst.growth:.0f} between readings" if grown else f"is {worst.last:.0f} since the last reset"
        )
        link = worst.name.replace("GPU", "GPU ").replace(" port ", " NVLink ")
        text = f"{link}{more}{_on(host)}: {counter.removeprefix(NVLINK)} {figure} ({thresholds()[counter].meaning})"
        start, end = worst.span or (None, None)
        where = run.where(
            {"source": worst.source, "line": worst.line}, host=host, gpu=gpu if len(gpus) == 1 else None, time=start, last_time=end,
        )  # fmt: skip
        evidence = (
            Measure("growth" if grown else "count", (worst.growth or 0.0) if grown else worst.last),
            Measure("kind", "errors"),
        )
        yield Finding(CODE, NAME, severity, text, where, evidence)


def _where(run: RunView, seen: Links | Matrix, host: str | None, gpu: int | None) -> Location:
    return run.where({"source": seen.source, "line": seen.line}, host=host, gpu=gpu)


def _named(host: str | None, gpu: int) -> str:
    return f"GPU {gpu}{_on(host)}"


def _several(host: str | None, gpus: Sequence[int]) -> str:
    return f"{_named(host, gpus[0])} has" if len(gpus) == 1 else f"GPUs {', '.join(map(str, gpus))}{_on(host)} have"


def _on(host: str | None) -> str:
    return f" of {host}" if host else ""


def _numbers(numbers: Sequence[int]) -> str:
    return (
        ("link " if len(numbers) == 1 else "links ")
        + ", ".join(map(str, numbers[:6]))
        + (" …" if len(numbers) > 6 else "")
    )
