from __future__ import annotations

import math

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import megatron
from tests.ingesters.console_samples import megatron_line, read


def bare(step: int, *, skipped: int = 0, nan: int = 0, norm: str = "0.700") -> str:
    """A line whose loss is left out."""
    return (
        f" iteration {step:8d}/    5000 | consumed samples: {step * 256:12d} | elapsed time per iteration (ms): 1500.0 | "
        f"learning rate: 1.500E-04 | global batch size:   256 | loss scale: 65536.0 | grad norm: {norm} | "
        f"number of skipped iterations: {skipped:3d} | number of nan iterations: {nan:3d} |"
    )


def test_absent_loss_is_not_finite_and_its_repeated_norm_not_logged() -> None:
    lines = [megatron_line(i, 2.1) for i in (1, 2, 3)] + [bare(4), bare(5)] + [megatron_line(6, 2.0)]
    steps = read(megatron, "\n".join(lines) + "\n").steps
    assert steps is not None
    assert [x is not None and math.isnan(x) for x in steps["loss"]] == [False] * 3 + [True, True] + [False]
    assert steps["grad_norm"].to_list()[2:] == [0.7, None, None, 0.667]


def test_all_skipped_window_has_no_loss_at_all() -> None:
    lines = [megatron_line(i, 2.1) for i in (1, 2, 3)] + [bare(4, skipped=1), bare(5, skipped=1, nan=1)]
    steps = read(megatron, "\n".join(lines) + "\n").steps
    assert steps is not None
    assert steps["loss"][3] is None
    assert math.isnan(steps["loss"][4])
    assert steps["skipped"].to_list() == [0, 0, 0, 1, 1]


def test_seconds_and_equals_signs() -> None:
    log = (
        "[2025-11-10 09:43:36,161992][I][megatron/training_log:402:training_log]  iteration=  100/  500 | "
        "consumed_tokens=6845305454592 | elapsed_time_per_iteration_ms=3415.3 | learning_rate=2.0e-05 | lm loss=12.316531 | grad_norm=1020.352 |\n"
    )
    steps = read(megatron, log).steps
    assert steps is not None
    row = steps.row(0, named=True)
    assert (row["step"], row["step_time"], row["loss"], row["grad_norm"]) == (
        100,
        pytest.approx(3.4153),
        12.316531,
        1020.352,
    )
    assert row["time"] == pytest.approx(1762767816.161992)
    seconds = log.replace("elapsed_time_per_iteration_ms=3415.3", "elapsed time per iteration (s): 105.16")
    steps = read(megatron, seconds).steps
    assert steps is not None
    assert steps["step_time"][0] == 105.16


def test_cut_line_continues_in_the_next_and_glued_lines_part() -> None:
    line = megatron_line(2, 2.5)
    broken = "0: " + line[:150] + "\n0: " + line[150:]
    glued = "0: " + megatron_line(3, 2.4) + megatron_line(4, 2.3)
    log = "\n".join(["0: " + megatron_line(1, 2.6), broken, glued]) + "\n"
    steps = read(megatron, log).steps
    assert steps is not None
    assert steps["step"].to_list() == [1, 2, 3, 4]
    assert steps["loss"].to_list() == [2.6, 2.5, 2.4, 2.3]


def test_cut_line_keeps_only_complete_fields() -> None:
    lines = [megatron_line(i, 2.5) for i in range(1, 6)]
    cut = megatron_line(6, 2.5)
    reading = read(megatron, "\n".join([*lines, cut[: cut.index("lm loss") + 11], "[...]"]) + "\n")
    assert reading.steps is not None
    last = reading.steps.row(-1, named=True)
    assert last["step"] == 6
    assert last["step_time"] == pytest.approx(1.506)
    assert last["loss"] is None
    assert any("cut short" in note for note in reading.source.notes)


def test_validation_checkpoints_and_exit() -> None:
    log = "\n".join(
        [megatron_line(i, 2.5) for i in range(1, 11)]
        + [
            " validation loss at iteration 10 | lm loss value: 2.345678E+00 | lm loss PPL: 1.044036E+01 | ",
            "saving checkpoint at iteration      10 to /data/ckpt in torch_dist format",
            "  successfully saved checkpoint from iteration      10 to /data/ckpt [ t 1/1, p 1/1 ]",
            megatron_line(11, 2.4),
            "Traceback (most recent call last):",
            '  File "pretrain.py", line 10, in <module>',
            "    train()",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. token=hf_abcdefghijklmnopqrst",
        ]
    )
    reading = read(megatron, log + "\n")
    assert reading.steps is not None
    assert reading.events is not None
    assert reading.steps.filter(reading.steps["eval_loss"].is_not_null())["eval_loss"].to_list() == [2.345678]
    assert reading.events.select("kind", "step").rows() == [("checkpoint", 10), ("checkpoint", 10), ("oom", 11)]
    assert "hf_abc" not in reading.events["text"][2]
    assert not any(
        "validation" in str(text) for text in (reading.rejects["text"] if reading.rejects is not None else ())
    )
    assert reading.exit == "abnormal"
    assert reading.config["total_steps"] == 5000


def test_prose_is_no_step_line() -> None:
    with pytest.raises(InputError):
        read(megatron, "iteration over the data | started\nin iteration 5 of 10 | we saw | nothing\n")
