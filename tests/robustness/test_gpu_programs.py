"""Random programs on a GPU: values, shapes, dtypes and gradients are those of the CPU, step by step.

Steps are drawn with the operands that are there: tensors of float32, float16, int32 and bool, views of them
among them, with axes of length 0 and 1. What one device refuses the other refuses, with an error of the same
class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
from hypothesis import given, strategies as st
from support import examples
from wengert.nn import functional as F

Tensor = wg.Tensor
DIGITS = {wg.float32: 3e-5, wg.float16: 4e-3}
#: Rounding errors pile up along a program; larger values would hide them in `atol`.
LARGEST = 100.0


class Step:
    """A step with its arguments chosen: a function of tensors on one device."""

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        self.name, self.seed = name, int(rng.integers(2**31))

    def __call__(self, *x: Tensor) -> Any:
        return STEPS[self.name](np.random.default_rng(self.seed), *x)


def axis_of(rng: np.random.Generator, x: Tensor) -> int:
    return int(rng.integers(-x.ndim, x.ndim)) if x.ndim else 0


def axes_of(rng: np.random.Generator, x: Tensor) -> Any:
    found = [i for i in range(x.ndim) if rng.integers(2)]
    return tuple(found) or None


def key_of(rng: np.random.Generator, x: Tensor) -> Any:
    """A basic key, with steps back among the slices."""

    def one(n: int) -> Any:
        kind = rng.integers(6)
        if kind == 0 and n:
            return int(rng.integers(-n, n))
        start, stop = sorted(int(v) for v in rng.integers(0, n + 1, 2))
        return (
            [slice(start, stop), slice(None, None, 2), slice(None, None, -1)][kind % 3] if kind < 5 else None
        )

    return tuple(one(n) for n in x.shape[: rng.integers(x.ndim + 1)])


def index_of(rng: np.random.Generator, x: Tensor, shape: Any, n: int) -> Tensor:
    """Positions on an axis of length `n`, where `x` is."""
    return wg.tensor(rng.integers(-n, n, shape), dtype=wg.int32, device=x.device)


def where_of(rng: np.random.Generator, x: Tensor) -> Tensor:
    return wg.tensor(rng.integers(0, 2, x.shape).astype(bool), device=x.device)


def permuted(rng: np.random.Generator, x: Tensor) -> Tensor:
    return x.permute(*[int(i) for i in rng.permutation(x.ndim)])


def along(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda rng, x: f(x, axis_of(rng, x))


def over(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda rng, x: f(x, axes_of(rng, x), keepdim=bool(rng.integers(2)))


def one(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda rng, x: f(x)


def two(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda rng, x, y: f(x, y)


def taken(rng: np.random.Generator, x: Tensor) -> Tensor:
    axis = axis_of(rng, x)
    return x.index_select(axis, index_of(rng, x, int(rng.integers(5)), x.shape[axis]) % x.shape[axis])


def gathered(rng: np.random.Generator, x: Tensor) -> Tensor:
    axis = axis_of(rng, x)
    shape = list(x.shape)
    shape[axis] = int(rng.integers(4))
    return x.gather(axis, index_of(rng, x, shape, x.shape[axis]) % x.shape[axis])


def places_of(rng: np.random.Generator, x: Tensor) -> Any:
    """Advanced indices on one or two axes, in any place."""
    key: list[Any] = [slice(None)] * x.ndim
    for axis in {axis_of(rng, x) % x.ndim for _ in range(rng.integers(1, 3))}:
        key[axis] = index_of(rng, x, [3] if rng.integers(2) else [2, 1], x.shape[axis])
    return tuple(key)


def picked(rng: np.random.Generator, x: Tensor) -> Tensor:
    return x[places_of(rng, x)]


def scattered(rng: np.random.Generator, x: Tensor) -> Tensor:
    axis = axis_of(rng, x)
    index = index_of(rng, x, x.shape, x.shape[axis]) % x.shape[axis]
    return wg.zeros_like(x).scatter_add(axis, index, x * 0.5)


def written(rng: np.random.Generator, x: Tensor) -> Tensor:
    """A copy, part of which is written."""
    y = x.clone()
    kind = rng.integers(7)
    if kind == 0:
        y[key_of(rng, x)] = 2
    elif kind == 1:
        y[where_of(rng, x)] = 1
    elif kind == 2:
        axis = axis_of(rng, x)
        y.index_fill_(axis, index_of(rng, x, 2, x.shape[axis]) % x.shape[axis], 1)
    elif kind == 3:
        y[key_of(rng, x)] += 1
    elif kind == 4:
        key = places_of(rng, x)
        y[key] = x[key] * 2 if rng.integers(2) else 1
    elif kind == 5:
        key = places_of(rng, x)
        y = y.index_put(key, x[key], accumulate=True)
    else:
        y.masked_fill_(where_of(rng, x), 0)
    return y


def product(x: Tensor, y: Tensor) -> Tensor:
    return (
        x.float().flatten(1) @ y.float().flatten(1).mT if x.ndim > 1 and y.ndim > 1 else x.float() @ y.float()
    )


def divided(x: Tensor, y: Tensor) -> Tensor:
    return x / (y.abs() + 1)


STEPS: dict[str, Callable[..., Any]] = {
    "sin": one(lambda x: x.sin()),
    "tanh": one(lambda x: x.tanh()),
    "exp": one(lambda x: (-x.abs()).exp() if x.dtype != wg.bool else x.exp()),
    "sigmoid": one(lambda x: x.sigmoid()),
    "erf": one(lambda x: x.erf()),
    "gelu": one(F.gelu),
    "silu": one(F.silu),
    "abs": one(lambda x: x.abs()),
    "sign": one(lambda x: x.sign()),
    "floor": one(lambda x: x.floor()),
    "square": one(lambda x: x.square()),
    "clamp": one(lambda x: x.clamp(-1, 2)),
    "not": one(lambda x: x.logical_not()),
    "isnan": one(lambda x: x.isnan()),
    "number": lambda rng, x: x * [2, 0.5, -1, 1.5][rng.integers(4)] + [1, 0.25][rng.integers(2)],
    "cast": lambda rng, x: x.to([wg.float32, wg.float16, wg.int32, wg.bool][rng.integers(4)]),
    "add": two(lambda x, y: x + y),
    "sub": two(lambda x, y: x - y),
    "mul": two(lambda x, y: x * y),
    "div": two(divided),
    "maximum": two(lambda x, y: x.maximum(y)),
    "less": two(lambda x, y: x < y),
    "equal": two(lambda x, y: x == y),
    "and": two(lambda x, y: x.logical_and(y)),
    "hypot": two(lambda x, y: x.hypot(y)),
    "atan2": two(lambda x, y: x.atan2(y.abs() + 1)),
    "where": lambda rng, x, y: wg.where(where_of(rng, x), x, y),
    "product": two(product),
    "cat": lambda rng, x, y: wg.cat([x, y, x], axis_of(rng, x)),
    "stack": lambda rng, x, y: wg.stack([x, y], axis_of(rng, x)),
    "permute": permuted,
    "key": lambda rng, x: x[key_of(rng, x)],
    "flip": lambda rng, x: x.flip(axis_of(rng, x)),
    "roll": lambda rng, x: x.roll(int(rng.integers(-3, 4)), axis_of(rng, x)),
    "flatten": one(lambda x: x.flatten()),
    "unsqueeze": lambda rng, x: x.unsqueeze(axis_of(rng, x)),
    "expand": one(lambda x: x.expand(2, *x.shape)),
    "pad": lambda rng, x: F.pad(x, (int(rng.integers(-1, 3)), int(rng.integers(-1, 3))), value=1),
    "triangle": lambda rng, x: x.tril(int(rng.integers(-2, 3))),
    "contiguous": one(lambda x: x.contiguous()),
    "repeat": one(lambda x: x.repeat(2, *[1] * x.ndim)),
    "sum": over(lambda x, axes, keepdim: x.sum(axes, keepdim=keepdim)),
    "mean": over(lambda x, axes, keepdim: x.mean(axes, keepdim=keepdim)),
    "amax": over(lambda x, axes, keepdim: x.amax(axes, keepdim=keepdim)),
    "any": over(lambda x, axes, keepdim: x.any(axes, keepdim=keepdim)),
    "all": over(lambda x, axes, keepdim: x.all(axes, keepdim=keepdim)),
    "logsumexp": over(lambda x, axes, keepdim: x.float().logsumexp(axes, keepdim=keepdim)),
    "var": over(lambda x, axes, keepdim: x.var(axes, keepdim=keepdim)),
    "norm": one(lambda x: x.float().norm()),
    "prod": along(lambda x, axis: x.clamp(-2, 2).prod(axis)),
    "argmax": along(lambda x, axis: x.argmax(axis)),
    "cumsum": along(lambda x, axis: x.cumsum(axis)),
    "cumprod": along(lambda x, axis: x.clamp(-2, 2).cumprod(axis)),
    "cummax": along(lambda x, axis: x.cummax(axis).values),
    "softmax": along(lambda x, axis: x.softmax(axis)),
    "log_softmax": along(lambda x, axis: x.log_softmax(axis)),
    "diff": along(lambda x, axis: x.diff(dim=axis)),
    "sort": along(lambda x, axis: x.sort(axis, stable=True).values),
    "layer_norm": one(lambda x: F.layer_norm(x.float(), x.shape[-1:])),
    "rms_norm": one(lambda x: F.rms_norm(x.float(), x.shape[-1:])),
    "max_pool": one(lambda x: F.max_pool1d(x.flatten(1).unsqueeze(0), 2)),
    "conv": lambda rng, x: F.conv1d(
        x.float().flatten(1).unsqueeze(1),
        wg.tensor(rng.normal(size=(2, 1, 2)), dtype=wg.float32, device=x.device),
    ),
    "take": taken,
    "gather": gathered,
    "index": picked,
    "scatter_add": scattered,
    "write": written,
    "nonzero": one(lambda x: x.detach().nonzero()),
    "masked": lambda rng, x: x[where_of(rng, x)],
    "vmap": one(wg.vmap(lambda row: (row * 2).sum() - row.tanh())),
}
PAIRS = {
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "less",
    "equal",
    "and",
    "hypot",
    "atan2",
    "where",
    "product",
    "cat",
}
PAIRS |= {"stack"}
SHAPES = [(3, 4), (3, 4), (1, 4), (4,), (3, 1), (2, 3, 4), (0, 4), (), (1,), (5, 33)]


def outcome(f: Step, x: list[Tensor]) -> Any:
    try:
        return f(*x)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, ZeroDivisionError) as error:
        return error


def host(t: Tensor) -> Any:
    return t.detach().cpu().float().numpy()


def same(found: Tensor, want: Tensor, digits: float, what: str) -> None:
    assert str(found.device) == "gpu:0", what
    assert tuple(found.shape) == tuple(want.shape), what
    # int64 is int32 on a GPU.
    kinds = {wg.int64: wg.int32}
    assert found.dtype == kinds.get(want.dtype, want.dtype), what
    np.testing.assert_allclose(host(found), host(want), rtol=digits, atol=digits * 4, err_msg=what)


def run(seed: int, length: int) -> None:
    """One program on both devices."""
    rng = np.random.default_rng(seed)
    leaves: list[list[Tensor]] = [[], []]
    for shape in (SHAPES[rng.integers(len(SHAPES))], SHAPES[rng.integers(len(SHAPES))]):
        value = wg.tensor(np.round(rng.uniform(-2, 2, shape), 3), dtype=wg.float32)
        for side, x in zip(leaves, (value, value.gpu())):
            side.append(x.requires_grad_())
    other = wg.tensor(rng.integers(-3, 4, (3, 4)), dtype=wg.int32)
    pools = [[*leaves[0], other], [*leaves[1], other.gpu()]]
    # What the values of a tensor are off by, relative to one rounding.
    digits = [3e-5] * 3
    story = []
    for _ in range(length):
        name = list(STEPS)[rng.integers(len(STEPS))]
        at = [int(i) for i in rng.integers(len(pools[0]), size=2 if name in PAIRS else 1)]
        step = Step(name, rng)
        story.append(f"{name}{at} of {[(tuple(pools[0][i].shape), str(pools[0][i].dtype)) for i in at]}")
        what = f"seed {seed}: " + "; ".join(story)
        want, found = (outcome(step, [pool[i] for i in at]) for pool in pools)
        if isinstance(want, Exception) or isinstance(found, Exception):
            assert type(want) is type(found), f"{what}: {want!r} and {found!r}"
            story.pop()
            continue
        exact = [host(pools[0][i]) for i in at]
        coarse = any(pools[0][i].dtype == wg.float16 for i in at) or want.dtype == wg.float16
        own = max(max(digits[i] for i in at) * 2, DIGITS[wg.float16] if coarse else 0)
        # Steps that jump are taken of numbers that both devices have alike.
        if name in JUMPS and any(not np.array_equal(e, host(pools[1][i])) for e, i in zip(exact, at)):
            story.pop()
            continue
        if want.numel() > 2000 or (want.numel() and not (np.abs(host(want)) < LARGEST).all()):
            story.pop()
            continue
        same(found, want, own, what)
        for pool, y in zip(pools, (want, found)):
            pool.append(y)
        digits.append(own)
    totals = []
    for pool in pools:
        ends = [y.float() for y in pool[3:] if y.requires_grad and y.numel()]
        totals.append(sum((y.tanh() * (1 + k)).sum() for k, y in enumerate(ends)) if ends else None)
    if totals[0] is None or totals[1] is None:
        assert totals[0] is totals[1], what
        return
    grads = [
        wg.autograd.grad(total, side, allow_unused=True, materialize_grads=True)
        for total, side in zip(totals, leaves)
    ]
    if not any(y.dtype == wg.float16 for y in pools[0]):
        for want, found in zip(*grads):
            scale = max(1.0, float(np.abs(host(want)).max(initial=0.0)))
            same(found / scale, want / scale, max(digits) * 8, f"gradient, seed {seed}: " + "; ".join(story))


#: Steps with values, or slopes, that jump.
JUMPS = {"sign", "floor", "cast", "less", "equal", "argmax", "not", "and", "any", "all", "nonzero", "isnan"}
JUMPS |= {"maximum", "abs", "clamp", "amax", "cummax", "max_pool", "sort"}


@examples(60)
@given(st.integers(0, 2**31))
def test_a_program(seed: int) -> None:
    run(seed, 8)
