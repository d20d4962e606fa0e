"""Metrics that follow from others: accuracies in percent."""

from __future__ import annotations

from pathlib import Path

import pytest

import gdiag


def written(folder: Path, values: list[float]) -> gdiag.Records:
    path = folder / "log.csv"
    rows = "".join(f"{i},{2 - i / 100},{value}\n" for i, value in enumerate(values))
    path.write_text(f"step,loss,train_acc\n{rows}", encoding="utf-8")
    return gdiag.load([path])


def test_an_accuracy_is_a_share(tmp_path: Path) -> None:
    read = written(tmp_path, [0.1, 0.5, 1.0, 0.0] * 5)
    assert read.steps["accuracy"].to_list()[:4] == [0.1, 0.5, 1.0, 0.0]
    assert read.sources[0].columns["accuracy"] == "train_acc"
    assert not any("percent" in note for note in read.sources[0].notes)


def test_percent_are_divided(tmp_path: Path) -> None:
    read = written(tmp_path, [10.0, 50.0, 100.0, 0.5] * 5)
    assert read.steps["accuracy"].to_list()[:4] == pytest.approx([0.1, 0.5, 1.0, 0.005])
    assert "train_acc is in percent" in read.sources[0].notes


@pytest.mark.parametrize("odd", [-0.5, 250.0])
def test_what_is_neither_is_no_accuracy(tmp_path: Path, odd: float) -> None:
    read = written(tmp_path, [0.1, 0.2, odd, 0.4] * 5)
    assert "accuracy" not in read.steps.columns
    assert "accuracy" not in read.sources[0].columns
    assert any("train_acc is no accuracy" in note for note in read.sources[0].notes)


def test_a_share_of_all_in_single_precision_is_no_percent(tmp_path: Path) -> None:
    read = written(tmp_path, [0.1, 0.5, 1.0000001192092896, 0.9] * 5)
    assert read.steps["accuracy"].to_list()[:2] == [0.1, 0.5]


@pytest.mark.parametrize("odd", [-1.0, 250.0, float("inf")])
def test_single_values_that_are_no_accuracy_are_left_out_and_told(tmp_path: Path, odd: float) -> None:
    read = written(tmp_path, [odd, *[0.1, 0.5, 1.0, 0.0] * 5])
    assert read.steps["accuracy"].to_list()[:3] == [None, 0.1, 0.5]
    assert "train_acc: 1 of 21 values are no accuracy and left out" in read.sources[0].notes
