"""Every format, listed by hand: the name of its module, which is imported only where a file may be of it."""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple, cast

from gdiag.ingesters.reading import Ingester, Input


class Format(NamedTuple):
    """One format: importing all their modules would take as long as importing polars."""

    name: str
    """Of the module in this package."""
    marks: tuple[bytes, ...] = ()
    """Bytes of which the head of every such file holds one; empty where only the module can tell."""

    def possible(self, given: Input) -> bool:
        """Whether the module has to be asked."""
        return not self.marks or any(mark in given.head for mark in self.marks)

    def module(self) -> Ingester:
        """The module, imported on first use; tests hold each to the protocol."""
        return cast(Ingester, import_module(f"gdiag.ingesters.{self.name}"))


_BENCHMARK: Final = (
    b"algbw", b"busbw", b"nThread ", b"Avg bus", b"Out of bounds", b"ccl-tests", b'"nccl_version"', b'"out_of_place"', b"_perf",
    b"int8", b"int32", b"int64", b"half", b"float", b"double", b"f8e", b"fp8", b"char", b"NCCL INFO", b"NCCL WARN", b"failure ",
)  # fmt: skip
"""Headers, facts, for output cut from its middle the types of data in its rows, and what precedes a failure."""

FORMATS: Final = (
    Format("wandb_binary", (b":W&B",)),
    Format("wandb_chart", (b"__MIN", b"__MAX")),
    Format("wandb_system", (b'"system.',)),
    Format("tfevents", (b"\0",)),
    Format("columnar_files", (b"PAR1", b"ARROW1")),
    Format("sqlite", (b"SQLite format 3",)),
    Format("single_metric"),
    Format("settings"),
    Format("nccl_tests", _BENCHMARK),
    Format("collective_timings", (b"coll_perf", b"collective_seq_id")),
    Format("trainer_state", (b'"log_history"',)),
    Format("megatron_golden", (b'"start_step"', b'"values"')),
    Format("sacred", (b'"steps"',)),
    Format("amd_smi", (b'"card', b"(Sensor ", b"gfx_", b"socket_power", b"hotspot")),
    Format("bandwidth_baseline", (b"gdiag_baseline",)),
    Format("json_whole", (b"{", b"[")),
    Format("jsonl", (b"{",)),
    Format("csv"),
    Format("megatron"),
    Format("torchtitan"),
    Format("modded_nanogpt"),
    Format("llmc"),
    Format("litgpt"),
    Format("step_bars"),
    Format("maxtext"),
    Format("verl"),
    Format("nanogpt"),
    Format("blocks"),
    Format("fairseq"),
    Format("openmmlab"),
    Format("espnet"),
    Format("mllog"),
    Format("dllogger", (b"DLLL {",)),
    Format("hf_console"),
    Format("avalanche"),
    Format("openai_logger"),
    Format("step_pairs"),
    Format("deepspeed"),
    Format(
        "progress_bars", (b"Progress on:", b"it/s", b"s/it", b"it]", b"ETA: ", b"s/step", b"s/sample", b"s - loss: ")
    ),
    Format("nvidia_smi"),
    Format("nvlink", (b"GPU0", b"Link ", b"(UUID: ", b"NVLink", b"Nvlink")),
    Format("nvidia_smi_text"),
    Format("nvidia_smi_xml", (b"<nvidia_smi_log",)),
    Format("dmon"),
    Format("dcgm"),
    Format("kernel_log"),
    Format("port_counters"),
    Format("transceivers", (b"Identifier", b"identifier")),
    Format("fabric_topology", (b"CA ", b"SW ", b"Switch")),
    Format("switch_state", (b"PSID", b"PSU")),
    Format("network_screens"),
)
"""The surest wins, the earlier one on a tie."""

GUESSES: Final = (
    Format("aligned"),
    Format("layer_lines"),
    Format("epoch_blocks"),
    Format("leading_steps"),
    Format("console_generic"),
    Format("job_log"),
)
"""Formats that have to look at every line to tell: asked only where no other is half sure."""
