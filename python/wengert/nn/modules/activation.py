"""Activation functions as layers: one row each, over the functions of `functional/activation.py`."""

from typing import Any

import wengert as wg
from wengert._core import Tensor

from .. import functional as F
from ..module import Module
from ..parameter import Parameter


class _Activation(Module):
    """A function with settings. A subclass names the function and its settings with their defaults."""

    _function: Any
    _settings: dict[str, Any] = {}  # noqa: RUF012 (one table per class, never written)

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
        """The function of the input, written into it with `inplace`."""
        settings = self.__dict__
        return type(self)._function(input, *[settings[name] for name in self._settings])

    def extra_repr(self) -> str:
        """The settings."""
        shown = [name for name in self._settings if name != "inplace" or self.__dict__[name]]
        return ", ".join(f"{name}={self.__dict__[name]!r}" for name in shown)


def _layer(name: str, function: Any, **settings: Any) -> Any:
    doc = f"Layer of `nn.functional.{function.__name__}`. {(function.__doc__ or '').strip().splitlines()[0]}"
    members = {
        "__doc__": doc,
        "__module__": __name__,
        "_function": staticmethod(function),
        "_settings": settings,
    }
    return type(name, (_Activation,), members)


ReLU = _layer("ReLU", F.relu, inplace=False)
ReLU6 = _layer("ReLU6", F.relu6, inplace=False)
LeakyReLU = _layer("LeakyReLU", F.leaky_relu, negative_slope=0.01, inplace=False)
ELU = _layer("ELU", F.elu, alpha=1.0, inplace=False)
CELU = _layer("CELU", F.celu, alpha=1.0, inplace=False)
SELU = _layer("SELU", F.selu, inplace=False)
GELU = _layer("GELU", F.gelu, approximate="none")
SiLU = _layer("SiLU", F.silu, inplace=False)
Mish = _layer("Mish", F.mish, inplace=False)
GLU = _layer("GLU", F.glu, dim=-1)
Sigmoid = _layer("Sigmoid", F.sigmoid)
LogSigmoid = _layer("LogSigmoid", F.logsigmoid)
Tanh = _layer("Tanh", F.tanh)
Tanhshrink = _layer("Tanhshrink", F.tanhshrink)
Softplus = _layer("Softplus", F.softplus, beta=1.0, threshold=20.0)
Softsign = _layer("Softsign", F.softsign)
Hardtanh = _layer("Hardtanh", F.hardtanh, min_val=-1.0, max_val=1.0, inplace=False)
Hardsigmoid = _layer("Hardsigmoid", F.hardsigmoid, inplace=False)
Hardswish = _layer("Hardswish", F.hardswish, inplace=False)
Hardshrink = _layer("Hardshrink", F.hardshrink, lambd=0.5)
Softshrink = _layer("Softshrink", F.softshrink, lambd=0.5)
Softmax = _layer("Softmax", F.softmax, dim=None)
Softmin = _layer("Softmin", F.softmin, dim=None)
LogSoftmax = _layer("LogSoftmax", F.log_softmax, dim=None)


class PReLU(Module):
    """Leaky ReLU with learned slopes, one or one per channel."""

    weight: Parameter

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        """All slopes start at `init`."""
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(wg.full((num_parameters,), init, device=device, dtype=dtype or wg.float32))

    def forward(self, input: Tensor) -> Tensor:
        """The function of the input."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"


class Threshold(Module):
    """`x` where it exceeds a threshold, else a value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        """Both numbers, and whether the input is written."""
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The function of the input."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class RReLU(Module):
    """Leaky ReLU with random slopes in training, and their mean otherwise (Xu et al. 2015)."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        """The bounds of the slopes, and whether the input is written."""
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The function of the input."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Softmax2d(Module):
    """Softmax over the channels of `(N, C, H, W)` or `(C, H, W)`."""

    def forward(self, input: Tensor) -> Tensor:
        """The function of the input."""
        if input.ndim not in (3, 4):
            raise wg.ShapeError(f"Softmax2d: input with 3 or 4 axes expected, got shape {tuple(input.shape)}")
        return F.softmax(input, -3)
