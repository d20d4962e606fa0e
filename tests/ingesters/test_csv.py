"""CSV step logs."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import clocks, csv_rows, csv_shape, load
from gdiag.schema import Records


def loaded(folder: Path, text: str, name: str = "log.csv") -> Records:
    (folder / name).write_text(text)
    return load([folder / name])


def test_plain(tmp_path: Path) -> None:
    records = loaded(tmp_path, "step,loss,lr\n0,3.5,0.1\n1,nan,0.1\n2,inf,0.1\n3,,0.1\n")
    loss = records.steps["loss"].to_list()
    assert loss[0] == 3.5
    assert math.isnan(loss[1])
    assert loss[2:] == [math.inf, None]
    assert records.steps["line"].to_list() == [2, 3, 4, 5]


@pytest.mark.parametrize(
    "text",
    [
        "step;loss\n0;3,5\n1;3,25\n",
        "step\tloss\n0\t3.5\n1\t3.25\n",
        "  step,     loss\n     0,      3.5\n     1,     3.25\n",
        ",step,loss\n0,0,3.5\n1,1,3.25\n",
        '"step","loss"\r\n"0","3.5"\r\n"1","3.25"\r\n',
        "0 3.5\n1 3.25\n",
        "step,loss\n\n0,3.5\n\n1,3.25",
        "# made by hand\nstep,loss\n0,3.5\n1,3.25\n",
        'step,note,loss\n0,"a, ""b""\nc",3.5\n1,,3.25\n',
    ],
)
def test_the_same_log_written_differently(tmp_path: Path, text: str) -> None:
    records = loaded(tmp_path, text)
    assert records.steps["step"].to_list() == [0, 1]
    assert records.steps["loss"].to_list() == [3.5, 3.25]
    assert records.rejects.height == 0
    assert records.sources[0].rows == 2


def test_sparse_rows_of_one_step_are_one(tmp_path: Path) -> None:
    text = "epoch,step,train_loss_step,lr-AdamW,val_loss,train_loss_epoch\n"
    text += "".join(f",{s},,0.001,,\n0,{s},{3 - s / 10},,,\n" for s in range(4)) + "0,3,,,2.5,\n0,3,,,,2.8\n"
    records = loaded(tmp_path, text)
    train = records.steps.filter(records.steps["loss"].is_not_null())
    assert train["step"].to_list() == [0, 1, 2, 3]
    assert train["lr"].to_list() == [0.001] * 4
    assert train["eval_loss"].null_count() == 4
    assert records.steps["eval_loss"].drop_nulls().to_list() == [2.5]
    assert records.sources[0].columns["loss"] == "train_loss_step"


def test_repeated_header_and_appended_run(tmp_path: Path) -> None:
    text = "epoch,loss,val_loss\n0,3,3\n1,2,2\nepoch,loss,val_loss\n0,4,4\n1,3,3\n"
    records = loaded(tmp_path, text)
    assert records.steps["step"].to_list() == [0, 1, 0, 1]
    assert records.steps["line"].to_list() == [2, 3, 5, 6]
    assert any("header" in note for note in records.sources[0].notes)


def test_a_header_with_new_names_starts_new_columns(tmp_path: Path) -> None:
    records = loaded(tmp_path, "step,loss\n0,3\n1,2\nstep,loss,val_loss\n2,1.5,1.7\n")
    assert records.steps["eval_loss"].to_list() == [None, None, 1.7]


def test_ragged_and_cut_rows_are_rejects(tmp_path: Path) -> None:
    records = loaded(tmp_path, "step,loss,lr\n0,3,0.1\n1,2,0.1,9\n2,1,0.1\n3,1")
    assert records.steps["step"].to_list() == [0, 2]
    assert records.rejects["line"].to_list() == [3, 5]


def test_a_table_of_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="runs table"):
        loaded(tmp_path, '"Name","State","lr","train_loss"\n"a","finished","0.1","2.0"\n"b","crashed","0.2","3.0"\n')


def test_an_ablation_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="table of runs"):
        loaded(tmp_path, "run_name,seed,lr,final_train_loss\nbase,1,0.1,2.0\nwide,1,0.1,1.9\ndeep,2,0.1,1.8\n")


def test_algoperf_writes_nan_as_an_empty_cell(tmp_path: Path) -> None:
    text = (
        "global_step,grad_norm,loss,validation/loss,score,total_duration,preemption_count\n"
        "0,1.0,7.0,,,,\n1,,,6.9,5,9.5,0\n12,,,,,,\n20,,,,5,19.5,0\n"
    )
    steps = loaded(tmp_path, text).steps
    assert [None if v is None else math.isnan(v) for v in steps["loss"]] == [False, None, True, None]
    assert [None if v is None else math.isnan(v) for v in steps["eval_loss"]] == [None, False, None, True]


def test_a_monitor_of_episodes_is_read(tmp_path: Path) -> None:
    records = loaded(tmp_path, '#{"t_start": 1600000000.0, "env_id": "X"}\nr,l,t\n-1.5,10,0.5\n-1.25,12,1.5\n')
    assert records.sources[0].rows == 2
    assert records.steps["time"].to_list() == [1600000000.5, 1600000001.5]
    assert records.steps["step"].to_list() == [10, 22]


def test_a_monitor_that_a_second_program_wrote_on(tmp_path: Path) -> None:
    head = '#{"t_start": 16000%d.0, "env_id": "X"}\nr,l,t\n'
    rows = "-1.5,10,0.5\n-1.25,12,1.5\n"
    records = loaded(tmp_path, head % 10000 + rows + head % 50000 + rows)
    assert records.steps.select("run", "step", "time").rows() == [
        ("1", 10, 1600010000.5), ("1", 22, 1600010001.5), ("2", 10, 1600050000.5), ("2", 22, 1600050001.5)
    ]  # fmt: skip
    assert "2 runs one after the other" in " ".join(records.sources[0].notes)
    records = loaded(tmp_path, head % 10000 + rows + rows)
    assert records.steps.select("run", "step", "time").rows() == [
        ("run", 10, 1600010000.5), ("run", 22, 1600010001.5), ("run", 32, None), ("run", 44, None)
    ]  # fmt: skip
    assert "the clock falls back" in " ".join(records.sources[0].notes)


@pytest.mark.parametrize("length", ["1e26", "9223372036854775807", "-5", "NaN", "inf", ""])
def test_a_damaged_episode_length_costs_no_other_episode(tmp_path: Path, length: str) -> None:
    records = loaded(tmp_path, f'#{{"t_start": 1.0}}\nr,l,t\n-1.5,10,0.5\n-1,{length},1\n-1.25,12,1.5\n')
    assert records.steps["step"].to_list()[-1] == 22


@settings(max_examples=60, deadline=None)
@given(st.integers(20, 400))
def test_a_cut_anywhere_keeps_every_complete_row(cut: int) -> None:
    text = b"step,loss,lr\n" + b"".join(b"%d,%f,0.1\n" % (i, 1 / (i + 1)) for i in range(20))
    shape = csv_shape.sniff(text)
    assert shape is not None
    part = text[:cut]
    rows = csv_rows.read(part, shape)
    frame = rows.frames[0] if rows.frames else None
    complete = max(part.count(b"\n") - 1, 0)
    assert (0 if frame is None else frame.height) in (complete, complete + 1)


@pytest.mark.parametrize("cell", ['"', '""', "x\ry", "\x00"])
def test_odd_cells_cost_their_row_at_most(tmp_path: Path, cell: str, capfd: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{i},{1 / (i + 1)}\n" for i in range(30))
    records = loaded(tmp_path, f"step,loss\n{rows}30,{cell}\n31,0.5\n")
    assert records.steps["loss"].count() >= 30
    assert "panicked" not in capfd.readouterr().err


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200))
def test_noise_never_raises(content: bytes) -> None:
    shape = csv_shape.sniff(content)
    if shape is not None:
        csv_rows.read(content, shape)


def test_a_console_with_commas_is_no_table(tmp_path: Path) -> None:
    text = "".join(
        f"epoch: {i}, lr: 1e-05, steps: {900 * i}, opt: Adam - train loss: {4 / i} - valid loss: 5.0, acc: 0.1\n"
        for i in range(1, 9)
    )
    records = loaded(tmp_path, text)
    assert records.sources[0].format != "csv"
    counted = "".join(
        f" {i}: 15.{i}, 16.{i} avg loss, 0.001 rate, 3.{i} seconds, {64 * i} images\n" for i in range(1, 9)
    )
    assert csv_shape.sniff(counted.encode()) is None
    assert csv_shape.sniff(b"step,layer1,layer2\n0,1.5,2.5\n1,1.25,2.25\n") is not None
    assert records.steps["loss"].to_list() == pytest.approx([4 / i for i in range(1, 9)])


def test_settings_of_many_runs_and_a_pointer_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no training log"):
        loaded(tmp_path, "hidden_size,batch_size,learning_rate,total_time\n100,100,0.01,13.8\n50,100,0.005,17.2\n")
    with pytest.raises(InputError, match="git lfs pull"):
        loaded(tmp_path, f"version https://git-lfs.github.com/spec/v1\noid sha256:{'9f' * 32}\nsize 45778\n")


def test_a_monitor_whose_second_start_is_damaged_has_no_time_there(tmp_path: Path) -> None:
    rows = "r,l,t\n" + "".join(f"{i},10,{i * 0.5}\n" for i in range(9))
    path = tmp_path / "monitor.csv"
    path.write_text('#{"t_start": 1700000000.0, "env_id": "x"}\n' + rows + '#{"t_start": "17\n' + rows)
    records = load([path])
    assert records.steps.group_by("run").agg(pl.col("time").count()).sort("run").rows() == [("1", 9), ("2", 0)]
    assert not any("the clock falls back" in note for note in records.sources[0].notes)


def test_rows_that_leave_out_their_last_cells(tmp_path: Path) -> None:
    rows = [f"{i},{4 - i / 50:.2f}{',saved' if i % 10 == 0 else ''}" for i in range(60)]
    (tmp_path / "log.csv").write_text("\n".join(["step,loss,note", *rows]) + "\n")
    records = load([tmp_path / "log.csv"])
    assert records.sources[0].format == "csv"
    assert records.steps.height == 60


def test_a_time_of_day_without_a_date(tmp_path: Path) -> None:
    clocks = ["22:50:00", "23:10:00", "23:30:00", "23:50:00", "00:10:00", "00:30:00"]
    rows = [f"{i}\t{clock}\t{4 - i / 10}" for i, clock in enumerate(clocks)]
    (tmp_path / "loss.tsv").write_text("\n".join(["EPOCH\tTIMESTAMP\tTRAIN_LOSS", *rows]) + "\n")
    records = load([tmp_path / "loss.tsv"])
    assert records.sources[0].rejected == 0
    assert records.steps["elapsed"].to_list() == [1200.0 * i for i in range(6)]


def test_more_cells_than_names_in_every_row_are_refused_by_name(tmp_path: Path) -> None:
    rows = [f"{i}\t{4 - i / 10}\t\t3.5\t0.9" for i in range(10)]
    (tmp_path / "loss.tsv").write_text("\n".join(["epoch\ttrain_loss\tdev_loss\tdev_f1", *rows]) + "\n")
    with pytest.raises(InputError, match="5 cells in every row under 4 names"):
        load([tmp_path / "loss.tsv"])


def test_a_clock_without_a_date_passes_midnight_and_not_where_a_row_is_late() -> None:
    clocks_of_rows = ["23:59:50", "23:59:53", "23:59:52", "23:59:56", "00:00:01", "00:00:06"]
    since = clocks.time_of_day(pl.Series("time", clocks_of_rows))
    assert since is not None
    assert since.to_list() == [0, 3, 3, 6, 11, 16]


def test_a_row_of_the_day_before_behind_midnight_is_no_other_day() -> None:
    rows = ["23:59:58", "00:00:01", "23:59:59", "00:00:03", "23:59:57", "00:00:06", "23:00:00", "00:10:00"]
    since = clocks.time_of_day(pl.Series("time", rows))
    assert since is not None
    assert since.to_list() == [0, 3, 3, 5, 5, 8, 82802, 87002]


def test_a_clock_without_a_date_in_which_rows_are_late_is_no_step_time(tmp_path: Path) -> None:
    late = (50000 + i - 3 * (i % 7 == 3) for i in range(60))
    rows = "".join(f"{i},2.5,{t // 3600}:{t // 60 % 60:02d}:{t % 60:02d}\n" for i, t in enumerate(late))
    steps = loaded(tmp_path, f"step,loss,time\n{rows}").steps
    assert "step_time" not in steps.columns or not steps["step_time"].count()
    assert steps["elapsed"][-1] == 58  # the last row is not the latest one


def test_names_that_only_hold_letters_of_a_loss_are_no_losses(tmp_path: Path) -> None:
    rows = "".join(f"{i},{3 - i / 100:.4f},nan,inf,nan\n" for i in range(20))
    (tmp_path / "run.csv").write_text("step,loss,model1,normal,part/kl\n" + rows)
    notes = load([tmp_path]).sources[0].notes
    assert "not finite in columns that are not used (rows): part/kl (20)" in notes


@pytest.mark.parametrize("lead", ["# ", "#", "# a run of May\n# "])
@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_a_header_behind_a_hash_is_one(tmp_path: Path, lead: str, separator: str) -> None:
    path = tmp_path / "run.csv"
    rows = ["step,loss,grad_norm", *(f"{i},{3 - i / 50:.6e},{1 + i / 9:.6e}" for i in range(40))]
    path.write_text(lead + "\n".join(rows).replace(",", separator) + "\n")
    steps = load([path]).steps
    assert steps["step"].to_list() == [*range(40)]
    assert steps.select("loss", "grad_norm").null_count().row(0) == (0, 0)


def test_a_comment_of_words_is_no_header(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("# made, by hand\n" + "".join(f"{i},{3 - i / 50}\n" for i in range(40)))
    assert load([path]).steps["loss"].count() == 40
