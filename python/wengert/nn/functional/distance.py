"""Distances between all pairs of vectors."""

import math

import wengert as wg
from wengert import _core
from wengert._arguments import of_tensors
from wengert._core import Tensor
from wengert._precision import in_float32, in_floats

__all__ = ["cdist", "pdist"]

_COMPUTE_MODES = tuple(
    f"{use}use_mm_for_euclid_dist{when}" for use, when in (("", "_if_necessary"), ("", ""), ("donot_", ""))
)


def _norm(difference: Tensor, p: float) -> Tensor:
    """The `p`-norm over the last axis; its gradient at zero is zero."""
    if p < 0:
        raise ValueError(f"a norm has an exponent p from 0 to infinity, got {p}")
    if difference.shape[-1] == 0:
        return difference.sum(-1)
    if p == math.inf:
        return difference.abs().amax(-1)
    return difference.norm(p, -1)


@of_tensors
@in_floats
@in_float32
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """Returns the `p`-norm distance of each row of `x1` `(..., P, M)` to each row of `x2` `(..., R, M)`:
    `(..., P, R)`.

    Differences are formed, which needs `P R M` elements but is exact for close points, where the expansion of
    the square is not. At distance 0 the gradient is 0. `compute_mode`, one of PyTorch's, is accepted and
    changes nothing.

    Example:
        >>> wg.nn.functional.cdist(wg.tensor([[0.0, 0.0]]), wg.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5., 1.]])
    """
    if compute_mode not in _COMPUTE_MODES:
        raise ValueError(
            f"cdist: compute_mode must be one of {', '.join(_COMPUTE_MODES)}, got {compute_mode!r}"
        )
    if min(x1.ndim, x2.ndim) < 2 or x1.shape[-1] != x2.shape[-1]:
        raise _core.ShapeError(
            f"cdist: vectors of one length in (..., P, M) and (..., R, M) expected, got shapes "
            f"{tuple(x1.shape)} and {tuple(x2.shape)}"
        )
    return _norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


@of_tensors
@in_floats
@in_float32
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Returns the `p`-norm distances of all pairs of rows of a matrix `input`, row by row of the upper
    triangle.

    Example:
        >>> wg.nn.functional.pdist(wg.tensor([[0.0, 0.0], [3.0, 4.0]]))
        tensor([5.])
    """
    if input.ndim != 2:
        raise _core.ShapeError(f"pdist: a matrix expected, got shape {tuple(input.shape)}")
    pairs = wg.triu_indices(input.shape[0], input.shape[0], 1, device=input.device)
    first, second = pairs.unbind(0)
    return _norm(input.index_select(0, first) - input.index_select(0, second), p)
