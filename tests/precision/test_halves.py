"""Reductions of float16 and bfloat16, and what is made of them: float32 inside, one rounding at the end.

A sum of halves may be too large for them where a mean or a root of it is not. Expected values are those of
NumPy in float64, and gradients central differences of them.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert.nn import functional as F

HALVES = ["float16", "bfloat16"]
EPS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}

ROWS = np.array([[600.0, -800.0, 100.0], [-300.0, 400.0, 50.0]])
OTHER = np.array([[-500.0, 700.0, 200.0], [800.0, 300.0, -70.0]])


def length(x: np.ndarray, p: float = 2.0) -> Any:
    """The p-norm along the last axis."""
    return (np.abs(x) ** p).sum(-1) ** (1 / p)


#: What is reduced, in wengert and in NumPy; sums and products on the way are beyond 65504, results within.
REDUCED: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], Any], np.ndarray]] = {
    "mean": (lambda x: x.mean(), np.mean, np.linspace(20000.0, 24000.0, 6)),
    "mean along an axis": (lambda x: x.mean(1), lambda x: x.mean(1), np.linspace(3e4, 4e4, 8).reshape(2, 4)),
    "std": (lambda x: x.std(), lambda x: x.std(ddof=1), np.array([400.0, -300.0, 350.0, -450.0] * 2)),
    "std along an axis": (lambda x: x.std(-1), lambda x: x.std(-1, ddof=1), ROWS),
    "var": (
        lambda x: x.var(correction=0) / 4,
        lambda x: x.var() / 4,
        np.array([100.0, 350.0, 500.0, 600.0, 400.0]),
    ),
    "std_mean": (lambda x: x.std_mean()[0], lambda x: x.std(ddof=1), np.array([500.0, -300.0, 350.0])),
    "norm": (lambda x: x.norm(), np.linalg.norm, np.array([300.0, 200.0, -100.0])),
    "norm of order 3": (lambda x: x.norm(3), lambda x: length(x, 3), np.array([300.0, 200.0, -100.0])),
    "vector_norm": (lambda x: wg.linalg.vector_norm(x, dim=-1), length, ROWS),
    "matrix_norm": (wg.linalg.matrix_norm, np.linalg.norm, ROWS),
    "prod": (lambda x: x.prod(), np.prod, np.array([300.0, 400.0, 0.01, 0.5])),
    "logsumexp": (
        lambda x: x.logsumexp(0),
        lambda x: np.log(np.exp(x - 100).sum()) + 100,
        np.array([100.0, 101.0, 99.0]),
    ),
    "normalize": (
        lambda x: F.normalize(x),
        lambda x: x / length(x)[:, None],
        ROWS,
    ),
    "cosine_similarity": (
        lambda x: F.cosine_similarity(x, like(OTHER, x)),
        lambda x: (x * OTHER).sum(-1) / length(x) / length(OTHER),
        ROWS,
    ),
    "pairwise_distance": (
        lambda x: F.pairwise_distance(x, like(OTHER, x)),
        lambda x: length(x - OTHER + 1e-6),
        ROWS,
    ),
    "cdist": (
        lambda x: F.cdist(x, like(OTHER, x)),
        lambda x: length(x[:, None] - OTHER[None]),
        ROWS,
    ),
    "dist": (lambda x: x.dist(like(OTHER, x)), lambda x: np.linalg.norm(x - OTHER), ROWS),
    "nanmean": (lambda x: x.nanmean(), np.mean, np.linspace(20000.0, 24000.0, 6)),
    "corrcoef": (lambda x: x.corrcoef()[0, 1], lambda x: np.corrcoef(x)[0, 1], ROWS),
    "mse_loss": (
        lambda x: F.mse_loss(x, wg.zeros_like(x)),
        lambda x: np.square(x).mean(),
        ROWS / 2,
    ),
    "l1_loss": (lambda x: F.l1_loss(x, -x), lambda x: np.abs(2 * x).mean(), np.linspace(2e4, 3e4, 5)),
    "vecdot": (
        lambda x: wg.linalg.vecdot(x, like(OTHER, x)),
        lambda x: (x * OTHER).sum(-1),
        np.array([[-150.0, -100.0, 20.0], [-80.0, 220.0, 50.0]]),
    ),
}


def like(values: np.ndarray, x: Any) -> Any:
    """Values in the dtype and on the device of a tensor."""
    return wg.tensor(values.tolist(), dtype=x.dtype, device=x.device)


def at_halves(x: np.ndarray, dtype: str) -> np.ndarray:
    """The nearest numbers of a dtype, in float64."""
    return np.array(wg.tensor(x.tolist(), dtype=getattr(wg, dtype)).to(wg.float64).tolist())


def differences(f: Callable[[np.ndarray], Any], x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The gradient of `sum(weight * f(x))` by central differences."""
    out = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-4 * max(abs(x[at]), 1.0)
        out[at] = ((f(x + step) - f(x - step)) * weight).sum() / (2 * step[at])
    return out


def check(name: str, dtype: str, device: str = "cpu") -> None:
    """Value, VJP, JVP and batches of one reduction."""
    function, reference, values = REDUCED[name]
    values = at_halves(values, dtype)
    if OTHER.shape == values.shape:
        assert np.array_equal(at_halves(OTHER, "float16"), OTHER)
    x = wg.tensor(values.tolist(), dtype=getattr(wg, dtype), device=device)
    exact = np.asarray(reference(values))
    # Operands of bfloat16 that are constants are rounded, too.
    tolerance = 4 * EPS[dtype]
    out = function(x)
    assert out.dtype == x.dtype
    np.testing.assert_allclose(out.cpu().float().tolist(), exact, rtol=tolerance)
    weight = np.linspace(1.0, 2.0, exact.size).reshape(exact.shape)
    slope = differences(reference, values, weight)
    scale = np.abs(slope).max()
    leaf = x.detach().requires_grad_()
    (g,) = wg.autograd.grad((function(leaf) * like(weight, x)).sum(), [leaf])
    assert g.dtype == x.dtype
    np.testing.assert_allclose(g.cpu().float().tolist(), slope, atol=4 * tolerance * scale)
    tangent = np.sign(values)
    _, pushed = wg.jvp(function, (x,), (like(tangent, x),))
    moved = differences(lambda t: np.asarray(reference(values + t * tangent)), np.zeros(()), weight)
    found = (np.array(pushed.cpu().float().tolist()) * weight).sum()
    np.testing.assert_allclose(found, moved, atol=4 * tolerance * (scale * values.size + 1e-3))
    lanes = wg.vmap(function)(wg.stack([x, x]))
    np.testing.assert_allclose(lanes[1].cpu().float().tolist(), exact, rtol=tolerance)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", list(REDUCED))
def test_nothing_overflows_inside(name: str, dtype: str) -> None:
    check(name, dtype)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["mean", "std", "norm", "logsumexp", "cosine_similarity", "prod"])
def test_nothing_overflows_inside_on_a_gpu(name: str) -> None:
    check(name, "float16", "gpu")


def many(device: str = "cpu") -> None:
    """More elements than float16 can count."""
    n = 70_000
    x = wg.ones(n, dtype=wg.float16, device=device, requires_grad=True)
    share = float(np.float16(1 / n))
    mean = x.mean()
    assert mean.item() == 1.0
    (g,) = wg.autograd.grad(mean, [x])
    assert set(g.cpu().tolist()) == {share}
    assert wg.jvp(lambda x: x.mean(), (x.detach(),), (x.detach(),))[1].item() == 1.0
    zeros = wg.zeros(n, dtype=wg.float16, device=device)
    assert zeros.logsumexp(0).item() == float(np.float16(math.log(n)))
    # A recurrence is one loop per line, and Mesa's lavapipe ends every loop after 65535 rounds.
    length = 60_000 if device == "gpu" else n
    logs = zeros.narrow(0, 0, length).logcumsumexp(0)
    assert logs.cpu()[-1].item() == float(np.float16(math.log(length)))
    target = wg.zeros(n, dtype=wg.int64 if device == "cpu" else wg.int32, device=device)
    logits = wg.zeros(n, 2, dtype=wg.float16, device=device)
    loss = F.cross_entropy(logits, target)
    assert loss.item() == pytest.approx(math.log(2), rel=1e-3)
    loss = F.nll_loss(logits.log_softmax(1), target)
    assert loss.item() == float(np.float16(math.log(2)))


def test_more_elements_than_float16_can_count() -> None:
    many()


@pytest.mark.gpu
def test_more_elements_than_float16_can_count_on_a_gpu() -> None:
    many("gpu")


def test_ties_are_counted_exactly() -> None:
    g = wg.grad(lambda x: x.amax().float())(wg.ones(70_000, dtype=wg.float16))
    assert set(g.tolist()) == {float(np.float16(1 / 70_000))}


def test_a_product_has_one_value_with_and_without_a_tape() -> None:
    x = wg.tensor([300.0, 400.0, 0.01, 0.5], dtype=wg.float16)
    assert x.detach().requires_grad_().prod().item() == x.prod().item() < 700
    assert x.detach().requires_grad_().cumprod(0).tolist() == x.cumprod(0).tolist()


def test_weight_norm_of_halves() -> None:
    layer = wg.nn.Linear(4, 1, bias=False, dtype=wg.float16)
    with wg.no_grad():
        layer.weight.fill_(300.0)
    wg.nn.utils.parametrizations.weight_norm(layer)
    assert layer.parametrizations.weight.original0.tolist() == [[600.0]]
    assert layer.weight.tolist() == [[300.0] * 4]


def test_a_deviation_of_zero_has_slope_zero() -> None:
    """As the norm has, of which it is a multiple."""
    same = wg.full((3,), 2.0, dtype=wg.float64)
    assert wg.grad(lambda x: x.std())(same).tolist() == [0.0] * 3
    assert wg.jvp(lambda x: x.std(), (same,), (wg.tensor([1.0, 2, 3], dtype=wg.float64),))[1].item() == 0.0
    assert wg.vmap(wg.grad(lambda x: x.std()))(wg.ones(2, 3)).tolist() == [[0.0] * 3] * 2
    assert wg.grad(lambda x: x.std(correction=0))(wg.ones(1)).tolist() == [0.0]
    assert wg.hessian(lambda x: x.std())(same).isfinite().all().item()
    rows = wg.tensor([[1.0, 1.0], [1.0, 3.0]])
    assert np.allclose(wg.grad(lambda x: x.std(1).sum())(rows).tolist(), [[0, 0], [-(0.5**0.5), 0.5**0.5]])


def test_the_gradient_of_a_nan_that_is_the_largest() -> None:
    nan = math.nan
    assert wg.grad(lambda x: x.max())(wg.tensor([1.0, nan, 2.0])).tolist() == [0.0, 1.0, 0.0]
    assert wg.grad(lambda x: x.amin())(wg.tensor([nan, 1.0, nan])).tolist() == [0.5, 0.0, 0.5]
    rows = wg.tensor([[1.0, nan], [3.0, 3.0]])
    assert wg.grad(lambda x: x.amax(1).sum())(rows).tolist() == [[0.0, 1.0], [0.5, 0.5]]
