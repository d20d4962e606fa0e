"""The alias table: what a metric is called in other people's logs, best name first.

Gathered from the source code and published logs of the trainers named beside the entries.
"""

from __future__ import annotations

from typing import Final, Literal

Turn = Literal["", "inverse", "root", "log", "count", "ids"]
"""What the values still need: 1/x, square root, logarithm, difference of a cumulative counter, end = start + 1."""

ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "step": (
        "global_step", "step", "iteration", "optimizer_step", "update_step", "num_updates", "training_iteration",
        "current_steps", "train_step", "training_step", "iter", "iter_num", "iterations", "steps", "it", "time_batch",
        "update", "batch_step", "num_steps", "n_iter", "current_step", "i", "s", "total_steps_done", "batch", "_step",
        "global_step_max_steps",
    ),
    "loss": (
        "loss", "train_loss_step", "lm_loss", "train_loss", "reduced_train_loss", "crossentropyloss", "ce_loss",
        "cross_entropy_loss", "cross_entropy", "crossentropy", "xent", "languagecrossentropy", "global_avg_loss",
        "loss_metrics_global_avg_loss", "loss_train_total", "loss_total", "total_loss", "tot_loss", "loss_train", "loss_out",
        "lm_loss_vs_samples", "train_mean_nll", "mean_nll", "nll_loss", "nll", "step_loss", "train_loss_local",
        "loss_local", "loss_avg", "avg_loss", "avr_loss", "mean_loss", "loss_mean", "running_loss", "smooth_loss", "trl", "lmloss",
        "policy_loss", "actor_pg_loss", "pg_loss", "mlm_loss", "masked_lm_loss", "objective_loss", "objective", "cost",
        "loss_metrics_global_max_loss", "global_max_loss", "loss_epoch", "train_loss_epoch", "epoch_loss",
        "main_model_loss", "logloss", "log_loss", "binary_logloss", "multi_logloss", "mlogloss", "train_rmse", "rmse_train",
        "train_mse", "mse_train", "train_mae", "mae_train",
    ),
    "grad_norm": (
        "grad_norm", "gradient_norm", "gnorm", "total_grad_norm", "total_gradient_norm", "global_grad_norm",
        "grad_norm_total", "grad_norm_global", "grad_norm_all", "l2_norm_grad_global", "grad_global_norm", "raw_grad_norm",
        "grad_norm_before_clip", "grad_norm_pre_clip", "pre_clip_grad_norm", "grad_norm_unclipped", "grad_norm_raw",
        "unclipped_grad_norm", "gradnorm", "grad_2_0_norm_total", "grad_2_norm_total", "grad_l2_norm", "grad_norm_l2",
        "model_grad_norm", "actor_grad_norm", "critic_grad_norm", "grad_norm_vs_samples", "grad_norm_mean", "grad_norm_avg",
        "global_norm", "grad_gnorm", "norm", "gradients_norm", "grad",
    ),
    "grad_norm_clipped": (
        "grad_norm_clipped", "clipped_grad_norm", "grad_norm_after_clip", "grad_norm_post_clip", "post_clip_grad_norm",
        "grad_norm_after_clipping",
    ),
    "lr": (
        "lr", "learning_rate", "current_lr", "current_learning_rate", "cur_lr", "learningrate", "lr_scheduler_lr", "lr_vs_samples",
        "learning_rate_vs_samples", "step_lr", "base_lr", "max_lr", "lr_0", "lr_group0", "lr_group_0", "learning_rate_group0",
        "learning_rate_0", "lr_default", "actor_lr", "lrm", "x_lr0",
    ),
    "step_time": (
        "step_time", "iteration_time", "iter_time", "time_per_iteration", "elapsed_time_per_iteration", "time_per_step",
        "step_duration", "timing_s_step", "time_step", "timing_step", "curr_iter_time", "iter_dt", "end_to_end", "time_metrics_end_to_end",
        "train_step_timing", "train_step_time", "step_timing", "time_this_iter", "e2e_latency", "train_wall", "dt",
        "throughput_duration", "iter_duration", "batch_time", "time_per_batch", "seconds_per_step", "seconds_per_iteration",
        "sec_per_step", "s_per_it", "step_latency", "batch_cost", "avg_batch_cost", "iteration_duration", "perf_step_time", "seconds", "step_avg",
    ),
    "data_time": (
        "data_time", "data_loading", "data_loading_time", "time_metrics_data_loading", "dataloader_time", "data_load_time",
        "loading_time", "load_time", "batch_generator_time", "data_wait_time", "dataloading_time", "dtd", "rank_data_time",
        "dataloader_wait", "reader_cost", "avg_reader_cost", "data_cost",
    ),
    "compute_time": (
        "compute_time", "forward_backward_time", "forward_backward", "fwd_bwd_time", "forward_backward_compute", "dtf_dtb",
        "fb_time", "computation_time", "model_time",
    ),
    "comm_time": (
        "comm_time", "allreduce_time", "all_reduce_time", "communication_time", "comms_time", "grad_sync_time",
        "reduce_scatter_time", "all_gather_time", "sync_time", "collective_time", "all_grads_sync", "nccl_time",
    ),
    "tokens": (
        "tokens", "consumed_tokens", "total_tokens", "n_tokens_seen", "tokens_seen", "num_input_tokens_seen", "num_tokens",
        "time_token", "global_tokens", "tokens_processed", "cumulative_tokens", "train_tokens", "tokens_consumed",
        "throughput_total_tokens",
    ),
    "samples": (
        "samples", "consumed_samples", "consumed_train_samples", "samples_seen", "samples_count", "time_sample",
        "samples_consumed", "sequences_seen", "total_samples", "examples_seen", "num_samples", "train_samples",
    ),
    "tokens_per_s": (
        "tokens_per_s", "tokens_per_sec", "tokens_per_second", "tok_per_sec", "tok_sec", "tok_s", "tokens_sec", "tokens_s",
        "tps", "wps", "throughput_tps", "throughput_tokens_per_second", "device_tokens_per_second", "tokens_sec_gpu", "tgs",
        "tokens_per_gpu_per_second", "tokens_per_sec_per_gpu", "tokens_per_gpu", "device_tps", "device_tokens_per_sec",
        "per_device_tokens_per_sec", "tokens_per_gpu_tokens_s_gpu", "tokens_per_gpu_per_second_tgs", "tokens_s_device", "train_tokens_per_second", "throughput_device_tps", "mtps",
        "throughput_device_tokens_per_second", "speed_wps", "token_throughput", "tokens_throughput",
    ),
    "samples_per_s": (
        "samples_per_s", "samples_per_sec", "samples_per_second", "samples_sec", "samples_s", "train_samples_per_second",
        "throughput_samples_per_sec", "throughput_samples_per_second", "examples_per_second", "examples_per_sec", "examples_sec",
        "sequences_per_second", "sequences_per_sec", "images_per_second", "images_per_sec", "imgs_per_sec", "img_per_sec", "img_sec", "images_sec",
        "samplespersec", "curr_samples_per_sec", "currsamplespersec", "throughput_device_samples_per_sec",
    ),
    "batch_size": (
        "batch_size", "global_batch_size", "bsz", "effective_batch_size", "total_batch_size", "train_batch_size",
        "num_sequences", "batchsize", "gbs",
    ),
    "seq_len": ("seq_len", "sequence_length", "seq_length", "actual_seqlen", "seqlen", "context_length", "block_size"),
    "loss_scale": ("loss_scale", "scale", "amp_scale", "scaler", "grad_scale", "scaler_scale", "fp16_scale", "loss_scaling"),
    "param_norm": (
        "param_norm", "params_norm", "parameter_norm", "weight_norm", "total_param_norm", "params_norm_total", "weights_norm",
        "param_norm_total", "l2_norm_param_global", "params_norm_vs_samples", "model_norm", "global_param_norm",
    ),
    "update_norm": (
        "update_norm", "updates_norm_total", "total_update_norm", "pre_clip_update_norm", "update_norm_total",
        "l2_norm_update_global", "post_clip_update_norm", "step_norm", "global_update_norm",
    ),
    "param_checksum": (
        "param_checksum", "params_checksum", "parameter_checksum", "checksum", "param_hash", "weights_checksum", "param_sum",
        "weight_checksum", "model_checksum", "params_hash", "weight_hash",
    ),
    "sample_start": ("sample_start", "data_start", "first_sample", "batch_start", "sample_idx_start", "data_index_start"),
    "sample_end": ("sample_end", "data_end", "last_sample", "batch_end", "sample_idx_end", "data_index_end"),
    "token_entropy": ("token_entropy", "batch_token_entropy", "data_token_entropy", "batch_entropy", "unigram_entropy"),
    "duplicate_share": (
        "duplicate_share", "duplicate_rate", "duplicates", "duplicate_fraction", "dup_rate", "dup_fraction", "dup_share",
        "duplicate_token_rate", "duplicate_token_fraction", "duplicate_token_share", "dup_token_rate", "duplicate_tokens",
        "duplicate_sample_rate", "duplicate_samples", "duplicate_sample_fraction", "token_duplication_rate",
        "duplication_rate", "repeat_rate", "repeat_fraction", "repetition_rate", "repeated_token_fraction",
        "repeated_tokens", "ngram_repeat_rate", "repeated_ngram_fraction", "batch_duplicate_rate", "batch_duplicates",
    ),
    "memory": (
        "memory", "max_memory_allocated", "gpu_memory", "peak_memory", "mem", "memory_allocated", "max_mem", "gpu_mem",
        "memory_max_reserved", "memory_max_active", "memory_reserved", "mem_reserved_bytes", "mem_max_allocated_bytes",
        "peak_mem", "cuda_max_mem", "max_reserved", "max_active", "memory_peak_allocated_mem", "memory_current_allocated_mem",
    ),
    "output_logit": (
        "output_logit", "max_output_logit", "output_logit_max", "max_logit", "max_logits", "logits_max", "logit_max",
        "lm_head_logit", "lm_head_max_logit", "output_max_logit", "logits_abs_max", "logit_norm", "output_logits_max",
    ),
    "attention_logit": (
        "attention_logit", "max_attention_logit", "attn_max_logit", "max_attn_logit", "attention_logit_max",
        "attn_logit_max", "attn_logits_max", "max_attention_logits", "attention_max_logit", "max_qk_logit", "qk_max",
    ),
    "accuracy": (
        "accuracy", "acc", "train_accuracy", "train_acc", "acc1", "top1", "top1_acc", "top1_accuracy", "acc_top1", "top_1", "prec1",
        "accuracy_top1", "acc_1", "categorical_accuracy", "sparse_categorical_accuracy", "binary_accuracy",
        "train_accuracy_step", "train_acc_step", "batch_accuracy", "batch_acc",
    ),
    "epoch": ("epoch", "epochs", "epoch_counted", "current_epoch", "time_epoch", "trainer_epoch"),
    "time": (
        "timestamp", "_timestamp", "time", "unix_time", "wall_time", "walltime", "ts", "datetime", "date", "time_stamp",
        "logged_at", "created_at", "asctime",
    ),
    "elapsed": (
        "train_time", "elapsed", "elapsed_time", "_runtime", "runtime", "relative_time_process", "relative_time_wall",
        "wall", "total_duration", "time_total", "total_time", "time_elapsed", "accumulated_submission_time", "training_time",
        "wall_clock", "wall_clock_time", "train_runtime",
    ),
}  # fmt: skip
"""Canonical step metric (and `step`) → simplified names. Another spelling that a name has after a prefix is cut counts less."""
TURNED: Final[dict[str, tuple[str, Turn]]] = {
    **dict.fromkeys(
        ("batches_per_second", "batches_per_sec", "iterations_per_second", "iterations_per_sec", "steps_per_second",
         "steps_per_sec", "it_s", "it_per_s", "iter_s", "ups", "train_steps_per_second", "its_per_sec", "device_batches_per_second",
         "device_batches_per_sec", "throughput_device_batches_per_second", "throughput_batches_per_sec"),
        ("step_time", "inverse"),
    ),
    **dict.fromkeys(("grad_norm_square", "grad_norm_squared", "grad_norm_sq", "squared_grad_norm"), ("grad_norm", "root")),
    **dict.fromkeys(
        ("skipped", "skipped_steps", "number_of_skipped_iterations", "skipped_iterations", "skipped_iters", "step_skipped",
         "skipped_step", "is_skipped", "update_skipped", "skipped_batches", "num_skipped", "overflow", "total_skipped",
         "found_inf", "skip_step", "skipped_updates", "optimizer_step_skipped"),
        ("skipped", "count"),
    ),
    **dict.fromkeys(
        ("ppl", "perplexity", "lm_loss_ppl", "train_ppl", "train_perplexity", "language_perplexity", "train_perplexity_step"),
        ("loss", "log"),
    ),
    **dict.fromkeys(("batch_idx", "batch_id", "batch_index", "data_batch_id"), ("sample_start", "ids")),
}  # fmt: skip
"""Names whose values must be turned before they mean the canonical metric; weaker than any plain alias of it."""
RANK: Final = ("rank", "global_rank", "world_rank", "process_index", "process_rank", "dp_rank", "local_rank", "worker")
RUN: Final = (
    "run",
    "run_id",
    "run_name",
    "experiment",
    "experiment_name",
    "experiment_id",
    "exp_name",
    "exp",
    "trial_id",
)
