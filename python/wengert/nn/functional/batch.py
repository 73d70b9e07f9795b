"""Normalisation by the statistics of a batch."""

import wengert as wg
from wengert._arguments import of_tensors
from wengert._core import Tensor

__all__ = ["batch_norm"]


def _update(running: Tensor | None, now: Tensor, momentum: float) -> None:
    if running is not None:
        with wg.no_grad():
            running.mul_(1.0 - momentum).add_(now.detach().to(running.dtype) * momentum)


@of_tensors
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Zero mean and unit variance for each channel (axis 1), then `* weight + bias` (Ioffe and Szegedy 2015).

    Args:
        input: `(n, c, ..)`.
        running_mean: `(c,)`; the mean that is used outside of training, and moved towards the batch's by `momentum`
            in training.
        running_var: `(c,)`; the same for the variance, which is that of the sample (divided by `count - 1`).
        weight: `(c,)` or None.
        bias: `(c,)` or None.
        training: normalise by the mean and variance of this batch; also where there are no running statistics.
        momentum: the weight of this batch in the running statistics.
        eps: added to the variance.

    Raises:
        ShapeError: where the input has no channels axis.
        ValueError: in training, for one value per channel, whose variance is always 0.
    """
    if input.ndim < 2:
        raise wg.ShapeError(
            f"batch_norm: input of shape (n, channels, ..) expected, got {tuple(input.shape)}"
        )
    axes = tuple(i for i in range(input.ndim) if i != 1)
    per_channel = (-1, *[1] * (input.ndim - 2))
    wide = input.to(wg.float32) if input.dtype.itemsize < 4 else input
    if training or running_mean is None or running_var is None:
        count = input.numel() // max(input.shape[1], 1)
        if training and count == 1:
            raise ValueError(
                f"batch_norm: more than one value per channel expected in training, got input of shape "
                f"{tuple(input.shape)}; use a larger batch, or eval()"
            )
        mean = wide.mean(axes)
        centred = wide - mean.reshape(per_channel)
        var = (centred * centred).mean(axes)
        if training:
            _update(running_mean, mean, momentum)
            _update(running_var, var * (count / max(count - 1, 1)), momentum)
    else:
        mean, var = running_mean.to(wide.dtype), running_var.to(wide.dtype)
        centred = wide - mean.reshape(per_channel)
    scale = (var + eps).rsqrt()
    if weight is not None:
        scale = scale * weight.to(scale.dtype)
    out = centred * scale.reshape(per_channel)
    if bias is not None:
        out = out + bias.to(out.dtype).reshape(per_channel)
    return out.to(input.dtype)
