"""Random programs under autocast, against the same programs with each cast written out and no region at all.

A program is a chain of functions, of which a part runs in an inner region (of either half type, or without
casts). It is called plainly, in every transform, in pairs of them and in a checkpoint, with an outer region
around the transform or inside the function. What the functions cast is known here by their kind alone. All
results must agree in every bit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from hypothesis import given, strategies as st
from support import examples
from wengert.nn import functional as F
from wengert.utils.checkpoint import checkpoint

HALVES = (wg.float16, wg.bfloat16)
ROWS, COLUMNS = 3, 4


def constant(*shape: int) -> wg.Tensor:
    """The same numbers each time, of moderate size and with all digits of float32."""
    count = int(np.prod(shape))
    return wg.tensor(np.sin(np.arange(1.0, count + 1) * 1.7).reshape(shape), dtype=wg.float32)


SQUARE, ROW, SLOPE = constant(COLUMNS, COLUMNS) * 0.5, constant(COLUMNS), constant(1)
CUBE = constant(COLUMNS, COLUMNS, COLUMNS) * 0.3

#: Functions of a matrix and constants: what autocast casts, the function, its constants.
# None uses the matrix twice,
#: for a region casts it at each use.
STEPS: dict[str, tuple[str, Callable[..., wg.Tensor], tuple[wg.Tensor, ...]]] = {
    "matmul": ("low", lambda x, w: x @ w, (SQUARE,)),
    "linear": ("low", F.linear, (SQUARE, ROW)),
    "addmm": ("low", lambda x, b, w: wg.addmm(b, x, w), (ROW, SQUARE)),
    "prelu": ("low", F.prelu, (SLOPE,)),
    "attention": ("low", lambda x, k, v: F.scaled_dot_product_attention(x, k, v), (SQUARE, SQUARE * 0.5)),
    "exp": ("float32", lambda x: x.clamp(-2.0, 2.0).exp(), ()),
    "log1p": ("float32", lambda x: x.abs().log1p(), ()),
    "softplus": ("float32", F.softplus, ()),
    "power": ("float32", lambda x, y: x.abs() ** y, (ROW,)),
    "cumsum": ("float32", lambda x: x.cumsum(1), ()),
    "softmax": ("float32", lambda x: x.softmax(-1), ()),
    "rms_norm": ("float32", lambda x, w: F.rms_norm(x, (COLUMNS,), w, 1e-5), (ROW,)),
    "layer_norm": (
        "float32",
        lambda x, w, b: F.layer_norm(x, (COLUMNS,), w, b),
        (ROW, SLOPE.expand(COLUMNS)),
    ),
    "tensordot": ("widest", lambda x, w: wg.tensordot(x, w, 1), (SQUARE,)),
    "bilinear": ("widest", F.bilinear, (constant(ROWS, COLUMNS), CUBE)),
    "addcmul": ("widest", lambda x, y, z: x.addcmul(y, z, value=0.3), (ROW, SLOPE)),
    "tanh": ("given", wg.tanh, ()),
    "selu": ("given", F.selu, ()),
    "hardswish": ("given", F.hardswish, ()),
    "times": ("given", lambda x: x * 0.3 + 1.7, ()),
    "plus": ("given", lambda x, y: x + y, (ROW,)),
}


def cast(kind: str, low: Any, values: list[wg.Tensor]) -> list[wg.Tensor]:
    """The operands as a region of the precision `low` casts them."""
    dtypes = {x.dtype for x in values}
    to = {"low": low, "float32": wg.float32, "widest": dtypes.pop() if len(dtypes) == 1 else wg.float32}.get(
        kind
    )
    return values if to is None or low is None else [x.to(to) for x in values]


class Program:
    """A chain of functions, part of it in an inner region; `inner` of None is one without casts."""

    def __init__(self, steps: list[str], outer: Any, inner: Any, start: int, length: int) -> None:
        self.steps, self.outer, self.inner = steps, outer, inner
        self.part = range(start, start + length)

    def outside(self) -> contextlib.AbstractContextManager[Any]:
        """The outer region, if there is one."""
        return wg.autocast(dtype=self.outer) if self.outer is not None else contextlib.nullcontext()

    def run(self, x: wg.Tensor) -> wg.Tensor:
        """The program, with its inner region."""
        for k, name in enumerate(self.steps):
            _, function, constants = STEPS[name]
            inside = wg.autocast(dtype=self.inner or wg.bfloat16, enabled=self.inner is not None)
            with inside if k in self.part else contextlib.nullcontext():
                x = function(x, *constants)
        return x

    def within(self, x: wg.Tensor) -> wg.Tensor:
        """The program in its outer region."""
        with self.outside():
            return self.run(x)

    def written(self, x: wg.Tensor) -> wg.Tensor:
        """The program with its casts written out, for use outside of all regions."""
        for k, name in enumerate(self.steps):
            kind, function, constants = STEPS[name]
            low = self.inner if k in self.part else self.outer
            x = function(*cast(kind, low, [x, *constants]))
        return x


def loss(f: Callable[[wg.Tensor], wg.Tensor]) -> Callable[[wg.Tensor], wg.Tensor]:
    """A number that depends on all results."""
    weight = constant(ROWS, COLUMNS)
    return lambda x: (f(x).float() * weight).sum()


def backward(f: Callable[[wg.Tensor], wg.Tensor]) -> Callable[[wg.Tensor], Any]:
    """The gradient as eager code takes it."""

    def gradient(x: wg.Tensor) -> Any:
        leaf = x.detach().requires_grad_()
        out = loss(f)(leaf)
        return wg.autograd.grad(out, leaf)[0]

    return gradient


def checkpointed(f: Callable[[wg.Tensor], wg.Tensor]) -> Callable[[wg.Tensor], wg.Tensor]:
    """The same, run again in backward."""
    return lambda x: checkpoint(f, x)


Function = Callable[[wg.Tensor], Any]
#: What a function of a matrix may be used for.
USES: dict[str, Callable[[Function], Function]] = {
    "plain": lambda f: f,
    "backward": backward,
    "vmap": lambda f: lambda x: wg.vmap(f)(wg.stack([x, x * 0.5])),
    "jvp": lambda f: lambda x: wg.jvp(f, (x,), (x.cos(),)),
    "linearize": lambda f: lambda x: wg.linearize(f, x)[1](x.cos()),
    "vjp": lambda f: lambda x: wg.vjp(lambda x: f(x).float(), x)[1](constant(ROWS, COLUMNS)),
    "grad": lambda f: wg.grad(loss(f)),
    "vmap of grad": lambda f: lambda x: wg.vmap(wg.grad(loss(f)))(wg.stack([x, x * 0.5])),
    "grad of vmap": lambda f: wg.grad(lambda x: wg.vmap(loss(f))(wg.stack([x, x * 0.5])).sum()),
    "jvp of grad": lambda f: lambda x: wg.jvp(wg.grad(loss(f)), (x,), (x.cos(),)),
    "vmap of jvp": lambda f: lambda x: wg.vmap(lambda t: wg.jvp(f, (x,), (t,))[1])(wg.stack([x.cos(), x])),
    "checkpoint": lambda f: backward(checkpointed(f)),
    "grad of checkpoint": lambda f: wg.grad(loss(checkpointed(f))),
}


def results(value: Any) -> list[wg.Tensor]:
    """The tensors of an answer."""
    return list(value) if isinstance(value, tuple) else [value]


def check(program: Program, use: str) -> None:
    """Both places of the outer region, against the program with its casts written out."""
    x = constant(ROWS, COLUMNS) * 0.7
    want = results(USES[use](program.written)(x))
    if not all(np.isfinite(y.float().numpy()).all() for y in want):
        return
    with program.outside():
        found = results(USES[use](program.run)(x))
    places = {"inside": results(USES[use](program.within)(x)), "outside": found}
    for place, got in places.items():
        assert [y.dtype for y in got] == [y.dtype for y in want], (place, use, vars(program))
        for y, expected in zip(got, want):
            np.testing.assert_array_equal(
                y.float().numpy(), expected.float().numpy(), err_msg=f"{place} {use} {vars(program)}"
            )


REGIONS = (None, *HALVES)


@pytest.mark.parametrize("use", USES)
@examples(12)
@given(
    st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=4),
    st.sampled_from(REGIONS),
    st.sampled_from(REGIONS),
    st.integers(0, 4),
    st.integers(0, 3),
)
def test_casts_are_those_of_the_innermost_region(
    use: str, steps: list[str], outer: Any, inner: Any, start: int, length: int
) -> None:
    check(Program(steps, outer, inner, start, length), use)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", STEPS)
def test_every_function_in_every_use(name: str, use: str) -> None:
    # A product before it gives it halves.
    check(Program(["matmul", name], wg.bfloat16, None, 9, 0), use)
