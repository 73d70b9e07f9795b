"""Programs with collectives, as data: any process can run them, under `vmap` or as one of several ranks.

A program turns a tensor of shape (count, 3) into another one of that shape, step by step; each step names an
operation and its numbers. All members of the axis run the same program on tensors of their own.
"""

from __future__ import annotations

from typing import Any

import wengert as wg
from hypothesis import strategies as st

Step = tuple[Any, ...]
WIDTH = 3


@wg.jit
def _jitted(x: wg.Tensor) -> wg.Tensor:
    """First called in a branch, where its operations are masked, and then outside."""
    return x * x.sin()


def _weights(x: wg.Tensor, axis: int) -> wg.Tensor:
    """The sum along an axis with weights that tell its entries apart."""
    shape = [1] * x.ndim
    shape[axis] = -1
    return (x * (wg.arange(x.shape[axis], dtype=x.dtype) + 1).reshape(shape)).sum(axis)


class _Centred(wg.autograd.Function):
    """The difference from the mean over the axis, with a rule that exchanges, too."""

    @staticmethod
    def forward(ctx: Any, x: wg.Tensor, name: str) -> wg.Tensor:
        ctx.name = name
        return x - wg.pmean(x, name)

    @staticmethod
    def backward(ctx: Any, g: wg.Tensor) -> tuple[Any, None]:
        return g - wg.pmean(g, ctx.name), None

    @staticmethod
    def jvp(ctx: Any, t: wg.Tensor, _: Any) -> wg.Tensor:
        return t - wg.pmean(t, ctx.name)


def apply(step: Step, x: wg.Tensor, name: str) -> wg.Tensor:
    """One step, with collectives along the axis `name`."""
    kind, *at = step
    count = x.shape[0]
    match kind:
        case "sin":
            return x.sin()
        case "scaled":
            return x * (wg.axis_index(name) + 1).to(x.dtype) / count
        case "turned":
            return x.roll(1, 1) * x
        case "centred":
            return _Centred.apply(x.sin(), name) * x
        case "branch":
            # Only one member's result depends on the sum.
            total = wg.psum(x.tanh(), name)
            first = wg.axis_index(name) == 0
            return wg.cond(first, lambda x, total: x * total, lambda x, total: x.sin(), x, total)
        case "read":
            # Not finite on others than the first member, which alone takes it; nothing is an operand.
            total = wg.psum(x.tanh(), name)
            index = wg.axis_index(name)
            z = 1 - 2 * index.to(x.dtype) + x.sin() / 4
            return wg.cond(index == 0, lambda: (z.log() + total).softmax(-1), lambda: x.cos() * total)
        case "looped":
            # Its steps need all members, whoever takes it.
            again = lambda i, y: y - wg.pmean(y, name).cos() / (i + 2)
            first = wg.axis_index(name) == 0
            return wg.cond(first, lambda: wg.fori_loop(0, 3, again, x * 1.0), lambda: x.cos())
        case "jitted":
            first = wg.axis_index(name) == 0
            return wg.cond(first, lambda: _jitted(x), lambda: x) + _jitted(x)
        case "written":
            rows = wg.all_gather(x, name)
            rows *= 2
            return x + rows.sum(0).tanh()
        case "loop":
            return wg.fori_loop(0, 3, lambda i, x: x - wg.pmean(x, name).cos() / (i + 1), x)
        case "scan":
            step = lambda total, row: (total + wg.psum(row, name).sin(), total * row)
            return wg.scan(step, x[0], x)[1] + x
        case "product":
            return x @ x[:1].expand(WIDTH, WIDTH).tanh()
        case "psum":
            return wg.psum(x.tanh(), name)
        case "pmean":
            return x * wg.pmean(x, name)
        case "pmax":
            return x - wg.pmax(x, name)
        case "pmin":
            return x + wg.pmin(x.cos(), name)
        case "all_gather":
            return x + _weights(wg.all_gather(x, name, axis=at[0]), at[0]) / count
        case "all_gather_tiled":
            return (
                _weights(wg.all_gather(x, name, axis=0, tiled=True).unflatten(0, (count, count)), 0) / count
            )
        case "psum_scatter":
            return x * wg.psum_scatter(x.cos(), name)
        case "psum_scatter_tiled":
            wide = wg.cat([x] * count, at[0])
            return x + wg.psum_scatter(wide, name, scatter_dimension=at[0], tiled=True) / count
        case "all_to_all":
            return wg.all_to_all(x, name, 0, at[0]).movedim(at[0], 0) + x
        case "all_to_all_tiled":
            return wg.all_to_all(x, name, 0, 0, tiled=True) * x
        case "ppermute":
            return x.cos() + wg.ppermute(x, name, [tuple(pair) for pair in at[0]])
        case "pbroadcast":
            return x * wg.pbroadcast(x.sin(), name, at[0])
    raise ValueError(kind)


def function(steps: list[Step], name: str) -> Any:
    """The program as a function of one member's tensor."""

    def run(x: wg.Tensor) -> wg.Tensor:
        for step in steps:
            x = apply(step, x, name)
        return x

    return run


# Whether all additions of a program have one order, under `vmap` as on ranks. A product of matrices has not;
# the parts of a gradient that come from a jitted function are added there, which is inlined under `vmap`.
def is_exact(steps: list[Step]) -> bool:
    """Whether results must be equal bit for bit."""
    return all(step[0] not in ("product", "jitted") for step in steps)


@st.composite
def pairs(draw: st.DrawFn, count: int) -> list[tuple[int, int]]:
    """Who sends to whom: some of the members, each at most once on each side."""
    length = draw(st.integers(0, count))
    sides = [draw(st.permutations(range(count)))[:length] for _ in range(2)]
    return list(zip(*sides))


LOCAL = ("sin", "scaled", "turned", "product")
PLAIN = (
    "psum",
    "pmean",
    "pmax",
    "pmin",
    "psum_scatter",
    "centred",
    "branch",
    "read",
    "looped",
    "jitted",
    "written",
    "loop",
    "scan",
)
TILED = ("all_gather_tiled", "all_to_all_tiled")
ALONG = ("all_gather", "psum_scatter_tiled", "all_to_all")


def single_steps(count: int) -> list[Step]:
    """Every operation, with every axis."""
    ring = [(i, (i + 1) % count) for i in range(count)]
    return [
        *((kind,) for kind in (*LOCAL, *PLAIN, *TILED)),
        *((kind, axis) for kind in ALONG for axis in (0, 1)),
        *(("ppermute", pairs) for pairs in (ring, ring[1:], [(0, 0)], [])),
        *(("pbroadcast", root) for root in range(count)),
    ]


def steps(count: int) -> st.SearchStrategy[list[Step]]:
    """Programs for so many members."""
    one = st.one_of(
        st.sampled_from(single_steps(count)),
        st.tuples(st.just("ppermute"), pairs(count)),
    )
    return st.lists(one, min_size=2, max_size=6)


# What is derived of a program: each makes of the function of one member's tensor another one.
def _loss(run: Any) -> Any:
    return lambda x: (run(x) * (wg.arange(WIDTH, dtype=x.dtype) + 1)).sum()


def _backward(run: Any) -> Any:
    def gradient(x: wg.Tensor) -> wg.Tensor:
        x = x.detach().requires_grad_()
        x.register_hook(lambda g: g * 2)
        _loss(run)(x).backward()
        assert x.grad is not None
        return x.grad

    return gradient


DERIVED: dict[str, Any] = {
    "value": lambda run: run,
    "grad": lambda run: wg.grad(_loss(run)),
    "jvp": lambda run: lambda x: wg.jvp(run, (x,), (x.cos(),))[1],
    "second": lambda run: wg.grad(lambda x: (wg.grad(_loss(run))(x) * x.sin()).sum()),
    "vmap": lambda run: lambda x: wg.vmap(run)(wg.stack([x, x.cos()]))[1],
    "checkpoint": lambda run: wg.grad(_loss(lambda x: wg.utils.checkpoint.checkpoint(run, x))),
    "jit": lambda run: wg.jit(wg.grad(_loss(run))),
    "grad of jit": lambda run: wg.grad(wg.jit(_loss(run))),
}
# Only where each member is a process: under `vmap` these are others of the list.
ALONE: dict[str, tuple[Any, str]] = {
    "backward": (_backward, "grad"),
    "backward of jit": (lambda run: _backward(wg.jit(run)), "grad"),
    "jit again": (lambda run: (lambda f: lambda x: (f(x.cos()), f(x))[1])(wg.jit(run)), "value"),
}
