"""All console formats: recognised, read whole, and never the worse for damage."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import recognise
from tests.ingesters.console_samples import FORMATS, given, losses, read

NAMES = sorted(FORMATS)
PREFIXES = (
    "",
    "0: ",
    "12: ",
    "[default3]:",
    "0: [default7]:",
    "[rank0]:",
    "slurm_procid 0 : ",
    "2026-05-29 15:42:14,660 INFO ",
)


def text(name: str, count: int, start: int = 1) -> tuple[list[str], list[float]]:
    _, line = FORMATS[name]
    values = losses(count)
    return [line(start + i, v) for i, v in enumerate(values)], values


def close(found: list[float | None], wanted: list[float]) -> bool:
    return len(found) == len(wanted) and all(
        f is not None and abs(f - w) < 1e-3 for f, w in zip(found, wanted, strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
def test_recognised_and_read_whole(name: str) -> None:
    lines, values = text(name, 120)
    noise = ["Loading dataset shards: 100%", "WARNING: something about iteration order", "", "  | a | table |"]
    log = "\n".join(noise + lines[:60] + noise + lines[60:]) + "\n"
    module = recognise(given(log))
    assert module is FORMATS[name][0]
    reading = read(FORMATS[name][0], log)
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == list(range(1, 121))
    assert close(reading.steps["loss"].to_list(), values)
    assert reading.steps["line"][0] == len(noise) + 1
    assert reading.rejects is None
    assert reading.source.rows == 120


@pytest.mark.parametrize("name", NAMES)
def test_nan_and_inf_stay(name: str) -> None:
    lines, values = text(name, 20)
    _, line = FORMATS[name]
    lines[10] = line(11, float("nan"))
    lines[11] = line(12, float("inf"))
    steps = read(FORMATS[name][0], "\n".join(lines) + "\n").steps
    assert steps is not None
    found = steps["loss"].to_list()
    assert len(found) == 20
    assert found[10] != found[10]
    assert found[11] == float("inf")
    assert close(found[:10] + found[12:], values[:10] + values[12:])


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5, deadline=None)
@over(data=st.data())
def test_truncation_keeps_what_stands_before(name: str, data: st.DataObject) -> None:
    lines, values = text(name, 30)
    whole = ("\n".join(lines) + "\n").encode()
    cut = data.draw(st.integers(0, len(whole)))
    complete = whole[:cut].count(b"\n")
    with contextlib.suppress(InputError):
        steps = read(FORMATS[name][0], whole[:cut]).steps
        assert steps is not None
        assert len(steps) <= complete + 1
        assert not complete or close(steps["loss"].to_list()[:complete], values[:complete])
        return
    assert complete == 0


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4, deadline=None)
@over(data=st.data())
def test_line_endings_and_prefixes_do_not_matter(name: str, data: st.DataObject) -> None:
    lines, values = text(name, 25)
    endings = data.draw(st.lists(st.sampled_from(["\n", "\r\n", "\r", "\n\n"]), min_size=25, max_size=25))
    prefix = (
        data.draw(st.lists(st.sampled_from(PREFIXES), min_size=25, max_size=25))
        if name not in ("llm.c", "modded-nanogpt")
        else [""] * 25
    )
    log = "".join(p + line + end for p, line, end in zip(prefix, lines, endings, strict=True))
    steps = read(FORMATS[name][0], log).steps
    assert steps is not None
    assert close(steps["loss"].to_list(), values)
    assert steps["step"].to_list() == list(range(1, 26))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5, deadline=None)
@over(junk=st.binary(max_size=200), at=st.integers(0, 2000))
def test_junk_never_raises(name: str, junk: bytes, at: int) -> None:
    lines, _ = text(name, 12)
    whole = ("\n".join(lines) + "\n").encode()
    with contextlib.suppress(InputError):
        read(FORMATS[name][0], whole[:at] + junk + whole[at:])
