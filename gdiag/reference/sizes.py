"""Message sizes in words."""

from __future__ import annotations


def size_text(size: float) -> str:
    """A message size in binary units: 64 MiB."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):g} {unit}"
    return f"{size:g} B"
