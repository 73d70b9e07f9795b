"""Saving and loading the values of a module: `state_dict` and `load_state_dict`. Mixed into `Module`."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import wengert as wg
from wengert._core import Tensor

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
            persistent = [name for name, keep in module._buffer_names.items() if keep]
            for name in [*module._parameter_names, *persistent]:
                if module.__dict__[name] is not None:
                    yield (f"{place}.{name}" if place else name), module, name

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """All parameters and persistent buffers by dotted name, sharing memory with the module.

        Tensors are detached unless `keep_vars`. Save it with `wengert.save`, or as NumPy arrays with `np.savez`.
        """
        found = {}
        for key, module, name in self._state():
            value = module.__dict__[name]
            found[prefix + key] = value if keep_vars else value.detach()
        return found

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies values into the parameters and buffers of the same names.

        Args:
            state_dict: names to tensors or NumPy arrays.
            strict: demand exactly the names of this module.
            assign: take the given tensors' dtype and device instead of copying into the module's own.

        Raises:
            RuntimeError: naming the missing keys, the unexpected keys, and both shapes of every mismatched
                key. Nothing is loaded then.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"load_state_dict: a mapping of names to tensors expected, got {type(state_dict).__name__}"
            )
        places = {key: (module, name) for key, module, name in self._state()}
        missing = [key for key in places if key not in state_dict]
        unexpected = [key for key in state_dict if key not in places]
        values = {key: wg.as_tensor(state_dict[key]) for key in places if key in state_dict}
        problems = [f"missing key {key!r}" for key in missing] if strict else []
        problems += [f"unexpected key {key!r}" for key in unexpected] if strict else []
        for key, value in values.items():
            module, name = places[key]
            want, got = tuple(module.__dict__[name].shape), tuple(value.shape)
            if want != got:
                problems.append(f"shape of {key!r}: {got} in the state dict, {want} in the module")
        if problems:
            raise RuntimeError(f"load_state_dict of {type(self).__name__}:\n  " + "\n  ".join(problems))
        with wg.no_grad():
            for key, value in values.items():
                module, name = places[key]
                if assign:
                    module.__dict__[name].data = value.detach()
                else:
                    module.__dict__[name].data.copy_(value.detach())
        return IncompatibleKeys(missing, unexpected)
