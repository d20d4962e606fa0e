"""Slopes and trends of short series that are robust to outliers."""

from __future__ import annotations

import numpy as np

from gdiag.measures.curves import Floats


def theil_sen(y: Floats) -> float:
    """Median slope over all pairs of an evenly spaced series (m ≤ a few hundred)."""
    i, j = np.triu_indices(len(y), 1)
    return float(np.median((y[j] - y[i]) / (j - i))) if len(i) else 0.0


def mann_kendall(y: Floats) -> float:
    """Mann-Kendall z of a series, its variance raised for lag-1 correlation of the detrended values."""
    n = len(y)
    i, j = np.triu_indices(n, 1)
    s = float(np.sum(np.sign(y[j] - y[i])))
    rest = y - theil_sen(y) * np.arange(n)
    spread = np.std(rest)
    r = float(np.clip(np.corrcoef(rest[:-1], rest[1:])[0, 1], 0.0, 0.9)) if n > 4 and spread > 1e-12 else 0.0
    variance = n * (n - 1) * (2 * n + 5) / 18 * (1 + r) / (1 - r)
    return float((s - np.sign(s)) / np.sqrt(variance))
