"""Measurements of how right and how fast gdiag is; not part of the package."""
