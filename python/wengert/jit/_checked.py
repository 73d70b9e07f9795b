"""Comparing a call by a program with the function run as Python, `jit(..., check=True)`, and taking back what
the function did.

What a call may change is copied, the program runs, what it changed is copied too and taken back, and the
function runs. So a checked call leaves what the function leaves, and both must be the same. Where a program
fails, the function runs to raise the error, and what it changed until then is taken back.
"""

import collections
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import wengert as wg
from wengert import _core
from wengert._core import Tensor
from wengert.nn.module import Module
from wengert.tree import tree_flatten

from ._results import Results, Variant
from ._witness import package

__all__ = ["Picture", "checked", "picture", "undone"]

_VALUES = (bool, int, float, complex, str, bytes, type(None))


class Picture:
    """All that a call may change, as it is: tensors and their gradients, random numbers, optimisers.

    Attributes:
        facts: what is to be compared, by name, in order.
    """

    def __init__(self, tensors: list[tuple[str, Tensor]], objects: list[Any]) -> None:
        self.facts: dict[str, Any] = {}
        self._known: dict[int, Any] = {}
        self._undo: list[Callable[[], None]] = []
        with wg.no_grad():
            for name, x in tensors:
                self._tensor(name, x)
            random = wg.get_rng_state()
            self.facts["the random numbers after the call"] = random
            self._undo.append(lambda: wg.set_rng_state(random))
            for i, value in enumerate(objects):
                count = sum(type(x) is type(value) for x in objects[:i])
                self._value(type(value).__name__ + (f" {count}" if count else ""), value)

    def restore(self) -> None:
        """Makes everything what it was.

        Raises:
            RuntimeError: for the first that could not be taken back, after all others were.
        """
        errors = []
        with wg.no_grad():
            for undo in self._undo:
                try:
                    undo()
                except Exception as error:
                    errors.append(error)
        if errors:
            raise RuntimeError(f"jit: what the program did cannot be taken back: {errors[0]}") from errors[0]

    def _tensor(self, name: str, x: Tensor) -> None:
        if id(x) in self._known:
            return
        self._known[id(x)] = x
        kept = self.facts[name] = x.detach().clone()
        self._undo.append(functools.partial(_write, x, kept, x._version))
        if x.is_leaf and not x.is_inference():
            slope = x.grad
            copy = self.facts[f"the gradient of {name}"] = None if slope is None else slope.detach().clone()
            version = 0 if slope is None else slope._version
            self._undo.append(functools.partial(_put_gradient, x, slope, copy, version, x.requires_grad))

    def _value(self, name: str, value: Any) -> None:
        """Takes note of what an object holds, and of what that holds."""
        if isinstance(value, Tensor):
            return self._tensor(name, value)
        if isinstance(value, _VALUES):
            self.facts[name] = f"{value!r}"
            return None
        self.facts.setdefault(name, type(value).__name__)
        if id(value) in self._known:
            return None
        self._known[id(value)] = value
        if isinstance(value, dict):
            self._undo.append(functools.partial(_refill, value, dict(value)))
            self._all((f"{name}[{_key(k, i)}]", x) for i, (k, x) in enumerate(value.items()))
        elif isinstance(value, list | set | collections.deque):
            self._undo.append(functools.partial(_refill, value, list(value)))
        if isinstance(value, list | tuple | set | collections.deque):
            self.facts[f"the length of {name}"] = f"{len(value)}"
            self._all((f"{name}[{i}]", x) for i, x in enumerate(value))
        own = getattr(value, "__dict__", None)
        if isinstance(own, dict) and _keeps(value):
            self._undo.append(functools.partial(_refill, own, dict(own)))
            self._all((f"{name}.{attribute}", x) for attribute, x in own.items())
        return None

    def _all(self, found: Iterator[tuple[str, Any]]) -> None:
        for name, x in found:
            self._value(name, x)


def picture(variant: Variant, arguments: list[Tensor]) -> Picture:
    """What a call finds, or leaves."""
    state = variant.state
    return Picture(_places(state.reached(), state.tensors, arguments), state.objects)


def checked(
    before: Picture,
    variant: Variant,
    arguments: list[Tensor],
    outputs: list[Tensor],
    function: functools.partial[Any],
) -> Any:
    """Takes back what a program did, runs the function as Python, and compares. Returns what this made.

    Raises:
        RuntimeError: for the first result or tensor that is not the same.
    """
    name = getattr(function.func, "__name__", "the function")
    found = {f"result {i}": x.detach().clone() for i, x in enumerate(outputs)}
    found.update(picture(variant, arguments).facts)
    before.restore()
    try:
        result = function()
    except Exception as error:
        raise RuntimeError(f"jit: {name}: the function raises where its program does not") from error
    leaves, tree = tree_flatten(result)
    results = Results(leaves, arguments, variant.state)
    shape = tree, results.given, results.made, _written(results.fixed)
    if shape != (variant.tree, variant.given, variant.made, _written(variant.fixed)):
        raise RuntimeError(f"jit: {name}: the function returns other things than its program: {result!r}")
    expected = {f"result {i}": x.detach().clone() for i, x in enumerate(results.outputs)}
    expected.update(picture(variant, arguments).facts)
    if what := _difference(found, expected):
        raise RuntimeError(f"jit: {name}: {what}")
    return variant.result(arguments, [x.detach() for x in results.outputs])


def undone(before: Picture, function: Callable[[], Any]) -> Any:
    """The result of a function whose program has failed: it raises the error, and what it did until then is
    taken back; or it handles the error.
    """
    try:
        return function()
    except BaseException:
        before.restore()
        raise


def _places(objects: list[Any], tensors: list[Tensor], arguments: list[Tensor]) -> list[tuple[str, Tensor]]:
    """The tensors of a function, and what they are called."""
    modules = [x for x in objects if isinstance(x, Module)]
    named: dict[int, tuple[str, Tensor]] = {}
    for module in modules:
        for name, x in (*module.named_parameters(), *module.named_buffers()):
            named.setdefault(id(x), (f"{name} of {type(module).__name__}", x))
    found = [(f"argument {i}", x) for i, x in enumerate(arguments)]
    found += named.values()
    for i, x in enumerate(tensors):
        if id(x) not in named:
            found.append((f"tensor {i} that the function reads, of shape {tuple(x.shape)}", x))
    # Names of different tensors differ.
    counts = collections.Counter[str]()
    result = []
    for name, x in found:
        counts[name] += 1
        result.append((name if counts[name] == 1 else f"{name} ({counts[name]})", x))
    return result


def _difference(found: dict[str, Any], expected: dict[str, Any]) -> str | None:
    """What of two pictures is not the same, the first of it; None if all is."""
    for name in dict.fromkeys((*expected, *found)):
        x, y = found.get(name), expected.get(name)
        if isinstance(x, Tensor) and isinstance(y, Tensor):
            what = _unequal(x, y)
        else:
            what = f"{_shown(x)} by the program, {_shown(y)} as Python"
            what = "" if type(x) is type(y) and x == y else what
        if what:
            return f"{name} differs: {what}"
    return None


def _unequal(x: Tensor, y: Tensor) -> str:
    """How two tensors differ in bits, if they do; any NaN is like any other."""
    if (x.dtype, x.shape, x.stride(), x.device) != (y.dtype, y.shape, y.stride(), y.device):
        return f"{_shown(x)} by the program, {_shown(y)} as Python"
    a, b = _array(x), _array(y)
    if not a.size:
        return ""
    bits = [np.ascontiguousarray(z).reshape(-1).view(np.uint8).reshape(a.size, -1) for z in (a, b)]
    unequal = (bits[0] != bits[1]).any(1)
    unequal &= ~(np.isnan(a) & np.isnan(b)).reshape(-1)
    if not unequal.any():
        return ""
    first = int(unequal.argmax())
    at = tuple(int(i) for i in np.unravel_index(first, a.shape))
    where = f"{int(unequal.sum())} of {a.size} elements, the first at {at}: " if a.ndim else ""
    return f"{where}{a.reshape(-1)[first]!s} by the program, {b.reshape(-1)[first]!s} as Python"


def _array(x: Tensor) -> Any:
    x = x.detach().cpu().resolve_conj()
    return (x.float() if x.dtype == wg.bfloat16 else x).numpy()


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype!r} of shape {tuple(value.shape)} and strides {tuple(value.stride())}"
    return str(value)


def _written(values: list[Any]) -> list[tuple[type, str]]:
    """Values to be compared: the text tells 0.0 from -0.0, and is the same for every NaN."""
    return [(type(x), repr(x)) for x in values]


def _write(x: Tensor, kept: Tensor, version: int) -> None:
    """Gives a tensor its values back, where they are others; what was saved of it is valid again."""
    if _unequal(x.detach().clone(), kept):
        _copy(x, kept)
    _core._stage_unwritten(x.detach(), version)


def _copy(place: Tensor, kept: Tensor) -> None:
    """Writes values; elements that share memory were one value, which may be written several times."""
    for axis, (size, stride) in enumerate(zip(place.shape, place.stride())):
        if size > 1 and stride == 0:
            place, kept = place.narrow(axis, 0, 1), kept.narrow(axis, 0, 1)
    try:
        place.detach().copy_(kept)
    except RuntimeError:
        if not place.ndim:
            raise
        # Rows that overlap, one after another.
        for row, values in zip(place, kept):
            _copy(row, values)


def _put_gradient(
    x: Tensor, slope: Tensor | None, kept: Tensor | None, version: int, requires_grad: bool
) -> None:
    if slope is not None and kept is not None:
        _write(slope, kept, version)
    # What requires none has none.
    if x.is_leaf and x.requires_grad is not requires_grad:
        x.requires_grad_(requires_grad)
    x.grad = slope


def _refill(place: Any, content: Any) -> None:
    """Gives a container its content back, where it is another."""
    if isinstance(place, dict):
        if len(place) != len(content) or any(place.get(key, place) is not x for key, x in content.items()):
            place.clear()
            place.update(content)
    elif [id(x) for x in place] != [id(x) for x in content]:
        place.clear()
        (place.update if isinstance(place, set) else place.extend)(content)


def _key(key: Any, i: int) -> str:
    """A key of a dictionary in a name; an object is told by its number."""
    return repr(key) if isinstance(key, _VALUES) else str(i)


def _keeps(value: Any) -> bool:
    """Whether attributes of an object are looked at: no functions, classes, modules, objects of Python."""
    kinds = type | types.ModuleType | types.FunctionType | types.MethodType
    return not isinstance(value, kinds) and package(type(value)) not in sys.stdlib_module_names - {"__main__"}
