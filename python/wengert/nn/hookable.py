"""The part of `Module` that registers hooks. Read next: `calling.py`, which runs them."""

from collections.abc import Callable
from typing import Any

from .hooks import Hook, Registry, RemovableHandle, add

__all__ = ["Hookable"]


class Hookable:
    """Registers hooks of a module; each method returns a handle whose `remove()` takes the hook off again."""

    _hooks: Registry

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before `forward`; a result that is not None replaces the arguments.

        With `with_kwargs` it is called as `hook(module, args, kwargs)` and returns None or a pair of both.
        `prepend` puts it before the module's other hooks; hooks of all modules still run first.
        """
        return add(self._hooks, "forward_pre", Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls `hook(module, args, output)` after `forward`; a result that is not None replaces the output.

        With `with_kwargs` it is called as `hook(module, args, kwargs, output)`. With `always_call` it is
        called even if `forward` or a hook raised; its own exceptions become warnings then. `prepend` puts it
        before the module's other hooks.
        """
        return add(self._hooks, "forward", Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_output)` before the backward of the module, with a tuple of the gradients
        of its outputs; a tuple that it returns replaces them. `prepend` puts it before the module's other
        hooks.
        """
        return add(self._hooks, "backward_pre", Hook(hook), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` when the gradients of the module's inputs are there.

        `grad_input` has one entry per positional argument, None for those without a gradient; a tuple that
        the hook returns replaces it. `prepend` puts it before the module's other hooks.
        """
        return add(self._hooks, "backward", Hook(hook), prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Registers `hook` as `register_full_backward_hook` does, under the older name."""
        return self.register_full_backward_hook(hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before `state_dict()` looks at the module."""
        return add(self._hooks, "state_dict_pre", Hook(hook))

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)` after the module and those below it were
        entered; it may change the dict.
        """
        return add(self._hooks, "state_dict_post", Hook(hook))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs)` before anything is loaded; it may change the dict (a copy) and add to the lists.
        """
        return add(self._hooks, "load_state_dict_pre", Hook(hook))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`register_state_dict_post_hook` by PyTorch's inner name; the hook may return another dict of its
        own."""

        def changed(module: Any, state_dict: Any, prefix: str, local_metadata: Any) -> None:
            found = hook(module, state_dict, prefix, local_metadata)
            if found is not None and found is not state_dict:
                entries = dict(found)
                state_dict.clear()
                state_dict.update(entries)

        return add(self._hooks, "state_dict_post", Hook(changed))

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """`register_load_state_dict_pre_hook` by PyTorch's inner name; the module is passed `with_module`
        alone."""
        call = hook if with_module else lambda module, *args: hook(*args)
        return add(self._hooks, "load_state_dict_pre", Hook(call))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` after the values were loaded; keys that it removes from the
        lists do not raise.
        """
        return add(self._hooks, "load_state_dict_post", Hook(hook))
