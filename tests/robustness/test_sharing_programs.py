"""Random programs of views, detach, contiguous and writes, some under `no_grad`, inside nested transforms of
depth two, against the same program in eager mode, where memory itself does the sharing.

A program works on a list of tensors that begins with one made of the argument, and returns a number that
depends on all of them. Under `no_grad` reverse mode does not see a write and forward mode does, so programs
with such writes are compared within each of the two; all others are compared across.
Eager mode itself is judged by NumPy's memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from hypothesis import given, strategies as st
from support import examples
from wengert import Tensor
from wengert.utils.checkpoint import checkpoint

SHAPE = (2, 3)
#: Something that depends on nothing.
CONSTANT = np.array([[0.25, -0.5, 0.75], [1.25, 0.5, -0.25]])

Step = tuple[Any, ...]
Program = list[Step]

VIEWS = ("T", "row", "rows", "column", "flat", "whole", "reverse", "unbound", "split", "expanded", "diagonal")
ALIASES = ("detach", "data", "contiguous", "real", "imag")
FRESH = ("sin", "double", "clone", "zeros", "turned")
WRITES = ("mul_", "add_", "fill_", "copy_", "set", "mask", "constant", "taken", "index", "index_add_")


@st.composite
def programs(draw: st.DrawFn, quiet: bool) -> Program:
    """Steps: what to do, to which tensor so far, with which other one, and whether under no_grad."""
    steps: Program = []
    kinds = VIEWS * 2 + ALIASES * 3 + FRESH + WRITES * 4
    for _ in range(draw(st.integers(2, 10))):
        kind = draw(st.sampled_from(kinds))
        unrecorded = quiet and kind in WRITES and draw(st.booleans())
        steps.append((kind, draw(st.integers(0, 9)), draw(st.integers(0, 9)), unrecorded))
    return steps


def made(kind: str, x: Any) -> Any:
    """The new tensor or array of a step; views and aliases share memory with `x`."""
    numpy = isinstance(x, np.ndarray)
    complex_ = x.dtype in (np.complex128, wg.complex128)
    match kind:
        case "T":
            return x.T
        case "row":
            return x[0, ...] if x.ndim and x.shape[0] else x
        case "rows":
            return x[1:] if x.ndim else x
        case "column":
            return x[..., -1] if x.ndim and x.shape[-1] else x
        case "flat":
            return x.reshape(-1)
        case "whole":
            return x[...]
        case "reverse":
            return x[::-1] if x.ndim else x
        case "unbound":
            some = x.ndim and x.shape[-1]
            return (x[..., 0] if numpy else x.unbind(-1)[0]) if some else x
        case "split":
            some = x.ndim and x.shape[0] > 1
            return (x[1:2] if numpy else x.split(1)[1]) if some else x
        case "expanded":
            return x[None][0, ...] if numpy else x.expand(2, *x.shape)[1]
        case "diagonal":
            if x.ndim != 2:
                return x
            n = min(x.shape)
            return np.einsum("ii->i", x[:n, :n]) if numpy else x.diagonal()
        case "real" | "imag":
            return getattr(x, kind) if complex_ else x
        case "detach" | "data":
            return x[...] if numpy else (x.detach() if kind == "detach" else x.data)
        case "contiguous":
            return (x if x.flags.c_contiguous else x.copy()) if numpy else x.contiguous()
        case "sin":
            return np.array(np.sin(x)) if numpy else x.sin()
        case "double":
            return np.array(x * 2.0) if numpy else x * 2.0
        case "turned":
            y = x * (1.0 + 0.5j)
            return np.array(y, order="C") if numpy else y.contiguous()
        case "clone":
            return x.copy() if numpy else x.clone()
        case "zeros":
            return np.zeros(x.shape) if numpy else wg.zeros(tuple(x.shape), dtype=wg.float64)
    raise AssertionError(kind)


def write(kind: str, x: Any, by: Any, other: Any) -> None:
    """One in-place write of `x` by a number `by`, which may depend on the argument, or by another tensor."""
    numpy = isinstance(x, np.ndarray)
    match kind:
        case "mul_":
            np.multiply(x, by, out=x) if numpy else x.mul_(by)
        case "add_":
            np.add(x, by, out=x) if numpy else x.add_(by)
        case "fill_":
            x[...] = 0.75
        case "copy_":
            if numpy:
                x[...] = by
            else:
                x.copy_(by)
        case "constant":
            size = x.size if numpy else x.numel()
            new = CONSTANT.reshape(-1)[:size].reshape(tuple(x.shape))
            if numpy:
                x[...] = new
            else:
                x.copy_(wg.tensor(new))
        case "taken":
            new = other if tuple(other.shape) == tuple(x.shape) else by
            if x.dtype in (np.float64, wg.float64):
                new = new.real
            if numpy:
                x[...] = np.array(new)
            else:
                x.copy_(new)
        case "set":
            x[(0,) * x.ndim if (x.size if numpy else x.numel()) else ...] = by
        case "mask":
            # Not under a mask that depends on the values, where differences would see steps.
            x[(..., slice(None, None, 2)) if x.ndim else ...] = by * 0.5
        case "index":
            x[[0] if x.ndim and x.shape[0] else ...] = by
        case "index_add_":
            if not x.ndim or not x.shape[0]:
                return
            if numpy:
                x[0] += by
            else:
                new = wg.ones((1, *x.shape[1:]), dtype=x.dtype) * by
                x.index_add_(0, wg.tensor([0]), new)


def run(program: Program, x: Any) -> Any:
    """The number that the program computes of a tensor or an array."""
    numpy = isinstance(x, np.ndarray)
    tensors = [x * 1.0]
    for kind, i, j, unrecorded in program:
        at, other = tensors[i % len(tensors)], tensors[j % len(tensors)]
        if kind not in WRITES:
            tensors.append(made(kind, at))
            continue
        if not numpy and unrecorded:
            with wg.no_grad():
                write(kind, at, other.sum().real * 0.25 + 0.5, other)
        else:
            write(kind, at, other.sum().real * 0.25 + 0.5, other)
    return sum((k + 1) * (y * y + y).sum().real for k, y in enumerate(tensors))


def point(seed: int) -> Any:
    return np.random.default_rng(seed).uniform(-0.8, 0.8, SHAPE)


# ---- derivatives along one direction, in reverse and in forward mode -----------------------------

F = Callable[[Tensor], Tensor]


def backward(f: F, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    leaf = x.detach().clone().requires_grad_()
    y = f(leaf)
    if not y.requires_grad:
        return y, wg.zeros((), dtype=wg.float64)
    y.backward()
    return y.detach(), (leaf.grad * t).sum()


def grad(f: F, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    g, y = wg.value_and_grad(f)(x)[::-1]
    return y, (g * t).sum()


def jvp(f: F, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    return wg.jvp(f, (x,), (t,))


def linearize(f: F, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    y, push = wg.linearize(f, x)
    return y, push(t)


def checkpointed(f: F, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    return backward(lambda x: checkpoint(f, x), x, t)


def batched(way: Any) -> Any:
    """`way` of each example of a batch of two; the second is the one that is asked for."""

    def of(f: F, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        y, d = wg.vmap(lambda x, t: way(f, x, t))(wg.stack([x * 0.5, x]), wg.stack([t, t]))
        return y[1], d[1]

    return of


def of_batch(way: Any) -> Any:
    """`way` of the function that runs a batch of two."""
    return lambda f, x, t: way(lambda x: wg.vmap(f)(wg.stack([x * 0.5, x]))[1], x, t)


def constant(way: Any) -> Any:
    """`way` inside a forward mode that does not concern it."""
    return lambda f, x, t: wg.jvp(lambda s: way(f, x + s * 0.0, t), (t[0, 0],), (t[0, 0],))[0]


def constant_linear(way: Any) -> Any:
    """`way` inside a linearisation that does not concern it."""
    return lambda f, x, t: wg.linearize(lambda s: way(f, x + s * 0.0, t), t[0, 0])[0]


def constant_reverse(way: Any) -> Any:
    """`way` inside a reverse mode that does not concern it."""
    return lambda f, x, t: wg.vjp(lambda s: way(f, x + s * 0.0, t), t[0, 0])[0]


REVERSE = {
    "grad": grad,
    "checkpoint": checkpointed,
    "vmap of grad": batched(grad),
    "grad of vmap": of_batch(grad),
    "vmap of backward": batched(backward),
    "backward of vmap": of_batch(backward),
    "jvp of grad": constant(grad),
    "vmap of vmap of grad": batched(of_batch(grad)),
    "linearize of grad": constant_linear(grad),
    "grad of grad": constant_reverse(grad),
    "jvp of vmap of grad": constant(batched(grad)),
    "vmap of jvp of backward": batched(constant(backward)),
    "jvp of checkpoint": constant(checkpointed),
    "linearize of backward of vmap": constant_linear(of_batch(backward)),
}
FORWARD = {
    "jvp": jvp,
    "linearize": linearize,
    "vmap of jvp": batched(jvp),
    "jvp of vmap": of_batch(jvp),
    "vmap of linearize": batched(linearize),
    "linearize of vmap": of_batch(linearize),
    "jvp of jvp": constant(jvp),
    "grad of jvp": constant_reverse(jvp),
    "grad of jvp of vmap": constant_reverse(of_batch(jvp)),
    "vmap of linearize of jvp": batched(constant_linear(jvp)),
    "jvp of vmap of linearize": constant(batched(linearize)),
}


def near(got: Tensor, want: float, what: str) -> None:
    assert abs(got.item() - want) <= 1e-8 * max(1.0, abs(want)), (what, got.item(), want)


#: What eager mode refuses, and a value that is no memory need not.
REFUSED = ("modified in place", "share memory")


def compare(program: Program, seed: int, ways: dict[str, Any], reference: Any) -> None:
    """All `ways` against the reference, for the value and the derivative."""
    x, t = wg.tensor(point(seed)), wg.tensor(point(seed + 1))
    f = lambda x: run(program, x)
    # Nobody is told of what is written through `.data`, also where it was saved;
    # `detach()` is the same and tells.
    told = [("detach" if step[0] == "data" else step[0], *step[1:]) for step in program]
    try:
        value, slope = reference(lambda x: run(told, x), x, t)
    except RuntimeError as error:
        if any(text in str(error) for text in REFUSED):
            return
        raise
    for name, way in ways.items():
        y, d = way(f, x, t)
        near(y, value.item(), name)
        near(d, slope.item(), name)


@examples(150)
@given(programs(quiet=True), st.integers(0, 50))
def test_values_are_those_of_memory(program: Program, seed: int) -> None:
    x = point(seed)
    want = run(program, x)
    near(run(program, wg.tensor(x)), want, "plain")
    near(run(program, wg.tensor(x, requires_grad=True)), want, "recorded")


@examples(60)
@given(programs(quiet=False), st.integers(0, 50))
def test_programs_in_every_mode(program: Program, seed: int) -> None:
    compare(program, seed, REVERSE | FORWARD, backward)


@examples(60)
@given(programs(quiet=True), st.integers(0, 50))
def test_programs_with_writes_that_are_not_recorded_in_reverse(program: Program, seed: int) -> None:
    compare(program, seed, REVERSE, backward)


@examples(60)
@given(programs(quiet=True), st.integers(0, 50))
def test_programs_with_writes_that_are_not_recorded_in_forward_mode(program: Program, seed: int) -> None:
    compare(program, seed, FORWARD, jvp)


@pytest.mark.parametrize("kind", VIEWS + ALIASES + FRESH)
def test_the_model_shares_what_eager_mode_shares(kind: str) -> None:
    x = point(0)
    y = wg.tensor(x)
    made(kind, y).mul_(2.0)
    model = made(kind, x)
    np.multiply(model, 2.0, out=model)
    assert np.allclose(y.numpy(), x)
