"""What the user can correct: caught once, in cli, and shown as one sentence with exit code 2."""

from __future__ import annotations


class GdiagError(Exception):
    """One clear sentence: what is wrong, where, and what is allowed."""


class InputError(GdiagError):
    """A file that cannot be used: absent, unreadable, or of a kind that holds no series."""


class UsageError(GdiagError):
    """A call or a configuration that cannot be used: an unknown code, threshold, column or key."""
