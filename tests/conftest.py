from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no fault of the code: time is judged by benchmarks, not by properties.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files instead of comparing")
