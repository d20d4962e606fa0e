from __future__ import annotations

import pytest

from gdiag.ingesters import espnet, recognise
from tests.ingesters.console_samples import FORMATS, given, losses, read

_, LINE = FORMATS["espnet"]
VALUES = losses(30)


def log(epochs: int = 3, lines: int = 10, every: int = 100) -> str:
    out = ["[host:0/4] 2024-01-01 09:59:00,000 (trainer:280) INFO: 1/40epoch started\n"]
    for e in range(epochs):
        for k in range(lines):
            first, last = k * every + 1, (k + 1) * every
            line = LINE(k, VALUES[e * lines + k])
            out.append(line.replace(f"1epoch:train:{k}-{k}batch", f"{e + 1}epoch:train:{first}-{last}batch") + "\n")
        out.append(
            f"[host:0/4] 2024-01-01 11:0{e}:00,000 (trainer:345) INFO: {e + 1}epoch results: [train] loss=4.5, acc=0.5, time=10 minutes "
            f"and 3.1 seconds, total_count=1000, [valid] loss_ctc=9.0, loss={5 - e / 10}, acc=0.4, time=21 seconds\n"
        )
    return "".join(out)


def test_batches_are_counted_on_over_epochs() -> None:
    text = log()
    assert recognise(given(text)) is espnet
    steps = read(espnet, text).steps
    assert steps is not None
    train = steps.filter(steps["loss"].is_not_null())
    assert train["step"].to_list() == list(range(100, 3100, 100))
    assert train["loss"].to_list() == pytest.approx(VALUES)
    assert train.select("data_time", "step_time", "lr").row(0) == pytest.approx((1.2e-4, 1.497, 1.5e-4))
    evals = steps.filter(steps["eval_loss"].is_not_null())
    assert evals.select("step", "eval_loss").rows() == [(1000, 5.0), (2000, 4.9), (3000, 4.8)]
