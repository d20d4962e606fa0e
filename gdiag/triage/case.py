"""One incident as causes and actions see it: its findings, the run's other findings, and the run's figures."""

from __future__ import annotations

from dataclasses import dataclass, field

from gdiag.model import DataWindow, Finding, Pattern, Severity, Value
from gdiag.triage.facts import RunFacts


@dataclass(frozen=True, slots=True)
class Case:
    """Read-only view over the evidence of one incident."""

    pattern: Pattern
    lead: Finding
    """The finding that names the incident."""
    findings: tuple[Finding, ...]
    """All findings of the incident, in report order."""
    others: tuple[Finding, ...] = ()
    """The same run's findings outside this incident."""
    facts: RunFacts = field(default_factory=lambda: RunFacts("run"))
    onset: int | None = None
    last: int | None = None
    layer: str | None = None
    rank: int | None = None
    host: str | None = None
    gpu: int | None = None
    data: DataWindow | None = None

    @property
    def severity(self) -> Severity:
        """That of the gravest finding."""
        return max(f.severity for f in self.findings)

    def find(self, *codes: str) -> Finding | None:
        """The first finding of the incident with one of `codes`."""
        return next((f for code in codes for f in self.findings if f.code == code), None)

    def context(self, *codes: str) -> Finding | None:
        """The first finding of the run, inside or outside the incident, with one of `codes`."""
        inside = self.find(*codes)
        return inside or next((f for code in codes for f in self.others if f.code == code), None)

    def beside(self, code: str, steps: float = 50) -> Finding | None:
        """A finding of the run with `code` that starts within `steps` logged rows of the onset."""
        if self.onset is None:
            return None
        reach = steps * self.facts.interval
        for finding in (*self.findings, *self.others):
            at = finding.where.step
            if finding.code == code and at is not None and abs(at - self.onset) <= reach:
                return finding
        return None

    def number(self, name: str, *codes: str) -> float | None:
        """The first numeric evidence called `name` in the incident, in findings with `codes` when given."""
        for finding in self.findings:
            if not codes or finding.code in codes:
                value = finding.number(name)
                if value is not None:
                    return value
        return None

    def value(self, name: str, *codes: str) -> Value | None:
        """The first evidence called `name` in the incident, in findings with `codes` when given."""
        for finding in self.findings:
            if not codes or finding.code in codes:
                value = finding.measure(name)
                if value is not None:
                    return value
        return None


def other_weights(finding: Finding) -> bool:
    """Whether GD208 tells of norms of half of the layers or more that jump because other weights were loaded."""
    return finding.code == "GD208" and finding.measure("other_weights") is True
