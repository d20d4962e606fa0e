"""What to do about one layer."""

from __future__ import annotations

from gdiag.triage.case import Case
from gdiag.triage.state_actions import roll_back


def small_network(case: Case) -> str:
    """A minimal reproduction of the layer named."""
    return f"Reproduce it with a network of two or three blocks like {case.layer or 'the lowest one'} and compare gradient norms layer by layer"


def connect_layer(case: Case) -> str:
    """A layer that never moved is mostly frozen; one whose gradient ends later has died."""
    layer = case.layer or "the layer"
    if case.value("looks_frozen", "GD203") is True:
        return f"Check that {layer} is not frozen by accident and is in the optimizer: it never had a gradient and never moved; if it is frozen on purpose, nothing is wrong"
    if case.value("never_updated", "GD203") is True:
        return f"Add {layer} to the optimizer's parameter groups: check requires_grad, and that the optimizer was made after the layer; freeze it only on purpose"
    if (jump := case.find("GD208")) is not None:
        before, after = jump.number("level_before"), jump.number("level_after")
        size = f" (norm {before:.3g} → {after:.3g})" if before is not None and after is not None else ""
        return f"Compare the weights and biases of {layer} before and after step {case.onset}{size}: what wrote them there switched all its units off"
    if case.value("from_start", "GD203") is False:
        return f"Check what happened to {layer} at step {case.onset}: its units died or were cut from the loss; it was connected before"
    return f"Check that {layer} is in the optimizer, not frozen by accident, and connected to the loss"


def wake_units(case: Case) -> str:
    """Units that died of what was written into them are restored; others need a slope where they are off."""
    if case.value("never_updated", "GD203") is True:
        return "Start again once it is there: what was trained around it is not what was meant"
    if case.find("GD208") is not None:
        return roll_back(case)
    return "Use SiLU or GELU instead of ReLU and check the initialization"


def bf16(case: Case) -> str:
    """The format with the wider range; empty where training itself stays finite."""
    if case.value("training_finite", "GD111") is True:
        return ""
    return "Train in BF16, with LayerNorm, softmax and the loss in FP32; with fp16 check the loss scaling"


def check_loss(case: Case) -> str:
    """What in the loss itself gives NaN, and where a logger hides it."""
    shown = (
        "Make the logger show NaN (HF Trainer: logging_nan_inf_filter=False), and check"
        if case.find("GD116")
        else "Check"
    )
    batch = "the evaluation's batches" if case.value("training_finite", "GD111") is True else "the batch of the onset"
    return f"{shown} the loss for log(0), 0/0 and empty targets in {batch}"


def bisect_layer(case: Case) -> str:
    """A minimal reproduction of the layers named; empty where training itself stays finite."""
    if case.value("training_finite", "GD111") is True:
        return ""
    return f"Reproduce the step with only {case.layer or 'the first non-finite layers'} and NaN checks on its inputs, weights and outputs"
