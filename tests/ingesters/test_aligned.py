from __future__ import annotations

import pytest

from gdiag.ingesters import aligned, layer_lines, recognise, step_bars
from tests.ingesters.console_samples import FORMATS, given, losses, read

WIDE = """training the model
Step      Loss  Grad Norm  Param Norm  g/p Ratio
-----------------------------------------------------
0       2.0107     0.1917     26.5670    0.00722
10      1.9674     0.1889     26.5752    0.00711
20         nan     0.1889     26.5815    0.00711
"""


@pytest.mark.parametrize("squeeze", [False, True])
def test_header_and_rows(squeeze: bool) -> None:
    log = "\n".join(" ".join(line.split()) for line in WIDE.splitlines()) if squeeze else WIDE
    assert recognise(given(log)) is aligned
    steps = read(aligned, log).steps
    assert steps is not None
    assert steps["step"].to_list() == [0, 10, 20]
    assert steps["loss"].to_list()[:2] == [2.0107, 1.9674]
    assert steps["loss"].is_nan().to_list() == [False, False, True]
    assert steps["grad_norm"].to_list() == [0.1917, 0.1889, 0.1889]
    assert steps["param_norm"].to_list() == [26.567, 26.5752, 26.5815]


def test_short_row_is_a_reject() -> None:
    reading = read(aligned, WIDE + "30      1.93\n40      1.8933     0.1896     26.6370    0.00712\n")
    assert reading.steps is not None
    assert reading.steps["step"].to_list() == [0, 10, 20, 40]
    assert reading.rejects is not None
    assert reading.rejects["line"].to_list() == [7]


def test_table_of_layers_belongs_to_the_step_before() -> None:
    log = "".join(
        f"Step {step}\nLayer                Grad Norm\n---------------------\nembed.weight            0.{step}\nblocks.0.mlp.fc         0.0012\n\n"
        for step in (11, 12)
    )
    reading = read(aligned, log)
    assert reading.layers is not None
    assert reading.layers["step"].to_list() == [11, 12]
    assert reading.layers["grad_norm:embed.weight"].to_list() == [0.11, 0.12]


def test_lines_that_name_a_layer() -> None:
    log = "Step 41: NaN gradient in blocks.0.fc\nStep 41: Inf gradient in blocks.1.fc\nStep 42: NaN/Inf in loss (value=nan)\nStep 42: NaN weight in head.weight\n"
    assert recognise(given(log)) is layer_lines
    reading = read(layer_lines, log)
    assert reading.layers is not None
    assert reading.layers["step"].to_list() == [41, 42]
    assert reading.layers["grad_norm:blocks.1.fc"].to_list() == [float("inf"), None]


@pytest.mark.parametrize(
    "log", ["Name Value\nfoo 3\nbar 4\n", "Layer cake\nis good 3 times\nand 4\n", "Step by step\n1 2 3\n"]
)
def test_prose_and_other_tables_are_left(log: str) -> None:
    assert aligned.recognise(given(log)) == 0.0


def test_checks_inside_another_console_go_to_its_layers() -> None:
    _, line = FORMATS["build-nanogpt"]
    lines = [line(i, v) for i, v in enumerate(losses(20), 1)]
    lines.insert(
        10, "Step 10: NaN gradient in blocks.3.attn.proj\nthere was a NaN in the loss somewhere\nfound inf gradients"
    )
    reading = read(step_bars, "\n".join(lines) + "\n")
    assert reading.steps is not None
    assert reading.layers is not None
    assert len(reading.steps) == 20
    assert reading.layers["step"].to_list() == [10]
    assert reading.layers["grad_norm:blocks.3.attn.proj"].is_nan().to_list() == [True]


def test_epochs_with_a_duration_under_headers_printed_by_every_rank() -> None:
    head = "epoch     train_loss  valid_loss  accuracy  time    \n"
    row = "{e}         {v:.6f}    {w:.6f}    0.312000  01:23     \n"
    log = head * 3 + "".join(row.format(e=e, v=4 - e / 10, w=5 - e / 10) for e in range(5, 11))
    assert recognise(given(log)) is aligned
    steps = read(aligned, log).steps
    assert steps is not None
    assert steps["step"].to_list() == list(range(5, 11))
    assert steps["eval_loss"].to_list() == pytest.approx([5 - e / 10 for e in range(5, 11)])


def test_rows_that_grow_before_a_progress_bar() -> None:
    head = "\n      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size\n"
    log = "Ultralytics 8.3.75\n" + "".join(
        head
        + "".join(
            f"\r     {e:3d}/55      5.21G      {4 / e + (100 - at) / 100:.3f}      3.511         42        640: {at:3d}%|##| {at}/100 [00:40<00:00]"
            for at in (25, 50, 100)
        )
        + "\n                 Class     Images      mAP50  mAP50-95): 100%|##| 15/15 [00:06<00:00,  2.31it/s]\n"
        "                   all        460      0.291       0.142\n"
        for e in range(1, 9)
    )
    assert recognise(given(log)) is aligned
    steps = read(aligned, log).steps
    assert steps is not None
    assert steps["step"].to_list() == list(range(1, 9))
    assert steps["loss"].to_list() == pytest.approx([4 / e for e in range(1, 9)], abs=1e-3)
