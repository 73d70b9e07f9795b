"""Activation functions. Each takes a floating point tensor `input` (x in formulas) of any shape and returns
one of the same shape.

With `inplace`, and under names that end in `_`, the result is written into the input, which is returned; that
is recorded as in-place methods of tensors are. Otherwise outputs are always fresh.
"""

import functools
import inspect
from typing import Any

import wengert as wg
from wengert._arguments import no_tensor, of_tensors
from wengert._core import Tensor
from wengert._precision import in_low, rounding_once

from .in_place import written

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns `max(x, 0)` of `input`, written into it with `inplace`; its derivative at 0 is 0. Saves the
    output.

    Example:
        >>> wg.nn.functional.relu(wg.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    if not isinstance(input, Tensor):
        raise no_tensor("relu", "input", input)
    return input.relu_() if inplace else input.relu()


@of_tensors
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns `min(max(x, 0), 6)` of `input`, written into it with `inplace`.

    Example:
        >>> wg.nn.functional.relu6(wg.tensor([-1.0, 2.0, 9.0]))
        tensor([0., 2., 6.])
    """
    return written("relu6", input, relu6) if inplace else hardtanh(input, 0.0, 6.0)


@of_tensors
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Returns `x` where positive, else `negative_slope * x` (Maas et al. 2013), written into the input with
    `inplace`. Saves the input.

    Example:
        >>> wg.nn.functional.leaky_relu(wg.tensor([-1.0, 2.0]), 0.1)
        tensor([-0.1,  2.0])
    """
    if inplace:
        return written("leaky_relu", input, leaky_relu, negative_slope)
    return input._leaky_relu(negative_slope)


@of_tensors
@in_low
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Computes leaky ReLU of `input` with the learned slopes `weight`: one, or one per channel (axis 1).

    Example:
        >>> wg.nn.functional.prelu(wg.tensor([-2.0, 3.0]), wg.tensor(0.5))
        tensor([-1.,  3.])
    """
    if weight.numel() != 1:
        channels = input.shape[1] if input.ndim > 1 else None
        if channels != weight.numel():
            raise wg.ShapeError(
                f"prelu: {weight.numel()} slopes for an input of shape {tuple(input.shape)}; one slope, or "
                "one per channel (axis 1) expected"
            )
        weight = weight.reshape(-1, *[1] * (input.ndim - 2))
    elif input.ndim == 0:
        weight = weight.reshape(())
    return wg.where(input > 0, input, input * weight)


@of_tensors
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Returns `x` where positive, else `alpha (exp(x) - 1)` (Clevert et al. 2015), written into the input
    with `inplace`. Its derivative at 0 is `alpha`. Saves the input.

    Example:
        >>> wg.nn.functional.elu(wg.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    if inplace:
        return written("elu", input, elu, alpha)
    return input._elu(alpha, 1.0)


@of_tensors
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Returns `x` where positive, else `alpha (exp(x / alpha) - 1)` (Barron 2017), written into the input
    with `inplace`. Saves the input.

    Example:
        >>> wg.nn.functional.celu(wg.tensor([-1.0, 2.0]), alpha=2.0)
        tensor([-0.7869,  2.0000])
    """
    if alpha == 0:
        raise ValueError("celu: alpha must not be 0")
    if inplace:
        return written("celu", input, celu, alpha)
    return input._celu(alpha)


@of_tensors
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Computes the scaled ELU with the fixed point of Klambauer et al. 2017, written into the input with
    `inplace`. Saves the input.

    Example:
        >>> wg.nn.functional.selu(wg.tensor([-1.0, 1.0]))
        tensor([-1.1113,  1.0507])
    """
    if inplace:
        return written("selu", input, selu)
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return input._elu(alpha, scale)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Returns `x Phi(x)` with the normal distribution function Phi (Hendrycks and Gimpel 2016). Saves the
    input.

    It is exact with `approximate="none"`, or `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2` with "tanh".

    Example:
        >>> wg.nn.functional.gelu(wg.tensor([-1.0, 1.0]))
        tensor([-0.1587,  0.8413])
    """
    if not isinstance(input, Tensor):
        raise no_tensor("gelu", "input", input)
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return input.gelu(approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns `x sigmoid(x)` (Elfwing et al. 2017), written into the input with `inplace`. Saves the input.

    Example:
        >>> wg.nn.functional.silu(wg.tensor([-1.0, 1.0]))
        tensor([-0.2689,  0.7311])
    """
    if not isinstance(input, Tensor):
        raise no_tensor("silu", "input", input)
    return input.silu_() if inplace else input.silu()


@of_tensors
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns `x tanh(softplus(x))` (Misra 2019), written into the input with `inplace`. Saves the input.

    Example:
        >>> wg.nn.functional.mish(wg.tensor([-1.0, 1.0]))
        tensor([-0.3034,  0.8651])
    """
    return input.mish_() if inplace else input.mish()


@of_tensors
@rounding_once
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Returns the first half of `input` along `dim` times the sigmoid of the second (Dauphin et al. 2016).

    Example:
        >>> wg.nn.functional.glu(wg.tensor([3.0, 0.0]))
        tensor([1.5])
    """
    size = input.size(dim)
    if size % 2:
        raise wg.ShapeError(
            f"glu: axis {dim} of shape {tuple(input.shape)} has {size} elements, an even number expected"
        )
    return input.narrow(dim, 0, size // 2) * input.narrow(dim, size // 2, size // 2).sigmoid()


def sigmoid(input: Tensor) -> Tensor:
    """Returns `1 / (1 + exp(-x))` of `input`. Saves the output.

    Example:
        >>> wg.nn.functional.sigmoid(wg.tensor([0.0, 2.0]))
        tensor([0.5000, 0.8808])
    """
    if not isinstance(input, Tensor):
        raise no_tensor("sigmoid", "input", input)
    return input.sigmoid()


@of_tensors
def logsigmoid(input: Tensor) -> Tensor:
    """Returns `log(sigmoid(x))`, stable for any x. Saves the input.

    Example:
        >>> wg.nn.functional.logsigmoid(wg.tensor([0.0, -100.0]))
        tensor([  -0.6931, -100.0000])
    """
    return input.logsigmoid()


def tanh(input: Tensor) -> Tensor:
    """Returns the hyperbolic tangent of `input`. Saves the output.

    Example:
        >>> wg.nn.functional.tanh(wg.tensor([0.5, 20.0]))
        tensor([0.4621, 1.0000])
    """
    if not isinstance(input, Tensor):
        raise no_tensor("tanh", "input", input)
    return input.tanh()


@of_tensors
def tanhshrink(input: Tensor) -> Tensor:
    """Returns `x - tanh(x)`, by its series near 0. Saves the input.

    Example:
        >>> wg.nn.functional.tanhshrink(wg.tensor([1.0, 2.0]))
        tensor([0.2384, 1.0360])
    """
    return input.tanhshrink()


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Returns `log(1 + exp(beta x)) / beta`, and `x` itself where `beta x` exceeds `threshold`. Saves the
    input.

    Example:
        >>> wg.nn.functional.softplus(wg.tensor([0.0, 100.0]))
        tensor([  0.6931, 100.0000])
    """
    if not isinstance(input, Tensor):
        raise no_tensor("softplus", "input", input)
    return input.softplus(beta, threshold)


@of_tensors
def softsign(input: Tensor) -> Tensor:
    """Returns `x / (1 + |x|)`. Saves the input.

    Example:
        >>> wg.nn.functional.softsign(wg.tensor([-1.0, 3.0]))
        tensor([-0.50,  0.75])
    """
    return input.softsign()


@of_tensors
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Returns `input` clamped to [min_val, max_val], written into it with `inplace`; bounds of integers lose
    their fractions.

    Example:
        >>> wg.nn.functional.hardtanh(wg.tensor([-2.0, 0.5]))
        tensor([-1.0,  0.5])
    """
    if not min_val <= max_val:
        raise ValueError(f"hardtanh: min_val must not exceed max_val, got {min_val} and {max_val}")
    if not input.dtype.is_differentiable:
        min_val, max_val = int(min_val), int(max_val)
    if inplace:
        return written("hardtanh", input, hardtanh, min_val, max_val)
    return input.clamp(min_val, max_val)


@of_tensors
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns `clamp(x / 6 + 1/2, 0, 1)`, written into the input with `inplace`; its derivative at -3 and 3
    is 1/6. Saves the input.

    Example:
        >>> wg.nn.functional.hardsigmoid(wg.tensor([-4.0, 0.0, 1.5]))
        tensor([0.00, 0.50, 0.75])
    """
    return input.hardsigmoid_() if inplace else input.hardsigmoid()


@of_tensors
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns `x hardsigmoid(x)` (Howard et al. 2019), written into the input with `inplace`. Saves the
    input.

    Example:
        >>> wg.nn.functional.hardswish(wg.tensor([-4.0, 1.5]))
        tensor([-0.000,  1.125])
    """
    return input.hardswish_() if inplace else input.hardswish()


def _above(input: Tensor, threshold: float, value: float) -> Tensor:
    """The function `threshold`, whose name its own argument has."""
    return input.masked_fill(input <= threshold, value)


@of_tensors
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Returns `input` where it exceeds `threshold` (or is NaN), else `value`; written into it with `inplace`.

    Example:
        >>> wg.nn.functional.threshold(wg.tensor([0.1, 2.0]), 1.0, -5.0)
        tensor([-5.,  2.])
    """
    if inplace:
        return written("threshold", input, _above, threshold, value)
    return _above(input, threshold, value)


@of_tensors
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Returns `input` where `|x| > lambd` (or NaN), else 0.

    Example:
        >>> wg.nn.functional.hardshrink(wg.tensor([0.3, -2.0]))
        tensor([ 0., -2.])
    """
    return input._hardshrink(lambd)


@of_tensors
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Returns `input` moved towards 0 by `lambd`, and 0 within it: the proximal map of `lambd |x|`.

    Example:
        >>> wg.nn.functional.softshrink(wg.tensor([0.3, -2.0]))
        tensor([ 0.0, -1.5])
    """
    if not lambd >= 0:
        raise ValueError(f"softshrink: lambd must not be negative, got {lambd}")
    return input._softshrink(lambd)


@of_tensors
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Returns `input` where positive, else `slope * x`, with a slope drawn from `[lower, upper)` for each
    element in `training`, and their mean otherwise (Xu et al. 2015); written into it with `inplace`.

    Example:
        >>> wg.nn.functional.rrelu(wg.tensor([-1.0, 2.0]), 0.25, 0.25)
        tensor([-0.25,  2.00])
    """
    if not lower <= upper:
        raise ValueError(f"rrelu: lower must not exceed upper, got {lower} and {upper}")
    if inplace:
        return written("rrelu", input, rrelu, lower, upper, training)
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    slope = wg.rand_like(input) * (upper - lower) + lower
    return wg.where(input > 0, input, input * slope)


def _in_place(function: Any) -> Any:
    """The function that writes its result into its input: its settings are those of the other,
    without `inplace`.
    """
    signature = inspect.signature(function)
    settings = [p for name, p in signature.parameters.items() if name != "inplace"]

    @functools.wraps(function)
    def method(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not isinstance(input, Tensor):
            raise no_tensor(method.__name__, "input", input)
        if "inplace" in kwargs or len(args) >= len(settings):
            call = f"{method.__name__}{inspect.signature(method)}"
            raise TypeError(f"{call} writes into its input in any case; leave inplace out")
        return function(input, *args, inplace=True, **kwargs)

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__signature__ = signature.replace(parameters=settings)  # type: ignore[attr-defined]
    names = ", ".join(f"`{setting.name}`" for setting in settings)
    method.__doc__ = f"Computes `{function.__name__}` in place, with its {names}, and returns the input."
    return method


celu_ = _in_place(celu)
elu_ = _in_place(elu)
hardtanh_ = _in_place(hardtanh)
leaky_relu_ = _in_place(leaky_relu)
relu_ = _in_place(relu)
rrelu_ = _in_place(rrelu)
selu_ = _in_place(selu)
threshold_ = _in_place(threshold)
