"""`Optimizer`: parameter groups, state, and what every optimiser shares. Read next: `sgd.py`, `adam.py`."""

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from numbers import Real
from typing import Any, ParamSpec, TypeVar

import wengert as wg
from wengert import _core
from wengert._caller import warn
from wengert._core import Tensor

from ..nn.hooks import RemovableHandle
from .hookable import StateHooks

__all__ = ["Optimizer"]

_NOT_GIVEN: Any = object()

#: What marks a setting without a default in `defaults`: groups must give it.
required: Any = type("_Required", (), {"__repr__": lambda self: "<required parameter>"})()

P = ParamSpec("P")
R = TypeVar("R")


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A `step` around which the optimiser's hooks run."""

    @wraps(step)
    def hooked(self: "Optimizer", *args: Any, **kwargs: Any) -> Any:
        if (self._pre_hooks or self._post_hooks) and not self._is_stepping:
            return self._between_hooks(step, args, kwargs)
        return step(self, *args, **kwargs)

    return hooked


def _as_declared(declared: Callable[P, R]) -> Callable[[Callable[..., Any]], Callable[P, R]]:
    """Gives a function the name, documentation and signature of another, whose arguments it takes."""

    def decorate(f: Callable[..., Any]) -> Callable[P, R]:
        return wraps(declared, assigned=("__doc__", "__annotations__"))(f)

    return decorate


def _only(keyword: Any, *args: Any) -> Any:
    """The closure, given by position."""
    count = len(args) + (keyword is not _NOT_GIVEN)
    if count > 1:
        raise TypeError(f"Optimizer.step: one closure expected, got {count}")
    return args[0]


class Optimizer(StateHooks):
    """Base class of optimisers.

    A subclass defines `_update(group)`, which changes those parameters of one group that have a gradient, in
    place; or `step(closure=None)` as a whole, as PyTorch's do. `state[param]` begins as an empty dictionary.

    Args:
        params: an iterable of tensors, of `(name, tensor)` pairs, or of dictionaries with the key "params"
            and settings of their own. Names are kept in the groups, as `param_names`.
        defaults: settings of groups that do not give them.

    Raises:
        TypeError: for something that is no tensor.
        ValueError: for no parameters, settings out of range, a tensor that is no leaf,
            or one that is given twice.

    Example:
        >>> class SignDescent(wg.optim.Optimizer):
        ...     def __init__(self, params, lr=0.1):
        ...         super().__init__(params, dict(lr=lr))
        ...     @wg.no_grad()
        ...     def step(self, closure=None):
        ...         for group in self.param_groups:
        ...             for p in group["params"]:
        ...                 count = self.state[p]["count"] = self.state[p].get("count", 0) + 1
        ...                 p.sub_(p.grad.sign() * (group["lr"] / count))
        >>> p = wg.nn.Parameter(wg.tensor([1.0]))
        >>> (p * p).sum().backward()
        >>> SignDescent([p], lr=0.5).step()
        >>> p.tolist()
        [0.5]
    """

    # See `wengert.jit`.
    _called_by_programs = ("step",)
    _recorded_by_programs = {"zero_grad": ("zero_grad", None)}  # noqa: RUF012

    param_groups: list[dict[str, Any]]
    state: defaultdict[Any, Any]
    defaults: dict[str, Any]
    # Whether `_update` is nothing but calls of fused kernels, which no tape sees.
    _records_nothing = False
    # Whether hooks are already running around a step, which calls that of its base class.
    _is_stepping = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Makes hooks run around a `step` that the subclass defines."""
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        """Makes the parameter groups."""
        if isinstance(params, Tensor):
            raise TypeError(
                f"{type(self).__name__}: an iterable of parameters expected, got one tensor; write [tensor]"
            )
        if isinstance(params, set | frozenset):
            warn(
                f"{type(self).__name__}: the order of a set changes from run to run, and with it the "
                "numbers in state dicts; give a list of parameters"
            )
        self.defaults = defaults
        self.param_groups = []
        self.state = defaultdict(dict)
        self._pre_hooks: dict[int, Callable[..., Any]] = {}
        self._post_hooks: dict[int, Callable[..., Any]] = {}
        if not isinstance(params, Iterable):
            raise TypeError(
                f"{type(self).__name__}: an iterable of parameters expected, got {type(params).__name__}"
            )
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
        """Adds parameters with settings of their own: `param_group` is a dictionary with the key "params".

        Raises:
            TypeError: for something that is no tensor.
            ValueError: for a tensor that is no leaf, or that the optimiser has already.
        """
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise TypeError(f"{type(self).__name__}: a parameter group is a dictionary with the key 'params'")
        group = {**self.defaults, **param_group, **self._named(param_group["params"])}
        known = {id(param) for other in self.param_groups for param in other["params"]}
        for name, value in group.items():
            if value is required:
                raise ValueError(
                    f"{type(self).__name__}: a group of parameters does not say {name}, which is required"
                )
        for i, param in enumerate(group["params"]):
            self._check_param(i, param)
            if id(param) in known:
                raise ValueError(
                    f"{type(self).__name__}: parameter {i} of shape {tuple(param.shape)} appears twice"
                )
            known.add(id(param))
        if any(("param_names" in other) != ("param_names" in group) for other in self.param_groups):
            raise ValueError(
                f"{type(self).__name__}: names for all groups of parameters or for none expected"
            )
        self._check(group)
        self.param_groups.append(group)

    def _named(self, given: Any) -> dict[str, list[Any]]:
        """The parameters of a group, and their names if they have some."""
        if isinstance(given, set | frozenset):
            raise TypeError(
                f"{type(self).__name__}: a list of parameters expected, got a set, whose order changes from "
                "run to run"
            )
        entries = [given] if isinstance(given, Tensor) else list(given)
        names = [entry[0] for entry in entries if isinstance(entry, tuple)]
        if not names:
            return {"params": entries}
        if len(names) != len(entries):
            raise ValueError(
                f"{type(self).__name__}: names for all parameters or for none expected, got {len(names)} for "
                f"{len(entries)}"
            )
        return {"params": [entry[1] for entry in entries], "param_names": names}

    def _check_param(self, i: int, param: Any) -> None:
        """Raises unless this is a tensor whose gradient is kept."""
        if not isinstance(param, Tensor):
            raise TypeError(f"{type(self).__name__}: parameter {i} is a {type(param).__name__}, not a tensor")
        if not (param.is_leaf or param.retains_grad):
            raise ValueError(
                f"{type(self).__name__}: parameter {i} of shape {tuple(param.shape)} is the result of an "
                "operation; only leaves can be optimised, use detach().requires_grad_()"
            )

    def _check(self, group: dict[str, Any]) -> None:
        """Raises ValueError for settings out of range; subclasses add theirs."""
        for name in ("lr", "weight_decay"):
            if not self._number(name, group.get(name, 0.0)) >= 0.0:
                raise ValueError(f"{type(self).__name__}: {name} must be 0 or more, got {group[name]}")

    def _number(self, name: str, value: Any) -> Any:
        """A setting that is a number or a tensor of one element; raises TypeError for anything else."""
        if not isinstance(value, Real | Tensor):
            raise TypeError(f"{type(self).__name__}: {name} is a number, got {value!r}")
        return value

    def _between(self, group: dict[str, Any], name: str, low: float, high: float) -> None:
        """Raises unless a setting lies in `[low, high)`."""
        if not low <= self._number(name, group[name]) < high:
            raise ValueError(
                f"{type(self).__name__}: {name} must lie in [{low:g}, {high:g}), got {group[name]}"
            )

    def _check_betas(self, group: dict[str, Any]) -> None:
        """Raises unless there are two weights of moments, both in [0, 1)."""
        betas = group["betas"]
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise ValueError(f"{type(self).__name__}: betas are two numbers, got {betas!r}")
        for i, beta in enumerate(betas):
            if not 0.0 <= self._number(f"betas[{i}]", beta) < 1.0:
                raise ValueError(f"{type(self).__name__}: betas[{i}] must lie in [0, 1), got {beta}")

    def _never_recorded(self, differentiable: bool) -> None:
        """Raises where steps are to be recorded."""
        if differentiable:
            raise ValueError(
                f"{type(self).__name__}: differentiable=True is not supported, no step is recorded; to "
                "differentiate through an update, write it in tensor operations"
            )

    def _update(self, group: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no _update")

    def _update_unless(self, group: dict[str, Any], found: Tensor) -> None:
        """`_update` where `found`, a 0-d int32, is 0, which fused kernels look at."""
        raise NotImplementedError(f"{type(self).__name__} has no _update_unless")

    def _declared(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient.

        Args:
            closure: computes the loss anew, with gradients; its value is returned.
        """

    # Hooks are told how the closure was given, hence `*args`; `_declared` gives the signature. A wrapper,
    # as around the `step` of a subclass, would take a tenth of a small step.
    @_as_declared(_declared)
    def step(self, *args: Any, closure: Any = _NOT_GIVEN) -> Any:
        if (self._pre_hooks or self._post_hooks) and not self._is_stepping:
            return self._between_hooks(
                Optimizer.step, args, {} if closure is _NOT_GIVEN else {"closure": closure}
            )
        if args:
            closure = _only(closure, *args)
        elif closure is _NOT_GIVEN:
            closure = None
        loss = None
        if closure is not None:
            with wg.enable_grad():
                loss = closure()
        if self._records_nothing:
            for group in self.param_groups:
                self._update(group)
        else:
            with wg.no_grad():
                for group in self.param_groups:
                    self._update(group)
        return loss

    def _begins_with_closure(self) -> bool:
        """Whether `step(closure)` is a call of the closure and then `step()`."""
        is_own = type(self).step is Optimizer.step and "step" not in self.__dict__
        return is_own and not (self._pre_hooks or self._post_hooks)

    def _step_unless(self, found: Tensor) -> Callable[[], None] | None:
        """Takes a step if `found` is 0, which the device decides.

        Returns a function that restores the state of before, to be called if the step was left out. Returns
        None, having done nothing, if a step of this optimiser is more than its fused kernels.
        """
        cls = type(self)
        fused: type[Optimizer] = next(base for base in cls.__mro__ if "_update_unless" in base.__dict__)
        if (
            self._pre_hooks
            or self._post_hooks
            or fused is Optimizer
            or (cls.step, cls._update) != (Optimizer.step, fused._update)
            or {"step", "_update"} & self.__dict__.keys()
        ):
            return None
        state = self.state
        before = {key: dict(entry) if isinstance(entry, dict) else entry for key, entry in state.items()}

        def restore() -> None:
            if self.state is not state:
                return  # Another state was loaded since.
            for key in list(state):
                if key not in before:
                    del state[key]
                elif isinstance(before[key], dict):
                    state[key].clear()
                    state[key].update(before[key])

        try:
            for group in self.param_groups:
                fused._update_unless(self, group, found)
        except BaseException:
            if found:
                restore()
            raise
        return restore

    def _between_hooks(self, step: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Takes a step with the hooks around it."""
        args = (self, *args)
        for hook in tuple(self._pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is None:
                continue
            if not isinstance(changed, tuple) or len(changed) != 2:
                raise RuntimeError(
                    f"{type(self).__name__}: a hook before the step returns None or the new (args, kwargs), "
                    f"got {type(changed).__name__}"
                )
            args, kwargs = changed
        self._is_stepping = True
        try:
            out = step(*args, **kwargs)
        finally:
            self._is_stepping = False
        for hook in tuple(self._post_hooks.values()):
            hook(self, args, kwargs)
        return out

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters; `set_to_none=False` writes zeros instead."""
        for group in self.param_groups:
            _core._clear_gradients(group["params"], set_to_none)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before each step, and before its closure.

        `args` begins with the optimiser; what `step` was given by keyword is in `kwargs`. A hook may return
        other `(args, kwargs)`.
        """
        return RemovableHandle.add(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after each step."""
        return RemovableHandle.add(self._post_hooks, hook)

    def state_dict(self) -> dict[str, Any]:
        """Settings and state, with parameters replaced by their numbers; tensors share memory with the
        optimiser.
        """
        for hook in self._hooks_of("state_dict_pre"):
            hook(self)
        numbers = {id(p): i for i, p in enumerate(self._all())}
        groups = [
            {**group, "params": [numbers[id(p)] for p in group["params"]]} for group in self.param_groups
        ]
        # An optimiser of one's own may keep more than dictionaries of parameters.
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: dict(entry)
            if isinstance(entry, dict)
            else entry
            for key, entry in self.state.items()
        }
        return self._changed("state_dict_post", {"state": state, "param_groups": groups})

    def _all(self) -> list[Tensor]:
        return [param for group in self.param_groups for param in group["params"]]

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes over the settings of `state_dict` and a copy of its state, moved to the dtype and device of
        the parameters.

        Raises:
            ValueError: if the groups do not have the same sizes.
        """
        if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= state_dict.keys():
            found = list(state_dict) if isinstance(state_dict, Mapping) else type(state_dict).__name__
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: a dictionary with 'state' and 'param_groups', as "
                f"state_dict() returns it, expected, got {found}"
            )
        state_dict = self._changed("load_state_dict_pre", dict(state_dict))
        groups = state_dict["param_groups"]
        theirs, ours = [len(g["params"]) for g in groups], [len(g["params"]) for g in self.param_groups]
        if theirs != ours:
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: groups of {theirs} parameters in the state dict, of "
                f"{ours} in the optimiser"
            )
        numbers = [i for group in groups for i in group["params"]]
        params = dict(zip(numbers, self._all()))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, entry in state_dict["state"].items():
            if key in params:
                state[params[key]] = _adopt(entry, params[key])
            else:
                state[key] = entry
        for mine, group in zip(self.param_groups, groups):
            mine.update({key: copy.deepcopy(value) for key, value in group.items() if key != "params"})
        self.__setstate__({"state": state, "param_groups": self.param_groups})
        for hook in self._hooks_of("load_state_dict_post"):
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        """The attributes without the hooks, which belong to this object alone, as does a step that is
        running."""
        own = ("_pre_hooks", "_post_hooks", "_state_hooks", "_is_stepping")
        return {key: value for key, value in self.__dict__.items() if key not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes over attributes, from a pickle or a state dict;
        a subclass may add settings that are missing there.
        """
        self.__dict__.update(state)
        self.__dict__.setdefault("_pre_hooks", {})
        self.__dict__.setdefault("_post_hooks", {})

    def __repr__(self) -> str:
        """The settings of each group."""
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def _adopt(value: Any, param: Tensor, key: Any = None) -> Any:
    """A copy of an entry of a state, whose floating point tensors get the dtype and device
    of the parameter.
    """
    if isinstance(value, dict):
        return {k: _adopt(v, param, k) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_adopt(v, param) for v in value)
    if not isinstance(value, Tensor):
        return copy.deepcopy(value)
    value = value.detach()
    if key == "step":
        # A count: the dtype of the parameter may be too small for it, and no kernel reads it.
        return value.clone()
    if value.dtype.is_floating_point and param.dtype.is_floating_point:
        value = value.to(param.dtype)
    return value.to(param.device).clone()
