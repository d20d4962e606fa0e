from __future__ import annotations

from pathlib import Path

import pytest

from gdiag.config import Config, find, load
from gdiag.errors import UsageError

WHOLE = """
select = ["GD1"]
ignore = ["loss-spike"]
fail_on = "critical"
tz = "UTC"
[map]
loss = "my/metric"
[thresholds.GD102]
z = 8
"""


def test_every_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "gdiag.toml").write_text(WHOLE)
    assert find(tmp_path) == Config(
        ("GD1",), ("loss-spike",), "critical", "UTC", {"loss": "my/metric"}, {"GD102": {"z": 8}}
    )


def test_the_table_in_pyproject_is_used_where_there_is_no_file_of_our_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.gdiag]\nfail_on = "never"\n')
    assert find(tmp_path).fail_on == "never"
    (tmp_path / "gdiag.toml").write_text('fail_on = "info"\n')
    assert find(tmp_path).fail_on == "info"


def test_a_project_that_says_nothing_sets_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("not even toml")
    assert find(tmp_path) == Config()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("selects = []", "allowed are select, ignore"),
        ("select = 'GD1'", "list of strings"),
        ("fail_on = 'bad'", "info, warning, critical, never"),
        ("fail_on = 3", "string"),
        ("map = 3", "table"),
        ("map.loss = 3", "string"),
        ("thresholds.GD102 = 3", "table"),
        ("thresholds.GD102.z = [3]", "number"),
        ("a = ", "no valid TOML"),
        ("a = " + "[" * 5000, "nested too deeply"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_is_allowed(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "gdiag.toml").write_text(text)
    with pytest.raises(UsageError, match=says):
        load(tmp_path / "gdiag.toml")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "gdiag.toml")
