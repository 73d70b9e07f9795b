"""The part of `Optimizer` that registers hooks around its state dict."""

from collections.abc import Callable, Iterator
from typing import Any

from ..nn.hooks import RemovableHandle

__all__ = ["StateHooks"]


class StateHooks:
    """Registers hooks; each method returns a handle whose `remove()` takes the hook off again."""

    # By kind; made with the first hook, for most optimisers have none.
    _state_hooks: dict[str, dict[int, Callable[..., Any]]]

    def _add_hook(self, kind: str, hook: Callable[..., Any], prepend: bool) -> RemovableHandle:
        kinds = self.__dict__.setdefault("_state_hooks", {})
        return RemovableHandle.add(kinds.setdefault(kind, {}), hook, prepend)

    def _hooks_of(self, kind: str) -> Iterator[Callable[..., Any]]:
        yield from tuple(self.__dict__.get("_state_hooks", {}).get(kind, {}).values())

    def _changed(self, kind: str, state_dict: Any) -> Any:
        """A state dict after the hooks of a kind, each of which may return another one."""
        for hook in self._hooks_of(kind):
            found = hook(self, state_dict)
            state_dict = state_dict if found is None else found
        return state_dict

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer)` before `state_dict()` looks at the state.

        `prepend` puts it before the other hooks of the kind; so for all of these.
        """
        return self._add_hook("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` with what `state_dict()` is about to return, which the hook may
        change or replace by what it returns. `prepend` puts it before the others.
        """
        return self._add_hook("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` before a state is loaded; what it returns is loaded in its
        place, if it is not None. It gets a shallow copy. `prepend` puts it before the others.
        """
        return self._add_hook("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer)` after a state was loaded. `prepend` puts it before the others."""
        return self._add_hook("load_state_dict_post", hook, prepend)
