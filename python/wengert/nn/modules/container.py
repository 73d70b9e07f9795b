"""Modules that hold modules."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from ..module import Module


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

    def __len__(self) -> int:
        """How many modules."""
        return len(self._module_names)

    def __iter__(self) -> Iterator[Module]:
        """The modules in order."""
        return iter(self._items())

    def _name(self, index: int) -> str:
        if not -len(self) <= index < len(self):
            raise IndexError(f"{type(self).__name__}: index {index} is outside its {len(self)} modules")
        return next(islice(self._module_names, index % len(self), None))

    def __getitem__(self, index: Any) -> Any:
        """One module, or for a slice a container of the same type."""
        if isinstance(index, slice):
            part = type(self)()
            part._renumber(self._items()[index])
            return part
        return self.__dict__[self._name(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        """Replaces one module."""
        self.register_module(self._name(index), module)

    def __delitem__(self, index: int) -> None:
        """Removes one module; those behind it move up."""
        name = self._name(index)
        self._renumber(
            module for other, module in zip(list(self._module_names), self._items()) if other != name
        )

    def append(self, module: Module) -> Any:
        """Adds a module at the end; returns self."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Adds modules at the end; returns self."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Puts a module before position `index`; returns self."""
        modules = self._items()
        modules.insert(index, module)
        self._renumber(modules)
        return self


class Sequential(_Numbered):
    """Feeds each module's output to the next: `Sequential(a, b)(x)` is `b(a(x))`.

    Takes modules, or one dictionary of names to modules.
    """

    def __init__(self, *args: Any) -> None:
        """Registers the modules in order."""
        super().__init__()
        pairs = args[0].items() if len(args) == 1 and isinstance(args[0], Mapping) else enumerate(args)
        for name, module in pairs:
            if module is None:
                raise TypeError(f"Sequential: entry {name!r} is None; leave it out or use nn.Identity()")
            self.register_module(str(name), module)

    def forward(self, input: Any) -> Any:
        """Runs the chain."""
        own = self.__dict__
        for name in self._module_names:
            input = own[name](input)
        return input


class ModuleList(_Numbered):
    """A list of modules that registers them."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        """Registers the modules in order."""
        super().__init__()
        self.extend(modules)


class ModuleDict(Module):
    """A dictionary of modules that registers them."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        """Registers the modules under their names."""
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, key: str) -> Module:
        """The module of this name."""
        if key not in self._module_names:
            raise KeyError(key)
        return self.__dict__[key]

    def __setitem__(self, key: str, module: Module) -> None:
        """Adds or replaces a module."""
        self.register_module(key, module)

    def __delitem__(self, key: str) -> None:
        """Removes a module."""
        if key not in self._module_names:
            raise KeyError(key)
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
        """The names in order."""
        return list(self._module_names)

    def values(self) -> list[Module]:
        """The modules in order."""
        return [self.__dict__[name] for name in self._module_names]

    def items(self) -> list[tuple[str, Module]]:
        """Names and modules in order."""
        return list(zip(self.keys(), self.values()))

    def update(self, modules: Mapping[str, Module]) -> None:
        """Adds or replaces several."""
        for name, module in modules.items():
            self.register_module(name, module)

    def pop(self, key: str) -> Module:
        """Removes a module and returns it."""
        module = self[key]
        del self[key]
        return module
