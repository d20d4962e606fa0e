from __future__ import annotations

from rich.console import Console

from gdiag.model import Column, Table
from gdiag.renderers.coverage import grid_of


def test_a_narrow_screen_breaks_neither_numbers_nor_words_of_the_head() -> None:
    words = (
        "collective",
        "test runs",
        "ranks",
        "hosts",
        "plateau",
        "lowest",
        "at line",
        "limit",
        "of limit",
        "verdict",
    )
    table = Table(
        "",
        tuple(Column(word) for word in words),
        (("all_reduce", 204080, 1024, 128, 198.9, 198.9, 16, 475, 42, "bad"),),
    )
    console = Console(width=80, no_color=True)
    with console.capture() as shown:
        console.print(grid_of(table))
    assert {"204,080", "1,024", "198.9", "verdict", "collective"} <= set(shown.get().split())
    assert max(len(line.rstrip()) for line in shown.get().splitlines()) <= 80
