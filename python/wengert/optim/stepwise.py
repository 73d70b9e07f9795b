"""What optimisers share whose step is written in tensor operations, one parameter after another."""

from typing import Any

import wengert as wg
from wengert import _core
from wengert._core import Tensor

from .optimizer import Optimizer

__all__ = ["Stepwise"]


class Stepwise(Optimizer):
    """Base class: a subclass defines `_step_of(p, g, state, group)`, which changes one parameter in place.

    The gradient that it is given has the sign of a minimisation and, unless decay is decoupled, the weight decay in it.
    `state["step"]` counts from 1. Nothing is recorded.
    """

    def _decayed(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> Tensor:
        """The gradient with the weight decay, or the gradient after the decay of the parameter itself."""
        decay = group.get("weight_decay", 0.0)
        if not decay:
            return g
        if not group.get("decoupled_weight_decay"):
            return g + p.detach() * decay
        p.mul_(1.0 - group["lr"] * decay)
        return g

    def _step_of(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no _step_of")

    def _update(self, group: dict[str, Any]) -> None:
        for p in group["params"]:
            if p.grad is None:
                continue
            g = p.grad.detach()
            g = -g if group.get("maximize") else g
            state = self.state[p]
            # PyTorch counts steps in tensors.
            state["step"] = int(state.get("step", 0)) + 1
            if p.dtype.is_complex:
                self._step_of_parts(p.detach(), g, state, group)
            else:
                self._step_of(p, self._decayed(p, g, group), state, group)

    def _step_of_parts(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """The step of a complex parameter: that of its real and imaginary parts. The state is complex too."""
        x, g = wg.view_as_real(p), wg.view_as_real(g)
        is_complex = lambda v: isinstance(v, Tensor) and v.dtype.is_complex
        parts = {key: wg.view_as_real(v) if is_complex(v) else v for key, v in state.items()}
        self._step_of(x, self._decayed(x, g, group), parts, group)
        is_pair = lambda v: isinstance(v, Tensor) and v.shape == x.shape
        state.update({key: wg.view_as_complex(v) if is_pair(v) else v for key, v in parts.items()})

    def _check_real(self, group: dict[str, Any]) -> None:
        """Raises for complex parameters."""
        for i, p in enumerate(group["params"]):
            if p.dtype.is_complex:
                raise TypeError(
                    f"{type(self).__name__}: parameter {i} is {p.dtype}; real parameters expected, give "
                    "this one to another optimiser"
                )


def zeros(state: dict[str, Any], name: str, like: Tensor, value: float = 0.0) -> Tensor:
    """An entry of the state, shaped as the parameter; it begins with one value everywhere."""
    if state.get(name) is None:
        state[name] = _core.full(tuple(like.shape), value, dtype=like.dtype, device=like.device)
    return state[name]
