"""The list of formats: every module is what it says, and none is passed over that would have been sure."""

from __future__ import annotations

import pytest

from gdiag.ingesters import (
    aligned,
    amd_smi,
    avalanche,
    bandwidth_baseline,
    blocks,
    collective_timings,
    columnar_files,
    console_generic,
    csv,
    dcgm,
    deepspeed,
    dllogger,
    dmon,
    epoch_blocks,
    espnet,
    fabric_topology,
    fairseq,
    hf_console,
    job_log,
    json_whole,
    jsonl,
    kernel_log,
    layer_lines,
    leading_steps,
    litgpt,
    llmc,
    maxtext,
    megatron,
    megatron_golden,
    mllog,
    modded_nanogpt,
    nanogpt,
    nccl_tests,
    network_screens,
    nvidia_smi,
    nvidia_smi_text,
    nvidia_smi_xml,
    nvlink,
    openai_logger,
    openmmlab,
    port_counters,
    progress_bars,
    sacred,
    settings,
    single_metric,
    sqlite,
    step_bars,
    step_pairs,
    switch_state,
    tfevents,
    torchtitan,
    trainer_state,
    transceivers,
    verl,
    wandb_binary,
    wandb_chart,
    wandb_system,
)  # fmt: skip
from gdiag.ingesters.formats import FORMATS, GUESSES
from gdiag.ingesters.reading import Ingester, Input
from tests.cli.running import ROOT

MODULES: tuple[Ingester, ...] = (
    aligned, amd_smi, avalanche, bandwidth_baseline, blocks, collective_timings, columnar_files, console_generic, csv, dcgm, deepspeed, dmon, epoch_blocks, espnet, fairseq,
    hf_console, job_log, json_whole, jsonl, kernel_log, layer_lines, leading_steps, litgpt, llmc, maxtext, megatron, megatron_golden,
    dllogger, mllog, modded_nanogpt, nanogpt, nccl_tests, network_screens, nvidia_smi, nvidia_smi_text, nvidia_smi_xml, nvlink,
    openai_logger, openmmlab, port_counters, progress_bars, sacred, settings, single_metric, sqlite, step_bars, step_pairs, tfevents,
    torchtitan, trainer_state, transceivers, fabric_topology, switch_state, verl, wandb_binary, wandb_chart, wandb_system,
)  # fmt: skip
"""Held to the protocol by the type checker, which cannot see through an import by name."""


def test_every_format_is_listed_once() -> None:
    listed = [known.module() for known in (*FORMATS, *GUESSES)]
    assert len(listed) == len(set(map(id, listed))) == len(MODULES)
    assert set(map(id, listed)) == set(map(id, MODULES))


def test_marks_pass_nobody_over() -> None:
    heads = [path.read_bytes()[: 1 << 16] for path in sorted((ROOT / "sample_logs").rglob("*")) if path.is_file()]
    heads += [b"PAR1....", b"ARROW1\0\0", b"SQLite format 3\0", b":W&B\0", b'{"log_history": [{}]}', b"[{}]"]
    for head in heads:
        given = Input("x", head)
        for known in (*FORMATS, *GUESSES):
            assert known.possible(given) or known.module().recognise(given) == 0.0, known.name


@pytest.mark.parametrize(
    "name", ["wandb_binary", "wandb_chart", "wandb_system", "tfevents", "columnar_files", "sqlite", "trainer_state"]
)
def test_a_format_with_marks_is_asked_where_they_are(name: str) -> None:
    known = next(known for known in FORMATS if known.name == name)
    assert all(known.possible(Input("x", b"..." + mark)) for mark in known.marks)
    assert not known.possible(Input("x", b"step,loss"))
