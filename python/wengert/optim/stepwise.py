"""What optimisers share beside SGD and Adam: rules of one formula per element, which the core reads, and
steps that are written in tensor operations, one parameter after another.
"""

from typing import Any

import wengert as wg
from wengert import _core
from wengert._core import Tensor

from .optimizer import Optimizer

__all__ = ["Elementwise", "Stepwise"]


class Elementwise(Optimizer):
    """Base class: a subclass names a rule of `src/math/updates.rs` and gives its numbers. One pass of a
    kernel moves all parameters of a group whose numbers are equal, as they are unless some joined later.
    """

    _records_nothing = True

    def _rule(self, group: dict[str, Any]) -> tuple[str, dict[str, float]]:
        """The name of the rule, and its state: names, and the values that it begins with."""
        raise NotImplementedError(f"{type(self).__name__} has no _rule")

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        """The numbers of the rule for the step that `state["step"]` counts from 1."""
        raise NotImplementedError(f"{type(self).__name__} has no _numbers")

    def _update(self, group: dict[str, Any]) -> None:
        self._move(group, None)

    def _update_unless(self, group: dict[str, Any], found: Tensor) -> None:
        self._move(group, found)

    def _move(self, group: dict[str, Any], found: Tensor | None) -> None:
        name, names = self._rule(group)
        decay, maximize = float(group.get("weight_decay", 0.0)), bool(group["maximize"])
        shrink = 1.0
        if group.get("decoupled_weight_decay"):
            decay, shrink = 0.0, 1.0 - float(group["lr"]) * decay
        batches: dict[tuple[float, ...], list[tuple[Tensor, Tensor]]] = {}
        for p in group["params"]:
            if (g := p.grad) is not None:
                state = self.state[p]
                # PyTorch counts steps in tensors.
                state["step"] = int(state.get("step", 0)) + 1
                batches.setdefault(self._numbers(group, state), []).append((p, g))
        for numbers, pairs in batches.items():
            rule = (name, numbers, decay, shrink, maximize)
            tensors: list[Tensor] = []
            for p, g in pairs:
                state = self.state[p]
                tensors += [p, *(zeros(state, key, p, value) for key, value in names.items()), g]
            if not _core._optim_elementwise(rule, tensors, found) and not found:
                self._compose(rule, [p for p, _ in pairs], names, tensors)

    @wg.no_grad()
    def _compose(
        self, rule: tuple[Any, ...], params: list[Tensor], names: dict[str, float], tensors: list[Tensor]
    ) -> None:
        """A step where a value is no memory: inside of `vmap` and `jvp`."""
        width = len(names) + 2
        for i, p in enumerate(params):
            own = tensors[i * width : (i + 1) * width]
            is_complex = p.dtype.is_complex
            moved = _core._optim_moved(rule, [wg.view_as_real(x) for x in own] if is_complex else own)
            moved = [wg.view_as_complex(x) for x in moved] if is_complex else moved
            p.copy_(moved[0])
            self.state[p].update(zip(names, moved[1:]))


class Stepwise(Optimizer):
    """Base class: a subclass defines `_step_of(p, g, state, group)`, which changes one parameter in place.

    The gradient that it is given has the sign of a minimisation and, unless decay is decoupled, the weight
    decay in it. `state["step"]` counts from 1. Nothing is recorded.
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
            self._step_of(p, self._decayed(p, g, group), state, group)

    def _check_real(self, group: dict[str, Any]) -> None:
        """Raises for complex parameters."""
        for i, p in enumerate(group["params"]):
            if p.dtype.is_complex:
                raise TypeError(
                    f"{type(self).__name__}: parameter {i} is {p.dtype}; real parameters expected, give "
                    "this one to another optimiser"
                )


def zeros(state: dict[str, Any], name: str, like: Tensor, value: complex = 0.0) -> Tensor:
    """An entry of the state, shaped as the parameter; it begins with one value everywhere, also in both parts
    of complex numbers.
    """
    if state.get(name) is None:
        value = complex(value, value) if like.dtype.is_complex else value
        state[name] = _core.full(tuple(like.shape), value, dtype=like.dtype, device=like.device)
    return state[name]
