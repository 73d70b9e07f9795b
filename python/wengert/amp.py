"""Mixed precision: `autocast` computes in float16 or bfloat16 where that is safe, `GradScaler` keeps float16
gradients from vanishing (Micikevicius et al. 2018). bfloat16 has float32's range and needs no scaler.
"""

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import wengert as wg
from wengert import _core
from wengert._core import Tensor

from .autograd.autocast import check_device
from .optim import Optimizer

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]  # noqa: F822 (see __getattr__)


def __getattr__(name: str) -> Any:
    # Looked up late: this module may be imported while `wengert` itself still is.
    if name == "autocast":
        return wg.autocast
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_autocast_available(device_type: str) -> bool:
    """Tells whether `autocast` works for a kind of device: True, for it works everywhere.

    Args:
        device_type: a device, or one of PyTorch's names of them.

    Raises:
        ValueError: for one that neither names.

    Example:
        >>> wg.amp.is_autocast_available("cpu")
        True
    """
    check_device("is_autocast_available", device_type, "device_type", "'cpu'")
    return True


def _cast(value: Any, dtype: Any) -> Any:
    """The floating point tensors in some arguments as `dtype`; float64 stays."""
    if isinstance(value, Tensor):
        eligible = value.is_floating_point() and value.dtype != wg.float64
        return value.to(dtype) if eligible else value
    if isinstance(value, Mapping):
        return {key: _cast(part, dtype) for key, part in value.items()}
    return type(value)(_cast(part, dtype) for part in value) if type(value) in (list, tuple) else value


def custom_fwd(fwd: Any = None, *, device_type: str = "cpu", cast_inputs: Any = None) -> Any:
    """Decorates the `forward` of an `autograd.Function` for autocast regions (as does `custom_bwd` its
    `backward`).

    Args:
        fwd: the method; without it, a decorator is returned.
        device_type: accepted; regions hold for all devices.
        cast_inputs: a dtype: in a region, floating point arguments become that, and the region is left. None
            stays in the region.

    Example:
        >>> class Square(wg.autograd.Function):
        ...     @staticmethod
        ...     @wg.amp.custom_fwd(device_type="cpu", cast_inputs=wg.float32)
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     @wg.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, g):
        ...         return 2 * ctx.saved_tensors[0] * g
        >>> with wg.autocast("cpu"):
        ...     Square.apply(wg.ones(2).bfloat16()).dtype
        wengert.float32
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        ctx, dtype = args[0], wg.get_autocast_dtype()
        ctx._autocast_dtype = None if cast_inputs is not None else dtype
        if cast_inputs is None or dtype is None:
            return fwd(*args, **kwargs)
        with wg.autocast(enabled=False):
            return fwd(ctx, *_cast(args[1:], cast_inputs), **_cast(kwargs, cast_inputs))

    return decorated


def custom_bwd(bwd: Any = None, *, device_type: str = "cpu") -> Any:
    """Decorates the `backward` of an `autograd.Function`: it runs in the precision of the forward, which
    `custom_fwd` decorates.

    Args:
        bwd: the method; without it, a decorator is returned.
        device_type: accepted; regions hold for all devices.

    Example:
        >>> wg.amp.custom_bwd(lambda ctx, g: g).__name__
        '<lambda>'
    """
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        dtype = getattr(ctx, "_autocast_dtype", None)
        with wg.autocast(dtype=dtype, enabled=dtype is not None):
            return bwd(ctx, *args, **kwargs)

    return decorated


def _times(outputs: Any, factor: Tensor) -> Any:
    """A tensor, or all tensors of an iterable, times a factor."""
    if isinstance(outputs, Tensor):
        return outputs * factor
    if isinstance(outputs, list | tuple):
        return type(outputs)(_times(x, factor) for x in outputs)
    if isinstance(outputs, Iterable) and not isinstance(outputs, str):
        return (_times(x, factor) for x in outputs)
    raise TypeError(
        f"GradScaler.scale: a tensor, or an iterable of them, expected, got {type(outputs).__name__}"
    )


def _written(factor: float) -> Tensor:
    """A factor where programs read it, which can be written to in inference mode and outside of it."""
    with wg.inference_mode(False):
        return wg.tensor(factor, dtype=wg.float32, device="cpu")


class GradScaler:
    """Multiplies the loss by a large factor, and divides the gradients by it before the optimiser sees them.

    Where a gradient overflowed, the step is left out and the factor shrinks; after `growth_interval` good
    steps in a row it grows. Each iteration: `scaler.scale(loss).backward()`, optionally
    `scaler.unscale_(optimizer)` and clipping, `scaler.step(optimizer)`, `scaler.update()`.

    Args:
        device: one of PyTorch's names of devices; changes nothing.
        init_scale: the first factor.
        growth_factor: what the factor is multiplied by after `growth_interval` good steps; above 1.
        backoff_factor: what the factor is multiplied by after an overflow; between 0 and 1.
        growth_interval: how many good steps in a row make the factor grow.
        enabled: False passes losses and steps on as they are.

    Raises:
        ValueError: for a `device` that names none, and factors out of range.
        TypeError: for a `device` that is no string.
        RuntimeError: if used in another order, or if a gradient to unscale is float16.

    Example:
        >>> scaler = wg.amp.GradScaler(init_scale=1024.0)
        >>> scaler.scale(wg.tensor(2.0))
        tensor(2048.)
    """

    # See `wengert.jit`.
    _called_by_programs = ("unscale_", "step", "update")
    _recorded_by_programs = {  # noqa: RUF012
        "scale": ("_scale_in_program", "_note_scale"),
        "is_enabled": ("is_enabled", None),
    }

    def __init__(
        self,
        device: Any = None,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        """Takes PyTorch's arguments. `device` may be any of PyTorch's names and changes nothing: gradients
        may lie on any device. With `enabled=False` losses and steps are passed on as they are.
        """
        if device is not None and not isinstance(device, _core.device):
            check_device("GradScaler", device, "device", "the first factor as init_scale=")
        if growth_factor <= 1.0 or not 0.0 < backoff_factor < 1.0:
            raise ValueError(
                "GradScaler: growth_factor above 1 and backoff_factor in (0, 1) expected, "
                f"got {growth_factor}, {backoff_factor}"
            )
        self._checked("a positive growth_interval", growth_interval, growth_interval > 0)
        self._enabled = enabled
        self._checked("a positive init_scale", float(init_scale), 0.0 < init_scale < math.inf)
        # The factor where programs read it.
        self._factor = _written(float(init_scale))
        self._scale = float(init_scale)
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0
        self._scaled = False
        # Per optimiser of this iteration: whether a gradient overflowed, a 0-d int32 where the gradients
        # lie; and what restores its state of before the step.
        self._found: dict[int, Tensor] = {}
        self._stepped: dict[int, Callable[[], None] | None] = {}

    def is_enabled(self) -> bool:
        """Tells whether the scaler does anything."""
        return self._enabled

    def get_scale(self) -> float:
        """Returns the factor, 1 if not enabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """Returns what the factor is multiplied by after `get_growth_interval()` good steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets the factor by which the scale grows. Raises ValueError unless it is above 1."""
        self._growth_factor = self._checked("growth_factor above 1", new_factor, new_factor > 1.0)

    def get_backoff_factor(self) -> float:
        """Returns what the factor is multiplied by after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets the factor of the scale after an overflow. Raises ValueError unless it lies in (0, 1)."""
        is_valid = 0.0 < new_factor < 1.0
        self._backoff_factor = self._checked("backoff_factor in (0, 1)", new_factor, is_valid)

    def get_growth_interval(self) -> int:
        """Returns how many good steps in a row make the factor grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets the number of good steps before the scale grows. Raises ValueError unless it is positive."""
        self._growth_interval = self._checked("a positive growth_interval", new_interval, new_interval > 0)

    def _checked(self, what: str, value: Any, is_valid: bool) -> Any:
        if not is_valid:
            raise ValueError(f"GradScaler: {what} expected, got {value}")
        return value

    def scale(self, outputs: Any) -> Any:
        """Returns the loss times the factor; of losses in a list, a tuple or another iterable, all of them.

        A float16 or bfloat16 loss of shape () becomes float32, since the factor may be beyond its range.
        """
        if not self._enabled:
            return outputs
        self._scaled = True
        # A tensor, unlike a number, makes float32 of a half without axes: the factor alone may be beyond its
        # range. It is a new one, so that nothing is written to what a tape saves of it.
        return _times(outputs, wg.tensor(self._scale, dtype=wg.float32, device="cpu"))

    def _scale_in_program(self, outputs: Any) -> Any:
        """`scale`, where every run of a program finds the factor of then."""
        if not self._enabled:
            return outputs
        self.__dict__["_scaled"] = True
        # A copy, as in `scale`: what sets the factor may be called before `backward`.
        return _times(outputs, self._factor.clone())

    def _note_scale(self) -> None:
        """Takes note that a program has scaled a loss."""
        self._scaled = self._enabled

    def _set_scale(self, value: float) -> None:
        if self._factor.is_inference():
            # A scaler that was copied or loaded in inference mode; nobody could write to that outside of it.
            self._factor = _written(value)
        else:
            with wg.no_grad():
                self._factor.fill_(value)
        self._scale = value

    def __copy__(self) -> Self:
        """A scaler with the same state; the factor of one is not that of the other."""
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        copied._factor = _written(self._scale)
        return copied

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the optimiser's gradients by the factor, in place, and notes whether one overflowed.

        Call it before `step` to clip or look at true gradients; `step` calls it otherwise.
        """
        if not self._enabled:
            return
        self._demand_scaled("unscale_")
        if id(optimizer) in self._stepped:
            raise RuntimeError(
                "GradScaler: unscale_() after step(); the order is scale, unscale_, step, update"
            )
        if id(optimizer) in self._found:
            raise RuntimeError(
                "GradScaler: unscale_() a second time for this optimiser since the last update(); call it "
                "once per iteration, before step"
            )
        grads = [g for group in optimizer.param_groups for g in _core._gradients(group["params"])]
        for grad in grads:
            if grad.dtype == wg.float16:
                raise RuntimeError(
                    f"GradScaler: a gradient of shape {tuple(grad.shape)} is float16, which dividing would "
                    "make vanish again; keep parameters in float32 and use autocast"
                )
        self._found[id(optimizer)] = _core._amp_unscale(grads, 1.0 / self._scale)

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Calls `optimizer.step(*args, **kwargs)` unless a gradient overflowed; returns its result or None.

        Where a step is nothing but fused kernels (SGD and Adam without hooks), the device leaves it out, and
        the program does not wait for the gradients; `update` then takes back what counts the step.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if kwargs.get("closure") is not None or any(map(callable, args)):
            raise RuntimeError(
                "GradScaler: closures are not supported, the scaler could not unscale in between"
            )
        self._demand_scaled("step")
        if id(optimizer) in self._stepped:
            raise RuntimeError(
                "GradScaler: step() a second time for this optimiser; call update() in between"
            )
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        found = self._found[id(optimizer)]
        plain = not args and not kwargs and isinstance(optimizer, Optimizer)
        restore = self._stepped[id(optimizer)] = optimizer._step_unless(found) if plain else None
        return None if restore or found else optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapts the factor, or sets it; ends the iteration."""
        if not self._enabled:
            return
        overflowed = False
        for key, found in self._found.items():
            if found:
                overflowed = True
                if restore := self._stepped.get(key):
                    restore()
        if new_scale is not None:
            value = float(new_scale)
            if not value > 0.0 or math.isinf(value):
                raise ValueError(f"GradScaler.update: the factor must be positive and finite, got {value}")
            self._set_scale(value)
        elif not self._found:
            raise RuntimeError(
                "GradScaler: update() before any step() or unscale_(); the order is scale, step, update"
            )
        elif overflowed:
            self._set_scale(self._scale * self._backoff_factor)
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                # A factor that leaves float32's range would turn every later gradient into NaN.
                self._set_scale(min(self._scale * self._growth_factor, 2.0**127))
                self._growth_tracker = 0
        self._found.clear()
        self._stepped.clear()
        self._scaled = False

    def _demand_scaled(self, what: str) -> None:
        if not self._scaled:
            raise RuntimeError(
                f"GradScaler: {what}() before scale(); call scaler.scale(loss).backward() earlier in the "
                "iteration"
            )

    def state_dict(self) -> dict[str, Any]:
        """Returns what a resumed run needs; empty if not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "GradScaler.load_state_dict: the state is empty, it was saved by a disabled scaler"
            )
        self._set_scale(float(state_dict["scale"]))
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._growth_tracker = (
            state_dict["growth_interval"],
            state_dict["_growth_tracker"],
        )


def __dir__() -> list[str]:
    """What is public."""
    return __all__
