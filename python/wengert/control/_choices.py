"""What decides: predicates and indices, and values chosen by them where the examples of a batch differ."""

import dis
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert import _core
from wengert._core import Tensor
from wengert.autograd.function import Function, VmapInfo
from wengert.tree import tree_map

__all__ = ["anywhere", "chosen", "entered", "position", "truth", "with_entered_closure"]

# Names of methods that change what they are called on; those of tensors end with an underscore.
_CHANGING = {
    *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse"),
    *("setdefault", "sort", "update"),
}

_SIGNED = (_core.int8, _core.int16, _core.int32, _core.int64)
_UNSIGNED = (_core.uint8, _core.uint16, _core.uint32, _core.uint64)


class _Anywhere(Function):
    """Whether a truth value holds for any example of the batches around it: one value for all of them.

    `seen` gets an entry for each batch.
    """

    @staticmethod
    def forward(x: Tensor, seen: list[bool]) -> Tensor:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> None:
        return None

    @staticmethod
    def vmap(info: VmapInfo, in_dims: Any, x: Tensor, seen: list[bool]) -> Any:
        seen.append(True)
        return _Anywhere.apply(x.any(in_dims[0]), seen), None


def anywhere(flag: bool | Tensor) -> bool:
    """Whether a truth value holds for any example."""
    return flag if isinstance(flag, bool) else bool(_Anywhere.apply(flag, []))


def _is_batched(x: Tensor) -> bool:
    """Whether the value may differ between the examples of a batch."""
    seen: list[bool] = []
    _Anywhere.apply(x, seen)
    return bool(seen)


def _described(x: Any) -> str:
    if isinstance(x, Tensor):
        return f"{x.dtype!r} of shape {tuple(x.shape)}"
    return f"{type(x).__name__} {x!r}"


def truth(name: str, what: str, flag: Any, read: bool = True) -> bool | Tensor:
    """A predicate as a truth value of Python, or as a tensor where the examples of a batch differ, or where
    it is not to be read.

    Raises:
        TypeError: it is neither a bool nor a bool tensor of shape ().
    """
    if isinstance(flag, bool):
        return flag
    given = flag
    if isinstance(flag, (np.bool_, np.ndarray)):
        flag = _core.as_tensor(flag, device="cpu")
    if not isinstance(flag, Tensor) or flag.dtype != _core.bool or flag.ndim:
        hint = "compare it with a number, as in x > 0"
        if isinstance(flag, Tensor) and flag.dtype == _core.bool:
            hint = "reduce it with .all() or .any()"
        raise TypeError(
            f"{name}: {what} is a bool or a bool tensor of shape (), got {_described(given)}; {hint}"
        )
    return _read(bool, flag) if read else flag


def position(name: str, what: str, index: Any, read: bool = True) -> int | Tensor:
    """An integer of Python, or a tensor of one where the examples of a batch differ, or where it is not to be
    read.

    Raises:
        TypeError: it is neither an integer nor an integer tensor of shape ().
    """
    if type(index) is int:
        return index
    given = index
    if isinstance(index, (np.integer, np.ndarray)):
        index = _core.as_tensor(index, device="cpu")
    if not isinstance(index, Tensor) or index.dtype not in (*_SIGNED, *_UNSIGNED) or index.ndim:
        raise TypeError(
            f"{name}: {what} is an integer or an integer tensor of shape (), got {_described(given)}"
        )
    return _read(int, index) if read else index


def _read(kind: Callable[[Any], Any], x: Tensor) -> Any:
    """The value of a tensor of the right dtype and shape; only that of a batch cannot be read."""
    if _core._is_staging() and _is_batched(x):
        # To try would end the program that is written down.
        return x
    try:
        return kind(x)
    except TypeError:
        return x


def entered(flag: Tensor, values: Any) -> Any:
    """What a function is given that counts only where the flag holds: elsewhere tensors have no derivative,
    as one that is not finite may not become 0 in all orders.
    """

    return tree_map(functools.partial(_enter, flag), values)


def _enter(flag: Tensor, x: Any) -> Any:
    if not isinstance(x, Tensor) or (not x.dtype.is_floating_point and not x.dtype.is_complex):
        return x
    return _core.where(flag, x, x.detach())


# What changes an object that a variable holds.
_STORES = {"STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"}

# Each example would have its own copy of more elements.
_SMALL = 4096


def with_entered_closure(flag: Tensor, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with the variables of its closure as `entered` gives them, where it only reads them:
    small tensors that are differentiated, in lists, tuples and dictionaries too, and what functions among
    them hold so.
    """
    return _with_cells(flag, function, {})


def _with_cells(
    flag: Tensor, function: Callable[..., Any], known: dict[int, types.CellType]
) -> Callable[..., Any]:
    if isinstance(function, functools.partial):
        inner, args, kwargs = function.func, function.args, function.keywords
        return functools.partial(
            _with_cells(flag, inner, known), *_entered_value(flag, args), **_entered_value(flag, kwargs)
        )
    if not isinstance(function, types.FunctionType) or not function.__closure__:
        return function
    stored, changes = _changes_of(function.__code__)
    if changes:
        return function
    names = function.__code__.co_freevars
    cells = tuple(
        cell if name in stored else _entered_cell(flag, cell, known)
        for name, cell in zip(names, function.__closure__)
    )
    if all(new is old for new, old in zip(cells, function.__closure__)):
        return function
    made = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, cells
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    return made


def _entered_cell(flag: Tensor, cell: types.CellType, known: dict[int, types.CellType]) -> types.CellType:
    if id(cell) in known:
        return known[id(cell)]
    try:
        content = cell.cell_contents
    except ValueError:
        return cell
    if isinstance(content, types.FunctionType | functools.partial):
        # It may name itself.
        made = known[id(cell)] = types.CellType()
        made.cell_contents = _with_cells(flag, content, known)
    else:
        value = _entered_value(flag, content)
        made = known[id(cell)] = cell if value is content else types.CellType(value)
    return made


def _entered_value(flag: Tensor, value: Any) -> Any:
    """What is differentiated of it entered; itself if nothing is."""
    if isinstance(value, Tensor):
        is_near = value.device == flag.device and value.numel() <= _SMALL
        counts = is_near and _core._is_differentiated(value)
        return _enter(flag, value) if counts else value
    if type(value) is dict:
        items = {key: _entered_value(flag, x) for key, x in value.items()}
        return value if all(items[key] is x for key, x in value.items()) else items
    if type(value) in (list, tuple):
        parts = [_entered_value(flag, x) for x in value]
        return value if all(new is x for new, x in zip(parts, value)) else type(value)(parts)
    return value


@functools.lru_cache(maxsize=1024)
def _changes_of(code: types.CodeType) -> tuple[frozenset[str], bool]:
    """The variables that code or a function in it sets, and whether it may change what variables hold."""
    stored, changes = set(), False
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_DEREF", "DELETE_DEREF"):
            stored.add(step.argval)
        changes = changes or step.opname in _STORES
    changes = changes or any(x in _CHANGING or (x.endswith("_") and x[:1] != "_") for x in code.co_names)
    keywords = {x for names in code.co_consts if isinstance(names, tuple) for x in names}
    changes = changes or bool(keywords & {"out", "inplace"})
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more, also = _changes_of(inner)
            stored, changes = stored | more, changes or also
    return frozenset(stored), changes


def chosen(flag: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """`first` where the flag holds, `second` elsewhere; what both have in common is left as it is."""
    return first if first is second else _core.where(flag, first, second)
