from __future__ import annotations

from pathlib import Path

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import epoch_blocks, load, recognise
from tests.ingesters.console_samples import given, read


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("--- epoch {e} ---", "train/loss     : {v}\ntrain/learning_rate: 0.0001\neval/loss      : {w}\neval/acc : 0.18\n[train]: 0%| | 0/5 [00:00<?, ?it/s]nan"),
        ("Epoch {e}/24\n----------", "train Loss: {v} Acc: 0.69\nval Loss: {w} Acc: 0.90\n"),
        ("   --> TIME: 2024-03-18 13:31:18 -- STEP: 5/496 -- GLOBAL_STEP: {e}", "     | > loss: {v}  (3.5)\n     | > avg_eval_loss: {w} \n     | > grad_norm: tensor(10.7, device='cuda:0')"),
        ("[Epoch {e} of 24]", "  Training   : loss=1.9, seen=7\n  loss = {v}\n  val_loss = {w}"),
    ],
)  # fmt: skip
def test_blocks_below_an_epoch(head: str, body: str) -> None:
    log = "starting\n" + "".join(
        f"{head.format(e=e)}\n{body.format(v=round(4 / e, 4), w=round(5 / e, 4))}\n" for e in range(1, 9)
    )
    assert recognise(given(log)) is epoch_blocks
    steps = read(epoch_blocks, log).steps
    assert steps is not None
    assert steps["step"].to_list() == list(range(1, 9))
    assert steps["loss"].to_list() == pytest.approx([4 / e for e in range(1, 9)], abs=1e-3)
    assert steps["eval_loss"].to_list() == pytest.approx([5 / e for e in range(1, 9)], abs=1e-3)


@pytest.mark.parametrize(
    "prose", ["Step 1\nname: 3\nStep 2\nname: 4\nStep 3\nname: 5\n", "Step 1:\ninstall: 7 wheels\n" * 4]
)
def test_other_blocks_are_refused(prose: str) -> None:
    with pytest.raises(InputError):
        read(epoch_blocks, prose)


@pytest.mark.parametrize("head", ["current step: {}th step", "global step {}", "Training epoch: {}", "step {}"])
@pytest.mark.parametrize("name", ["batch loss:", "loss = "])
def test_words_around_the_number_of_a_step(tmp_path: Path, head: str, name: str) -> None:
    text = (
        "".join(f"{head.format(i)}\n{name}{4 - i / 50}\n" for i in range(1, 40))
        + "model saved in file: ckpt-100 / 100 th step\n"
    )
    (tmp_path / "run.log").write_text("start from 0\n" + text)
    steps = load([tmp_path / "run.log"]).steps
    assert steps.select("step", "loss").rows() == [(i, 4 - i / 50) for i in range(1, 40)]


def test_a_long_line_below_a_header_is_looked_at_once() -> None:
    """As many looks as letters, not their square: 64 KiB of one word took over a minute."""
    assert epoch_blocks.recognise(given("step 1\n" + "a" * 65_000)) == 0.0


def test_a_counter_below_its_metrics(tmp_path: Path) -> None:
    block = (
        "Result for PPO_env_{i:05d}:\n  done: false\n  info:\n    learner:\n      cur_lr: 5.0e-05\n      total_loss: {loss}\n"
        "  time_this_iter_s: 11.5\n  timestamp: {time}\n  training_iteration: {i}\n  trial_id: 0339b_00000\n\n"
    )
    log = "seed: 3\nworkers: 4\n" + "".join(
        block.format(i=i, loss=400 / i, time=1_620_835_217 + 11 * i) for i in range(1, 9)
    )
    (tmp_path / "tune.log").write_text(log)
    records = load([tmp_path / "tune.log"])
    assert records.sources[0].format == epoch_blocks.FORMAT
    assert records.steps["step"].to_list() == list(range(1, 9))
    assert records.steps["loss"].to_list() == pytest.approx([400 / i for i in range(1, 9)])
    assert records.steps["step_time"].to_list() == [11.5] * 8


def test_settings_above_the_first_counter_are_no_block(tmp_path: Path) -> None:
    settings = "".join(f"setting{i}: {i}\n" for i in range(40))
    log = settings + "".join(f"Epoch {i}/9\nloss: {4 / i}\nlr: 0.1\n" for i in range(1, 9))
    (tmp_path / "run.log").write_text(log)
    assert load([tmp_path / "run.log"]).steps["loss"].to_list() == pytest.approx([4 / i for i in range(1, 9)])


def test_blocks_whose_lines_bear_a_clock_and_losses_without_a_sign(tmp_path: Path) -> None:
    lines = []
    for epoch in range(8):
        clock = f"2024-04-26 09:{epoch:02d}"
        lines += [
            f"{clock}:10.910043: Epoch {epoch} ",
            f"{clock}:10.914042: Current learning rate: {0.01 - epoch / 1e4:.4f} ",
            "using pin_memory on device 0",
            f"{clock}:39.493872: train_loss {'nan' if epoch == 7 else round(0.7 - epoch / 20, 4)} ",
            f"{clock}:39.498914: val_loss {0.6 - epoch / 20:.4f} ",
            f"{clock}:39.501914: Pseudo dice [0.0, 0.1611] ",
            f"{clock}:39.505914: Epoch time: 28.59 s ",
            f"{clock}:40.302549:  ",
        ]
    (tmp_path / "training_log.txt").write_text("\n".join(lines) + "\n")
    steps = load([tmp_path / "training_log.txt"]).steps
    assert steps["step"].to_list() == list(range(8))
    assert str(steps["loss"].to_list()) == str([round(0.7 - e / 20, 4) for e in range(7)] + [float("nan")])
    assert steps["eval_loss"].to_list() == [round(0.6 - e / 20, 4) for e in range(8)]
    assert steps["lr"][0] == 0.01
    assert steps["time"].diff().drop_nulls().to_list() == pytest.approx([60.0] * 7)


HEADS = ("Epoch {e}", "--- epoch {e} ---", "Epoch {e}/24", "[Epoch: {e}]", "current step: {e}th step", "Epoch: {e}\n")
"""Headlines, and a field behind which a blank line stands."""


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("before", ["", "loss: 3.5000\nacc: 0.10\n", "loss: 3.5000\n"])
@pytest.mark.parametrize("below", ["", "loss: 0.1000\n", "starting\n"])
def test_a_run_killed_behind_its_last_headline(head: str, before: str, below: str) -> None:
    """Wherever the log is cut, an epoch keeps its own loss."""
    gap = "\n" if head.endswith("\n") else ""
    blocks = [f"{head.format(e=e).rstrip()}\nloss: {4 / e:.4f}\nacc: {e / 10:.2f}\n{gap}" for e in range(1, 9)]
    reading = read(epoch_blocks, before + "".join(blocks) + head.format(e=9).rstrip() + "\n" + below)
    assert reading.steps is not None
    steps = reading.steps.filter(reading.steps["loss"].is_not_null())
    assert dict(steps.select("step", "loss").rows()) == pytest.approx(
        {e: round(4 / e, 4) for e in range(1, 9)} | ({9: 0.1} if "loss" in below else {})
    )


def test_a_log_cut_anywhere_never_moves_a_value() -> None:
    log = "loss: 3.5\nacc: 0.1\n" + "".join(f"Epoch {e}\nloss: {4 / e:.4f}\nacc: {e / 10:.2f}\n" for e in range(1, 9))
    whole = {e: round(4 / e, 4) for e in range(1, 9)}
    for end in range(log.index("Epoch 4"), len(log) + 1):
        steps = read(epoch_blocks, log[:end]).steps
        assert steps is not None
        got = dict(steps.filter(steps["loss"].is_not_null()).select("step", "loss").rows())
        complete = {e: v for e, v in got.items() if f"Epoch {e}\nloss: {whole[e]:.4f}\n" in log[:end]}
        assert complete == {e: whole[e] for e in complete}
        assert len(complete) >= len(got) - 1
