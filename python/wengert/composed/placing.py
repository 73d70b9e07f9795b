"""Tensors with a part replaced or limited: a slice, a diagonal, slices that an index names."""

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor
from wengert._types import Operand, TensorLike

from ._method import method, on_axis, positions_like
from .scattering import REDUCTIONS, index_copy, same_dtype, scatter_reduce

__all__ = [
    "diagflat",
    "diagonal_scatter",
    "fill_diagonal_",
    "index_reduce",
    "renorm",
    "select_scatter",
    "slice_scatter",
]


@method
def select_scatter(input: Tensor, src: TensorLike, dim: int, index: int) -> Tensor:
    """Returns `input` with the slice at `index` along `dim` replaced by `src`, which has one axis less.

    Example:
        >>> wg.select_scatter(wg.zeros(2, 2), wg.ones(2), 0, 1)
        tensor([[0., 0.],
                [1., 1.]])
    """
    x, axis = _with_axis("select_scatter", input, dim)
    length = x.shape[axis]
    if not isinstance(index, int):
        raise TypeError(f"select_scatter: index must be an integer, got {type(index).__name__}")
    if not -length <= index < length:
        raise IndexError(
            f"select_scatter: index {index} is out of range for axis {axis} of length {length} of shape "
            f"{tuple(x.shape)}"
        )
    return _placed("select_scatter", x, axis, index, operand("select_scatter", src, input))


@method
def slice_scatter(
    input: Tensor,
    src: TensorLike,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Returns `input` with the elements `start`, `start + step`, … before `end` along `dim` replaced by those of
    `src`.

    Example:
        >>> wg.slice_scatter(wg.zeros(4), wg.ones(2), start=1, end=3)
        tensor([0., 1., 1., 0.])
    """
    x, axis = _with_axis("slice_scatter", input, dim)
    if step < 1:
        raise ValueError(f"slice_scatter: step must be at least 1, got {step}")
    return _placed("slice_scatter", x, axis, slice(start, end, step), operand("slice_scatter", src, input))


def _with_axis(name: str, input: Tensor, dim: int) -> tuple[Tensor, int]:
    if input.ndim == 0:
        raise _core.ShapeError(f"{name}: at least one axis expected, got a number")
    return on_axis(name, input, dim)


def _placed(name: str, x: Tensor, axis: int, part: int | slice, source: Tensor) -> Tensor:
    key = (*[slice(None)] * axis, part)
    expected = tuple(x.detach()[key].shape)
    if tuple(source.shape) != expected:
        raise _core.ShapeError(
            f"{name}: src has shape {tuple(source.shape)}, expected {expected} as the part it replaces"
        )
    return x._written(key, source.to(x.dtype), False)


@method
def diagonal_scatter(input: Tensor, src: TensorLike, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Returns `input` with a diagonal replaced by `src`, of the shape of `input.diagonal(offset, dim1, dim2)`.

    Example:
        >>> wg.diagonal_scatter(wg.zeros(2, 2), wg.tensor([1.0, 2.0]))
        tensor([[1., 0.],
                [0., 2.]])
    """
    source = operand("diagonal_scatter", src, input)
    places = positions_like(input, input.numel()).reshape(input.shape).diagonal(offset, dim1, dim2)
    if source.shape != places.shape:
        raise _core.ShapeError(
            f"diagonal_scatter: src has shape {tuple(source.shape)}, expected {tuple(places.shape)} as the diagonal"
        )
    out = index_copy(input.reshape(-1), 0, places.reshape(-1), source.reshape(-1).to(input.dtype))
    return out.reshape(input.shape)


@method
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Makes a matrix with all elements of `input`, in their order, on a diagonal, zero elsewhere.

    Example:
        >>> wg.diagflat(wg.tensor([1.0, 2.0]), 1)
        tensor([[0., 1., 0.],
                [0., 0., 2.],
                [0., 0., 0.]])
    """
    return input.reshape(-1).diag(offset)


@method
def fill_diagonal_(input: Tensor, fill_value: Operand, wrap: bool = False) -> Tensor:
    """Sets the main diagonal, where all indices are equal, to a number, in place.

    Args:
        wrap: of a matrix with more rows than columns, let the diagonal begin anew below its end, after one row.

    Raises:
        ShapeError: fewer than two axes, or more than two of different lengths.
    """
    shape = tuple(input.shape)
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise _core.ShapeError(
            f"fill_diagonal_: a matrix expected, or more axes of one length, got shape {shape}"
        )
    if len(shape) > 2 or not wrap:
        places = positions_like(input, min(shape))
        input[(places,) * len(shape)] = fill_value
        return input
    # Row by row, the diagonal moves one column on; after the last column one row is left out.
    flat = positions_like(input, -(-input.numel() // (shape[1] + 1))) * (shape[1] + 1)
    input[flat // max(shape[1], 1), flat % max(shape[1], 1)] = fill_value
    return input


@method
def index_reduce(
    input: Tensor, dim: int, index: TensorLike, source: TensorLike, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Returns `input` with the slices of `source` combined along `dim` at the indices of the vector `index`.

    Args:
        reduce: `"prod"`, `"mean"`, `"amax"`, `"amin"` or `"sum"`, as in `scatter_reduce`.
        include_self: whether what is there takes part.

    Example:
        >>> wg.index_reduce(wg.ones(2), 0, wg.tensor([1, 1]), wg.tensor([2.0, 3.0]), "prod")
        tensor([1., 6.])
    """
    if reduce not in REDUCTIONS:
        raise ValueError(f"index_reduce: reduce must be one of {', '.join(REDUCTIONS)}, got {reduce!r}")
    x = input if input.ndim else input.reshape(1)
    axis, index, source = reduced_slices(input, dim, index, source)
    places = index.reshape([-1 if k == axis else 1 for k in range(x.ndim)]).expand(source.shape)
    out = scatter_reduce(x, axis, places, source, reduce, include_self=include_self)
    return out if input.ndim else out.reshape(())


def reduced_slices(
    input: Tensor, dim: int, index: TensorLike, source: TensorLike
) -> tuple[int, Tensor, Tensor]:
    """The axis, the vector of places and the slices of `index_reduce`, which must fit."""
    x, axis = on_axis("index_reduce", input, dim)
    index, source = operand("index_reduce", index), operand("index_reduce", source, input)
    same_dtype("index_reduce", x, source)
    source = source if source.ndim else source.reshape(1)
    expected = [index.numel() if k == axis else n for k, n in enumerate(x.shape)]
    if index.ndim > 1 or list(source.shape) != expected:
        raise _core.ShapeError(
            f"index_reduce: index of shape {tuple(index.shape)} and source of shape {tuple(source.shape)} for axis "
            f"{axis} of a tensor of shape {tuple(x.shape)}; expected a vector and a source of shape {tuple(expected)}"
        )
    return axis, index.reshape(-1), source


@method
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Returns `input` with every slice along `dim` whose `p`-norm exceeds `maxnorm` scaled down to it.

    Example:
        >>> wg.renorm(wg.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
        tensor([[0.6, 0.8],
                [0.3, 0.4]])
    """
    if not p > 0 or maxnorm < 0:
        raise ValueError(
            f"renorm: a positive p and a maxnorm that is not negative expected, got {p} and {maxnorm}"
        )
    x, axis = on_axis("renorm", input, dim)
    others = [k for k in range(x.ndim) if k != axis]
    size = x.norm(p, others, True) if others else x.abs()
    # As PyTorch, with 1e-7 more in the divisor, so that rounding does not leave a norm above the limit.
    factor = _core.where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)
    return (x * factor).reshape(input.shape)
