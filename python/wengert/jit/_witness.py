"""Sees what runs while a function is written down: a program may hold only what the check of its state
covers."""

import functools
import gc
import sys
import types
from collections.abc import Callable
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.autograd.modes import enable_grad
from wengert.counting import Modules
from wengert.nn.module import Module

__all__ = ["Shadows", "Witness", "package", "root"]

# Python code of the standard library that reads nothing but its arguments.
_PURE = frozenset(
    "_collections_abc _weakrefset abc bisect collections contextlib copy copyreg dataclasses enum fractions "
    "functools heapq inspect itertools keyword math numbers operator re reprlib statistics string types "
    "typing "
    "warnings weakref".split()
)
# Functions written in C of these modules, but for what follows, do the same at each call.
_STEADY = _PURE.union(
    "_abc _bisect _collections _functools _heapq _operator builtins cmath numpy wengert".split()
)
_UNSTEADY = frozenset(
    "__import__ breakpoint compile eval exec fromfile genfromtxt get_num_threads globals hash id "
    "initial_seed input "
    "load loadtxt locals open print set_rng_state vars".split()
)
# Python code of such modules that reads something else: who calls, settings.
_LOOKING = frozenset(
    [("inspect", name) for name in ("currentframe", "stack", "trace")]
    + [("numpy", name) for name in ("geterr", "geterrcall", "getbufsize", "get_printoptions")]
)
# What of NumPy reads something outside: files, settings of texts.
_OUTSIDE = tuple(
    "numpy.random numpy.core.arrayprint numpy._core.arrayprint numpy.lib._npyio numpy.lib.npyio "
    "numpy.lib.format "
    "numpy.ctypeslib".split()
)


_CALL = Module.__call__.__code__


def root(name: str) -> str:
    """The package that a dotted name begins with."""
    return name.partition(".")[0]


def package(value: Any) -> str:
    """The package of a class or function."""
    module = getattr(value, "__module__", None)
    return root(module) if isinstance(module, str) else ""


class Witness:
    """While entered, looks at every call of a function; refuses what the check of the state does not cover.

    Functions of this package, NumPy and a part of the standard library read nothing but their arguments. All
    others must be among `codes`, which the walk over the state found, so that what they read is compared at
    every call. The garbage collector waits: what it calls, at any time, is not the function's.
    """

    def __init__(self, codes: set[types.CodeType]) -> None:
        self._codes = codes
        self._collects = False
        # Where the function is called.
        self._around: types.FrameType | None = None
        self._modules = Modules()
        # The names of the modules that run, by the number that steps have.
        self.modules = self._modules.names

    def __enter__(self) -> "Witness":
        # What runs as garbage is collected is none of the function's.
        self._collects = gc.isenabled()
        gc.disable()
        self._around = sys._getframe(1)
        sys.setprofile(self._see)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)
        self._around = None
        _core._flops_scope(0)
        if self._collects:
            gc.enable()

    def _see(self, frame: types.FrameType, event: str, arg: Any) -> None:
        if event == "call":
            self._call(frame)
        elif event == "return" and frame.f_code is _CALL:
            self._modules.leave(frame.f_locals["self"])
        elif event == "c_call" and not self._is_quiet(frame):
            name, owner = getattr(arg, "__name__", "?"), getattr(arg, "__self__", None)
            if owner is None or isinstance(owner, types.ModuleType):
                where = getattr(arg, "__module__", None) or package(getattr(arg, "__objclass__", None))
            else:
                where = package(owner if isinstance(owner, type) else type(owner))
            is_steady = root(where or "") in _STEADY and name not in _UNSTEADY
            if not is_steady and not self._is_import(frame):
                _core._stage_refuse(f"{name}(), which a program would not call again; call it outside")

    def _call(self, frame: types.FrameType) -> None:
        code = frame.f_code
        if code is _CALL:
            self._modules.enter(frame.f_locals["self"])
        if code not in self._codes and not self._is_quiet(frame) and not self._is_import(frame):
            _core._stage_refuse(
                f"a call of {code.co_qualname}(), whose values are not compared; call it outside"
            )

    def _is_quiet(self, frame: types.FrameType) -> bool:
        """Whether a function reads nothing but its arguments."""
        module = frame.f_globals.get("__name__", "")
        first = root(module)
        if (first, frame.f_code.co_name) in _LOOKING:
            return False
        # The constructors of named tuples are made as modules of their own.
        known = first == "wengert" or first in _PURE or first.startswith("namedtuple_")
        return known or (first == "numpy" and not module.startswith(_OUTSIDE))

    def _is_import(self, frame: types.FrameType) -> bool:
        """Whether it runs because a name of this package is imported when it is first used."""
        at: types.FrameType | None = frame
        while at and (back := at.f_back) and at is not self._around:
            if _name(at) == "importlib" and _name(back) == "wengert":
                return True
            at = back
        return False


def _name(frame: types.FrameType) -> str:
    """The package that a frame belongs to."""
    return root(frame.f_globals.get("__name__", ""))


def _in_place_of(shadow: type, kind: type, reduced: Any) -> Any:
    """How an object is copied, of its own class."""
    if not isinstance(reduced, tuple):
        return reduced
    function, args, *rest = reduced
    own = tuple(kind if x is shadow else x for x in args)
    return kind if function is shadow else function, own, *rest


class Shadows:
    """While entered, single objects are of other classes, which see what is called and read.

    `_called_by_programs` names the methods of a class that change numbers of Python, as the step of an
    optimiser: every run of a program calls them. `_recorded_by_programs` says of further methods which one
    stands in for them, whose operations are part of the program, and which every run calls because of that,
    if any. What else the function reads of such objects is not compared, so it is refused; but for modules,
    which are compared.

    Args:
        objects: the objects.
        tensors: those that the function reads.
        watched: what is compared at each call.
        holds: whether the function could reach an object.
    """

    def __init__(
        self, objects: list[Any], tensors: list[Tensor], watched: Any, holds: Callable[[Any], bool]
    ) -> None:
        self.calls: list[Callable[[], Any]] = []
        self._objects, self._watched, self._holds = objects, watched, holds
        self._classes: list[tuple[Any, type]] = []
        self._leaves = [x for x in tensors if x.requires_grad and x.is_leaf]
        # What is to be called before the next of the calls, or at the end.
        self._late: dict[tuple[int, str], Callable[[], Any]] = {}

    def __enter__(self) -> "Shadows":
        for value in self._objects:
            kind = type(value)
            object.__setattr__(value, "__class__", self._shadow(kind))
            self._classes.append((value, kind))
        return self

    def __exit__(self, *error: object) -> None:
        for value, kind in self._classes:
            object.__setattr__(value, "__class__", kind)

    def end(self) -> None:
        """Calls what is to be called at the end."""
        late, self._late = self._late, {}
        for method in late.values():
            self._call(method)

    def _shadow(self, kind: Any) -> type:
        called, recorded = kind._called_by_programs, getattr(kind, "_recorded_by_programs", {})
        is_compared = issubclass(kind, Module)

        def look(value: Any, name: str) -> Any:
            found = kind.__getattribute__(value, name)
            if not _core._is_staging():
                return found
            if name in called:
                return self._called(value, found, f"{kind.__name__}.{name}")
            if name in recorded:
                return self._recorded(value, kind, name, found)
            if name == "__reduce_ex__":
                return lambda protocol: _in_place_of(type(value), kind, found(protocol))
            inside = root(sys._getframe(1).f_globals.get("__name__", "")) == "wengert"
            if not is_compared and not inside and name != "__class__":
                _core._stage_refuse(
                    f"{kind.__name__}.{name}, whose values are not compared; give it as a tensor"
                )
            return found

        def put(value: Any, name: str, new: Any) -> None:
            if not is_compared and _core._is_staging():
                _core._stage_refuse(f"{kind.__name__}.{name}, which is set; set it outside")
            kind.__setattr__(value, name, new)

        methods = {"__getattribute__": look, "__setattr__": put}
        return type(kind.__name__, (kind,), {**methods, "__module__": kind.__module__, "__slots__": ()})

    def _recorded(self, value: Any, kind: Any, name: str, found: Any) -> Any:
        """The method whose operations are part of the program, in the place of another."""
        other, late = kind._recorded_by_programs[name]
        if other == name:
            return found
        owner = next(base for base in kind.__mro__ if "_recorded_by_programs" in vars(base))
        if getattr(kind, name) is not vars(owner)[name] or name in vars(value):
            _core._stage_refuse(f"{kind.__name__}.{name}, which is not that of {owner.__name__}")
            return found
        self._late[id(value), late] = kind.__getattribute__(value, late)
        return kind.__getattribute__(value, other)

    def _called(self, value: Any, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if not _core._is_staging():
                return method(*args, **kwargs)
            given = (*args, *kwargs.values())
            if len(given) == 1 and isinstance(given[0], types.FunctionType | types.MethodType):
                return self._with_closure(value, method, name, *given)
            if not all(map(self._is_known, given)):
                _core._stage_refuse(f"{name} with arguments")
                return method(*args, **kwargs)
            self.end()
            # Schedules have an optimiser and write to no parameters.
            writes = name.endswith(".step") and not hasattr(value, "optimizer")
            found = self._call(functools.partial(method, *args, **kwargs) if given else method, writes)
            if found is not None:
                _core._stage_refuse(f"{name}, whose result is used; read it outside")
            return found

        return call

    def _with_closure(self, value: Any, method: Callable[..., Any], name: str, closure: Any) -> Any:
        """A step with a closure, where that is the closure and then a step."""
        is_simple = getattr(value, "_begins_with_closure", None)
        if is_simple is None or not is_simple():
            _core._stage_refuse(
                f"{name} with a closure, which is called as often as the step wants; jit the closure"
            )
            return method(closure)
        for hooks in (value._pre_hooks, value._post_hooks):
            self._watched.members(hooks)
        with enable_grad():
            loss = closure()
        self.end()
        self._call(method, True)
        return loss

    def _call(self, method: Callable[[], Any], writes: bool = False) -> Any:
        """Calls what every run calls, and most of which `writes` to parameters. It may write to gradients, but
        a run would not know of other ones.
        """
        self.calls.append(method)
        replaced, is_idle = [], False

        def run() -> Any:
            nonlocal is_idle
            before = [x.grad for x in self._leaves]
            versions = [x._version for x in self._leaves]
            found = method()
            is_idle = writes and versions == [x._version for x in self._leaves]
            for x, slope in zip(self._leaves, before):
                now = x.grad
                if now is not None and (
                    slope is None or now.detach().data_ptr() != slope.detach().data_ptr()
                ):
                    replaced.append(x)
            return found

        found = _core._stage_call(run)
        if is_idle:
            _core._stage_idle()
        if replaced:
            name = getattr(getattr(method, "func", method), "__qualname__", "a call")
            _core._stage_refuse(f"{name}, which puts another gradient in the place of one")
        return found

    def _is_known(self, value: Any) -> bool:
        """Whether an argument of a call is the same in every run."""
        if isinstance(value, Module):
            return self._holds(value)
        return (
            value is None or type(value) in (bool, int, float, str) or any(value is x for x in self._objects)
        )
