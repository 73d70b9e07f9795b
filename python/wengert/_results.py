"""Named pairs that operations return, and results that depend on something in name only."""

from typing import NamedTuple

from wengert._core import Tensor


class Along(NamedTuple):
    """Extrema along an axis and where they are."""

    values: Tensor
    indices: Tensor


def beside(out: Tensor, *sources: Tensor) -> Tensor:
    """A result as a function of `sources` too, on which it depends with a derivative of zero.

    What is added is the sum of none of their elements, so that NaN does not get into the result.
    """
    for x in sources:
        if x.requires_grad and out.dtype.is_differentiable:
            out = out + x.reshape(-1).narrow(0, 0, 0).sum().to(out.dtype)
    return out
