"""Lists and dictionaries of parameters. What is no tensor is kept as it is, and is not trained or saved."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from wengert._core import Tensor

from ..module import Module, tree_text
from ..parameter import Parameter
from ..registries import absent, whole
from .container import pairs_of

__all__ = ["ParameterDict", "ParameterList"]


class _Holder(Module):
    """Values under names: tensors become parameters."""

    _names: dict[str, None]

    def __init__(self) -> None:
        """Holds nothing."""
        super().__init__()
        self.__dict__["_names"] = {}

    def _put(self, name: str, value: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{type(self).__name__}: names are strings, got {type(name).__name__}")
        if name not in self._names:
            self._check_new("_parameter_names", name)
        value = Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value
        if name in self._names and not isinstance(value, Parameter):
            # A value of another kind takes its place.
            delattr(self, name)
        setattr(self, name, value)
        self._names[name] = None

    def _take(self, name: str) -> Any:
        value = self.__dict__[name]
        delattr(self, name)
        del self._names[name]
        return value

    def __copy__(self) -> Self:
        """As of any module, with names of its own."""
        made = super().__copy__()
        made.__dict__["_names"] = dict(self._names)
        return made

    def __len__(self) -> int:
        """How many values."""
        return len(self._names)

    def __repr__(self) -> str:
        """What each value is."""
        lines = []
        for name in self._names:
            value = self.__dict__[name]
            if isinstance(value, Parameter):
                size = "x".join(str(n) for n in value.shape)
                place = "" if str(value.device) == "cpu" else f" ({value.device})"
                text = f"Parameter containing: [{value.dtype} of size {size}{place}]"
            else:
                text = f"Object of type: {type(value).__name__}"
            lines.append(f"({name}): {repr(value) if isinstance(value, Module) else text}")
        return tree_text(type(self).__name__, [], lines)


class ParameterList(_Holder):
    """A list of parameters that registers them; plain tensors among the `values` it begins with become
    parameters.

    Example:
        >>> len(wg.nn.ParameterList([wg.nn.Parameter(wg.ones(2)), wg.nn.Parameter(wg.zeros(3))]))
        2
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        """Registers the parameters in order."""
        super().__init__()
        self.extend(() if values is None else values)

    def __iter__(self) -> Iterator[Any]:
        """The parameters in order."""
        return iter([self.__dict__[name] for name in self._names])

    def _name(self, index: int) -> str:
        index = whole("ParameterList", index)
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
        self._put(self._name(index), value)

    def __iadd__(self, values: Iterable[Any]) -> Self:
        """Adds parameters at the end."""
        return self.extend(values)

    def append(self, value: Any) -> Self:
        """Adds a parameter at the end; returns self."""
        self._put(str(len(self)), value)
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds parameters at the end; returns self."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList: an iterable of tensors expected, got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def pop(self, index: int = -1) -> Any:
        """Removes a parameter, by default the last, and returns it; those behind it move up."""
        values = list(self)
        self._name(index)
        value = values.pop(index)
        for name in list(self._names):
            self._take(name)
        self.extend(values)
        return value


class ParameterDict(_Holder):
    """A dictionary of parameters that registers them; plain tensors become parameters.

    `parameters` is what it begins with, a mapping or pairs. The entries of a plain dictionary come in the
    order of their names, as in PyTorch, whose optimisers count by it; those of an `OrderedDict`, of another
    `ParameterDict` and of pairs in their own.

    Example:
        >>> wg.nn.ParameterDict({"scale": wg.nn.Parameter(wg.ones(2))})["scale"].shape
        (2,)
    """

    def __init__(self, parameters: Any = None) -> None:
        """Registers the parameters under their names."""
        super().__init__()
        self.update(() if parameters is None else parameters)

    def __getitem__(self, key: str) -> Any:
        """The parameter of this name."""
        if key not in self._names:
            raise absent("ParameterDict", key, self._names)
        return self.__dict__[key]

    def __setitem__(self, key: str, value: Any) -> None:
        """Adds or replaces a parameter."""
        self._put(key, value)

    def __delitem__(self, key: str) -> None:
        """Removes a parameter."""
        self.pop(key)

    def __iter__(self) -> Iterator[str]:
        """The names in order."""
        return iter(list(self._names))

    def __reversed__(self) -> Iterator[str]:
        """The names, the last first."""
        return reversed(list(self._names))

    def __contains__(self, key: object) -> bool:
        """Whether there is a parameter of this name."""
        return key in self._names

    def __or__(self, other: Any) -> Self:
        """A dictionary of both; the entries of the other take the place of those of the same names."""
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> Self:
        """A dictionary of both; the entries of this one take the place of those of the same names."""
        made = type(self)(other)
        made.update(self)
        return made

    def __ior__(self, other: Any) -> Self:
        """Adds or replaces several."""
        self.update(other)
        return self

    def keys(self) -> list[str]:
        """Returns the names in order."""
        return list(self._names)

    def values(self) -> list[Any]:
        """Returns the parameters in order."""
        return [self.__dict__[name] for name in self._names]

    def items(self) -> list[tuple[str, Any]]:
        """Names and parameters in order."""
        return list(zip(self.keys(), self.values()))

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the parameter of this name, or `default`."""
        return self.__dict__[key] if key in self._names else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Returns the parameter of this name, which is added if it is not there."""
        if key not in self._names:
            self[key] = default
        return self[key]

    def update(self, parameters: Any) -> None:
        """Adds or replaces several: a mapping or pairs."""
        pairs = pairs_of(type(self).__name__, parameters)
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs.sort(key=lambda pair: pair[0])
        for name, value in pairs:
            self[name] = value

    def pop(self, key: str) -> Any:
        """Removes a parameter and returns it."""
        if key not in self._names:
            raise absent("ParameterDict", key, self._names)
        return self._take(key)

    def popitem(self) -> tuple[str, Any]:
        """Removes the last parameter, and returns its name and itself."""
        if not self._names:
            raise KeyError("ParameterDict.popitem: there is no parameter; look at len() first")
        key = next(reversed(self._names))
        return key, self._take(key)

    def clear(self) -> None:
        """Removes all parameters."""
        for key in self.keys():
            self._take(key)

    def copy(self) -> Self:
        """Returns a dictionary of the same parameters."""
        return type(self)(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> "ParameterDict":
        """Makes a dictionary with the same value under each of these names."""
        return ParameterDict([(key, default) for key in keys])
