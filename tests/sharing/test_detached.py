"""What is detached, and what becomes a leaf, inside transforms, where a value is no memory and shares its
numbers all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import wengert as wg
from wengert import Tensor
from wengert.testing import assert_close

F64 = wg.float64


def tensor(x: Any, **more: Any) -> Tensor:
    return wg.tensor(x, dtype=F64, **more)


# ---- views of what is detached where a value is no memory ----------------------------------------

# What is written, after a first write, of a detached tensor `d`.
DETACHED: dict[str, Callable[[Tensor], Tensor]] = {
    "view": lambda d: d[...],
    "transposed": lambda d: d.T,
    "row": lambda d: d[0],
    "detached view": lambda d: d.T.detach(),
    "view of a detached view": lambda d: d.T.detach()[0],
    "detached twice": lambda d: d[1:].detach().reshape(-1).detach(),
}
STORES: dict[str, Callable[[Tensor], Any]] = {
    "all": lambda v: v.__setitem__(..., 0.75),
    "rows": lambda v: v.__setitem__([0], 0.5),
    "mask": lambda v: v.__setitem__(v > 6.0, 0.5),
    "masked_fill_": lambda v: v.masked_fill_(v > 6.0, 0.5),
    "fill_": lambda v: v.fill_(0.75),
    "mul_": lambda v: v.mul_(3.0),
}


@pytest.mark.parametrize("first", [True, False], ids=["written before", "new"])
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("view", DETACHED)
def test_writes_through_what_is_detached_reach_the_base_inside_jvp(
    view: str, store: str, first: bool
) -> None:
    def f(x: Tensor) -> Tensor:
        y = x * 1.0
        d = y.detach()
        if first:
            d.mul_(2.0)
        v = DETACHED[view](d)
        STORES[store](v)
        seen.append((y, d, v))
        return (y * y).sum() + 2.0 * (y * d).sum() + (y.sum() * v).sum()

    seen: list[tuple[Tensor, ...]] = []
    x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    f(x.detach())
    y, d, v = (t.clone() for t in seen[0])
    # All three are one memory, of which `y` alone has a history: y' = 1.
    value, slope = (y * y).sum() + 2.0 * (y * d).sum() + (y.sum() * v).sum(), 2.0 * y + 2.0 * d + v.sum()
    inside = lambda s: wg.value_and_grad(f)(x + s * 0.0)
    found = wg.jvp(inside, (x[0, 0],), (x[0, 0],))[0]
    got = {t.shape: t for t in found}
    assert_close(got[()], value)
    assert_close(got[(2, 3)], slope)


def test_what_is_detached_follows_its_base_after_a_constant_took_its_place() -> None:
    def f(x: Tensor) -> Tensor:
        y = x * 1.0
        d = y.detach()
        d.mul_(y.sum())
        y.copy_(tensor([3.0, 4.0]))
        d.mul_(2.0)
        y.mul_(2.0)
        return (y + 10.0 * d).sum()

    x = tensor([1.0, 2.0])
    # One memory: [3, 4] twice doubled, with weight 1 + 10.
    assert_close(f(x.detach()), tensor(11.0 * 28.0))
    assert_close(wg.jvp(f, (x,), (x,))[0], tensor(11.0 * 28.0))


def test_views_of_views_of_what_is_detached_follow_the_base() -> None:
    def f(x: Tensor) -> Tensor:
        y = x * 1.0
        d = y.detach()
        r = d[1:]
        d.mul_(y.sum() * 0.2)
        v = r.T
        y.mul_(2.0)
        return y.sum() + 10.0 * r.sum() + 100.0 * v.sum()

    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    # Four times x; the second row is [12, 16].
    assert_close(f(x.detach()), tensor(40.0 + 110.0 * 28.0))
    assert_close(wg.jvp(f, (x,), (x,))[0], tensor(40.0 + 110.0 * 28.0))


def test_a_copy_does_not_follow_what_it_was_copied_from() -> None:
    def f(x: Tensor) -> Tensor:
        y = x * 1.0
        d, z = y.detach(), wg.zeros(2, dtype=F64)
        d.mul_(y.sum())
        y.copy_(tensor([3.0, 4.0]))
        z.copy_(d)
        y.mul_(2.0)
        return (z + 10.0 * d).sum()

    x = tensor([1.0, 2.0])
    assert_close(f(x.detach()), tensor(7.0 + 140.0))
    assert_close(wg.jvp(f, (x,), (x,))[0], tensor(7.0 + 140.0))


def test_a_copy_of_an_argument_does_not_follow_the_memory_of_the_argument() -> None:
    x = tensor([1.0, 2.0])

    def f(arg: Tensor) -> Tensor:
        z = wg.zeros(2, dtype=F64)
        z.copy_(arg)
        x.mul_(2.0)
        return z.sum()

    value, slope = wg.jvp(f, (x,), (wg.ones(2, dtype=F64),))
    assert (value.item(), slope.item()) == (3.0, 2.0)


# ---- leaves --------------------------------------------------------------------------------------

TRANSFORMS: dict[str, Callable[[Callable[[Tensor], Tensor], Tensor], Any]] = {
    "grad": lambda f, x: wg.grad(f)(x),
    "jvp": lambda f, x: wg.jvp(f, (x,), (x,)),
    "linearize": lambda f, x: wg.linearize(f, x),
    "vmap": lambda f, x: wg.vmap(f)(wg.stack([x, x])),
    "vmap of grad": lambda f, x: wg.vmap(wg.grad(f))(wg.stack([x, x])),
    "jvp of grad": lambda f, x: wg.jvp(wg.grad(f), (x,), (x,)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_tensor_from_outside_does_not_become_a_leaf_of_a_transform(name: str) -> None:
    x, w = tensor([1.0, 2.0]), tensor([3.0, 4.0])
    with pytest.raises(
        RuntimeError, match="from outside of the transform that runs cannot become a leaf in it"
    ):
        TRANSFORMS[name](lambda x: (w.requires_grad_() * x).sum(), x)
    # As it was, and of use outside.
    assert not w.requires_grad
    w.requires_grad_()
    TRANSFORMS[name](lambda x: (w.requires_grad_() * x).sum(), x)
    (w * w).sum().backward()
    assert w.grad.tolist() == [6.0, 8.0]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_view_from_outside_does_not_become_a_leaf_of_a_transform(name: str) -> None:
    x, w = tensor([1.0, 2.0]), tensor([3.0, 4.0])
    v = w[:]
    with pytest.raises(
        RuntimeError, match="from outside of the transform that runs cannot become a leaf in it"
    ):
        TRANSFORMS[name](lambda x: (v.requires_grad_() * x).sum(), x)
    # As it was, still a view, and of use outside.
    assert not v.requires_grad
    w[0] = 5.0
    assert (v + 1).tolist() == [6.0, 5.0]


def test_a_view_of_an_outer_transform_does_not_become_a_leaf_of_an_inner_one() -> None:
    def outer(x: Tensor) -> Tensor:
        w = tensor([3.0, 4.0])
        v = w[:]
        with pytest.raises(RuntimeError, match="from outside of the transform that runs"):
            wg.grad(lambda y: (v.requires_grad_() * y).sum())(x)
        leaf = w[:].requires_grad_()
        (leaf * 3.0).sum().backward()
        assert leaf.grad.tolist() == [3.0, 3.0]
        return (x * v).sum()

    assert wg.grad(outer)(tensor([1.0, 2.0])).tolist() == [3.0, 4.0]


# What is made inside of memory from outside is a leaf there.
INSIDE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "detach": lambda w, x: w.detach().requires_grad_(),
    "data": lambda w, x: w.data.requires_grad_(),
    "view": lambda w, x: w[:].requires_grad_(),
    "Tensor": lambda w, x: wg.Tensor(w.float()).requires_grad_(),
    "Parameter": lambda w, x: wg.nn.Parameter(w).requires_grad_(),
    "clone": lambda w, x: w.clone().requires_grad_(),
    "numpy": lambda w, x: wg.from_numpy(w.numpy()).requires_grad_(),
    "computed": lambda w, x: (w * 1.0).requires_grad_(),
    "argument": lambda w, x: x.detach().requires_grad_(),
}


@pytest.mark.parametrize("made", INSIDE)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_what_is_made_inside_is_a_leaf_there(name: str, made: str) -> None:
    x, w = tensor([1.0, 2.0]), tensor([1.0, 2.0])

    def f(x: Tensor) -> Tensor:
        leaf = INSIDE[made](w, x)
        (leaf * leaf).sum().backward()
        return (leaf.grad.detach() * x).sum()

    assert f(x).item() == 10.0
    found = TRANSFORMS[name](f, x)
    if name == "vmap":
        assert found.tolist() == [10.0, 10.0]
    elif name == "grad":
        assert found.tolist() == [2.0, 4.0]
    assert not w.requires_grad
