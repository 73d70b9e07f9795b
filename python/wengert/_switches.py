"""Switches that programs for PyTorch set, and that have one position here."""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wengert import _core
from wengert._core import Tensor

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_float32_matmul_precision",
    "printoptions",
    "set_default_tensor_type",
    "set_float32_matmul_precision",
    "set_printoptions",
    "use_deterministic_algorithms",
]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepts `mode` and `warn_only`: results are the same bits every time, whatever they say.

    Example:
        >>> wg.use_deterministic_algorithms(True)
    """


def are_deterministic_algorithms_enabled() -> bool:
    """Tells whether results are the same bits every time: True.

    Example:
        >>> wg.are_deterministic_algorithms_enabled()
        True
    """
    return True


def set_float32_matmul_precision(precision: str) -> None:
    """Accepts a precision of products of float32, which are always computed in float32.

    Args:
        precision: "highest", "high" or "medium".

    Raises:
        ValueError: for another one.

    Example:
        >>> wg.set_float32_matmul_precision("high")
    """
    if precision not in ("highest", "high", "medium"):
        raise ValueError(
            f"set_float32_matmul_precision: 'highest', 'high' or 'medium' expected, got {precision!r}"
        )


def get_float32_matmul_precision() -> str:
    """Returns the precision of products of float32: "highest".

    Example:
        >>> wg.get_float32_matmul_precision()
        'highest'
    """
    return "highest"


def set_default_tensor_type(t: Any) -> None:
    """Makes the dtype of a class of tensors the one of new floats, and for a class of `cuda` the GPU their
    device: the older form of `set_default_dtype` and `set_default_device`.

    Args:
        t: a class such as `DoubleTensor`, or its name, "torch.DoubleTensor" or "torch.cuda.FloatTensor".

    Raises:
        TypeError: for anything else, and for a class of integers.
        ValueError: for a class of `cuda` where no device is called so.

    Example:
        >>> wg.set_default_tensor_type(wg.DoubleTensor)
        >>> wg.ones(1).dtype
        wengert.float64
        >>> wg.set_default_tensor_type("torch.FloatTensor")
    """
    from wengert import _kinds

    name = t if isinstance(t, str) else getattr(t, "__name__", "")
    package, _, kind = name.rpartition(".")
    if getattr(t, "__module__", "") == "wengert.cuda":
        package = "cuda"
    found = getattr(_kinds, kind, None) if kind.endswith("Tensor") else None
    if kind == "Tensor":
        found = _kinds.FloatTensor
    if found is None:
        raise TypeError(
            f"set_default_tensor_type: a class such as wengert.DoubleTensor, or its name, expected, got {t!r}"
        )
    device = _core.device("cuda") if "cuda" in package.split(".") else None
    _core.set_default_dtype(found.dtype)
    _core.set_default_device(device)


#: Precision, threshold, elements per edge, width and powers of ten of each profile.
_PROFILES = {
    "default": (4, 1000, 3, 80, None),
    "short": (2, 1000, 2, 80, None),
    "full": (4, math.inf, 3, 80, None),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors are printed, in all threads. What is None stays as it is, but for `sci_mode`.

    Unlike in PyTorch, `precision` is the most digits and not the number of them: digits that are 0 in all
    elements are left out, so that `[0.5, 1.0]` is printed as it is written, with four digits too.

    Args:
        precision: the most digits behind the point, 4 at first.
        threshold: tensors with more elements are summarised by the edges of their axes; 1000 at first.
        edgeitems: elements at either edge; 3 at first.
        linewidth: characters per line; 80 at first.
        profile: what the others begin from: "default", "short" or "full", which summarises nothing.
        sci_mode: True shows powers of ten, False none; None leaves it to the numbers.

    Raises:
        ValueError: for a negative number, or another profile.
        TypeError: for what is no integer.

    Example:
        >>> wg.set_printoptions(precision=2)
        >>> wg.tensor([3.14159, 0.5])
        tensor([3.14, 0.50])
        >>> wg.set_printoptions(profile="default")
    """
    if profile is not None and profile not in _PROFILES:
        raise ValueError(f"set_printoptions: profile is one of {', '.join(_PROFILES)}, got {profile!r}")
    given = (precision, threshold, edgeitems, linewidth)
    names = ("precision", "threshold", "edgeitems", "linewidth")
    before: Any = _core._print_options() if profile is None else _PROFILES[profile]
    digits, most, edge, width = (_size(name, x, old) for name, x, old in zip(names, given, before))
    _core._set_print_options(digits, most, edge, width, sci_mode)


def _size(name: str, given: Any, before: Any) -> int:
    """A number of digits, elements or characters."""
    value = before if given is None else given
    if value == math.inf:
        return sys.maxsize
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"set_printoptions: {name} is an integer, got {value!r}")
    if value < 0 or (name == "precision" and value > 60):
        raise ValueError(f"set_printoptions: {name} is 0 or more (precision at most 60), got {value}")
    return value


@contextmanager
def printoptions(**settings: Any) -> Iterator[None]:
    """Prints tensors by other options inside of a `with` block: those of `set_printoptions`.

    Example:
        >>> with wg.printoptions(precision=1):
        ...     print(wg.tensor([0.25, 0.5]))
        tensor([0.2, 0.5])
    """
    before = _core._print_options()
    try:
        set_printoptions(**settings)
        yield
    finally:
        _core._set_print_options(*before)


class _Variable(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_Variable):
    """A tensor, under the name that it had before PyTorch 0.4; every tensor is an instance.

    Args:
        data: a tensor.
        requires_grad: whether gradients are recorded for it.

    Example:
        >>> x = wg.autograd.Variable(wg.ones(2), requires_grad=True)
        >>> x.requires_grad, isinstance(x, wg.autograd.Variable)
        (True, True)
    """

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> Tensor:  # type: ignore[misc]
        """Returns the tensor itself, or one that shares its memory and requires a gradient."""
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable: a tensor expected, got {type(data).__name__}")
        return data.detach().requires_grad_() if requires_grad and not data.requires_grad else data
