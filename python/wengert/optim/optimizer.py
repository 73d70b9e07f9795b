"""`Optimizer`: parameter groups, state, and what every optimiser shares. Read next: `sgd.py`, `adam.py`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import wengert as wg
from wengert import _core
from wengert._core import Tensor

from ..nn.hooks import RemovableHandle

__all__ = ["Optimizer"]


class Optimizer:
    """Base class of optimisers.

    A subclass defines `_update(group)`, which changes those parameters of one group that have a gradient, in place.

    Args:
        params: an iterable of tensors, of `(name, tensor)` pairs, or of dictionaries with the key "params"
            and settings of their own.
        defaults: settings of groups that do not give them.
    """

    param_groups: list[dict[str, Any]]
    state: dict[Tensor, dict[str, Any]]
    defaults: dict[str, Any]
    # Whether `_update` is nothing but calls of fused kernels, which no tape sees.
    _records_nothing = False

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        """Makes the parameter groups."""
        if isinstance(params, Tensor):
            raise TypeError(
                f"{type(self).__name__}: an iterable of parameters expected, got one tensor; write [tensor]"
            )
        self.defaults = defaults
        self.param_groups = []
        self.state = {}
        self._pre_hooks: dict[int, Callable[..., Any]] = {}
        self._post_hooks: dict[int, Callable[..., Any]] = {}
        groups = list(params)
        if not groups:
            raise ValueError(
                f"{type(self).__name__}: no parameters; a generator may have been used up already"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with settings of their own.

        Raises:
            TypeError: for something that is no tensor.
            ValueError: for a tensor that is no leaf, or that the optimiser has already.
        """
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise TypeError(f"{type(self).__name__}: a parameter group is a dictionary with the key 'params'")
        given = param_group["params"]
        params = [given] if isinstance(given, Tensor) else list(given)
        params = [entry[1] if isinstance(entry, tuple) else entry for entry in params]
        known = {id(param) for group in self.param_groups for param in group["params"]}
        for i, param in enumerate(params):
            if not isinstance(param, Tensor):
                raise TypeError(
                    f"{type(self).__name__}: parameter {i} is a {type(param).__name__}, not a tensor"
                )
            if not param.is_leaf:
                raise ValueError(
                    f"{type(self).__name__}: parameter {i} of shape {tuple(param.shape)} is the result of an "
                    "operation; only leaves can be optimised, use detach().requires_grad_()"
                )
            if id(param) in known:
                raise ValueError(
                    f"{type(self).__name__}: parameter {i} of shape {tuple(param.shape)} appears twice"
                )
            known.add(id(param))
        group = {**self.defaults, **{k: v for k, v in param_group.items() if k != "params"}, "params": params}
        self._check(group)
        self.param_groups.append(group)

    def _check(self, group: dict[str, Any]) -> None:
        """Raises ValueError for settings out of range; subclasses add theirs."""
        if not group["lr"] >= 0.0:
            raise ValueError(f"{type(self).__name__}: lr must not be negative, got {group['lr']}")
        if not group.get("weight_decay", 0.0) >= 0.0:
            raise ValueError(
                f"{type(self).__name__}: weight_decay must not be negative, got {group['weight_decay']}"
            )

    def _update(self, group: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no _update")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient.

        Args:
            closure: computes the loss anew, with gradients; its value is returned.
        """
        loss = None
        if closure is not None:
            with wg.enable_grad():
                loss = closure()
        if self._pre_hooks:
            for hook in tuple(self._pre_hooks.values()):
                hook(self, (), {})
        if self._records_nothing:
            for group in self.param_groups:
                self._update(group)
        else:
            with wg.no_grad():
                for group in self.param_groups:
                    self._update(group)
        if self._post_hooks:
            for hook in tuple(self._post_hooks.values()):
                hook(self, (), {})
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters; `set_to_none=False` writes zeros instead."""
        for group in self.param_groups:
            _core._clear_gradients(group["params"], set_to_none)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before each step."""
        return RemovableHandle.add(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after each step."""
        return RemovableHandle.add(self._post_hooks, hook)

    def state_dict(self) -> dict[str, Any]:
        """Settings and state, with parameters replaced by their numbers; tensors share memory with the
        optimiser.
        """
        numbers = {id(p): i for i, p in enumerate(self._all())}
        groups = [
            {**group, "params": [numbers[id(p)] for p in group["params"]]} for group in self.param_groups
        ]
        return {"state": {numbers[id(p)]: dict(s) for p, s in self.state.items()}, "param_groups": groups}

    def _all(self) -> list[Tensor]:
        return [param for group in self.param_groups for param in group["params"]]

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes over settings and a copy of the state, moved to the dtype and device of the parameters.

        Raises:
            ValueError: if the groups do not have the same sizes.
        """
        groups = state_dict["param_groups"]
        theirs, ours = [len(g["params"]) for g in groups], [len(g["params"]) for g in self.param_groups]
        if theirs != ours:
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: groups of {theirs} parameters in the state dict, of "
                f"{ours} in the optimiser"
            )
        numbers = [i for group in groups for i in group["params"]]
        self.state = {}
        for number, param in zip(numbers, self._all()):
            if number in state_dict["state"]:
                entry = state_dict["state"][number]
                self.state[param] = {key: _adopt(value, param) for key, value in entry.items()}
        for mine, group in zip(self.param_groups, groups):
            mine.update({key: value for key, value in group.items() if key != "params"})

    def __repr__(self) -> str:
        """The settings of each group."""
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def _adopt(value: Any, param: Tensor) -> Any:
    if not isinstance(value, Tensor):
        return value
    value = value.detach().to(param.dtype) if value.dtype.is_floating_point else value.detach()
    return value.to(param.device).clone()
