"""Probabilities too small for their own numbers."""

from __future__ import annotations

from math import lgamma

import numpy as np


def log10_tail(n: int, k: int, p: float) -> float:
    """log10 of P(X ≥ k) for X binomial, by its largest term (k above the mean)."""
    if k <= n * p:
        return 0.0
    log_term = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * np.log(p) + (n - k) * np.log1p(-p)
    ratio = (n - k) / (k + 1) * p / (1 - p)
    return float((log_term - np.log1p(-min(ratio, 0.99))) / np.log(10))
