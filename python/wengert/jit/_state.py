"""What a function reads beside its arguments: closed-over values, globals, attributes, modules and
optimisers.

A program reads the memory of tensors where it lies; all else must be what it was when the program was made,
which is checked at every call. What cannot be checked is refused: the function stays Python.
"""

import abc
import builtins
import collections
import dis
import enum
import functools
import operator
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import wengert as wg
from wengert import _core
from wengert._core import Tensor
from wengert.nn.hooks import EVERYWHERE
from wengert.nn.module import Module
from wengert.nn.parameter import is_lazy
from wengert.transforms.axes import describe_axes

from . import _function
from ._handlers import handles
from ._witness import package, root

__all__ = ["VALUES", "State", "ambient", "surroundings"]

# What is compared by value.
VALUES = (bool, int, float, complex, str, bytes)
# What nobody can change.
_FIXED = (
    *VALUES,
    *map(type, (None, ..., NotImplemented, range(0), slice(0), list[int], int | str)),
    *(types.CodeType, types.WrapperDescriptorType, types.MethodDescriptorType, types.MemberDescriptorType),
    *(
        types.ClassMethodDescriptorType,
        types.GetSetDescriptorType,
        type(vars(collections.namedtuple("_", "x"))["x"]),
    ),
    *(operator.attrgetter, operator.itemgetter, operator.methodcaller),
)
# Objects of these packages are values, or log and lock.
_INERT = {"typing", "re", "pathlib", "datetime", "fractions", "logging", "ast", "inspect", "abc"}
_CONTAINERS = (
    dict,
    list,
    tuple,
    set,
    frozenset,
    collections.deque,
    collections.defaultdict,
    collections.OrderedDict,
)
_MOST = 100_000
_MISSING = object()
# How code looks up globals; a class body and a module have names of their own first.
_LOOKUPS = {"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
# What `dataclasses` writes and compiles.
_OF_DATA_CLASSES = {"__repr__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__"}
# Modules whose functions may give something else at each call, or go by settings of their own.
_MOVING = {"decimal", "random", "secrets", "time", "uuid", "numpy.random"}
# What of a class says nothing about what it does.
_LABELS = frozenset("__dict__ __weakref__ __module__ __annotations__ __abstractmethods__ _abc_impl".split())


class State:
    """What a function and all that it can reach hold.

    Attributes:
        tensors: all tensors.
        objects: what has methods that a program calls (see `Shadows`).
        codes: the code of all functions that were found.
        catches: whether one of them handles errors.
        watched: all places that were looked at.
        refusal: why no program could follow the function, if so.
    """

    # Where distributions are not loaded, they look at no values.
    _validate_args = False

    def __init__(self, roots: list[Any], arguments: list[Tensor]) -> None:
        self.tensors: list[Tensor] = []
        self.objects: list[Any] = []
        self.codes: set[types.CodeType] = set()
        self.catches = False
        self.refusal: str | None = None
        self._known: dict[int, Any] = {}
        # The methods of this package's classes that were looked at.
        self._methods: set[tuple[type, str]] = set()
        # Modules of the user, and which of their attributes were looked at.
        self._modules: dict[int, types.ModuleType] = {}
        self._asked: dict[int, set[str]] = {}
        self.watched = _core._Watched()
        waiting = list(roots)
        while waiting and not self.refusal:
            try:
                waiting.extend(self._below(waiting.pop()))
            except Exception as error:
                self.refusal = f"an object that cannot be looked at: {error}"
            if not waiting:
                found = [*_core._stage_hooks(self.tensors + arguments), *self._attributes()]
                waiting = [x for x in found if x is not _MISSING and id(x) not in self._known]
        if self.objects and any(map(_asks_for_classes, self.codes)):
            self.refusal = "a function that may ask for the class of an optimiser"
        self.watched.tensors(self.tensors)
        # Whether every place holds the object that it held, and every tensor its memory.
        self.is_as_it_was: Callable[[], bool] = self.watched.is_as_it_was

    def holds(self, value: Any) -> bool:
        """Whether the function could reach this object."""
        return id(value) in self._known

    def reached(self) -> list[Any]:
        """All objects that the function can reach."""
        return list(self._known.values())

    def _below(self, value: Any) -> Iterator[Any]:
        """What can be reached from a value directly."""
        if value is _MISSING or type(value) in _FIXED or id(value) in self._known:
            return
        if len(self._known) > _MOST:
            self.refusal = f"more than {_MOST} objects that the function can reach"
            return
        self._known[id(value)] = value
        kind = type(value)
        if is_lazy(value):
            self.refusal = "a parameter whose shape is not known yet"
        elif isinstance(value, Tensor):
            self.tensors.append(value)
            if attributes := getattr(value, "__dict__", None):
                yield from self._all(attributes)
        elif isinstance(value, type):
            yield from self._class(value)
        elif isinstance(value, types.MethodType):
            yield from (value.__self__, value.__func__)
        elif isinstance(value, types.FunctionType):
            yield from self._function(value)
        elif isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):
            if not isinstance(value.__self__, types.ModuleType | type):
                yield value.__self__
        elif isinstance(value, types.ModuleType):
            yield from self._value(value, [])
        elif isinstance(value, staticmethod | classmethod):
            yield value.__func__
        elif isinstance(value, property):
            yield from (value.fget, value.fset)
        elif isinstance(value, functools.partial):
            yield from self._looked(value, ("func", "args", "keywords"))
            yield from self._all(vars(value))
        elif isinstance(value, functools.cached_property):
            yield value.func
        elif isinstance(value, _function.Staged):
            yield value._function
        elif isinstance(value, types.MappingProxyType):
            yield from self._all(value)
        elif hasattr(kind, "__next__"):
            self.refusal = (
                f"an iterator of type {kind.__name__}, which moves on at each call; give what it yields"
            )
        elif hasattr(kind, "_called_by_programs") and not isinstance(value, Module):
            yield from self._caller(value)
        elif isinstance(value, enum.Enum):
            yield from self._all(vars(value))
            yield kind
        elif package(kind) == "numpy":
            yield from self._array(value)
        else:
            yield from self._object(value, kind)

    def _object(self, value: Any, kind: type) -> Iterator[Any]:
        """Items and attributes of an object."""
        if hasattr(kind, "_called_by_programs"):
            self.objects.append(value)
        if isinstance(value, dict):
            yield from self._all(value)
            yield from value
        elif isinstance(value, _CONTAINERS):
            if not isinstance(value, tuple | frozenset):
                self.watched.members(value)
            yield from value
        if reason := getattr(kind, "_refused_by_programs", None):
            self.refusal = reason
            return
        if package(kind) == "logging":
            yield from self._looked(value, ("level", "disabled"))
        if kind in _CONTAINERS or package(kind) in _INERT:
            return
        for base in kind.__mro__[:-1]:
            if (
                base not in _CONTAINERS
                and package(base) != "wengert"
                and any(map(_is_of_c, vars(base).values()))
            ):
                # A class that is written in C keeps what it has where nobody can look.
                self.refusal = (
                    f"an object of type {kind.__module__}.{kind.__qualname__}, which cannot be compared; "
                    "give what is read of it as tensors and numbers"
                )
                return
        self.watched.kind(value)
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            yield from self._all(attributes)
            if not _is_known(kind.__module__):
                # Somebody may put another dictionary there.
                self.watched.attribute(value, "__dict__")
        if isinstance(value, collections.defaultdict):
            yield from self._looked(value, ["default_factory"])
        names = [name for base in kind.__mro__ for name in _slots(base)]
        yield from self._looked(value, [name for name in names if name not in ("__dict__", "__weakref__")])
        yield kind

    def _caller(self, value: Any) -> Iterator[Any]:
        """An optimiser, schedule or scaler: of what it has, a program knows the parameters alone, and the
        factor of a scaler.
        """
        if any(
            "__init_subclass__" in vars(base)
            for base in type(value).__mro__
            if not _is_known(base.__module__)
        ):
            # It would take note of the class that stands in for its own.
            self.refusal = f"{type(value).__name__}, which looks at its subclasses"
        self.objects.append(value)
        self.watched.kind(value)
        for name in (
            *value._called_by_programs,
            *getattr(value, "_recorded_by_programs", ()),
            "_enabled",
            "_factor",
        ):
            self.watched.item(vars(value), name)
            if hasattr(type(value), name):
                self.watched.attribute(type(value), name)
        yield from (getattr(value, "optimizer", None), getattr(value, "_factor", None))
        groups = getattr(value, "param_groups", [])
        self.watched.members(groups)
        for group in groups:
            self.watched.item(group, "params")
            yield group["params"]

    def _array(self, value: Any) -> Iterator[Any]:
        """An array of NumPy is a value, too; so are its numbers and dtypes."""
        if type(value).__module__.startswith("numpy.random"):
            self.refusal = "a generator of NumPy, which moves on at each call; draw by wg.rand, or outside"
        elif hasattr(value, "tobytes") and hasattr(value, "shape"):
            if value.dtype.hasobject:
                self.refusal = (
                    "an array of Python objects, which cannot be compared; give tensors and numbers"
                )
                return
            if value.nbytes > 1 << 16:
                self.refusal = f"an array of {value.nbytes} bytes; make it a tensor"
                return
            self.watched.answer(functools.partial(_contents_of_array, value))
        elif hasattr(value, "__dict__") and not any(map(_is_of_c, vars(type(value)).values())):
            yield from self._object(value, type(value))
        yield from ()

    def _looked(self, value: Any, names: Iterable[str]) -> Iterator[Any]:
        """Attributes that are in no dictionary."""
        for name in names:
            yield self.watched.attribute(value, name)

    def _class(self, kind: type) -> Iterator[Any]:
        """Attributes and methods of a class and its bases, where these are the user's."""
        if kind.__module__ == "decimal":
            self.refusal = "decimal numbers, whose precision is a setting"
        for base in kind.__mro__:
            known = _is_known_class(base)
            if not known:
                yield from self._all(vars(base))
                yield from self._looked(base, ["__name__", "__bases__"])
            for name in ("forward", "__call__"):
                if known and name in vars(base) and (base, name) not in self._methods:
                    self._methods.add((base, name))
                    self.watched.item(vars(base), name)
                    yield vars(base)[name]

    def _function(self, function: types.FunctionType) -> Iterator[Any]:
        cells = function.__closure__ or ()
        # Not `__module__`, which a wrapper takes over from the function that it wraps.
        if _is_known(function.__globals__.get("__name__")):
            # What they close over may be the user's, and somebody may set their attributes.
            yield from (_contents(cell) for cell in cells)
            yield from self._all(vars(function))
            return
        self._add(function.__code__, function.__globals__)
        names = _names(function.__code__)
        for cell in cells:
            yield from self._value(self.watched.attribute(cell, "cell_contents"), names)
        for name in _globals(function.__code__):
            self.watched.item(function.__globals__, name)
            if name in function.__globals__:
                yield from self._value(function.__globals__[name], names)
            elif name in vars(builtins):
                self.watched.item(vars(builtins), name)
        for module in _imported(function.__code__):
            yield from self._value(sys.modules.get(module, _MISSING), names)
        yield from self._looked(
            function, ("__code__", "__defaults__", "__kwdefaults__", "__dict__", "__name__")
        )

    def _add(self, code: types.CodeType, variables: dict[str, Any]) -> None:
        self.codes.add(code)
        self.catches = self.catches or handles(code, variables)
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                self._add(const, variables)

    def _value(self, value: Any, names: list[str]) -> Iterator[Any]:
        """The value of a variable of a function that names these attributes."""
        if not isinstance(value, types.ModuleType):
            yield value
            return
        known = _is_known(value.__name__)
        if not known:
            self._modules[id(value)] = value
            if "getattr" in names:
                self.refusal = (
                    f"attributes of the module {value.__name__} by names that are not written there"
                )
            return
        moving = [value.__name__, *(f"{value.__name__}.{name}" for name in names)]
        if found := _MOVING.intersection(moving):
            self.refusal = (
                f"the module {min(found)}, whose functions may give something else at each call; give what "
                "they return as a tensor"
            )
        for name in names:
            if value is wg and name in wg._LAZY_NAMES:
                # What is imported at first use is, before the program is made.
                getattr(wg, name)
            if name in vars(value):
                # Somebody may put another function there.
                self.watched.item(vars(value), name)
                if root(value.__name__) != "wengert" and isinstance(vars(value)[name], _CONTAINERS):
                    yield vars(value)[name]

    def _attributes(self) -> Iterator[Any]:
        """What modules of the user have under the names of all attributes in the functions found so far."""
        names = {name for code in self.codes for name in code.co_names}
        for module in list(self._modules.values()):
            for name in sorted(names - self._asked.setdefault(id(module), set())):
                self.watched.item(vars(module), name)
                found = vars(module).get(name, _MISSING)
                yield from self._value(found, sorted(names))
            self._asked[id(module)] |= names

    def _all(self, place: Any) -> Iterator[Any]:
        """The values of a dictionary, which must keep its keys."""
        if isinstance(place, dict):
            self.watched.items(place)
            if isinstance(place, collections.OrderedDict):
                # Its order is its own.
                self.watched.members(place)
            yield from place.values()
            return
        self.watched.members(place)
        for name in place:
            if name not in _LABELS:
                self.watched.item(place, name)
                yield place[name]


def _is_known_class(kind: type) -> bool:
    """Whether a class is of such a module. `__module__` may name another one than its own (classes made by
    `types`, wrappers), so the class has to be found there.
    """
    if not _is_known(kind.__module__):
        return False
    if "<locals>" in kind.__qualname__ or any(map(_is_of_c, vars(kind).values())):
        return True
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind


def _is_known(module: Any) -> bool:
    """Whether a module is of this package, the standard library or NumPy: no state of the user's."""
    return isinstance(module, str) and (
        root(module) in ("wengert", "numpy")
        or (root(module) in sys.stdlib_module_names and module != "__main__")
    )


def _is_of_c(attribute: Any) -> bool:
    """Whether an attribute of a class says that the class is written in C."""
    return isinstance(attribute, types.MethodDescriptorType | types.WrapperDescriptorType) or (
        isinstance(attribute, types.GetSetDescriptorType)
        and attribute.__name__ not in ("__dict__", "__weakref__")
    )


def _slots(kind: type) -> tuple[str, ...]:
    """The attributes of a class that are in no dictionary."""
    names = kind.__dict__.get("__slots__", ())
    owner = kind.__name__.lstrip("_")
    return tuple(
        f"_{owner}{name}" if owner and name.startswith("__") and not name.endswith("__") else name
        for name in ((names,) if isinstance(names, str) else names)
    )


def _contents(cell: types.CellType) -> Any:
    """What is in a cell, if anything."""
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _contents_of_array(array: Any) -> bytes:
    return repr((array.shape, array.dtype.str)).encode() + array.tobytes()


def _names(code: types.CodeType) -> list[str]:
    """The names of globals and attributes in a function's code, and in that of functions inside of it."""
    inner = [name for const in code.co_consts if isinstance(const, types.CodeType) for name in _names(const)]
    return list(dict.fromkeys([*code.co_names, *inner]))


def _globals(code: types.CodeType) -> list[str]:
    """The names in a function's code that are looked up among globals, and in that of functions inside."""
    names = [step.argval for step in dis.get_instructions(code) if step.opname in _LOOKUPS]
    inner = [
        name for const in code.co_consts if isinstance(const, types.CodeType) for name in _globals(const)
    ]
    return list(dict.fromkeys([*names, *inner]))


def _asks_for_classes(code: types.CodeType) -> bool:
    """Whether a function may ask an object for its class. Methods of data classes ask for their own."""
    if code.co_filename == "<string>" and code.co_name in _OF_DATA_CLASSES:
        return False
    if "type" in code.co_names and any(
        step.argval == "type" and step.opname in _LOOKUPS for step in dis.get_instructions(code)
    ):
        return True
    return "__class__" in code.co_names


def _imported(code: types.CodeType) -> list[str]:
    """The modules that a function's code imports."""
    names = [step.argval for step in dis.get_instructions(code) if step.opname == "IMPORT_NAME"]
    inner = [
        name for const in code.co_consts if isinstance(const, types.CodeType) for name in _imported(const)
    ]
    return [*names, *inner]


def ambient() -> tuple[Any, ...]:
    """The settings of the thread that decide what operations mean."""
    return (
        wg.is_grad_enabled(),
        wg.is_inference_mode_enabled(),
        wg.is_autocast_enabled(),
        wg.get_autocast_dtype("cpu") if wg.is_autocast_enabled() else None,
        wg.get_default_dtype(),
        wg.get_default_device(),
        wg.is_ieee_gradients_enabled(),
        wg.get_num_threads(),
        # The classes that are registered with abstract ones.
        abc.get_cache_token(),
        # The axes that have names.
        describe_axes(),
        # Whether distributions look at values.
        getattr(sys.modules.get("wengert.distributions.distribution"), "Distribution", State)._validate_args,
    )


def surroundings() -> Any:
    """What a call depends on beside its arguments, what the function reads, and the settings of the core."""
    watched = _core._Watched()
    watched.items(EVERYWHERE)
    watched.answer(abc.get_cache_token)
    if describe_axes():
        watched.answer(describe_axes)
    for module, owner, name in (
        ("wengert.nn.utils.parametrize", "_Cache", "depth"),
        ("wengert.distributions.distribution", "Distribution", "_validate_args"),
    ):
        watched.item(sys.modules, module)
        if module in sys.modules:
            watched.item(vars(getattr(sys.modules[module], owner)), name)
    return watched
