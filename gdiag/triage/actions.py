"""What to do, cause by cause, with the run's own numbers: which step to return to, which samples, which learning rate.

The fixes are those of the published accounts that diagnosis.md cites (PaLM, OPT, BLOOM, GLM-130B, Marin 32B, Llama 3)
and of the two texts the project grew from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from gdiag.model import Cause, Severity
from gdiag.triage import own_figures as own
from gdiag.triage.case import Case
from gdiag.triage.endings import at_the_end, never_ran
from gdiag.triage.notes import note
from gdiag.triage.sentences import lone_jump

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
        return (f"{devices_own} ({case.value('port', code)}{_host(case)})",)
    chosen: list[str] = []
    for position, cause in enumerate(causes[:2]):
        if position and (cause.score < SECOND or (cause.basis == "prior" and cause.score < CLOSE * causes[0].score)):
            break  # how common a cause is elsewhere asks for nothing here
        actions = ACTIONS.get(cause.cause, ())
        if own.over(case):  # that nothing is to be undone comes before what to change
            undone = tuple(action for action in (roll_back, unless_loaded) if action in actions and not position)
            actions = (*undone, *(action for action in actions if action not in {roll_back, unless_loaded}))
        for action in actions[: 4 if position == 0 else 1]:
            if slight and action in _GRAVE:
                continue
            text = action(case)
            restarts = text.startswith("Start again") and any("start again" in told for told in chosen)
            if text and text not in chosen and not restarts:
                chosen.append(text)
    return tuple(chosen)


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


def _where(case: Case) -> str:
    return f" of {case.layer}" if case.layer else ""


def roll_back(case: Case) -> str:
    """Return to the last checkpoint before the onset, not before the peak; a lone NaN that left no trace needs none."""
    if case.value("isolated", "GD101", "GD204") is True and not case.find("GD104", "GD105", "GD201"):
        return "The rows after it are finite: go on, no rollback is needed unless it returns"
    if _handled(case):
        return "No rollback is needed for an error that the hardware handled"
    if lone_jump(case) is not None:
        return "No rollback is needed: the gradient is back at once and the loss does not follow"
    if _skipped(case):
        return f"No rollback is needed: the loss stays finite, so every update since step {case.onset} was skipped and the weights are those of then"
    if own.over(case):
        again = "" if own.from_start(case) else f"; return to {own.return_point(case)} only if it happens again"
        return f"Nothing to roll back: the level is regained{own.by_step(case)}{again}"
    if own.from_start(case):
        return "Start again: there is no state before the fault to go back to"
    before = " (before the onset, not the peak)" if case.onset is not None else ""
    return f"Roll back to {own.return_point(case)}{before}"


def _skipped(case: Case) -> bool:
    """Whether all that is not finite are gradients whose updates the scaler skipped."""
    lost = case.find("GD101")
    scaled = case.find("GD112") is not None
    return (
        scaled
        and (case.number("rows", "GD101") == 0 or (lost is None and case.lead.code == "GD112"))
        and not case.find(*MOVED[1:])
    )


def return_or_evaluate(case: Case) -> str:
    """Training that stays finite is not rolled back for its evaluation."""
    if case.value("training_finite", "GD111") is True:
        return f"Evaluate {own.return_point(case)} and the one after it in FP32; look for empty batches (0/0), longer sequences and masks of only padding"
    return roll_back(case)


def skip_samples(case: Case) -> str:
    """Skip the onset's data, by sample ids where logged."""
    if case.data is not None and case.value("recovered", "GD102") is True:
        return f"Leave samples {case.data.first_sample}–{case.data.last_sample - 1} out of the next run, or of this one if it is rolled back for another reason"
    if case.data is not None:
        return f"Skip samples {case.data.first_sample}–{case.data.last_sample - 1} (or 200–500 batches around them) and go on"
    if case.onset is None:
        return "Skip the batches around the onset and go on"
    if _period(case) is not None:
        return "Leave that shard out, or skip the batches of these steps in each round, and go on"
    lasts = case.last is not None and case.last > case.onset
    span = f"batches of steps {case.onset}–{case.last}" if lasts else f"batch of step {case.onset}"
    if case.value("recovered", "GD102") is True:
        return f"Leave the {span} out of the next run, or of this one if it is rolled back for another reason"
    return f"Skip the {span} (PaLM skipped 200–500) and go on"


def inspect_batch(case: Case) -> str:
    """Look at the data before blaming it."""
    if (period := _period(case)) is not None:
        steps = case.value("onsets", "GD103") or case.value("steps", "GD106")
        few = ", ".join(str(steps).split(", ")[:3])
        return f"Find what the run reads every {period:.0f} steps: the batches of steps {few} … share a shard, a file or the end of an epoch; filter it if it is garbled"
    if case.data is not None:
        return f"Inspect samples {case.data.first_sample}–{case.data.last_sample - 1}: token mix, length, repeats, encoding; filter their source if it is garbled"
    return "Find the onset's batch from the loader's seed and position and inspect its token mix, length and repeats; filter its source if it is garbled, and log sample ids from now on"


def restore_loader(case: Case) -> str:
    """Where the data are read twice: at a resume, or by one rank for ever."""
    if case.value("kind", "GD402") == "sinks":
        return f"Compare the sample ids and the loader's workers of rank {case.rank} with another rank's since step {case.onset}: it may be given the same batch again and again; the other ranks' gradients were averaged with it"
    return own.drop_repeated(case)


def keep_going(case: Case) -> str:
    """A recovered spike needs no rollback."""
    if case.value("kind", "GD402") == "sinks":
        return restore_loader(case)
    if case.value("recovered", "GD102") is False:
        return roll_back(case)
    if (period := _period(case)) is not None and case.onset is not None and case.last is not None:
        due = case.onset + period * (1 + (case.last - case.onset) // period)
        return f"Each spike is over by itself: no rollback is needed, and the next is due near step {due:.0f}"
    if lone_jump(case) is not None:
        return "The loss does not follow: go on, no rollback is needed unless such jumps return"
    if case.find(*MOVED) is None:
        return "The loss stays at its level: go on, no rollback is needed unless such jumps return"
    return "The loss recovered: go on, no rollback is needed unless spikes return"


MOVED: Final = ("GD101", "GD102", "GD103", "GD104", "GD105", "GD106", "GD109")
"""Findings of a loss that left its level."""


def _period(case: Case) -> float | None:
    """Steps from one spike or far row to the next where they come at equal distances."""
    return case.number("period", "GD103", "GD106")


def replay_batch(case: Case) -> str:
    """Replay decides between data, state and hardware."""
    step = f"step {case.onset}" if case.onset is not None else "the onset step"
    mine = case.host or (f"that of rank {case.rank}" if case.rank is not None else "")
    other = f"another node than {mine}" if mine else "another node"
    return f"Replay {step} from {own.return_point(case)} on {other}: the same spike speaks for data and state, a clean step for hardware"


def lower_lr(case: Case) -> str:
    """A rate that is known to be borne, as a figure when it was logged; where none is known, a way to find one."""
    peak, go = case.facts.peak_lr, "start again" if own.from_start(case) else "resume"
    if own.over(case):
        change = f" from {peak:.3g} to {peak / 2:.3g}" if peak else ""
        return f"Should it happen again, lower the peak learning rate{change}"
    borne = _borne(case)
    if peak and borne is not None:
        return (
            f"Lower the peak learning rate from {peak:.3g} to {borne / 2:.2g}, half of what it was ({borne:.3g}) when training left its course, "
            f"and {go}"
        )
    if case.pattern in NOT_LEARNING:
        change = f" from {peak:.3g} to {peak / 10:.3g}" if peak else " tenfold"
        return (
            f"Lower the peak learning rate{change} and {go}; no rate of this run is known to work, so find it with a range test: raise it "
            "exponentially over some hundred steps and take a tenth of the rate at which the loss is lowest"
        )
    return (
        f"Lower the peak learning rate from {peak:.3g} to {peak / 2:.3g} and {go}"
        if peak
        else f"Halve the peak learning rate and {go}"
    )


NOT_LEARNING: Final = frozenset({"no_learning", "plateau"})
"""Patterns of runs that do not learn at their rate: half of it may be as wrong."""


def _borne(case: Case) -> float | None:
    """The rate at which the run left its course while the rate was still rising to its peak; None elsewhere."""
    finding = case.find("GD307", "GD104", "GD101", "GD103", "GD102", "GD201")
    if finding is None:
        return None
    peak = case.facts.peak_lr
    rate, share = finding.number("lr_at_onset"), finding.number("lr_share_of_peak")
    if peak and rate is None and share is not None:
        rate = share * peak
    if peak and share is None and rate is not None:
        share = rate / peak
    rising = (finding.number("lr_ratio") or 1.0) >= 1.0
    return rate if rate and share is not None and share < 0.8 and rising else None


def warm_up(case: Case) -> str:
    """A warm-up of 1–5 % of the run; empty where the run went astray long after one would have ended."""
    total = case.facts.config.get("total_steps", case.facts.last_step)
    first, last = case.facts.first_step, case.facts.last_step
    late = (
        case.onset is not None
        and first is not None
        and last is not None
        and case.onset - first > EARLY * (last - first)
    )
    if late and case.lead.code != "GD305" and case.context("GD305") is None:
        return ""
    if isinstance(total, int | float) and total > 100:
        share = " (1–5 % of the run)" if total >= 1000 else ""
        return (
            f"Warm the learning rate up over {max(10, round(0.01 * total))}–{max(50, round(0.05 * total))} steps{share}"
        )
    return "Warm the learning rate up over 1–5 % of the run"


EARLY: Final = 0.15
"""Share of the run within which a longer warm-up changes anything: three times the longest usual one."""


def keep_lr(case: Case) -> str:
    """Hold the rate, then decay late (WSD)."""
    step = case.onset
    at = f" from before step {step}" if step is not None else ""
    return f"Extend the stable phase{at} (WSD: decay only in the last 10–20 %) and resume with the higher learning rate"


def raise_lr(case: Case) -> str:
    """Ten times the peak rate, as a figure when it was logged."""
    peak = case.facts.peak_lr
    return (
        f"Raise the peak learning rate, for example from {peak:.3g} to {10 * peak:.3g}, or shorten the warm-up"
        if peak
        else "Raise the learning rate or shorten the warm-up"
    )


def check_lr(case: Case) -> str:
    """Where the schedule jumps and by how much."""
    ratio = case.number("lr_ratio")
    by = f" (×{ratio:.3g})" if ratio is not None else ""
    at = f" at step {case.onset}" if case.onset is not None else ""
    times = case.number("schedule_steps_per_step", "GD306")
    if times is not None:
        return f"Step the scheduler once per optimizer step: from step {case.onset} on it is stepped {times:.0f} times (per rank, micro-batch or wrapper)"
    if case.value("at_restart", "GD302", "GD306") is True:
        return f"Save and load the scheduler's state with the checkpoint and resume again: the learning rate jumps at the restart{at}{by}"
    return f"Remove the jump of the learning rate{at}{by}, or smooth the transition: check scheduler state, units of its steps and the resume code"


def after_rate(case: Case) -> str:
    """What updates at a rate that cannot be have spoilt; empty where another change is told of."""
    return roll_back(case) if case.find("GD309") is not None else ""


def rewarm(case: Case) -> str:
    """How to go on without the state; what has worn off needs nothing."""
    return "" if own.over(case) else "If they are lost, re-warm the learning rate over a few hundred steps"


def resume_again(case: Case) -> str:
    """What to bring back: the schedule where only the rate moved, else the weights."""
    return check_lr(case) if case.lead.code in {"GD302", "GD306"} else own.load_again(case)


def unless_loaded(case: Case) -> str:
    """A rollback where no checkpoint is to be loaded again anyway."""
    return "" if resume_again(case).startswith(("Load ", "Save and load")) and not own.over(case) else roll_back(case)


def drain_gpu(case: Case) -> str:
    """Which device to take out."""
    if _handled(case):
        return "Nothing to drain for a non-fatal error by itself: read the link's counters again, and look at the switch or GPU if it returns"
    device = _device(case)
    it, returns = ("them", "they return") if device.startswith(("the GPUs", "all ")) else ("it", "it returns")
    return f"Drain {device}, reset {it} and run the vendor's field diagnostics before {returns}"


def drain_one(case: Case) -> str:
    """One GPU alone may be at fault; what holds all of a host is not theirs."""
    return drain_gpu(case) if case.gpu is not None else ""


def _handled(case: Case) -> bool:
    """Whether all that is told of is an error that calls itself non-fatal."""
    return case.lead.code == "GD404" and all(f.measure("fatal") is False for f in case.findings if f.code == "GD404")


def _device(case: Case) -> str:
    host = f" of {case.host}" if case.host else ""
    if case.gpu is not None:
        return f"GPU {case.gpu}{host}"
    if case.rank is not None:
        return f"the GPU of rank {case.rank}"
    bus = case.value("bus_id", "GD404")
    if isinstance(bus, str) and ":" in bus:
        return f"the {'switch' if case.value('sxid', 'GD404') is not None else 'GPU'} at {bus}{host}"
    count, total = case.number("gpus"), case.number("gpus_total")
    several = f"all {count:.0f} GPUs" if count is not None and count == total else "the GPUs"
    if host or several != "the GPUs":
        return f"{several}{host}"
    return "the GPUs in question" if case.facts.last_step is None else "the GPUs of the run"


def first_error(case: Case) -> str:
    """Where a collective timed out, the rank that reports it is seldom the one at fault; attempts are held against one another."""
    if case.lead.measure("kind") == "crash_loop":
        return _compare_exits(case)
    if case.value("kind", "GD008") == "nccl_timeout" or case.number("timeouts", "GD009"):
        return "Find the rank that did not arrive: the first error of every rank, stack dumps (py-spy) or the NCCL flight recorder of all ranks"
    return at_the_end(case) or "Read the last lines before the exit and reproduce with one node and the same versions"


def versions(case: Case) -> str:
    """What else may have changed, where the last words name nothing."""
    return "" if at_the_end(case) else "Check driver, CUDA and NCCL versions against the last good run"


def go_on_from(case: Case) -> str:
    """Where a run that was stopped goes on: from its last checkpoint, whatever stopped it."""
    if case.lead.code != "GD008" or case.onset is None or never_ran(case) or case.facts.last_step is None:
        return ""
    saved = case.facts.checkpoint_before(case.onset + 1)
    every = own.setting(case, "checkpoint_interval")
    lost = (
        f": {case.onset - saved} steps are lost"
        if saved is not None
        else f": up to {every:g} steps are lost"
        if every
        else ""
    )
    return f"Then resume from {f'the checkpoint of step {saved}' if saved is not None else 'the last checkpoint'}{lost}"


def _compare_exits(case: Case) -> str:
    tries, last = case.lead.number("restarts") or 0, case.last
    if case.lead.measure("same_step") is True:
        return f"Read the last error of the {tries:.0f} attempts: where it is the same, resume without the batch after step {last}, or from an earlier checkpoint"
    return f"Read the first error and the host of each of the {tries:.0f} attempts: one host in all of them is to be left out of the next; without one look at memory and timeouts"


def compare_ranks(case: Case) -> str:
    """Make a suspicion of corruption a proof or drop it."""
    if case.pattern == "wrong_results":
        return "Take the nodes out of use and halve the ranks until the GPU, link or host that the fault needs is found"
    who = f"rank {case.rank}'s node" if case.rank is not None else "the same node"
    return f"Re-run the step on {who} and on another with the same batch and weights and compare gradients{_where(case)} bit by bit"


def mend_link(case: Case) -> str:
    """The port's own name where counters tell it; an NVLink has no cable of its own."""
    if case.lead.code == "GD711":
        gpu = f"GPU {case.gpu}" if case.gpu is not None else "its GPUs"
        return (
            f"Drain {case.host or 'the host'}, reset {gpu} (nvidia-smi -r), restart the fabric manager and run dcgmi diag -r 3; "
            "what stays down is the GPU, its baseboard or the switch"
        )
    if case.lead.code == "GD712":
        who = case.value("port", "GD712")
        if case.value("kind", "GD712") == "heat":
            return f"Check the airflow at the cage of {who}{_host(case)}"
        return f"Clean and reseat the fibre of {who}{_host(case)}, look at the far end's transmitted power, then replace the module"
    port = case.value("port", "GD706", "GD710")
    if case.lead.code == "GD706" and case.value("active", "GD706") is not None:
        return f"Where {port or 'the port'}{_host(case)} should be in use, check its cable, the far end's port and the subnet manager; an unused port needs nothing"
    return f"Replace the cable or transceiver of {port or 'the port with errors'}{_host(case)}, then the NIC; check both ends with ibdiagnet"


def _host(case: Case) -> str:
    return f" of {case.host}" if case.host else ""


def cool(case: Case) -> str:
    """Airflow first."""
    return f"Check inlet temperature, fans and airflow for {_device(case)}; repaste or replace the card when it repeats on one card only"


def small_network(case: Case) -> str:
    """A minimal reproduction of the layer named."""
    return f"Reproduce it with a network of two or three blocks like {case.layer or 'the lowest one'} and compare gradient norms layer by layer"


def connect_layer(case: Case) -> str:
    """A layer that never moved is mostly frozen; one whose gradient ends later has died."""
    layer = case.layer or "the layer"
    if case.value("looks_frozen", "GD203") is True:
        return f"Check that {layer} is not frozen by accident and is in the optimizer: it never had a gradient and never moved; if it is frozen on purpose, nothing is wrong"
    if case.value("from_start", "GD203") is False:
        return f"Check what happened to {layer} at step {case.onset}: its units died or were cut from the loss; it was connected before"
    return f"Check that {layer} is in the optimizer, not frozen by accident, and connected to the loss"


def bf16(case: Case) -> str:
    """The format with the wider range; empty where training itself stays finite."""
    if case.value("training_finite", "GD111") is True:
        return ""
    return "Train in BF16, with LayerNorm, softmax and the loss in FP32; with fp16 check the loss scaling"


def bisect_layer(case: Case) -> str:
    """A minimal reproduction of the layers named; empty where training itself stays finite."""
    if case.value("training_finite", "GD111") is True:
        return ""
    return f"Reproduce the step with only {case.layer or 'the first non-finite layers'} and NaN checks on its inputs, weights and outputs"


_GRAVE: Final = frozenset({roll_back, return_or_evaluate, skip_samples, replay_batch, drain_gpu, mend_link})
ACTIONS: Final[dict[str, tuple[Action, ...]]] = {
    "bad_batch": (keep_going, inspect_batch, skip_samples, replay_batch),
    "lr_too_high": (lower_lr, roll_back, warm_up, own.clip, own.second_moment),
    "missing_warmup": (warm_up, roll_back, lower_lr),
    "lr_jump": (check_lr, roll_back, own.rate_before),
    "lr_decayed_early": (keep_lr, roll_back),
    "lr_too_low": (raise_lr, plain("Check that every parameter is in the optimizer and that weight updates are about 1e-3 of the weights")),
    "gradient_explosion": (own.clip, roll_back, lower_lr, plain("Re-run the first 1,000 steps with another seed: the same failure is systematic, another one is luck")),
    "numeric_overflow": (bf16, bisect_layer, return_or_evaluate, plain("Check the loss for log(0), 0/0 and empty targets in the batch of the onset")),
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
    "dead_layer": (connect_layer, plain("Use SiLU or GELU instead of ReLU and check the initialization"), small_network),
    "bad_initialization": (own.first_loss, plain("Re-run the first 1,000 steps with another seed: the same failure is systematic, another one is luck")),
    "weight_decay_too_small": (own.decay, plain("Watch parameter norms every 100–200 steps")),
    "silent_data_corruption": (compare_ranks, drain_gpu, roll_back, plain("Turn on ECC monitoring and a parameter checksum per rank every 1,000 steps")),
    "replica_divergence": (roll_back, compare_ranks, plain("Broadcast parameters from one healthy replica, then check clipping and reductions for rank-dependent code")),
    "hardware_fault": (drain_gpu, roll_back, plain("Keep the kernel log and `nvidia-smi -q` of the node for the vendor")),
    "thermal_throttling": (cool, plain("Lower the power limit by 5–10 % until cooling is fixed: it costs less clock than throttling"), plain("Stagger the load of neighbouring nodes if a whole rack is hot")),
    "power_cap": (plain("Restore the power limit (`nvidia-smi -pl`) to the board's default, or accept the lower clock that it costs"), plain("Ask the data centre whether the limit is a policy")),
    "power_brake": (plain("Call the data centre: an external power brake means PSU, PDU or rack power, not GPU heat"), drain_one),
    "straggler": (lambda c: f"Replace or drain {_device(c)}; check clocks, PCIe and NVLink state there, and the host's CPU load", plain("Compare per-rank compute time: in synchronous training the slow rank waits least in collectives")),
    "network_congestion": (plain("Run nccl-tests off-hours and under load and compare size by size"), plain("Check port error and wait counters (`perfquery -x`, `ibdiagnet`) on the path"), plain("Tune ECN/DCQCN and PFC on RoCE, and isolate storage traffic")),
    "oversubscribed_fabric": (plain("Add spine capacity, or lower the data-parallel degree across the oversubscribed tier"), plain("Place each job's ranks under as few leaf switches as possible")),
    "competing_traffic": (plain("Isolate the training network from storage and management traffic"),),
    "flow_control": (plain("Tune PFC and ECN/DCQCN: check pause frames per priority and that training traffic is on the lossless priority"),),
    "link_fault": (mend_link,),
    "transport_fallback": (plain("Check the NCCL INFO lines: NVLink, GPUDirect RDMA and the right network interface must be in use; unset overrides of topology and transports"),),
    "software_fault": (first_error, versions, go_on_from),
    "time_limit": (plain("Resume from the last checkpoint with a longer time limit, and save a checkpoint on the scheduler's warning signal"),),
    "dataloader_stall": (own.loader, plain("Match the slow steps with shard boundaries")),
    "periodic_pause": (own.pause,),
    "memory_pressure": (own.memory, plain("Look for tensors kept across steps")),
    "unknown_step_time_drift": (own.record_times, plain("Compare the configuration and the node list before and after the onset")),
    "unknown": (replay_batch, plain("Log what `gdiag doctor` lists as missing; the log as it stands cannot decide")),
}  # fmt: skip
"""Cause → its actions, the first the most urgent. Every cause of design.md section 5 has one."""
