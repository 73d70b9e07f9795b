"""`ieee_gradients`: whether a cotangent of zero stays zero where a slope is not finite."""

from collections.abc import Callable
from typing import Any

from wengert import _core
from wengert.autograd.modes import Region

__all__ = ["ieee_gradients", "is_ieee_gradients_enabled"]

# The core's bit.
STRICT = 32


def _set(on: bool) -> bool:
    """Switches the bit; whether it was on."""
    modes = _core._get_debug_modes()
    _core._debug_modes(modes | STRICT if on else modes & ~STRICT)
    return bool(modes & STRICT)


def is_ieee_gradients_enabled() -> bool:
    """Tells whether derivatives computed in this thread follow IEEE arithmetic to the letter; see
    `ieee_gradients`.

    Example:
        >>> wg.is_ieee_gradients_enabled()
        False
    """
    return bool(_core._get_debug_modes() & STRICT)


class ieee_gradients(Region):
    """Turns strict IEEE derivatives on or off in this thread, at once; as a context or decorator, until its
    end.

    Off, which is the default, a cotangent of exactly zero stays zero: where an elementwise function has an
    infinite or undefined slope at its argument (`sqrt`, `log`, `reciprocal`, `x / y`, `x ** y`, … at a pole,
    or where the slope overflows), zero times that slope is zero. A branch that `where` did not take then
    cannot spoil a gradient: `where(x > 0, x.sqrt(), x)` has the derivative 1 at every `x <= 0`, under every
    transform and to every order. On, zero times infinity is NaN, as PyTorch and JAX have it; a NaN in a
    gradient then shows that such a point was met, also where a mask took it out.

    It concerns derivatives that are computed while it is on (the backward, not the forward that recorded it).
    Conventions at single points (`abs` and `relu` at 0, ties of `maximum`, `x ** 0`) are the same in both.
    Off costs nothing; on, each partial derivative runs as the operations of its formula, several times
    slower.

    Args:
        mode: on where true.

    Example:
        >>> x = wg.tensor([4.0, 0.0])
        >>> f = lambda x: wg.where(x > 0, x.sqrt(), x).sum()
        >>> wg.grad(f)(x)
        tensor([0.25, 1.00])
        >>> with wg.ieee_gradients(True):
        ...     wg.grad(f)(x)
        tensor([0.25,  nan])
    """

    def __init__(self, mode: bool = True) -> None:
        """Switches at once."""
        if callable(mode):
            raise TypeError("ieee_gradients: write @ieee_gradients(True) with brackets to wrap a function")
        self.mode = bool(mode)
        self._before = _set(self.mode)

    def _again(self) -> "ieee_gradients":
        return ieee_gradients(self.mode)

    def __call__(self, function: Callable[..., Any]) -> Any:
        """Runs `function` with it on or off; outside of it, nothing changes."""
        _set(self._before)
        return super().__call__(function)

    def __enter__(self) -> "ieee_gradients":
        """Begins the region, which already has begun."""
        return self

    def __exit__(self, *exc: Any) -> None:
        """Puts it back to what it was."""
        _set(self._before)
