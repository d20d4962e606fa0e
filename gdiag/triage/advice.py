"""What to log next time: the columns whose absence kept a question open, with a snippet ready to paste."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from gdiag.triage.facts import RunFacts

What = Literal["layers", "samples", "checksum", "times"]

_TORCH: Final[dict[What, str]] = {
    "layers": '{f"grad_norm/{n}": p.grad.norm().item() for n, p in model.named_parameters() if p.grad is not None}',
    "samples": '{"sample_start": step * global_batch, "sample_end": (step + 1) * global_batch}',
    "checksum": '{"rank": rank, "step": step, "param_checksum": sum(p.double().abs().sum().item() for p in model.parameters())}',
    "times": '{"step_time": t, "data_time": t_data, "comm_time": t_comm}',
}  # fmt: skip
"""What any loop in PyTorch can log, ready to paste."""
_SNIPPETS: Final[dict[str, dict[What, str]]] = {
    "Transformers": {
        "layers": 'in a TrainerCallback: def on_pre_optimizer_step(self, args, state, control, model, **kw): wandb.log({f"grad_norm/{n}": p.grad.norm().item() for n, p in model.named_parameters() if p.grad is not None}, step=state.global_step)',
        "samples": 'in a TrainerCallback: def on_step_end(self, args, state, control, **kw): b = args.train_batch_size * args.gradient_accumulation_steps * args.world_size; wandb.log({"sample_start": (state.global_step - 1) * b, "sample_end": state.global_step * b}, step=state.global_step)',
        "checksum": 'in a TrainerCallback: def on_save(self, args, state, control, model, **kw): print({"rank": args.process_index, "step": state.global_step, "param_checksum": sum(p.double().abs().sum().item() for p in model.parameters())})',
    },
    "Megatron-LM": {
        "layers": '--log-params-norm; per layer, before optimizer.step(): {f"grad_norm/{n}": p.main_grad.norm().item() for n, p in model.named_parameters()}',
        "samples": "keep `consumed samples` in the iteration line",
        "checksum": "--check-weight-hash-across-dp-replicas-interval 1000",
        "times": "--timing-log-level 2",
    },
    "DeepSpeed": {
        "layers": 'after engine.backward(loss): {f"grad_norm/{n}": deepspeed.utils.safe_get_full_grad(p).norm().item() for n, p in engine.module.named_parameters()}',
        "times": '"wall_clock_breakdown": true in the configuration',
    },
    "torchtitan": {
        "layers": 'before optimizers.step(): {f"grad_norm/{n}": p.grad.full_tensor().norm().item() for n, p in model.named_parameters() if p.grad is not None}',
    },
    "OLMo or Composer": {
        "layers": "OLMo: optimizer.record_update_metrics: true; Composer: OptimizerMonitor(log_optimizer_metrics=True)",
    },
    "MMEngine": {
        "layers": 'in a Hook: def after_train_iter(self, runner, **kw): runner.message_hub.update_scalars({f"train/grad_norm/{n}": p.grad.norm().item() for n, p in runner.model.named_parameters() if p.grad is not None})',
    },
    "MaxText": {
        "layers": '{f"grad_norm/{jax.tree_util.keystr(k)}": jnp.linalg.norm(g) for k, g in jax.tree_util.tree_leaves_with_path(grads)}',
        "checksum": '{"rank": jax.process_index(), "step": step, "param_checksum": float(sum(jnp.abs(p).sum() for p in jax.tree.leaves(params)))}',
    },
}  # fmt: skip
"""Framework → how it logs what is wanted; what is not named here is logged as any loop in PyTorch logs it."""
_FRAMEWORKS: Final = {
    "hf-console": "Transformers", "trainer-state": "Transformers", "megatron": "Megatron-LM", "megatron-golden": "Megatron-LM",
    "deepspeed": "DeepSpeed", "torchtitan": "torchtitan", "blocks": "OLMo or Composer", "openmmlab": "MMEngine",
    "maxtext": "MaxText",
}  # fmt: skip
"""Format of a source → the framework that wrote it."""
_LIGHTNING: Final = (
    "self.log_dict(lightning.pytorch.utilities.grad_norm(self, norm_type=2)) in on_before_optimizer_step"
)
"""Lightning writes formats of others (CSV, TensorBoard), so its way stands beside PyTorch's."""


def _snippet(run: RunFacts, what: What) -> str:
    """The framework's own way where it has one, else PyTorch's."""
    for name in sorted(run.formats & _FRAMEWORKS.keys()):
        own = _SNIPPETS[_FRAMEWORKS[name]].get(what)
        if own is not None:
            return f"{_FRAMEWORKS[name]}: {own}"
    return _TORCH[what] + (f" (Lightning: {_LIGHTNING})" if what == "layers" else "")


def advise_logging(facts: Iterable[RunFacts], incidents: int) -> tuple[str, ...]:
    """Advice for runs with incidents: per-layer norms, batch ids, per-rank checksums, the learning rate, times."""
    if not incidents:
        return ()
    advice: list[str] = []
    for run in facts:
        if not run.logged("steps.loss"):
            continue
        if not run.logged("layers.grad_norm"):
            advice.append(f"Log gradient norms per layer: {_snippet(run, 'layers')}")
        if not (run.logged("steps.sample_start") or run.logged("steps.samples")):
            advice.append(f"Log which samples each step consumed: {_snippet(run, 'samples')}")
        if not run.logged("steps.lr"):
            advice.append('Log the learning rate of every step: {"lr": optimizer.param_groups[0]["lr"]}')
        if not run.logged("steps.grad_norm"):
            advice.append(
                'Log the gradient norm before clipping: {"grad_norm": clip_grad_norm_(model.parameters(), 1.0).item()}'
            )
        if not run.logged("steps.param_checksum"):
            advice.append(f"Every 1,000 steps and on every rank, log a parameter checksum: {_snippet(run, 'checksum')}")
        if run.logged("steps.step_time") and not (run.logged("steps.data_time") or run.logged("steps.comm_time")):
            advice.append(f"Split the step time: {_snippet(run, 'times')}")
    return tuple(dict.fromkeys(advice))
