"""Numerical derivatives of functions that are known at points."""

from collections.abc import Sequence
from numbers import Number
from typing import Any

from wengert import _core
from wengert._arguments import axis_of, operand
from wengert._core import Tensor
from wengert._types import Dims, TensorLike

__all__ = ["gradient"]

Spacing = complex | Tensor | Sequence[complex | Tensor] | None


def gradient(
    input: TensorLike, *, spacing: Spacing = 1, dim: Dims = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Returns estimates of the partial derivatives of a function from its values at points of a grid.

    Inside by central differences of second order, also for uneven distances (B. Fornberg, 1988), at the ends
    by one-sided ones.

    Args:
        input: the values. Integers become float32.
        spacing: the distance of neighbours, one for all axes (None is 1) or one for each; or for each axis
            the coordinates of its points, a tensor of one axis and its length.
        dim: an axis or several; all by default.
        edge_order: 1 for first order at the ends, 2 for second.

    Returns:
        A tuple of tensors of the shape of `input`, one for each axis.

    Raises:
        ValueError: axes of fewer than `edge_order + 1` points, another `edge_order`, an axis given twice, or
            not as many distances as axes.

    Example:
        >>> wg.gradient(wg.tensor([0.0, 1.0, 4.0, 9.0]))
        (tensor([1., 2., 4., 5.]),)
        >>> wg.gradient(wg.tensor([0.0, 1.0, 9.0]), spacing=(wg.tensor([0.0, 1.0, 3.0]),), edge_order=2)
        (tensor([0., 2., 6.]),)
    """
    x = operand("gradient", input)
    x = x if x.dtype.is_differentiable else x.float()
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order!r}")
    given = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    axes = [axis_of("gradient", axis, x.ndim) for axis in given]
    if len(set(axes)) < len(axes):
        raise ValueError(f"gradient: an axis is given twice in dim={dim!r}")
    if isinstance(spacing, (list, tuple)):
        steps = list(spacing)
    elif isinstance(spacing, Tensor) and spacing.ndim:
        steps = [spacing]
    else:
        steps = [1 if spacing is None else spacing] * len(axes)
    if len(steps) != len(axes):
        raise ValueError(
            f"gradient: one spacing or one for each of {len(axes)} axes expected, got {len(steps)}"
        )
    return tuple(_along(x, axis, step, edge_order) for axis, step in zip(axes, steps, strict=True))


def _along(x: Tensor, axis: int, step: complex | Tensor, edge_order: int) -> Tensor:
    """The derivative along one axis."""
    n = x.shape[axis]
    if n <= edge_order:
        raise ValueError(
            f"gradient: at least {edge_order + 1} points along axis {axis} expected for "
            f"edge_order={edge_order}, got {n}"
        )
    if not (isinstance(step, Number | Tensor) or hasattr(step, "__array__")):
        raise TypeError(
            f"gradient: a spacing is a number or a tensor, got {type(step).__name__} for axis {axis}"
        )
    x = x.movedim(axis, -1)
    gaps: Tensor | None = None
    if isinstance(step, Tensor) and step.ndim:
        if tuple(step.shape) != (n,):
            raise ValueError(
                f"gradient: {n} coordinates expected for axis {axis}, got a tensor of shape "
                f"{tuple(step.shape)}"
            )
        gaps = step.to(x.dtype).diff()
    slopes = x.diff(dim=-1) / (step if gaps is None else gaps)
    # Inside the mean of the slopes on both sides, weighted by the distance on the other.
    share: Any = 0.5 if gaps is None else gaps[:-1] / (gaps[:-1] + gaps[1:])
    change = slopes.diff(dim=-1)
    if gaps is None:
        inside = (x[..., 2:] - x[..., :-2]) / (2 * step)
    else:
        inside = slopes[..., :-1] + change * share
    first, last = slopes[..., :1], slopes[..., -1:]
    if edge_order == 2:
        first = first - change[..., :1] * (0.5 if gaps is None else share[:1])
        last = last + change[..., -1:] * (0.5 if gaps is None else 1 - share[-1:])
    return _core.cat([first, inside, last], -1).movedim(-1, axis)
