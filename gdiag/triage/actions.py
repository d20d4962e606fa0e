"""What to do, cause by cause, with the run's own numbers: which step to return to, which samples, which learning rate.

The fixes are those of the published accounts that diagnosis.md cites (PaLM, OPT, BLOOM, GLM-130B, Marin 32B, Llama 3)
and of the two texts the project grew from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from gdiag.model import Cause, Severity
from gdiag.triage import own_figures as own
from gdiag.triage import state
from gdiag.triage.case import Case
from gdiag.triage.layer_actions import bf16, bisect_layer, check_loss, connect_layer, small_network, wake_units
from gdiag.triage.machine_actions import (
    compare_ranks,
    cool,
    drain_gpu,
    drain_one,
    first_error,
    free_space,
    go_on_from,
    host_of,
    mend_link,
    replace_gpu,
    versions,
)
from gdiag.triage.notes import note
from gdiag.triage.rate_actions import check_lr, keep_lr, lower_lr, raise_lr, rewarm, warm_up
from gdiag.triage.state_actions import (
    after_rate,
    inspect_batch,
    keep_going,
    replay_batch,
    restore_loader,
    resume_again,
    return_or_evaluate,
    roll_back,
    skip_samples,
    unless_loaded,
)

Action = Callable[[Case], str]
"""What to do, empty where it does not apply."""


SECOND: Final = 0.05
"""Least score of a second cause that is worth an action."""


def advise(case: Case, causes: Sequence[Cause]) -> tuple[str, ...]:
    """Actions for the best cause, then the first action of a second that may well be it; without repeats.

    What is only worth knowing costs no rollback, no samples and no hardware.
    """
    slight = case.severity is Severity.INFO
    if (slight or not causes) and (text := note(case)) is not None:
        return (text,)
    code = case.lead.code
    devices_own = case.value("action", code) if code in {"GD710", "GD713"} else None
    if isinstance(devices_own, str) and devices_own:
        return (f"{devices_own} ({case.value('port', code)}{host_of(case)})",)
    chosen: list[str] = []
    for position, cause in enumerate(causes[:2]):
        if position and (cause.score < SECOND or (cause.basis == "prior" and cause.score < CLOSE * causes[0].score)):
            break  # how common a cause is elsewhere asks for nothing here
        actions = ACTIONS.get(cause.cause, ())
        if state.over(case):  # that nothing is to be undone comes before what to change
            undone = tuple(action for action in (roll_back, unless_loaded) if action in actions and not position)
            said = {roll_back, unless_loaded, *({keep_going} if position else ())}
            actions = (*undone, *(action for action in actions if action not in said))
        for action in actions[: 4 if position == 0 else 1]:
            guessed = cause.basis == "prior" and (slight or position)
            if ((slight or guessed) and action in _GRAVE) or (guessed and action in _RATES):
                continue  # nothing is undone and no hardware touched for how common a cause is elsewhere
            text = action(case)
            if text and text not in chosen:
                chosen.append(text)
    anew = any("start again" in text for text in chosen)  # said with what to change before
    return tuple(text for text in chosen if not (anew and text.startswith("Start again")))


CLOSE: Final = 0.5
"""Share of the best cause's score from which on a second cause cannot be told from it."""


def deciding(causes: Sequence[Cause]) -> tuple[str, ...]:
    """What to log to tell the two best causes apart, where they are close and something that would decide is missing."""
    named = [cause for cause in causes if cause.cause != "unknown"][:2]
    if len(named) < 2 or named[1].score < CLOSE * named[0].score:
        return ()
    wanted = list(dict.fromkeys((*named[0].missing, *named[1].missing)))[:2]
    one, two = (cause.cause.replace("_", " ") for cause in named)
    return (f"This log cannot tell {one} from {two}: log {' and '.join(wanted)} to decide",) if wanted else ()


def plain(text: str) -> Action:
    """An action that needs no figure of the run."""
    return lambda _: text


_RATES: Final = frozenset({lower_lr, raise_lr, warm_up, keep_lr, rewarm})
"""What is not worth a change of the rate where the log only makes it worth knowing, or where it is a second guess."""
_GRAVE: Final = frozenset({roll_back, return_or_evaluate, skip_samples, replay_batch, drain_gpu, mend_link})


ACTIONS: Final[dict[str, tuple[Action, ...]]] = {
    "bad_batch": (keep_going, inspect_batch, skip_samples, replay_batch),
    "lr_too_high": (lower_lr, roll_back, warm_up, own.clip, own.second_moment),
    "missing_warmup": (warm_up, roll_back, lower_lr),
    "lr_jump": (check_lr, roll_back, own.rate_before),
    "lr_decayed_early": (keep_lr, roll_back),
    "lr_too_low": (raise_lr, plain("Check that every parameter is in the optimizer and that weight updates are about 1e-3 of the weights")),
    "gradient_explosion": (own.clip, roll_back, lower_lr, plain("Re-run the first 1,000 steps with another seed: the same failure is systematic, another one is luck")),
    "numeric_overflow": (bf16, bisect_layer, return_or_evaluate, check_loss),
    "loss_scale_collapse": (plain("Train in BF16, or find the first overflowing layer before touching the loss scaler"), roll_back, own.loss_scale, bisect_layer),
    "attention_logit_growth": (own.attention, roll_back),
    "output_logit_growth": (own.output, lower_lr),
    "optimizer_instability": (own.second_moment, roll_back, lower_lr, plain("Log update norms and second moments per layer: staleness shows 1–8 steps before the spike")),
    "optimizer_state_lost": (own.restore_optimizer, rewarm),
    "resume_mismatch": (resume_again, unless_loaded, plain("Check the checkpoint's path, step and hash, and that no key was missing when it was loaded")),
    "step_counter_lost": (own.restore_counter, own.apart_checkpoints),
    "loss_scale_lost": (own.restore_scale, plain("Check that the optimizer's moments came back as well: both are mostly saved, or lost, together")),
    "data_repeated": (restore_loader, plain("Save the loader's state (epoch, position, seed of the shuffle) with each checkpoint, and log sample ids to see that it holds")),
    "data_order": (own.check_order, inspect_batch),
    "config_change": (own.compare_settings, after_rate),
    "lr_batch_mismatch": (own.scale_rate,),
    "overfitting": (own.stop_early, plain("Check that no validation sample is in the training set before trusting the curve")),
    "vanishing_gradient": (plain("Use pre-norm and residual connections with residual scaling"), plain("Use SiLU or GELU instead of saturating units and check the initialization"), small_network),
    "dead_layer": (connect_layer, wake_units, small_network),
    "bad_initialization": (own.first_loss, plain("Re-run the first 1,000 steps with another seed: the same failure is systematic, another one is luck")),
    "weight_decay_too_small": (own.decay, plain("Watch parameter norms every 100–200 steps")),
    "silent_data_corruption": (compare_ranks, drain_gpu, roll_back, plain("Turn on ECC monitoring and a parameter checksum per rank every 1,000 steps")),
    "replica_divergence": (roll_back, compare_ranks, plain("Broadcast parameters from one healthy replica, then check clipping and reductions for rank-dependent code")),
    "hardware_fault": (drain_gpu, roll_back, plain("Keep the kernel log and `nvidia-smi -q` of the node for the vendor")),
    "thermal_throttling": (cool, plain("Lower the power limit by 5–10 % until cooling is fixed: it costs less clock than throttling"), plain("Stagger the load of neighbouring nodes if a whole rack is hot")),
    "power_cap": (plain("Restore the power limit (`nvidia-smi -pl`) to the board's default, or accept the lower clock that it costs"), plain("Ask the data centre whether the limit is a policy")),
    "power_brake": (plain("Call the data centre: an external power brake means PSU, PDU or rack power, not GPU heat"), drain_one),
    "straggler": (replace_gpu, plain("Compare per-rank compute time: in synchronous training the slow rank waits least in collectives")),
    "network_congestion": (plain("Run nccl-tests off-hours and under load and compare size by size"), plain("Check port error and wait counters (`perfquery -x`, `ibdiagnet`) on the path"), plain("Tune ECN/DCQCN and PFC on RoCE, and isolate storage traffic")),
    "oversubscribed_fabric": (plain("Add spine capacity, or lower the data-parallel degree across the oversubscribed tier"), plain("Place each job's ranks under as few leaf switches as possible")),
    "competing_traffic": (plain("Isolate the training network from storage and management traffic"),),
    "flow_control": (plain("Tune PFC and ECN/DCQCN: check pause frames per priority and that training traffic is on the lossless priority"),),
    "link_fault": (mend_link,),
    "transport_fallback": (plain("Check the NCCL INFO lines: NVLink, GPUDirect RDMA and the right network interface must be in use; unset overrides of topology and transports"),),
    "software_fault": (first_error, versions, go_on_from),
    "storage_fault": (free_space, go_on_from),
    "time_limit": (plain("Resume from the last checkpoint with a longer time limit, and save a checkpoint on the scheduler's warning signal"),),
    "dataloader_stall": (own.loader, plain("Match the slow steps with shard boundaries")),
    "periodic_pause": (own.pause,),
    "memory_pressure": (own.memory, plain("Look for tensors kept across steps")),
    "unknown_step_time_drift": (own.record_times, own.what_else_ran),
    "unknown": (replay_batch, plain("Log what `gdiag doctor` lists as missing; the log as it stands cannot decide")),
}  # fmt: skip
"""Cause → its actions, the first the most urgent. Every cause of design.md section 5 has one."""
