"""What PyTorch calls `_parameters`, `_buffers` and `_modules`: dictionaries of a module's own parts,
read and written.

Values live in the `__dict__` of the module, and these are views of it.
"""

import operator
from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any

__all__ = ["Registered", "absent", "whole"]


def absent(what: str, name: object, known: Iterable[str]) -> KeyError:
    """The error for a name that is not there."""
    return KeyError(f"{what}: there is no {name!r}; it has: {', '.join(map(repr, known)) or 'nothing'}")


def whole(what: str, index: Any) -> int:
    """An index as an integer; raises TypeError for what is none."""
    try:
        return operator.index(index)
    except TypeError:
        raise TypeError(f"{what}: an index is an integer or a slice, got {index!r}") from None


class Registered(MutableMapping[str, Any]):
    """The parts of one kind of a module by their names, None for absent ones."""

    def __init__(self, module: Any, kind: str) -> None:
        """Looks at what `module` has registered as `kind`."""
        self._module, self._kind = module, kind

    def __getitem__(self, name: str) -> Any:
        """The part of this name."""
        if name not in self._module.__dict__[self._kind]:
            raise absent(type(self._module).__name__, name, self)
        return self._module.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        """Registers, or replaces."""
        keeps = self._module.__dict__[self._kind].get(name, True if self._kind == "_buffer_names" else None)
        self._module._register(self._kind, name, value, keeps)

    def __delitem__(self, name: str) -> None:
        """Forgets the part."""
        if name not in self._module.__dict__[self._kind]:
            raise absent(type(self._module).__name__, name, self)
        delattr(self._module, name)

    def __iter__(self) -> Iterator[str]:
        """The names, in the order in which they were registered."""
        return iter(self._module.__dict__[self._kind])

    def __len__(self) -> int:
        """How many there are."""
        return len(self._module.__dict__[self._kind])

    def __repr__(self) -> str:
        """As a dictionary."""
        return repr(dict(self))
