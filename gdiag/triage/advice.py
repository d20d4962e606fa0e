"""What to log next time: the columns whose absence kept a question open, with a snippet ready to paste."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gdiag.triage.facts import RunFacts

_TORCH: Final = {
    "layers": '{f"grad_norm/{n}": p.grad.norm().item() for n, p in model.named_parameters() if p.grad is not None}',
    "samples": '{"sample_start": step * global_batch, "sample_end": (step + 1) * global_batch}',
    "checksum": '{"rank": rank, "step": step, "param_checksum": sum(p.double().abs().sum().item() for p in model.parameters())}',
    "times": '{"step_time": t, "data_time": t_data, "comm_time": t_comm}',
}  # fmt: skip
_LAYER_SWITCHES: Final = {
    "lightning": "LightningModule: self.log_dict(lightning.pytorch.utilities.grad_norm(self, norm_type=2)) in on_before_optimizer_step",
    "composer": "Composer: OptimizerMonitor(log_optimizer_metrics=True)",
    "megatron": "Megatron-LM: --log-params-norm --log-num-zeros-in-grad; per layer: log inside the optimizer's step",
    "neox": "GPT-NeoX: log_gradient_norm, log_grad_norm and log_param_norm in the configuration",
    "olmo": "OLMo: optimizer.record_update_metrics and gen1_gradient_clipping metrics (optim/grad/…)",
    "hf": "Transformers: a TrainerCallback with on_pre_optimizer_step that logs grad norms per parameter",
}  # fmt: skip
"""Framework family → how it logs per-layer norms; matched by the beginning of a source's format name."""


def advise_logging(facts: Iterable[RunFacts], incidents: int) -> tuple[str, ...]:
    """Advice for runs with incidents: per-layer norms, batch ids, per-rank checksums, the learning rate, times."""
    if not incidents:
        return ()
    advice: list[str] = []
    for run in facts:
        if not run.logged("steps.loss"):
            continue
        if not run.logged("layers.grad_norm"):
            switch = next(
                (text for key, text in _LAYER_SWITCHES.items() if any(f.startswith(key) for f in run.formats)), None
            )
            advice.append(f"Log gradient norms per layer: {switch or _TORCH['layers']}")
        if not (run.logged("steps.sample_start") or run.logged("steps.samples")):
            advice.append(f"Log which samples each step consumed: {_TORCH['samples']}")
        if not run.logged("steps.lr"):
            advice.append('Log the learning rate of every step: {"lr": optimizer.param_groups[0]["lr"]}')
        if not run.logged("steps.grad_norm"):
            advice.append(
                'Log the gradient norm before clipping: {"grad_norm": clip_grad_norm_(model.parameters(), 1.0).item()}'
            )
        if not run.logged("steps.param_checksum"):
            advice.append(f"Every 1,000 steps and on every rank, log a parameter checksum: {_TORCH['checksum']}")
        if run.logged("steps.step_time") and not (run.logged("steps.data_time") or run.logged("steps.comm_time")):
            advice.append(f"Split the step time: {_TORCH['times']}")
    return tuple(dict.fromkeys(advice))
