"""What the functions of masks share: the elements that count, and others in the place of the rest."""

import math
from typing import Any

from wengert import _core
from wengert._arguments import no_tensor, operand
from wengert._core import Tensor
from wengert._info import iinfo
from wengert._types import DTypeLike, TensorLike

__all__ = ["counted", "filled", "lowest", "prepared"]


def prepared(name: str, input: TensorLike, dtype: DTypeLike | None, inexact: bool = False) -> Tensor:
    """The input as a tensor of `dtype`, where that is given; for `inexact` results, integers as float32."""
    x = operand(name, input)
    x = x if dtype is None else x.to(dtype)
    return x.float() if inexact and not x.dtype.is_differentiable else x


def filled(name: str, x: Tensor, mask: Tensor | None, value: float) -> Tensor:
    """The elements that count, and `value` in the place of the others.

    Raises:
        TypeError: the mask is no tensor of bools.
        ShapeError: it does not broadcast to the input.
    """
    if mask is None:
        return x
    if not isinstance(mask, Tensor):
        raise no_tensor(name, "mask", mask)
    if mask.dtype != _core.bool:
        raise TypeError(f"{name}: mask must be of bools, got {mask.dtype}; compare, as in mask != 0")
    own, given = tuple(x.shape), tuple(mask.shape)
    if len(given) > len(own) or any(n not in (1, m) for n, m in zip(given[::-1], own[::-1], strict=False)):
        raise _core.ShapeError(
            f"{name}: a mask of shape {given} does not broadcast to an input of shape {own}"
        )
    return _core.where(mask, x, _core.tensor(value, dtype=x.dtype, device=x.device))


def counted(name: str, x: Tensor, dim: Any, keepdim: bool, mask: Tensor | None) -> Tensor:
    """How many elements count along `dim`, in the dtype of `x`."""
    ones = _core.ones_like(x.detach())
    return filled(name, ones, mask, 0).sum(dim, keepdim=keepdim)


def lowest(x: Tensor, largest: bool = False) -> float:
    """The smallest number of the dtype, minus infinity where there is one, or the largest."""
    if x.dtype.is_differentiable:
        return math.inf if largest else -math.inf
    if x.dtype == _core.bool:
        return int(largest)
    limits = iinfo(x.dtype)
    found: int = limits.max if largest else limits.min
    return found
