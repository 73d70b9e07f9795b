"""Hooks of modules: before and after `forward`, and before and after its backward.

A module keeps its hooks by kind in one dict, which is empty for nearly all of them; `calling.py` runs them.
The functions of this file hook every module there is.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

__all__ = [
    "RemovableHandle",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_IDS = itertools.count()

#: The kinds of hooks that were ever registered in this process, by `registry[kind] = hooks`. Before the
#: first, a call of a module need not look for its own.
SEEN: set[str] = set()


class Registry(dict[str, dict[int, "Hook"]]):
    """From the kind of hook to the hooks of that kind in the order in which they run."""

    def __setitem__(self, kind: str, hooks: dict[int, "Hook"]) -> None:
        """Enters the hooks of a kind; copies and pickles do so too."""
        SEEN.add(kind)
        super().__setitem__(kind, hooks)

    def of(self, kind: str) -> dict[int, "Hook"]:
        """The hooks of a kind, made on first use."""
        if kind not in self:
            self[kind] = {}
        return self[kind]


class Hook(NamedTuple):
    """One registered function, and how it wants to be called."""

    call: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False


class RemovableHandle:
    """Removes its hook on `remove()`, or at the end of a `with` block."""

    def __init__(self, registry: dict[int, Any], key: int) -> None:
        """Remembers the place of the hook."""
        self._registry = registry
        self._key = key

    @classmethod
    def add(cls, registry: dict[int, Any], entry: Any, prepend: bool = False) -> "RemovableHandle":
        """Enters `entry` last, or first with `prepend`."""
        key = next(_IDS)
        rest = dict(registry) if prepend else {}
        if prepend:
            registry.clear()
        registry[key] = entry
        registry.update(rest)
        return cls(registry, key)

    def remove(self) -> None:
        """Takes the hook away; a second call does nothing."""
        self._registry.pop(self._key, None)

    def __enter__(self) -> "RemovableHandle":
        """The handle itself."""
        return self

    def __exit__(self, *_: Any) -> None:
        """Removes the hook."""
        self.remove()


class _KindHandle(RemovableHandle):
    """Removes a hook, and its kind with the last hook of that kind: a registry without hooks is empty."""

    def __init__(self, registry: Registry, kind: str, key: int) -> None:
        super().__init__(registry.of(kind), key)
        self._kinds = registry
        self._kind = kind

    def remove(self) -> None:
        super().remove()
        if not self._kinds.get(self._kind, True):
            del self._kinds[self._kind]


def add(registry: Registry, kind: str, hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Registers a hook of this kind, last or with `prepend` first."""
    if not callable(hook.call):
        raise TypeError(
            f"a {kind} hook is a function, got {type(hook.call).__name__}; pass something that can be called"
        )
    return _KindHandle(registry, kind, RemovableHandle.add(registry.of(kind), hook, prepend)._key)


#: The hooks of all modules.
EVERYWHERE = Registry()


def hooks_of(registry: Registry, kind: str) -> Iterator[tuple[int, Hook]]:
    """The hooks of all modules and those of one, in the order in which they run."""
    yield from tuple(EVERYWHERE.get(kind, {}).items())
    yield from tuple(registry.get(kind, {}).items())


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, args)` before `forward` of every module; what is not None replaces the
    arguments."""
    return add(EVERYWHERE, "forward_pre", Hook(hook))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls `hook(module, args, output)` after `forward` of every module; see
    `Module.register_forward_hook`."""
    return add(EVERYWHERE, "forward", Hook(hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_output)` before the backward of every module."""
    return add(EVERYWHERE, "backward_pre", Hook(hook))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` after the backward of every module."""
    return add(EVERYWHERE, "backward", Hook(hook))


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, param)` whenever a parameter is registered; what is not None replaces it."""
    return add(EVERYWHERE, "parameter_registration", Hook(hook))


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, buffer)` whenever a buffer is registered; what is not None replaces it."""
    return add(EVERYWHERE, "buffer_registration", Hook(hook))


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, submodule)` whenever a module is registered; what is not None replaces it."""
    return add(EVERYWHERE, "module_registration", Hook(hook))
