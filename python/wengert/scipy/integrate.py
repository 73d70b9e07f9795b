"""Ordinary differential equations, with the parameters of `scipy.integrate.odeint`."""

import itertools
from collections.abc import Callable
from typing import Any

import wengert as wg
from wengert._arguments import operand
from wengert._core import Tensor

__all__ = ["odeint"]
__dir__ = __all__.copy

# Dormand and Prince (1980): what each stage adds up, the stages of the step, and those of the estimate of its
# error.
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: int = 10000,
) -> Tensor:
    """Returns the solution of `dy/dt = func(y, t, *args)` at the times `t`, one row for each, `y0` first.

    Steps of the Runge-Kutta method of order 5 by Dormand and Prince (1980), whose lengths keep the estimated
    error of each below `atol + rtol * |y|`. The result is a function of `y0`, `args` and what `func` uses;
    times are constants. The tape keeps every step.

    Args:
        func: returns the slope, of the shape of `y`.
        y0: the state at the first time.
        t: ascending or descending times.
        args: what `func` takes besides; one tuple of them is taken as in SciPy.
        mxstep: the most steps between two times.

    Raises:
        RuntimeError: more steps than `mxstep`, as where the solution goes to infinity.

    Example:
        >>> wg.scipy.integrate.odeint(lambda y, t: -y, wg.tensor([1.0]), [0.0, 1.0])
        tensor([[1.0000],
                [0.3679]])
    """
    y = operand("odeint", y0)
    times = [float(time) for time in operand("odeint", t).detach().reshape(-1).tolist()]
    args = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
    # Below the rounding error of the dtype no step would be short enough.
    rtol = max(rtol, 10 * wg.finfo(y.dtype).eps)

    def slope(y: Tensor, time: float) -> Tensor:
        return operand("odeint", func(y, time, *args), y)

    rows, first = [y], slope(y, times[0])
    step = 1e-3 * (times[-1] - times[0])
    for begin, end in itertools.pairwise(times):
        now = begin
        for _ in range(mxstep):
            if now == end:
                break
            length = step if abs(step) < abs(end - now) else end - now
            stages = [first]
            for time, weights in zip(_TIMES, _STAGES):
                stages.append(slope(_moved(y, length, weights, stages), now + time * length))
            size = _moved(0.0, length, _ERROR, stages).detach().abs() / (atol + rtol * y.detach().abs())
            error = float(size.square().mean().sqrt())
            if error <= 1:
                y = _moved(y, length, _STAGES[-1], stages)
                now, first = (end if length == end - now else now + length), stages[-1]
            step = (
                length * min(5.0, max(0.2, 0.9 * max(error, 1e-10) ** -0.2))
                if error == error
                else length / 10
            )
        else:
            raise RuntimeError(
                f"odeint: more than mxstep={mxstep} steps between the times {begin} and {end}, at {now}"
            )
        rows.append(y)
    return wg.stack(rows)


def _moved(y: Any, length: float, weights: tuple[float, ...], stages: list[Tensor]) -> Any:
    """The state after a step along the weighted stages."""
    for weight, stage in zip(weights, stages):
        if weight:
            y = y + (weight * length) * stage
    return y
