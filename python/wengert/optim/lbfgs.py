"""The limited-memory method of Broyden, Fletcher, Goldfarb and Shanno."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import wengert as wg
from wengert import _core
from wengert._core import Tensor

from .optimizer import Optimizer

__all__ = ["LBFGS"]

# A point of a line: how far along it, the value there, the slope there, and the gradient.
Point = tuple[float, float, float, Tensor]
# The value here, its gradient, and the loss as the closure returned it.
Evaluate = Callable[[], tuple[float, Tensor, Any]]


class LBFGS(Optimizer):
    """L-BFGS (Liu and Nocedal 1989): steps along `-H g`, where `H` is made of past steps and changes of the
    gradient.

    `step(closure)` makes up to `max_iter` iterations and needs a closure that clears the gradients, computes
    the loss and back-propagates. All parameters form one vector, in one group, of one dtype.

    Args:
        params: the parameters.
        lr: the length of steps without a line search, and the first one tried with it.
        max_iter: the most iterations of one `step`.
        max_eval: no iteration begins after that many calls of the closure in one `step`, `max_iter * 5 // 4`
            by default. A line search ends there too, but makes at least two.
        tolerance_grad: stop where no element of the gradient is larger.
        tolerance_change: stop where a step or the change of the loss is smaller.
        history_size: how many steps `H` is made of.
        line_search_fn: None, or "strong_wolfe" (Nocedal and Wright 2006, algorithms 3.5 and 3.6).
        maximize: ascend instead of descending.

    Raises:
        ValueError: for several groups, or an unknown line search.
        TypeError: in `step`, without a closure.

    Example:
        >>> x = wg.tensor([-1.2, 1.0], requires_grad=True, dtype=wg.float64)
        >>> optimiser = wg.optim.LBFGS([x], max_iter=100, line_search_fn="strong_wolfe")
        >>> def rosenbrock():
        ...     optimiser.zero_grad()
        ...     loss = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        ...     loss.backward()
        ...     return loss
        >>> first = optimiser.step(rosenbrock)
        >>> bool(((x - 1).abs() < 1e-3).all())
        True
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        """Makes the parameter group."""
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"LBFGS: line_search_fn must be None or 'strong_wolfe', got {line_search_fn!r}")
        super().__init__(
            params,
            dict(
                lr=lr,
                max_iter=max_iter,
                max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
                tolerance_grad=tolerance_grad,
                tolerance_change=tolerance_change,
                history_size=history_size,
                line_search_fn=line_search_fn,
                maximize=maximize,
            ),
        )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Takes the only group.

        Raises:
            ValueError: if there is one already.
        """
        if self.param_groups:
            raise ValueError(
                f"LBFGS: one group of parameters expected, got {len(self.param_groups) + 1}; all of them are "
                f"one vector"
            )
        super().add_param_group(param_group)

    @property
    def _memory(self) -> dict[str, Any]:
        """The state, which belongs to the first parameter as in PyTorch."""
        return self.state.setdefault(
            self._all()[0], {"func_evals": 0, "n_iter": 0, "old_dirs": [], "old_stps": []}
        )

    def _gradient(self) -> Tensor:
        """All gradients as one vector; zeros for parameters without one."""
        return _flat([wg.zeros_like(p.detach()) if p.grad is None else p.grad.detach() for p in self._all()])

    def _values(self) -> Tensor:
        """A copy of all parameters as one vector."""
        return _flat([p.detach() for p in self._all()]).clone()

    def _place(self, values: Tensor) -> None:
        """Sets the parameters."""
        params = [_real(p.detach()) for p in self._all()]
        for p, part in zip(params, values.split([p.numel() for p in params])):
            p.copy_(part.reshape(p.shape))

    def _direction(self, g: Tensor) -> Tensor:
        """`-H g` by the two loops over past steps."""
        memory = self._memory
        changes, steps = memory["old_dirs"], memory["old_stps"]
        if not changes:
            return -g
        inner = [1.0 / float((y * s).sum()) for y, s in zip(changes, steps)]
        weights = [0.0] * len(changes)
        q = -g
        for i in range(len(changes) - 1, -1, -1):
            weights[i] = inner[i] * float((steps[i] * q).sum())
            q = q - changes[i] * weights[i]
        last = changes[-1]
        q = q * (1.0 / (inner[-1] * float((last * last).sum())))
        for y, s, rho, weight in zip(changes, steps, inner, weights):
            q = q + s * (weight - rho * float((y * q).sum()))
        return q

    def _remember(self, change: Tensor, moved: Tensor, size: int) -> None:
        """Adds a step to `H`, unless the curvature along it is not positive."""
        if float((change * moved).sum()) <= 1e-10:
            return
        memory = self._memory
        for name, value in (("old_dirs", change), ("old_stps", moved)):
            memory[name] = [*memory[name], value][-size:]

    def _begin(self, g: Tensor) -> tuple[Tensor, float]:
        """The direction from here and the length to try along it;
        what the last iteration learned is remembered.
        """
        group, memory = self.param_groups[0], self._memory
        if memory["n_iter"] > 0:
            moved = memory["d"] * memory["t"]
            self._remember(g - memory["prev_flat_grad"], moved, group["history_size"])
        # Before anything is known of the scale, the first step is at most as long as `lr`.
        scale = 1.0 if memory["n_iter"] > 0 else min(1.0, 1.0 / float(g.abs().sum()))
        memory["n_iter"] += 1
        direction = self._direction(g)
        memory.update(d=direction, t=0.0, prev_flat_grad=g)
        return direction, group["lr"] * scale

    def _search(
        self, evaluate: Evaluate, here: Point, direction: Tensor, length: float, budget: int
    ) -> Point:
        """Where a line search along a direction comes to; the parameters are there afterwards."""
        start = self._values()

        def at(t: float) -> Point:
            self._place(start + direction * t)
            value, g, _ = evaluate()
            return t, value, float((g * direction).sum()), g

        found = strong_wolfe(at, here, length, budget)
        self._place(start + direction * found[0])
        return found

    def _iterate(self, evaluate: Evaluate) -> Any:
        """Makes the iterations of one step; returns the first loss."""
        group, memory = self.param_groups[0], self._memory
        before = memory["func_evals"]
        value, g, first = evaluate()
        is_flat = lambda g: float(g.abs().max()) <= group["tolerance_grad"]
        if is_flat(g):
            return first
        for i in range(group["max_iter"]):
            direction, length = self._begin(g)
            slope = float((g * direction).sum())
            if slope > -group["tolerance_change"]:
                break
            last, is_last = value, i + 1 == group["max_iter"]
            left = group["max_eval"] - (memory["func_evals"] - before)
            if group["line_search_fn"] is not None:
                origin = (0.0, value, slope, g)
                length, value, _, g = self._search(evaluate, origin, direction, length, max(left, 1) + 1)
            else:
                self._place(self._values() + direction * length)
                # The gradient where the step ends is that with which the next one begins.
                value, g, _ = (value, g, None) if is_last else evaluate()
            memory["t"] = length
            spent = memory["func_evals"] - before >= group["max_eval"]
            small = (
                min(float((direction * length).abs().max()), abs(value - last)) < group["tolerance_change"]
            )
            if is_last or spent or small or is_flat(g) or not math.isfinite(value):
                break
        return first

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Makes up to `max_iter` iterations; returns the loss before the first.

        Args:
            closure: clears the gradients, computes the loss, back-propagates, and returns the loss.
        """
        if closure is None:
            raise TypeError("LBFGS: step() needs a closure that computes the loss and its gradients again")
        sign = -1.0 if self.param_groups[0]["maximize"] else 1.0

        def evaluate() -> tuple[float, Tensor, Any]:
            self._memory["func_evals"] += 1
            with wg.enable_grad():
                loss = closure()
            try:
                value = float(loss)
            except TypeError:
                if not _core._replaces_values():
                    raise
                raise RuntimeError(
                    "LBFGS: how far step() goes depends on the value of the loss, which vmap and jvp hide; "
                    "call it "
                    "outside of them, or use an optimiser that looks at no values, such as SGD or Adam"
                ) from None
            return sign * value, self._gradient() * sign, loss

        with wg.no_grad():
            return self._iterate(evaluate)


def _real(x: Tensor) -> Tensor:
    """The parts of complex numbers, as a view; others as they are."""
    return wg.view_as_real(x) if x.dtype.is_complex else x


def _flat(parts: list[Tensor]) -> Tensor:
    """All elements as one vector."""
    return wg.cat([_real(part).reshape(-1) for part in parts])


def _cubic(a: Point, b: Point, low: float, high: float) -> float:
    """The minimum of the cubic through two points and their slopes, or the middle where there is none
    inside."""
    if a[0] == b[0]:
        return 0.5 * (low + high)
    d1 = a[2] + b[2] - 3.0 * (a[1] - b[1]) / (a[0] - b[0])
    square = d1 * d1 - a[2] * b[2]
    if not square >= 0.0:
        return 0.5 * (low + high)
    d2 = math.copysign(math.sqrt(square), b[0] - a[0])
    bottom = b[2] - a[2] + 2.0 * d2
    if bottom == 0.0:
        return 0.5 * (low + high)
    t = b[0] - (b[0] - a[0]) * ((b[2] + d2 - d1) / bottom)
    return min(max(t, low), high) if math.isfinite(t) else 0.5 * (low + high)


def strong_wolfe(
    at: Callable[[float], Point],
    origin: Point,
    length: float,
    budget: int,
    decrease: float = 1e-4,
    curvature: float = 0.9,
) -> Point:
    """A point with `f(t) <= f(0) + decrease t f'(0)` and `|f'(t)| <= curvature |f'(0)|` (Nocedal and Wright
    2006).

    Args:
        at: the point at a length.
        origin: the point at 0, with a negative slope.
        length: what to try first.
        budget: the most calls of `at`.
        decrease: the share of the slope by which the value must fall.
        curvature: the share of the slope that may be left.

    Returns:
        The point found, or the best one when the budget is spent.
    """

    def too_high(p: Point) -> bool:
        return not p[1] <= origin[1] + decrease * p[0] * origin[2]

    before, here = origin, at(length)
    calls = 1
    while True:
        if too_high(here) or (calls > 1 and here[1] >= before[1]):
            low, high = before, here
            break
        if abs(here[2]) <= -curvature * origin[2]:
            return here
        if here[2] >= 0.0:
            low, high = here, before
            break
        if calls >= budget:
            return here
        # Further out: at least a hundredth of the last step, at most ten times as far.
        reach = here[0] + 0.01 * (here[0] - before[0])
        before, here = here, at(_cubic(before, here, reach, here[0] * 10.0))
        calls += 1
    while calls < budget:
        left, right = sorted((low[0], high[0]))
        if right - left <= 1e-12 * max(1.0, right):
            break
        margin = 0.1 * (right - left)
        new = at(_cubic(low, high, left + margin, right - margin))
        calls += 1
        if too_high(new) or new[1] >= low[1]:
            high = new
            continue
        if abs(new[2]) <= -curvature * origin[2]:
            return new
        if new[2] * (high[0] - low[0]) >= 0.0:
            high = low
        low = new
    return low
