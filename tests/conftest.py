"""Settings every test shares: hypothesis profiles and the marker of GPU tests."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# "ci" draws the same examples every time, so no failure is a matter of luck; "search" looks for new ones.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=25,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("search", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

HERE = Path(__file__).parent

# Modules whose assertions stand for those of many tests: let them show both sides.
pytest.register_assert_rewrite("complex_reference", "messages")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything under tests/shaders and in tests/test_gpu*.py as `gpu`."""
    for item in items:
        place = Path(item.path).relative_to(HERE) if item.path.is_relative_to(HERE) else item.path
        if place.parts[0] == "shaders" or place.name.startswith("test_gpu"):
            item.add_marker(pytest.mark.gpu)
