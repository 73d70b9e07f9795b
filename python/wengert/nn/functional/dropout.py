"""Dropout of whole channels, and dropout that keeps the moments of self-normalising networks.

With `inplace` the result is written into the input, which is returned.
"""

from collections.abc import Callable

import wengert as wg
from wengert import _core
from wengert._arguments import of_tensors
from wengert._caller import warn
from wengert._core import Tensor
from wengert._numbers import check_probability

from .in_place import written
from .layers import dropout

__all__ = ["alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

# What SELU goes to for very negative numbers (Klambauer et al. 2017): its scale times its alpha.
LOWEST = -1.0507009873554805 * 1.6732632423543772


def _channels(name: str, input: Tensor, ranks: tuple[int, ...], unbatched: int | None) -> tuple[int, ...]:
    """The shape of one number per channel; warns of another number of axes than images have."""
    if input.ndim < 2:
        raise _core.ShapeError(f"{name}: input of shape (N, C, ...) expected, got {tuple(input.shape)}")
    if input.ndim not in ranks:
        expected = " or ".join(str(rank) for rank in ranks)
        warn(
            f"{name}: input with {expected} axes expected, got shape {tuple(input.shape)}; axis 1 is taken "
            "for the channels"
        )
    kept = 1 if input.ndim == unbatched else 2
    return (*input.shape[:kept], *[1] * (input.ndim - kept))


def _by_channel(input: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    """The input times a dropped one per channel."""
    return input * dropout(_core.ones(shape, dtype=input.dtype, device=input.device), p)


def _dropped(
    name: str,
    drop: Callable[..., Tensor],
    input: Tensor,
    shape: tuple[int, ...],
    p: float,
    training: bool,
    inplace: bool,
) -> Tensor:
    """`drop(input, shape, p)` in training, in place if asked for; raises for what is no probability."""
    check_probability(name, p)
    if not training or p == 0.0:
        return input
    return written(name, input, drop, shape, p) if inplace else drop(input, shape, p)


@of_tensors
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of `input`, `(N, C, L)` or `(C, L)`, with probability `p`, and divides the others
    by `1 - p` (Tompson et al. 2015).

    Returns the input unless `training`; with `inplace` the result is written into it.

    Raises:
        ShapeError: for another number of axes.
        ValueError: for a `p` that is no probability.

    Example:
        >>> wg.nn.functional.dropout1d(wg.ones(2, 3), training=False)
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """
    if input.ndim not in (2, 3):
        raise _core.ShapeError(f"dropout1d: input with 2 or 3 axes expected, got shape {tuple(input.shape)}")
    shape = _channels("dropout1d", input, (2, 3), 2)
    return _dropped("dropout1d", _by_channel, input, shape, p, training, inplace)


@of_tensors
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Applies `dropout1d` to `input` `(N, C, H, W)`, with its `p`, `training` and `inplace`. Three axes are
    `(N, C, L)`, as in PyTorch; two, `(N, C)`, and more warn.

    Example:
        >>> wg.nn.functional.dropout2d(wg.ones(1, 2, 2), training=False)
        tensor([[[1., 1.],
                 [1., 1.]]])
    """
    shape = _channels("dropout2d", input, (3, 4), None)
    return _dropped("dropout2d", _by_channel, input, shape, p, training, inplace)


@of_tensors
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Applies `dropout1d` to `input` `(N, C, D, H, W)` or `(C, D, H, W)`, with its `p`, `training` and
    `inplace`; of another number of axes it warns.

    Example:
        >>> wg.nn.functional.dropout3d(wg.ones(1, 1, 2, 2), training=False)
        tensor([[[[1., 1.],
                  [1., 1.]]]])
    """
    shape = _channels("dropout3d", input, (4, 5), 4)
    return _dropped("dropout3d", _by_channel, input, shape, p, training, inplace)


def _alpha(input: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    """Dropped to the lowest value of SELU, then scaled and shifted back to mean 0 and variance 1."""
    if p == 1.0:
        return input * 0.0
    dtype = input.dtype if input.dtype.itemsize > 4 else wg.float32
    keep = _core.rand(*shape, dtype=dtype, device=input.device) >= p
    scale = ((1.0 - p) * (1.0 + p * LOWEST * LOWEST)) ** -0.5
    shift = -scale * p * LOWEST
    return wg.where(keep, input, LOWEST) * scale + shift


@of_tensors
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Sets elements to the lowest value of SELU with probability `p`, and rescales (Klambauer et al. 2017).

    An `input` of mean 0 and variance 1 keeps them. Returns the input unless `training`; with `inplace` the
    result is written into it.

    Example:
        >>> wg.alpha_dropout(wg.ones(3), 0.5, False)
        tensor([1., 1., 1.])
    """
    shape = tuple(input.shape)
    return _dropped("alpha_dropout", _alpha, input, shape, p, training, inplace)


@of_tensors
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Applies `alpha_dropout` to whole channels (axis 1) of `input`, with its `p`, `training` and `inplace`.

    Example:
        >>> wg.feature_alpha_dropout(wg.ones(1, 2), 0.5, False)
        tensor([[1., 1.]])
    """
    if input.ndim < 2:
        raise _core.ShapeError(
            f"feature_alpha_dropout: input of shape (N, C, ...) expected, got {tuple(input.shape)}"
        )
    shape = (*input.shape[:2], *[1] * (input.ndim - 2))
    return _dropped("feature_alpha_dropout", _alpha, input, shape, p, training, inplace)
