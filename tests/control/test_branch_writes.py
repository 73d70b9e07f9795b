"""What branches and bodies of loops write, where they run for all examples of a batch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from support import array, assert_near

F64 = wg.float64


def tensor(x: Any, **settings: Any) -> wg.Tensor:
    return wg.tensor(np.asarray(x), dtype=F64, **settings)


X = tensor([2.0, -1.0, 0.5])


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "mul_": lambda h, x: h.mul_(2),
    "add_": lambda h, x: h.add_(x),
    "sin_": lambda h, x: h.sin_(),
    "setitem": lambda h, x: h.__setitem__(1, x),
    "copy_": lambda h, x: h.copy_(h.flip(0)),
    "index_add_": lambda h, x: h.index_add_(0, wg.tensor([1]), x.reshape(1)),
    "a view": lambda h, x: h[0].mul_(5),
}


def writing(how: str, make: Callable[[Any], Any]) -> Callable[..., Any]:
    """A branch that writes into what `make` makes of a tensor from outside, and reads that tensor, too."""

    def f(x: Any, w: Any) -> Any:
        h = wg.stack([x * w, w * w * x])

        def branch() -> Any:
            own = make(h)
            WRITES[how](own, x)
            return own.sum() + h.sum()

        return wg.cond(x > 0, branch, lambda: h.sum())

    return f


@pytest.mark.parametrize("how", WRITES)
def test_a_branch_writes_into_what_it_made(how: str) -> None:
    f, w = writing(how, wg.clone), tensor([3.0, 3.0, 3.0])
    for slope in (wg.grad(f), wg.grad(f, 1), wg.grad(wg.grad(f, 1), 1)):
        assert_near(wg.vmap(slope)(X, w), [slope(x, y).item() for x, y in zip(X, w)], 1e-12)


OUTSIDE: dict[str, Callable[[Any, Any], Any]] = {
    "a batched tensor": lambda x, w: wg.stack([x, x * w]),
    "a batched constant": lambda x, w: wg.stack([x, x * w]).detach(),
    "a shared tensor": lambda x, w: wg.stack([w, w * w]),
    "a shared constant": lambda x, w: wg.zeros(2, dtype=F64),
    "a tensor from outside of the batch": lambda x, w: OLD,
}
OLD = wg.zeros(2, dtype=F64)

OUTER_WRITES: dict[str, Callable[[Any, Any], Any]] = WRITES | {
    "out": lambda h, x: wg.mul(h, 3.0, out=h),
    "a slice": lambda h, x: h[0:1].add_(1),
    "a reshaped view": lambda h, x: h.view(2, 1).zero_(),
    "an expanded row": lambda h, x: h.unsqueeze(0).unbind(0)[0].fill_(2.0),
    "a detached tensor": lambda h, x: h.detach().mul_(2),
    "data": lambda h, x: h.data[0].mul_(2),
    "masked_fill_": lambda h, x: h.masked_fill_(h > -9, 1.0),
    "uniform_": lambda h, x: h.uniform_(),
}


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("made", OUTSIDE)
@pytest.mark.parametrize("how", OUTER_WRITES)
def test_a_branch_writes_into_nothing_from_outside(how: str, made: str, recorded: bool) -> None:
    w = tensor(3.0, requires_grad=True)
    held: list[Any] = []

    def f(x: Any) -> Any:
        h = OUTSIDE[made](x, w)
        held[:] = [h, h.clone()]

        def branch() -> Any:
            with wg.set_grad_enabled(recorded):
                OUTER_WRITES[how](h, x)
            return h.sum()

        return wg.cond(x > 0, branch, lambda: h.sum())

    for transform in (lambda f: f, wg.grad):
        with pytest.raises(RuntimeError, match="from outside of"):
            wg.vmap(transform(f), randomness="different")(X)
        if made == "a shared constant":
            assert held[0].tolist() == [0.0, 0.0]
    assert OLD.tolist() == [0.0, 0.0]


SHAPED: dict[str, Callable[[Any], Any]] = {
    "resize_": lambda b: b.resize_(5),
    "set_": lambda b: b.set_(wg.ones(3)),
    "unsqueeze_": lambda b: b.unsqueeze_(0),
    "t_": lambda b: b.t_(),
    "data": lambda b: setattr(b, "data", wg.ones(3)),
    "clip": lambda b: wg.nn.utils.clip_grad_norm_([OF_ONES], 0.1),
}
OF_ONES = wg.zeros(3, requires_grad=True)
OF_ONES.grad = wg.ones(3)


@pytest.mark.parametrize("how", SHAPED)
def test_a_branch_gives_no_other_memory_to_a_tensor_from_outside(how: str) -> None:
    b = wg.zeros(3)
    branch = lambda x: (SHAPED[how](b), x)[1]
    with pytest.raises(RuntimeError, match="from outside of it, which would be written whether"):
        wg.vmap(lambda x: wg.cond(x > 9, branch, lambda x: x, x))(X)
    assert b.tolist() == [0.0, 0.0, 0.0]
    assert OF_ONES.grad is not None
    assert OF_ONES.grad.tolist() == [1.0, 1.0, 1.0]


def test_recording_is_what_the_branch_makes_it() -> None:
    def recorded(x: Any) -> Any:
        with wg.enable_grad():
            return x * x * w

    w = tensor(3.0)
    with_operands = lambda x: wg.cond(x > 0, recorded, lambda x: x, x)
    with_closures = lambda x: wg.cond(x > 0, lambda: recorded(x), lambda: x)
    loop = lambda x: wg.while_loop(lambda y: y < 10, recorded, x.abs() + 1)
    for f in (with_operands, with_closures, loop):

        def quiet(x: Any, f: Any = f) -> Any:
            with wg.no_grad():
                return f(x)

        assert_near(wg.vmap(wg.grad(quiet))(X), [wg.grad(quiet)(x).item() for x in X], 1e-12)
    assert not wg.vmap(lambda x: wg.cond(x > 0, lambda: x * w, lambda: x))(X).requires_grad


def test_loops_and_optimisers_write_into_nothing_from_outside() -> None:
    layer = wg.nn.Linear(2, 1)
    batches, before = wg.ones(3, 2) * X.float().unsqueeze(1), layer.weight.tolist()
    sgd = wg.optim.SGD(layer.parameters(), lr=0.5)
    layer(batches).sum().backward()
    norm = wg.nn.BatchNorm1d(2)
    count = wg.zeros((), dtype=wg.int64)

    def fill(x: Any) -> Any:
        buffer = wg.zeros(3)

        def body(i: Any, c: Any) -> Any:
            buffer[0] = c.sum()
            return c + 1

        wg.fori_loop(0, (x.sum() > 0).int(), body, x)
        return buffer.sum()

    def step(x: Any) -> Any:
        sgd.step()
        return x

    def counted(x: Any) -> Any:
        count.add_(1)
        return x

    def zeroed(x: Any) -> Any:
        with wg.no_grad():
            layer.weight[0].zero_()
        return layer(x)

    chosen = lambda branch: lambda x: wg.cond(x.sum() > 0, branch, lambda x: x, x).sum()
    normed = chosen(lambda x: norm(wg.ones(4, 2)).sum() * x)
    for f in (fill, chosen(step), chosen(counted), chosen(lambda x: zeroed(x).expand(2)), normed):
        with pytest.raises(RuntimeError, match="from outside of it, which would be written whether"):
            wg.vmap(f)(batches)
    assert layer.weight.tolist() == before
    assert count.item() == 0
    assert norm.num_batches_tracked.item() == 0


@pytest.mark.parametrize("dtype", [wg.float64, wg.int64, wg.bool])
def test_operands_are_copies(dtype: Any) -> None:
    w, n = wg.tensor([1, 0]).to(dtype), wg.tensor([[1, 0], [1, 1], [0, 1]]).to(dtype)

    def write(a: Any, b: Any) -> Any:
        a.copy_(b)
        return a

    f = lambda x, n: wg.cond(x > 0, write, lambda a, b: a, n, w)
    assert array(wg.vmap(f)(X, n)).tolist() == array(wg.stack([w, n[1], w])).tolist()
    assert n.tolist() == wg.tensor([[1, 0], [1, 1], [0, 1]]).to(dtype).tolist()
    g = lambda x: wg.cond(x > 0, write, lambda a, b: a, w, ~w if dtype == wg.bool else w * 0)
    assert (
        array(wg.vmap(g)(X)).tolist()
        == array(wg.stack([~w if dtype == wg.bool else w * 0, w] * 2)[:3])[[0, 1, 0]].tolist()
    )
    assert w.tolist() == wg.tensor([1, 0]).to(dtype).tolist()


def test_bodies_that_write_into_what_they_carry() -> None:
    def body(state: Any) -> Any:
        i, y = state
        i += 1
        y *= 2.0
        return i, y

    run = lambda n, x: wg.while_loop(lambda state: state[0] < n, body, (wg.tensor(0), x * 1.0))[1]
    n = wg.tensor([0, 3, 1])
    assert array(wg.vmap(run)(n, X)).tolist() == [2.0, -8.0, 1.0]
    assert array(wg.vmap(wg.grad(run, 1))(n, X)).tolist() == [1.0, 8.0, 2.0]
    assert array(wg.jit(wg.vmap(wg.grad(run, 1)))(n, X)).tolist() == [1.0, 8.0, 2.0]


def test_an_operand_that_is_returned_is_no_copy() -> None:
    w, k = tensor([3.0, 1.0], requires_grad=True), wg.tensor(2)

    def f(x: Any) -> Any:
        y, u, n = wg.cond(x > 0, lambda *a: (a[0] * 2, *a[1:]), lambda *a: a, x, w, k)
        assert u is w
        # Python may still decide by it.
        return y * (u if int(n) == 2 else 0).sum()

    out = wg.vmap(f)(X)
    assert array(out).tolist() == [16.0, -4.0, 4.0]
    out.sum().backward()
    assert_near(w.grad, [4.0, 4.0], 0)


def test_a_copy_that_a_reshape_makes_may_be_written() -> None:
    def branch(x: Any) -> Any:
        y = wg.stack([x, 2 * x, 3 * x, x * x]).reshape(2, 2)

        def inner() -> Any:
            flat = y.T.reshape(-1)
            flat += 1
            return flat[1]

        return wg.cond(x > 0, inner, lambda: x)

    assert array(wg.vmap(branch)(X)).tolist() == [7.0, -1.0, 2.5]
