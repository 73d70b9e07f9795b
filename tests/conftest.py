"""Settings every test shares: hypothesis profiles and the marker of GPU tests."""

import gc
import os
from pathlib import Path

import pytest
import wengert as wg
from hypothesis import HealthCheck, settings

# "ci" draws the same examples every time, so no failure is a matter of luck; "search" looks for new ones, as
# many as WENGERT_EXAMPLES says.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=25,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "search", deadline=None, max_examples=int(os.environ.get("WENGERT_EXAMPLES", "1000")), print_blob=True
)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.load_profile(PROFILE)

# Compiled GPU kernels stay out of the user's folder of caches.
os.environ.setdefault("WENGERT_CACHE_DIR", "")

HERE = Path(__file__).parent

#: Where the random numbers of tests start.
SEED = 0x5EED
wg.manual_seed(SEED)


@pytest.fixture(autouse=True)
def _numbers() -> None:
    """Every test draws the same random numbers, whichever ran before it."""
    wg.manual_seed(SEED)


# Modules whose assertions stand for those of many tests: let them show both sides.
pytest.register_assert_rewrite("references.complex_reference", "messages")


NO_ADAPTER = "no GPU adapter: neither Vulkan, Metal nor DirectX 12 answers (WENGERT_GPU demands one)"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything under tests/shaders and in files named test_gpu*.py as `gpu`, under tests/distributed as
    `ranks`."""
    for item in items:
        place = Path(item.path).relative_to(HERE) if item.path.is_relative_to(HERE) else item.path
        if place.parts[0] == "shaders" or place.name.startswith("test_gpu"):
            item.add_marker(pytest.mark.gpu)
        if place.parts[0] == "distributed":
            item.add_marker(pytest.mark.ranks)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Collections of garbage do not look at the tests themselves, which are more than all that they make."""
    gc.collect()
    gc.freeze()


def pytest_report_header() -> str:
    """What the numbers of this run depend on."""
    count = settings().max_examples
    return f"hypothesis profile: {PROFILE}, {count} examples; threads of wengert: {wg.get_num_threads()}"


def pytest_report_collectionfinish(items: list[pytest.Item]) -> list[str]:
    """The adapters that the selected GPU tests use; a run without such tests asks no driver."""
    if not any(item.get_closest_marker("gpu") for item in items):
        return []
    return [f"GPU adapter: {adapter}" for adapter in wg.gpu.adapters()] or ["GPU adapter: none"]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Skip the GPU tests that were selected where our own host finds no adapter,
    unless WENGERT_GPU demands them.
    """
    selected = [item for item in session.items if item.get_closest_marker("gpu")]
    if selected and not os.environ.get("WENGERT_GPU") and not wg.gpu.adapters():
        for item in selected:
            item.add_marker(pytest.mark.skip(reason=NO_ADAPTER))
