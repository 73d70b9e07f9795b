"""`Module`: a tree of layers that owns parameters and buffers.

Parameters, buffers and submodules live in the instance's ordinary `__dict__`, so reading `self.weight` costs
what any attribute costs; the module keeps only the *names* of each kind, in order of registration. There is
one truth. Read next: `state.py` (saving and loading), `hookable.py` (hooks), `modules/` (the layers).
"""

from collections.abc import Callable, Iterator
from typing import Any, Self

import wengert as wg
from wengert import _core
from wengert._core import Tensor

from .calling import call_with_hooks
from .hookable import Hookable
from .hooks import EVERYWHERE, Registry
from .moving import destination, move
from .parameter import Parameter
from .state import StateDict

__all__ = ["Module"]

_KINDS = ("_parameter_names", "_buffer_names", "_module_names")
_REGISTRATION = {
    "_parameter_names": "parameter_registration",
    "_buffer_names": "buffer_registration",
    "_module_names": "module_registration",
}
_KIND_OF = {"_parameter_names": "a parameter", "_buffer_names": "a buffer", "_module_names": "a module"}


class Module(Hookable, StateDict):
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

    def __init__(self) -> None:
        """Prepares the registries; call it before assigning anything."""
        self.__dict__.update(
            training=True,
            _parameter_names={},
            _buffer_names={},
            _module_names={},
            _hooks={},
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the layer computes; every subclass defines it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward method; define forward(self, ...) in it"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs `forward`, with the hooks around it."""
        if not self._hooks and not EVERYWHERE:
            return self.forward(*args, **kwargs)
        return call_with_hooks(self, self._hooks, args, kwargs)

    # Registration.

    def __setattr__(self, name: str, value: Any) -> None:
        """Assigns, registering parameters and modules."""
        if "_module_names" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}: assigning {name!r} before Module.__init__ ran; call "
                "super().__init__() first"
            )
        if isinstance(value, Parameter):
            self._register("_parameter_names", name, value)
        elif isinstance(value, Module):
            self._register("_module_names", name, value)
        elif value is not None and name in self._parameter_names:
            raise TypeError(
                f"{type(self).__name__}.{name} is a parameter, got {type(value).__name__}; assign a "
                "Parameter or None, or delete the attribute first"
            )
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
            self.__dict__[kind].pop(name, None)

    def _register(self, kind: str, name: str, value: Any, mark: Any = None) -> None:
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
        """Adds a parameter under `name`; `None` reserves the name for an absent one."""
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"register_parameter: {name!r} must be a Parameter or None, got {type(param).__name__}; wrap "
                "it in wengert.nn.Parameter"
            )
        self._register("_parameter_names", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that moves with the module but is not trained; `persistent` puts it in the state
        dict.
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"register_buffer: {name!r} must be a tensor or None, got {type(tensor).__name__}"
            )
        self._register("_buffer_names", name, tensor, persistent)

    def register_module(self, name: str, module: "Module | None") -> None:
        """Adds a submodule under `name`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(
                f"register_module: {name!r} must be a Module or None, got {type(module).__name__}"
            )
        self._register("_module_names", name, module)

    add_module = register_module

    # Walking the tree.

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """The direct submodules with their names, each once."""
        seen: set[int] = set()
        for name in self._module_names:
            module = self.__dict__[name]
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator["Module"]:
        """The direct submodules."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, "Module"]]:
        """This module and all below, depth first, with dotted names."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        if remove_duplicate:
            memo.add(id(self))
        yield prefix, self
        for name in self._module_names:
            module = self.__dict__[name]
            if module is not None:
                yield from module.named_modules(memo, _join(prefix, name), remove_duplicate)

    def modules(self) -> Iterator["Module"]:
        """This module and all below."""
        return (module for _, module in self.named_modules())

    def _named(self, kind: str, prefix: str, recurse: bool, once: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=once) if recurse else [(prefix, self)]
        for place, module in modules:
            for name in module.__dict__[kind]:
                value = module.__dict__[name]
                if value is None or id(value) in seen:
                    continue
                if once:
                    seen.add(id(value))
                yield _join(place, name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with dotted names; a shared one under its first name."""
        return self._named("_parameter_names", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once: what an optimiser takes."""
        return (param for _, param in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with dotted names."""
        return self._named("_buffer_names", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> "Module":
        """The module of this dotted name; the empty name is the module itself."""
        module: Module = self
        for name in filter(None, target.split(".")):
            below = module.__dict__.get(name)
            if name not in module._module_names or below is None:
                raise AttributeError(
                    f"{type(module).__name__} has no submodule {name!r} (looking for {target!r}); it has: "
                    f"{', '.join(module._module_names) or 'none'}"
                )
            module = below
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of this dotted name."""
        place, _, name = target.rpartition(".")
        module = self.get_submodule(place)
        if name not in module._parameter_names:
            raise AttributeError(
                f"{type(module).__name__} has no parameter {name!r} (looking for {target!r}); it has: "
                f"{', '.join(module._parameter_names) or 'none'}"
            )
        return module.__dict__[name]

    def apply(self, fn: Callable[["Module"], None]) -> Self:
        """Calls `fn` on every module of the tree, children first; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # Modes.

    def train(self, mode: bool = True) -> Self:
        """Sets training mode for the whole tree (dropout on); returns self."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: mode must be True or False, got {mode!r}")
        for module in self.modules():
            module.__dict__["training"] = mode
        return self

    def eval(self) -> Self:
        """Sets evaluation mode for the whole tree (dropout off); returns self."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether the parameters record gradients; returns self."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters; `set_to_none=False` writes zeros instead."""
        _core._clear_gradients(self.parameters(), set_to_none)

    # Moving.

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves parameters and buffers to a device, a floating point dtype, or both, in place; returns self.

        `to(device)`, `to(dtype)`, `to(device, dtype)` and the keywords `device=` and `dtype=` are understood.
        Integer and bool buffers keep their dtype. Parameters stay the same objects, so optimisers keep
        working.
        """
        device, dtype = destination(args, kwargs)
        return self._apply(lambda x: move(x, device, dtype))

    def cpu(self) -> Self:
        """Moves everything to the CPU; returns self."""
        return self.to(device="cpu")

    def gpu(self, index: int = 0) -> Self:
        """Moves everything to a GPU; returns self."""
        return self.to(device=f"gpu:{index}")

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
        """Replaces the values of parameters, their gradients and buffers by `fn` of them."""
        with wg.no_grad():
            for param in self.parameters():
                grad = param.grad
                param.grad = None
                param.data = fn(param.data)
                if grad is not None:
                    param.grad = fn(grad)
            for module in self.modules():
                for name in module._buffer_names:
                    if module.__dict__[name] is not None:
                        module.__dict__[name] = fn(module.__dict__[name])
        return self

    # Printing.

    def extra_repr(self) -> str:
        """The settings shown between the parentheses."""
        return ""

    def __repr__(self) -> str:
        """The tree of modules, one per line."""
        extra = self.extra_repr()
        lines = []
        for name in self._module_names:
            lines.append(f"({name}): " + repr(self.__dict__[name]).replace("\n", "\n  "))
        if not lines:
            return f"{type(self).__name__}({extra})"
        head = [extra] if extra else []
        return f"{type(self).__name__}(\n  " + "\n  ".join(head + lines) + "\n)"


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
