from __future__ import annotations

from pathlib import Path

from gdiag.ingesters import load
from tests.ingesters.console_samples import FORMATS, losses


def test_folders_beside_the_log_become_events(tmp_path: Path) -> None:
    _, line = FORMATS["llm.c"]
    (tmp_path / "main.log").write_text("".join(line(i, v) + "\n" for i, v in enumerate(losses(40), 1)))
    for name in ("checkpoint-10", "iter_0000020", "global_step30", "step5", "stepladder", "checkpoint-x"):
        (tmp_path / name).mkdir()
    (tmp_path / "checkpoints" / "step40-unsharded").mkdir(parents=True)
    (tmp_path / "step7").write_text("a file and no folder")
    records = load([tmp_path / "main.log"])
    found = records.events.filter(records.events["kind"] == "checkpoint")
    assert found["step"].to_list() == [5, 10, 20, 30, 40]
    assert found["run"].unique().to_list() == ["run"]
    assert found["time"].null_count() == 0
    assert [s.format for s in records.sources] == ["llm.c", "checkpoint-folders", "checkpoint-folders"]


def test_no_folders_no_source(tmp_path: Path) -> None:
    _, line = FORMATS["llm.c"]
    (tmp_path / "main.log").write_text("".join(line(i, v) + "\n" for i, v in enumerate(losses(40), 1)))
    assert len(load([tmp_path]).sources) == 1
