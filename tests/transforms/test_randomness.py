"""Random numbers inside `vmap`: an error, the same for all examples, or each its own."""

from collections.abc import Callable

import numpy as np
import pytest
import wengert as wg
from wengert.nn import functional as F

X = wg.zeros(4, 3)

DRAWS: dict[str, Callable[[wg.Tensor], wg.Tensor]] = {
    "rand": lambda x: x + wg.rand(3),
    "randn": lambda x: x + wg.randn(3),
    "rand_like": lambda x: x + wg.rand_like(x),
    "randint": lambda x: x + wg.randint(0, 1 << 20, (3,)).float(),
    "randperm": lambda x: x + wg.randperm(50)[:3].float(),
    "normal": lambda x: wg.normal(x, 1.0),
    "bernoulli": lambda x: wg.bernoulli(x + 0.5).repeat(16),
    "dropout": lambda x: F.dropout(x + 1, 0.5).repeat(16) + wg.rand(48),
    "uniform_": lambda x: (x * 1).uniform_(),
    "into memory": lambda x: wg.zeros(3).uniform_() + x,
    "nested in grad": lambda x: wg.grad(lambda z: (z * wg.rand(3)).sum())(x),
}


@pytest.mark.parametrize("name", DRAWS)
def test_different_gives_each_example_its_own(name: str) -> None:
    rows = wg.vmap(DRAWS[name], randomness="different")(X).numpy()
    if name != "bernoulli":
        assert len({row.tobytes() for row in rows}) == 4


@pytest.mark.parametrize("name", DRAWS)
def test_same_gives_all_examples_the_same(name: str) -> None:
    rows = wg.vmap(DRAWS[name], randomness="same")(X).numpy()
    assert len({row.tobytes() for row in rows}) == 1


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("options", [{}, {"randomness": "error"}], ids=str)
def test_error_raises(name: str, options: dict[str, str]) -> None:
    with pytest.raises(RuntimeError, match=r"random numbers are drawn inside vmap, .* its 4 examples"):
        wg.vmap(DRAWS[name], **options)(X)


def test_numbers_of_examples_are_uniform_and_independent() -> None:
    wg.manual_seed(3)
    rows = wg.vmap(lambda x: wg.rand(2000), randomness="different")(wg.zeros(20)).numpy()
    assert rows.shape == (20, 2000)
    assert abs(rows.mean() - 0.5) < 0.01
    assert np.abs(np.corrcoef(rows) - np.eye(20)).max() < 0.12


def test_the_seed_decides() -> None:
    def draw() -> list[list[float]]:
        wg.manual_seed(7)
        return wg.vmap(lambda x: wg.rand(3), randomness="different")(X).tolist()

    assert draw() == draw()


@pytest.mark.parametrize("outer", ["same", "different"])
@pytest.mark.parametrize("inner", ["same", "different"])
def test_nested_batches_each_have_their_say(outer: str, inner: str) -> None:
    f = wg.vmap(wg.vmap(lambda x: x + wg.rand(()), randomness=inner), randomness=outer)
    out = f(wg.zeros(3, 4)).numpy()
    assert len(np.unique(out)) == (3 if outer == "different" else 1) * (4 if inner == "different" else 1)
    assert (len(np.unique(out[0])) == 4) == (inner == "different")
    assert (len(np.unique(out[:, 0])) == 3) == (outer == "different")


def test_chunks_share_the_same_numbers() -> None:
    rows = wg.vmap(lambda x: x + wg.rand(3), randomness="same", chunk_size=2)(X).numpy()
    assert len({row.tobytes() for row in rows}) == 1
    rows = wg.vmap(lambda x: x + wg.rand(3), randomness="different", chunk_size=3)(X).numpy()
    assert len({row.tobytes() for row in rows}) == 4


def test_gradients_see_the_numbers_of_their_example() -> None:
    def f(x: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
        noise = wg.rand(3)
        return (x * noise).sum(), noise

    g, noise = wg.vmap(wg.grad(f, has_aux=True), randomness="different")(X)
    assert g.tolist() == noise.tolist()
    assert len(np.unique(g.numpy())) == 12


def test_a_checkpoint_repeats_the_numbers_of_each_example() -> None:
    def f(x: wg.Tensor) -> wg.Tensor:
        return wg.utils.checkpoint.checkpoint(lambda x: (x * wg.rand(3)).exp().sum(), x, use_reentrant=False)

    wg.manual_seed(0)
    got = wg.vmap(wg.grad(f), randomness="different")(X)
    wg.manual_seed(0)
    assert got.tolist() == wg.vmap(lambda x: wg.rand(3), randomness="different")(X).tolist()


def test_jacobians_run_the_function_once() -> None:
    f = lambda x: x * wg.rand(3)
    for jacobian in (wg.jacfwd, wg.jacrev):
        wg.manual_seed(5)
        diagonal = jacobian(f)(wg.ones(3)).diagonal().tolist()
        wg.manual_seed(5)
        assert diagonal == pytest.approx(wg.rand(3).tolist())


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="randomness must be 'error', 'same' or 'different', got 'none'"):
        wg.vmap(lambda x: x, randomness="none")


@pytest.mark.parametrize("randomness", ["error", "same", "different"])
def test_a_function_with_a_batching_rule_is_told(randomness: str) -> None:
    told: list[str] = []

    class Twice(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vmap(info, in_dims, x):
            told.append(info.randomness)
            return x * 2, in_dims[0]

    assert wg.vmap(Twice.apply, randomness=randomness)(wg.ones(3, 2)).tolist() == [[2.0, 2.0]] * 3
    assert told == [randomness]
