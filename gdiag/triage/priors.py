"""How likely each cause is before the evidence of a run is read, by the pattern of the incident.

The shares for a single spike follow diagnosis.md 2.10 (data × state 35 %, learning rate or optimizer 30 %, attention
or output logits 12 %, fp16 8 %, resume or loader 8 %, code or configuration 5 %, corruption 2 %), which agrees with the
published accounts of PaLM, OPT, BLOOM and Marin 32B and with corruption's 1.4 % of the interruptions of Llama 3. The
other rows are our judgement from the same accounts. `unknown` is in every race.
"""

from __future__ import annotations

from typing import Final

from gdiag.model import Pattern

UNKNOWN: Final = "unknown"
UNKNOWN_SHARE: Final = 0.10

_SPIKE: Final = {
    "bad_batch": 0.34, "optimizer_instability": 0.15, "lr_too_high": 0.12, "attention_logit_growth": 0.08,
    "output_logit_growth": 0.04, "numeric_overflow": 0.05, "optimizer_state_lost": 0.04, "resume_mismatch": 0.02,
    "data_order": 0.02, "data_repeated": 0.01, "config_change": 0.03, "gradient_explosion": 0.03, "lr_jump": 0.02,
    "missing_warmup": 0.01, "silent_data_corruption": 0.02, "hardware_fault": 0.005, "loss_scale_collapse": 0.02,
}  # fmt: skip
_UNSTABLE: Final = {
    "lr_too_high": 0.38, "optimizer_instability": 0.12, "gradient_explosion": 0.10, "attention_logit_growth": 0.08,
    "output_logit_growth": 0.04, "bad_batch": 0.05, "missing_warmup": 0.04, "lr_jump": 0.03, "numeric_overflow": 0.05,
    "bad_initialization": 0.02, "weight_decay_too_small": 0.02, "silent_data_corruption": 0.01, "hardware_fault": 0.005,
    "optimizer_state_lost": 0.02, "resume_mismatch": 0.02, "config_change": 0.05, "loss_scale_collapse": 0.02,
    "dead_layer": 0.01, "data_order": 0.025,
}  # fmt: skip
_HANG: Final = {
    "software_fault": 0.35,
    "hardware_fault": 0.2,
    "link_fault": 0.15,
    "straggler": 0.05,
    "storage_fault": 0.04,
}
_SLOW: Final = {
    "unknown_step_time_drift": 0.35, "thermal_throttling": 0.08, "network_congestion": 0.12, "dataloader_stall": 0.12,
    "straggler": 0.08, "power_cap": 0.04, "power_brake": 0.02, "memory_pressure": 0.05, "competing_traffic": 0.03,
    "periodic_pause": 0.03, "config_change": 0.05, "link_fault": 0.02,
}  # fmt: skip
_FABRIC: Final = {
    "transport_fallback": 0.15, "network_congestion": 0.15, "oversubscribed_fabric": 0.12, "link_fault": 0.15,
    "competing_traffic": 0.08, "flow_control": 0.06, "software_fault": 0.05,
}  # fmt: skip

PRIORS: Final[dict[Pattern, dict[str, float]]] = {
    "single_spike": _SPIKE,
    "hard_batches": {"bad_batch": 0.6, "data_order": 0.1},
    "repeated_spikes": {**_UNSTABLE, "bad_batch": 0.15, "optimizer_instability": 0.18, "attention_logit_growth": 0.10},
    "divergence": _UNSTABLE,
    "step_up": {
        "dead_layer": 0.01,
        "optimizer_instability": 0.18, "config_change": 0.18, "lr_too_high": 0.06, "data_repeated": 0.12,
        "data_order": 0.08, "resume_mismatch": 0.08, "bad_batch": 0.06, "silent_data_corruption": 0.02, "lr_jump": 0.03,
        "attention_logit_growth": 0.05, "output_logit_growth": 0.03, "hardware_fault": 0.005,
    },
    "nonfinite": {
        "numeric_overflow": 0.36, "gradient_explosion": 0.08, "lr_too_high": 0.12, "loss_scale_collapse": 0.08,
        "bad_batch": 0.08, "missing_warmup": 0.02, "attention_logit_growth": 0.05, "lr_jump": 0.02,
        "bad_initialization": 0.02, "silent_data_corruption": 0.02, "hardware_fault": 0.02, "software_fault": 0.03,
        "optimizer_instability": 0.03, "config_change": 0.01,
    },
    "skipped_steps": {"loss_scale_collapse": 0.45, "numeric_overflow": 0.25, "lr_too_high": 0.08, "bad_batch": 0.04,
                      "loss_scale_lost": 0.03},
    "plateau": {"lr_decayed_early": 0.25, "lr_too_low": 0.12, "lr_too_high": 0.2, "data_order": 0.05,
                "vanishing_gradient": 0.06, "data_repeated": 0.04, "missing_warmup": 0.06, "bad_initialization": 0.03},
    "no_learning": {"lr_too_low": 0.25, "bad_initialization": 0.12, "vanishing_gradient": 0.1, "lr_too_high": 0.2,
                    "software_fault": 0.12, "dead_layer": 0.05, "missing_warmup": 0.02},
    "resume_jump": {"resume_mismatch": 0.28, "optimizer_state_lost": 0.34, "data_repeated": 0.08, "data_order": 0.08,
                    "bad_batch": 0.06, "config_change": 0.06, "step_counter_lost": 0.03, "loss_scale_lost": 0.03},
    "gradient_explosion": _UNSTABLE | {"bad_batch": 0.18},
    "vanishing_gradient": {"vanishing_gradient": 0.75, "bad_initialization": 0.1, "lr_too_low": 0.03},
    "dead_layer": {"dead_layer": 0.8, "vanishing_gradient": 0.05, "bad_initialization": 0.04},
    "layer_outlier": {"bad_batch": 0.3, "attention_logit_growth": 0.15, "output_logit_growth": 0.08, "lr_too_high": 0.1,
                      "silent_data_corruption": 0.04, "optimizer_instability": 0.1, "numeric_overflow": 0.05},
    "parameter_jump": {"silent_data_corruption": 0.4, "lr_jump": 0.1, "hardware_fault": 0.05, "optimizer_instability": 0.1,
                       "software_fault": 0.1, "resume_mismatch": 0.05, "dead_layer": 0.05},
    "parameter_growth": {"weight_decay_too_small": 0.5, "lr_too_high": 0.15, "output_logit_growth": 0.08,
                         "attention_logit_growth": 0.06, "config_change": 0.03},
    "lr_discontinuity": {"lr_jump": 0.7, "config_change": 0.1, "resume_mismatch": 0.1},
    "lr_schedule": {"missing_warmup": 0.4, "lr_too_high": 0.15, "lr_batch_mismatch": 0.1},
    "rank_mismatch": {"replica_divergence": 0.4, "silent_data_corruption": 0.35, "software_fault": 0.1,
                      "hardware_fault": 0.03},
    "rank_outlier": {"silent_data_corruption": 0.45, "bad_batch": 0.15, "replica_divergence": 0.08,
                     "hardware_fault": 0.05, "software_fault": 0.08, "data_repeated": 0.04},
    "eval_divergence": {"overfitting": 0.55, "data_order": 0.06, "data_repeated": 0.08, "numeric_overflow": 0.05,
                        "software_fault": 0.08, "config_change": 0.04},
    "scale_mismatch": {"config_change": 0.4, "software_fault": 0.25, "lr_batch_mismatch": 0.05},
    "hang": _HANG,
    "abnormal_exit": {"link_fault": 0.04, "software_fault": 0.4, "hardware_fault": 0.1, "memory_pressure": 0.12, "time_limit": 0.05, "storage_fault": 0.03,
                      "numeric_overflow": 0.03, "loss_scale_collapse": 0.02, "lr_too_high": 0.01, "bad_batch": 0.02},
    "memory_growth": {"memory_pressure": 0.75, "software_fault": 0.1},
    "slow_steps": _SLOW, "step_time_drift": _SLOW, "step_time_shift": {**_SLOW, "config_change": 0.13},
    "periodic_slow_steps": {"periodic_pause": 0.7, "dataloader_stall": 0.12, "memory_pressure": 0.04},
    "straggler": {"straggler": 0.75, "thermal_throttling": 0.04, "hardware_fault": 0.03, "dataloader_stall": 0.03},
    "thermal_slowdown": {"thermal_throttling": 0.8, "power_brake": 0.03, "power_cap": 0.03},
    "power_limit": {"power_cap": 0.8, "thermal_throttling": 0.03},
    "power_brake": {"power_brake": 0.8, "power_cap": 0.04},
    "clock_outlier": {"thermal_throttling": 0.2, "power_cap": 0.2, "hardware_fault": 0.15, "straggler": 0.1},
    "ecc_error": {"hardware_fault": 0.75, "silent_data_corruption": 0.06},
    "gpu_error": {"hardware_fault": 0.6, "software_fault": 0.2},
    "slow_collective": {"network_congestion": 0.25, "link_fault": 0.12, "competing_traffic": 0.1, "straggler": 0.1,
                        "oversubscribed_fabric": 0.08, "flow_control": 0.05, "transport_fallback": 0.04, "config_change": 0.05},
    "low_bandwidth": _FABRIC, "bandwidth_collapse": _FABRIC, "latency_jitter": _FABRIC,
    "wrong_results": {"silent_data_corruption": 0.45, "hardware_fault": 0.25, "software_fault": 0.15},
    "port_errors": {"link_fault": 0.5, "network_congestion": 0.12, "flow_control": 0.12, "hardware_fault": 0.03},
    "inconsistent_output": {},
    "log_quality": {},
}  # fmt: skip
"""Prior share of each cause, by pattern; `unknown` takes UNKNOWN_SHARE and shares need not sum to one."""
