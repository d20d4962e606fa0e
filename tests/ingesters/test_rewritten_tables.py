"""Tables that somebody opened and saved again hold what they held: other separators, orders, words for nothing, blank lines."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gdiag.errors import InputError
from gdiag.ingesters import load

Rows = list[list[str]]


def table(rows: Sequence[Sequence[str]], separator: str = ",", quoting: int = csv.QUOTE_MINIMAL) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=separator, quoting=quoting, lineterminator="\n").writerows(rows)  # type: ignore[arg-type]
    return out.getvalue()


def chart(clock: str = "Step") -> Rows:
    """Two runs that log at other places."""
    runs = ("a - b", "Group: c/d")
    head = [clock, *(f"{run} - train/loss{end}" for run in runs for end in ("", "__MIN", "__MAX"))]
    rows = [[str(i), *[f"{3 - i / 97 if i % 2 == k else ''}"[:7] for k in (0, 1) for _ in range(3)]] for i in range(60)]
    return [head, *rows]


def epochs() -> Rows:
    head = ["epoch", "loss", "val_loss", "lr", "seconds"]
    return [
        head,
        *([str(i), f"{2.5 - i / 61:.6f}", f"{2.6 - i / 67:.6f}", "0.00025", f"{30 + i / 7:.4f}"] for i in range(40)),
    ]


def sparse() -> Rows:
    head = ["epoch", "step", "train_loss_step", "val_loss", "note"]
    rows = [[str(i // 20), str(i), f"{2.5 - i / 611:.6f}", "", "ok"] for i in range(200)]
    for at in range(19, 200, 20):
        rows[at][3] = f"{2.4 - at / 700:.5f}"
    return [head, *rows]


WAYS: dict[str, Callable[[Rows], str]] = {
    **{f"separator {sign!r}": (lambda rows, sign=sign: table(rows, sign)) for sign in ";\t|"},  # type: ignore[misc]
    "every cell quoted": lambda rows: table(rows, quoting=csv.QUOTE_ALL),
    "decimal commas": lambda rows: table([rows[0], *([cell.replace(".", ",") for cell in row] for row in rows[1:])], ";"),
    "other order": lambda rows: table([[row[i] for i in order(len(row))] for row in rows]),
    "columns twice": lambda rows: table([[*row, *row] for row in rows]),
    "padded": lambda rows: table([[f" {cell} " if cell else cell for cell in row] for row in rows]),
    "row numbers": lambda rows: table([[str(i - 1) if i else "", *row] for i, row in enumerate(rows)]),
    "separators at the ends": lambda rows: "".join(line + ",\n" for line in table(rows).splitlines()),
    "blank lines": lambda rows: table(rows) + "\n\n\n",
    "header again": lambda rows: table([*rows[:30], rows[0], *rows[30:]]),
    **{word: (lambda rows, word=word: table([[cell or word for cell in row] for row in rows])) for word in ("null", "N/A", "None")},  # type: ignore[misc]
}  # fmt: skip


def order(width: int) -> list[int]:
    return random.Random(3).sample(range(width), width)


def told(path: Path) -> pl.DataFrame:
    steps = load([path]).steps.drop("line", "source")
    return steps.select(sorted(name for name in steps.columns if steps[name].count())).sort("run", "step")


@pytest.mark.parametrize("rows", [chart(), epochs(), sparse()], ids=["chart", "epochs", "sparse"])
@pytest.mark.parametrize("way", WAYS)
def test_a_rewritten_table_holds_the_same(tmp_path: Path, way: str, rows: Rows) -> None:
    (tmp_path / "plain.csv").write_text(table(rows))
    (tmp_path / "other.csv").write_text(WAYS[way](rows))
    assert_frame_equal(told(tmp_path / "other.csv"), told(tmp_path / "plain.csv"))
    assert load([tmp_path / "other.csv"]).rejects.height == 0


def test_empty_lines_are_no_rows_that_were_nan(tmp_path: Path) -> None:
    rows = "".join(f"{i},{1 + i / 100},{3 - i / 100},,,\n" for i in range(1, 40))
    head = "global_step,grad_norm,loss,score,total_duration,preemption_count\n"
    (tmp_path / "measurements.csv").write_text(head + rows + "\n\n")
    steps = load([tmp_path / "measurements.csv"]).steps
    assert steps.height == 39
    assert steps["loss"].is_nan().sum() == 0


def test_a_table_of_runs_is_refused_in_any_order_of_columns(tmp_path: Path) -> None:
    head, row = ["Name", "State", "Runtime", "epoch", "val_loss"], ["r{}", "finished", "{}0", "3{}", "0.6{}"]
    rows = [head, *([cell.format(i) for cell in row] for i in range(9))]
    for at in (range(5), (3, 4, 0, 2, 1), (4, 3, 2, 1, 0)):
        (tmp_path / "runs.csv").write_text(table([[r[i] for i in at] for r in rows]) + "\n")
        with pytest.raises(InputError, match=r"table of runs|runs table"):
            load([tmp_path / "runs.csv"])


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
@pytest.mark.parametrize("before", ["", "\n", "\r\n \n"])
def test_documents_in_any_white_space(tmp_path: Path, separators: tuple[str, str], before: str) -> None:
    steps = [*range(3000)]
    columns = {"loss": [3 - i / 5000 for i in steps], "step": steps}
    (tmp_path / "history.json").write_text(before + json.dumps(columns, separators=separators) + "\n")
    assert load([tmp_path / "history.json"]).steps["step"].to_list() == steps
    clock = [f"2024-01-01T00:00:{i % 60:02d}" for i in steps]
    metric = {"loss": {"steps": steps, "timestamps": clock, "values": columns["loss"]}}
    (tmp_path / "metrics.json").write_text(before + json.dumps(metric, separators=separators))
    records = load([tmp_path / "metrics.json"])
    assert records.sources[0].format == "sacred"
    assert records.steps["time"].count() == 3000
