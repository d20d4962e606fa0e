"""What can be seen of machines, networks and step times, as sentences: None where they do not apply."""

from __future__ import annotations

import re

from gdiag.model import Severity
from gdiag.triage.case import Case
from gdiag.triage.sentences import Sentence


def path(*words: str) -> Sentence:
    """The finding's sentence when the path that its bandwidth is typical of begins with one of `words`."""

    def sentence(case: Case) -> str | None:
        path = case.value("path", "GD702")
        finding = case.find("GD702")
        return finding.message if finding and isinstance(path, str) and path.startswith(words) else None

    return sentence


def ports(kind: str, *, window: bool) -> Sentence:
    """The sentence of a port whose counters of one kind matter.

    window: of one whose growth and the slow steps only share the window of two readings; else of the others.
    """

    def sentence(case: Case) -> str | None:
        for finding in case.findings:
            if (
                finding.code not in {"GD706", "GD710"}
                or finding.severity < Severity.WARNING
                or finding.measure("kind") != kind
            ):
                continue
            shared = finding.measure("meets_slow_steps") is True and finding.number("p") is None
            if shared is window:
                return finding.message
        return None

    return sentence


def clocks_fell(case: Case) -> str | None:
    """Clocks below their own past meanwhile, for a reason that the log cannot tell."""
    finding = case.find("GD604")
    return finding.message if finding is not None and finding.measure("lacking") is not None else None


def more_work(case: Case) -> str | None:
    """Steps with more to do, which explains at least half of the added time."""
    work, ratio = case.number("load_ratio", "GD501", "GD502"), case.number("ratio", "GD501", "GD502")
    if work is None or ratio is None or work <= 1 or work - 1 < 0.5 * (ratio - 1):
        return None
    return f"a step has {work:.3g} times the work it had"


def same_work(case: Case) -> str | None:
    """Steps with as much to do as before."""
    return "a step has as much work as before" if case.number("load_ratio", "GD501", "GD502") == 1 else None


def firmware(case: Case) -> str | None:
    """The network card's own firmware or heat, as the kernel reports it."""
    finding = case.find("GD710")
    failed = (
        finding is not None and finding.measure("kind") in {"firmware", "heat"} and finding.severity >= Severity.WARNING
    )
    return finding.message if finding is not None and failed else None


def failed_transfer(case: Case) -> str | None:
    """A completion error of the verbs layer, status 12: the peer did not acknowledge after all retries."""
    text = case.value("text", "GD008")
    if isinstance(text, str) and re.search(r"Got completion .*with (?:error|status)", text):
        return "a transfer over InfiniBand or RoCE completed with an error"
    return None


def device_error(case: Case) -> str | None:
    """The CUDA runtime's names of errors that no program makes (cudaErrorECCUncorrectable, cudaErrorNvlinkUncorrectable)."""
    text = case.value("text", "GD008")
    if isinstance(text, str) and re.search(r"uncorrectable (?:ECC|NVLink) error", text, re.IGNORECASE):
        return "the run ended with an uncorrectable memory or NVLink error"
    return None


def only_hot(case: Case) -> str | None:
    """A GPU is hot and not throttled."""
    return "the GPU is hot, but no throttling was seen" if case.lead.code == "GD605" else None


def machines_own(case: Case) -> str | None:
    """An Xid of the machine, not of the program."""
    for finding in case.findings:
        if finding.code == "GD404" and finding.severity > Severity.INFO and finding.measure("hardware") is True:
            return finding.message
    return None


def time_limit(case: Case) -> str | None:
    """The log says that the time was up."""
    ended = "time limit" in _last_words(case).lower()
    return "the scheduler ended the job at its time limit" if ended else None


def own_error(case: Case) -> str | None:
    """An exception that only the program's own code raises."""
    found = re.search(
        r"\b(?:Type|Key|Value|Attribute|Index|Name|Assertion|NotImplemented|ZeroDivision|JSONDecode)Error\b",
        _last_words(case),
    )
    return f"the run ended with the program's own {found[0]}" if found else None


def _last_words(case: Case) -> str:
    return str(case.value("text", "GD008") or "")
