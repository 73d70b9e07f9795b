"""Activation functions. Each takes a floating point tensor of any shape and returns one of the same shape.

`inplace` is accepted where PyTorch has it and changes nothing: outputs are always fresh, so the tape stays
valid. Functions whose names end in `_` do write their input, as in-place methods of tensors do.
"""

import functools
from typing import Any

import wengert as wg
from wengert._arguments import no_tensor, of_tensors
from wengert._core import Tensor
from wengert._precision import in_given, in_low


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """`max(x, 0)`; its derivative at 0 is 0. Saves the output."""
    if not isinstance(input, Tensor):
        raise no_tensor("relu", "input", input)
    return input.relu()


@of_tensors
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """`min(max(x, 0), 6)`."""
    return hardtanh(input, 0.0, 6.0)


@of_tensors
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`x` where positive, else `negative_slope * x`."""
    return wg.where(input > 0, input, input * negative_slope)


@of_tensors
@in_low
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Leaky ReLU with learned slopes: one, or one per channel (axis 1)."""
    if weight.numel() != 1:
        channels = input.shape[1] if input.ndim > 1 else None
        if channels != weight.numel():
            raise wg.ShapeError(
                f"prelu: {weight.numel()} slopes for an input of shape {tuple(input.shape)}; one slope, or "
                "one per channel (axis 1) expected"
            )
        weight = weight.reshape(-1, *[1] * (input.ndim - 2))
    return wg.where(input > 0, input, input * weight)


@of_tensors
@in_given
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`x` where positive, else `alpha (exp(x) - 1)` (Clevert et al. 2015)."""
    # The exponential only sees the negative part, so it cannot overflow where it is not used.
    return wg.where(input <= 0, input.clamp(max=0.0).expm1() * alpha, input)


@of_tensors
@in_given
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`x` where positive, else `alpha (exp(x / alpha) - 1)` (Barron 2017)."""
    if alpha == 0:
        raise ValueError("celu: alpha must not be 0")
    return wg.where(input <= 0, (input.clamp(max=0.0) / alpha).expm1() * alpha, input)


@of_tensors
@in_given
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Scaled ELU with the fixed point of Klambauer et al. 2017."""
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return elu(input, alpha) * scale


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """`x Phi(x)` (Hendrycks and Gimpel 2016), exact or by the tanh formula. Saves the input."""
    if not isinstance(input, Tensor):
        raise no_tensor("gelu", "input", input)
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return input.gelu(approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """`x sigmoid(x)` (Elfwing et al. 2017). Saves the input."""
    if not isinstance(input, Tensor):
        raise no_tensor("silu", "input", input)
    return input.silu()


@of_tensors
@in_given
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """`x tanh(softplus(x))` (Misra 2019)."""
    return input * softplus(input).tanh()


@of_tensors
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second (Dauphin et al. 2016)."""
    size = input.shape[dim]
    if size % 2:
        raise wg.ShapeError(
            f"glu: axis {dim} of shape {tuple(input.shape)} has {size} elements, an even number expected"
        )
    return input.narrow(dim, 0, size // 2) * input.narrow(dim, size // 2, size // 2).sigmoid()


def sigmoid(input: Tensor) -> Tensor:
    """`1 / (1 + exp(-x))`. Saves the output."""
    if not isinstance(input, Tensor):
        raise no_tensor("sigmoid", "input", input)
    return input.sigmoid()


@of_tensors
@in_given
def logsigmoid(input: Tensor) -> Tensor:
    """`log(sigmoid(x))`, stable for any x."""
    # No threshold: the linear branch of softplus would lose exp(x) for very negative x.
    return -((-input).softplus(1.0, 1e30))


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent. Saves the output."""
    if not isinstance(input, Tensor):
        raise no_tensor("tanh", "input", input)
    return input.tanh()


@of_tensors
def tanhshrink(input: Tensor) -> Tensor:
    """`x - tanh(x)`."""
    return input - input.tanh()


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """`log(1 + exp(beta x)) / beta`, and `x` itself where `beta x` exceeds `threshold`. Saves the input."""
    if not isinstance(input, Tensor):
        raise no_tensor("softplus", "input", input)
    return input.softplus(beta, threshold)


@of_tensors
def softsign(input: Tensor) -> Tensor:
    """`x / (1 + |x|)`."""
    return input / (input.abs() + 1.0)


@of_tensors
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """`x` clamped to [min_val, max_val]."""
    if not min_val <= max_val:
        raise ValueError(f"hardtanh: min_val must not exceed max_val, got {min_val} and {max_val}")
    return input.clamp(min_val, max_val)


@of_tensors
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """`clamp(x / 6 + 1/2, 0, 1)`."""
    return (input / 6.0 + 0.5).clamp(0.0, 1.0)


@of_tensors
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """`x hardsigmoid(x)` (Howard et al. 2019)."""
    return input * hardsigmoid(input)


@of_tensors
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`x` where it exceeds `threshold` (or is NaN), else `value`."""
    return input.masked_fill(input <= threshold, value)


@of_tensors
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`x` where `|x| > lambd` (or NaN), else 0."""
    return input.masked_fill(input.abs() <= lambd, 0.0)


@of_tensors
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`x` moved towards 0 by `lambd`, and 0 within it: the proximal map of `lambd |x|`."""
    if lambd < 0:
        raise ValueError(f"softshrink: lambd must not be negative, got {lambd}")
    return input - input.clamp(-lambd, lambd)


@of_tensors
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """`x` where positive, else `slope * x`, with a slope drawn from `[lower, upper)` for each element in training,
    and their mean otherwise (Xu et al. 2015).
    """
    if not lower <= upper:
        raise ValueError(f"rrelu: lower must not exceed upper, got {lower} and {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    slope = wg.rand_like(input) * (upper - lower) + lower
    return wg.where(input > 0, input, input * slope)


@of_tensors
def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A random choice along `dim` with probabilities `softmax(logits)`, relaxed so that it has gradients (Jang et al.
    and Maddison et al. 2016).

    Args:
        logits: logarithms of probabilities, up to a constant.
        tau: the temperature: the smaller, the nearer to one-hot.
        hard: return one-hot values, with the gradient of the relaxed ones.
        eps: accepted; the noise never needs it.
        dim: the axis of the choice.

    Raises:
        ValueError: for a temperature that is not positive.
    """
    if not tau > 0:
        raise ValueError(f"gumbel_softmax: tau must be positive, got {tau}")
    dtype = logits.dtype if logits.dtype.itemsize > 4 else wg.float32
    # 1 - u lies in (0, 1], where the logarithm is finite; twice negated logarithms of it are Gumbel's.
    noise = -((-((1.0 - wg.rand_like(logits, dtype=dtype)).log())).clamp(min=wg.finfo(dtype).tiny).log())
    soft = softmax((logits + noise.to(logits.dtype)) / tau, dim)
    if not hard:
        return soft
    places = wg.arange(soft.shape[dim], dtype=wg.int32, device=soft.device)
    axis = dim % soft.ndim
    places = places.reshape([-1 if k == axis else 1 for k in range(soft.ndim)])
    chosen = (places == soft.detach().argmax(dim, keepdim=True)).to(soft.dtype)
    return chosen - soft.detach() + soft


def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """`exp(x) / sum exp(x)` along `dim` (the last axis if None), in one fused pass. Saves the output."""
    if not isinstance(input, Tensor):
        raise no_tensor("softmax", "input", input)
    return _cast(input, dtype).softmax(-1 if dim is None else dim)


@of_tensors
def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Softmax of `-x`."""
    return softmax(-input, dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """`x - logsumexp(x)` along `dim` (the last axis if None), in one fused pass. Saves the output."""
    if not isinstance(input, Tensor):
        raise no_tensor("log_softmax", "input", input)
    return _cast(input, dtype).log_softmax(-1 if dim is None else dim)


def _cast(input: Tensor, dtype: Any) -> Tensor:
    return input if dtype is None else input.to(dtype)


def _in_place(function: Any) -> Any:
    """The function that writes its result into its input."""

    @functools.wraps(function)
    def written(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not isinstance(input, Tensor):
            raise no_tensor(written.__name__, "input", input)
        # The derivative may read the input, so it is computed from a copy.
        return input.copy_(function(input.clone(), *args, **kwargs))

    written.__name__ = written.__qualname__ = f"{function.__name__}_"
    written.__doc__ = f"`{function.__name__}`, written into its input, which is returned."
    return written


celu_ = _in_place(celu)
elu_ = _in_place(elu)
hardtanh_ = _in_place(hardtanh)
leaky_relu_ = _in_place(leaky_relu)
relu_ = _in_place(relu)
rrelu_ = _in_place(rrelu)
selu_ = _in_place(selu)
threshold_ = _in_place(threshold)
