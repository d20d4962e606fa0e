"""The benchmark's own arithmetic: cases, matching, figures."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.calibrate import guess
from benchmarks.cases import RANGES, recipes
from benchmarks.figures import Outcome, figures
from benchmarks.matching import judge
from gdiag.model import Cause, Incident, Pattern, Report, Severity
from gdiag.simulate.faults import FAULTS
from gdiag.simulate.truth import Event, Truth
from gdiag.triage.causes import TEMPERATURE, USUAL_TEMPERATURE


def incident(pattern: Pattern, onset: int, severity: Severity = Severity.WARNING, cause: str = "bad_batch") -> Incident:
    return Incident(
        pattern, pattern, severity, "run", onset_step=onset, last_step=onset + 5, causes=(Cause(cause, 0.8, "high"),)
    )


def truth(*events: Event, tolerated: tuple[str, ...] = ()) -> Truth:
    return Truth("spike", 1, "gauss", "plain", 1, 1000, not events, "", events, tolerated)


SPIKE = Event("spike", ("bad_batch",), ("single_spike",), 500)


def test_the_suite_covers_every_fault_with_three_hundred_runs() -> None:
    chosen = list(recipes(RANGES["tune"]))
    assert len(chosen) >= 300
    assert {recipe.fault for recipe in chosen} == {fault.name for fault in FAULTS}
    assert {recipe.setup.every for recipe in chosen} == {1, 5, 10, 50}
    assert len({recipe.setup.seed for recipe in chosen}) == len(chosen)
    other = {recipe.setup.seed for recipe in recipes(RANGES["report"])}
    assert not other & {recipe.setup.seed for recipe in chosen}


def test_the_nearest_incident_is_the_events() -> None:
    judged = judge(Report(incidents=(incident("divergence", 506), incident("single_spike", 502))), truth(SPIKE))
    (match,) = judged.matches
    assert match.patterned
    assert match.caused
    assert match.error == 2
    assert len(judged.false) == 1


def test_an_info_incident_is_no_detection_and_no_false_alarm() -> None:
    judged = judge(Report(incidents=(incident("single_spike", 500, Severity.INFO),)), truth(SPIKE))
    assert judged.matches[0].incident is None
    assert not judged.false


def test_tolerated_patterns_are_not_false() -> None:
    report = Report(incidents=(incident("log_quality", 5),))
    assert judge(report, truth()).false
    assert not judge(report, truth(tolerated=("log_quality",))).false


def test_figures_name_misses_with_their_command() -> None:
    missed = judge(Report(), truth(SPIKE))
    text = figures([Outcome("gdiag simulate spike --seed 1", missed.truth, missed, "", 0.1)])
    assert "detected 0/1" in text
    assert "missed spike @500, reported nothing: gdiag simulate spike --seed 1" in text


def test_a_guess_has_its_present_score_at_the_temperature_in_use() -> None:
    told = guess(incident("single_spike", 500), right=True)
    assert told.top() == 0.8
    assert told.present == USUAL_TEMPERATURE  # nothing speaks for its cause
    assert abs(told.top(told.present) - 0.8) < 1e-9
    assert told.top(2 * told.present) < 0.8 < told.top(told.present / 2)
    supported = replace(incident("single_spike", 500), causes=(Cause("bad_batch", 0.8, "high", ("seen",)),))
    assert guess(supported, right=True).present == TEMPERATURE


def test_events_that_nothing_can_explain_wrongly_say_nothing_of_scores() -> None:
    shape = Event("spike", ("bad_batch", "unknown"), ("single_spike",), 500)
    for event, said in ((SPIKE, True), (shape, False)):
        judged = judge(Report(incidents=(incident("single_spike", 500),)), truth(event))
        text = figures([Outcome("gdiag simulate spike", judged.truth, judged, "", 0.1)])
        assert ("calibration of the first cause, 1 events" in text) is said
