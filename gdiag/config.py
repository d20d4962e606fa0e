"""gdiag.toml or [tool.gdiag] of pyproject.toml: the settings a project keeps; unknown keys are refused.

select = ["GD1", "loss-spike"]      codes, beginnings of codes, or names
ignore = ["GD108"]
fail_on = "critical"                info, warning, critical or never
tz = "Europe/Berlin"                zone of clocks printed without one
[map]
loss = "my/metric"                  canonical column = name in the files
[thresholds.GD102]
z = 8                               as --set GD102.z=8

What the command line says goes before what the file says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gdiag.errors import UsageError
from gdiag.model import Value

FAIL_ON: Final = ("info", "warning", "critical", "never")


@dataclass(frozen=True, slots=True)
class Config:
    """What a configuration file says; empty where it says nothing."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str | None = None
    tz: str | None = None
    map: dict[str, str] = field(default_factory=dict)
    """Canonical column → name in the files."""
    thresholds: dict[str, dict[str, Value]] = field(default_factory=dict)
    """Code → threshold → value, not yet checked against the analyzers."""


def find(folder: Path) -> Config:
    """The configuration of `folder`: its gdiag.toml, else [tool.gdiag] of its pyproject.toml, else nothing.

    Raises:
        UsageError: the file cannot be read or holds an unknown key.
    """
    own, project = folder / "gdiag.toml", folder / "pyproject.toml"
    if own.is_file():
        return load(own)
    if project.is_file() and "[tool.gdiag" in _text(project):
        return load(project)
    return Config()


def load(path: Path) -> Config:
    """The configuration in `path`: a gdiag.toml, or a pyproject.toml with a table [tool.gdiag].

    Raises:
        UsageError: the file cannot be read, is no TOML, or holds an unknown key or a value of the wrong type.
    """
    import tomllib

    try:
        found: object = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: no valid TOML ({error})") from None
    except RecursionError:
        raise UsageError(f"{path}: no valid TOML (nested too deeply)") from None
    if path.name == "pyproject.toml":
        found = _table(_table(found, path, "the file").get("tool", {}), path, "tool").get("gdiag", {})
    return _parse(_table(found, path, "the file"), path)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"{path}: cannot be read ({reason})") from None


def _parse(table: dict[str, object], path: Path) -> Config:
    allowed = tuple(Config.__dataclass_fields__)
    unknown = sorted(set(table) - set(allowed))
    if unknown:
        raise UsageError(f"{path}: unknown key {unknown[0]!r}; allowed are {', '.join(allowed)}")
    fail_on = _string(table.get("fail_on"), path, "fail_on")
    if fail_on not in (None, *FAIL_ON):
        raise UsageError(f"{path}: fail_on is {fail_on!r}; allowed are {', '.join(FAIL_ON)}")
    columns = _table(table.get("map", {}), path, "map")
    thresholds = _table(table.get("thresholds", {}), path, "thresholds")
    return Config(
        select=_strings(table.get("select", []), path, "select"),
        ignore=_strings(table.get("ignore", []), path, "ignore"),
        fail_on=fail_on,
        tz=_string(table.get("tz"), path, "tz"),
        map={name: _string(column, path, f"map.{name}") or "" for name, column in columns.items()},
        thresholds={
            code: _values(_table(values, path, f"thresholds.{code}"), path, f"thresholds.{code}")
            for code, values in thresholds.items()
        },
    )


def _table(value: object, path: Path, key: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {key} must be a table")
    return value


def _strings(value: object, path: Path, key: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{path}: {key} must be a list of strings")
    return tuple(value)


def _string(value: object, path: Path, key: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{path}: {key} must be a string")
    return value


def _values(table: Mapping[str, object], path: Path, key: str) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, value in table.items():
        if not isinstance(value, float | int | str | bool):
            raise UsageError(f"{path}: {key}.{name} must be a number, a string, true or false")
        values[name] = value
    return values
