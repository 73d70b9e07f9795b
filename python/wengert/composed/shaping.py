"""Shapes: repeating, turning, windows, diagonals, and joining along given axes."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert import _core
from wengert._arguments import axis_of, operand, operands
from wengert._caller import called
from wengert._core import Tensor
from wengert._types import DeviceLike, DTypeLike, TensorLike

from ._method import index_dtype, method, on_axis, positions_like
from .making import linspace

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "cartesian_prod",
    "column_stack",
    "combinations",
    "diag_embed",
    "dstack",
    "logspace",
    "repeat_interleave",
    "rot90",
    "tril_indices",
    "triu_indices",
    "unfold",
    "vander",
]


def _expect_length(total: int, output_size: int | None) -> None:
    """Checks the length that a caller expects of the result."""
    if output_size not in (None, total):
        raise ValueError(
            f"repeat_interleave: output_size is {output_size}, but repeats add up to {total}; leave it out"
        )


@method
def repeat_interleave(
    input: Tensor,
    repeats: TensorLike | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Repeats each element (along `dim`, each slice) `repeats` times in a row.

    Args:
        repeats: one number for all, or a vector with one for each. Without it, `input` is that vector, and what is
            repeated are the numbers 0, 1, 2, ….
        dim: the axis; without it, of the flattened tensor.
        output_size: the length of the result.

    Raises:
        ValueError: for repeats that do not fit, and another `output_size` than they add up to.

    Example:
        >>> wg.repeat_interleave(wg.tensor([1, 2]), wg.tensor([2, 1]))
        tensor([1, 1, 2])
    """
    if repeats is None:
        input, repeats = positions_like(input, input.numel()), input
    x, axis = (input.reshape(-1), 0) if dim is None else on_axis("repeat_interleave", input, dim)
    length = x.shape[axis]
    if isinstance(repeats, int):
        if repeats < 0:
            raise ValueError(f"repeat_interleave: repeats must not be negative, got {repeats}")
        _expect_length(length * repeats, output_size)
        wide = x.unsqueeze(axis + 1)
        # The copy is made here, so that the result shares no memory with one repetition either.
        wide = wide.expand([*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :]]).clone()
        return wide.reshape([*x.shape[:axis], length * repeats, *x.shape[axis + 1 :]])
    counts = operand("repeat_interleave", repeats)
    if counts.is_floating_point() or counts.ndim > 1 or counts.numel() not in (1, length):
        raise ValueError(
            f"repeat_interleave: repeats must be a number or a vector of {length} integers, got {counts.dtype} of "
            f"shape {tuple(counts.shape)}"
        )
    if length and counts.min().item() < 0:
        raise ValueError("repeat_interleave: repeats must not be negative")
    # Where each stretch of copies ends; the numbers are read back anyway, for the length of the result.
    each = counts.cpu().reshape(-1).expand([length])
    if each.double().sum().item() >= 2**32:
        raise _core.ShapeError(
            f"repeat_interleave: {each.double().sum().item():.3g} elements along axis {axis} are too many; "
            "an axis holds at most 2^32 - 1"
        )
    ends = each.long().cumsum(0)
    total = int(ends[-1].item()) if length else 0
    _expect_length(total, output_size)
    places = ends._search_sorted(_core.arange(0, total, dtype=_core.int64), True)
    return x.index_select(axis, places.to(index_dtype(x)).to(x.device))


@method
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Returns matrices over two new axes whose diagonal is the last axis of `input`, zero elsewhere.

    Example:
        >>> wg.diag_embed(wg.tensor([1.0, 2.0]))
        tensor([[1., 0.],
                [0., 2.]])
    """
    if input.ndim == 0:
        raise _core.ShapeError("diag_embed: at least one axis expected, got a number")
    rank = input.ndim + 1
    if axis_of("diag_embed", dim1, rank) == axis_of("diag_embed", dim2, rank):
        raise ValueError(f"diag_embed: two different axes expected, got {dim1} and {dim2} of {rank}")
    length = input.shape[-1]
    size = length + abs(offset)
    rows, columns = positions_like(input, size).unsqueeze(1), positions_like(input, size).unsqueeze(0)
    wide = _core._pad(input, [max(offset, 0), max(-offset, 0)]).unsqueeze(-2)
    out = _core.where(columns - rows == offset, wide, _core.zeros((), dtype=input.dtype, device=input.device))
    return out.movedim((-2, -1), (dim1, dim2))


@method
def unfold(input: Tensor, dimension: int, size: int, step: int = 1) -> Tensor:
    """Returns windows of `size` elements every `step` along an axis; the window is a new last axis. A copy.

    Example:
        >>> wg.unfold(wg.arange(5), 0, 3, 2)
        tensor([[0, 1, 2],
                [2, 3, 4]])
    """
    x, axis = on_axis("unfold", input, dimension)
    length = x.shape[axis]
    if not 0 <= size <= length or step < 1:
        raise ValueError(
            f"unfold: windows of {size} every {step} do not fit axis {dimension} of length {length}; the size is "
            "at most the length, the step at least 1"
        )
    if input.ndim == 0:
        # The one window of a number is a vector.
        return x.narrow(0, 0, size).clone()
    count = (length - size) // step + 1
    places = (positions_like(x, count) * step).unsqueeze(1) + positions_like(x, size)
    return x.take(places, axis).movedim(axis + 1, -1)


def _at_least(name: str, rank: int, tensors: Sequence[TensorLike]) -> Any:
    def one(x: TensorLike) -> Tensor:
        x = operand(name, x)
        if x.ndim >= rank:
            return x
        # NumPy's placing: a vector is a row, a matrix the front of a block.
        shapes = {0: [1] * rank, 1: [1, *x.shape, 1][: rank if rank > 1 else 1], 2: [*x.shape, 1]}
        return x.reshape(list(x.shape) if rank == 1 and x.ndim else shapes[x.ndim])

    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
        return tuple(one(x) for x in tensors)
    return one(tensors[0]) if len(tensors) == 1 else tuple(one(x) for x in tensors)


def atleast_1d(*tensors: TensorLike) -> Any:
    """Returns numbers as vectors of one element, everything else as it is.

    Example:
        >>> wg.atleast_1d(wg.tensor(3.0))
        tensor([3.])
    """
    return _at_least("atleast_1d", 1, tensors)


def atleast_2d(*tensors: TensorLike) -> Any:
    """Returns numbers and vectors as matrices of one row, everything else as it is.

    Example:
        >>> wg.atleast_2d(wg.tensor([1.0, 2.0]))
        tensor([[1., 2.]])
    """
    return _at_least("atleast_2d", 2, tensors)


def atleast_3d(*tensors: TensorLike) -> Any:
    """Gives tensors at least three axes: a vector along the second axis, a matrix along the first two.

    Example:
        >>> wg.atleast_3d(wg.tensor([1.0, 2.0])).shape
        (1, 2, 1)
    """
    return _at_least("atleast_3d", 3, tensors)


def dstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Joins tensors along the third axis, after `atleast_3d`.

    Example:
        >>> wg.dstack((wg.tensor([1.0]), wg.tensor([2.0])))
        tensor([[[1., 2.]]])
    """
    return _core.cat([atleast_3d(x) for x in operands("dstack", tensors)], 2)


def column_stack(tensors: Sequence[TensorLike]) -> Tensor:
    """Joins tensors along the second axis; numbers and vectors are columns.

    Example:
        >>> wg.column_stack((wg.tensor([1.0, 2.0]), wg.tensor([3.0, 4.0])))
        tensor([[1., 3.],
                [2., 4.]])
    """
    parts = operands("column_stack", tensors)
    return _core.cat([x if x.ndim > 1 else x.reshape(-1, 1) for x in parts], 1)


def block_diag(*tensors: TensorLike) -> Tensor:
    """Makes a matrix with these matrices along its diagonal, zero elsewhere; vectors are rows.

    Example:
        >>> wg.block_diag(wg.tensor([[1, 2]]), wg.tensor([3]))
        tensor([[1, 2, 0],
                [0, 0, 3]])
    """
    blocks = [atleast_2d(x) for x in operands("block_diag", tensors)]
    if any(x.ndim != 2 for x in blocks):
        raise _core.ShapeError(
            f"block_diag: matrices expected, got shapes {', '.join(str(tuple(x.shape)) for x in blocks)}"
        )
    width = sum(x.shape[1] for x in blocks)
    rows, left = [], 0
    for x in blocks:
        rows.append(_core._pad(x, [left, width - left - x.shape[1]]))
        left += x.shape[1]
    return _core.cat(rows, 0) if rows else _core.zeros(1, 0)


def cartesian_prod(*tensors: TensorLike) -> Tensor:
    """Returns all tuples with one element of each vector, as rows.

    Example:
        >>> wg.cartesian_prod(wg.tensor([1, 2]), wg.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])
    """
    vectors = [x.reshape(-1) for x in operands("cartesian_prod", tensors)]
    if len(vectors) == 1:
        return vectors[0]
    sizes = [x.shape[0] for x in vectors]
    columns = [
        x.reshape([-1 if k == i else 1 for k in range(len(sizes))]).expand(sizes).reshape(-1)
        for i, x in enumerate(vectors)
    ]
    return _core.stack(columns, 1)


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
    _core.empty(0, count, r)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.fromiter(itertools.chain.from_iterable(choose(range(n), r)), np.int64, count * r)
    places = places.reshape(count, r)
    return x.take(_core.tensor(places, dtype=index_dtype(x), device=x.device), 0)


def _triangle(row: int, col: int, first: int, last: int, dtype: Any, device: Any) -> Tensor:
    """The places `(i, j)` of a matrix with `first <= j - i <= last`, in the order of rows."""
    if row < 0 or col < 0:
        raise ValueError(f"{called()}: rows and columns cannot be negative, got {row} and {col}")
    where = _core.device("cpu" if device is None else device)
    kind = dtype or (_core.int64 if where.type == "cpu" else _core.int32)
    # Row `i` has the columns from `begin` to before `end`.
    i = _core.arange(row)
    begin = (i + min(max(first, -row), col)).clamp(0, col)
    end = (i + min(max(last, -row), col) + 1).clamp(0, col)
    counts = (end - begin).clamp(min=0)
    rows = i.repeat_interleave(counts)
    starts = (counts.cumsum(0) - counts - begin).repeat_interleave(counts)
    return _core.stack([rows, _core.arange(rows.numel()) - starts]).to(kind).to(where)


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Returns rows and columns of the lower triangle of a matrix, up to diagonal `offset`, as a tensor of two rows.

    int64, or int32 on a GPU, unless `dtype` says otherwise.

    Example:
        >>> wg.tril_indices(2, 2)
        tensor([[0, 1, 1],
                [0, 0, 1]])
    """
    return _triangle(row, col, -row - 1, offset, dtype, device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Returns rows and columns of the upper triangle of a matrix, from diagonal `offset` on, as a tensor of two rows.

    int64, or int32 on a GPU, unless `dtype` says otherwise.

    Example:
        >>> wg.triu_indices(2, 2)
        tensor([[0, 0, 1],
                [0, 1, 1]])
    """
    return _triangle(row, col, offset, col, dtype, device)


def vander(x: TensorLike, N: int | None = None, increasing: bool = False) -> Tensor:
    """Returns the Vandermonde matrix of a vector: its powers from `N - 1` to 0 as columns, or the other way round.

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
    kind = _core.float32 if dtype is None else _core.empty(0, dtype=dtype).dtype
    if kind == _core.bool:
        raise TypeError("logspace: a dtype of numbers expected, got bool; convert with .bool()")
    if not kind.is_differentiable:
        start, end = (x.trunc() if isinstance(x, Tensor) else int(x) for x in (start, end))
    exponents = linspace(start, end, steps, dtype=_core.float64)
    return (base**exponents).to(kind).to(device or "cpu")


@method
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Rotates by `k` quarter turns in the plane of `dims`, from `dims[0]` towards `dims[1]`. A copy.

    Example:
        >>> wg.rot90(wg.tensor([[1, 2], [3, 4]]))
        tensor([[2, 4],
                [1, 3]])
    """
    if len(dims) != 2 or dims[0] % max(input.ndim, 1) == dims[1] % max(input.ndim, 1):
        raise ValueError(
            f"rot90: two different axes expected, got {tuple(dims)} for a tensor with {input.ndim} axes"
        )
    a, b = dims
    quarter = k % 4
    if quarter == 0:
        return input.clone()
    if quarter == 2:
        return input.flip(a, b)
    return input.transpose(a, b).flip(a if quarter == 1 else b)
