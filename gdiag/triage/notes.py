"""What an incident that is only worth knowing asks for: no hardware is touched and no run is rolled back for a note."""

from __future__ import annotations

from typing import Final

from gdiag.triage.case import Case
from gdiag.triage.endings import at_the_end

_NOTES: Final = {
    "GD109": "Nothing to do where the log is cut from a longer one or its steps are counted from elsewhere; else check that the checkpoint was loaded",
    "GD112": "Nothing to do while skipped steps stay rare: the scaler finds the largest scale that holds by trying one that does not",
    "GD201": "Nothing to change while the run learns with it: gradients grow as a small initialisation is left behind; look at clipping, which cuts them",
    "GD206": "Nothing to change while the loss does not follow: go on, and look again if it returns",
    "GD210": "Nothing to change for the logits alone: growth from the first steps, or after gradients became unstable, follows the learning rate "
    "or the scale of the start; QK-norm bounds it",
    "GD213": "Nothing to change while the loss falls: hold the gradient norm against an earlier run, and clip it at 1.0 if the loss follows it",
    "GD305": "Nothing to change while the loss falls: hold the run against one that warms up (gdiag compare) where that matters",
    "GD605": "Nothing to do while it is not throttled: compare airflow and fans with its neighbours before summer or a denser rack does",
    "GD702": "Nothing is broken: to gain what the switch can reduce, check NCCL_NVLS_ENABLE, the fabric manager and NCCL's lines about NVLS",
    "GD703": "No action on the hardware: compare with the same sweep off-hours, and look at large messages again if training uses them",
    "GD704": "Repeat with more iterations (-n) and cycles (-N) before looking for a cause",
    "GD706": "Read the counters again after a job, with `date` above them: one reading since the last reset dates nothing",
    "GD707": "Nothing to change for so little time: record per-rank communication time to see whether it grows",
    "GD708": "Repeat both at the same hour on the same nodes before looking for a cause",
    "GD711": "Nothing to do while the GPU is alone or works: read the links again under load, with `date` above them",
    "GD712": "Nothing to do on an unused port; where a link should be, clean and plug the fibre and look at the far end",
    "GD713": "Nothing to replace yet: read the state again; what stays missing is a sensor or its firmware",
    "GD710": "Nothing to change by itself: look again if the link fails or is slow",
}  # fmt: skip


def _rerun(case: Case) -> str:
    """What a benchmark whose output contradicts itself, or stopped, leaves to do: measure again so that it tells something."""
    if (text := at_the_end(case)) is not None:
        return f"{text}; then run again"
    if case.value("failure", "GD705") is not None:
        return "Look at NCCL's lines and the kernel log of the host that failed first, mend it, and run again with NCCL_DEBUG=WARN on all hosts"
    if case.value("ranks_measured", "GD705") is not None:
        return "Build nccl-tests with MPI=1 and run again with all ranks in one job: what was measured is not the listed fabric"
    ranks = case.number("ranks", "GD705")
    if ranks is not None and ranks > 1:
        return "Give each rank a GPU of its own (CUDA_VISIBLE_DEVICES or -g by the local rank) and run again"
    if ranks is not None:
        return "Run on all GPUs of a host (-g N, or mpirun -np N with -g 1), then on two hosts: one rank moves nothing over a link"
    if case.value("busbw", "GD705") is not None:
        return (
            "Check which GPUs and network cards the test ran on, and say what they can do with --nic-gbps or --expect"
        )
    return "Run again and keep the whole output, from the header to the average"


def _unused_rate(case: Case) -> str:
    """A rate that cannot be, and that the optimizer did not take."""
    if case.value("kind", "GD309") == "negative":
        return "Log the rate itself, optimizer.param_groups[0]['lr']: what is logged looks like its logarithm, and no check of the schedule can use it"
    return "Nothing to change in the training while the loss stays finite: log optimizer.param_groups[0]['lr'], the rate that the optimizer takes"


def note(case: Case) -> str | None:
    """The one action of an incident of severity info, or that has no cause; None where the causes' own actions are in proportion."""
    if case.lead.code == "GD703" and case.value("recovered", "GD703") is True:
        return "No action: a dip that recovers is a switch of algorithm or protocol; NCCL_ALGO and NCCL_PROTO move it"
    if case.lead.code == "GD702" and case.value("sockets", "GD702") is True:
        return "Nothing to do where the hosts have no InfiniBand, RoCE or EFA; else read NCCL's lines on NET/IB and the plugin, and check NCCL_NET, NCCL_IB_DISABLE and NCCL_IB_HCA"
    if case.lead.code == "GD706" and case.number("rate", "GD706"):
        return "No action where the adapter or cable is of that speed; else look at the cable, the port's settings and the adapter's firmware"
    if case.lead.code == "GD706" and case.value("active", "GD706") is not None:
        return "Nothing to do on a port that is not in use; where a link should be, check the cable, the far end and the subnet manager"
    if case.lead.code == "GD706" and case.number("pauses", "GD706"):
        return "No action by itself: pausing is flow control at work; read the counters again after a job to see whether they grow"
    if case.lead.code == "GD008" and case.value("by_hand", "GD008") is True:
        return (
            "No action: whoever stopped the run, or its launcher, knows why; steps since the last checkpoint are lost"
        )
    if case.lead.code == "GD203":
        return (
            f"Nothing to do where {case.layer or 'these layers'} {'is' if case.layer else 'are'} frozen on purpose, as in fine-tuning; else check "
            "requires_grad and the optimizer's parameter groups"
        )
    if case.lead.code == "GD309":
        return _unused_rate(case)
    if case.lead.code == "GD402" and case.value("kind", "GD402") == "once":
        return f"Nothing to do for one row: a hard batch of rank {case.rank} looks the same; replay its batch of step {case.onset} on another node if the rank stands out again"
    if case.lead.code == "GD705":
        return _rerun(case)
    if case.lead.code == "GD306":
        return "Nothing to do where the warm-up after the restart was meant; else save and load the scheduler's state"
    if case.lead.code == "GD206" and case.value("loss_moved", "GD206") is True:
        return "Nothing to change for one jump that passes: compare the loss after it with that before, and look again if it returns"
    if case.lead.code == "GD109" and case.value("kind", "GD109") != "fresh_model":
        return None
    return _NOTES.get(case.lead.code)
