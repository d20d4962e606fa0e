from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given as given_values
from hypothesis import settings
from hypothesis import strategies as st

from gdiag.errors import InputError
from gdiag.ingesters import evidence, job_log, load, recognise, step_bars, text
from gdiag.ingesters.reading import Options
from tests.ingesters.console_samples import FORMATS, given, losses, read

NO_STEPS = pl.DataFrame(schema={"line": pl.Int64, "step": pl.Int64})


@pytest.mark.parametrize(
    ("line", "kind", "step", "value"),
    [
        ("  successfully saved checkpoint from iteration     500 to /data/ckpt [ t 1/8 ]", "checkpoint", 500, None),
        ("saving checkpoint at iteration     500 to /data/ckpt in torch_dist format", "checkpoint", 500, None),
        ("Saving model checkpoint to out/checkpoint-1500", "checkpoint", 1500, None),
        ("[2024-01-01 10:00:00,123] [INFO] [torch_checkpoint_engine.py:21:save] [Torch] Saving out/global_step200/mp_rank_00_model_states.pt...", "checkpoint", 200, None),
        ("2025-01-01 10:00:00 olmo_core INFO Saving checkpoint for step 1000 to '/weka/step1000'...", "checkpoint", 1000, None),
        ("saving model 10000...", "checkpoint", 10000, None),
        (" > successfully loaded checkpoint from /data/ckpt at iteration 4000", "restart", 4000, None),
        ("Resuming training from checkpoint out/checkpoint-700", "restart", 700, None),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB", "oom", None, None),
        ("slurmstepd: error: *** JOB 18 ON nid1 CANCELLED AT 2026-04-07T08:18:54 DUE TO TIME LIMIT ***", "exit", None, None),
        ("srun: error: node7: task 3: Exited with exit code 137", "exit", None, 137),
        ("  exitcode  : -9 (pid: 4711)", "exit", None, -9),
        ("W0407 08:18:54.022 7 api.py:723] Received 15 death signal, shutting down workers", "exit", None, 15),
        ("[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=78)", "nccl_timeout", None, None),
        ("WARNING:megatron.core.rerun_state_machine:Unexpected result tensor(nan) on rank 3 at iteration #120 invocation #1 (message='x')!", "megatron_rerun", 120, None),
        ("Possible persistent error!", "megatron_rerun", None, None),
    ],
)  # fmt: skip
def test_wordings(line: str, kind: str, step: int | None, value: float | None) -> None:
    found = evidence.scan(text.lines(line.encode() + b"\n"), NO_STEPS).events
    assert found is not None
    assert found.select("kind", "step", "value").rows() == [(kind, step, value)]


@settings(max_examples=30, deadline=None)
@given_values(st.data())
@pytest.mark.parametrize("rule", evidence._RULES, ids=lambda rule: f"{rule.kind}-{rule.hints[0]}")
def test_what_a_rule_finds_has_one_of_its_hints(rule: evidence._Rule, data: st.DataObject) -> None:
    said = data.draw(st.from_regex(rule.pattern, alphabet=st.characters(codec="ascii")))
    assert any(hint in said.lower() for hint in rule.hints)


@pytest.mark.parametrize(
    "line",
    [
        "no checkpoint found in /data, starting from scratch",
        "save_interval ................................... 500",
        "checkpoint every 100 steps",
        "the model was not saved",
        "Signal to noise ratio 3.2",
        "exit_signal_handler ............................. False",
        "loading extension module fused_adam...",
    ],
)
def test_what_only_sounds_like_it(line: str) -> None:
    assert evidence.scan(text.lines(line.encode() + b"\n"), NO_STEPS).events is None


LAUNCHES = (
    "> initializing torch distributed ...",
    "***** Running training *****",
    "[rank0]:[titan] 2026-01-01 10:00:00,000 - root - INFO - Training starts at step 41",
    "[2026-01-01 10:00:00,123] [INFO] [launch.py:146:main] WORLD INFO DICT: {'localhost': [0, 1]}",
    "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded",
)


@pytest.mark.parametrize("line", LAUNCHES)
def test_a_launch_behind_step_lines_is_a_restart(line: str) -> None:
    rest = pl.DataFrame({"line": [30], "text": [line]})
    steps = pl.DataFrame({"line": [10, 20, 40], "step": [39, 40, 41]})
    found = evidence.scan(rest, steps).events
    assert found is not None
    assert found.select("kind", "step").rows() == [("restart", 40)]


@pytest.mark.parametrize("line", LAUNCHES)
def test_a_launch_before_them_is_none(line: str) -> None:
    steps = pl.DataFrame({"line": [10, 20], "step": [1, 2]})
    assert evidence.scan(pl.DataFrame({"line": [3], "text": [line]}), steps).events is None
    assert evidence.scan(pl.DataFrame({"line": [3], "text": [line]}), NO_STEPS).events is None


def console(*tail: str, between: tuple[str, ...] = ()) -> str:
    _, line = FORMATS["build-nanogpt"]
    lines = [line(i, v) for i, v in enumerate(losses(30), 1)]
    return "\n".join([*lines[:15], *between, *lines[15:], *tail]) + "\n"


def test_only_what_stands_behind_the_last_step_ends_the_run() -> None:
    module = FORMATS["build-nanogpt"][0]
    crash = (
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in <module>',
        "    f()",
        "ValueError: bad shard",
    )
    assert read(module, console(between=crash)).exit == "unknown"
    assert read(module, console(*crash)).exit == "abnormal"
    assert read(module, console("Training completed")).exit == "clean"
    assert read(module, console("Training completed", between=crash)).exit == "clean"


def test_a_traceback_is_one_event_with_its_error_and_no_secret() -> None:
    tail = (
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in <module>',
        "    login(token)",
        "requests.HTTPError: 401 for https://user:secretpass@host/x?api_key=abcdef123456 with hf_AbCdEfGhIjKlMnOpQr",
        "",
    )
    events = read(FORMATS["build-nanogpt"][0], console(*tail)).events
    assert events is not None
    assert events["kind"].to_list() == ["exit"]
    assert events["step"].to_list() == [30]
    said = events["text"][0]
    assert said.startswith("requests.HTTPError: 401")
    assert not any(secret in said for secret in ("secretpass", "abcdef123456", "hf_AbCd"))


def test_every_rank_says_the_same_once() -> None:
    tail = tuple(f"[rank{r}]: torch.OutOfMemoryError: CUDA out of memory. GPU {r} has 79.1 GiB" for r in range(8))
    events = read(FORMATS["build-nanogpt"][0], console(*tail)).events
    assert events is not None
    assert len(events) == 1


@pytest.mark.parametrize("work", ["", ": WorkNCCL(SeqNum=7, OpType=ALLREDUCE) ran for 600034 milliseconds"])
def test_every_rank_that_waits_is_kept(work: str) -> None:
    tail = tuple(f"[rank{r}]: Watchdog caught collective operation timeout{work}" for r in (2, 5, 6))
    events = read(FORMATS["build-nanogpt"][0], console(*tail)).events
    assert events is not None
    assert events["rank"].to_list() == [2, 5, 6]


def test_job_log_alone() -> None:
    log = "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-04-07T08:18:54 DUE TO TIME LIMIT ***\n"
    assert recognise(given(log)) is job_log
    reading = job_log.read(given(log), Options(tz="+02:00"))
    assert reading.exit == "abnormal"
    assert reading.events is not None
    assert reading.events["time"][0] == 1775542734.0


def test_job_log_beside_a_console_ends_its_run(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "log.txt").write_text(console())
    (folder / "job.err").write_text(
        "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-04-07T08:18:54 DUE TO TIME LIMIT ***\n"
    )
    records = load([folder])
    assert [run.exit for run in records.runs] == ["abnormal"]


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_machine_speaks_between_the_step_lines_of_any_console(name: str) -> None:
    module, line = FORMATS[name]
    lines = [line(i, v) for i, v in enumerate(losses(30), 1)]
    said = (
        "[Tue Jun  2 10:00:00 2026] NVRM: Xid (PCI:0000:9b:00): 79, pid=4711, name=python, GPU has fallen off the bus.",
        "Jun  2 10:00:01 node7 kernel: NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
        "node7:311:388 [5] NCCL WARN NET/IB : Got completion from peer 10.0.0.3<51022> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
    )
    reading = read(module, "\n".join([*lines[:15], *said, *lines[15:]]) + "\n")
    assert reading.events is not None
    events = reading.events.filter(pl.col("kind") != "checkpoint")
    assert events["kind"].to_list() == ["xid", "xid", "nccl_warning"]
    assert events["value"].to_list() == [79, 154, None]
    assert events["bus_id"].to_list() == ["0000:9b:00", "0000:9b:00", None]
    assert events["host"].to_list() == [None, "node7", "node7"]
    assert events["step"].n_unique() == 1
    assert events["step"][0] is not None


def test_ranks_that_time_out_are_all_kept() -> None:
    tail = [
        f"[rank{r}]:[E602 10:00:00.{r}23456789 ProcessGroupNCCL.cpp:616] [Rank {r}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=78, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
        for r in (0, 1, 3)
    ]
    events = read(FORMATS["build-nanogpt"][0], console(*tail)).events
    assert events is not None
    assert events["rank"].to_list() == [0, 1, 3]
    assert set(events["kind"]) == {"nccl_timeout"}


@pytest.mark.parametrize(
    ("words", "step"),
    [
        ("Loss is nan, stopping training", 20),
        ("WARNING: non-finite loss, ending training  tensor([nan])", 20),
        (
            "Traceback (most recent call last):\n  File 'a.py'\nFloatingPointError: Loss became infinite or NaN at iteration=37!",
            37,
        ),
        (
            "Traceback (most recent call last):\n  File 'a.py'\nValueError: Loss is not finite and patience is exhausted.",
            20,
        ),
    ],
)
def test_last_words_about_the_loss_are_a_row(words: str, step: int) -> None:
    lines = "".join(f"step {i} | loss: {7 - i / 10:.4f} | lr 1e-4\n" for i in range(20))
    steps = read(step_bars, lines + words + "\n").steps
    assert steps is not None
    assert steps["step"][-1] == step
    assert math.isnan(steps["loss"][-1])
    assert len(steps) == 21
    logged = read(step_bars, lines + "step 20 | loss: nan | lr 1e-4\n" + words + "\n").steps
    assert logged is not None
    assert len(logged) == 21


@pytest.mark.parametrize("words", ["filter_nan_loss: True", "the loss is fine, no nan found", "loss: 3.1, info: ok"])
def test_other_words_are_no_row(words: str) -> None:
    lines = "".join(f"step {i} | loss: {7 - i / 10:.4f} | lr 1e-4\n" for i in range(20))
    steps = read(step_bars, lines + words + "\n").steps
    assert steps is not None
    assert len(steps) == 20


def test_a_console_that_stops_before_its_second_row_tells_why(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    words = "Traceback (most recent call last):\n  File 'a.py', line 1, in <module>\nException: Current loss scale already at minimum\n"
    log.write_text("{'loss': 1.6693, 'learning_rate': 0.0001, 'epoch': 0.23}\n" + words)
    records = load([log])
    assert records.sources[0].format == "job-log"
    assert records.runs[0].exit == "abnormal"
    log.write_text("{'loss': 1.6693, 'learning_rate': 0.0001, 'epoch': 0.23}\n")
    with pytest.raises(InputError):
        load([log])
    log.write_text(
        "Saving checkpoints for 0 into model.ckpt.\nERROR:tensorflow:Model diverged with loss = NaN.\nm.NanLossDuringTrainingError: NaN loss during training.\n"
    )
    assert load([log]).runs[0].exit == "abnormal"


@pytest.mark.parametrize("form", ["Dec 31 23:{m}:05 node1 kernel: ", "[E1231 23:{m}:05.000000 1 x.cpp:1] "])
def test_a_clock_without_a_year_is_that_of_the_steps_beside_it(tmp_path: Path, form: str) -> None:
    """Before and behind New Year."""
    moments = [datetime(2025, 12, 31, 23, 30, tzinfo=UTC) + timedelta(minutes=i) for i in range(60)]
    lines = [f"{t:%Y-%m-%d %H:%M:%S} step: {i}  loss: 2.5000  grad_norm: 1.0" for i, t in enumerate(moments, 1)]
    xid = "NVRM: Xid (PCI:0000:3b:00): {n}, pid=1, text"
    later = form.replace("1231 23", "0101 00").replace("Dec 31 23", "Jan  1 00")
    lines.insert(50, later.format(m=19) + xid.format(n=79))
    lines.insert(10, form.format(m=39) + xid.format(n=48))
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    events = load([tmp_path / "run.log"]).events
    times = dict(events.filter(events["kind"] == "xid").select("value", "time").rows())
    assert times == {
        48.0: datetime(2025, 12, 31, 23, 39, 5, tzinfo=UTC).timestamp(),
        79.0: datetime(2026, 1, 1, 0, 19, 5, tzinfo=UTC).timestamp(),
    }


@pytest.mark.parametrize(
    ("clock", "tz", "known"),
    [
        ("2026-04-07T08:18:54", None, False), ("2026-04-07T08:18:54", "Europe/Berlin", True),
        ("2026-04-07T08:18:54Z", None, True), ("2026-04-07T08:18:54+02:00", None, True),
    ],
)  # fmt: skip
def test_a_clock_without_a_zone_is_not_said_to_have_one(clock: str, tz: str | None, known: bool) -> None:
    rest = pl.DataFrame({"line": [1], "text": [f"slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT {clock} ***"]})
    events = evidence.scan(rest, NO_STEPS, tz).events
    assert events is not None
    assert events["zone_known"].to_list() == [known]
