"""Convolutions of several axes, with the parameters that autograd adds to those of `scipy.signal`."""

from collections.abc import Sequence
from math import prod
from typing import Any

from wengert._arguments import axis_of
from wengert._core import Tensor
from wengert.nn.functional import conv1d, conv2d, conv3d
from wengert.numpy import result_type
from wengert.numpy._elementwise import alike

__all__ = ["convolve"]
__dir__ = __all__.copy


def convolve(
    A: Any,
    B: Any,
    axes: Sequence[Sequence[int]] | None = None,
    dot_axes: Sequence[Sequence[int]] = ((), ()),
    mode: str = "full",
) -> Tensor:
    """Returns the convolution over some axes, at most three, summed over others as in `tensordot`.

    Args:
        A, B: tensors, arrays.
        axes: of both which are convolved, in pairs; all by default.
        dot_axes: of both which are multiplied and summed, in pairs. The axes that are left of `A`, then those
            of `B`, come first in the result.
        mode: `"full"`, or `"valid"` where both overlap completely.

    Raises:
        ValueError: another mode, or no or more than three axes to convolve.

    Example:
        >>> wg.scipy.signal.convolve([1.0, 2.0], [1.0, 1.0])
        tensor([1., 3., 2.])
    """
    x, y = alike("convolve", A, B)
    over = [list(range(t.ndim)) for t in (x, y)] if axes is None else [list(part) for part in axes]
    over = [[axis_of("convolve", k, t.ndim) for k in part] for part, t in zip(over, (x, y))]
    summed = [[axis_of("convolve", k, t.ndim) for k in part] for part, t in zip(dot_axes, (x, y))]
    if mode not in ("full", "valid") or not 1 <= len(over[0]) <= 3:
        raise ValueError(
            f"convolve: mode 'full' or 'valid', and one to three axes, expected, got {mode!r} and {axes}"
        )
    others = [
        [k for k in range(t.ndim) if k not in a and k not in s] for t, a, s in zip((x, y), over, summed)
    ]
    dtype = result_type(x, y)
    images, kernels = (
        t.to(dtype)
        .permute([*o, *s, *a])
        .reshape([prod(t.shape[k] for k in o), prod(t.shape[k] for k in s), *(t.shape[k] for k in a)])
        for t, o, s, a in zip((x, y), others, summed, over)
    )
    lengths = kernels.shape[2:]
    correlate = (conv1d, conv2d, conv3d)[len(lengths) - 1]
    padding = [n - 1 if mode == "full" else 0 for n in lengths]
    out = correlate(images, kernels.flip(list(range(2, kernels.ndim))), padding=padding)
    return out.reshape([*(x.shape[k] for k in others[0]), *(y.shape[k] for k in others[1]), *out.shape[2:]])
