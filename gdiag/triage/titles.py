"""One line that says what an incident is, where and when."""

from __future__ import annotations

from typing import Final

from gdiag.model import Pattern, Severity
from gdiag.triage.case import Case
from gdiag.triage.state import gap_of_recovery

NAMES: Final[dict[Pattern, str]] = {
    "single_spike": "Loss spike", "repeated_spikes": "Repeated loss spikes", "divergence": "Loss diverges",
    "step_up": "Loss steps up and stays", "nonfinite": "Loss or gradient is not finite", "skipped_steps": "Optimizer steps skipped",
    "plateau": "Loss plateau", "no_learning": "The loss does not fall", "resume_jump": "Loss changes at a resume",
    "hard_batches": "Hard batches", "gradient_explosion": "Gradient norm explodes", "vanishing_gradient": "Gradients vanish",
    "dead_layer": "Dead layer", "layer_outlier": "One layer stands out", "parameter_jump": "Parameter norm jumps",
    "parameter_growth": "Parameter norms grow", "lr_discontinuity": "Learning rate jumps", "lr_schedule": "Learning-rate schedule",
    "rank_mismatch": "Replicas disagree", "rank_outlier": "One rank stands out", "eval_divergence": "Validation loss leaves training loss",
    "scale_mismatch": "Scale of a logged value changes", "hang": "Training hangs", "abnormal_exit": "The run ended abnormally",
    "memory_growth": "Memory grows", "slow_steps": "Slow steps", "periodic_slow_steps": "Periodic slow steps",
    "step_time_drift": "Step time drifts up", "step_time_shift": "Step time shifts up", "straggler": "Straggler",
    "thermal_slowdown": "Thermal throttling", "power_limit": "Power limit", "power_brake": "Power brake",
    "clock_outlier": "GPU clock below its peers", "ecc_error": "ECC errors", "gpu_error": "GPU error",
    "slow_collective": "Slow collective", "low_bandwidth": "Low bandwidth", "wrong_results": "Wrong results",
    "latency_jitter": "Latency jitter", "bandwidth_collapse": "Bandwidth collapses", "port_errors": "Port errors",
    "inconsistent_output": "Benchmark output contradicts itself", "log_quality": "Log quality",
}  # fmt: skip

MESSAGES: Final = frozenset(
    {"log_quality", "lr_schedule", "hard_batches", "hang", "rank_outlier", "periodic_slow_steps"}
)
"""Patterns whose finding says more than their name; so do GD404 (which Xid on which GPU), restarts and benchmarks."""

BY_CODE: Final = {
    "GD120": "The replay leaves the first training",
    "GD206": "Gradient norm jumps",
    "GD210": "Attention logits grow",
    "GD213": "Gradient norm is unsteady",
    "GD215": "Parameter norms shrink",
    "GD111": "Validation loss is not finite",
    "GD117": "Step counter not restored",
    "GD118": "Loss scale not restored",
    "GD605": "GPU runs hot",
    "GD606": "GPU lost",
}
"""Findings that are another thing than the pattern they are filed under."""


LARGE: Final = 1e5
"""Excess from which figures after the point say nothing, nat."""
MORE_WORK: Final = 1.02
"""Work of a step over that before from which there is more of it."""
LONG_ROWS: Final = 10
"""Logged rows between onset and largest row from which the title names the latter."""

BY_KIND: Final = {
    "restarted": "Learning-rate warm-up begins again",
    "behind": "Learning rate falls behind its schedule",
    "ahead": "Learning rate runs ahead of its schedule",
    "advanced_twice": "Learning rate moves {:.0f} times as fast",
    "surge": "Gradients surge in the first updates",
    "stalled": "Loss stops falling as the rate nears its peak",
    "weights": "Updates carry the weights off",
    "calming": "Gradients wander near the peak rate",
    "NaN": "Learning rate is NaN",
    "infinite": "Learning rate is infinite",
    "negative": "Learning rate is below zero",
}
"""What a schedule that does not go on (GD306) does, what is unstable at the peak rate (GD307), and what a rate that cannot be
(GD309) is."""


def title(case: Case) -> str:
    """The incident in one line: what, when, where, how large."""
    if case.lead.code == "GD008":
        ended, semicolon, after = _capital(case.lead.message).partition(";")
        return " ".join(part for part in (ended, _place(case)) if part) + semicolon + after
    if case.pattern in MESSAGES or case.lead.code.startswith(("GD003", "GD404", "GD7")):
        return _capital(case.lead.message)
    parts = [_name(case), _when(case), _place(case)]
    return " ".join(part for part in parts if part) + _size(case)


def _name(case: Case) -> str:
    """What happened, in a few words."""
    name = BY_CODE.get(case.lead.code, NAMES[case.pattern])
    if case.lead.code in {"GD101", "GD204"}:
        name = _lost(case)
    if case.lead.code == "GD501" and case.lead.measure("recovered") is True and case.severity > Severity.INFO:
        name = "Step time rises for a while"
    if case.lead.number("regained_step") is not None:
        name = REGAINED.get(case.lead.code, name)
    if case.lead.code == "GD203":
        name = _dead(case, name)
    if case.lead.measure("simultaneous") is True and case.lead.code == "GD205":
        name = "Gradients of many layers rise together"
    if case.lead.code == "GD201" and case.severity is Severity.INFO:
        name = "Gradient norm rises"
    if case.lead.code == "GD307" and case.lead.measure("recovered") is True:
        name = "Training is unstable at its learning rate"
    if case.lead.code == "GD209":
        name = "Update norm surges" if case.pattern == "gradient_explosion" else "Updates out of their usual range"
    if case.lead.code in {"GD501", "GD502"} and case.severity is Severity.INFO:
        work = case.lead.number("load_ratio")
        if work is None:
            name = "Batch size may have grown: longer steps"
        elif work >= MORE_WORK:
            name = f"Steps have {work:.3g} times the work"
    if case.lead.code in {"GD306", "GD307", "GD309"}:
        kind = str(case.lead.measure("kind"))
        name = BY_KIND.get(kind, name).format(case.lead.number("schedule_steps_per_step") or 0)
    return name


REGAINED: Final = {"GD104": "Loss rises for long", "GD105": "Loss steps up"}
"""Losses that left their level for long and not for good."""


def _dead(case: Case, name: str) -> str:
    """What a layer without a future lacks."""
    if case.lead.measure("never_updated") is True:
        return "Layer is never updated"
    return "Layers without gradient" if case.severity is Severity.INFO else name


LOST: Final = {
    "grad_norm": "Gradient norm is not finite",
    "grad_norm_clipped": "Gradient norm is not finite",
    "param_norm": "Parameter norm is not finite",
    "update_norm": "Update norm is not finite",
}
"""The first column that is not finite where the loss is finite all along."""


def _lost(case: Case) -> str:
    """What is not finite: the loss where it ever is not, else what is."""
    if case.find("GD116") or case.number("rows", "GD101") or case.value("loss_nonfinite", "GD204") is True:
        return "Loss is not finite"
    if case.lead.code == "GD204":
        parameters = case.lead.measure("parameters_nonfinite") is True
        return "Parameters are not finite" if parameters else "Gradients are not finite"
    return LOST.get(str(case.lead.measure("first_column")), NAMES["nonfinite"])


def _capital(text: str) -> str:
    """A sentence's first letter in upper case, unless the first word is a name such as mlx5_0 or all_reduce."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isalpha() else text


AT: Final = frozenset(
    {
        "abnormal_exit", "single_spike", "nonfinite", "lr_discontinuity", "resume_jump", "parameter_jump", "rank_mismatch",
    }
)  # fmt: skip
"""Patterns that happen at a step; the others begin there."""


def _when(case: Case) -> str:
    if case.onset is None:
        return ""
    lead = case.lead.where.step
    if case.lead.code == "GD117":
        return f"after step {case.lead.number('step_before'):.0f}: the count goes on at {case.onset}"
    if case.pattern == "nonfinite" and lead is not None and lead > case.onset:
        return f"at step {lead}, unstable from step {case.onset}"
    if case.lead.measure("kind") == "advanced_twice" or case.lead.code == "GD309":
        return f"from step {case.onset}"
    single = case.last == case.onset and case.pattern == "layer_outlier"
    if single or case.lead.code in {"GD206", "GD118"} or case.pattern in AT:
        return f"at step {case.onset}"
    return f"from step {case.onset}"


def _place(case: Case) -> str:
    places = [
        case.layer,
        f"rank {case.rank}" if case.rank is not None else None,
        f"GPU {case.gpu}" if case.gpu is not None else None,
        f"host {case.host}" if case.host else None,
    ]
    named = [place for place in places if place]
    return f"({', '.join(named)})" if named else ""


def _size(case: Case) -> str:
    excess = case.lead.number("peak_excess")
    if excess is None:
        return ""
    recovered, peak = case.lead.measure("recovered"), case.lead.number("peak_step")
    far = peak is not None and case.onset is not None and peak - case.onset > LONG_ROWS * case.facts.interval
    at = f" at step {peak:.0f}" if far else ""
    regained = case.lead.number("regained_step")
    gap = gap_of_recovery(case) if recovered is True else None
    back = ", recovered" if gap is None else f", back behind a gap of the log (steps {gap[0]} to {gap[1]})"
    after = back if recovered is True else ", not recovered" if recovered is False else ""
    if recovered is False and regained is not None:
        after = f", back at the level of before only by step {regained:.0f}"
    size = f"{excess:+.2f}" if abs(excess) < LARGE else f"{excess:+.3g}"
    return f": {size} nat{at}{after}"
