"""gdiag reads the logs of a training run after the fact and says what went wrong, where, why and what to do."""

__version__ = "0.1.0"
