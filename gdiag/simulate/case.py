"""One labelled run: its log files and its truth, in memory or on disk."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gdiag.errors import UsageError
from gdiag.simulate.faults import fault
from gdiag.simulate.faults.fault import Fault
from gdiag.simulate.forces import Forces, Group
from gdiag.simulate.ports import perfquery
from gdiag.simulate.rows import rows
from gdiag.simulate.styles import Style, style
from gdiag.simulate.telemetry import smi_csv
from gdiag.simulate.training import Setup, model
from gdiag.simulate.trajectory import Trajectory, run
from gdiag.simulate.truth import Event, Truth

_HABITS: tuple[tuple[Group, float], ...] = (
    ("grad", 0.92), ("lr", 0.92), ("time", 0.8), ("tokens", 0.3), ("layers", 0.25), ("params", 0.3), ("ids", 0.25),
    ("entropy", 0.2), ("eval", 0.4), ("attention", 0.1), ("scale", 0.1), ("parts", 0.25),
)  # fmt: skip
"""Group of columns → share of runs that log it without need."""


@dataclass(frozen=True, slots=True)
class Case:
    """File name → content, and what is wrong."""

    files: dict[str, bytes]
    truth: Truth


def simulate(name: str, setup: Setup, *, gz: bool = False) -> Case:
    """The logs of one run with the fault `name`; the same arguments give the same bytes.

    Raises:
        UsageError: an unknown fault or style, too short a run, or a style that cannot log what the fault needs.
    """
    kind, written = fault(name), style(setup.style)
    _check(kind, written, setup)
    made = model(setup)
    forces = Forces(setup, made, np.random.default_rng([setup.seed, 1, zlib.crc32(name.encode())]))
    _habits(forces, kind, written)
    events = kind.apply(forces)
    trajectory = run(forces)
    found = list(rows(trajectory))
    if kind.rewrite is not None:
        found = kind.rewrite(forces, found)
    content = written.text(trajectory, found).encode()
    if kind.damage is not None:
        content = kind.damage(forces, content)
    files = {written.file: content}
    if forces.config:
        settings = {"learning_rate": f"{forces.model.peak:.6g}", "max_steps": setup.steps, **forces.config}
        files["config.yaml"] = "".join(f"{key}: {value}\n" for key, value in settings.items()).encode()
    if forces.farm is not None:
        files["nvidia-smi.csv"] = smi_csv(forces.farm).encode()
    if forces.port_errors is not None:
        files["perfquery.txt"] = perfquery(trajectory.times.end, forces.port_errors).encode()
    if gz:
        files = {f"{file}.gz": gzip.compress(content, mtime=0) for file, content in files.items()}
    truth = Truth(
        fault=name,
        seed=setup.seed,
        noise=setup.noise,
        style=setup.style,
        every=setup.every,
        steps=setup.steps,
        healthy=kind.healthy,
        note=kind.note or kind.summary,
        events=tuple(
            replace(event, strength=_strength(trajectory, event) if kind.sudden else None) for event in events
        ),
        tolerated=kind.tolerated,
    )
    return Case(files, truth)


def write(case: Case, folder: Path) -> None:
    """Write a case's files and its truth.json into `folder`, made if absent.

    Raises:
        UsageError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in case.files.items():
            (folder / name).write_bytes(content)
        (folder / "truth.json").write_text(json.dumps(case.truth.json(), indent=1) + "\n")
    except OSError as error:
        raise UsageError(f"cannot write into {folder}: {error.strerror}") from error


def _check(kind: Fault, written: Style, setup: Setup) -> None:
    lacking = sorted(kind.needs - written.carries)
    if lacking:
        raise UsageError(f"style {written.name!r} cannot log what {kind.name} needs: {', '.join(lacking)}")
    if setup.steps < 100 or setup.every < 1 or setup.steps // setup.every < 20:
        raise UsageError(
            f"{setup.steps} steps logged every {setup.every}: at least 100 steps and 20 logged rows are needed"
        )
    if setup.amplitude is not None and not (0 < setup.amplitude < math.inf):
        raise UsageError(f"amplitude {setup.amplitude} nat: it must be above 0")


def _habits(forces: Forces, kind: Fault, written: Style) -> None:
    """What this seed's team logs beside what the fault needs."""
    rng = np.random.default_rng([forces.setup.seed, 606])
    habits = {group for group, share in _HABITS if rng.random() < share}
    forces.log = (habits | set(kind.needs)) & set(written.carries)
    forces.averaged = written.averaged and forces.setup.every > 1
    forces.stale = bool(rng.random() < 0.3)
    sparse = int(rng.choice([1, 5, 10]))
    forces.layer_every = 1 if "layers" in kind.needs or kind.name == "frozen-layer" else sparse


def _strength(trajectory: Trajectory, event: Event) -> float | None:
    """How much of an event the logged losses hold: root of the sum of squared excesses over the noise."""
    if event.benign:
        return None
    forces, every = trajectory.forces, trajectory.forces.setup.every
    excess, sigma = trajectory.curve.extra, trajectory.curve.sigma
    if forces.averaged:
        excess = np.convolve(excess, np.full(every, 1 / every))[: forces.n]
        sigma = sigma / math.sqrt(every)
    logged = (forces.step - forces.model.first_step) % every == 0
    # One row cannot be told from a hard batch however far out it lies: each counts up to eight standard deviations.
    share = np.clip(
        np.abs(excess[logged & (forces.step >= event.onset)]) / sigma[logged & (forces.step >= event.onset)], 0.0, 8.0
    )
    return round(float(np.sqrt((share**2).sum())), 2)
