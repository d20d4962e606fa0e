"""The README's promises that a program can hold."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.cli.conftest import Run

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)


def test_the_first_two_commands_are_one_line_each() -> None:
    assert [command.count("\n") for command in COMMANDS[:2]] == [1, 1]


def test_ci_runs_exactly_the_test_command() -> None:
    assert (ROOT / ".ci/run").read_text().splitlines()[-1] == COMMANDS[1].strip()
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    assert re.findall(r"- run: (.*)", workflow) == [".ci/run"]
    assert re.search(r'python: \["3.11", "3.12", "3.13", "3.14"\]', workflow)


def test_ci_run_may_be_executed() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-s", ".ci/run"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    assert not listed or listed.startswith("100755")


def test_every_command_of_the_readme_exists(run: Run) -> None:
    for command in re.findall(r"^gdiag (\w+)", README, re.MULTILINE):
        assert run(command, "--help").returncode == 0, command


def test_the_files_it_shows_and_links_are_there() -> None:
    for path in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / path).is_file(), path
    for path in re.findall(r"sample_logs/\S+", README):
        assert (ROOT / path).exists(), path
