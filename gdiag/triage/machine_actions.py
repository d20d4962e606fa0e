"""What to do about devices, links, hosts and programs that ended."""

from __future__ import annotations

import re
from typing import Final

from gdiag.triage import state
from gdiag.triage.case import Case
from gdiag.triage.endings import at_the_end, never_ran


def drain_gpu(case: Case) -> str:
    """Which device to take out."""
    if handled(case):
        return "Nothing to drain for a non-fatal error by itself: read the link's counters again, and look at the switch or GPU if it returns"
    device = _device(case)
    it, returns = ("them", "they return") if device.startswith(("the GPUs", "all ")) else ("it", "it returns")
    return f"Drain {device}, reset {it} and run the vendor's field diagnostics before {returns}"


def drain_one(case: Case) -> str:
    """One GPU alone may be at fault; what holds all of a host is not theirs."""
    return drain_gpu(case) if case.gpu is not None else ""


def handled(case: Case) -> bool:
    """Whether all that is told of is an error that calls itself non-fatal."""
    return case.lead.code == "GD404" and all(f.measure("fatal") is False for f in case.findings if f.code == "GD404")


def _device(case: Case) -> str:
    host = f" of {case.host}" if case.host else ""
    if case.gpu is not None:
        return f"GPU {case.gpu}{host}"
    if case.rank is not None:
        return f"the GPU of rank {case.rank}"
    bus = case.value("bus_id", "GD404") or _bus_in_words(case)
    if isinstance(bus, str) and ":" in bus:
        return f"the {'switch' if case.value('sxid', 'GD404') is not None else 'GPU'} at {bus}{host}"
    count, total = case.number("gpus"), case.number("gpus_total")
    several = f"all {count:.0f} GPUs" if count is not None and count == total else "the GPUs"
    if host or several != "the GPUs":
        return f"{several}{host}"
    return "the GPUs in question" if case.facts.last_step is None else "the GPUs of the run"


def _bus_in_words(case: Case) -> str | None:
    """The PCI address that the driver's own words on a lost GPU name."""
    words = " ".join(f.message for f in case.findings if f.code == "GD606") + str(case.value("text", "GD008") or "")
    found = re.search(r"\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.\d)?\b", words, re.IGNORECASE)
    return found[0] if found else None


def replace_gpu(case: Case) -> str:
    """The slow device."""
    return f"Replace or drain {_device(case)}; check clocks, PCIe and NVLink state there, and the host's CPU load"


def first_error(case: Case) -> str:
    """Where a collective timed out, the rank that reports it is seldom the one at fault; attempts are held against one another."""
    if case.lead.measure("kind") == "crash_loop":
        return _compare_exits(case)
    if case.value("first_error", "GD008") is not True and (
        case.value("kind", "GD008") == "nccl_timeout" or case.number("timeouts", "GD009")
    ):
        return _waited_for(case)
    if case.lead.code == "GD404":
        return (
            "Find the kernel: run the step again with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer, on another GPU too; an error that goes with "
            "the program is the program's"
        )
    return at_the_end(case) or "Read the last lines before the exit and reproduce with one node and the same versions"


def _waited_for(case: Case) -> str:
    """Where to look for the rank that a collective waited for."""
    dumps = "stack dumps (py-spy) or the NCCL flight recorder of all ranks"
    culprit, missing = case.number("culprit_rank", "GD009"), case.value("missing_ranks", "GD009")
    if culprit is None and missing is None:
        return f"Find the rank that did not arrive: the first error of every rank, {dumps}"
    who = f"rank {culprit:.0f}" if culprit is not None else f"ranks {missing}"
    return f"Look at {who} first: the last lines and the first error there, the kernel log of that host; then {dumps}"


def free_space(case: Case) -> str:
    """Room for what could not be written."""
    return at_the_end(case) or "Check free space, quota and health of the file system that checkpoints and logs go to"


def versions(case: Case) -> str:
    """What else may have changed, where the last words name nothing."""
    return "" if at_the_end(case) else "Check driver, CUDA and NCCL versions against the last good run"


def go_on_from(case: Case) -> str:
    """Where a run that was stopped goes on: from its last checkpoint, whatever stopped it."""
    if (
        case.lead.code not in {"GD008", "GD009"}
        or case.onset is None
        or never_ran(case)
        or case.facts.last_step is None
    ):
        return ""
    saved = state.saved_before_end(case)
    if saved is None and state.half_written(case):
        return "Then resume from the last checkpoint that was written whole"
    every = state.setting(case, "checkpoint_interval")
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


def _where(case: Case) -> str:
    return f" of {case.layer}" if case.layer else ""


PEER: Final = re.compile(r"from peer ([\w.:\-]+?)<\d+>")
"""The other end of a transfer that failed, in NCCL's words."""


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
            return f"Check the airflow at the cage of {who}{host_of(case)}"
        return f"Clean and reseat the fibre of {who}{host_of(case)}, look at the far end's transmitted power, then replace the module"
    port = case.value("port", "GD706", "GD710")
    if case.lead.code == "GD706" and case.value("active", "GD706") is not None:
        return f"Where {port or 'the port'}{host_of(case)} should be in use, check its cable, the far end's port and the subnet manager; an unused port needs nothing"
    if port is None and case.lead.code == "GD008":
        peer = PEER.search(str(case.value("text", "GD008") or ""))
        other = f"the peer {peer[1]}" if peer else "the peer"
        return (
            f"Look at {other} first: its process, its own first error and its port; retries also run out where a peer died or RoCE is set up wrongly. "
            f"Then read the port counters of both ends{host_of(case)} (perfquery -x, ibdiagnet) and replace what counts errors"
        )
    return f"Replace the cable or transceiver of {port or 'the port with errors'}{host_of(case)}, then the NIC; check both ends with ibdiagnet"


def host_of(case: Case) -> str:
    return f" of {case.host}" if case.host else ""


def cool(case: Case) -> str:
    """Airflow first."""
    return f"Check inlet temperature, fans and airflow for {_device(case)}; repaste or replace the card when it repeats on one card only"
