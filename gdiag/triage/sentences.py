"""What can be seen of a case, as sentences: each is None where it does not apply. The evidence table says what they weigh."""

from __future__ import annotations

from collections.abc import Callable

from gdiag.model import Severity
from gdiag.reference.figures import filled
from gdiag.triage.case import Case, other_weights

Sentence = Callable[[Case], str | None]


def found(*codes: str, least: Severity = Severity.INFO) -> Sentence:
    """The message of the incident's first finding with one of `codes`."""

    def sentence(case: Case) -> str | None:
        finding = case.find(*codes)
        return finding.message if finding is not None and finding.severity >= least else None

    return sentence


def nearby(code: str, steps: float = 50, least: Severity = Severity.INFO) -> Sentence:
    """The message of a finding of the run with `code` within `steps` rows of the onset."""

    def sentence(case: Case) -> str | None:
        finding = case.beside(code, steps)
        return finding.message if finding is not None and finding.severity >= least else None

    return sentence


def at_least(name: str, limit: float, text: str, *codes: str) -> Sentence:
    """`text` with the figure filled in when the evidence `name` reaches `limit`."""

    def sentence(case: Case) -> str | None:
        value = case.number(name, *codes)
        if value is None or value < limit:
            return None
        return filled(text, value)

    return sentence


def flagged(name: str, text: str, *codes: str) -> Sentence:
    """`text` when the evidence `name` is true."""
    return lambda case: text if case.value(name, *codes) is True else None


def lone_jump(case: Case) -> str | None:
    """A gradient that is back at once while the loss stays: one step's, not a state's."""
    if case.lead.code != "GD206" or case.value("recovered", "GD206") is not True:
        return None
    rows, count = case.number("rows", "GD206"), case.number("spikes", "GD206")
    if case.value("loss_moved", "GD206") is not False or rows is None or count is None or rows > 3 or count > 3:
        return None
    return "the gradient is back in its next rows and the loss does not follow: one step's doing, not a rate's"


def outgrows(kind: str | None = None) -> Sentence:
    """A layer (of `kind`) that begins to outgrow all others."""

    def sentence(case: Case) -> str | None:
        finding = next((f for f in case.findings if f.code == "GD207" and f.measure("alone") is True), None)
        if finding is None or finding.severity < Severity.WARNING or kind not in (None, finding.measure("layer_kind")):
            return None
        return finding.message

    return sentence


def unflagged(name: str, text: str, *codes: str) -> Sentence:
    """`text` when the evidence `name` is false."""
    return lambda case: text if case.value(name, *codes) is False else None


def said(name: str, value: str, text: str, *codes: str) -> Sentence:
    """`text` when the evidence `name` is the word `value`."""
    return lambda case: text if case.value(name, *codes) == value else None


def odd_batch(case: Case) -> str | None:
    """A statistic of the onset's batch that differs from that of all others."""
    for name, words in (
        ("token_entropy", "token entropy"),
        ("duplicate_share", "share of duplicates"),
        ("seq_len", "sequence length"),
    ):
        z = case.number(f"{name}_z")
        if z is not None and abs(z) >= 4:
            return f"{words} of the onset batch is {z:+.1f} robust z from its own history"
    return None


def plain_entropy(case: Case) -> str | None:
    """The onset batch's entropy is ordinary."""
    z = case.number("token_entropy_z")
    return f"token entropy of the onset batch is ordinary (z {z:+.1f})" if z is not None and abs(z) < 2.5 else None


JUMPS = ("GD201", "GD204", "GD205", "GD206", "GD208", "GD402")
"""Findings of layers that move from one row to the next."""


def moved_together(case: Case) -> str | None:
    """All layers moved in the same step; what grows for many steps (GD207, GD210) is no batch's."""
    moved, total = (case.number(name, *JUMPS) for name in ("layers_moved", "layers_total"))
    if moved is None or not total or moved < 0.5 * total:
        return None
    return f"{moved:.0f} of {total:.0f} layers move in the same step, as a batch moves them"


def early_logits(case: Case) -> str | None:
    """Attention logits that saturate in the first rows of a run that does not learn: only large updates drive them so."""
    grown = case.context("GD210")
    if grown is None or grown.measure("logged") is not True or grown.measure("from_start") is not True:
        return None
    return grown.message


def decay_grew(case: Case) -> str | None:
    """Norms of all layers that shrink together; weights that updates carried off before come back by the decay they always had."""
    shrink = case.find("GD215")
    carried = case.value("kind", "GD307") == "weights"
    return shrink.message if shrink is not None and shrink.severity >= Severity.WARNING and not carried else None


def one_layer(case: Case) -> str | None:
    """One layer alone moved."""
    moved, total = (case.number(name, *JUMPS) for name in ("layers_moved", "layers_total"))
    if moved is None or total is None or total < 4 or moved > max(1.0, 0.1 * total):
        return None
    return f"only {moved:.0f} of {total:.0f} layers moves"


def kind(which: str, text: str) -> Sentence:
    """`text` with the layer, where the layer that moved first is of the kind `which`; one among many tied says nothing."""

    def sentence(case: Case) -> str | None:
        for finding in case.findings:
            tied = finding.measure("attributable") is False and finding.number("embedding_excess") is None
            if not tied and which in (finding.measure("layer_kind"), finding.measure("kind")):
                layer = finding.where.layer or case.layer
                return text.format(f" {layer}" if layer else "")
        return None

    return sentence


def steady_lr(case: Case) -> str | None:
    """The learning rate does not jump around the onset."""
    jump = case.beside("GD302", 12)
    if jump is not None and jump.severity >= Severity.WARNING:
        return None  # a later finding of the same incident sees the rate steady after the jump
    ratio = case.number("lr_ratio")
    return (
        "the learning rate is the same before and at the onset" if ratio is not None and abs(ratio - 1) < 0.05 else None
    )


def changed(name: str, what: str, least: float) -> Sentence:
    """The sentence when the evidence `name`, a ratio after over before, is off one by the factor `least` or more."""

    def sentence(case: Case) -> str | None:
        # A later finding of the incident may be level: the change counts wherever it was.
        seen = [value for f in case.findings if (value := f.number(name)) is not None and value > 0]
        ratio = max(seen, key=lambda value: max(value, 1 / value), default=1.0)
        if max(ratio, 1 / ratio) < least:
            return None
        return f"the {what} changes ×{ratio:.3g} at the onset"

    return sentence


def at_restart(case: Case) -> str | None:
    """A jump of the learning rate at a restart of the run."""
    for finding in case.findings:
        if finding.code in {"GD302", "GD306"} and finding.measure("at_restart") is True:
            return "the learning rate jumps at a restart of the run: the scheduler was not restored with it"
    return None


def paced_at_restart(case: Case) -> str | None:
    """A schedule that moves faster from a restart on."""
    finding = case.find("GD306")
    fast = finding is not None and finding.measure("kind") == "advanced_twice"
    return finding.message if finding is not None and fast and finding.measure("at_restart") is True else None


def at_peak_rate(*codes: str) -> Sentence:
    """The learning rate is near its peak where findings with `codes` begin; one that never changes is so everywhere."""
    near = at_least("lr_share_of_peak", 0.8, "the learning rate is at {:.0%} of its peak", *codes)
    return lambda case: None if case.facts.steady_lr else near(case)


def decayed(case: Case) -> str | None:
    """The learning rate is far below its peak and not on its way up to it."""
    share, ratio = case.number("lr_share_of_peak"), case.number("lr_ratio")
    if share is None or share > 0.2 or (ratio is not None and ratio > 1.05):
        return None
    return f"the learning rate is down to {share:.0%} of its peak"


def weights_jump(case: Case) -> str | None:
    """Norms of half of the layers that jump to those of other weights."""
    finding = case.find("GD208")
    return finding.message if finding is not None and other_weights(finding) else None


def one_jumps(case: Case) -> str | None:
    """A parameter norm that jumps by itself."""
    finding = case.find("GD208")
    if finding is None or finding.severity < Severity.WARNING or other_weights(finding):
        return None
    return finding.message


def units_died(case: Case) -> str | None:
    """A layer whose parameters jump and which has no gradient at all from that very row on."""
    jump = case.find("GD208")
    if jump is None or jump.where.step is None or jump.where.layer is None:
        return None
    for dead in (f for f in case.findings if f.code == "GD203" and f.where.layer == jump.where.layer):
        at = dead.where.step
        if (
            at is not None
            and dead.measure("exact_zero") is True
            and abs(at - jump.where.step) <= 2 * case.facts.interval
        ):
            return f"{jump.where.layer} has no gradient at all from there on: all its units died, which one flipped bit does not do"
    return None


def many_jump(case: Case) -> str | None:
    """A flipped bit moves one tensor."""
    moved = case.number("layers_moved", "GD208")
    alone = case.value("alone", "GD208")
    return f"{moved:.0f} layers jump in one step, which a flipped bit does not do" if moved and alone is False else None


def in_a_layer(case: Case) -> str | None:
    """A layer turns non-finite first."""
    finding = case.find("GD204")
    return finding.message if finding is not None and finding.measure("simultaneous") is False else None


def stays(case: Case) -> str | None:
    """A layer that stays not finite when an overflow of all layers is over."""
    finding = case.find("GD204")
    if finding is None or finding.measure("stays") is not True:
        return None
    scale = ", at any loss scale" if case.find("GD112") else ""
    return f"{finding.where.layer or 'a part of the layers'} stays not finite{scale}, when all other layers are finite again"
