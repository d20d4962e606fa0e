from __future__ import annotations

import pytest

from gdiag.reference import gpus


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe"),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe 40GB"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA GeForce RTX 3090", "RTX 3090"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA GB200", "GB200"),
        ("Tesla V100-SXM2-32GB", "V100 SXM"),
        ("Tesla T4", "T4"),
        ("AMD Instinct MI300X OAM", "MI300X"),
        ("NVIDIA B300 SXM6 AC", "B300"),
        ("NVIDIA GB300", "GB300"),
        ("NVIDIA GeForce RTX 3080", "RTX 3080"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Server"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000"),
    ],
)
def test_names_as_printed_find_their_row(name: str, model: str) -> None:
    found = gpus.gpu(name)
    assert found is not None
    assert found.model == model


def test_an_unknown_model_has_no_limits() -> None:
    assert gpus.gpu("Some Other GPU") is None
    assert gpus.gpu(None) is None


def test_slowdown_is_below_shutdown_wherever_both_are_stated() -> None:
    for _, row in gpus._gpus():
        if row.slowdown and row.shutdown:
            assert row.slowdown < row.shutdown


def test_what_is_verified_of_a_row_is_said_in_known_words() -> None:
    words = {word for row in gpus._rows("gpus.tsv") for word in row["verified"].split()}
    assert words <= {"yes", "no", "power", "clock", "limits"}


def test_every_row_names_its_source() -> None:
    assert all(row.source for _, row in gpus._gpus())
    assert all(x.source and x.action for x in gpus.xids().values())


def test_reason_bits_are_distinct_powers_of_two() -> None:
    bits = [r.bit for r in gpus.reasons()]
    assert bits == [1 << n for n in range(9)]


@pytest.mark.parametrize(
    ("code", "hardware"),
    [(13, False), (31, False), (43, False), (48, True), (63, True), (92, True), (79, True), (74, True)],
)
def test_xids_tell_program_from_machine(code: int, hardware: bool) -> None:
    assert gpus.xids()[code].hardware is hardware


@pytest.mark.parametrize(
    ("clock", "limit", "power"),
    [(1980, 591, 700), (1980, 500, 500), (1410, 250, 250), (1410, 280, 300), (2100, 320, None)],
)
def test_a_clock_says_what_its_boards_have_at_least(clock: float, limit: float, power: float | None) -> None:
    assert gpus.least_power(clock, limit) == power
