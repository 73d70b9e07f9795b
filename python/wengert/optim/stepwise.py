"""What optimisers share whose step is written in tensor operations, one parameter after another."""

from typing import Any

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
            state = self.state.setdefault(p, {})
            # PyTorch counts steps in tensors.
            state["step"] = int(state.get("step", 0)) + 1
            self._step_of(p, self._decayed(p, g, group), state, group)

    def _between(self, group: dict[str, Any], name: str, low: float, high: float) -> None:
        """Raises unless a setting lies in `[low, high)`."""
        if not low <= group[name] < high:
            raise ValueError(
                f"{type(self).__name__}: {name} must lie in [{low:g}, {high:g}), got {group[name]}"
            )

    def _check_betas(self, group: dict[str, Any]) -> None:
        """Raises unless both weights of moments lie in [0, 1)."""
        for i, beta in enumerate(group["betas"]):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"{type(self).__name__}: betas[{i}] must lie in [0, 1), got {beta}")


def zeros(state: dict[str, Any], name: str, like: Tensor, value: float = 0.0) -> Tensor:
    """An entry of the state, shaped as the parameter; it begins with one value everywhere."""
    if state.get(name) is None:
        state[name] = _core.full(tuple(like.shape), value, dtype=like.dtype, device=like.device)
    return state[name]
