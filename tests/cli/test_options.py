"""What options refuse, in a sentence that says what, where, and what is allowed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gdiag.analyzers import ANALYZERS
from gdiag.analyzers.selection import choose
from gdiag.cli import options
from gdiag.config import Config
from gdiag.errors import InputError, UsageError
from tests.cli.running import gdiag
from tests.cli.test_thermal import telemetry

SAID = Config()


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(json.dumps({"step": i, "loss": 3.0 - i / 100}) for i in range(50)))
    return str(path)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"quiet": True, "verbose": True}, "-q and -v contradict each other"),
        ({"with_series": True}, "--with-series goes with --format json"),
    ],
)
def test_options_that_contradict_each_other(flags: dict[str, bool], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        options.check_form("text", **flags)
    options.check_form("json", with_series=True)


def test_an_empty_severity_is_no_default() -> None:
    assert options.fail_limit(None, SAID) == "warning"
    assert options.fail_limit(None, Config(fail_on="never")) == "never"
    with pytest.raises(UsageError, match="--fail-on '': allowed are info, warning, critical, never"):
        options.fail_limit("", SAID)


def test_empty_values_are_refused(log: str) -> None:
    with pytest.raises(UsageError, match="--steps is empty"):
        options.records([log], SAID, None, None, "")
    with pytest.raises(UsageError, match="no time zone"):
        options.records([log], SAID, None, "", None)
    with pytest.raises(InputError, match="an empty path"):
        options.records([""], SAID, None, None, None)


def test_steps_outside_the_log_are_named_as_they_were_given(log: str) -> None:
    for window, shown in (("99:", "99:"), (":-1", ":-1"), ("60:70", "60:70")):
        with pytest.raises(UsageError, match=f"no step lies in {shown}; the log holds 0 to 49"):
            options.records([log], SAID, None, None, window)
    assert options.records([log], SAID, None, None, ":").steps.height == 50


def test_a_configuration_serves_every_command() -> None:
    some = choose(ANALYZERS, ["GD6"])
    limits = options.limits(
        Config(thresholds={"GD102": {"z": 8.0}, "GD601": {"share": 0.2}}), ["GD601.share=0.3"], some
    )
    assert limits == {"GD102": {"z": 8.0}, "GD601": {"share": 0.3}}


def test_a_threshold_of_a_check_that_does_not_run_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--set GD102.z=8: GD102 is not among the checks that run: GD403"):
        options.limits(SAID, ["GD102.z=8"], choose(ANALYZERS, ["GD403"]))
    with pytest.raises(UsageError, match="no check is called 'GD999'"):
        options.limits(SAID, ["GD999.z=8"], choose(ANALYZERS, ["GD403"]))


def test_telemetry_in_place_of_a_step_log_is_refused(tmp_path: Path) -> None:
    path = str(telemetry(tmp_path))
    done = gdiag("thermal", path, "--run", path, cwd=tmp_path)
    assert done.returncode == 2
    assert b"holds no step log" in done.stderr
