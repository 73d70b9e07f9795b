"""Normalisation by the statistics of a batch, of each image, and of neighbouring channels."""

import wengert as wg
from wengert._arguments import check_real, of_tensors
from wengert._core import Tensor
from wengert._precision import in_float32

from .layers import group_norm, pad

__all__ = ["batch_norm", "instance_norm", "local_response_norm"]


def _update(running: Tensor | None, now: Tensor, momentum: float) -> None:
    if running is not None:
        with wg.no_grad():
            # One write, so that a write which fails leaves nothing half done.
            running.copy_(running * (1.0 - momentum) + now.detach().to(running.dtype) * momentum)


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
    """Normalises each channel (axis 1) to zero mean and unit variance, then `* weight + bias` (Ioffe and
    Szegedy 2015).

    Args:
        input: `(n, c, ..)`.
        running_mean: `(c,)`; the mean that is used outside of training, and moved towards the batch's by
            `momentum` in training.
        running_var: `(c,)`; the same for the variance, which is that of the sample (divided by `count - 1`).
        weight: `(c,)` or None.
        bias: `(c,)` or None.
        training: normalise by the mean and variance of this batch; also where there are no running
            statistics.
        momentum: the weight of this batch in the running statistics.
        eps: added to the variance.

    Raises:
        ShapeError: where the input has no channels axis.
        TypeError: for complex numbers; integers are converted to float32.
        ValueError: in training, for one value per channel, whose variance is always 0,
            and an `eps` that is not positive.

    Example:
        >>> wg.nn.functional.batch_norm(wg.tensor([[1.0], [3.0]]), None, None, training=True)
        tensor([[-1.],
                [ 1.]])
    """
    if input.ndim < 2:
        raise wg.ShapeError(
            f"batch_norm: input of shape (n, channels, ..) expected, got {tuple(input.shape)}"
        )
    if training and not eps > 0:
        raise ValueError(f"batch_norm: eps must be positive in training, got {eps}")
    check_real("batch_norm", input=input, weight=weight, bias=bias)
    check_real("batch_norm", running_mean=running_mean, running_var=running_var)
    if not input.dtype.is_floating_point:
        input = input.float()
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
        if training and count:
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


@of_tensors
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of each image to zero mean and unit variance, then `* weight + bias` (Ulyanov
    et al. 2016).

    Args:
        input: `(n, c, ..)` with at least one spatial axis.
        running_mean: `(c,)`; the mean that is used without `use_input_stats`, and with it is moved towards
            the mean of the images' means by `momentum`.
        running_var: `(c,)`; the same for the variance, which is that of the sample (divided by `count - 1`).
        weight: `(c,)` or None.
        bias: `(c,)` or None.
        use_input_stats: normalise by the images' own statistics rather than by the running ones.
        momentum: the weight of this batch in the running statistics.
        eps: added to the variance.

    Raises:
        ShapeError: where the input has no spatial axis.
        ValueError: for one value per channel, whose variance is always 0; without any statistics.

    Example:
        >>> wg.nn.functional.instance_norm(wg.tensor([[[1.0, 3.0]]]))
        tensor([[[-1.,  1.]]])
    """
    if input.ndim < 3:
        raise wg.ShapeError(
            f"instance_norm: input of shape (n, channels, ..) with a spatial axis expected, got "
            f"{tuple(input.shape)}"
        )
    check_real("instance_norm", weight=weight, bias=bias)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ValueError(
                "instance_norm: running_mean and running_var are needed where use_input_stats is False"
            )
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    axes = tuple(range(2, input.ndim))
    count = input.numel() // max(input.shape[0] * input.shape[1], 1)
    if count == 1:
        raise ValueError(
            f"instance_norm: more than one value per channel of an image expected, got input of shape "
            f"{tuple(input.shape)}"
        )
    if input.numel() and (running_mean is not None or running_var is not None):
        with wg.no_grad():
            wide = input.detach().to(wg.float32) if input.dtype.itemsize < 4 else input.detach()
            mean = wide.mean(axes, keepdim=True)
            var = (wide - mean).square().mean(axes) * (count / max(count - 1, 1))
            _update(running_mean, mean.flatten(1).mean(0), momentum)
            _update(running_var, var.mean(0), momentum)
    return group_norm(input, input.shape[1], weight, bias, eps)


@of_tensors
@in_float32
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Returns `x / (k + alpha m)^beta`, where m is the mean of the squares of `size` neighbouring channels
    (axis 1).

    x is the `input` `(n, channels, ..)`. Channels beyond the first and last count as zeros (Krizhevsky et al.
    2012). Of integers, m loses its fraction, as in `avg_pool1d`, and the result is float32.

    Raises:
        ShapeError: for an input without a spatial axis.
        ValueError: for a size below 1.

    Example:
        >>> wg.nn.functional.local_response_norm(wg.ones(1, 2, 1), 2, alpha=0.0)
        tensor([[[1.],
                 [1.]]])
    """
    if input.ndim < 3:
        raise wg.ShapeError(
            f"local_response_norm: input of shape (n, channels, ..) with a spatial axis expected, got "
            f"{tuple(input.shape)}"
        )
    if size < 1:
        raise ValueError(f"local_response_norm: size must be 1 or more, got {size}")
    squares = pad(input.square().movedim(1, -1), (size // 2, (size - 1) // 2))
    windows = squares.unfold(-1, size, 1)
    mean = windows.mean(-1) if squares.dtype.is_differentiable else windows.sum(-1) // size
    return input / (mean.movedim(-1, 1) * alpha + k).pow(beta)
