"""Each kind of hook inside each transform, and around it: values against the function without hooks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert import nn
from wengert.autograd import graph

X = wg.tensor([0.3, -0.7, 1.1])

Fn = Callable[[wg.Tensor], wg.Tensor]


class Cube(nn.Module):
    """`sum of x^3 times a weight`."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(wg.tensor(1.0))

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        return (x**3).sum() * self.weight


def cube(x: wg.Tensor) -> wg.Tensor:
    return (x**3).sum()


# Per kind of hook: `cube` with such a hook in it, which doubles the gradient if `double`; calls are counted.
Hooked = Callable[[list[int], bool], Fn]


def factor(calls: list[int], double: bool) -> Callable[[Any], Any]:
    def change(g: Any) -> Any:
        calls.append(1)
        return g * 2 if double else None

    return change


def tensor_hook(calls: list[int], double: bool) -> Fn:
    def f(x: wg.Tensor) -> wg.Tensor:
        y = x * 1
        if y.requires_grad:
            y.register_hook(factor(calls, double))
        return cube(y)

    return f


def node_hook(calls: list[int], double: bool) -> Fn:
    def f(x: wg.Tensor) -> wg.Tensor:
        y = x * 1
        change = factor(calls, double)
        if y.requires_grad:
            y.grad_fn.register_hook(lambda gi, go: None if change(go[0]) is None else (gi[0] * 2, *gi[1:]))
        return cube(y)

    return f


def node_prehook(calls: list[int], double: bool) -> Fn:
    def f(x: wg.Tensor) -> wg.Tensor:
        y = x * 1
        change = factor(calls, double)
        if y.requires_grad:
            y.grad_fn.register_prehook(lambda gs: change(gs[0]))
        return cube(y)

    return f


def module_hook(calls: list[int], double: bool) -> Fn:
    net, change = Cube(), factor(calls, double)
    net.register_full_backward_hook(lambda m, gi, go: None if gi[0] is None else change(gi[0]))
    return net


def module_pre_hook(calls: list[int], double: bool) -> Fn:
    net, change = Cube(), factor(calls, double)
    net.register_full_backward_pre_hook(lambda m, go: change(go[0]))
    return net


def multi_hook(calls: list[int], double: bool) -> Fn:
    def f(x: wg.Tensor) -> wg.Tensor:
        y, z = x * 1, x * 1
        if y.requires_grad:
            graph.register_multi_grad_hook([y, z], lambda gs: calls.append(len(gs)))
        return (y * y * z).sum() * (1 if not double else 2)

    return f


def saved_hook(calls: list[int], double: bool) -> Fn:
    def unpack(t: wg.Tensor) -> wg.Tensor:
        calls.append(1)
        return t

    @graph.saved_tensors_hooks(lambda t: t * 1, unpack)
    def f(x: wg.Tensor) -> wg.Tensor:
        return cube(x) * (1 if not double else 2)

    return f


@graph.save_on_cpu()
def offloaded(x: wg.Tensor) -> wg.Tensor:
    return cube(x)


def offload(calls: list[int], double: bool) -> Fn:
    calls.append(1)
    return lambda x: offloaded(x) * (1 if not double else 2)


HOOKED: dict[str, Hooked] = {
    "tensor": tensor_hook,
    "node": node_hook,
    "node_pre": node_prehook,
    "module": module_hook,
    "module_pre": module_pre_hook,
    "multi": multi_hook,
    "saved": saved_hook,
    "save_on_cpu": offload,
}


def backward(f: Fn) -> Fn:
    def gradient(x: wg.Tensor) -> wg.Tensor:
        x = x.detach().requires_grad_()
        f(x).backward()
        return x.grad

    return gradient


# Per transform: what it makes of a function at some points.
ROWS = wg.stack([X, X * 2])
CUBES = wg.stack([ROWS, ROWS * 3, -ROWS])
TRANSFORMS: dict[str, Callable[[Fn], Any]] = {
    "backward": lambda f: backward(f)(X),
    "grad": lambda f: wg.grad(f)(X),
    "vjp": lambda f: wg.vjp(f, X)[1](wg.tensor(1.0))[0],
    "vmap(grad)": lambda f: wg.vmap(wg.grad(f))(ROWS),
    "vmap(backward)": lambda f: wg.vmap(backward(f))(ROWS),
    "jvp(grad)": lambda f: wg.jvp(wg.grad(f), (X,), (X,)),
    "jacrev": lambda f: wg.jacrev(f)(X),
    "grad(backward)": lambda f: wg.grad(lambda x: (wg.grad(f)(x) ** 2).sum())(X),
    "jacfwd(grad)": lambda f: wg.jacfwd(wg.grad(f))(X),
    "jacrev(grad)": lambda f: wg.jacrev(wg.grad(f))(X),
    "hessian": lambda f: wg.hessian(f)(X),
    "vmap(jvp(grad))": lambda f: wg.vmap(lambda x: wg.jvp(wg.grad(f), (x,), (x,))[1])(ROWS),
    "grad(vmap)": lambda f: wg.grad(lambda x: wg.vmap(f)(x).sum())(ROWS),
    "grad(vmap(vmap))": lambda f: wg.grad(lambda x: wg.vmap(wg.vmap(f, in_dims=1), in_dims=2)(x).sum())(
        CUBES
    ),
    "vmap(grad(vmap))": lambda f: wg.vmap(wg.grad(lambda x: wg.vmap(f)(x).sum()))(CUBES),
    "jacrev(vmap)": lambda f: wg.jacrev(wg.vmap(f))(ROWS),
    "grad(jvp)": lambda f: wg.grad(lambda x: wg.jvp(f, (x,), (X,))[0])(X),
    "grad(vmap(jvp))": lambda f: wg.grad(lambda x: wg.vmap(lambda r: wg.jvp(f, (r,), (X,))[0])(x).sum())(
        ROWS
    ),
    "vmap.backward": lambda f: backward(lambda x: wg.vmap(f)(x).sum())(ROWS),
    "checkpoint": lambda f: wg.grad(lambda x: wg.utils.checkpoint.checkpoint(f, x, use_reentrant=False))(X),
}


def numbers(result: Any) -> list[np.ndarray]:
    parts = result if isinstance(result, tuple) else (result,)
    return [part.detach().numpy() for part in parts]


def test_saved_tensor_hooks_inside_a_batch_that_is_differentiated() -> None:
    calls: list[int] = []
    f = saved_hook(calls, False)
    got = wg.grad(lambda x: wg.vmap(f)(x).sum())(ROWS)
    np.testing.assert_allclose(got.numpy(), 3 * ROWS.numpy() ** 2, rtol=1e-5)
    assert calls


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", HOOKED)
def test_a_hook_that_watches_changes_nothing(kind: str, transform: str) -> None:
    calls: list[int] = []
    got = numbers(TRANSFORMS[transform](HOOKED[kind](calls, False)))
    for a, b in zip(got, numbers(TRANSFORMS[transform](cube))):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    assert calls


# In a function of degree 3 that is linear in what the hook doubles, every first derivative of it doubles.
ONCE = [name for name in TRANSFORMS if name not in ("grad(backward)", "jacrev(grad)", "hessian", "jvp(grad)")]


@pytest.mark.parametrize("transform", ONCE)
@pytest.mark.parametrize("kind", HOOKED)
def test_a_hook_that_doubles_doubles_the_gradient(kind: str, transform: str) -> None:
    got = numbers(TRANSFORMS[transform](HOOKED[kind]([], True)))
    for a, b in zip(got, numbers(TRANSFORMS[transform](cube))):
        np.testing.assert_allclose(a, 2 * b, rtol=1e-5)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", ["tensor", "node", "node_pre", "module", "module_pre"])
def test_exceptions_pass_through_transforms(kind: str, transform: str) -> None:
    class Raises(list):
        def append(self, _: int) -> None:
            raise KeyboardInterrupt("stop")

    with pytest.raises(KeyboardInterrupt, match="stop"):
        TRANSFORMS[transform](HOOKED[kind](Raises(), False))
    np.testing.assert_allclose(wg.grad(cube)(X).numpy(), 3 * X.numpy() ** 2, rtol=1e-6)
    assert wg.is_grad_enabled()


def test_hooks_around_a_transform() -> None:
    x = X.detach().requires_grad_()
    seen: list[list[float]] = []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    wg.grad(cube)(y).sum().backward()
    np.testing.assert_allclose(seen[0], 6 * 2 * X.numpy(), rtol=1e-5)
    np.testing.assert_allclose(x.grad.numpy(), 2 * 6 * 2 * X.numpy(), rtol=1e-5)


def test_hooks_on_the_argument_of_a_transform() -> None:
    shapes = []

    def f(x: wg.Tensor) -> wg.Tensor:
        x.register_hook(lambda g: shapes.append(g.shape))
        return cube(x)

    wg.vmap(wg.grad(f))(ROWS)
    assert shapes == [(3,)]


def test_post_accumulate_hooks_inside_transforms() -> None:
    def gradient(x: wg.Tensor) -> wg.Tensor:
        x = (x * 1).detach().requires_grad_()
        out: list[wg.Tensor] = []
        x.register_post_accumulate_grad_hook(lambda p: out.append(p.grad * 2))
        cube(x).backward()
        return out[0]

    np.testing.assert_allclose(wg.vmap(gradient)(ROWS).numpy(), 6 * ROWS.numpy() ** 2, rtol=1e-5)
