"""The kernel reports a network card or its link: down, too hot, failed firmware, failed transfers.

What it checks
    Lines of the mlx5 driver in a kernel log, grouped by card and kind, with the severity of `gdiag/reference/nic_lines.tsv`: a
    link that goes down, transceiver and cable errors, heat, firmware failures, transfers that end with an error. Lines
    with a clock are placed on the run's steps; slow steps within a minute after them are counted. A slot that advertises
    too little power is a note: healthy machines print it at every start. So is a link that goes down at an unknown time.

Why it matters
    A link that drops stalls every rank that waits for it and ends the job when it stays away; it is the machine's own word.

What to do
    Down and up again: clean or replace the cable and transceiver, check the switch's port. Too hot: airflow. Firmware:
    update it, power-cycle the host, replace the card when it returns.
"""

from __future__ import annotations

from gdiag.measures.nic_events import NicEvents
from gdiag.measures.run import RunView
from gdiag.model import Finding, Measure, Severity

CODE = "GD710"
NAME = "nic-events"
NEEDS: tuple[str, ...] = ("events.kind",)


def analyze(run: RunView, *, most: int = 50) -> list[Finding]:
    """A finding per card and kind; most: findings at most."""
    return [_finding(run, seen) for seen in run.nic_events[:most]]


def _finding(run: RunView, seen: NicEvents) -> Finding:
    known = seen.known
    severity = known.severity if known.severity is not None else Severity.INFO
    if seen.time is None:
        severity = Severity.INFO if known.name == "link_down" else severity
    elif seen.stays and seen.step is not None:
        severity = Severity.CRITICAL
    on = f" of {seen.host}" if seen.host else ""
    times = f" {seen.count} times" if seen.count > 1 else ""
    at = f" at step {seen.step}" if seen.step is not None and seen.step == seen.last_step else ""
    if seen.step is not None and seen.step != seen.last_step:
        at = f" between steps {seen.step} and {seen.last_step}"
    stays = " and does not come up again" if seen.stays else ""
    near = f", with {seen.slow_near} slow steps within a minute" if seen.slow_near else ""
    text = f"{seen.card}{on}: {known.meaning}{times}{at}{stays}{near}"
    evidence = [
        Measure("event", known.name), Measure("count", seen.count), Measure("kind", known.kind), Measure("port", seen.card), Measure("action", known.action),
        Measure("meets_slow_steps", seen.slow_near > 0),
    ]  # fmt: skip
    if seen.slow_near:
        evidence.append(Measure("slow_inside", seen.slow_near))
    where = run.where(
        seen.row, step=seen.step, last_step=seen.last_step, host=seen.host, time=seen.time, last_time=seen.last_time
    )
    return Finding(CODE, NAME, severity, text, where, tuple(evidence))
