"""Keywords of transforms, checks and trees: against derivatives worked out by hand."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert import nn, tree
from wengert.autograd import functional

from arguments.rows import Function, near

X, Y = wg.tensor([1.0, 2.0, -1.0], dtype=wg.float64), wg.tensor([0.5, -1.0, 3.0], dtype=wg.float64)
CUBE = lambda x: (x**3).sum()
ONES = wg.ones(3, dtype=wg.float64)


def test_arguments_of_transforms() -> None:
    f = lambda x, y: (x * x * y).sum()
    near(wg.value_and_grad(f, argnums=1)(X, Y)[1], (X * X).numpy())
    near(wg.value_and_grad(f, argnums=(0, 1))(X, Y)[1], ((2 * X * Y).numpy(), (X * X).numpy()))
    near(wg.jacobian(lambda x, y: x * y, argnums=1)(X, Y), np.diag(X.numpy()))
    slope, aux = wg.jacobian(lambda x: (x * x, x + 1), has_aux=True)(X)
    near((slope, aux), (np.diag(2 * X.numpy()), X.numpy() + 1))


@pytest.mark.parametrize("rows", [1, 2])
def test_chunks_of_jacobians(rows: int) -> None:
    """As many rows at once as told: the pullback sees batches of that size."""
    seen: list[tuple[int, ...]] = []

    class Square(wg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: wg.Tensor) -> wg.Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: wg.Tensor) -> wg.Tensor:
            seen.append(tuple(g.shape))
            return 2 * g * ctx.saved_tensors[0]

    near(wg.jacobian(Square.apply, chunk_size=rows)(X), np.diag(2 * X.numpy()))
    assert len(seen) == -(-3 // rows)


GRAPHS: list[tuple[str, Function, dict[str, Any], Any]] = [
    ("vjp", lambda x, **k: functional.vjp(lambda x: x**3, x, ONES, **k), dict(create_graph=True), 6 * X),
    ("jvp", lambda x, **k: functional.jvp(lambda x: x**3, x, ONES, **k), dict(create_graph=True), 6 * X),
    ("vhp", lambda x, **k: functional.vhp(CUBE, x, v=ONES, **k), dict(create_graph=True), 6 * ONES),
    ("hvp", lambda x, **k: functional.hvp(CUBE, x, v=ONES, **k), dict(create_graph=True), 6 * ONES),
    ("hessian", lambda x, **k: (0, functional.hessian(CUBE, x, **k)), dict(create_graph=True), 6 * ONES),
    ("jacobian", lambda x, **k: (0, functional.jacobian(CUBE, x, **k)), dict(create_graph=True), 6 * X),
]


@pytest.mark.parametrize(("name", "function", "settings", "expected"), GRAPHS)
def test_results_stay_on_the_tape(name: str, function: Function, settings: Any, expected: wg.Tensor) -> None:
    x = X.clone().requires_grad_()
    assert not function(x)[1].requires_grad
    found = function(x, **settings)[1]
    near(wg.autograd.grad(found.sum(), x)[0], expected.numpy())


class Rough(wg.autograd.Function):
    """A cube whose slope is wrong by a thousandth."""

    @staticmethod
    def forward(ctx: Any, x: wg.Tensor) -> wg.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: wg.Tensor) -> wg.Tensor:
        return 3.003 * g * ctx.saved_tensors[0] ** 2


CHECKS: list[tuple[str, Function, dict[str, Any], dict[str, Any]]] = [
    ("gradcheck", wg.autograd.gradcheck, dict(atol=0.0, rtol=1e-2), dict(atol=0.0, rtol=1e-5)),
    ("gradgradcheck", wg.autograd.gradgradcheck, dict(atol=0.0, rtol=1e-2), dict(atol=0.0, rtol=0.0)),
    ("gradgradcheck", wg.autograd.gradgradcheck, dict(atol=1.0, rtol=0.0), dict(atol=0.0, rtol=0.0)),
    (
        "gradcheck",
        wg.testing.gradcheck,
        dict(atol=0.0, rtol=1e-2, check_forward_ad=False),
        dict(atol=0.0, rtol=1e-5),
    ),
]


@pytest.mark.parametrize(("name", "function", "loose", "strict"), CHECKS)
def test_tolerances_of_checks(name: str, function: Function, loose: Any, strict: Any) -> None:
    assert function(Rough.apply, (X,), **loose)
    more = {k: v for k, v in loose.items() if k.startswith("check")}
    assert not function(Rough.apply, (X,), raise_exception=False, **strict, **more)


class Slope(wg.autograd.Function):
    """`3 x^2`, whose own slope is what `of(x)` makes of `6 x`."""

    of: Any = staticmethod(lambda x: x)

    @staticmethod
    def forward(ctx: Any, x: wg.Tensor) -> wg.Tensor:
        ctx.save_for_backward(x)
        return 3 * x * x

    @classmethod
    def backward(cls, ctx: Any, g: wg.Tensor) -> wg.Tensor:
        return g * cls.of(6 * ctx.saved_tensors[0])


def cube(of: Any) -> Function:
    """A cube whose first derivative is right and whose second is what `of` makes of it."""
    slope = type("Slope", (Slope,), {"of": staticmethod(of)})

    class Cube(wg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: wg.Tensor) -> wg.Tensor:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: wg.Tensor) -> wg.Tensor:
            return g * slope.apply(ctx.saved_tensors[0])

    return Cube.apply


class Wide(wg.autograd.Function):
    """`6 x`, and twice that under `vmap`."""

    @staticmethod
    def forward(ctx: Any, x: wg.Tensor) -> wg.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: wg.Tensor) -> wg.Tensor:
        return g

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: wg.Tensor) -> Any:
        return 2 * x, in_dims[0]


def test_what_second_derivatives_are_checked_for() -> None:
    passes = partial(wg.autograd.gradgradcheck, inputs=(X,), raise_exception=False)
    assert passes(cube(lambda x: x))
    assert not passes(cube(lambda x: 1.1 * x))
    assert wg.autograd.gradgradcheck(cube(lambda x: 1.1 * x), (X,), check_rev_over_rev=False)
    draws = iter(1e-4 * np.arange(100.0))
    unsteady = cube(lambda x: x + next(draws))
    assert not passes(unsteady, atol=0.1)
    assert wg.autograd.gradgradcheck(unsteady, (X,), atol=0.1, nondet_tol=0.1)


def test_gradients_in_batches_are_checked() -> None:
    """The second derivative is right but where it is batched."""

    class Doubled(wg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: wg.Tensor) -> wg.Tensor:
            ctx.save_for_backward(x)
            return 3 * x * x

        @staticmethod
        def backward(ctx: Any, g: wg.Tensor) -> wg.Tensor:
            return Wide.apply(g) * 6 * ctx.saved_tensors[0]

    class Cube(wg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: wg.Tensor) -> wg.Tensor:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: wg.Tensor) -> wg.Tensor:
            return g * Doubled.apply(ctx.saved_tensors[0])

    assert wg.autograd.gradgradcheck(Cube.apply, (X,))
    assert not wg.autograd.gradgradcheck(Cube.apply, (X,), check_batched_grad=True, raise_exception=False)


def test_tolerance_of_transposes() -> None:
    class Uneven(Rough):
        @staticmethod
        def jvp(ctx: Any, t: wg.Tensor) -> wg.Tensor:
            return 3 * t * ctx.saved_tensors[0] ** 2

    assert wg.autograd.adjoint_check(Uneven.apply, (X,), rtol=1e-2)
    assert not wg.autograd.adjoint_check(Uneven.apply, (X,), rtol=1e-5, raise_exception=False)
    assert not wg.autograd.adjoint_check(Uneven.apply, (X,), raise_exception=False)


def test_reports_and_parametrisations() -> None:
    with pytest.raises(AssertionError, match=r"^the second step: "):
        wg.testing.assert_close(X, Y, msg="the second step")

    class Twice(nn.Module):
        def forward(self, x: wg.Tensor) -> wg.Tensor:
            return wg.cat([x, x])

    layer = nn.Linear(2, 3)
    with pytest.raises(ValueError, match=r"unsafe=True"):
        nn.utils.parametrize.register_parametrization(layer, "weight", Twice())
    nn.utils.parametrize.register_parametrization(layer, "weight", Twice(), unsafe=True)
    assert layer.weight.shape == (6, 2)


def test_anomaly_settings() -> None:
    x = wg.tensor([-1.0], requires_grad=True)
    with wg.autograd.set_detect_anomaly(True, check_nan=True, forward=True), pytest.raises(RuntimeError):
        x.sqrt()
    with wg.autograd.set_detect_anomaly(True, check_nan=True, forward=False):
        y = x.sqrt()
        with pytest.raises(RuntimeError):
            y.sum().backward()
    with wg.autograd.set_detect_anomaly(True, check_nan=False):
        x.sqrt().sum().backward()
    assert np.isnan(x.grad.item())


def test_decorators_and_calls() -> None:
    plain = lambda x: x * 2
    x = X.clone().requires_grad_()
    assert not wg.no_grad(function=plain)(x).requires_grad
    with wg.no_grad():
        assert wg.enable_grad(function=plain)(x).requires_grad

    class Scale(nn.Module):
        def forward(self, x: wg.Tensor, factor: float = 1.0) -> wg.Tensor:
            return x * factor

    near(nn.functional_call(Scale(), {}, (X,), kwargs={"factor": 3.0}), 3 * X.numpy())
    near(nn.Flatten(end_dim=2)(wg.zeros(2, 3, 4, 5)), np.zeros((2, 12, 5)))
    assert nn.Bilinear(2, 3, 4, bias=False).bias is None


def test_leaves_of_ones_own() -> None:
    """A pair is a leaf where `is_leaf` says so."""
    pairs, is_pair = [(1, 2), (3, 4)], lambda x: isinstance(x, tuple)
    assert tree.tree_leaves(pairs, is_leaf=is_pair) == pairs
    assert tree.tree_leaves(pairs) == [1, 2, 3, 4]
    assert tree.tree_map(sum, pairs, is_leaf=is_pair) == [3, 7]
    leaves, structure = tree.tree_flatten(pairs, is_leaf=is_pair)
    assert (leaves, structure) == (pairs, tree.tree_structure([0, 0]))
    assert tree.tree_structure(pairs, is_leaf=is_pair) == structure
    assert tree.tree_structure(pairs) != structure
