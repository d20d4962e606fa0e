"""The nouns: frozen dataclasses that every room speaks in."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

Value = float | int | str | bool
"""A scalar of a config, a measure or a table cell."""

Exit = Literal["clean", "abnormal", "unknown"]
Band = Literal["low", "medium", "high"]
Basis = Literal["evidence", "curve", "prior"]
"""What a score rests on: evidence of a kind that can decide, loss and gradient alone, or how common the cause is."""
Pattern = Literal[
    "single_spike", "repeated_spikes", "divergence", "step_up", "nonfinite", "skipped_steps", "plateau", "no_learning",
    "resume_jump", "hard_batches", "gradient_explosion", "vanishing_gradient", "dead_layer", "layer_outlier",
    "parameter_jump", "parameter_growth", "lr_discontinuity", "lr_schedule", "rank_mismatch", "rank_outlier",
    "eval_divergence", "scale_mismatch", "hang", "abnormal_exit", "memory_growth", "slow_steps", "periodic_slow_steps",
    "step_time_drift", "step_time_shift", "straggler", "thermal_slowdown", "power_limit", "power_brake",
    "clock_outlier", "ecc_error", "gpu_error", "slow_collective", "low_bandwidth", "wrong_results", "latency_jitter",
    "bandwidth_collapse", "port_errors", "inconsistent_output", "log_quality",
]  # fmt: skip


class Severity(IntEnum):
    """How much is at stake; members compare in order."""

    INFO = 0
    """Worth knowing."""
    WARNING = 1
    """Time, money or quality is being lost."""
    CRITICAL = 2
    """Results or hardware are in danger."""

    @property
    def label(self) -> str:
        """The lower-case name used in reports and on the command line."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Location:
    """Where something was seen; what is not known is None."""

    file: str | None = None
    line: int | None = None
    """1-based line in `file`."""
    run: str | None = None
    rank: int | None = None
    step: int | None = None
    """First step, in the log's own numbers."""
    last_step: int | None = None
    """Last step, inclusive."""
    layer: str | None = None
    """Module or parameter path without metric prefixes and wrapper parts."""
    host: str | None = None
    gpu: int | None = None
    """Index on its host."""
    time: float | None = None
    """First moment, Unix seconds; local clock read as UTC where `zone_known` is False."""
    last_time: float | None = None
    zone_known: bool = True


@dataclass(frozen=True, slots=True)
class Measure:
    """What was seen and what it was held against."""

    name: str
    value: Value
    unit: str = ""
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """An observation with its evidence, never an explanation."""

    code: str
    """Stable code such as GD102."""
    name: str
    """Kebab-case name such as loss-spike."""
    severity: Severity
    message: str
    """One sentence, present tense, figures with units, no advice, no final stop."""
    where: Location
    evidence: tuple[Measure, ...] = ()

    def measure(self, name: str) -> Value | None:
        """The value of the evidence called `name`, or None."""
        return next((m.value for m in self.evidence if m.name == name), None)

    def number(self, name: str) -> float | None:
        """The numeric value of the evidence called `name`, or None when absent or not a number."""
        value = self.measure(name)
        return float(value) if isinstance(value, int | float) else None


@dataclass(frozen=True, slots=True)
class Cause:
    """One explanation of an incident, with what speaks for it, against it, and what is missing to decide."""

    cause: str
    score: float
    """0-1; see docs/calibration.md for what it means."""
    band: Band
    supports: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    basis: Basis = "evidence"


@dataclass(frozen=True, slots=True)
class DataWindow:
    """Sample or batch ids consumed at the onset: first inclusive, last exclusive, as logged."""

    first_sample: int
    last_sample: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What an incident cost, as far as the log can tell."""

    steps: int | None = None
    seconds: float | None = None
    gpu_hours: float | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """Findings that follow from one event, explained."""

    title: str
    pattern: Pattern
    severity: Severity
    run: str
    onset_step: int | None = None
    last_step: int | None = None
    onset_time: float | None = None
    last_time: float | None = None
    zone_known: bool = True
    layer: str | None = None
    rank: int | None = None
    host: str | None = None
    gpu: int | None = None
    data: DataWindow | None = None
    cost: Cost = Cost()
    findings: tuple[int, ...] = ()
    """Indices into Report.findings."""
    related: tuple[int, ...] = ()
    """Indices into Report.incidents that this one may cause or follow."""
    causes: tuple[Cause, ...] = ()
    """Best first."""
    actions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skip:
    """A check that could not run because what it needs was not logged: never the same as a pass."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Source:
    """One file's part in the analysis."""

    path: str
    format: str
    rows: int
    rejected: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    """Canonical name → name in the file."""
    notes: tuple[str, ...] = ()
    """What limits the reading: sampled, averaged, truncated, not understood."""
    unused: tuple[str, ...] = ()
    """Columns of numbers that nothing is made of."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of consecutive logging by one writer, between restarts."""

    first_step: int
    last_step: int
    rows: int


@dataclass(frozen=True, slots=True)
class Run:
    """One training run, put together from its sources."""

    id: str
    name: str | None = None
    sources: tuple[int, ...] = ()
    """Indices into Report.sources."""
    config: dict[str, Value] = field(default_factory=dict)
    """What config files or headers say: total_steps, warmup_steps, lr, clip, batch_size, precision, beta2, …; in a report
    also the recognised schedule: lr_schedule, lr_warmup_steps, lr_peak, lr_floor, lr_decay_start, lr_decay_end."""
    segments: tuple[Segment, ...] = ()
    exit: Exit = "unknown"


@dataclass(frozen=True, slots=True)
class Series:
    """Points that plots are drawn from: decimated by minimum and maximum, exact around incidents."""

    name: str
    unit: str
    run: str
    x: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    rank: int | None = None
    layer: str | None = None
    host: str | None = None
    gpu: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a Table."""

    name: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows to show: per GPU, per message size, per compared quantity, around one step."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a renderer may show."""

    runs: tuple[Run, ...] = ()
    sources: tuple[Source, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Sorted by severity, then place."""
    incidents: tuple[Incident, ...] = ()
    """Sorted by severity, then onset."""
    series: tuple[Series, ...] = ()
    tables: tuple[Table, ...] = ()
    checked: tuple[str, ...] = ()
    skipped: tuple[Skip, ...] = ()
    advice: tuple[str, ...] = ()
    """What to log next time."""

    @property
    def worst(self) -> Severity | None:
        """Severity of the worst incident, None when there is none."""
        return max((i.severity for i in self.incidents), default=None)
