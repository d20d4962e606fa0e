"""Which codes name, lead, follow and bind what: the lists that grouping and naming of incidents go by."""

from __future__ import annotations

from typing import Final

from gdiag.model import Pattern

PATTERN: Final[dict[str, Pattern]] = {
    "GD001": "log_quality", "GD002": "log_quality", "GD003": "log_quality", "GD004": "log_quality",
    "GD005": "log_quality", "GD006": "log_quality", "GD007": "log_quality", "GD008": "abnormal_exit", "GD009": "hang", "GD010": "log_quality", "GD011": "log_quality",
    "GD101": "nonfinite", "GD102": "single_spike", "GD103": "repeated_spikes", "GD104": "divergence",
    "GD105": "step_up", "GD106": "hard_batches", "GD107": "no_learning", "GD108": "plateau", "GD109": "resume_jump",
    "GD110": "eval_divergence", "GD111": "eval_divergence", "GD112": "skipped_steps", "GD113": "scale_mismatch",
    "GD115": "resume_jump", "GD116": "nonfinite", "GD117": "resume_jump", "GD118": "skipped_steps", "GD119": "eval_divergence", "GD120": "resume_jump",
    "GD201": "gradient_explosion", "GD202": "vanishing_gradient", "GD203": "dead_layer", "GD204": "nonfinite",
    "GD205": "layer_outlier", "GD206": "gradient_explosion", "GD207": "parameter_growth", "GD208": "parameter_jump",
    "GD209": "parameter_growth", "GD210": "layer_outlier", "GD211": "layer_outlier", "GD212": "scale_mismatch",
    "GD213": "gradient_explosion", "GD215": "parameter_growth",
    "GD302": "lr_discontinuity", "GD303": "plateau", "GD304": "no_learning", "GD305": "lr_schedule",
    "GD306": "lr_discontinuity", "GD307": "divergence", "GD308": "log_quality", "GD309": "lr_discontinuity",
    "GD401": "rank_mismatch", "GD402": "rank_outlier", "GD403": "ecc_error", "GD404": "gpu_error",
    "GD501": "step_time_shift", "GD502": "step_time_drift", "GD503": "periodic_slow_steps", "GD504": "slow_steps",
    "GD505": "straggler", "GD506": "memory_growth",
    "GD601": "thermal_slowdown", "GD602": "power_limit", "GD603": "power_brake", "GD604": "clock_outlier",
    "GD605": "thermal_slowdown", "GD606": "gpu_error",
    "GD701": "wrong_results", "GD702": "low_bandwidth", "GD703": "bandwidth_collapse", "GD704": "latency_jitter",
    "GD705": "inconsistent_output", "GD706": "port_errors", "GD707": "slow_collective",
    "GD708": "low_bandwidth", "GD709": "low_bandwidth", "GD710": "port_errors",
    "GD711": "port_errors", "GD712": "port_errors", "GD713": "port_errors",
}  # fmt: skip
"""The pattern a finding gives an incident that it leads; codes that are absent are evidence only."""


LEADS: Final = (
    "GD403", "GD404", "GD606", "GD401", "GD402", "GD101", "GD116", "GD204", "GD208", "GD202", "GD203", "GD109",
    "GD115", "GD120", "GD118", "GD112", "GD117", "GD302", "GD309", "GD306", "GD104", "GD103", "GD105", "GD102", "GD307", "GD201", "GD303", "GD304",
    "GD107", "GD108", "GD110", "GD111", "GD106", "GD213", "GD205", "GD206", "GD210", "GD211", "GD113", "GD207", "GD215", "GD601",
    "GD603", "GD602", "GD505", "GD504", "GD501", "GD502", "GD707", "GD604", "GD506", "GD503", "GD701",
)  # fmt: skip
"""Among findings of equal severity the first of these names the incident: proof before shape, shape before hint."""


STATE: Final = frozenset({"GD101", "GD103", "GD104", "GD307", "GD116"})
"""Findings after which the model's state is in question: what follows in the loss or gradients is a consequence."""


LEARNING: Final = frozenset({"GD107", "GD108", "GD202", "GD303", "GD304"})
"""Findings that say together that the run does not learn; they form one incident."""


ALONE: Final = frozenset({"GD001", "GD002", "GD003", "GD004", "GD005", "GD006", "GD007", "GD010", "GD011", "GD106", "GD110", "GD111", "GD113", "GD119",
                          "GD203", "GD207", "GD209", "GD212", "GD305", "GD308", "GD503", "GD506", "GD605"})  # fmt: skip
"""Findings about a stretch of the run or about the log itself: never joined to an event by time alone."""


SHARP: Final = frozenset(
    {"GD101", "GD102", "GD109", "GD117", "GD118", "GD120", "GD208", "GD215", "GD302", "GD306", "GD309"}
)
"""Findings dated to the row: they date a slow rise, whose own onset is only known to a few blocks of rows."""


BLUNT: Final = frozenset({"GD213"})
"""Findings dated to a quarter of the run: they date only what nothing else does."""


FOLLOWS: Final = frozenset({"GD201"})
"""Gradients that grow with what a resume, a jump of the rate or one rank alone did: they are its consequence, however grave, and
dated by it where they seem to begin a few rows before."""


SPIKES: Final = frozenset({"GD102"})
"""What is over by itself, and does not name an event that was not."""


RESTARTS: Final = frozenset({"GD109", "GD115", "GD117", "GD118", "GD120"})
"""Findings about a row at which training was taken up again."""


TAKEN_UP: Final = frozenset({"GD109", "GD302", "GD306"})
"""Findings about a row that is known beforehand: where training was taken up again, or the rate set."""


NUMBERS: Final = frozenset({"GD101", "GD112", "GD116", "GD204"})
"""Findings about numbers that are not finite, or about the loss scale that keeps them so: programs stop over them."""


HINTS: Final = frozenset({"GD205", "GD206", "GD207", "GD209", "GD210", "GD211", "GD213", "GD215"})
"""Findings that explain more than they describe: they lead only where no finding of at least a warning describes, and among
them the order of LEADS counts, not how grave they are."""


ROOM: Final = {"GD0": "log", "GD1": "model", "GD2": "model", "GD3": "model", "GD4": "model", "GD5": "time", "GD6": "time",
               "GD7": "network"}  # fmt: skip


HARDWARE: Final = frozenset({"GD403", "GD404", "GD606"})
"""The machine's own reports: they join whatever the model did within a few rows of them."""


BROAD: Final = frozenset({"GD201", "GD207", "GD208", "GD210", "GD211", "GD213", "GD309"})
"""Findings that may last for the rest of the run: what is only worth knowing binds nothing together that comes later."""


RATED: Final = frozenset({"GD302", "GD303", "GD304", "GD306", "GD307"})
"""Findings to which the name of the schedule (GD301) belongs: beside others that begin in the same rows it says nothing."""


SLOWED: Final = frozenset({"GD501", "GD502", "GD504"})


UNTIMED: Final = frozenset({"GD601", "GD603", "GD604"})
"""What telemetry without a clock says of slow GPUs, and what it does to the steps."""


UNSTEADY: Final = frozenset({"GD102", "GD103", "GD104", "GD105", "GD109", "GD302", "GD307"})
"""Findings of a loss, or a rate, that is away from its course for a stretch."""


STRETCHES: Final[frozenset[Pattern]] = frozenset(
    {
        "plateau", "no_learning", "eval_divergence", "vanishing_gradient", "dead_layer", "parameter_growth", "lr_schedule",
        "lr_discontinuity", "rank_mismatch", "scale_mismatch", "log_quality",
    }
)  # fmt: skip
"""Patterns that no batch brings about: the samples of their first step say nothing."""


LASTING: Final = frozenset({"GD102", "GD104", "GD105", "GD109"})
"""Losses that leave their level: where they do not come back the incident lasts on, however soon the new level is the usual one."""


LAYER_WITNESSES: Final = (
    "GD204",
    "GD208",
    "GD402",
    "GD401",
    "GD205",
    "GD201",
    "GD210",
    "GD202",
    "GD203",
    "GD211",
    "GD207",
)
"""Findings that may name the layer, best witness first."""
