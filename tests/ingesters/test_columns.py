"""Names: every alias to its metric, every layer pattern to its layer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from gdiag.errors import UsageError
from gdiag.ingesters import claims, layer_names, layer_places, load
from gdiag.ingesters.aliases import claim, family
from gdiag.ingesters.columns import canonicalise
from gdiag.ingesters.reading import Options

NAMES = {
    "loss": "loss, tot_loss, train/loss, train_loss, lm_loss, lm loss, Training Loss, reduced_train_loss, train/CrossEntropyLoss, train/CE loss, "
    "loss_metrics/global_avg_loss, metrics/train/LanguageCrossEntropy, loss/out, learning/loss, learning/lm_loss, trl, train_mean_nll",
    "eval_loss": "eval_loss, testing.loss, eval/loss, val_loss, val/loss, validation/loss, validation_metrics/loss, eval/c4/CrossEntropyLoss, "
    "valid loss, test/nll, lm_loss_validation, lm loss validation, evaluation/loss, tel",
    "grad_norm": "grad_norm, train/grad_norm, grad norm, grad-norm, gnorm, gradient_norm, norm, optim/total_grad_norm, "
    "optim/total grad norm, l2_norm/grad/global, learning/grad_norm, learning/raw_grad_norm, grad/norm/total, grad_2.0_norm_total, "
    "actor/grad_norm, grad_norm_square, gradient-norm",
    "grad_norm_clipped": "grad_norm_clipped",
    "lr": "lr, learning_rate, train/lr, train/learning_rate, learning rate, learning-rate, learning/current_learning_rate, lr_0, actor/lr, cur_lr",
    "step_time": "elapsed_time_per_iteration_ms, elapsed time per iteration (ms), elapsed time per iteration (s), iteration-time, "
    "time_per_iteration_ms, runtime/iteration_time, train_step_timing in s, train_step_time, time_metrics/end_to_end(s), "
    "speed/curr_iter_time, throughput/duration, perf/step_time_seconds, perf/step_time_s, dt, iter_time, time/step, timing_s/step, "
    "perf/time_per_step, step_time, ups, throughput/device/batches_per_second, step-time, E2E latency, time_this_iter_s, batch_cost, avg_batch_cost",
    "data_time": "data_time, reader_cost, avg_reader_cost, data_cost, time_metrics/data_loading(s), speed/data_load_time, throughput/loading_time",
    "comm_time": "allreduce_time",
    "compute_time": "forward_backward_time",
    "tokens": "consumed_tokens, consumed tokens, throughput/total_tokens, throughput/total tokens, n_tokens_seen, "
    "num_input_tokens_seen, num_tokens, time/token, total_tokens",
    "samples": "consumed_samples, consumed samples, samples_count, time/sample, samples",
    "batch_size": "batch_size, global_batch_size, global batch size, batch-size, bsz, train/global_batch_size",
    "loss_scale": "loss_scale, loss scale, loss-scale, train/loss_scale",
    "skipped": "skipped, number_of_skipped_iterations, number of skipped iterations, optim/step_skipped, optim/step skipped",
    "param_norm": "params_norm, params norm, params-norm, optim/param_norm, params/norm/total, learning/param_norm, param_norm",
    "update_norm": "optim/pre_clip_update_norm, updates/norm/total, update_norm",
    "step": "step, _step, global_step, train/global_step, trainer/global_step, iteration, iter, current_steps, num_updates, time/batch, "
    "training_iteration, train/update_step",
    "time": "_timestamp, timestamp, Wall time, date, time_ms",
    "elapsed": "_runtime, Relative Time (Process), elapsed_time, wall, total_duration, time_total_s, train_time_ms",
    "epoch": "epoch, train/epoch, trainer/epoch, time/epoch",
    "tokens_per_s": "tps, throughput(tps), wps, tok/sec, tokens_per_sec, throughput/device/TPS, speed/wps, Tokens/s/device",
    "samples_per_s": "samples_per_second, train_samples_per_second, throughput/samples_per_sec, images/sec, perf/examples_per_second",
    "token_entropy": "batch_token_entropy",
    "accuracy": "acc, accuracy, train/acc, train_accuracy, top1, metrics/accuracy, acc1",
    "duplicate_share": "duplicate_rate, data/dup_token_rate, train/repeated_ngram_fraction, duplicate_samples",
    "sample_start": "data_start, batch_idx",
    "sample_end": "data_end",
    "attention_logit": "max_attention_logit",
    "output_logit": "learning/max_logits",
    "memory": "memory/max_active(GiB), gpu_mem",
}


@pytest.mark.parametrize(
    ("canonical", "name"), [(canonical, name) for canonical, names in NAMES.items() for name in names.split(", ")]
)
def test_aliases(canonical: str, name: str) -> None:
    found = claim(name)
    assert found is not None
    assert found.canonical == canonical


@pytest.mark.parametrize(
    "name", ["lr-AdamW", "lr-AdamW/pg1", "optim/learning_rate_group0", "lr-DecoupledAdamW/group0", "lr/pg0"]
)
def test_learning_rates_of_groups(name: str) -> None:
    found = claim(name) or family(name)
    assert found is not None
    assert found.canonical == "lr"


def test_a_group_that_warms_down_is_not_the_rate() -> None:
    biases, weights = [0.0705, 0.0402, 0.0098, 0.0082], [0.0033, 0.0063, 0.0092, 0.0082]
    loss = {"epoch": [0, 1, 2, 3], "loss": [3.0, 2.0, 1.5, 1.2]}
    for cells in (float, str):
        frame = pl.DataFrame({**loss, "lr/pg0": list(map(cells, biases)), "lr/pg1": list(map(cells, weights))})
        got = canonicalise(frame, Options())
        assert (got.columns["lr"], got.steps["lr"].to_list()) == ("lr/pg1", weights)
    gaps = pl.DataFrame({**loss, "lr/pg0": ["n/a", *map(str, biases[:2]), "0.0082"], "lr/pg1": [None, *weights[1:]]})
    assert canonicalise(gaps, Options()).columns["lr"] == "lr/pg1"
    scaled = pl.DataFrame({**loss, "lr/pg0": weights, "lr/pg1": [0.5 * rate for rate in weights]})
    assert canonicalise(scaled, Options()).columns["lr"] == "lr/pg0"


def test_tables_of_layers_keep_their_names_where_two_hold_one_layer() -> None:
    names = ["grad_norm/layers/head", "grad_norm/head", "grad_norm/modules/head", "grad_norm/layers/fc"]
    got = canonicalise(pl.DataFrame({"step": [1], "loss": [3.0], **{name: [1.0] for name in names}}), Options())
    assert {entry.layer for entry in got.layer_columns} == {"layers/head", "head", "modules/head", "fc"}


def test_the_ends_of_a_rate_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ends = claims._ends

    def noted(column: pl.Series) -> tuple[float, float] | None:
        asked.append(column.name)
        return ends(column)

    monkeypatch.setattr(claims, "_ends", noted)
    names = [f"lr/group_{letter}" for letter in "abcdefgh"]
    rates = {name: [1e-3, 9e-4, 8e-4] for name in names}
    canonicalise(pl.DataFrame({"step": [1, 2, 3], "loss": [3.0, 2.0, 1.5], **rates}), Options())
    assert asked == names


@pytest.mark.parametrize("name", ["val_loss", "eval/train_like/loss", "validation/loss", "test_loss"])
def test_evaluation_is_never_training(name: str) -> None:
    found = claim(name) or family(name)
    assert found is not None
    assert found.canonical == "eval_loss"


LAYERS = [
    ("grad/blocks.0.fc.norm", "grad_norm", "blocks.0.fc", 0, "mlp"),
    ("optim/grad/transformer.blocks.3.att_proj.weight.norm", "grad_norm", "transformer.blocks.3.att_proj.weight", 3, "attention_qkv"),
    ("optim/exp_avg_sq/blocks.1.fc.norm", "second_moment", "blocks.1.fc", 1, "mlp"),
    ("param/wte.norm", "param_norm", "wte", -1, "embedding"),
    ("grad/norm/transformer/layers/2/mlp/c_fc", "grad_norm", "transformer/layers/2/mlp/c_fc", 2, "mlp"),
    ("l2_norm/grad/model.transformer.h.3.attn.c_proj.weight", "grad_norm", "model.transformer.h.3.attn.c_proj.weight", 3, "attention_output"),
    ("gradient_norms/sequential.2.attention.query_key_value.weight", "grad_norm", "sequential.2.attention.query_key_value.weight", 2, "attention_qkv"),
    ("gnorm_layer12", "grad_norm", "layer12", 12, "block"),
    ("gmax_layer3", "grad_max", "layer3", 3, "block"),
    ("grad_2.0_norm/lm_head", "grad_norm", "lm_head", 5, "lm_head"),
    ("param_2.0_norm/lm_head", "param_norm", "lm_head", 5, "lm_head"),
    ("grad_inf_norm/blocks.1.fc", "grad_max", "blocks.1.fc", 1, "mlp"),
    ("gradients/module.encoder.layers.0.self_attention.linear_qkv.weight", "grad_norm", "encoder.layers.0.self_attention.linear_qkv.weight", 0, "attention_qkv"),
    ("grad_norm/_fsdp_wrapped_module.model._orig_mod.layers.3.mlp.down_proj.weight", "grad_norm", "model.layers.3.mlp.down_proj.weight", 3, "mlp"),
    ("blocks.0.fc.grad_norm", "grad_norm", "blocks.0.fc", 0, "mlp"),
    ("model.layers.1.self_attn.o_proj/grad_norm", "grad_norm", "model.layers.1.self_attn.o_proj", 1, "attention_output"),
    ("layers/0/grad_norm", "grad_norm", "layers/0", 0, "block"),
    ("layer_3_grad_norm", "grad_norm", "layer_3", 3, "block"),
    ("grad_norm_layer_3", "grad_norm", "layer_3", 3, "block"),
    ("attn_max_logit/blocks.0", "attention_logit", "blocks.0", 0, "block"),
    ("param_norm/ln_f", "param_norm", "ln_f", 4, "norm"),
    ("update_norm/blocks.2.ln1", "update_norm", "blocks.2.ln1", 2, "norm"),
    ("grad/blocks.0.fc", "grad_norm", "blocks.0.fc", 0, "mlp"),
    ("train/grad/wte", "grad_norm", "wte", -1, "embedding"),
    ("gradients/model.embed_tokens.weight", "grad_norm", "model.embed_tokens.weight", -1, "embedding"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "quantity", "layer", "depth", "kind"), LAYERS)
def test_layers(name: str, quantity: str, layer: str, depth: int, kind: str) -> None:
    assert layer_names.parse(name) == (quantity, layer)
    (column, _) = layer_places.catalogue({"x": (quantity, layer), "top": ("grad_norm", "blocks.3.fc")})  # type: ignore[dict-item]
    assert (column.depth if layer_places.block(layer) != 12 else depth, column.kind) == (depth, kind)


@pytest.mark.parametrize(
    "name",
    ["grad_norm/total", "grad/norm/total", "l2_norm/grad/global", "grad_2.0_norm_total", "loss", "train/grad_norm"],
)
def test_totals_are_no_layers(name: str) -> None:
    assert claim(name) is not None or layer_names.parse(name) is None


def test_a_better_name_with_a_single_value_does_not_win() -> None:
    frame = pl.DataFrame({"step": range(100), "lm_loss": [1.0] * 100, "loss": [None] * 99 + [9.0]})
    got = canonicalise(frame, Options())
    assert got.columns["loss"] == "lm_loss"
    assert got.unmapped == ("loss",)


def test_map_wins() -> None:
    frame = pl.DataFrame({"step": [0, 1], "loss": [1.0, 2.0], "mine": [3.0, 4.0]})
    got = canonicalise(frame, Options(columns={"loss": "mine"}))
    assert got.steps["loss"].to_list() == [3.0, 4.0]


def test_a_mapping_that_no_file_follows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,loss,mine\n0,1,5\n1,2,6\n")
    assert load([tmp_path], Options(columns={"loss": "mine"})).steps["loss"].to_list() == [5.0, 6.0]
    with pytest.raises(UsageError, match="no file has a column 'yours'"):
        load([tmp_path], Options(columns={"loss": "yours"}))


def test_units_and_turns() -> None:
    frame = pl.DataFrame(
        {"step": [0, 1, 2], "elapsed_time_per_iteration_ms": [1500.0, 2500.0, None], "grad_norm_square": [4.0, 9.0, 16.0],
         "skipped": [0, 2, 5], "timestamp": ["2024-05-01T00:00:00Z", "2024-05-01 00:00:01+00:00", "2024-05-01T00:00:02.5Z"]}
    )  # fmt: skip
    steps = canonicalise(frame, Options()).steps
    assert steps["step_time"].to_list() == [1.5, 2.5, None]
    assert steps["grad_norm"].to_list() == [2.0, 3.0, 4.0]
    assert steps["skipped"].to_list() == [0.0, 2.0, 3.0]
    assert steps["time"].diff().to_list() == [None, 1.0, 1.5]


def test_a_running_clock_gives_step_times_and_survives_a_reset() -> None:
    frame = pl.DataFrame({"step": [0, 10, 20, 30, 40], "train_time_ms": [100, 1100, 2100, 50, 1050], "loss": [1.0] * 5})
    steps = canonicalise(frame, Options()).steps
    assert steps["step_time"].to_list() == pytest.approx([None, 0.1, 0.1, None, 0.1])


def steps_of(**columns: list[object]) -> pl.DataFrame:
    return canonicalise(pl.DataFrame(columns, strict=False), Options()).steps


def test_a_split_column_tells_evaluation_rows() -> None:
    steps = steps_of(step=[0, 1, 1, 2], split=["train", "train", "val", "train"], loss=[3.0, 2.0, 2.5, 1.0])
    assert steps["loss"].to_list() == [3.0, 2.0, None, 1.0]
    assert steps["eval_loss"].to_list() == [None, None, 2.5, None]


def test_rows_about_checkpoints_become_events() -> None:
    frame = pl.DataFrame(
        {"step": [0, 1, 1, 2], "event": ["step", "step", "checkpoint saved", "step"], "loss": [3.0, 2.0, None, 1.0]}
    )
    got = canonicalise(frame, Options())
    assert got.events is not None
    assert got.events.select("step", "kind").rows() == [(1, "checkpoint")]
    assert got.steps["loss"].drop_nulls().to_list() == [3.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.7e9, 1.7e9 + 1, 1.7e9 + 2], "time"),
        ([1.7e12, 1.7e12 + 1e3, 1.7e12 + 2e3], "time"),
        ([0.0, 10.0, 20.0], "elapsed"),
        ([0.9, 1.1, 1.0], "step_time"),
    ],
)
def test_what_a_column_called_time_is(values: list[float], expected: str) -> None:
    steps = steps_of(step=[0, 1, 2], time=list(values), loss=[1.0, 1.0, 1.0])
    assert steps[expected].count() == 3
    if expected == "time":
        assert steps["time"][0] == 1.7e9


def test_milliseconds_without_a_unit_are_seen_by_the_clock() -> None:
    n = 40
    steps = steps_of(step=list(range(n)), dt=[250.0] * n, timestamp=[1.7e9 + 0.25 * i for i in range(n)])
    assert steps["step_time"].to_list() == [0.25] * n


def test_perplexity_stands_in_for_a_loss() -> None:
    assert steps_of(step=[0, 1], ppl=[1.0, 2.718281828459045])["loss"].to_list() == pytest.approx([0.0, 1.0])
    assert steps_of(step=[0, 1], ppl=[1.0, 2.0], loss=[5.0, 4.0])["loss"].to_list() == [5.0, 4.0]


def test_tokens_of_one_step_are_no_counter() -> None:
    got = canonicalise(
        pl.DataFrame({"step": range(9), "num_tokens": [512, 480] * 4 + [500], "loss": [1.0] * 9}), Options()
    )
    assert "tokens" not in got.steps.columns
    assert any("does not count up" in note for note in got.notes)


def test_batch_ids_are_data_ids() -> None:
    steps = steps_of(step=[0, 1], batch_idx=[7, 3], loss=[1.0, 1.0])
    assert steps.select("sample_start", "sample_end").rows() == [(7.0, 8.0), (3.0, 4.0)]


def test_rows_of_ranks_keep_their_rank() -> None:
    steps = steps_of(step=[0, 0, 1], rank=[0, 1, None], loss=[1.0, 2.0, 3.0])
    assert steps["rank"].to_list() == [0, 1, None]


def test_the_largest_double_is_an_infinity() -> None:
    assert steps_of(step=[0, 1], loss=[1.0, 1.7976931348623157e308])["loss"].to_list() == [1.0, float("inf")]


@pytest.mark.parametrize("metric", [lambda i: 4 - i / 100, lambda _: 2.0])
@pytest.mark.parametrize(
    ("steps", "whole"),
    [
        ([i / 2 for i in range(1, 101)], [*range(1, 101)]),
        ([round(i / 3, 4) for i in range(1, 101)], [*range(1, 101)]),
        ([i / 10 for i in range(0, 500, 5)], [*range(100)]),
        ([i / 2 for i in range(50)] + [i / 2 for i in range(30, 80)], [*range(50), *range(30, 80)]),
        ([i**0.5 for i in range(100)], [*range(100)]),
    ],
)
def test_steps_in_fractions_keep_every_row(
    steps: list[float], whole: list[int], metric: Callable[[int], float]
) -> None:
    frame = pl.DataFrame({"step": steps, "loss": [metric(i) for i in range(100)]})
    got = canonicalise(frame, Options())
    assert got.steps["step"].to_list() == whole
    assert got.steps["epoch"].to_list() == steps
    assert "steps are fractions" in got.notes[0]


def test_a_fraction_among_whole_steps_is_damage() -> None:
    frame = pl.DataFrame({"step": [float(i) if i != 50 else 50.25 for i in range(100)], "loss": [2.0] * 100})
    got = canonicalise(frame, Options())
    assert got.steps["step"].to_list() == [*range(100)]
    assert "epoch" not in got.steps.columns


def test_a_total_is_a_better_loss_than_that_of_a_part() -> None:
    frame = pl.DataFrame({"step": range(5), "rl_loss": [0.1] * 5, "tot_loss": [2.5] * 5})
    assert canonicalise(frame, Options()).columns["loss"] == "tot_loss"
    assert canonicalise(frame.drop("tot_loss"), Options()).columns["loss"] == "rl_loss"


def test_names_deep_in_the_results_of_a_policy() -> None:
    path = "info/learner/default_policy/learner_stats"
    cells = {"total_loss": 2.5, "cur_lr": 5e-5, "grad_gnorm": 1.5, "policy_loss": 0.1}
    frame = pl.DataFrame({"training_iteration": range(5), **{f"{path}/{name}": [x] * 5 for name, x in cells.items()}})
    frame = frame.with_columns(pl.lit(1e-3).alias("config/lr"))
    columns = canonicalise(frame, Options()).columns
    assert {c: n.rpartition("/")[2] for c, n in columns.items()} == {
        "step": "training_iteration",
        "loss": "total_loss",
        "lr": "cur_lr",
        "grad_norm": "grad_gnorm",
    }


def test_parts_of_a_loss_that_are_not_finite_are_said_where_no_check_sees_them(tmp_path: Path) -> None:
    nan = float("nan")
    frame = pl.DataFrame(
        {"step": range(9), "loss": [2.0] * 9, "smooth_l1": [nan] * 9, "box_loss": [1.0] * 8 + [nan], "mAP": [nan] * 9}
    )
    frame.write_csv(tmp_path / "run.csv")
    said = next(note for note in load([tmp_path]).sources[0].notes if note.startswith("not finite"))
    assert "smooth_l1 (9)" in said
    assert "box_loss (1)" in said
    assert "mAP" not in said


def switched(first: str, then: str, *, at: int = 20, until: int = 40, overlap: int = 0) -> pl.DataFrame:
    """Forty rows whose values stand under one name up to a row and under another one from there."""
    cells = [3 - i / 50 for i in range(40)]
    one = [c if i < at + overlap else None for i, c in enumerate(cells)]
    other = [c if at <= i < until else None for i, c in enumerate(cells)]
    return pl.DataFrame({"step": [float(i) for i in range(40)], first: one, then: other})


@pytest.mark.parametrize(
    ("first", "then", "metric"),
    [
        ("loss", "train/loss", "loss"),
        ("train_loss", "loss", "loss"),
        ("lr", "learning_rate", "lr"),
        ("grad_norm", "gnorm", "grad_norm"),
    ],
)
def test_a_column_that_was_renamed_goes_on(first: str, then: str, metric: str) -> None:
    got = canonicalise(switched(first, then), Options(), None)
    assert got.steps[metric].to_list() == [3 - i / 50 for i in range(40)]
    assert not got.unmapped
    assert any("in 20 rows, from" in note for note in got.notes)


@pytest.mark.parametrize(
    "frame",
    [
        switched("loss", "train_loss", at=38),  # a summary at the end
        switched("loss", "train_loss", overlap=1),
        switched("mlm_loss", "policy_loss"),
        switched("loss", "box_loss"),
    ],
)
def test_other_columns_are_no_renamed_ones(frame: pl.DataFrame) -> None:
    got = canonicalise(frame, Options(), None)
    assert not any("rows, from" in note for note in got.notes)
    assert len(got.unmapped) == 1


def test_names_that_differ_in_case_take_turns() -> None:
    odd = {name: [2.0 if i % 2 == at else None for i in range(20)] for at, name in enumerate(("loss", "Loss"))}
    frame = pl.DataFrame({"step": [float(i) for i in range(20)], **odd})
    assert canonicalise(frame, Options(), None).steps["loss"].to_list() == [2.0] * 20


def test_a_step_that_was_renamed_goes_on() -> None:
    first, then = ([float(i) if (i < 20) is early else None for i in range(40)] for early in (True, False))
    frame = pl.DataFrame({"loss": [2.0] * 40, "step": first, "global_step": then})
    assert canonicalise(frame, Options(), None).steps["step"].to_list() == [*range(40)]


def test_rows_without_a_run_among_those_of_several_are_told() -> None:
    frame = pl.DataFrame({"step": [1.0, 2.0] * 2, "loss": [2.0] * 4, "run": ["a", None, "b", None]})
    got = canonicalise(frame, Options(), None)
    assert got.steps["run"].to_list() == ["a", "a", "b", "b"]
    assert "2 rows without a run: taken for the run of the row before" in got.notes
    assert not canonicalise(frame.filter(pl.col("run").is_not_null()), Options(), None).notes


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("loss [nat]", "loss"),
        ("Val Loss (nats)", "eval_loss"),
        ("grad_norm [-]", "grad_norm"),
        ("loss[1]", None),
        ("(1)", None),
    ],
)
def test_units_that_scale_nothing(name: str, metric: str | None) -> None:
    found = claim(name)
    assert (found.canonical if found else None) == metric
