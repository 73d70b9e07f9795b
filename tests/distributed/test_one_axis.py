"""One axis, two meanings: a function with collectives has the same values and derivatives under `vmap`, as a
batch, and on as many ranks, as processes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import wengert as wg
from distributed import programs
from distributed.running import MESSAGES
from distributed.serving import Ranks
from hypothesis import HealthCheck, given, settings, strategies as st


@pytest.fixture(scope="module", params=[1, 2, 3, 4])
def ranks(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[int, Ranks]]:
    """So many ranks: three talk by messages alone."""
    served = Ranks(request.param, tmp_path_factory.mktemp("ranks"), MESSAGES if request.param == 3 else "1")
    yield request.param, served
    served.close()


def agree(ranks: tuple[int, Ranks], steps: list[programs.Step], seed: int, dtype: str) -> None:
    """Fails unless a program is the same function for a batch and for ranks, derivatives included."""
    count, served = ranks
    x = np.random.default_rng(seed).normal(size=(count, count, programs.WIDTH)).astype(dtype)
    found = served.ask(steps, x)
    run = programs.function(steps, "i")
    expected = {
        name: wg.vmap(derive(run), axis_name="i")(wg.tensor(x)).numpy()
        for name, derive in programs.DERIVED.items()
        if "jit" not in name
    }
    expected["jit"] = expected["grad of jit"] = expected["grad"]
    for name, (_, like) in programs.ALONE.items():
        expected[name] = expected[like] * (2 if name.startswith("backward") else 1)
    for name, batch in expected.items():
        for rank, (alone, together) in enumerate(zip(found, batch)):
            where = f"{name} of {steps}, {dtype}, rank {rank}"
            assert len(steps) > 1 or np.isfinite(together).all(), where
            if programs.is_exact(steps):
                assert np.array_equal(alone[name], together, equal_nan=True), where
            else:
                bound = 1e-3 if dtype == "float32" else 1e-9
                scale = 1 + np.abs(together).max(initial=0)
                np.testing.assert_allclose(alone[name] / scale, together / scale, atol=bound, err_msg=where)


def test_each_operation(ranks: tuple[int, Ranks]) -> None:
    """Every operation alone, and between others that are not linear."""
    for step in programs.single_steps(ranks[0]):
        agree(ranks, [step], 1, "float64")
        if step[0] not in programs.LOCAL and ranks[0] in (2, 3):
            agree(ranks, [("sin",), step, ("scaled",), step], 2, "float32")


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), seed=st.integers(0, 1 << 16), dtype=st.sampled_from(["float64", "float32"]))
def test_programs(ranks: tuple[int, Ranks], data: st.DataObject, seed: int, dtype: str) -> None:
    """Programs of several operations, with numbers that hypothesis draws."""
    agree(ranks, data.draw(programs.steps(ranks[0])), seed, dtype)
