"""`nn.utils.parametrize` and `nn.utils.parametrizations`: attributes as functions of what is trained."""

import copy
from typing import Any

import numpy as np
import pytest
import wengert as wg
from messages import Situations, message_tests
from support import Array, array, assert_near
from wengert import nn
from wengert.nn.utils import parametrizations, parametrize


class Positive(nn.Module):
    def forward(self, x: wg.Tensor) -> wg.Tensor:
        return x.exp()

    def right_inverse(self, y: wg.Tensor) -> wg.Tensor:
        return y.log()


class Symmetric(nn.Module):
    calls = 0

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        Symmetric.calls += 1
        return x.tril() + x.tril(-1).T


def square(n: int = 3) -> nn.Linear:
    wg.manual_seed(0)
    return nn.Linear(n, n).double()


def test_a_function_of_a_parameter() -> None:
    layer = square()
    weight, parameter = array(layer.weight).copy(), layer.weight
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    expected = np.tril(weight) + np.tril(weight, -1).T
    assert_near(layer.weight, expected, 0)
    assert type(layer).__name__ == "ParametrizedLinear"
    assert isinstance(layer, nn.Linear)
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert [name for name, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]
    assert layer.parametrizations.weight.original is parameter
    x = wg.tensor(np.arange(6.0).reshape(2, 3))
    assert_near(layer(x), array(x) @ expected.T + array(layer.bias), 1e-14)
    layer.weight.sum().backward()
    assert_near(parameter.grad, 2 * np.tril(np.ones((3, 3))) - np.eye(3), 0)


def test_values_that_are_assigned() -> None:
    layer = square()
    with wg.no_grad():
        layer.weight.exp_()
    before = array(layer.weight).copy()
    parametrize.register_parametrization(layer, "weight", Positive())
    assert_near(layer.weight, before, 1e-15)
    assert_near(layer.parametrizations.weight.original, np.log(before), 1e-15)
    layer.weight = wg.full((3, 3), 2.0, dtype=wg.float64)
    assert_near(layer.weight, np.full((3, 3), 2.0), 1e-15)
    with pytest.raises(
        ValueError, match=r"comes from originals of shapes \[\(2, 3\)\], expected \[\(3, 3\)\]"
    ):
        layer.weight = wg.ones(2, 3, dtype=wg.float64)


def test_several_functions() -> None:
    layer = square()
    with wg.no_grad():
        layer.weight.exp_()
    before = array(layer.weight).copy()
    parametrize.register_parametrization(layer, "weight", Symmetric())
    original = layer.parametrizations.weight.original
    parametrize.register_parametrization(layer, "weight", Positive())
    assert len(layer.parametrizations.weight) == 2
    assert isinstance(layer.parametrizations.weight[1], Positive)
    assert layer.parametrizations.weight.original is original
    # The originals stay as they are, so the value is the function of what it was.
    assert_near(layer.weight, np.exp(np.tril(before) + np.tril(before, -1).T), 1e-13)
    parametrize.register_parametrization(layer, "bias", nn.Tanh())
    assert parametrize.is_parametrized(layer, "bias")
    parametrize.remove_parametrizations(layer, "weight")
    assert not parametrize.is_parametrized(layer, "weight")
    assert parametrize.is_parametrized(layer)
    parametrize.remove_parametrizations(layer, "bias", leave_parametrized=False)
    assert type(layer) is nn.Linear
    assert not parametrize.is_parametrized(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    assert layer.weight is original


def test_buffers_and_copies() -> None:
    layer = nn.Module()
    layer.register_buffer("scale", wg.tensor([1.0, 2.0]))
    parametrize.register_parametrization(layer, "scale", Positive())
    assert_near(layer.scale, np.array([1.0, 2.0]), 1e-6)
    assert list(layer.parameters()) == []
    other = copy.deepcopy(layer)
    other.scale = wg.tensor([3.0, 4.0])
    assert_near(layer.scale, np.array([1.0, 2.0]), 1e-6)
    assert_near(other.scale, np.array([3.0, 4.0]), 1e-6)
    layer.load_state_dict(other.state_dict())
    assert_near(layer.scale, np.array([3.0, 4.0]), 1e-6)
    parametrize.remove_parametrizations(layer, "scale")
    assert list(layer.state_dict()) == ["scale"]


def test_values_that_are_kept_for_a_while() -> None:
    layer = parametrize.register_parametrization(square(), "weight", Symmetric())
    Symmetric.calls = 0
    with parametrize.cached():
        first = layer.weight
        with parametrize.cached():
            assert layer.weight is first
        assert layer.weight is first
    assert Symmetric.calls == 1
    assert layer.weight is not first


def test_as_a_pure_function() -> None:
    layer = parametrize.register_parametrization(square(), "weight", Symmetric())
    x = wg.tensor(np.arange(3.0))
    parameters = dict(layer.named_parameters())

    def loss(parameters: dict[str, wg.Tensor]) -> wg.Tensor:
        return nn.functional_call(layer, parameters, (x,)).square().sum()

    gradient = wg.grad(loss)(parameters)
    loss(parameters).backward()
    for name, p in parameters.items():
        assert_near(gradient[name], array(p.grad), 1e-14)


def lengths(v: Array, dim: int | None) -> Array:
    axes = None if dim is None else tuple(i for i in range(v.ndim) if i != dim)
    return np.sqrt(np.square(v).sum(axis=axes, keepdims=dim is not None))


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(dim: int | None) -> None:
    layer = nn.Conv1d(3, 4, 2).double()
    before = array(layer.weight).copy()
    assert parametrizations.weight_norm(layer, dim=dim) is layer
    assert_near(layer.weight, before, 1e-14)
    parts = layer.parametrizations.weight
    assert_near(parts.original0, lengths(before, dim), 1e-14)
    with wg.no_grad():
        parts.original0.mul_(3.0)
    assert_near(layer.weight, 3 * before, 1e-14)
    # A change of length leaves no gradient in the directions.
    (3 * layer.weight.square().sum()).backward()
    assert_near(parts.original1.grad, np.zeros(before.shape), 1e-13)
    parametrize.remove_parametrizations(layer, "weight")
    assert_near(layer.weight, 3 * before, 1e-14)


@pytest.mark.parametrize(
    "make", [lambda: nn.Linear(5, 4), lambda: nn.Conv2d(2, 3, 3), lambda: nn.ConvTranspose2d(2, 3, 3)]
)
def test_spectral_norm(make: Any) -> None:
    wg.manual_seed(0)
    layer = make().double()
    dim = 1 if isinstance(layer, nn.ConvTranspose2d) else 0
    matrix = np.moveaxis(array(layer.weight), dim, 0)
    before, largest = array(layer.weight).copy(), np.linalg.norm(matrix.reshape(len(matrix), -1), 2)
    parametrizations.spectral_norm(layer, n_power_iterations=200)
    assert_near(layer.weight, before / largest, 1e-9)
    # The derivative of w / sigma along w itself is zero.
    (g,) = wg.autograd.grad((layer.weight * wg.tensor(before)).sum(), layer.parametrizations.weight.original)
    assert abs((array(g) * before).sum()) < 1e-9
    vectors = [array(b).copy() for b in layer.buffers()]
    layer.eval()
    layer(
        wg.ones(1, 5, dtype=wg.float64)
        if isinstance(layer, nn.Linear)
        else wg.ones(1, 2, 4, 4, dtype=wg.float64)
    )
    for a, b in zip(vectors, layer.buffers()):
        assert_near(b, a, 0)


def test_spectral_norm_of_a_vector() -> None:
    layer = parametrizations.spectral_norm(square(), "bias")
    assert layer.bias.norm().item() == pytest.approx(1.0)


@pytest.mark.parametrize("from_weight", [True, False])
@pytest.mark.parametrize("kind", parametrizations.MAPS)
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
def test_orthogonal(shape: tuple[int, int], kind: str, from_weight: bool) -> None:
    wg.manual_seed(0)
    layer = nn.Linear(*shape).double()
    before = array(layer.weight).copy()
    parametrizations.orthogonal(layer, "weight", kind, use_trivialization=from_weight)

    def check() -> Array:
        w = array(layer.weight)
        tall = w if w.shape[0] >= w.shape[1] else w.T
        assert_near(wg.tensor(tall.T @ tall), np.eye(min(shape)), 1e-13)
        return w

    check()
    if from_weight:
        u, _, v = np.linalg.svd(before, full_matrices=False)
        layer.weight = wg.tensor(u @ v)
        assert_near(layer.weight, u @ v, 1e-13)
    target = wg.tensor(np.random.default_rng(0).normal(size=before.shape))
    optimizer = wg.optim.SGD(layer.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        loss = (layer.weight - target).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        check()
    assert losses[-1] < losses[0]


ERRORS: Situations = {
    "no module": (
        lambda: parametrize.register_parametrization(square(), "weight", abs),
        TypeError,
        "register_parametrization: a Module expected, got builtin_function_or_method",
    ),
    "no parameter": (
        lambda: parametrize.register_parametrization(square(), "scale", Positive()),
        ValueError,
        "register_parametrization: Linear has no parameter or buffer 'scale'",
    ),
    "shape": (
        lambda: parametrize.register_parametrization(square(), "weight", nn.Flatten(0)),
        ValueError,
        "register_parametrization: 'weight' would be wengert.float64 of shape (9,), expected wengert.float64 "
        "of shape (3, 3) as before; pass unsafe=True to allow that",
    ),
    "not parametrized": (
        lambda: parametrize.remove_parametrizations(square(), "weight"),
        ValueError,
        "remove_parametrizations: 'weight' of Linear is not parametrized",
    ),
    "several originals": (
        lambda: parametrize.remove_parametrizations(parametrizations.weight_norm(square()), "weight", False),
        ValueError,
        "remove_parametrizations: 'weight' comes from 2 originals, of which none can take its place; pass "
        "leave_parametrized=True",
    ),
    "steps": (
        lambda: parametrizations.spectral_norm(square(), n_power_iterations=0),
        ValueError,
        "spectral_norm: n_power_iterations of at least 1 expected, got 0",
    ),
    "map": (
        lambda: parametrizations.orthogonal(square(), orthogonal_map="qr"),
        ValueError,
        "orthogonal: orthogonal_map must be one of matrix_exp, cayley, householder, got 'qr'",
    ),
    "no matrix": (
        lambda: parametrizations.orthogonal(square(), "bias"),
        ValueError,
        "orthogonal: a matrix or a batch of them expected, got shape (3,)",
    ),
    "no attribute": (
        lambda: parametrizations.weight_norm(square(), "scale"),
        ValueError,
        "weight_norm: Linear has no parameter or buffer 'scale'",
    ),
}

test_errors = message_tests(ERRORS)
