"""Functions that run as programs: the callable that `jit` returns."""

import collections
import copy
import enum
import functools
import sys
import threading
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from wengert import _core
from wengert._caller import warn
from wengert._core import Tensor
from wengert.autograd.autocast import autocast
from wengert.nn.hooks import EVERYWHERE
from wengert.tree import _REGISTRY, _way, tree_flatten

from ._checked import checked, picture, undone
from ._results import CONSTANTS, Results, Variant, is_held
from ._state import VALUES, State, ambient, surroundings
from ._witness import Shadows, Witness, package

if TYPE_CHECKING:
    from ._lowered import Lowered
    from ._shown import Program

__all__ = ["Staged"]

P = ParamSpec("P")
R = TypeVar("R")

# Programs are made for so many kinds of arguments.
_MOST = 64

_NO_PROGRAM = (
    "jit: there is no program for these arguments with the current settings (threads, modes, default dtype); "
    "call the function with them, then see why()"
)

_NO_PLACE = "an object without a __dict__ has no place for programs; keep its method: step = model.step"

_INSIDE = "a transform around the call; transform the jitted function itself, as in vmap(jit(f))"

_TOO_MANY = (
    f"more than {_MOST} kinds of arguments; give numbers that change at each call as tensors, and pad "
    "tensors to a few shapes"
)

# Held while a function is written down.
_TRACING = threading.Lock()

# What is equal to nothing else that could be an argument; what a method belongs to is watched.
_NAMED = (types.BuiltinFunctionType, types.MethodType)

# An argument whose whole state is not known.
_STRANGE = object()


class Staged(_core._FastPath, Generic[P, R]):
    """A function that runs once as Python and then as a program of kernels, with the same bits.

    Attributes:
        traces: how often the function ran as Python to be written down.
    """

    # What wraps another function takes over its dictionary: nothing of a program lies there.
    __slots__ = (
        *("__dict__", "__weakref__", "_bound", "_check", "_donated", "_function", "_has_given_up"),
        *("_is_kept", "_max_traces", "_static"),
        *("_place", "_reasons", "_told", "_transforms", "_tries", "_variants", "traces"),
    )

    def __init__(
        self,
        function: Callable[P, R],
        max_traces: int,
        check: bool,
        static: frozenset[int | str],
        donated: frozenset[int | str],
    ) -> None:
        functools.update_wrapper(self, function)
        # Numbers and names of arguments that are compared as they compare themselves, and of those whose
        # memory is taken.
        self._static, self._donated = static, donated
        self._function = function
        self._max_traces = max_traces
        self._check = check
        self._variants: dict[Any, list[Variant]] = {}
        self._tries: dict[Any, int] = {}
        self._reasons: list[str] = []
        # Of each kind of arguments, why there was no program when it was last tried.
        self._told: dict[Any, str] = {}
        self._bound: dict[type, Staged[Any, Any]] = {}
        # The transforms of this function, which are jitted, too.
        self._transforms: dict[Any, Staged[Any, Any]] = {}
        # Where an object keeps its own, and whether this is such a one.
        self._place = f"_jit_{id(self):x}"
        self._is_kept = False
        self._has_given_up = False
        self.traces = 0

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A method of a class keeps its programs per object."""
        if instance is None:
            return self
        if isinstance(instance, type):
            if instance not in self._bound:
                self._bound[instance] = self._copy(self._function.__get__(instance, owner))
            return self._bound[instance]
        # Beside the attributes of the object, so that programs end with it.
        place = getattr(instance, "__dict__", None)
        if place is None:
            # Programs hold their object: kept elsewhere by it, even weakly, neither would ever end.
            bound = self._copy(self._function.__get__(instance, owner))
            bound._note(f"{type(instance).__name__}: {_NO_PLACE}")
            return bound
        bound = place.get(self._place)
        if bound is None or bound._function.__self__ is not instance:
            bound = self._copy(self._function.__get__(instance, owner))
            bound._is_kept = True
            place[self._place] = bound
        return bound

    def _copy(self, function: Callable[..., Any]) -> "Staged[Any, Any]":
        named = [self._static, self._donated]
        if isinstance(function, types.MethodType) and not isinstance(self._function, types.MethodType):
            # Arguments are counted without the object.
            named = [
                frozenset(x - 1 if isinstance(x, int) and x > 0 else x for x in found if x != 0)
                for found in named
            ]
        return Staged(function, self._max_traces, self._check, *named)

    def _is_static(self, value: Any, args: Any, kwargs: Any) -> bool:
        """Whether this argument was said to be static, and has a hash."""
        given = _selected(self._static, args, kwargs)
        return any(value is x for x in given) and type(value).__hash__ is not None

    def _donated_tensors(self, args: Any, kwargs: Any) -> list[Tensor]:
        """The tensors whose memory this call may take."""
        if not self._donated:
            return []
        leaves, _ = tree_flatten(_selected(self._donated, args, kwargs))
        return [x for x in leaves if isinstance(x, Tensor)]

    def _derived(self, transform: Callable[..., Any], settings: Any, named: Any) -> "Staged[Any, Any]":
        """This function transformed; the same one for the same settings."""
        leaves, tree = tree_flatten((settings, named))
        key = transform, *((type(x), x) for x in leaves), tree, *named
        found = self._transforms.get(key)
        if found is None:
            found = self._copy(transform(self._function, *settings, **named))
            if transform is not _within:
                # A derivative reads its arguments once more.
                found._donated = frozenset()
            found = self._transforms.setdefault(key, found)
        return found

    def _cast(self) -> "Staged[Any, Any] | None":
        """This function with the autocast region around the call inside of it, if there is a region."""
        around = _core._autocast_around()
        return self._derived(_within, around, {}) if around else None

    def __deepcopy__(self, memo: dict[int, Any]) -> "Staged[P, R]":
        """A function is itself; a method is that of the copied object. Programs are made anew."""
        function = copy.deepcopy(self._function, memo)
        return self if function is self._function else self._copy(function)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """A function is found by its name; a method with its object."""
        if self._is_kept:
            # Made again when it is asked for.
            return _nothing, ()
        owner = getattr(self._function, "__self__", None)
        own = self.__dict__
        return str(own["__qualname__"]) if owner is None else (getattr, (owner, own["__name__"]))

    def __repr__(self) -> str:
        """Names the function."""
        return f"<jit of {self._function!r}, {self.traces} traces>"

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def _call(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the program for such arguments, or makes it; calls with tensors alone reach this if the core
        finds no program for them.
        """
        # Inside of another program it is part of that; what watches operations wants to see them run.
        if _core._get_debug_modes():
            return self._function(*args, **kwargs)
        if cast := self._cast():
            known = cast.traces
            try:
                return _core._without_autocast(functools.partial(cast, *args, **kwargs))
            finally:
                self.traces += cast.traces - known
                for reason in cast._reasons:
                    self._note(reason)
        is_outermost = not _core._is_nested()
        result: R = _core._nested(functools.partial(self._answer, args, kwargs))
        if self._donated and is_outermost and not _core._in_transform():
            kept, _ = tree_flatten(result)
            if not any(isinstance(x, Tensor) and x.requires_grad for x in kept):
                # A program has taken it already.
                donated = self._donated_tensors(args, kwargs)
                _core._donate([x for x in donated if all(x is not y for y in kept)])
        return result

    def _answer(self, args: Any, kwargs: Any) -> Any:
        """What a call returns."""
        if _core._in_transform() and (self._check or not _core._records_programs()):
            self._note(_INSIDE)
            return self._function(*args, **kwargs)
        key, leaves, tensors = self._key(args, kwargs)
        if key is None:
            return self._function(*args, **kwargs)
        for variant in self._variants.get(key, ()):
            if variant.state.is_as_it_was():
                before = picture(variant, tensors) if self._check else None
                again = functools.partial(self._function, *args, **kwargs)
                outputs, failed = variant.run(tensors, again)
                if failed:
                    return undone(before or picture(variant, tensors), again)
                if outputs is not None and before is not None:
                    found: R = checked(before, variant, tensors, outputs, again)
                    return found
                if outputs is not None:
                    return variant.result(tensors, outputs)
        if sys.getprofile() is not None or self._is_exhausted(key):
            return self._function(*args, **kwargs)
        # Optimisers are of other classes meanwhile: one thread at a time.
        if not _TRACING.acquire(blocking=False):
            return self._function(*args, **kwargs)
        try:
            return self._trace(key, leaves, tensors, args, kwargs)
        finally:
            _TRACING.release()

    def _is_exhausted(self, key: Any) -> bool:
        """Whether there will be no more programs for such arguments; says so once."""
        tries = self._tries.get(key)
        if tries is None and len(self._tries) >= _MOST:
            self._give_up(_TOO_MANY)
            return True
        if tries is not None and tries >= self._max_traces:
            what = (
                f"{tries} traces made no program for this call: what the function reads or decides by differs"
            )
            self._told.setdefault(key, what)
            self._give_up(what)
            return True
        return False

    def _give_up(self, what: str) -> None:
        """Warns that calls run as Python from now on, unless it is known. Inside of a transform it is no
        surprise.
        """
        if _core._in_transform():
            self._note(what)
        elif not self._has_given_up:
            self._has_given_up = True
            self._note(what)
            name = getattr(self._function, "__name__", "the function")
            warn(f"jit: {name} runs as Python from now on: {what}")

    def _key(
        self, args: Any, kwargs: Any, told: list[str] | None = None
    ) -> tuple[Any, list[Any], list[Tensor]]:
        """What tells programs apart, the leaves of the arguments, and the tensors among them.

        The key is None if there can be no program; `told` is then given the reason.
        """

        def note(reason: str) -> None:
            self._note(reason)
            if told is not None:
                told.append(reason)

        try:
            leaves, tree = tree_flatten((args, kwargs))
        except RecursionError:
            note("an argument that holds itself")
            return None, [], []
        key: list[Any] = []
        tensors = []
        for x in leaves:
            if isinstance(x, Tensor):
                if getattr(x, "__dict__", None):
                    note("an argument with attributes")
                    return None, leaves, []
                tensors.append(x)
                key.append(type(x))
            elif isinstance(x, type | enum.Enum):
                key.append(_Itself(x))
            elif isinstance(x, _NAMED) or _is_itself(type(x)):
                key.append(x)
            elif isinstance(x, CONSTANTS) and package(type(x)) in ("builtins", "numpy", "wengert"):
                # The string tells 0.0 from -0.0, and is the same for every NaN.
                key.append((type(x), repr(x)))
            elif self._is_static(x, args, kwargs):
                key.append((type(x), x))
            else:
                note(
                    f"an argument of type {type(x).__name__} may change unnoticed; give tensors, numbers or "
                    "strings"
                )
                return None, leaves, []
        parametrize = sys.modules.get("wengert.nn.utils.parametrize")
        if any(EVERYWHERE.values()) or (parametrize and parametrize._Cache.depth):
            note("hooks of all modules, or parametrize.cached(), around the call")
            return None, leaves, []
        order = [*kwargs, *(_order(x) for x in (*args, *kwargs.values()) if not isinstance(x, Tensor))]
        # Python tells containers apart that are equal.
        given = [x for x in (*args, *kwargs.values()) if isinstance(x, list | dict)]
        if len(given) > 1:
            order.append(tuple(next(i for i, y in enumerate(given) if y is x) for x in given))
        if _STRANGE in order:
            note("an argument of a class that is a tree; give dictionaries, tuples or dataclasses")
            return None, leaves, []
        return (tree, *key, *order, *ambient(), _core._stage_key(tensors)), leaves, tensors

    def _trace(self, key: Any, leaves: list[Any], tensors: list[Tensor], args: Any, kwargs: Any) -> Any:
        """Runs the function as Python and writes down what it does."""
        state = State([self._function, *(x for x in leaves if not isinstance(x, Tensor))], tensors)
        if state.refusal or not _core._stage_begin(tensors, state.tensors):
            self._tries[key] = self._tries.get(key, 0) + 1
            self._refused(key, state.refusal or _reason(), None)
            return self._function(*args, **kwargs)
        self.traces += 1
        self._tries[key] = self._tries.get(key, 0) + 1
        try:
            shadows = Shadows(state.objects, state.tensors, state.watched, state.holds)
            with shadows, Witness(state.codes) as witness:
                result = self._function(*args, **kwargs)
                shadows.end()
            # Apart, as classes registered elsewhere may be looked up.
            found, tree = tree_flatten(result)
            results = Results(found, tensors, state)
            if not self._check:
                with Witness(state.codes):
                    _core._stage_pull(tensors, state.tensors, results.outputs)
        except BaseException:
            # It was not this call that there is no program for.
            self._tries[key] -= 1
            _core._stage_undo()
            raise
        code = getattr(getattr(self._function, "__wrapped__", self._function), "__code__", None)
        place = (code.co_filename, code.co_firstlineno, code.co_name) if code else None
        if results.strange or is_held(result, state):
            what = f"a result of type {results.strange or type(result).__name__}"
            _core._stage_refuse(f"{what}; return tensors, numbers, texts, and new containers of them", place)
        after, same, _ = self._key(args, kwargs)
        if after != key or any(x is not y for x, y in zip(leaves, same)):
            _core._stage_refuse("arguments or settings that the function changes; return new ones", place)
        if not state.is_as_it_was():
            what = f"{state.watched.changed()}, which the function reads and changes"
            _core._stage_refuse(f"{what}; return the new value, or keep it as a tensor", place)
        if any(x.is_inference() for x in results.outputs) and not _core.is_inference_mode_enabled():
            _core._stage_refuse("a result of inference mode; enter the mode around the call", place)
        name = getattr(self._function, "__name__", "jit")
        donated = [] if self._check else self._donated_tensors(args, kwargs)
        returned = [tensors[k] for _, k in results.given]
        numbers = [
            k
            for k, x in enumerate(tensors)
            if any(x is y for y in donated) and all(x is not y for y in returned)
        ]
        made = _core._stage_end(
            tensors,
            state.tensors,
            results.outputs,
            shadows.calls,
            state.catches,
            state.watched,
            name,
            numbers,
        )
        if isinstance(made, tuple):
            self._refused(key, *made)
            return result
        variant = Variant(made, state, tree, results, witness.modules)
        self._variants.setdefault(key, []).insert(0, variant)
        if not kwargs and not self._check:
            one = variant.made[0][1] if tree._is_leaf and variant.made else None
            watched = [surroundings(), state.watched]
            again = functools.partial(variant.again, self._function)
            self._add_program(args, watched, made, one, variant.result, again)
        if variant.has_history:
            return result
        return variant.result(tensors, [x.detach() for x in results.outputs])

    def _refused(self, key: Any, what: str, place: tuple[str, int, str] | None) -> None:
        """Takes note of why there is no program; warns where there will be none."""
        reason = f"{what} ({place[0]}:{place[1]})" if place else what
        self._note(reason)
        self._told[key] = reason
        if self._tries[key] >= self._max_traces:
            self._give_up(reason)

    def _note(self, reason: str) -> None:
        if reason not in self._reasons:
            self._reasons.append(reason)

    def why(self) -> list[str]:
        """Returns the reasons why calls ran as Python, oldest first."""
        return list(self._reasons)

    def operations(self, *args: P.args, **kwargs: P.kwargs) -> list[str]:
        """Returns the names of the operations that a call with such arguments runs, in order.

        Raises:
            ValueError: if there is no program for them; call the function first.
        """
        return list(self._found(args, kwargs).program.names())

    def fused(self, *args: P.args, **kwargs: P.kwargs) -> list[list[str]]:
        """Returns the names of the elementwise operations that a call with such arguments runs together,
        group by group: tile by tile, so that what only the group reads has no memory.

        Raises:
            ValueError: if there is no program for them; call the function first.
        """
        return list(self._found(args, kwargs).program.groups())

    def program(self, *args: P.args, **kwargs: P.kwargs) -> "Program":
        """Returns the program of a call with such arguments, which prints as a listing of its steps.

        Raises:
            ValueError: if there is no program for them; call the function first.
        """
        from ._shown import shown

        return shown(self._function, self._found(args, kwargs))

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> "Lowered":
        """Returns the program of a call with such arguments, under JAX's names; makes the call if no program
        holds for them.

        Raises:
            ValueError: if the call makes no program.
        """
        from ._lowered import Lowered

        if cast := self._cast():
            lowered: Lowered = _core._without_autocast(functools.partial(cast.lower, *args, **kwargs))
            return lowered._in_region(_core._autocast_around())
        key, _, _ = self._key(args, kwargs)
        is_there = any(variant.state.is_as_it_was() for variant in self._variants.get(key, ()))
        if not (is_there or _core._get_debug_modes()):
            self._answer(args, kwargs)
        return Lowered(self, key, self._found(args, kwargs))

    def _found(self, args: Any, kwargs: Any) -> Variant:
        """The program that a call with such arguments would try first, or the newest one for them."""
        if cast := self._cast():
            found: Variant = _core._without_autocast(functools.partial(cast._found, args, kwargs))
            return found
        told: list[str] = []
        key, _, _ = self._key(args, kwargs, told)
        known = self._variants.get(key, [])
        for variant in known:
            if variant.state.is_as_it_was():
                return variant
        if known:
            return known[0]
        if key in self._told:
            told.append(self._told[key])
        elif key is not None and key not in self._tries and len(self._tries) >= _MOST:
            told.append(_TOO_MANY)
        raise ValueError(": ".join([_NO_PROGRAM, *told]))


def _selected(names: frozenset[int | str], args: Any, kwargs: Any) -> list[Any]:
    """The arguments with these numbers, from either end, and names."""
    found = [x for i, x in enumerate(args) if {i, i - len(args)} & names]
    return found + [x for name, x in kwargs.items() if name in names]


def _within(function: Callable[..., Any], dtype: Any) -> Callable[..., Any]:
    """The function in an autocast region."""

    @functools.wraps(function, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        with autocast(dtype=dtype, enabled=dtype is not None):
            return function(*args, **kwargs)

    return run


def _reason() -> str:
    """Why nothing can be written down for such arguments."""
    if _core._in_transform():
        return (
            "a transform around the call, and an argument or a variable of the function that requires "
            "gradients outside of it, or an argument that the function also reads as a variable"
        )
    return "an argument that requires gradients or that the function also reads as a variable"


def _is_itself(kind: Any) -> bool:
    """Whether objects of a class are equal only to themselves."""
    return kind.__eq__ is object.__eq__ and kind.__hash__ is object.__hash__


class _Itself:
    """What is told apart by identity, whatever it is equal to."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _order(value: Any) -> Any:
    """What trees do not tell: the keys of dictionaries in their order."""
    if value is None or isinstance(value, (Tensor, *VALUES)):
        return None
    if isinstance(value, dict):
        # Keys that are equal may be of different types, as 1 and True.
        inner = [(type(key), repr(key), _order(x)) for key, x in value.items()]
        return _STRANGE if any(x is _STRANGE for *_, x in inner) else tuple(inner)
    if isinstance(value, list | tuple | collections.deque):
        inner = [_order(x) for x in value]
        return _STRANGE if _STRANGE in inner else tuple(inner)
    if (fields := getattr(type(value), "__dataclass_fields__", None)) is not None:
        attributes = getattr(value, "__dict__", {})
        return _STRANGE if len(attributes) > len(fields) else _order(attributes)
    way = _REGISTRY.get(type(value)) or _way(type(value))
    if way is None:
        return None
    # A class of the user's may keep more than its leaves, and what it keeps beside them may change.
    leaves, beside = way[0](value)
    known = {id(x) for x in (*leaves, beside, *(beside if isinstance(beside, tuple) else ()))}
    own = getattr(value, "__dict__", {}).values()
    whole = isinstance(beside, (tuple, type(None), *VALUES)) and all(id(x) in known for x in own)
    return _order([beside, *leaves]) if whole else _STRANGE


def _nothing() -> None:
    """What a copy of an object finds in the place of its programs."""
