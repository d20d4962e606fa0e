from __future__ import annotations

import pytest

from gdiag.ingesters import verl
from tests.ingesters.console_samples import FORMATS, losses, read

VALUES = losses(20)
_, LINE = FORMATS["verl"]


@pytest.mark.parametrize("at", [30, 45, 62, 80])
def test_lines_wrapped_anywhere_behind_the_step_are_put_together(at: int) -> None:
    prefix = "(TaskRunner pid=4711) "
    lines = []
    for i, value in enumerate(VALUES, 1):
        message = LINE(i, value).removeprefix(prefix)
        lines += [prefix + message[:at], prefix + message[at:], "(WorkerDict pid=12) some other worker speaks"]
    steps = read(verl, "\n".join(lines) + "\n").steps
    assert steps is not None
    assert steps["step"].to_list() == list(range(1, 21))
    assert steps["loss"].to_list() == pytest.approx(VALUES, abs=6e-4)
    assert steps["step_time"].to_list() == pytest.approx([20.1 + i % 2 for i in range(1, 21)])


def test_other_lines_are_not_taken_in() -> None:
    log = "".join(f"{LINE(i, v)}\n(TaskRunner pid=4711) validation - done: yes\n" for i, v in enumerate(VALUES, 1))
    steps = read(verl, log).steps
    assert steps is not None
    assert steps["loss"].to_list() == pytest.approx(VALUES, abs=6e-4)
