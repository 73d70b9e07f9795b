"""The tape and the chain rule: networks small enough for a pencil, order, control flow, repeated backward."""

import math

import numpy as np
import pytest
import wengert as wg
import wengert.nn.functional as F
from behaviours.tape import ops


def leaf(values: object) -> wg.Tensor:
    """A float64 leaf."""
    return wg.tensor(values, dtype=wg.float64, requires_grad=True)


def test_two_weights_and_a_sigmoid() -> None:
    # L = (w2 s)^2 with s = sigmoid(w1 x): dL/dw2 = 2 w2 s^2, dL/dw1 = 2 w2^2 s * s (1 - s) x.
    x, w1, w2 = 1.5, leaf(0.4), leaf(-0.7)
    loss = (w2 * wg.sigmoid(w1 * x)) ** 2
    loss.backward()
    s = 1 / (1 + math.exp(-0.6))
    assert loss.item() == pytest.approx(0.49 * s * s, rel=1e-14)
    assert w2.grad.item() == pytest.approx(2 * -0.7 * s * s, rel=1e-14)
    assert w1.grad.item() == pytest.approx(2 * 0.49 * s * s * (1 - s) * 1.5, rel=1e-14)


def test_two_weight_matrices_and_a_sigmoid() -> None:
    rng = np.random.default_rng(0)
    w1, w2, x = rng.normal(size=(3, 2)), rng.normal(size=(1, 3)), rng.normal(size=2)
    a, b = leaf(w1), leaf(w2)
    ((b @ wg.sigmoid(a @ wg.tensor(x))) ** 2).sum().backward()
    s = 1 / (1 + np.exp(-(w1 @ x)))
    upstream = 2 * (w2 @ s)
    np.testing.assert_allclose(b.grad.numpy(), upstream[:, None] * s[None], rtol=1e-13)
    np.testing.assert_allclose(a.grad.numpy(), np.outer(upstream * w2[0] * s * (1 - s), x), rtol=1e-13)


def test_a_square_by_hand() -> None:
    x, w, b = leaf(2.0), leaf(3.0), leaf(1.0)
    y = (x * w + b) ** 2
    y.backward()
    assert [v.item() for v in (y, b.grad, w.grad, x.grad)] == [49.0, 14.0, 28.0, 42.0]


def test_sine_of_a_square() -> None:
    x = leaf(1.5)
    wg.sin(x * x).backward()
    assert x.grad.item() == pytest.approx(-1.88452087, abs=5e-9)
    assert x.grad.item() == pytest.approx(3.0 * math.cos(2.25), rel=1e-15)


def test_a_relu_layer_by_hand() -> None:
    x, w, b = leaf([2.0, 3.0]), leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([0.5, -0.5])
    h = wg.relu(w @ x + b)
    loss = h.sum()
    loss.backward()
    assert x.grad.tolist() == [4.0, 6.0]
    assert w.grad.tolist() == [[2.0, 3.0], [2.0, 3.0]]
    assert b.grad.tolist() == [1.0, 1.0]
    assert all(t.is_leaf and t.grad_fn is None for t in (x, w, b))
    assert (h.grad_fn.name(), loss.grad_fn.name()) == ("ReluBackward", "SumBackward")


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (lambda a, b: a + b, [(4, 3), (3,)]),
        (lambda a, b: a * b, [(4, 1), (1, 3)]),
        (lambda a, b: a @ b, [(2, 4, 3), (3, 5)]),
        (lambda a, b: wg.where(a > 0, a, b), [(4, 3), ()]),
        (lambda a, b: wg.cat([a.flatten(), b]), [(2, 3), (4,)]),
        (lambda a, b: a.T[1:] - b, [(4, 3), (1, 4)]),
        (lambda a, b: a.expand(5, 3) / (b * b + 1), [(1, 3), (5, 1)]),
    ],
)
def test_a_gradient_has_the_shape_of_its_tensor(f: object, shapes: list[tuple[int, ...]]) -> None:
    wg.manual_seed(0)
    leaves = [wg.randn(shape).requires_grad_() for shape in shapes]
    f(*leaves).square().sum().backward()
    assert [tuple(x.grad.shape) for x in leaves] == shapes


def test_several_uses_add_up() -> None:
    x = leaf([1.0, -2.0])
    y = x * 3.0
    (y.sum() + (y * x).sum() + x.sum()).backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 + 6 * np.array([1.0, -2.0]) + 1)
    first = x.grad.clone()
    (x * x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), first.numpy() + 2 * np.array([1.0, -2.0]))


def test_micro_batches_equal_the_big_batch() -> None:
    rng = np.random.default_rng(1)
    data, target = wg.tensor(rng.normal(size=(12, 5))), wg.tensor(rng.normal(size=(12, 2)))
    w = leaf(rng.normal(size=(5, 2)))
    (whole,) = wg.autograd.grad(F.mse_loss((data @ w).tanh(), target), w)
    for part, goal in zip(data.chunk(4), target.chunk(4)):
        (F.mse_loss((part @ w).tanh(), goal) / 4).backward()
    np.testing.assert_allclose(w.grad.numpy(), whole.numpy(), rtol=1e-13)


def test_backward_runs_in_reverse_topological_order() -> None:
    # A ladder of diamonds: a value's cotangent is ready only when all its uses were walked.
    x = leaf(1.0)
    order: list[int] = []
    values = [x * 1.0]
    for i in range(6):
        left, right = values[-1].sin(), values[max(0, i - 2)].cos()
        values.append(left * right + values[0])
    for i, value in enumerate(values):
        value.register_hook(lambda g, i=i: order.append(i))
    values[-1].backward()
    assert order == list(range(6, -1, -1))


def test_backward_of_a_vector_is_a_product_with_the_jacobian() -> None:
    x, v = leaf([1.0, -2.0, 3.0]), wg.tensor([0.5, 1.0, -1.0], dtype=wg.float64)
    y = x**2
    y.backward(v)
    assert x.grad.tolist() == (2 * x.detach() * v).tolist()
    jacobian = wg.jacrev(lambda x: x**2)(x.detach())
    assert x.grad.tolist() == (v @ jacobian).tolist()


def recursive(x: wg.Tensor, n: int) -> wg.Tensor:
    """`x` to the power n."""
    return wg.ones_like(x) if n == 0 else x * recursive(x, n - 1)


def until_large(x: wg.Tensor) -> wg.Tensor:
    """Doubles until above 10."""
    while x.item() < 10.0:
        x = x * 2.0
    return x


def root(x: wg.Tensor) -> wg.Tensor:
    """The square root, and the logarithm where the root raises."""
    try:
        if x.item() > 4.0:
            raise ValueError("too large")
        return x.sqrt()
    except ValueError:
        return x.log()


@pytest.mark.parametrize(
    ("f", "at", "slope"),
    [
        (lambda x: x * x if x.item() > 0 else -x, 3.0, 6.0),
        (lambda x: x * x if x.item() > 0 else -x, -3.0, -1.0),
        (lambda x: sum((x**k for k in range(1, 4)), 0 * x), 2.0, 1 + 4 + 12),
        (until_large, 3.0, 4.0),
        (until_large, 0.5, 32.0),
        (lambda x: recursive(x, 5), 1.1, 5 * 1.1**4),
        (root, 4.0, 0.25),
        (root, 5.0, 0.2),
    ],
)
def test_python_control_flow_is_differentiated_as_it_ran(f: object, at: float, slope: float) -> None:
    x = leaf(at)
    f(x).backward()
    assert x.grad.item() == pytest.approx(slope, rel=1e-14)


def test_saved_values_are_freed_and_retained_on_request() -> None:
    x = leaf([0.5, 1.0])
    y = x.exp().sum()
    y.backward(retain_graph=True)
    once = x.grad.tolist()
    y.backward()
    assert x.grad.tolist() == [2 * g for g in once]
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()


def test_a_loss_accumulated_in_a_loop() -> None:
    w = leaf(0.5)
    total = wg.zeros((), dtype=wg.float64)
    for step in range(1, 5):
        total = total + (w * float(step) - 1.0) ** 2
    total.backward()
    assert w.grad.item() == pytest.approx(sum(2 * k * (0.5 * k - 1) for k in range(1, 5)), rel=1e-14)
    assert ops(total).count("square") == 4
