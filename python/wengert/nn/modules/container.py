"""Modules that hold modules, and lists and dictionaries of parameters."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from ..module import Module
from ..parameter import Parameter


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


def _parameter(value: Any) -> Parameter:
    """A parameter as it is; a plain tensor becomes one."""
    return value if isinstance(value, Parameter) else Parameter(value)


class ParameterList(Module):
    """A list of parameters that registers them; plain tensors become parameters."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        """Registers the parameters in order."""
        super().__init__()
        self.extend(values)

    def __len__(self) -> int:
        """How many parameters."""
        return len(self._parameter_names)

    def __iter__(self) -> Iterator[Parameter]:
        """The parameters in order."""
        return iter([self.__dict__[name] for name in self._parameter_names])

    def _name(self, index: int) -> str:
        if not -len(self) <= index < len(self):
            raise IndexError(f"ParameterList: index {index} is outside its {len(self)} parameters")
        return str(index % len(self))

    def __getitem__(self, index: Any) -> Any:
        """One parameter, or for a slice a list of the same type."""
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self.__dict__[self._name(index)]

    def __setitem__(self, index: int, value: Any) -> None:
        """Replaces one parameter."""
        self.register_parameter(self._name(index), _parameter(value))

    def append(self, value: Any) -> Any:
        """Adds a parameter at the end; returns self."""
        self.register_parameter(str(len(self)), _parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Adds parameters at the end; returns self."""
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """The shapes."""
        return ", ".join(f"{i}: {tuple(value.shape)}" for i, value in enumerate(self))


class ParameterDict(Module):
    """A dictionary of parameters that registers them; plain tensors become parameters."""

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        """Registers the parameters under their names."""
        super().__init__()
        self.update(parameters or {})

    def __getitem__(self, key: str) -> Parameter:
        """The parameter of this name."""
        if key not in self._parameter_names:
            raise KeyError(key)
        return self.__dict__[key]

    def __setitem__(self, key: str, value: Any) -> None:
        """Adds or replaces a parameter."""
        self.register_parameter(key, _parameter(value))

    def __delitem__(self, key: str) -> None:
        """Removes a parameter."""
        if key not in self._parameter_names:
            raise KeyError(key)
        delattr(self, key)

    def __len__(self) -> int:
        """How many parameters."""
        return len(self._parameter_names)

    def __iter__(self) -> Iterator[str]:
        """The names in order."""
        return iter(list(self._parameter_names))

    def __contains__(self, key: object) -> bool:
        """Whether there is a parameter of this name."""
        return key in self._parameter_names

    def keys(self) -> list[str]:
        """The names in order."""
        return list(self._parameter_names)

    def values(self) -> list[Parameter]:
        """The parameters in order."""
        return [self.__dict__[name] for name in self._parameter_names]

    def items(self) -> list[tuple[str, Parameter]]:
        """Names and parameters in order."""
        return list(zip(self.keys(), self.values()))

    def update(self, parameters: Mapping[str, Any]) -> None:
        """Adds or replaces several."""
        for name, value in parameters.items():
            self[name] = value

    def pop(self, key: str) -> Parameter:
        """Removes a parameter and returns it."""
        value = self[key]
        del self[key]
        return value

    def extra_repr(self) -> str:
        """The shapes."""
        return ", ".join(f"{name}: {tuple(value.shape)}" for name, value in self.items())
