"""Choices of elements, powers, and ranges whose logarithms are evenly spaced."""

import itertools
import math

import numpy as np

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor
from wengert._types import DeviceLike, DTypeLike, TensorLike

from ._method import index_dtype

__all__ = [
    "combinations",
    "logspace",
    "vander",
]


def combinations(input: TensorLike, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Returns all choices of `r` elements of a vector, in order, as rows.

    Example:
        >>> wg.combinations(wg.tensor([1, 2, 3]))
        tensor([[1, 2],
                [1, 3],
                [2, 3]])
    """
    x = operand("combinations", input)
    if x.ndim != 1:
        raise _core.ShapeError(f"combinations: a vector expected, got shape {tuple(x.shape)}")
    if r < 0:
        raise ValueError(f"combinations: r cannot be negative, got {r}")
    n = x.shape[0]
    count = math.comb(n + r - 1, r) if with_replacement and n + r else math.comb(n, r)
    if not count or r == 0:
        return x.narrow(0, 0, 0).reshape(count, r)
    # Raises where no axis is so long.
    _core.empty(0, count, r, device="cpu")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.fromiter(itertools.chain.from_iterable(choose(range(n), r)), np.int64, count * r)
    places = places.reshape(count, r)
    return x.take(_core.tensor(places, dtype=index_dtype(x), device=x.device), 0)


def vander(x: TensorLike, N: int | None = None, increasing: bool = False) -> Tensor:
    """Returns the Vandermonde matrix of a vector: its powers from `N - 1` to 0 as columns, or the other way
    round.

    Of integers they are int64 (int32 on a GPU).

    Example:
        >>> wg.vander(wg.tensor([2, 3]), N=3)
        tensor([[4, 2, 1],
                [9, 3, 1]])
    """
    x = operand("vander", x)
    if x.ndim != 1:
        raise _core.ShapeError(f"vander: a vector expected, got shape {tuple(x.shape)}")
    x = x if x.dtype.is_differentiable else x.to(index_dtype(x))
    powers = powers_of(x, x.shape[0] if N is None else N)
    return powers if increasing else powers.flip(-1)


def powers_of(x: Tensor, count: int) -> Tensor:
    """The powers of every element from 0 to `count - 1`, along a new last axis; products,
    exact in derivatives at 0.
    """
    if count < 0:
        raise ValueError(f"vander: N cannot be negative, got {count}")
    ones = _core.ones_like(x.unsqueeze(-1))
    if count < 2:
        return ones.narrow(-1, 0, count)
    return _core.cat([ones, x.unsqueeze(-1).expand(*x.shape, count - 1)], -1).cumprod(-1)


def logspace(
    start: float | Tensor,
    end: float | Tensor,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Returns `steps` numbers from `base ** start` to `base ** end`, equally far apart in their logarithms.

    For a dtype of integers, `start` and `end` lose their fractions, and so do the numbers.

    Example:
        >>> wg.logspace(0, 2, 3)
        tensor([  1.,  10., 100.])
    """
    kind = _core.empty(0, dtype=dtype, device="cpu").dtype
    if kind == _core.bool:
        raise TypeError("logspace: a dtype of numbers expected, got bool; convert with .bool()")
    if dtype is None:
        kind = _core.linspace(start, end, 0, device="cpu").dtype
    if not kind.is_differentiable:
        start, end = (x.trunc() if isinstance(x, Tensor) else int(x) for x in (start, end))
    wide = _core.complex128 if kind.is_complex else _core.float64
    exponents = _core.linspace(start, end, steps, dtype=wide, device="cpu")
    return (base**exponents).to(kind).to(device or _core.get_default_device())
