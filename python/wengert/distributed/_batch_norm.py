"""Batch normalisation by the batches of all ranks together."""

from __future__ import annotations

import wengert as wg
from wengert import _core
from wengert._core import Tensor

from ._group import Group

__all__ = ["batch_norm"]


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float,
    eps: float,
    group: Group,
) -> Tensor:
    """`nn.functional.batch_norm` in training, whose mean and variance are those of all ranks' inputs.

    One message each way: mean, sum of squares around it and count of each rank, which are put together as
    Chan, Golub and LeVeque (1979) do; the gradients of these in backward.
    """
    x = input.float() if input.itemsize == 2 else input
    shape = [1, -1, *[1] * (x.ndim - 2)]
    dims = [axis for axis in range(x.ndim) if axis != 1]
    count = x.numel() // x.shape[1]
    mean = x.sum(dims) / max(count, 1)
    squares = (x - mean.reshape(shape)).square().sum(dims)
    own = wg.stack([mean, squares, wg.full_like(mean, float(count))])
    means, squares, counts = _core._collective(own, "gather", 0, group.members).unbind(1)
    total = counts.sum(0)
    if float(total[0]) < 2:
        raise ValueError("SyncBatchNorm: more than one value per channel expected, on all ranks together")
    mean = (means * counts).sum(0) / total
    var = (squares.sum(0) + (counts * (means - mean).square()).sum(0)) / total
    with wg.no_grad():
        if running_mean is not None and running_var is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            running_var.lerp_((var * total / (total - 1)).to(running_var.dtype), momentum)
    out = (x - mean.reshape(shape)) * (var + eps).rsqrt().reshape(shape)
    if weight is not None:
        out = out * weight.reshape(shape)
    if bias is not None:
        out = out + bias.reshape(shape)
    return out.to(input.dtype)
