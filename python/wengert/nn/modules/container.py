"""Modules that hold modules. Read next: `parameters.py`, lists and dictionaries of parameters."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Any, Self

from wengert._core import Tensor

from ..module import Module, tree_text
from ..registries import absent, whole
from .aliases import found_in

__all__ = ["ModuleDict", "ModuleList", "Sequential"]

#: More layers than any model has; a number beyond it is a mistake that would take hours to be seen.
_MOST_LAYERS = 2**20


def check_layers(owner: str, what: str, count: int) -> None:
    """Raises for more layers than memory has room for."""
    if count > _MOST_LAYERS:
        raise ValueError(f"{owner}: {what} must be at most {_MOST_LAYERS}, got {count}")


def pairs_of(owner: str, entries: Any) -> list[tuple[str, Any]]:
    """The pairs of a mapping, or of an iterable of them."""
    if isinstance(entries, Mapping) or hasattr(entries, "items"):
        return list(entries.items())
    if not isinstance(entries, Iterable) or isinstance(entries, str | Tensor):
        raise TypeError(f"{owner}: a mapping or pairs expected, got {type(entries).__name__}")
    pairs = []
    for entry in entries:
        # Of what is no pair, it may be billions of numbers, three are enough to tell.
        pair = tuple(islice(entry, 3))
        if len(pair) != 2:
            raise ValueError(f"{owner}: pairs of a name and a value expected")
        pairs.append(pair)
    return pairs


class _Numbered(Module):
    """Submodules under the names "0", "1", ..."""

    def _items(self) -> list[Module]:
        return [self.__dict__[name] for name in self._module_names]

    def _renumber(self, modules: Iterable[Module]) -> None:
        modules = list(modules)
        for name in list(self._module_names):
            delattr(self, name)
        for i, module in enumerate(modules):
            self.register_module(str(i), module)

    def _of(self, modules: Iterable[Module]) -> Self:
        """A container of the same type."""
        made = type(self)()
        made._renumber(modules)
        return made

    def __len__(self) -> int:
        """How many modules."""
        return len(self._module_names)

    def __iter__(self) -> Iterator[Module]:
        """The modules in order."""
        return iter(self._items())

    def _name(self, index: int) -> str:
        names = self._module_names
        count = len(names)
        index = whole(type(self).__name__, index)
        if not -count <= index < count:
            raise IndexError(f"{type(self).__name__}: index {index} is outside its {count} modules")
        return next(islice(names, index % count, None))

    def __getitem__(self, index: Any) -> Any:
        """One module, or for a slice a container of the same type."""
        if isinstance(index, slice):
            return self._of(self._items()[index])
        return self.__dict__[self._name(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        """Replaces one module."""
        self.register_module(self._name(index), module)

    def __delitem__(self, index: Any) -> None:
        """Removes one module or a slice of them; those behind move up."""
        names = list(self._module_names)
        gone = names[index] if isinstance(index, slice) else [self._name(index)]
        self._renumber([self.__dict__[name] for name in names if name not in gone])

    def __add__(self, other: Iterable[Module]) -> Self:
        """A container of the modules of both."""
        if not isinstance(other, Iterable):
            return NotImplemented
        return self._of([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> Self:
        """Adds modules at the end."""
        self.extend(other)
        return self

    def append(self, module: Module) -> Self:
        """Adds a module at the end; returns self."""
        at = len(self)
        # A part of a `Sequential` has the names of the whole.
        while str(at) in self._module_names:
            at += 1
        self.register_module(str(at), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds modules at the end; returns self."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}: an iterable of modules expected, got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Puts a module before position `index`; returns self."""
        modules = self._items()
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: Any = -1) -> Any:
        """Removes a module, by default the last, or a slice of them, and returns it."""
        module = self[key]
        del self[key]
        return module


class Sequential(_Numbered):
    """Feeds each module's output to the next: `Sequential(a, b)(x)` is `b(a(x))`.

    `args` are modules, or one dictionary of names to modules. A slice keeps the names.

    Example:
        >>> model = wg.nn.Sequential(wg.nn.Linear(2, 3), wg.nn.ReLU(), wg.nn.Linear(3, 1))
        >>> model(wg.ones(5, 2)).shape
        (5, 1)
    """

    def __init__(self, *args: Any) -> None:
        """Registers the modules in order."""
        super().__init__()
        pairs = args[0].items() if len(args) == 1 and isinstance(args[0], Mapping) else enumerate(args)
        for name, module in pairs:
            if module is None:
                raise TypeError(f"Sequential: entry {name!r} is None; leave it out or use nn.Identity()")
            self.register_module(str(name), module)

    def __getitem__(self, index: Any) -> Any:
        """One module, or for a slice a `Sequential` of the same names."""
        if not isinstance(index, slice):
            return super().__getitem__(index)
        part = self._of([])
        for name in list(self._module_names)[index]:
            part.register_module(name, self.__dict__[name])
        return part

    def __mul__(self, times: int) -> Self:
        """A chain of the same modules this many times."""
        if not isinstance(times, int):
            return NotImplemented
        if times < 1:
            raise ValueError(f"{type(self).__name__}: a positive number of repetitions expected, got {times}")
        return self._of(self._items() * times)

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        """Adds the same modules until they are there this many times."""
        self._renumber((self * times)._items())
        return self

    def forward(self, input: Any) -> Any:
        """Runs the chain."""
        own = self.__dict__
        for name in self._module_names:
            input = own[name](input)
        return input


class ModuleList(_Numbered):
    """A list of modules that registers them; `modules` is what it begins with, any iterable.

    Example:
        >>> layers = wg.nn.ModuleList([wg.nn.Linear(2, 3), wg.nn.ReLU()])
        >>> len(layers), len(list(layers.parameters()))
        (2, 2)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        """Registers the modules in order."""
        super().__init__()
        self.extend(() if modules is None else modules)

    def __repr__(self) -> str:
        """The modules, equal ones that follow each other as one entry."""
        below, first = [], 0
        for text, run in groupby(map(repr, self)):
            count = len(list(run))
            below.append(
                f"({first}): {text}" if count == 1 else f"({first}-{first + count - 1}): {count} x {text}"
            )
            first += count
        return tree_text(type(self).__name__, [], below)


class ModuleDict(Module):
    """A dictionary of modules that registers them; `modules` is what it begins with, a mapping or pairs.

    Example:
        >>> layers = wg.nn.ModuleDict({"first": wg.nn.Linear(2, 3)})
        >>> layers["first"](wg.ones(1, 2)).shape
        (1, 3)
    """

    def __init__(self, modules: Any = None) -> None:
        """Registers the modules of a mapping, or of pairs, under their names."""
        super().__init__()
        self.update(() if modules is None else modules)

    def __getitem__(self, key: str) -> Module:
        """The module of this name."""
        if key not in self._module_names:
            raise absent("ModuleDict", key, self._module_names)
        return self.__dict__[key]

    def __setitem__(self, key: str, module: Module) -> None:
        """Adds or replaces a module."""
        self.register_module(key, module)

    def __delitem__(self, key: str) -> None:
        """Removes a module."""
        if key not in self._module_names:
            raise absent("ModuleDict", key, self._module_names)
        delattr(self, key)

    def __len__(self) -> int:
        """How many modules."""
        return len(self._module_names)

    def __iter__(self) -> Iterator[str]:
        """The names in order."""
        return iter(self._module_names)

    def __contains__(self, key: object) -> bool:
        """Whether there is a module of this name."""
        return key in self._module_names

    def keys(self) -> list[str]:
        """Returns the names in order."""
        return list(self._module_names)

    def values(self) -> list[Module]:
        """Returns the modules in order."""
        return [self.__dict__[name] for name in self._module_names]

    def items(self) -> list[tuple[str, Module]]:
        """Names and modules in order."""
        return list(zip(self.keys(), self.values()))

    def update(self, modules: Any) -> None:
        """Adds or replaces several: a mapping or pairs."""
        for name, module in pairs_of(type(self).__name__, modules):
            self.register_module(name, module)

    def pop(self, key: str) -> Module:
        """Removes a module and returns it."""
        module = self[key]
        del self[key]
        return module

    def clear(self) -> None:
        """Removes all modules."""
        for name in self.keys():
            del self[name]


__getattr__ = found_in(__name__, "parameters")
