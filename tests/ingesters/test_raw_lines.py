"""Step lines read before they become text: the same is found as when every line is text first."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from gdiag.ingesters import console, line_kinds, raw_lines, reading
from gdiag.ingesters import text as plain
from gdiag.ingesters.files import open_file
from gdiag.ingesters.reading import Options
from tests.ingesters.console_samples import FORMATS, losses
from tests.ingesters.console_samples import given as console_of

GRAMMARS = {name: module._GRAMMAR for name, (module, _) in FORMATS.items() if hasattr(module, "_GRAMMAR")}
OTHERS = (
    "", " ", "saving checkpoint at iteration 40", "Traceback (most recent call last):", "\tdeep", "tensor(", "2.5)", "loss tensor(2.5)",
    "lr np.float32(3e-4) step 3", "\x1b[31mred\x1b[0m", "bar 1\rbar 2", "a\0b", "a\x01b", "é ß 漢", "step:", "(", "x" * 5000,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short consoles are read as long ones are."""
    monkeypatch.setattr(raw_lines, "_LEAST", 0)


def both(data: bytes, grammar: console.Grammar) -> tuple[console.Found, console.Found]:
    """What is found, and what is where every line is text first."""
    mine = console.find(console_of(data), Options(), grammar)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_lines, "begin", lambda data, *_, **__: (None, plain.lines(data)))
        return mine, console.find(console_of(data), Options(), grammar)


def agree(data: bytes, grammar: console.Grammar) -> None:
    """All is the same."""
    mine, other = both(data, grammar)
    assert_frame_equal(mine.wide, other.wide, check_exact=True)
    assert_frame_equal(mine.rejects, other.rejects)
    for name in ("notes", "config", "finished"):
        assert getattr(mine, name) == getattr(other, name), name
    left, all_left = (
        found.table.filter(~found.table["line"].is_in(mine.wide["line"].to_list())) for found in (mine, other)
    )
    assert_frame_equal(left, all_left)


def many(name: str, count: int = 400) -> list[bytes]:
    _, line = FORMATS[name]
    return [line(7 * i, loss).encode() for i, loss in enumerate(losses(count, seed=count), 1)]


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_whole_console(name: str) -> None:
    agree(b"\n".join(many(name)) + b"\n", GRAMMARS[name])


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
def test_other_line_endings(name: str, end: bytes) -> None:
    agree(end.join(many(name)) + end, GRAMMARS[name])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(GRAMMARS)), st.integers(0, 10**6), st.integers(0, 40))
def test_among_other_and_damaged_lines(name: str, seed: int, damage: int) -> None:
    """Whole lines are read alike; of damaged ones the last number may be trusted here and not there."""
    rng = random.Random(seed)
    lines = many(name, rng.randint(20, 300))
    good = {plain.clean(line).decode() for line in lines}
    for _ in range(damage):
        at = rng.randrange(len(lines))
        what = rng.randrange(6)
        if what == 0:
            lines.insert(at, rng.choice(OTHERS).encode())
        elif what == 1:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
        elif what == 2:
            lines[at] += rng.choice([lines[at], b" ", b"\xff\xfe"])
        elif what == 3:
            place = rng.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place] + rng.choice(OTHERS).encode() + lines[at][place:]
        elif what == 4:
            lines[at] = lines[at].replace(b"1", b"nan", 1)
        else:
            lines[at] = b"[rank%d]: " % rng.randrange(3) + lines[at]
    text = b"\n".join(lines)
    text = text[: rng.randrange(len(text))] if rng.random() < 0.5 else text + b"\n" * rng.randrange(3)
    mine, other = both(text, GRAMMARS[name])
    whole = plain.lines(text).filter(pl.col("text").is_in(good))["line"].to_list()
    shared = [column for column in other.wide.columns if column in mine.wide.columns]
    rows = [found.wide.select(shared).filter(pl.col("line").is_in(whole)) for found in (mine, other)]
    assert_frame_equal(*rows, check_exact=True)
    nth = pl.int_range(pl.len()).over("line").alias("place")  # of the rows of a line that was two
    keys = ["line", "place", "step"]
    joined = mine.wide.with_columns(nth).join(other.wide.with_columns(nth), on=keys, suffix=" other")
    for column in set(shared) - {"line", "step"}:
        here, there = joined[column], joined[f"{column} other"]
        assert (here.eq_missing(there) | here.is_null() | there.is_null()).all(), column


def test_prefixes_of_several_lengths() -> None:
    lines = [f"{'ab' * (i % 5)}{i % 7}> ".encode() + line for i, line in enumerate(many("megatron"))]
    agree(b"\n".join(lines) + b"\n", GRAMMARS["megatron"])


def test_nearly_all_lines_are_read_as_bytes() -> None:
    data = b"\n".join(many("megatron", 3000)) + b"\n"
    grammar = GRAMMARS["megatron"]
    kind = line_kinds.kind_of(grammar.separator, marker=grammar.marker, shape=grammar.shape, needs=grammar.needs)
    begun, rest = raw_lines.begin(data, kind)
    assert begun is not None
    assert len(begun.alike) + len(rest) == 3000
    assert len(rest) < 10


@pytest.mark.parametrize("few", range(1, 8))
def test_the_last_few_of_a_form_are_read_as_bytes_too(few: int) -> None:
    lines = many("megatron", 3000)
    rare = {i: line.replace(b"lm loss: ", b"lm loss:-") for i, line in enumerate(lines) if i % (3000 // few) == 7}
    odd = b" validation loss at iteration 7 | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 |"
    data = b"\n".join([line for i in range(3000) for line in (rare.get(i, lines[i]), *[odd][: i % 9 == 0])]) + b"\n"
    grammar = GRAMMARS["megatron"]
    kind = line_kinds.kind_of(grammar.separator, marker=grammar.marker, shape=grammar.shape, needs=grammar.needs)
    _, rest = raw_lines.begin(data, kind)
    assert len(rest.filter(~pl.col("text").str.contains("validation"))) < 10
    agree(data, grammar)


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("size", [0, 5, 100_000])
def test_a_file_held_in_large_pages_is_the_file(
    start: bytes, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_LARGE", 1)
    path = tmp_path / "console.log"
    path.write_bytes(start + b"line \xc3\xa9\n" * size)
    assert open_file(path).held()[:] == b"line \xc3\xa9\n" * size


def test_a_large_file_reads_as_its_bytes_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_LARGE", 1)
    path = tmp_path / "console.log"
    for end in (b"\n", b"", b" \x1b[0m\n"):
        path.write_bytes(b"\n".join(many("megatron")) + end)
        file = console.find(open_file(path), Options(), GRAMMARS["megatron"])
        content = console.find(console_of(path.read_bytes()), Options(), GRAMMARS["megatron"])
        assert_frame_equal(file.wide, content.wide, check_exact=True)
        assert_frame_equal(file.table, content.table)


@pytest.mark.parametrize("size", [0, 1, (1 << 22) - 1, 1 << 22, (1 << 22) + 7])
def test_newlines_are_found_across_parts(size: int) -> None:
    data = bytearray(b"x" * size)
    places = sorted({p for p in (0, 5, (1 << 20) - 1, 1 << 20, (1 << 22) - 1, 1 << 22, size - 1) if 0 <= p < size})
    for place in places:
        data[place] = ord("\n")
    found = plain.newlines(bytes(data))
    assert found is not None
    assert found.tolist() == places
    for byte in b"\r\0\x01\x1b":
        assert plain.newlines(bytes(data) + bytes([byte])) is None
    assert plain.newlines(bytes(data) + b"\t\x7f\x08") is not None
