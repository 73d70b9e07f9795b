"""`Module`: a tree of layers that owns parameters and buffers.

Parameters, buffers and submodules live in the instance's ordinary `__dict__`, so reading `self.weight` costs
what any attribute costs; the module keeps only the *names* of each kind, in order of registration.
Read next: `walking.py` (the tree), `state.py` (saving and loading),
`hookable.py` (hooks), `modules/` (the layers).
"""

import copy
import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar

import wengert as wg
from wengert import _core
from wengert._core import Tensor

from .calling import call_with_hooks
from .hookable import Hookable
from .hooks import EVERYWHERE, SEEN, Registry
from .moving import destination, move
from .parameter import Buffer, Parameter
from .state import StateDict
from .walking import Walking

__all__ = ["Module", "tree_text"]

_KINDS = ("_parameter_names", "_buffer_names", "_module_names")
_REGISTRATION = {
    "_parameter_names": "parameter_registration",
    "_buffer_names": "buffer_registration",
    "_module_names": "module_registration",
}
_KIND_OF = {"_parameter_names": "a parameter", "_buffer_names": "a buffer", "_module_names": "a module"}


P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class _Forward(Protocol[P, R]):
    """What has a method `forward`."""

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Computes the result."""


class _Call:
    """The type of a module's call: that of its `forward`."""

    def __get__(self, module: _Forward[P, R], owner: Any = None) -> Callable[P, R]:
        raise NotImplementedError


class Module(Hookable, Walking, StateDict):
    """Base class of all layers: subclass it, make parameters and submodules in `__init__`, compute in
    `forward`.

    Example:
        >>> class Twice(wg.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.inner = wg.nn.Linear(4, 4)
        ...     def forward(self, x):
        ...         return self.inner(self.inner(x))
        >>> len(list(Twice().parameters()))
        2
    """

    training: bool
    # Names in order of registration; a dict is an ordered set.
    _parameter_names: dict[str, None]
    _buffer_names: dict[str, bool]  # the value says whether the state dict holds it
    _module_names: dict[str, None]
    _hooks: Registry
    #: The attributes that `extra_repr` shows, in a class that does not write its own.
    _shown: tuple[str, ...] = ()

    def __init__(self) -> None:
        """Prepares the registries; call it before assigning anything."""
        self.__dict__.update(
            training=True,
            _parameter_names={},
            _buffer_names={},
            _module_names={},
            _hooks=Registry(),
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes what the layer computes; every subclass defines it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward method; define forward(self, ...) in it"
        )

    if TYPE_CHECKING:
        __call__ = _Call()
    else:

        def __call__(self, *args, **kwargs):
            """Runs `forward`, with the hooks around it."""
            # A set is asked sooner than an attribute.
            if not SEEN or not (self._hooks or EVERYWHERE):
                return self.forward(*args, **kwargs)
            return call_with_hooks(self, self._hooks, args, kwargs)

    # Registration.

    def __setattr__(self, name: str, value: Any) -> None:
        """Assigns, registering parameters and modules."""
        if "_module_names" not in self.__dict__:
            if isinstance(value, (Parameter, Module)):
                self._register("_module_names", name, value)
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            self._register("_parameter_names", name, value)
        elif value is not None and name in self._parameter_names:
            raise TypeError(
                f"{type(self).__name__}.{name} is a parameter, got {type(value).__name__}; assign a "
                "Parameter or None, or delete the attribute first"
            )
        elif isinstance(value, Module):
            self._register("_module_names", name, value)
        elif isinstance(value, Buffer):
            self._register("_buffer_names", name, value, value.persistent)
        elif value is not None and name in self._module_names:
            raise TypeError(
                f"{type(self).__name__}.{name} is a module, got {type(value).__name__}; assign a Module or "
                "None, or delete the attribute first"
            )
        elif value is not None and name in self._buffer_names and not isinstance(value, Tensor):
            raise TypeError(
                f"{type(self).__name__}.{name} is a buffer, got {type(value).__name__}; assign a tensor or "
                "None, or delete the attribute first"
            )
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        """Deletes, and forgets a registration."""
        object.__delattr__(self, name)
        for kind in _KINDS:
            self.__dict__.get(kind, {}).pop(name, None)

    def __getattr__(self, name: str) -> Any:
        """Called for what is nowhere else;
        a subclass that delegates may ask it for parameters and modules.
        """
        own = self.__dict__
        if name in own:
            return own[name]
        for cls in type(self).__mro__:
            held: Any = cls.__dict__.get(name)
            if held is not None and hasattr(held, "__get__"):
                # A property that raised an AttributeError of its own, which tells more.
                return held.__get__(self, type(self))
        if name == "_hooks":
            raise AttributeError(
                f"{type(self).__name__}: write super().__init__() before all else in its __init__"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes over attributes, from a copy or a pickle. Copying looks for it in an object that is empty
        yet, which a subclass that delegates could not be asked.
        """
        self.__dict__.update(state)
        hooks = self.__dict__.get("_hooks")
        if hooks is not None and not isinstance(hooks, Registry):
            # Of a pickle from before there was such a class.
            self.__dict__["_hooks"] = Registry()
            for kind, entries in hooks.items():
                self._hooks[kind] = entries

    def __copy__(self) -> Self:
        """A module with the same parameters, buffers and modules, and with registries of its own."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        staged: Any = made.__dict__.get("forward")
        method = getattr(staged, "_function", None)
        if isinstance(method, types.MethodType) and method.__self__ is self:
            # See `wengert.compile`.
            made.__dict__["forward"] = staged._copy(method.__func__.__get__(made))
        for kind in _KINDS:
            made.__dict__[kind] = copy.copy(self.__dict__[kind])
        made.__dict__["_hooks"] = Registry()
        for kind, hooks in self._hooks.items():
            made._hooks[kind] = dict(hooks)
        return made

    def _check_new(self, kind: str, name: Any) -> None:
        """Raises where a name cannot be registered because something else has it."""
        if isinstance(name, str) and name not in self.__dict__.get(kind, {}) and hasattr(self, name):
            raise KeyError(
                f"{type(self).__name__}: attribute {name!r} already exists; choose another name for "
                f"{_KIND_OF[kind]}, or delete the attribute first"
            )

    def _register(self, kind: str, name: str, value: Any, mark: Any = None) -> None:
        if kind not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}: assigning {name!r} before Module.__init__ ran; call "
                "super().__init__() first"
            )
        if not isinstance(name, str) or not name or "." in name:
            raise KeyError(
                f"{type(self).__name__}: the name of {_KIND_OF[kind]} is a non-empty string without dots"
            )
        for other in _KINDS:
            if other != kind:
                self.__dict__[other].pop(name, None)
        if name not in self.__dict__[kind] and hasattr(type(self), name):
            raise KeyError(
                f"{type(self).__name__}: {name!r} is already an attribute of the class, choose another name"
            )
        for hook in tuple(EVERYWHERE.get(_REGISTRATION[kind], {}).values()):
            changed = hook.call(self, name, value)
            value = value if changed is None else changed
        self.__dict__[kind][name] = mark
        self.__dict__[name] = value

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds the parameter `param` under `name`; `None` reserves the name for an absent one.

        Raises:
            KeyError: for a name that something else has.
        """
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"register_parameter: {name!r} must be a Parameter or None, got {type(param).__name__}; wrap "
                "it in wengert.nn.Parameter"
            )
        self._check_new("_parameter_names", name)
        self._register("_parameter_names", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that moves with the module but is not trained; `persistent` puts it in the state
        dict.

        Raises:
            KeyError: for a name that something else has.
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"register_buffer: {name!r} must be a tensor or None, got {type(tensor).__name__}"
            )
        self._check_new("_buffer_names", name)
        self._register("_buffer_names", name, tensor, persistent)

    def register_module(self, name: str, module: "Module | None") -> None:
        """Adds the submodule `module` under `name`; `None` reserves the name for an absent one.

        Raises:
            KeyError: for a name that something else has.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(
                f"register_module: {name!r} must be a Module or None, got {type(module).__name__}"
            )
        self._check_new("_module_names", name)
        self._register("_module_names", name, module)

    add_module = register_module

    def apply(self, fn: Callable[["Module"], None]) -> Self:
        """Calls `fn` on every module of the tree, children first; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # Modes.

    def train(self, mode: bool = True) -> Self:
        """Sets training mode for the whole tree (dropout on), children by their own `train`; returns self."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: mode must be True or False, got {mode!r}")
        self.__dict__["training"] = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Sets evaluation mode for the whole tree (dropout off); returns self."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether the parameters record gradients, by default that they do; `requires_grad=False`
        freezes them. Returns self.
        """
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters; `set_to_none=False` writes zeros instead."""
        _core._clear_gradients(self.parameters(), set_to_none)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Stages `forward`, as `wengert.compile` does."""
        wg.compile(self, **kwargs)

    def share_memory(self) -> Self:
        """Does nothing; accepted for programs written for PyTorch; threads share all memory. Returns self."""
        return self

    # Moving.

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves parameters and buffers to a device, a floating point or complex dtype, or both,
        in place; returns self.

        `to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)` and the keywords `device=`, `dtype=` and
        `non_blocking=` are understood; the last changes nothing. Integer and bool buffers keep their dtype,
        and counters (integers without axes) stay on the CPU where the device is a GPU. Parameters stay the
        same objects, so optimisers keep working.
        If something cannot be moved, nothing is.
        """
        device, dtype = destination(args, kwargs)
        return self._apply(functools.partial(move, device=device, dtype=dtype))

    def to_empty(self, *, device: Any) -> Self:
        """Moves parameters and buffers to a device without their values, which are any from then on;
        returns self.
        """
        return self._apply(lambda x: wg.empty_like(x, device=device))

    def type(self, dst_type: Any) -> Self:
        """Converts floating point parameters and buffers to the dtype `dst_type`; returns self."""
        return self.to(dtype=dst_type)

    def cpu(self) -> Self:
        """Moves everything to the CPU; returns self."""
        return self.to(device="cpu")

    def gpu(self, index: int = 0) -> Self:
        """Moves everything to the GPU of number `index`; returns self."""
        return self.to(device=f"gpu:{index}")

    def cuda(self, device: Any = None) -> Self:
        """Moves everything to the GPU of number or name `device`, where `WENGERT_CUDA=gpu` calls GPUs so;
        raises ValueError elsewhere.
        """
        return self.to(device=f"cuda:{device or 0}" if isinstance(device, int | None) else device)

    def float(self) -> Self:
        """Converts floating point parameters and buffers to float32; returns self."""
        return self.to(dtype=wg.float32)

    def double(self) -> Self:
        """Converts floating point parameters and buffers to float64; returns self."""
        return self.to(dtype=wg.float64)

    def half(self) -> Self:
        """Converts floating point parameters and buffers to float16; returns self."""
        return self.to(dtype=wg.float16)

    def bfloat16(self) -> Self:
        """Converts floating point parameters and buffers to bfloat16; returns self."""
        return self.to(dtype=wg.bfloat16)

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Self:
        """Replaces the values of parameters, their gradients and buffers by `fn` of them,
        or nothing if it raises.
        """
        ready = [module for module in self.modules() if not module._remember(fn)]
        with wg.no_grad():
            params = list({id(p): p for module in ready for p in module.parameters(recurse=False)}.values())
            data = [fn(param.data) for param in params]
            grads = [None if param.grad is None else fn(param.grad) for param in params]
            places = [(m, name) for m in ready for name in m._buffer_names if m.__dict__[name] is not None]
            # One that several modules share is one afterwards, too.
            shared = {id(m.__dict__[name]): m.__dict__[name] for m, name in places}
            buffers = {key: fn(buffer) for key, buffer in shared.items()}
            for param, value, grad in zip(params, data, grads):
                param.grad = None
                param.data = value
                param.grad = grad
            for module, name in places:
                module.__dict__[name] = buffers[id(module.__dict__[name])]
        return self

    def _remember(self, fn: Callable[[Tensor], Tensor]) -> bool:
        """Whether the module has no values yet and keeps `fn` for them; lazy layers do."""
        return False

    # Printing.

    def extra_repr(self) -> str:
        """Returns the settings shown between the parentheses: those that `_shown` names."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown)

    def _get_name(self) -> str:
        """The name that is shown."""
        return type(self).__name__

    def __repr__(self) -> str:
        """The tree of modules, one per line."""
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        below = [f"({name}): {self.__dict__[name]!r}" for name in self._module_names]
        return tree_text(self._get_name(), lines, below)


def tree_text(name: str, lines: list[str], below: list[str]) -> str:
    """A name with lines of its own and those of what is below it, which are indented."""
    if not below and len(lines) < 2:
        return f"{name}({''.join(lines)})"
    return f"{name}(\n  " + "\n  ".join([*lines, *(text.replace("\n", "\n  ") for text in below)]) + "\n)"
