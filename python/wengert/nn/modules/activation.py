"""Activation functions as layers: one row each, over the functions of `functional/activation.py`."""

import inspect
from collections.abc import Callable
from typing import Any

import wengert as wg
from wengert._core import Tensor

from .. import functional as F
from ..module import Module
from ..parameter import Parameter
from .aliases import found_in

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "RReLU",
    "SELU",
    "Sigmoid",
    "SiLU",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Activation(Module):
    """A function with settings. A subclass names the function and its settings with their defaults."""

    _function: Any
    _settings: dict[str, Any] = {}  # noqa: RUF012 (one table per class, never written)
    __signature__: inspect.Signature

    def __init_subclass__(cls, function: Callable[..., Tensor] | None = None, **settings: Any) -> None:
        """Sets the function, the settings and their signature, which further subclasses inherit."""
        super().__init_subclass__()
        if function is not None:
            cls._function, cls._settings = staticmethod(function), settings
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            cls.__signature__ = inspect.Signature(
                [inspect.Parameter(name, kind, default=value) for name, value in settings.items()]
            )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes the settings by position or keyword."""
        super().__init__()
        names = list(self._settings)
        unknown = set(kwargs) - set(names)
        if len(args) > len(names) or unknown:
            raise TypeError(
                f"{type(self).__name__} takes {', '.join(names) or 'no settings'}; got {args} {kwargs}"
            )
        twice = set(names[: len(args)]) & set(kwargs)
        if twice:
            raise TypeError(f"{type(self).__name__}: {sorted(twice)[0]} is given twice")
        self.__dict__.update({**self._settings, **dict(zip(names, args)), **kwargs})
        if isinstance(self.__dict__.get("dim"), bool):
            raise TypeError(
                f"{type(self).__name__}: dim is the number of an axis, got {self.__dict__['dim']}"
            )

    def forward(self, input: Tensor) -> Tensor:
        """Returns the function of the input, written into it with `inplace`."""
        settings = self.__dict__
        return type(self)._function(input, *[settings[name] for name in self._settings])

    def extra_repr(self) -> str:
        """Returns the settings."""
        shown = [name for name in self._settings if name != "inplace" or self.__dict__[name]]
        return ", ".join(f"{name}={self.__dict__[name]!r}" for name in shown)


class ReLU(_Activation, function=F.relu, inplace=False):
    """Layer of `nn.functional.relu`: `max(x, 0)`, written into x with `inplace`; its derivative at 0 is 0.
    Saves the output.

    Example:
        >>> wg.nn.ReLU()(wg.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """


class ReLU6(_Activation, function=F.relu6, inplace=False):
    """Layer of `nn.functional.relu6`: `min(max(x, 0), 6)`, written into x with `inplace`.

    Example:
        >>> wg.nn.ReLU6()(wg.tensor([-1.0, 8.0]))
        tensor([0., 6.])
    """


class LeakyReLU(_Activation, function=F.leaky_relu, negative_slope=0.01, inplace=False):
    """Layer of `nn.functional.leaky_relu`: `x` where positive, else `negative_slope x`; written into x with
    `inplace`.

    Example:
        >>> wg.nn.LeakyReLU(0.1)(wg.tensor([-1.0, 2.0]))
        tensor([-0.1,  2.0])
    """


class ELU(_Activation, function=F.elu, alpha=1.0, inplace=False):
    """Layer of `nn.functional.elu`: `x` where positive, else `alpha (exp(x) - 1)`; written into x with
    `inplace`.

    Example:
        >>> wg.nn.ELU()(wg.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """


class CELU(_Activation, function=F.celu, alpha=1.0, inplace=False):
    """Layer of `nn.functional.celu`: `x` where positive, else `alpha (exp(x / alpha) - 1)`; written into x
    with `inplace`.

    Example:
        >>> wg.nn.CELU()(wg.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """


class SELU(_Activation, function=F.selu, inplace=False):
    """Layer of `nn.functional.selu`: ELU, scaled to the fixed point of Klambauer et al. 2017; written into x
    with `inplace`. Saves the input.

    Example:
        >>> wg.nn.SELU()(wg.tensor([-1.0, 1.0]))
        tensor([-1.1113,  1.0507])
    """


class GELU(_Activation, function=F.gelu, approximate="none"):
    """Layer of `nn.functional.gelu`: `x Phi(x)` with the normal distribution function Phi; exact, or with
    `approximate="tanh"` by the formula with a tanh.

    Example:
        >>> wg.nn.GELU()(wg.tensor([-1.0, 2.0]))
        tensor([-0.1587,  1.9545])
    """


class SiLU(_Activation, function=F.silu, inplace=False):
    """Layer of `nn.functional.silu`: `x sigmoid(x)` (Elfwing et al. 2017), written into x with `inplace`.
    Saves the input.

    Example:
        >>> wg.nn.SiLU()(wg.tensor([-1.0, 1.0]))
        tensor([-0.2689,  0.7311])
    """


class Mish(_Activation, function=F.mish, inplace=False):
    """Layer of `nn.functional.mish`: `x tanh(softplus(x))` (Misra 2019), written into x with `inplace`. Saves
    the input.

    Example:
        >>> wg.nn.Mish()(wg.tensor([-1.0, 1.0]))
        tensor([-0.3034,  0.8651])
    """


class GLU(_Activation, function=F.glu, dim=-1):
    """Layer of `nn.functional.glu`: the first half along the axis `dim` times the sigmoid of the second.

    Example:
        >>> wg.nn.GLU()(wg.tensor([2.0, 0.0]))
        tensor([1.])
    """


class Sigmoid(_Activation, function=F.sigmoid):
    """Layer of `nn.functional.sigmoid`: `1 / (1 + exp(-x))`. Saves the output.

    Example:
        >>> wg.nn.Sigmoid()(wg.tensor([-1.0, 0.0]))
        tensor([0.2689, 0.5000])
    """


class LogSigmoid(_Activation, function=F.logsigmoid):
    """Layer of `nn.functional.logsigmoid`: `log(sigmoid(x))`, stable for any x. Saves the input.

    Example:
        >>> wg.nn.LogSigmoid()(wg.tensor([0.0]))
        tensor([-0.6931])
    """


class Tanh(_Activation, function=F.tanh):
    """Layer of `nn.functional.tanh`: Hyperbolic tangent. Saves the output.

    Example:
        >>> wg.nn.Tanh()(wg.tensor([-1.0, 0.0]))
        tensor([-0.7616,  0.0000])
    """


class Tanhshrink(_Activation, function=F.tanhshrink):
    """Layer of `nn.functional.tanhshrink`: `x - tanh(x)`, by its series near 0. Saves the input.

    Example:
        >>> wg.nn.Tanhshrink()(wg.tensor([-1.0, 0.0]))
        tensor([-0.2384,  0.0000])
    """


class Softplus(_Activation, function=F.softplus, beta=1.0, threshold=20.0):
    """Layer of `nn.functional.softplus`: `log(1 + exp(beta x)) / beta`, and x itself where `beta x` exceeds
    `threshold`.

    Example:
        >>> wg.nn.Softplus()(wg.tensor([-1.0, 0.0]))
        tensor([0.3133, 0.6931])
    """


class Softsign(_Activation, function=F.softsign):
    """Layer of `nn.functional.softsign`: `x / (1 + |x|)`. Saves the input.

    Example:
        >>> wg.nn.Softsign()(wg.tensor([-1.0, 3.0]))
        tensor([-0.50,  0.75])
    """


class Hardtanh(_Activation, function=F.hardtanh, min_val=-1.0, max_val=1.0, inplace=False):
    """Layer of `nn.functional.hardtanh`: x clamped to `[min_val, max_val]`, written into x with `inplace`.

    Example:
        >>> wg.nn.Hardtanh()(wg.tensor([-2.0, 0.5]))
        tensor([-1.0,  0.5])
    """


class Hardsigmoid(_Activation, function=F.hardsigmoid, inplace=False):
    """Layer of `nn.functional.hardsigmoid`: `clamp(x / 6 + 1/2, 0, 1)`, written into x with `inplace`.

    Example:
        >>> wg.nn.Hardsigmoid()(wg.tensor([-4.0, 0.0]))
        tensor([0.0, 0.5])
    """


class Hardswish(_Activation, function=F.hardswish, inplace=False):
    """Layer of `nn.functional.hardswish`: `x hardsigmoid(x)` (Howard et al. 2019), written into x with
    `inplace`. Saves the input.

    Example:
        >>> wg.nn.Hardswish()(wg.tensor([1.0, 4.0]))
        tensor([0.6667, 4.0000])
    """


class Hardshrink(_Activation, function=F.hardshrink, lambd=0.5):
    """Layer of `nn.functional.hardshrink`: `x` where `|x| > lambd` (or NaN), else 0.

    Example:
        >>> wg.nn.Hardshrink()(wg.tensor([-1.0, 0.2]))
        tensor([-1.,  0.])
    """


class Softshrink(_Activation, function=F.softshrink, lambd=0.5):
    """Layer of `nn.functional.softshrink`: x moved towards 0 by `lambd`, and 0 within it.

    Example:
        >>> wg.nn.Softshrink()(wg.tensor([-1.0, 0.2]))
        tensor([-0.5,  0.0])
    """


class Softmax(_Activation, function=F.softmax, dim=None):
    """Layer of `nn.functional.softmax`: `exp(x) / sum exp(x)` along the axis `dim`, the last one if None.

    Example:
        >>> wg.nn.Softmax(dim=0)(wg.tensor([1.0, 2.0, 3.0]))
        tensor([0.0900, 0.2447, 0.6652])
    """


class Softmin(_Activation, function=F.softmin, dim=None):
    """Layer of `nn.functional.softmin`: softmax of `-x` along the axis `dim`, the last one if None.

    Example:
        >>> wg.nn.Softmin(dim=0)(wg.tensor([1.0, 2.0, 3.0]))
        tensor([0.6652, 0.2447, 0.0900])
    """


class LogSoftmax(_Activation, function=F.log_softmax, dim=None):
    """Layer of `nn.functional.log_softmax`: `x - logsumexp(x)` along the axis `dim`, the last one if None.

    Example:
        >>> wg.nn.LogSoftmax(dim=0)(wg.tensor([1.0, 2.0, 3.0]))
        tensor([-2.4076, -1.4076, -0.4076])
    """


class PReLU(Module):
    """Leaky ReLU with learned slopes: `num_parameters` is 1, or the number of channels (axis 1) for one each.

    The parameter `weight` `(num_parameters,)` starts at `init` everywhere.

    Example:
        >>> wg.nn.PReLU()(wg.tensor([-1.0, 2.0])).detach()
        tensor([-0.25,  2.00])
    """

    _shown = ("num_parameters",)
    weight: Parameter

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        """Makes the slopes."""
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(
            wg.full((num_parameters,), init, device=device, dtype=dtype or wg.get_default_dtype())
        )

    def forward(self, input: Tensor) -> Tensor:
        """Returns the function of the input."""
        return F.prelu(input, self.weight)


class Threshold(Module):
    """`x` where it exceeds `threshold`, else `value`; written into x with `inplace`.

    Example:
        >>> wg.nn.Threshold(0.5, 9.0)(wg.tensor([0.2, 0.8]))
        tensor([9.0, 0.8])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        """Keeps the settings."""
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Returns the function of the input."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """Returns the settings."""
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class RReLU(Module):
    """Leaky ReLU with random slopes in training, and their mean otherwise (Xu et al. 2015).

    Slopes are uniform from `lower` to `upper`, one for each element; the result is written into x with
    `inplace`.

    Example:
        >>> wg.nn.RReLU(0.25, 0.25)(wg.tensor([-1.0, 2.0]))
        tensor([-0.25,  2.00])
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        """Keeps the settings."""
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Returns the function of the input."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """Returns the settings."""
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Softmax2d(Module):
    """Softmax over the channels of `(N, C, H, W)` or `(C, H, W)`.

    Example:
        >>> wg.nn.Softmax2d()(wg.zeros(2, 1, 1)).flatten()
        tensor([0.5, 0.5])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the function of the input."""
        if input.ndim not in (3, 4):
            raise wg.ShapeError(f"Softmax2d: input with 3 or 4 axes expected, got shape {tuple(input.shape)}")
        return F.softmax(input, -3)


__getattr__ = found_in(__name__, "attention")
