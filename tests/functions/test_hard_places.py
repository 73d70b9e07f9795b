"""Values and gradients where a formula that is right on paper loses its digits: large, small and infinite
numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from scipy.special import expit, log1p, softmax
from wengert.nn import functional as F

INF = math.inf


@pytest.mark.parametrize("dtype", [wg.float32, wg.float64])
@pytest.mark.parametrize(
    "logits", [[1e8, 1e8], [1e5, 1e5, 1e5], [3e4, 3e4 + 1, 3e4], [-7e4, -7e4 - 2], [0.0, 90.0]]
)
def test_cross_entropy_of_large_logits(logits: list[float], dtype: Any) -> None:
    exact = wg.tensor([logits], dtype=dtype).numpy().astype(np.float64)
    p = softmax(exact, -1)
    x = wg.tensor([logits], dtype=dtype, requires_grad=True)
    target = wg.tensor([0])
    loss = F.cross_entropy(x, target)
    loss.backward()
    assert x.grad is not None
    np.testing.assert_allclose(loss.item(), -np.log(p[0, 0]), rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), p - np.eye(len(logits))[:1], rtol=1e-6, atol=1e-9)
    # Forward mode, batches and second derivatives take other ways.
    value, moved = wg.jvp(lambda x: F.cross_entropy(x, target), (x.detach(),), (wg.ones_like(x),))
    np.testing.assert_allclose(value.item(), loss.item(), rtol=1e-6)
    assert abs(moved.item()) < 1e-6
    rows = wg.vmap(wg.grad(lambda x: F.cross_entropy(x, wg.tensor(0))))(x.detach())
    np.testing.assert_allclose(rows.numpy(), x.grad.numpy(), rtol=1e-6, atol=1e-9)
    hessian = wg.hessian(lambda x: F.cross_entropy(x, wg.tensor(0)))(x.detach()[0])
    np.testing.assert_allclose(hessian.numpy(), np.diag(p[0]) - np.outer(p[0], p[0]), rtol=1e-6, atol=1e-7)


def test_cross_entropy_of_integers_is_refused() -> None:
    with pytest.raises(TypeError, match="cross_entropy: floating point logits expected, got int64"):
        F.cross_entropy(wg.tensor([[1, 2, 3]]), wg.tensor([0]))


@pytest.mark.parametrize("p", [1e-8, 1e-3, 0.5, 1 - 1e-7])
def test_binary_cross_entropy_of_small_probabilities(p: float) -> None:
    for t in (0.0, 0.3, 1.0):
        x = wg.tensor([p], dtype=wg.float64)
        want = -(t * math.log(p) + (1 - t) * log1p(-p))
        np.testing.assert_allclose(
            F.binary_cross_entropy(x, wg.tensor([t], dtype=wg.float64)).item(), want, rtol=1e-14
        )
    assert F.binary_cross_entropy(wg.tensor([1e-8]), wg.tensor([0.0])).item() == pytest.approx(1e-8)


@pytest.mark.parametrize("x", [-100.0, -20.0, -1.0, 0.0, 3.0, 50.0])
@pytest.mark.parametrize("t", [0.0, 1e-8, 0.5, 1.0])
def test_the_slope_of_a_loss_of_logits(x: float, t: float) -> None:
    logit = wg.tensor([x], requires_grad=True)
    F.binary_cross_entropy_with_logits(logit, wg.tensor([t])).backward()
    assert logit.grad is not None
    want = expit(x) - t if x < 0 else (1 - t) - expit(-x)
    np.testing.assert_allclose(logit.grad.item(), want, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    "ties", [[-INF, 3.0, -INF, 4.0], [INF, INF, INF], [2.0, 1.0, 2.0], [-1.0, -1.0, 5.0]]
)
def test_the_median_shares_its_gradient(ties: list[float]) -> None:
    x = wg.tensor(ties, requires_grad=True)
    x.median().backward()
    assert x.grad is not None
    is_middle = np.array(ties) == sorted(ties)[(len(ties) - 1) // 2]
    assert x.grad.tolist() == pytest.approx((is_middle / is_middle.sum()).tolist())


@pytest.mark.parametrize("order", [-2.0, -1.0, -0.5])
@pytest.mark.parametrize("x", [[INF], [INF, 2.0], [0.0, 2.0], [1.0, 4.0]])
def test_norms_of_negative_orders(x: list[float], order: float) -> None:
    with np.errstate(divide="ignore"):
        want = np.linalg.norm(np.array(x), order)
    assert wg.linalg.vector_norm(wg.tensor(x, dtype=wg.float64), order).item() == pytest.approx(want)


def test_quantiles_beside_infinite_numbers() -> None:
    x = [INF, -INF, -INF, 1.0]
    assert wg.quantile(wg.tensor(x), 0.5).item() == -INF
    assert wg.quantile(wg.tensor([0.0, 1.0, INF]), 0.5).item() == 1.0
    for q in (0.1, 0.5, 0.77):
        y = np.random.default_rng(3).standard_normal(9)
        assert wg.quantile(wg.tensor(y), q).item() == pytest.approx(np.quantile(y, q), rel=1e-15)


def test_numpy_clips_integers_by_fractions() -> None:
    x = np.array([0, 3, 5])
    assert np.clip(wg.tensor(x), 0.5, 1.5).tolist() == np.clip(x, 0.5, 1.5).tolist() == [0.5, 1.5, 1.5]


def test_bags_keep_infinite_rows() -> None:
    table = wg.tensor([[-INF, 1.0], [-INF, 3.0], [0.0, 0.0]], requires_grad=True)
    bags = F.embedding_bag(wg.tensor([0, 1, 2]), table, wg.tensor([0, 2, 2]), mode="max", padding_idx=2)
    assert bags.tolist() == [[-INF, 3.0], [0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("base", "exponent"),
    [(0j, -1 + 0j), (0j, -2 + 1j), (0j, 1j), (0j, 0j), (0j, 2 + 1j), (complex(math.nan, 0), 0j)],
)
def test_complex_powers_of_zero(base: complex, exponent: complex) -> None:
    found = (wg.tensor(base) ** exponent).item()
    if exponent == 0:
        assert found == 1
    elif exponent.real > 0:
        assert found == 0
    else:
        # Infinite in no direction, or of no size.
        assert math.isnan(found.imag)
        assert math.isinf(found.real) if exponent.real < 0 else math.isnan(found.real)


REAL_TO_COMPLEX: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: x * (2 + 3j),
    "exponential": lambda x: (x * 1j).exp(),
    "sum": lambda x: (x * (1 + 2j)).sum(),
}


@pytest.mark.parametrize("name", REAL_TO_COMPLEX)
@pytest.mark.parametrize("settings", [{}, {"chunk_size": 1}])
def test_jacobians_of_complex_functions_of_real_numbers(name: str, settings: dict[str, int]) -> None:
    f, x = REAL_TO_COMPLEX[name], wg.tensor([0.3, -1.2], dtype=wg.float64)
    by_columns = wg.jacfwd(f)(x)
    np.testing.assert_allclose(wg.jacrev(f, **settings)(x).numpy(), by_columns.numpy(), rtol=1e-14)
    eps = 1e-6
    for i in range(2):
        step = wg.tensor([eps * (i == 0), eps * (i == 1)], dtype=wg.float64)
        np.testing.assert_allclose(
            by_columns[..., i].numpy(),
            ((f(x + step) - f(x - step)) / (2 * eps)).numpy(),
            rtol=1e-8,
            atol=1e-9,
        )


def test_what_is_refused() -> None:
    cases: dict[Callable[[], Any], str] = {
        lambda: pow(wg.tensor(2), 2, 3): "no power modulo a number",
        lambda: wg.ones(2).uniform_(0, INF): "uniform_: bounds a finite distance apart expected",
        lambda: wg.ones(2, dtype=wg.int8).random_(
            0, 1000
        ): "random_: numbers from 0 to 999 do not fit into int8",
        lambda: wg.set_rng_state(()): "set_rng_state: what get_rng_state returned expected, got ()",
        lambda: F.mse_loss(wg.ones(1) + 1j, wg.ones(1)): "mse_loss: complex numbers have no order",
        lambda: wg.diag_embed(wg.ones(2), dim1="a"): "diag_embed: dim must be an integer, got 'a'",
        lambda: wg.trapezoid(wg.ones(3), dim=9): "trapezoid: axis 9 is out of range for a tensor with 1 axes",
        lambda: wg.vmap(lambda x: x, axis_name=3): "vmap: axis_name is a string, got 3",
        lambda: wg.custom_jvp(lambda x: x).defjvp(3): "defjvp: a function expected",
        lambda: wg.amp.GradScaler(init_scale=-1): "GradScaler: a positive init_scale expected, got -1.0",
        lambda: wg.amp.GradScaler(
            growth_interval=0
        ): "GradScaler: a positive growth_interval expected, got 0",
        lambda: wg.autocast().__exit__(): "autocast: the region that is left was not entered",
        lambda: wg.optim.Adam(None): "Adam: an iterable of parameters expected, got NoneType",
        lambda: wg.optim.SGD([wg.ones(1, requires_grad=True)]).load_state_dict(
            {}
        ): "SGD.load_state_dict: a dictionary",
        lambda: wg.optim.lr_scheduler.StepLR(
            wg.optim.SGD([wg.ones(1, requires_grad=True)]), 2
        ).load_state_dict({}): "StepLR.load_state_dict: what state_dict() returned expected, got []",
        lambda: wg.nn.Linear(2, 2).load_state_dict({1: 2}): "load_state_dict: names as keys expected, got 1",
        lambda: wg.nn.Linear(1, 1).load_state_dict(
            {"weight": wg.ones(1, 1) * 1j, "bias": wg.ones(1)}
        ): "complex64 in the state dict, wengert.float32 in the module",
        lambda: wg.tree.register_dataclass(int): "register_dataclass: a dataclass expected",
        lambda: wg.tree.register_pytree_node(
            list, len, len
        ): "register_pytree_node: list is a container already",
    }
    for call, text in cases.items():
        with pytest.raises((TypeError, ValueError, IndexError, RuntimeError)) as caught:
            call()
        assert text in str(caught.value)
