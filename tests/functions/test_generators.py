"""Streams of random numbers: generators, the functions that draw from them, and what they draw."""

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from scipy import stats
from wengert import nn
from wengert.utils.checkpoint import checkpoint

Draw = Callable[..., wg.Tensor]

DRAWS: dict[str, Draw] = {
    "rand": lambda g: wg.rand(5, generator=g),
    "rand_like": lambda g: wg.rand_like(wg.zeros(5), generator=g),
    "randn": lambda g: wg.randn(5, generator=g),
    "randn_like": lambda g: wg.randn_like(wg.zeros(5), generator=g),
    "randint": lambda g: wg.randint(1000, (5,), generator=g),
    "randint_like": lambda g: wg.randint_like(wg.zeros(5), 1000, generator=g),
    "randperm": lambda g: wg.randperm(20, generator=g),
    "normal": lambda g: wg.normal(0.0, 1.0, (5,), generator=g),
    "bernoulli": lambda g: wg.bernoulli(wg.full((30,), 0.5), generator=g),
    "multinomial": lambda g: wg.multinomial(wg.ones(20), 10, generator=g),
    "multinomial replaced": lambda g: wg.multinomial(wg.ones(20), 10, True, generator=g),
    "uniform_": lambda g: wg.zeros(5).uniform_(generator=g),
    "normal_": lambda g: wg.zeros(5).normal_(generator=g),
    "log_normal_": lambda g: wg.zeros(5).log_normal_(generator=g),
    "exponential_": lambda g: wg.zeros(5).exponential_(generator=g),
    "geometric_": lambda g: wg.zeros(30).geometric_(0.3, generator=g),
    "cauchy_": lambda g: wg.zeros(5).cauchy_(generator=g),
    "bernoulli_": lambda g: wg.zeros(30).bernoulli_(generator=g),
    "random_": lambda g: wg.zeros(5).random_(generator=g),
    "init.uniform_": lambda g: nn.init.uniform_(wg.zeros(5), generator=g),
    "init.normal_": lambda g: nn.init.normal_(wg.zeros(5), generator=g),
    "init.trunc_normal_": lambda g: nn.init.trunc_normal_(wg.zeros(5), generator=g),
    "init.trunc_normal_ tail": lambda g: nn.init.trunc_normal_(wg.zeros(5), a=3.0, b=9.0, generator=g),
    "init.xavier_uniform_": lambda g: nn.init.xavier_uniform_(wg.zeros(3, 3), generator=g),
    "init.xavier_normal_": lambda g: nn.init.xavier_normal_(wg.zeros(3, 3), generator=g),
    "init.kaiming_uniform_": lambda g: nn.init.kaiming_uniform_(wg.zeros(3, 3), generator=g),
    "init.kaiming_normal_": lambda g: nn.init.kaiming_normal_(wg.zeros(3, 3), generator=g),
    "init.orthogonal_": lambda g: nn.init.orthogonal_(wg.zeros(3, 3), generator=g),
    "init.sparse_": lambda g: nn.init.sparse_(wg.zeros(9, 3), 0.5, generator=g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_is_a_stream_of_its_own(name: str) -> None:
    draw = DRAWS[name]
    wg.manual_seed(7)
    expected, further = draw(None), draw(None)
    default = wg.get_rng_state()
    generator = wg.Generator().manual_seed(7)
    assert wg.equal(draw(generator), expected)
    assert wg.equal(draw(generator), further)
    assert generator.get_state() == default
    assert wg.get_rng_state() == default
    assert not wg.equal(expected, further)


@pytest.mark.parametrize("name", DRAWS)
def test_what_is_no_generator_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=r"generator: a wengert.Generator expected, got int"):
        DRAWS[name](3)


def test_states() -> None:
    generator = wg.Generator()
    assert generator.initial_seed() == wg.Generator("cpu").initial_seed()
    assert str(generator.device) == "cpu"
    state = generator.manual_seed(-1).get_state()
    assert state == (2**64 - 1, 0)
    first = wg.rand(3, generator=generator)
    twin = generator.clone_state()
    again = pickle.loads(pickle.dumps(generator))
    third = copy.deepcopy(generator)
    second = wg.rand(3, generator=generator)
    for other in (twin, again, third):
        assert wg.equal(wg.rand(3, generator=other), second)
    assert generator.set_state(state) is generator
    assert wg.equal(wg.rand(3, generator=generator), first)
    assert generator.seed() == generator.initial_seed()
    assert repr(generator).startswith("Generator(seed=")
    with pytest.raises(TypeError, match=r"Generator.set_state: what get_state returned expected, got 3"):
        generator.set_state(3)
    with pytest.raises(ValueError, match=r"Generator.manual_seed: a seed from -2\^63 to 2\^64 - 1 expected"):
        generator.manual_seed(2**64)


def test_the_default_stream_is_a_generator() -> None:
    default = wg.manual_seed(3)
    first = wg.rand(2)
    assert default.initial_seed() == 3
    assert default.get_state() == wg.get_rng_state()
    default.manual_seed(3)
    assert wg.equal(wg.rand(2, generator=default), first)


def test_threads_share_a_generator_without_drawing_twice() -> None:
    generator = wg.Generator()
    found: list[float] = []

    def work() -> None:
        for _ in range(50):
            found.extend(wg.rand(4, dtype=wg.float64, generator=generator).tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == len(found) == 800


def test_a_checkpoint_cannot_repeat_a_generator() -> None:
    generator = wg.Generator()
    x = wg.ones(3, requires_grad=True)
    y = checkpoint(lambda x: x * wg.rand(3, generator=generator), x, use_reentrant=False)
    with pytest.raises(RuntimeError, match=r"generator: a checkpoint runs its function again"):
        y.sum().backward()


def test_batches_draw_their_own() -> None:
    draw = wg.vmap(
        lambda x: x + wg.rand(2, generator=generator), in_dims=0, out_dims=0, randomness="different"
    )
    generator = wg.Generator().manual_seed(0)
    own = draw(wg.zeros(3, 2))
    assert len(np.unique(own.numpy())) == 6


def sample(fill: Callable[[wg.Tensor], Any], dtype: Any = wg.float64) -> np.ndarray[Any, Any]:
    x = wg.zeros(20_000, dtype=dtype)
    assert fill(x) is x
    return x.numpy()


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        (lambda g, x: x.exponential_(2.0, generator=g), stats.expon(scale=0.5)),
        (lambda g, x: x.cauchy_(1.0, 3.0, generator=g), stats.cauchy(1.0, 3.0)),
        (lambda g, x: x.log_normal_(0.5, 0.25, generator=g), stats.lognorm(0.25, scale=np.exp(0.5))),
        (lambda g, x: x.normal_(-1.0, 2.0, generator=g), stats.norm(-1.0, 2.0)),
        (lambda g, x: x.uniform_(-1.0, 2.0, generator=g), stats.uniform(-1.0, 3.0)),
    ],
)
def test_fills_follow_their_distribution(fill: Any, expected: Any) -> None:
    generator = wg.Generator().manual_seed(1)
    assert stats.kstest(sample(lambda x: fill(generator, x)), expected.cdf).pvalue > 0.01


@pytest.mark.parametrize("p", [0.02, 0.3, 0.95])
def test_geometric(p: float) -> None:
    generator = wg.Generator().manual_seed(2)
    found = sample(lambda x: x.geometric_(p, generator=generator))
    top = int(found.max()) + 1
    counts = np.bincount(found.astype(int), minlength=top + 1)[1:]
    expected = stats.geom(p).pmf(np.arange(1, len(counts) + 1)) * len(found)
    wide = expected >= 5
    merged = (np.append(a[wide], a[~wide].sum()) for a in (counts, expected))
    counts, expected = merged
    expected[-1] += len(found) - expected.sum()
    assert stats.chisquare(counts, expected).pvalue > 0.01
    assert sample(lambda x: x.geometric_(p), wg.int32).min() >= 1


def test_random_fills_with_what_the_dtype_holds() -> None:
    generator = wg.Generator().manual_seed(3)
    for dtype, most in ((wg.float32, 2**24), (wg.float16, 2**11), (wg.bfloat16, 2**8), (wg.uint8, 255)):
        found = wg.zeros(5_000, dtype=dtype).random_(generator=generator).double()
        assert 0 <= float(found.min()) < 0.01 * most
        assert 0.99 * most < float(found.max()) <= most
    found = wg.zeros(1_000, dtype=wg.int64).random_(generator=generator)
    assert int(found.min()) >= 0
    assert int(found.max()) > 2**61
    assert set(wg.zeros(100).random_(2, generator=generator).tolist()) == {0.0, 1.0}
    assert set(wg.zeros(100).random_(-1, 1, generator=generator).tolist()) == {-1.0, 0.0}
    assert set(wg.zeros(100, dtype=wg.bool).random_(generator=generator).tolist()) == {False, True}


def test_bernoulli_takes_probabilities_of_its_own() -> None:
    p = wg.tensor([0.0, 1.0])
    assert wg.zeros(100, 2).bernoulli_(p).mean(0).tolist() == [0.0, 1.0]
    assert wg.zeros(3, dtype=wg.int64).bernoulli_(wg.tensor(1.0)).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match=r"bernoulli: probabilities between 0 and 1 expected, got 1.5"):
        wg.zeros(2).bernoulli_(p + 0.5)


def test_complex_numbers() -> None:
    generator = wg.Generator().manual_seed(4)
    z = wg.randn(20_000, dtype=wg.complex128, generator=generator).numpy()
    assert stats.kstest(z.real * np.sqrt(2.0), stats.norm().cdf).pvalue > 0.01
    assert stats.kstest(z.imag * np.sqrt(2.0), stats.norm().cdf).pvalue > 0.01
    assert abs(np.mean(z.real * z.imag)) < 0.01
    u = wg.rand(1_000, dtype=wg.complex64, generator=generator)
    assert u.dtype == wg.complex64
    assert float(u.real.min()) >= 0.0
    assert float(u.imag.max()) < 1.0
    assert wg.randn_like(u).dtype == wg.complex64


def test_integers_can_be_leaves_of_floats() -> None:
    assert wg.randint(3, (2,), dtype=wg.float32, requires_grad=True).requires_grad
    assert wg.randint_like(wg.zeros(2), 3, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError):
        wg.randint(3, (2,), requires_grad=True)


@pytest.mark.parametrize(
    ("fill", "text"),
    [
        (lambda x: x.exponential_(0.0), "exponential_: a positive rate expected, got 0"),
        (lambda x: x.cauchy_(0.0, -1.0), "cauchy_: a positive sigma expected, got -1"),
        (lambda x: x.geometric_(1.0), "geometric_: p lies between 0 and 1, got 1"),
        (lambda x: x.log_normal_(0.0, 0.0), "log_normal_: a positive standard deviation expected, got 0"),
        (lambda x: x.random_(3, 3), "low must be below high, got 3 and 3"),
    ],
)
def test_settings_out_of_range(fill: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        fill(wg.zeros(2))


@pytest.mark.parametrize("name", ["zero", "fill", "copy", "normal", "uniform", "exponential", "random"])
def test_a_leaf_that_is_written_is_told_what_to_do(name: str) -> None:
    x = wg.ones(2, requires_grad=True)
    arguments = {"fill": (1.0,), "copy": (x.detach(),)}.get(name, ())
    with pytest.raises(RuntimeError, match=rf"{name}_: a leaf .* under no_grad\(\), or write to a clone\(\)"):
        getattr(x, f"{name}_")(*arguments)
    with pytest.raises(RuntimeError, match=r"x\[...\] = value: a leaf"):
        x[0] = 2.0


@pytest.mark.parametrize("name", ["log_normal", "exponential", "cauchy"])
def test_numbers_with_fractions_need_room_for_them(name: str) -> None:
    for dtype in (wg.int32, wg.bool, wg.complex64):
        with pytest.raises(TypeError, match=rf"{name}_: a floating point tensor expected, got {dtype.name}"):
            getattr(wg.zeros(3, dtype=dtype), f"{name}_")()
    with pytest.raises(TypeError, match="randint: a dtype of real numbers expected, got complex64"):
        wg.randint(3, (2,), dtype=wg.complex64)
