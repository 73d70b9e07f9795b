"""Saving and loading the values of a module: `state_dict` and `load_state_dict`. Mixed into `Module`.

Each module enters its own values by `_save_to_state_dict` and takes them by `_load_from_state_dict`; a
subclass that overrides them (or `get_extra_state` and `set_extra_state`) saves and reads what it likes,
also files of other versions.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import wengert as wg
from wengert._core import Tensor

from .hooks import hooks_of

__all__ = ["IncompatibleKeys", "StateDict"]

EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict(strict=False)` left alone."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        """Returns the keys, or that all matched."""
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class _Metadata(dict[str, Any]):
    """What a state dict says of one module, and how its values are being loaded."""

    assign = False
    #: Where writes wait until all is known to fit; None: they are done at once.
    waiting: list[Callable[[], Any]] | None = None


class StateDict:
    """The part of `Module` that saves and loads."""

    #: Saved in the metadata of state dicts, for `_load_from_state_dict` to tell older ones by.
    _version: int = 1
    _hooks: Any

    def named_modules(
        self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[Any]:
        """Comes from `Module`."""
        raise NotImplementedError

    def get_extra_state(self) -> Any:
        """Returns what the state dict keeps beside parameters and buffers; a subclass that has it overrides
        this."""
        raise RuntimeError(f"{type(self).__name__} has no extra state; define get_extra_state() in it")

    def set_extra_state(self, state: Any) -> None:
        """Takes the `state` that `get_extra_state` returned; a subclass overrides both."""
        raise RuntimeError(f"{type(self).__name__} takes no extra state; define set_extra_state() in it")

    def _overrides(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(StateDict, name)

    def _own_state(self) -> list[str]:
        """The names of the parameters and persistent buffers of this module itself."""
        own = self.__dict__
        persistent = [name for name, keep in own["_buffer_names"].items() if keep]
        return [name for name in [*own["_parameter_names"], *persistent] if own[name] is not None]

    # Saving.

    def state_dict(
        self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> "OrderedDict[str, Any]":
        """Returns all parameters and persistent buffers by dotted name, sharing memory with the module.

        Tensors are detached unless `keep_vars`; `prefix` is put before all names; entries are added to the
        dict `destination`, if given. Save it with `wengert.save`, or as NumPy arrays with `np.savez`. Its
        attribute `_metadata` has the version of each module.
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for _, hook in hooks_of(self._hooks, "state_dict_pre"):
            hook.call(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._named_below():
            module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for _, hook in hooks_of(self._hooks, "state_dict_post"):
            if hook.call(self, destination, prefix, metadata) is not None:
                raise RuntimeError(
                    f"state_dict of {type(self).__name__}: a hook after it returned a value; change the "
                    "dict that it is given in place, and return None"
                )
        return destination

    def _named_below(self) -> list[tuple[str, Any]]:
        """The modules right below with their names, shared ones under each."""
        own = self.__dict__
        return [(name, own[name]) for name in own["_module_names"] if own[name] is not None]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Enters the values of this module itself."""
        for name in self._own_state():
            value = self.__dict__[name]
            destination[prefix + name] = value if keep_vars else value.detach()
        if self._overrides("get_extra_state"):
            destination[prefix + EXTRA] = self.get_extra_state()

    # Loading.

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies values into the parameters and buffers of the same names.

        Args:
            state_dict: names to tensors or NumPy arrays.
            strict: demand exactly the names of this module.
            assign: let the parameters and buffers share the memory of the given tensors, with their dtype and
                device, instead of copying into their own. The objects stay the same, so an optimiser that
                knows them goes on.

        Raises:
            RuntimeError: naming the missing keys, the unexpected keys, and both shapes of every mismatched
                key. Nothing is loaded then, unless there are hooks that run after loading (they may settle
                missing and unexpected keys, so they see the values loaded), or modules that load by a
                `_load_from_state_dict` of their own.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"load_state_dict: a mapping of names to tensors expected, got {type(state_dict).__name__}"
            )
        keys, problems = IncompatibleKeys([], []), list[str]()
        writes: list[Callable[[], Any]] = []
        at_once = any(_loads_itself(module) for _, module in self.named_modules())
        about: Any = getattr(state_dict, "_metadata", None) or {}

        def load(module: Any, given: dict[str, Any], prefix: str) -> None:
            metadata = _Metadata(about.get(prefix[:-1], {}))
            metadata.assign, metadata.waiting = assign, None if at_once else writes
            module._load_from_state_dict(given, prefix, metadata, strict, *keys, problems)
            parts = _by_module(given, prefix)
            for name, below in module._named_below():
                load(below, dict(parts.get(name, {})), f"{prefix}{name}.")

        for key in state_dict:
            if not isinstance(key, str):
                raise TypeError(f"load_state_dict: names as keys expected, got {key!r}")
        load(self, dict(state_dict), "")
        after = [
            (module, hook)
            for module in self._modules_below()
            for _, hook in hooks_of(module._hooks, "load_state_dict_post")
        ]
        if problems or not after:
            self._raise(keys, problems, strict)
        for write in writes:
            write()
        for module, hook in after:
            if hook.call(module, keys) is not None:
                raise RuntimeError(
                    f"load_state_dict of {type(module).__name__}: a hook after loading returned a value; "
                    "change the lists that it is given in place, and return None"
                )
        self._raise(keys, [], strict)
        return keys

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Takes the values of this module itself, whose names begin with `prefix`.

        What does not fit is added to the lists. A subclass that overrides this changes `state_dict` (a copy)
        and calls it. `local_metadata` has the version of the module that was saved,
        if the state dict tells it.
        """
        for _, hook in hooks_of(self._hooks, "load_state_dict_pre"):
            hook.call(
                self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
            )
        writes: list[Callable[[], Any]] = []
        names = self._own_state()
        for name in names:
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            value = self._fitting(name, key, state_dict[key], error_msgs)
            if value is not None:
                writes.append(self._write_of(name, value, getattr(local_metadata, "assign", False)))
        if self._overrides("set_extra_state"):
            names.append(EXTRA)
            if prefix + EXTRA in state_dict:
                writes.append(lambda: self.set_extra_state(state_dict[prefix + EXTRA]))
            else:
                missing_keys.append(prefix + EXTRA)
        below = {name for name, _ in self._named_below()}
        for key in state_dict:
            if key.startswith(prefix):
                name, _, rest = key[len(prefix) :].partition(".")
                if name not in (below if rest else names):
                    unexpected_keys.append(key)
        waiting = getattr(local_metadata, "waiting", None)
        if waiting is not None:
            waiting.extend(writes)
            return
        for write in writes:
            write()

    def _fitting(self, name: str, key: str, given: Any, problems: list[str]) -> Tensor | None:
        """The value for a name; None, and one problem more, if it does not fit."""
        try:
            value = wg.as_tensor(given)
        except (TypeError, ValueError):
            problems.append(
                f"{key!r}: a tensor or an array expected, got {type(given).__name__} in the state dict"
            )
            return None
        if value.is_complex() and not self.__dict__[name].is_complex():
            problems.append(
                f"{key!r}: {value.dtype} in the state dict, {self.__dict__[name].dtype} in the module"
            )
            return None
        want, got = tuple(self.__dict__[name].shape), tuple(value.shape)
        if want == () and got == (1,):
            # Scalars of old files have an axis.
            return value.reshape(())
        if want != got:
            problems.append(f"shape of {key!r}: {got} in the state dict, {want} in the module")
            return None
        return value

    def _write_of(self, name: str, value: Tensor, assign: bool) -> Callable[[], Any]:
        """What puts a value in its place."""

        def write() -> None:
            with wg.no_grad():
                if assign:
                    self.__dict__[name].data = value.detach()
                else:
                    self.__dict__[name].copy_(value.detach())

        return write

    def _modules_below(self) -> list[Any]:
        """Yields this module and all below, each once, those below first."""
        return [module for _, module in self.named_modules()][::-1]

    def _raise(self, keys: IncompatibleKeys, problems: list[str], strict: bool) -> None:
        """Raises with all that does not fit, if anything does not."""
        texts = [f"missing key {key!r}" for key in keys.missing_keys] if strict else []
        texts += [f"unexpected key {key!r}" for key in keys.unexpected_keys] if strict else []
        texts += problems
        if texts:
            raise RuntimeError(f"load_state_dict of {type(self).__name__}:\n  " + "\n  ".join(texts))


def _by_module(given: dict[str, Any], prefix: str) -> dict[str, dict[str, Any]]:
    """The entries of a state dict by the module right below to which they belong."""
    parts: dict[str, dict[str, Any]] = {}
    for key, value in given.items():
        if key.startswith(prefix):
            name, _, rest = key[len(prefix) :].partition(".")
            if rest:
                parts.setdefault(name, {})[key] = value
    return parts


def _loads_itself(module: Any) -> bool:
    """Whether values are loaded by code of a user's, which may count on them being there at once."""
    return not type(module)._load_from_state_dict.__module__.startswith("wengert.")
