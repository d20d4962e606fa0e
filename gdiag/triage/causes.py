"""Causes ranked by weighted evidence: at most one item per family and cause, what is missing listed, unknown in the race.

A cause's log-odds are the logarithm of its prior plus the weights of the evidence that applies; scores are the softmax
over all candidates and `unknown`, divided by a temperature that docs/calibration.md says how to fit. Weights are
natural-log likelihood ratios: ±0.7 doubles or halves the odds, 2.2 (nine to one) is the most that one observation may
carry, and only a machine's own report or a proof carries more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from gdiag.model import Band, Basis, Cause
from gdiag.triage.case import Case
from gdiag.triage.evidence import RULES
from gdiag.triage.priors import PRIORS, UNKNOWN, UNKNOWN_SHARE
from gdiag.triage.wanted import WANTED

TEMPERATURE: Final = 0.4
"""Of log-odds whose first cause has evidence. Trained runs would have it at 0.25: what no rule foresees is in no set
(docs/calibration.md). Below one, for the weights are stated with caution, one by one, and agree more often than they err together."""
USUAL_TEMPERATURE: Final = 0.7
"""Where evidence speaks of other causes and the first one has its usual share alone."""
RESERVED: Final = 0.015
"""Least share of `unknown`, whatever the evidence: of 336 first causes with evidence that decides three were wrong, and what no
rule foresees is in no set."""
LOW_BELOW: Final = 0.4
MEDIUM_BELOW: Final = 0.7
LEAST: Final = 0.005
"""Causes that would be shown as 0.00 are not listed, nor is `unknown` where nothing but its reserve is left to it."""
FEW: Final = 5
"""At most this many causes are listed."""
DECIDING: Final = frozenset({"data", "rank", "layer", "telemetry", "schedule", "resume", "config", "ports"})
"""Families of which at least one must speak for a cause before its band may be high: a curve's shape alone never does."""
STRONG: Final = 2.0
"""Weight from which what a run logs of its numbers decides as well: attention or output logits that grew, a moment outgrown."""
SHAPE_ONLY: Final = frozenset(
    {
        "single_spike",
        "repeated_spikes",
        "step_up",
        "divergence",
        "hard_batches",
        "gradient_explosion",
        "nonfinite",
        "parameter_growth",
    }
)


Weighed = dict[tuple[str, str, bool], tuple[float, str]]
"""(cause, family, whether it supports) → the weightiest evidence: weight and sentence."""


def rank(case: Case) -> tuple[Cause, ...]:
    """The causes of an incident, best first."""
    evidence = weigh(case)
    odds = logits(case, evidence)
    if not odds:
        return ()
    ranked = []
    first = min(odds, key=lambda cause: (-odds[cause], cause))
    supported = any(weight > 0 for _, weight, _ in _of(evidence, first))
    # Shares that are known without evidence are what they are.
    temperature = TEMPERATURE if supported else USUAL_TEMPERATURE if evidence else 1.0
    for cause, score in sorted(_reserved(_softmax(odds, temperature)).items(), key=lambda item: (-item[1], item[0])):
        mine = _of(evidence, cause)
        supports = tuple(text for _, weight, text in sorted(mine, key=lambda m: -m[1]) if weight > 0)
        contradicts = tuple(text for _, weight, text in sorted(mine, key=lambda m: m[1]) if weight < 0)
        if score < LEAST or (cause == UNKNOWN and score <= RESERVED):
            continue
        basis = _basis(case, [(family, weight) for family, weight, _ in mine if weight > 0])
        missing = _missing(case, cause)
        ranked.append(Cause(cause, round(score, 3), _band(score, basis), supports, contradicts, missing, basis))
    return tuple(ranked[:FEW])


def weigh(case: Case) -> Weighed:
    """The evidence that applies, at most one item per cause, family and direction."""
    best: Weighed = {}
    for rule in RULES:
        if rule.cause not in PRIORS[case.pattern]:
            continue
        text = rule.text(case)
        key = (rule.cause, rule.family, rule.weight > 0)
        if text and abs(rule.weight) > abs(best.get(key, (0.0, ""))[0]):
            best[key] = (rule.weight, text)
    return best


def logits(case: Case, evidence: Weighed) -> dict[str, float]:
    """Log-odds of every candidate and of `unknown`; empty where the pattern needs no cause."""
    if not PRIORS[case.pattern]:
        return {}
    found = {cause: math.log(prior) for cause, prior in {**PRIORS[case.pattern], UNKNOWN: UNKNOWN_SHARE}.items()}
    for (cause, _, _), (weight, _) in evidence.items():
        found[cause] += weight
    return found


def _of(evidence: Weighed, cause: str) -> list[tuple[str, float, str]]:
    """Family, weight and sentence of what speaks for or against `cause`."""
    return [(family, weight, text) for (name, family, _), (weight, text) in evidence.items() if name == cause]


def _reserved(shares: dict[str, float]) -> dict[str, float]:
    """The shares with at least RESERVED for `unknown`."""
    kept = min(1.0, (1 - RESERVED) / max(1 - shares[UNKNOWN], 1e-12))
    return {cause: max(share, RESERVED) if cause == UNKNOWN else kept * share for cause, share in shares.items()}


def _softmax(odds: dict[str, float], temperature: float) -> dict[str, float]:
    top = max(odds.values())
    weights = {cause: math.exp((logit - top) / temperature) for cause, logit in odds.items()}
    total = sum(weights.values())
    return {cause: weight / total for cause, weight in weights.items()}


def _basis(case: Case, supports: Sequence[tuple[str, float]]) -> Basis:
    """What the families and weights that speak for a cause amount to; a logged figure of the cause itself decides too."""
    if not supports:
        return "prior"
    decided = any(family in DECIDING or (family == "numerics" and weight >= STRONG) for family, weight in supports)
    return "evidence" if decided or case.pattern not in SHAPE_ONLY else "curve"


def _band(score: float, basis: Basis) -> Band:
    """High only where evidence that can decide speaks for the cause, low where none does: a prior is no evidence."""
    if score < LOW_BELOW or basis == "prior":
        return "low"
    return "high" if score >= MEDIUM_BELOW and basis == "evidence" else "medium"


def _missing(case: Case, cause: str) -> tuple[str, ...]:
    """What was not logged and would decide for or against `cause`."""
    return tuple(text for columns, text in WANTED.get(cause, ()) if not any(case.facts.logged(c) for c in columns))
