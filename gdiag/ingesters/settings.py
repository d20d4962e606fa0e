"""Files of settings beside a run (config.yaml, hparams.yaml, args.json), Sacred's record and wandb's summary: evidence, no series."""

from __future__ import annotations

import json
import re
from pathlib import PurePath
from typing import Any, Final

from gdiag.errors import InputError
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.ingesters.run_config import canonical_config
from gdiag.ingesters.values import escape
from gdiag.model import Exit, Source

FORMAT = "settings"
_KEY: Final = re.compile(r"^(\s*)([\w.\-/]+|\"[^\"]+\"|'[^']+'):(?:\s+(.*?))?\s*$")
_NAMES: Final = re.compile(
    r"^(?:.*[-_.])?(?:config|hparams|args|params|settings|arguments|hydra|summary)\b", re.IGNORECASE
)
_ENDS: Final[dict[int, Exit]] = {3: "clean", 4: "abnormal", 5: "abnormal"}
"""Status in an MLflow run's meta.yaml: finished, failed, killed (mlflow/entities/run_status.py)."""
_SACRED: Final[dict[str, Exit]] = {
    "COMPLETED": "clean", "FAILED": "abnormal", "INTERRUPTED": "abnormal", "TIMEOUT": "abnormal",
}  # fmt: skip
"""Status in the run.json of a Sacred run (sacred/run.py, sacred/observers)."""
_OF_SACRED: Final = (b'"heartbeat"', b'"start_time"', b'"status"', b'"experiment"')
_DEPTH: Final = 12
_VALUE: Final = 6000
"""Longest value of a parameter that MLflow keeps, bytes."""


def recognise(given: Input) -> float:
    """Mostly `key: value` lines in a file that calls itself settings, or wandb's summary."""
    name = PurePath(given.path).name
    if _mlflow(given):
        return 0.98
    head = given.head.lstrip()
    if head[:1] == b"{":
        if all(word in head for word in _OF_SACRED):
            return 0.98
        summary = name.endswith("wandb-summary.json") or b'"_wandb"' in head[-4096:]
        if _named(name) and _is_object(given):
            return 0.98 if _mostly_scalars(head) else 0.8
        return 0.8 if summary and b"\n{" not in head else 0.0
    if not (_named(name) or name.endswith((".yaml", ".yml"))):
        return 0.0
    lines = [
        line
        for line in given.head.decode("utf-8", "replace").splitlines()[:200]
        if line.strip() and line.strip()[0] not in "#-"
    ]
    keys = sum(_KEY.match(line) is not None for line in lines)
    return 0.8 if lines and keys >= 0.6 * len(lines) else 0.0


def read(given: Input, options: Options) -> Reading:  # noqa: ARG001 (the protocol's signature)
    """No rows: the settings that diagnosis can use.

    Raises:
        InputError: no settings in it.
    """
    text = given.data().decode("utf-8", errors="replace")
    if _mlflow(given):
        config = canonical_config({PurePath(given.path).name: _scalar(text)})
        said = f"a setting of an MLflow run ({'used' if config else 'not used'}), no series"
        return Reading(Source(given.path, FORMAT, 0, notes=(said,)), config=config)
    if text.lstrip()[:1] == "{":
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{given.path} is a damaged JSON document ({error})") from error
    else:
        document = parse_yaml(text)
    if not isinstance(document, dict):
        raise InputError(f"{given.path} holds no settings")
    if {"heartbeat", "start_time", "status", "experiment"} <= document.keys():
        return _of_sacred(given.path, document)
    summary = "_wandb" in document and not any(isinstance(v, dict) and "value" in v for v in document.values())
    summary = summary or given.path.endswith("summary.json")
    config = {} if summary else canonical_config(document)
    what = "last values of a run, no series" if summary else f"settings of a run ({len(config)} used), no series"
    source = Source(given.path, "wandb-summary" if summary else FORMAT, 0, notes=(what,))
    if not {"run_id", "artifact_uri", "status"} <= document.keys():
        return Reading(source, config=config)
    name, ended = document.get("run_name"), document["status"]
    known = _ENDS.get(ended, "unknown") if isinstance(ended, int) else "unknown"
    return Reading(source, config=config, exit=known, run_name=str(name) if name else None)


def _of_sacred(path: str, document: dict[str, Any]) -> Reading:
    """How a run that Sacred recorded ended, and of one that failed the last line of its traceback."""
    status, trace = str(document["status"]), document.get("fail_trace")
    last = str(trace[-1]).strip() if isinstance(trace, list) and trace else ""
    said = f"record of a Sacred run ({escape(status, 20)}{': ' + escape(last, 120) if last else ''}), no series"
    return Reading(Source(path, FORMAT, 0, notes=(said,)), exit=_SACRED.get(status, "unknown"))


def parse_yaml(text: str) -> dict[str, object]:
    """Scalars of a YAML file by indentation; lists and block texts are left out.

    Enough for settings that programs wrote; anchors, tags and flow mappings are taken as text.
    """
    root: dict[str, object] = {}
    stack: list[tuple[int, dict[str, object]]] = [(-1, root)]
    for line in text.splitlines():
        matched = _KEY.match(line)
        if matched is None or line.lstrip().startswith(("#", "-")):
            continue
        indent, key, value = len(matched.group(1)), matched.group(2).strip("\"'"), matched.group(3)
        while len(stack) > 1 and stack[-1][0] >= indent:
            stack.pop()
        parent = stack[-1][1]
        if value is None or value == "":
            if len(stack) < _DEPTH:
                inner: dict[str, object] = {}
                parent[key] = inner
                stack.append((indent, inner))
        else:
            parent[key] = _scalar(value)
    return root


def _scalar(text: str) -> object:
    text = re.sub(r"\s+#.*$", "", text).strip()
    lower = text.lower()
    if lower in ("true", "yes"):
        return True
    if lower in ("false", "no"):
        return False
    if lower in ("null", "~", "none", ""):
        return None
    if re.fullmatch(r"\[[-\d.,\s e]+\]", text):
        return [float(part) for part in re.findall(r"[-\d.e]+", text)]
    try:
        return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
    except ValueError:
        return text.strip("\"'")


def _mlflow(given: Input) -> bool:
    """A file of MLflow's store that holds one value and is named for it: params/learning_rate beside meta.yaml."""
    if PurePath(given.path).parent.name not in ("params", "tags") or len(given.head) > _VALUE or given.file is None:
        return False
    return b"\n" not in given.head.strip() and (given.file.parent.parent / "meta.yaml").is_file()


def _mostly_scalars(content: bytes) -> bool:
    """Whether fewer than half of an object's values are lists: settings hold lists, logs are made of them."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return False
    lists = sum(isinstance(value, list) for value in document.values()) if isinstance(document, dict) else 0
    return isinstance(document, dict) and 2 * lists < len(document)


def _named(name: str) -> bool:
    return _NAMES.match(name) is not None


def _is_object(given: Input) -> bool:
    """One JSON object, not one a line."""
    return given.content is not None or (
        len(given.head) < 60000 and given.head.rstrip().endswith(b"}") and b"}\n{" not in given.head
    )
