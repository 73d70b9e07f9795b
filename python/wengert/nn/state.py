"""Saving and loading the values of a module: `state_dict` and `load_state_dict`. Mixed into `Module`."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import wengert as wg
from wengert._core import Tensor

from .hooks import hooks_of

__all__ = ["IncompatibleKeys", "StateDict"]


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict(strict=False)` left alone."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class StateDict:
    """The part of `Module` that saves and loads."""

    def named_modules(
        self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[Any]:
        """Given by `Module`."""
        raise NotImplementedError

    def _state(self) -> Iterator[tuple[str, Any, str]]:
        """Every dotted name of the state dict, the module that holds it, and its name there."""
        for place, module in self.named_modules(remove_duplicate=False):
            for name in module._own_state():
                yield (f"{place}.{name}" if place else name), module, name

    def _own_state(self) -> list[str]:
        """The names of the parameters and persistent buffers of this module itself."""
        own = self.__dict__
        persistent = [name for name, keep in own["_buffer_names"].items() if keep]
        return [name for name in [*own["_parameter_names"], *persistent] if own[name] is not None]

    def state_dict(
        self, *, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Tensor]:
        """All parameters and persistent buffers by dotted name, sharing memory with the module.

        Tensors are detached unless `keep_vars`. Save it with `wengert.save`, or as NumPy arrays with `np.savez`.
        """
        found = {} if destination is None else destination
        _save(self, found, prefix, keep_vars)
        return found

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies values into the parameters and buffers of the same names.

        Args:
            state_dict: names to tensors or NumPy arrays.
            strict: demand exactly the names of this module.
            assign: let the parameters and buffers share the memory of the given tensors, with their dtype and device,
                instead of copying into their own. The objects stay the same, so an optimiser that knows them goes on.

        Raises:
            RuntimeError: naming the missing keys, the unexpected keys, and both shapes of every mismatched
                key. Nothing is loaded then, unless there are hooks that run after loading: they may settle
                missing and unexpected keys, so they see the values loaded.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"load_state_dict: a mapping of names to tensors expected, got {type(state_dict).__name__}"
            )
        places = {key: (module, name) for key, module, name in self._state()}
        given = dict(state_dict)
        keys = IncompatibleKeys([], [])
        problems: list[str] = []
        for place, module in self.named_modules(remove_duplicate=False):
            prefix = f"{place}." if place else ""
            for _, hook in hooks_of(module._hooks, "load_state_dict_pre"):
                hook.call(module, given, prefix, {}, strict, *keys, problems)
        keys.missing_keys.extend(key for key in places if key not in given)
        keys.unexpected_keys.extend(key for key in given if key not in places)
        values = {key: wg.as_tensor(given[key]) for key in places if key in given}
        for key, value in values.items():
            module, name = places[key]
            want, got = tuple(module.__dict__[name].shape), tuple(value.shape)
            if want != got:
                problems.append(f"shape of {key!r}: {got} in the state dict, {want} in the module")
        after = [
            (module, hook)
            for module in self._modules_below()
            for _, hook in hooks_of(module._hooks, "load_state_dict_post")
        ]
        if problems or not after:
            self._raise(keys, problems, strict)
        with wg.no_grad():
            for key, value in values.items():
                module, name = places[key]
                if assign:
                    module.__dict__[name].data = value.detach()
                else:
                    module.__dict__[name].copy_(value.detach())
        for module, hook in after:
            if hook.call(module, keys) is not None:
                raise RuntimeError(
                    f"load_state_dict of {type(module).__name__}: a hook after loading returned a value; change the "
                    "lists that it is given in place, and return None"
                )
        self._raise(keys, [], strict)
        return keys

    def _modules_below(self) -> list[Any]:
        """This module and all below, each once, those below first."""
        return [module for _, module in self.named_modules()][::-1]

    def _raise(self, keys: IncompatibleKeys, problems: list[str], strict: bool) -> None:
        """Raises with all that does not fit, if anything does not."""
        texts = [f"missing key {key!r}" for key in keys.missing_keys] if strict else []
        texts += [f"unexpected key {key!r}" for key in keys.unexpected_keys] if strict else []
        texts += problems
        if texts:
            raise RuntimeError(f"load_state_dict of {type(self).__name__}:\n  " + "\n  ".join(texts))


def _save(module: Any, found: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Enters the values of a module and of those below, with the hooks around."""
    for _, hook in hooks_of(module._hooks, "state_dict_pre"):
        hook.call(module, prefix, keep_vars)
    for name in module._own_state():
        value = module.__dict__[name]
        found[prefix + name] = value if keep_vars else value.detach()
    for name in module._module_names:
        if module.__dict__[name] is not None:
            _save(module.__dict__[name], found, f"{prefix}{name}.", keep_vars)
    for _, hook in hooks_of(module._hooks, "state_dict_post"):
        if hook.call(module, found, prefix, {}) is not None:
            raise RuntimeError(
                f"state_dict of {type(module).__name__}: a hook after it returned a value; change the dict that it is "
                "given in place, and return None"
            )
