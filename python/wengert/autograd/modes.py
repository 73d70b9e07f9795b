"""Recording modes: contexts that are decorators as well, for functions and generators."""

import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from wengert._core import (
    _restore_grad,
    _restore_inference,
    _set_grad_enabled,
    _set_inference,
    is_grad_enabled,
    is_inference_mode_enabled,
)

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])


class Region:
    """A context that can also wrap functions: each call, and each step of a generator, runs inside it."""

    def _again(self) -> "Region":
        """A fresh context with the same settings."""
        return type(self)()

    def __enter__(self) -> "Region":
        """Begins the region."""
        raise NotImplementedError

    def __exit__(self, *exc: Any) -> None:
        """Ends the region."""
        raise NotImplementedError

    def __call__(self, function: F) -> F:
        """Runs `function` inside the region."""
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    def _wrap_generator(self, function: Any) -> Any:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            generator = function(*args, **kwargs)
            step: Callable[[], Any] = lambda: next(generator)
            # The region is left at each yield, so that it does not leak into the code that consumes the
            # generator.
            while True:
                try:
                    with self._again():
                        item = step()
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield item
                    step = functools.partial(generator.send, sent)
                except GeneratorExit:
                    with self._again():
                        generator.close()
                    raise
                except BaseException as error:
                    step = functools.partial(generator.throw, error)

        return wrapped


class _Recording(Region):
    enabled = True

    def __init__(self, function: Any = None) -> None:
        self._before: list[int] = []

    def __new__(cls, function: Any = None) -> Any:
        self = super().__new__(cls)
        if function is not None:
            # `@no_grad` without brackets.
            self.__init__()  # type: ignore[misc]
            return self(function)
        return self

    def __enter__(self) -> "_Recording":
        self._before.append(_set_grad_enabled(self.enabled))
        return self

    def __exit__(self, *exc: Any) -> None:
        _restore_grad(self._before.pop())


class no_grad(_Recording):
    """Turns recording off; a context and a decorator.

    Results of operations do not require gradients, and leaves can be written in place. Transforms entered
    inside still differentiate.

    Example:
        >>> x = wg.ones(2, requires_grad=True)
        >>> with wg.no_grad():
        ...     (x * 2).requires_grad
        False
    """

    enabled = False


class enable_grad(_Recording):
    """Turns recording on again inside `no_grad`; a context and a decorator.

    Example:
        >>> x = wg.ones(2, requires_grad=True)
        >>> with wg.no_grad(), wg.enable_grad():
        ...     y = x * 2
        >>> y.requires_grad
        True
    """

    enabled = True


class inference_mode(Region):
    """Turns recording off for good, for inference; a context and a decorator.

    Tensors made inside are inference tensors: outside, they can be computed with, but not written in place,
    nor be saved for backward, nor require a gradient; a `clone()` of one can. Inside, `enable_grad` has no
    effect. `inference_mode(False)` leaves the mode for a region, in which recording is on.

    Example:
        >>> with wg.inference_mode():
        ...     x = wg.ones(2) * 2
        >>> x.is_inference()
        True
        >>> (wg.ones(2, requires_grad=True) * x.clone()).requires_grad
        True
    """

    def __init__(self, mode: bool = True) -> None:
        """On where `mode` is true."""
        self.mode = mode
        self._before: list[Any] = []

    def __new__(cls, mode: Any = True) -> Any:
        """`@inference_mode` without brackets wraps a function."""
        self = super().__new__(cls)
        if callable(mode):
            self.__init__()  # type: ignore[misc]
            return self(mode)
        return self

    def _again(self) -> "inference_mode":
        return inference_mode(self.mode)

    def __enter__(self) -> "inference_mode":
        """Begins the region."""
        self._before.append(_set_inference(bool(self.mode)))
        return self

    def __exit__(self, *exc: Any) -> None:
        """Ends the region."""
        _restore_inference(self._before.pop())


class set_grad_enabled(Region):
    """Turns recording on or off, at once; as a context, until its end.

    Example:
        >>> x = wg.ones(2, requires_grad=True)
        >>> with wg.set_grad_enabled(False):
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    def __init__(self, mode: bool) -> None:
        """On where `mode` is true."""
        self.mode = mode
        self._before = _set_grad_enabled(mode)

    def _again(self) -> "set_grad_enabled":
        return set_grad_enabled(self.mode)

    def __call__(self, function: F) -> F:
        """Runs `function` with recording on or off; outside of it, nothing changes."""
        _restore_grad(self._before)
        return super().__call__(function)

    def __enter__(self) -> "set_grad_enabled":
        """Begins the region, which already has begun."""
        return self

    def __exit__(self, *exc: Any) -> None:
        """Puts recording back to what it was."""
        _restore_grad(self._before)
