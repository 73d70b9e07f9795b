"""In-place writes and the history of what they write: under `no_grad` inside transforms, to tensors from
outside of them, of plain tensors with recorded values, and of what an operation had saved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.numpy as xp
from wengert import Tensor
from wengert.testing import assert_close

F64 = wg.float64


def tensor(x: Any, **more: Any) -> Tensor:
    return wg.tensor(x, dtype=F64, **more)


# ---- under no_grad, inside transforms ------------------------------------------------------------


def halved(x: Tensor) -> Tensor:
    """The sum of `x` with other numbers: the write is no part of the graph, so every derivative is 1."""
    y = x * 1.0
    with wg.no_grad():
        y.mul_(0.5)
    return y.sum()


def halved_part(x: Tensor) -> Tensor:
    y = x * 1.0
    with wg.no_grad():
        y[1:].mul_(0.5)
        y[0] = 7.0
    return y.sum()


def halved_by_itself(x: Tensor) -> Tensor:
    """What is written depends on `x`, and is not recorded either."""
    y = x * 1.0
    with wg.no_grad():
        y.mul_(x).copy_(y + x)
    return y.sum()


IN_REVERSE: dict[str, Callable[[Any], Callable[[Tensor], Tensor]]] = {
    "grad": lambda f: lambda x: wg.grad(f)(x[0]),
    "vmap of grad": lambda f: wg.vmap(wg.grad(f)),
    "grad of vmap": lambda f: wg.grad(lambda x: wg.vmap(f)(x).sum()),
    "jvp of grad": lambda f: lambda x: wg.jvp(wg.grad(f), (x[0],), (x[1],))[0],
    "vmap of jvp of grad": lambda f: wg.vmap(lambda x: wg.jvp(wg.grad(f), (x,), (x,))[0]),
    "vmap of vmap of grad": lambda f: lambda x: wg.vmap(wg.vmap(wg.grad(f)))(wg.stack([x, x])),
    "linearize of grad": lambda f: lambda x: wg.linearize(wg.grad(f), x[0])[0],
    "grad of linearize": lambda f: wg.grad(lambda x: wg.linearize(wg.vmap(f), x)[0].sum()),
    "grad of jvp": lambda f: wg.grad(lambda x: wg.jvp(wg.vmap(f), (x,), (x,))[0].sum()),
}


@pytest.mark.parametrize("f", [halved, halved_part, halved_by_itself])
@pytest.mark.parametrize("way", IN_REVERSE)
def test_writes_under_no_grad_keep_the_tape(way: str, f: Callable[[Tensor], Tensor]) -> None:
    x = tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 4.0]])
    assert set(np.ravel(IN_REVERSE[way](f)(x).tolist())) == {1.0}


def test_shared_values_keep_the_tape_when_examples_begin_to_differ() -> None:
    w, x = tensor([1.0, 2.0], requires_grad=True), tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def f(x: Tensor) -> Tensor:
        y = w * 2.0
        with wg.no_grad():
            y.add_(x)
        return y

    out = wg.vmap(f)(x)
    assert out.tolist() == [[3.0, 6.0], [5.0, 8.0], [7.0, 10.0]]
    out.sum().backward()
    assert w.grad.tolist() == [6.0, 6.0]


def test_a_leaf_inside_a_batch_stays_a_leaf() -> None:
    def f(x: Tensor) -> Tensor:
        w = x.clone().requires_grad_()
        with wg.no_grad():
            w.sub_(x * 0.5)
        assert w.is_leaf
        assert w.requires_grad
        (w * w).sum().backward()
        return w.grad

    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    assert wg.vmap(f)(x).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_constants_keep_the_graph_inside_transforms() -> None:
    def f(x: Tensor) -> Tensor:
        y = (x * 2).zero_()
        assert y.requires_grad
        leaf = x.detach().requires_grad_()
        z = (leaf * 2).fill_(3.0)
        z.sum().backward()
        return leaf.grad + y.sum()

    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    g = wg.grad(lambda x: wg.vmap(f)(x).sum())(x)
    assert g.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert wg.vmap(lambda x: f(x.detach().requires_grad_() * 1).sum())(x).tolist() == [0.0, 0.0]


# ---- training inside a batch ---------------------------------------------------------------------


def by_hand(x: Tensor, clear: str) -> Tensor:
    w = wg.zeros(3, dtype=F64, requires_grad=True)
    for _ in range(4):
        if clear == "none":
            w.grad = None
        elif w.grad is not None:
            w.grad.zero_()
        ((w * x).sum() - 1.0).square().backward()
        with wg.no_grad():
            w -= 0.05 * w.grad
    return w.detach()


@pytest.mark.parametrize("clear", ["none", "zero_"])
def test_a_training_loop_in_a_batch(clear: str) -> None:
    x = tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])
    assert_close(wg.vmap(lambda x: by_hand(x, clear))(x), wg.stack([by_hand(row, clear) for row in x]))
    # The error falls by the factor 1 - 2 lr |x|^2 in each step.
    error = 1.0 - (wg.vmap(lambda x: by_hand(x, clear))(x) * x).sum(1)
    assert_close(error, (1 - 0.1 * (x * x).sum(1)) ** 4)


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: wg.optim.SGD(p, lr=0.05),
    "momentum": lambda p: wg.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.1),
    "dampening": lambda p: wg.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.5, maximize=True),
    "nesterov": lambda p: wg.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "Adam": lambda p: wg.optim.Adam(p, lr=0.1, weight_decay=0.1),
    "amsgrad": lambda p: wg.optim.Adam(p, lr=0.1, amsgrad=True, betas=(0.5, 0.6)),
    "AdamW": lambda p: wg.optim.AdamW(p, lr=0.1, weight_decay=0.2),
    "RMSprop": lambda p: wg.optim.RMSprop(p, lr=0.05, momentum=0.5, centered=True),
    "Adagrad": lambda p: wg.optim.Adagrad(p, lr=0.1),
    "Adadelta": lambda p: wg.optim.Adadelta(p),
    "NAdam": lambda p: wg.optim.NAdam(p),
    "RAdam": lambda p: wg.optim.RAdam(p),
    "Adamax": lambda p: wg.optim.Adamax(p),
    "ASGD": lambda p: wg.optim.ASGD(p),
    "Rprop": lambda p: wg.optim.Rprop(p),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_optimisers_in_a_batch(name: str) -> None:
    def train(x: Tensor) -> Tensor:
        w = wg.full((3,), 0.25, dtype=F64, requires_grad=True)
        optimizer = OPTIMIZERS[name]([w])
        for _ in range(3):
            optimizer.zero_grad()
            ((w * x).sum() - 1.0).square().backward()
            optimizer.step()
        return w.detach()

    x = tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])
    assert_close(wg.vmap(train)(x), wg.stack([train(row) for row in x]))
    moved = wg.jvp(train, (x[0],), (x[1],))[0]
    assert_close(moved, train(x[0]))


@pytest.mark.parametrize("name", ["momentum", "Adam", "AdamW", "Adagrad"])
def test_steps_of_complex_parameters_in_a_batch(name: str) -> None:
    def train(x: Tensor) -> Tensor:
        w = wg.full((2,), 0.25 + 0.5j, dtype=wg.complex128, requires_grad=True)
        optimizer = OPTIMIZERS[name]([w])
        for _ in range(2):
            optimizer.zero_grad()
            ((w * x).sum().abs() - 1.0).square().backward()
            optimizer.step()
        return w.detach()

    x = wg.tensor([[1.0 + 1j, 2.0], [0.5, -1.0 - 2j]], dtype=wg.complex128)
    assert np.allclose(wg.vmap(train)(x).numpy(), wg.stack([train(row) for row in x]).numpy())


def test_a_step_on_parameters_from_outside_of_the_batch_is_an_error() -> None:
    for name, make in OPTIMIZERS.items():
        w = wg.full((3,), 0.25, dtype=F64, requires_grad=True)
        optimizer = make([w])

        def train(x: Tensor, w: Tensor = w, optimizer: Any = optimizer) -> Tensor:
            w.grad = x * 1.0
            optimizer.step()
            return x

        with pytest.raises(RuntimeError, match="from outside of vmap was written"):
            wg.vmap(train)(tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]]))
        # What some of them do first is no different between examples.
        assert_close(w, wg.full((3,), 0.25, dtype=F64), atol=1e-6 if name == "ASGD" else 0.0)


# ---- tensors from outside of a transform ---------------------------------------------------------


def push(f: Callable[[Tensor], Tensor], x: Tensor) -> Any:
    return wg.jvp(f, (x,), (x,))


TRANSFORMS: dict[str, tuple[str, Callable[[Callable[[Tensor], Tensor], Tensor], Any]]] = {
    "grad": ("grad", lambda f, x: wg.grad(f)(x)),
    "value_and_grad": ("grad", lambda f, x: wg.value_and_grad(f)(x)),
    "vjp": ("grad", wg.vjp),
    "jacrev": ("grad", lambda f, x: wg.jacrev(f)(x)),
    "jvp": ("jvp", push),
    "jacfwd": ("jvp", lambda f, x: wg.jacfwd(f)(x)),
    "linearize": ("jvp", wg.linearize),
    "grad of jvp": ("jvp", lambda f, x: wg.grad(lambda x: push(f, x)[0])(x)),
    "jvp of grad": ("grad", lambda f, x: push(wg.grad(f), x)),
}

OUTSIDE: dict[str, tuple[str, Callable[[Tensor, Tensor], Any]]] = {
    "add_": ("add_", lambda c, x: c.add_(x)),
    "copy_": ("copy_", lambda c, x: c.copy_(x)),
    "part": (r"x\[...\] = value", lambda c, x: c.__setitem__(slice(1, None), x[1:])),
    "mask": (r"x\[...\] = value", lambda c, x: c.__setitem__(c == 1.0, x[0])),
    "view": ("mul_", lambda c, x: c[1:].mul_(x[1:])),
    "detached": ("mul_", lambda c, x: c.detach().mul_(x)),
    "out": ("exp_", lambda c, x: wg.exp(x, out=c)),
}


@pytest.mark.parametrize("write", OUTSIDE)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_writes_to_tensors_from_outside_are_errors(transform: str, write: str) -> None:
    c, x = tensor([1.0, 2.0, 3.0]), tensor([0.5, 1.5, 2.5])
    kind, run = TRANSFORMS[transform]
    op, act = OUTSIDE[write]

    def f(x: Tensor) -> Tensor:
        act(c, x)
        return (x * c).sum()

    for _ in range(2):
        with pytest.raises(RuntimeError, match=rf"^{op}: .* from outside of {kind} was written"):
            run(f, x)
        assert c.tolist() == [1.0, 2.0, 3.0]
        assert not c.requires_grad
        assert c._version == 0


def test_writes_that_are_not_differentiated_go_through() -> None:
    for _, run in TRANSFORMS.values():
        c, x = tensor([1.0, 2.0]), tensor([3.0, 4.0])
        inside = []

        def f(x: Tensor, c: Tensor = c, inside: list[Tensor] = inside) -> Tensor:
            c.mul_(2.0)
            own = wg.zeros(2, dtype=F64)
            own.add_(x)
            inside.append(own)
            return (x * c).sum()

        run(f, x)
        assert c.tolist() == [2.0, 4.0]


def test_running_averages_inside_transforms() -> None:
    for name, (_, run) in TRANSFORMS.items():
        if name == "jacfwd":
            continue
        mean, x = wg.zeros(3, dtype=F64), tensor([1.0, 2.0, 3.0])

        def f(x: Tensor, mean: Tensor = mean) -> Tensor:
            with wg.no_grad():
                mean.mul_(0.5).add_(x * 0.5)
            return (x * x).sum()

        for _ in range(2):
            run(f, x)
        assert_close(mean, 0.75 * x)
        assert not mean.requires_grad
        assert (mean + 1).tolist() == [1.75, 2.5, 3.25]


def test_batch_norm_in_training_inside_transforms() -> None:
    x = tensor(np.random.default_rng(0).normal(size=(5, 3)))
    expected = wg.nn.BatchNorm1d(3, dtype=F64)
    expected(x)
    for _, run in TRANSFORMS.values():
        layer = wg.nn.BatchNorm1d(3, dtype=F64)
        if run is TRANSFORMS["jacfwd"][1]:
            continue
        run(lambda x, layer=layer: layer(x).square().sum(), x)
        assert_close(layer.running_mean, expected.running_mean)
        assert_close(layer.running_var, expected.running_var)


def test_the_whole_text_of_the_error() -> None:
    c = wg.zeros(2, 3)
    with pytest.raises(RuntimeError) as caught:
        wg.jvp(lambda x: c.add_(x), (wg.ones(2, 3),), (wg.ones(2, 3),))
    assert str(caught.value) == (
        "add_: a tensor of shape (2, 3) from outside of jvp was written with a value that is differentiated "
        "there, which it cannot keep when jvp has ended; it keeps the value that it had before. Return the "
        "value instead, pass the tensor as an argument, or write value.detach()"
    )


# ---- what backward needs -------------------------------------------------------------------------


def test_a_plain_tensor_is_written_with_a_recorded_one() -> None:
    b = tensor([3.0, 4.0], requires_grad=True)
    a = tensor([2.0, 5.0])
    a *= b
    a.sum().backward()
    assert b.grad.tolist() == [2.0, 5.0]
    base = tensor([2.0, 5.0, 7.0])
    part = base.narrow(0, 1, 2)
    b.grad = None
    part *= b
    part *= b
    base.sum().backward()
    assert b.grad.tolist() == [2 * 5.0 * 3.0, 2 * 7.0 * 4.0]
    quotient = tensor([1.0, 1.0])
    b.grad = None
    quotient.div_(b).atan2_(b)
    quotient.sum().backward()
    x = np.array([3.0, 4.0])
    # atan2(1/b, b), whose derivative is -(2 / b) / (1/b^2 + b^2).
    assert_close(b.grad, tensor(-(2 / x) / (1 / x**2 + x**2)))


QUOTIENTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "div": lambda a, b: a / b,
    "copysign": wg.copysign,
    "attention": lambda a, b: wg.nn.functional.scaled_dot_product_attention(a[None], b[None], b[None])[0],
}


@pytest.mark.parametrize("name", QUOTIENTS)
def test_results_whose_operands_would_do_may_be_written(name: str) -> None:
    f = QUOTIENTS[name]
    rng = np.random.default_rng(0)
    a, b, w = (tensor(rng.uniform(0.5, 2.0, (3, 2)), requires_grad=True) for _ in range(3))

    def plain(a: Tensor, b: Tensor, w: Tensor) -> Tensor:
        return (f(a, b) * w).where(w > 1.0, w * 0.0).sum()

    def written(a: Tensor, b: Tensor, w: Tensor) -> Tensor:
        y = f(a, b)
        y *= w
        y[w <= 1.0] = 0.0
        return y.sum()

    want = wg.autograd.grad(plain(a, b, w), [a, b, w], materialize_grads=True)
    got = wg.autograd.grad(written(a, b, w), [a, b, w], materialize_grads=True)
    for g, h in zip(got, want, strict=True):
        assert_close(g, h)


def test_a_quotient_keeps_no_more_than_before() -> None:
    a, b = wg.ones(1000, requires_grad=True), wg.ones(1000, requires_grad=True)
    before = wg.memory.stats()["live_bytes"]
    y = a / b
    assert wg.memory.stats()["live_bytes"] - before == y.nbytes
    y.mul_(2.0)
    # Written, it needs a copy of what it was.
    assert 2 * y.nbytes <= wg.memory.stats()["live_bytes"] - before < 2.1 * y.nbytes


def test_operands_that_are_not_needed_may_be_written() -> None:
    a0, b0 = tensor([1.0, -2.0], requires_grad=True), tensor([-3.0, 4.0], requires_grad=True)
    b = b0 * 1
    y = wg.copysign(a0, b)
    b.mul_(2.0)
    y.sum().backward()
    assert a0.grad.tolist() == [-1.0, -1.0]
    z0 = wg.tensor([0.5 + 1j, 1.0 - 2j], requires_grad=True)
    z = z0 * 1
    e = z.exp()
    z.mul_(2.0)
    e.real.sum().backward()
    # The gradient of a real loss is conj(f'(z)).
    assert np.allclose(z0.grad.numpy(), np.conj(np.exp(z0.detach().numpy())))


# ---- out=, views of leaves, empty parts ----------------------------------------------------------


def test_a_view_of_what_became_a_leaf_cannot_be_written() -> None:
    a = wg.zeros(3)
    b = a[:]
    a.requires_grad_()
    with pytest.raises(RuntimeError, match="view of a leaf"):
        b.add_(5.0)
    with wg.no_grad():
        b.add_(5.0)
    assert a.tolist() == [5.0] * 3
    assert a.is_leaf
    assert not b.requires_grad


def test_out_may_be_an_operand() -> None:
    x = tensor([1.0, 2.0, 3.0, 4.0])
    wg.cat([x[2:], x[:2]], out=x)
    assert x.tolist() == [3.0, 4.0, 1.0, 2.0]
    wg.take(x, wg.tensor([3, 2, 1, 0]), out=x)
    assert x.tolist() == [2.0, 1.0, 4.0, 3.0]
    wg.add(x[:3], x[1:], out=x[1:])
    assert x.tolist() == [2.0, 3.0, 5.0, 7.0]


def test_empty_parts_can_be_written() -> None:
    wg.ones(1, 2, 2).select(2, 0)[1:].add_(0.4)
    wg.zeros(1, 0).expand(4, 0).fill_(1.0)
    z = xp.broadcast_to(xp.zeros((1, 0, 1)), (4, 0, 1))
    z[xp.zeros((4, 0, 1), dtype=xp.bool)] = 0
    g = wg.ones(1).expand(4)
    g[wg.zeros(4, dtype=wg.bool)] = 2.0
    g[wg.zeros(0, dtype=wg.int64)] = 2.0
    assert g.tolist() == [1.0] * 4
    y = wg.ones(1, requires_grad=True) * 1
    y.expand(3)[1:1].mul_(2.0)
    assert wg.vmap(lambda x: x.expand(3)[1:1].mul_(2.0).sum())(wg.ones(2, 1)).tolist() == [0.0, 0.0]


def test_one_element_of_an_expanded_tensor_can_be_written() -> None:
    g = wg.ones(1).expand(4)
    g[0] = 0.0
    assert g.tolist() == [0.0] * 4
    x = tensor([2.0], requires_grad=True)
    y = (x * 1).expand(3)
    y[1] = y[0] * 5.0
    y.sum().backward()
    assert x.grad.tolist() == [15.0]
    with pytest.raises(RuntimeError, match="share memory"):
        g[:2] = 0.0
    with pytest.raises(RuntimeError, match="share memory"):
        g[wg.tensor([0, 1])] = 0.0


def test_lists_of_slices_are_keys() -> None:
    y = np.zeros((2, 2, 4))
    y[:, :, [1, 3]] = 2.0
    x = wg.zeros(2, 2, 4)
    x[[slice(None), slice(None), [1, 3]]] = 2.0
    assert x.tolist() == y.tolist()
    assert x[[slice(None), 0, None]].shape == (2, 1, 4)
    assert x[[Ellipsis, 1]].tolist() == y[..., 1].tolist()
