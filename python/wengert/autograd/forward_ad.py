"""Forward mode as PyTorch spells it: tensors carry a tangent while a level lasts.

`wengert.jvp` computes the same of a function. Inside of a level, what is computed of a dual tensor has a
tangent too. Levels nest, and so do transforms and `.backward()` inside of them.
"""

from typing import Any, NamedTuple

from wengert import _core
from wengert._core import Tensor
from wengert.autograd.modes import Region

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, None where nothing moves it."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enters a level of forward mode on this thread; returns its number, for `exit_dual_level`.

    Example:
        >>> level = wg.autograd.forward_ad.enter_dual_level()
        >>> wg.autograd.forward_ad.exit_dual_level(level=level)
    """
    return _core._dual_enter()


def exit_dual_level(*, level: int | None = None) -> None:
    """Leaves the innermost level. Dual tensors of that level cannot be used afterwards; unpack them before.

    Args:
        level: the number of the level, which must be the innermost one.

    Raises:
        RuntimeError: there is no level, or another one is the innermost.

    Example:
        >>> level = wg.autograd.forward_ad.enter_dual_level()
        >>> wg.autograd.forward_ad.exit_dual_level(level=level)
    """
    _core._dual_exit(level)


class dual_level(Region):
    """A level of forward mode: a context and a decorator.

    Example:
        >>> from wengert.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(wg.tensor(3.0), wg.tensor(1.0))
        ...     tangent = forward_ad.unpack_dual(x * x).tangent
        >>> tangent
        tensor(6.)
    """

    def __init__(self) -> None:
        """The level does not begin before `with`."""
        self._levels: list[int] = []

    def _again(self) -> "dual_level":
        return dual_level()

    def __enter__(self) -> int:  # type: ignore[override]
        """Begins the level; returns its number."""
        self._levels.append(enter_dual_level())
        return self._levels[-1]

    def __exit__(self, *exc: Any) -> None:
        """Ends the level."""
        exit_dual_level(level=self._levels.pop())


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Returns `tensor` with a tangent at the innermost level.

    Args:
        tensor: a floating point or complex tensor; it stays as it is.
        tangent: a tensor of its shape and dtype.
        level: the number of the innermost level, if it is to be checked.

    Raises:
        RuntimeError: there is no level.
        ShapeError: the tangent has another shape.
        TypeError: the tangent has another dtype, or the dtype has no derivatives.
        ValueError: the tensor or the tangent has a tangent at this level already.

    Example:
        >>> from wengert.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(wg.ones(2), wg.tensor([1.0, 2.0]))
        ...     forward_ad.unpack_dual(x.exp().sum()).tangent
        tensor(8.1548)
    """
    for what, x in (("tensor", tensor), ("tangent", tangent)):
        if not isinstance(x, Tensor):
            raise TypeError(f"make_dual: the {what} is a tensor, got {type(x).__name__}")
    return _core._make_dual(tensor, tangent, level)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Returns the value of a tensor and its tangent at the innermost level, both usable outside of it.

    Args:
        tensor: any tensor; one without a tangent is returned as it is, with None.
        level: the number of the innermost level, if it is to be checked.

    Raises:
        RuntimeError: there is no level.

    Example:
        >>> from wengert.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     forward_ad.unpack_dual(wg.ones(2))
        UnpackedDualTensor(primal=tensor([1., 1.]), tangent=None)
    """
    primal, tangent = _core._unpack_dual(tensor, level)
    return UnpackedDualTensor(tensor if tangent is None else primal, tangent)


def __dir__() -> list[str]:
    """What is public."""
    return __all__
