"""Views of other kinds, copies that must not become what they copy, gradients that others hold, graphs that a
custom function makes for itself, and selections inside `vmap`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from support import array
from wengert import Tensor
from wengert.testing import assert_close
from wengert.utils.checkpoint import checkpoint

F64 = wg.float64


def tensor(x: Any, **more: Any) -> Tensor:
    return wg.tensor(x, dtype=F64, **more)


# ---- complex numbers and their parts -------------------------------------------------------------


def test_conj_of_a_real_tensor_is_the_tensor() -> None:
    a = wg.ones(2, requires_grad=True)
    v = a * 1.0
    assert v.conj() is v
    v.conj().mul_(10.0)
    v.sum().backward()
    assert v.tolist() == [10.0, 10.0]
    assert a.grad.tolist() == [10.0, 10.0]


# Writes through parts of complex numbers: each with the same on NumPy arrays, of `z` and a factor `s`.
PARTS: dict[str, Callable[[Any, Any], None]] = {
    "real": lambda z, s: z.real.__imul__(s),
    "imag": lambda z, s: z.imag.__imul__(s),
    "part of real": lambda z, s: z.real[1:].__imul__(s),
    "real of part": lambda z, s: z[1:].T.real.__imul__(s),
    "real of part of part": lambda z, s: z.T[1:].real[0].__imul__(s),
    "assigned element": lambda z, s: z.imag.__setitem__((0, 1), s),
    "assigned": lambda z, s: setattr(z, "real", (z.imag + 1.0) * s),
    "assigned imag": lambda z, s: setattr(z, "imag", (z.real + 1.0) * s),
}


@pytest.mark.parametrize("name", PARTS)
def test_writes_through_parts_of_complex_numbers(name: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    w = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    s, act = 1.75, PARTS[name]

    def numpy_loss(x: Any, s: Any) -> Any:
        z = x * (1 + 0.5j)
        act(z, s)
        return (z * w).real.sum()

    def loss(x: Tensor, s: Tensor) -> Tensor:
        z = x * (1 + 0.5j)
        act(z, s)
        return (z * wg.tensor(w)).real.sum()

    h = 1e-6
    slope = (numpy_loss(x, s + h) - numpy_loss(x, s - h)) / (2 * h)
    # The gradient is dL/da + i dL/db.
    want = np.zeros((2, 3), complex)
    for i in np.ndindex(2, 3):
        e = np.zeros((2, 3))
        e[i] = h
        want[i] = (numpy_loss(x + e, s) - numpy_loss(x - e, s)) / (2 * h)
        want[i] += 1j * (numpy_loss(x + 1j * e, s) - numpy_loss(x - 1j * e, s)) / (2 * h)

    leaf, factor = wg.tensor(x, requires_grad=True), tensor(s, requires_grad=True)
    out = loss(leaf, factor)
    out.backward()
    assert np.isclose(out.item(), numpy_loss(x, s))
    assert np.allclose(array(leaf.grad), want)
    assert np.isclose(0.0 if factor.grad is None else factor.grad.item(), slope)
    two = wg.stack([wg.tensor(x) * 0.5, wg.tensor(x)])
    gx, gs = wg.vmap(wg.grad(loss, argnums=(0, 1)), in_dims=(0, None))(two, factor.detach())
    assert np.allclose(array(gx[1]), want)
    assert np.isclose(gs[1].item(), slope)
    t = wg.tensor(rng.normal(size=(2, 3)) + 0j)
    _, moved = wg.jvp(loss, (wg.tensor(x), factor.detach()), (t, tensor(1.0)))
    assert np.isclose(moved.item(), (want.real * array(t).real).sum() + slope)


def test_parts_of_plain_complex_numbers_share_memory_both_ways() -> None:
    z = wg.tensor([1 + 2j, 3 + 4j])
    re = z.real
    re.mul_(10.0)
    assert z.tolist() == [10 + 2j, 30 + 4j]
    z[0] = 5 - 1j
    assert re.tolist() == [5.0, 30.0]
    z.imag = wg.tensor([7.0, 8.0])
    z.real = 0.0
    assert z.tolist() == [7j, 8j]
    x = wg.zeros(2, requires_grad=True)
    with pytest.raises(TypeError, match="imag: a complex tensor expected"):
        x.imag = 1.0


def test_pairs_and_complex_numbers_are_views_of_each_other() -> None:
    a = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    def f(a: Tensor) -> Tensor:
        pairs = a * 1.0
        z = wg.view_as_complex(pairs)
        z.mul_(2j)
        z[1].mul_(3.0)
        wg.view_as_real(z)[0, 0] = a[1, 1] * 5.0
        return (pairs * tensor([[1.0, 10.0], [100.0, 1000.0]])).sum()

    # (a, b) -> (-2 b, 2 a), the second three times, and the first number exchanged for 5 a11.
    f(a).backward()
    want = [[20.0, 0.0], [6000.0, -600.0 + 5.0]]
    assert a.grad.tolist() == want
    assert wg.grad(f)(a.detach()).tolist() == want
    assert wg.vmap(wg.grad(f))(wg.stack([a.detach(), a.detach()])).tolist() == [want, want]
    assert wg.jacfwd(f)(a.detach()).tolist() == want


def test_a_complex_leaf_is_not_written_through_its_parts() -> None:
    z = wg.tensor([1 + 2j], requires_grad=True)
    with pytest.raises(RuntimeError, match="view of a leaf"):
        z.real.mul_(2.0)
    with wg.no_grad():
        z.real.mul_(2.0)
    assert z.is_leaf
    assert z.tolist() == [2 + 2j]


# ---- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["copy_", "out", "add of nothing", "half"])
def test_a_copy_of_a_leaf_is_no_leaf(how: str) -> None:
    leaf, y = wg.ones(3, requires_grad=True), wg.zeros(3)
    view = y[:2]
    if how == "out":
        wg.cat([leaf], out=y)
    elif how == "half":
        y = wg.zeros(3, dtype=wg.float16)
        view = y[:2]
        y.copy_(leaf)
    else:
        y.copy_(leaf if how == "copy_" else leaf.expand(3).reshape(3))
    assert not y.is_leaf
    y.mul_(2.0)
    view.mul_(2.0)
    y.sum().backward()
    assert leaf.grad.tolist() == [4.0, 4.0, 2.0]


def test_a_copy_has_hooks_and_a_gradient_of_its_own() -> None:
    x = wg.ones(2, requires_grad=True)
    a, y = x * 1, wg.zeros(2)
    y.copy_(a)
    y.retain_grad()
    a.retain_grad()
    (y * 3 + a).sum().backward()
    assert y.grad.tolist() == [3.0, 3.0]
    assert a.grad.tolist() == [4.0, 4.0]
    z = wg.vmap(lambda x: wg.zeros(2).copy_(x).mul_(2.0))(wg.ones(3, 2))
    assert z.tolist() == [[2.0, 2.0]] * 3


def test_results_that_were_their_operand() -> None:
    x = wg.tensor(2.0)
    found = [x.max(0).values, x.min(0).values, x.cumprod(0), x.cumsum(0), x.logcumsumexp(0)]
    found.append(wg.tensor(2).clamp(-5, 5))
    x.mul_(3)
    assert [y.item() for y in found] == [2.0] * 6
    y = wg.tensor([2.0], requires_grad=True) * 1
    p = y.prod(0)
    y.mul_(3)
    assert p.item() == 2.0
    assert not wg.zeros(0, requires_grad=True).cumprod(0).is_leaf
    i = wg.tensor([1, 2])
    j = i.clamp(-(2**63), 2**63 - 1)
    i.mul_(2)
    assert j.tolist() == [1, 2]


# ---- gradients that others hold ------------------------------------------------------------------


def test_gradients_are_added_to_in_place() -> None:
    flat = wg.zeros(4)
    w = wg.ones(2, requires_grad=True)
    w.grad = flat[:2]
    (w * 3).sum().backward()
    assert flat.tolist() == [3.0, 3.0, 0.0, 0.0]
    held = w.grad
    (w * 2).sum().backward()
    assert held.tolist() == [5.0, 5.0]
    assert flat.tolist() == [5.0, 5.0, 0.0, 0.0]
    numbers = held.numpy()
    (w * 2).sum().backward()
    assert numbers.tolist() == [7.0, 7.0]


def test_a_gradient_that_was_saved_and_then_added_to_is_noticed() -> None:
    w = wg.ones(2, requires_grad=True)
    (w * 3).sum().backward()
    loss = (w * w.grad).sum()
    (w * 2).sum().backward()
    with pytest.raises(RuntimeError, match="modified in place by accumulate_grad_"):
        loss.backward()


def test_gradients_that_cannot_be_written_are_replaced() -> None:
    w, wide = wg.ones(2, requires_grad=True), wg.ones(1).expand(2)
    w.grad = wide
    (w * 3).sum().backward()
    assert w.grad.tolist() == [4.0, 4.0]
    assert wide.tolist() == [1.0, 1.0]
    # A gradient that is its own summand.
    v = wg.tensor([1.0, 2.0])
    w.grad = v
    w.mul(1.0).backward(v)
    assert w.grad.tolist() == [2.0, 4.0]
    assert v.tolist() == [2.0, 4.0]
    # create_graph makes a new one.
    held = w.grad
    (w * w).sum().backward(create_graph=True)
    assert held.tolist() == [2.0, 4.0]
    assert w.grad.requires_grad


def test_gradients_are_written_inside_a_batch() -> None:
    def f(x: Tensor) -> Tensor:
        w = x.clone().requires_grad_()
        (w * w).sum().backward()
        w.grad.mul_(10.0)
        w.grad[0] = x[1]
        return w.grad

    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    assert wg.vmap(f)(x).tolist() == [[2.0, 40.0], [4.0, 80.0]]
    assert f(x[0]).tolist() == [2.0, 40.0]

    def clipped(x: Tensor) -> Tensor:
        w = x.clone().requires_grad_()
        (w * w).sum().backward()
        wg.nn.utils.clip_grad_norm_([w], 1.0)
        return w.grad

    assert_close(wg.vmap(clipped)(x), wg.stack([clipped(row) for row in x]))


# ---- graphs that a custom function makes for itself ----------------------------------------------


class Inner(wg.autograd.Function):
    """Keeps a graph of its own and walks it in backward, as a re-entrant checkpoint does."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        with wg.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = ctx.x.sin() * 2
        assert ctx.y.requires_grad
        return ctx.y.detach()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        ctx.y.backward(g, retain_graph=True)
        found = ctx.x.grad
        ctx.x.grad = None
        return found


class FixedPoint(wg.autograd.Function):
    """`z = cos(x z)` by iteration, and its derivative by the graph of one step,
    as deep equilibrium models do.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        z = wg.zeros_like(x)
        for _ in range(100):
            z = (x * z).cos()
        with wg.enable_grad():
            ctx.z, ctx.x = z.detach().requires_grad_(), x.detach().requires_grad_()
            ctx.step = (ctx.x * ctx.z).cos()
        return z

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        pull = lambda u: wg.autograd.grad(ctx.step, [ctx.z, ctx.x], u, retain_graph=True)
        u = g
        for _ in range(100):
            u = g + pull(u)[0]
        return pull(u)[1]


def test_a_graph_made_in_forward_is_walked_in_backward() -> None:
    x = tensor([0.3, 0.5], requires_grad=True)
    for _ in range(2):
        x.grad = None
        y = Inner.apply(x)
        y.sum().backward()
        assert_close(x.grad, 2 * x.detach().cos())
    assert_close(wg.grad(lambda x: Inner.apply(x).sum())(x.detach()), 2 * x.detach().cos())
    z = FixedPoint.apply(x)
    x.grad = None
    z.sum().backward()
    # z' = -sin(x z) (z + x z'), solved for z'.
    s, z = (x * z).sin().detach(), z.detach()
    assert_close(x.grad, -s * z / (1 + s * x.detach()))
    again = checkpoint(lambda x: FixedPoint.apply(x) * x, x)
    assert_close(wg.autograd.grad(again.sum(), x)[0], z + x.detach() * -s * z / (1 + s * x.detach()))


# ---- what a mask selects inside vmap -------------------------------------------------------------

SELECTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "logsumexp": lambda x: x[x > 0].logsumexp(0),
    "logsumexp keepdim": lambda x: x[x > 0].logsumexp(-1, keepdim=True),
    "std": lambda x: x[x < 3].std(keepdim=True),
    "std of axis": lambda x: x[x < 3].std(0),
    "std biased": lambda x: x[x < 3].std(unbiased=False),
    "std by position": lambda x: x[x < 3].std(False),
    "var": lambda x: x[x < 3].var(dim=0, keepdim=True, correction=0),
    "sum": lambda x: x[x > 0].sum(0, keepdim=True),
    "mean": lambda x: x[x > 0].mean(dim=(0,)),
    "norm": lambda x: x[x > 0].norm(2.0, 0),
    "amax": lambda x: x[x > 0].amax(0, keepdim=True),
}


def limited(x: Tensor) -> Tensor:
    s = x[x > 0]
    s[s > 2] = 2.5
    s[s < 1] *= 3.0
    s += 1.0
    s.mul_(2.0).sqrt_()
    return s.sum()


def exchanged(x: Tensor) -> Tensor:
    s = x[x > -1.5]
    t = s.exp()
    s[:] = s * 2.0
    m = t > 2
    s[m] = t[m]
    return (s * t).sum() + x.sum()


SELECTIONS |= {"assigned": limited, "exchanged": exchanged}


@pytest.mark.parametrize("name", SELECTIONS)
def test_selections_do_what_tensors_do(name: str) -> None:
    f = SELECTIONS[name]
    x = tensor([[1.0, -2.0, 3.5, 0.5], [-1.0, 0.25, 2.0, 1.5], [2.5, 2.75, 0.75, -3.0]])
    assert_close(wg.vmap(f)(x), wg.stack([f(row) for row in x]))
    scalar = lambda x: f(x).sum()
    assert_close(wg.vmap(wg.grad(scalar))(x), wg.stack([wg.grad(scalar)(row) for row in x]))


@pytest.mark.parametrize("alias", ["contiguous", "detach", "data"])
@pytest.mark.parametrize("view", ["T", "columns", "reversed", "whole", "row"])
def test_a_view_that_was_memory_when_it_was_made(view: str, alias: str) -> None:
    """Its root is a constant that a write makes depend on the argument; NumPy says what shares memory."""
    views = {
        "T": lambda z: z.T,
        "columns": lambda z: z[:, 1:],
        "reversed": lambda z: z[::-1],
        "whole": lambda z: z[:],
        "row": lambda z: z[1],
    }
    aliases = {
        "contiguous": lambda t: np.ascontiguousarray(t) if isinstance(t, np.ndarray) else t.contiguous(),
        "detach": lambda t: t if isinstance(t, np.ndarray) else t.detach(),
        "data": lambda t: t if isinstance(t, np.ndarray) else t.data,
    }

    def f(x, zeros):
        z = zeros((2, 3))
        t = views[view](z)
        z += x
        c = aliases[alias](t)
        z *= 3.0
        c += 1.0
        return (c * c).sum() + 10.0 * (z * z).sum() + 100.0 * (t * t).sum()

    expected = f(0.5, np.zeros)
    make = lambda shape: wg.zeros(shape, dtype=wg.float64)
    x = wg.tensor([0.25, 0.5], dtype=wg.float64)
    found = {
        "plain": f(x[1], make),
        "vmap": wg.vmap(lambda x: f(x, make))(x)[1],
        "vmap of grad": wg.vmap(wg.value_and_grad(lambda x: f(x, make)))(x)[0][1],
        "jvp": wg.jvp(lambda x: f(x, make), (x[1],), (x[0],))[0],
        "linearize": wg.linearize(lambda x: f(x, make), x[1])[0],
        "jvp of grad": wg.jvp(wg.value_and_grad(lambda x: f(x, make)), (x[1],), (x[0],))[0][0],
    }
    for name, value in found.items():
        assert value.item() == pytest.approx(expected), name


@pytest.mark.parametrize(
    "fill", [lambda d: d.fill_(0.75), lambda d: d.copy_(wg.full((1, 3), 0.75)), lambda d: d.mul_(0.5)]
)
def test_a_view_of_what_shares_numbers_and_was_written(fill: Callable[[Tensor], Any]) -> None:
    """Memory that was exchanged begins elsewhere: views of the view lie in the new one."""

    def f(x: Tensor) -> Tensor:
        y = x * 1.0
        shared = y[1:].data
        view = shared[...]
        fill(shared)
        turned = view.T
        with wg.no_grad():
            view.add_(shared.sum() * 0.25 + 0.5)
        return sum((k + 1) * (t * t).sum() for k, t in enumerate((y, shared, view, turned, turned[:, 0])))

    x = wg.tensor([[1.0, 2.0, 3.0], [-1.0, 0.5, 4.0]], dtype=F64)
    expected = f(x).item()
    one = wg.tensor(1.0, dtype=F64)
    assert wg.value_and_grad(f)(x)[0].item() == expected
    assert wg.jvp(lambda s: wg.value_and_grad(f)(x + s * 0.0)[0], (one,), (one,))[0].item() == expected
    assert wg.linearize(lambda s: f(x + s * 0.0), one)[0].item() == expected
    assert wg.vmap(f)(wg.stack([x, x]))[1].item() == expected
