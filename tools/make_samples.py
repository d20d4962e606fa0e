"""Writes sample_logs/ anew, the same content every time: python tools/make_samples.py [DIR]."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from gdiag.simulate.case import Case, simulate
from gdiag.simulate.noise import Noise
from gdiag.simulate.training import Setup

SAMPLES: Final[tuple[tuple[str, str, int, str, int, int, Noise, float | None, bool], ...]] = (
    # file or folder          fault                      seed style     steps every noise  nats  gz
    ("healthy.jsonl",         "healthy",                 11, "plain",     1200, 1, "real",  None, False),
    ("spike.jsonl",           "spike",                   12, "wandb",     1200, 1, "real",  1.5,  False),
    ("repeated-spikes.csv",   "repeated-spikes",         13, "csv",       2000, 1, "heavy", 1.2,  False),
    ("nan-after-rise.jsonl",  "nan-after-rise",          14, "hf",        1500, 1, "gauss", None, False),
    ("divergence.log",        "divergence",              15, "megatron",   900, 1, "gauss", None, False),
    ("lr-decayed-early.csv",  "lr-decayed-early",        36, "lightning", 1600, 1, "gauss", None, False),
    ("bad-shard.jsonl.gz",    "bad-shard",               17, "composer",  1500, 1, "real",  2.0,  True),
    ("overflow-layer.jsonl.gz", "overflow-layer",        18, "olmo",       400, 1, "gauss", None, True),
    ("dead-layer.jsonl.gz",   "dead-layer",              19, "levanter",   400, 1, "gauss", None, True),
    ("resume-optimizer.jsonl", "resume-optimizer-lost",  40, "neox",      1200, 1, "gauss", 0.8,  False),
    ("replica-divergence.jsonl.gz", "replica-divergence", 21, "plain",     600, 1, "gauss", None, True),
    ("thermal-throttling",    "thermal-throttling",      22, "plain",     1500, 1, "gauss", None, True),
)  # fmt: skip
"""What the sample logs are made of; a name without suffix is a folder of several files."""


def sample(row: tuple[str, str, int, str, int, int, Noise, float | None, bool]) -> Case:
    """The case of one sample."""
    _, fault, seed, style, steps, every, noise, amplitude, gz = row
    return simulate(fault, Setup(seed, steps, every, style, noise, amplitude), gz=gz)


def files() -> dict[str, bytes]:
    """Path inside sample_logs/ → content."""
    out: dict[str, bytes] = {}
    truths = {}
    for row in SAMPLES:
        case = sample(row)
        truths[row[0]] = case.truth.json()
        for name, content in case.files.items():
            out[row[0] if "." in row[0] else f"{row[0]}/{name}"] = content
    out["truth.json"] = (json.dumps(truths, indent=1) + "\n").encode()
    return out


def main() -> None:
    """Write every sample below the folder given, else sample_logs/."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "sample_logs"
    for name, content in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    main()
