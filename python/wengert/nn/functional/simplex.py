"""Functions onto the simplex along an axis, whose results sum to 1: softmax and its relatives, and their
logarithms."""

from typing import Any

import wengert as wg
from wengert._arguments import no_tensor, of_tensors
from wengert._core import Tensor
from wengert._precision import in_floats

__all__ = ["gumbel_softmax", "log_softmax", "softmax", "softmin"]


@of_tensors
@in_floats
def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Makes a random choice along `dim` with probabilities `softmax(logits)`, relaxed so that it has
    gradients (Jang et al. and Maddison et al. 2016).

    Args:
        logits: logarithms of probabilities, up to a constant.
        tau: the temperature: the smaller, the nearer to one-hot.
        hard: return one-hot values, with the gradient of the relaxed ones.
        eps: accepted; the noise never needs it.
        dim: the axis of the choice.

    Raises:
        ValueError: for a temperature that is not positive.

    Example:
        >>> wg.nn.functional.gumbel_softmax(wg.zeros(2, 3), hard=True).sum(dim=-1)
        tensor([1., 1.])
    """
    if not tau > 0:
        raise ValueError(f"gumbel_softmax: tau must be positive, got {tau}")
    dtype = logits.dtype if logits.dtype.itemsize > 4 else wg.float32
    # 1 - u lies in (0, 1], where the logarithm is finite; twice negated logarithms of it are Gumbel's.
    noise = -((-((1.0 - wg.rand_like(logits, dtype=dtype)).log())).clamp(min=wg.finfo(dtype).tiny).log())
    soft = softmax((logits + noise.to(logits.dtype)) / tau, dim)
    if not hard:
        return soft
    if soft.ndim == 0:
        return wg.ones_like(soft) - soft.detach() + soft
    places = wg.arange(soft.shape[dim], dtype=wg.int32, device=soft.device)
    axis = dim % soft.ndim
    places = places.reshape([-1 if k == axis else 1 for k in range(soft.ndim)])
    chosen = (places == soft.detach().argmax(dim, keepdim=True)).to(soft.dtype)
    return chosen - soft.detach() + soft


def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Returns `exp(x) / sum exp(x)` of `input` along `dim` (the last axis if None), in one fused pass. Saves
    the output.

    With `dtype` the input is converted to it first.

    Example:
        >>> wg.nn.functional.softmax(wg.tensor([0.0, 0.0]), dim=0)
        tensor([0.5, 0.5])
    """
    if not isinstance(input, Tensor):
        raise no_tensor("softmax", "input", input)
    return _cast(input, dtype).softmax(-1 if dim is None else dim)


@of_tensors
@in_floats
def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Returns the softmax of `-input` along `dim`, with the `dtype` of `softmax`.

    Example:
        >>> wg.nn.functional.softmin(wg.tensor([0.0, 1.0]), dim=0)
        tensor([0.7311, 0.2689])
    """
    return softmax(-input, dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Returns `x - logsumexp(x)` of `input` along `dim` (the last axis if None), in one fused pass. Saves the
    output.

    With `dtype` the input is converted to it first.

    Example:
        >>> wg.nn.functional.log_softmax(wg.tensor([0.0, 1000.0]), dim=0)
        tensor([-1000.,     0.])
    """
    if not isinstance(input, Tensor):
        raise no_tensor("log_softmax", "input", input)
    return _cast(input, dtype).log_softmax(-1 if dim is None else dim)


def _cast(input: Tensor, dtype: Any) -> Tensor:
    return input if dtype is None else input.to(dtype)
