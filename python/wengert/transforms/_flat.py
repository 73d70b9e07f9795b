"""Arguments and results of a transform as flat lists of tensors, and back into trees."""

import contextlib
import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

from wengert import _core
from wengert._core import Tensor
from wengert.tree import TreeDef, tree_flatten, tree_structure, tree_unflatten

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")
X = TypeVar("X")
Argnums = int | Sequence[int]
F = TypeVar("F", bound=Function)


def as_jitted(function: Any) -> Any:
    """The function, if it is a jitted one; otherwise None."""
    return function if isinstance(function, _core._FastPath) else None


def of_staged(transform: F) -> F:
    """A transform whose function, if the first argument is a jitted one, is jitted as a whole. It is the same
    one at each call with the same settings, so that programs are kept.
    """

    @functools.wraps(transform)
    def made(function: Any, *settings: Any, **named: Any) -> Any:
        if (jitted := as_jitted(function)) is not None:
            return jitted._derived(transform, settings, named)
        return transform(function, *settings, **named)

    return cast(F, made)


def as_leaf(x: Any, name: str, what: Callable[[], str]) -> Tensor:
    """A leaf as a tensor: a number, an array, or a tensor of another library."""
    if isinstance(x, Tensor):
        return x
    # A container of a class that is not registered would become one tensor of another structure.
    if not isinstance(x, Iterable) or hasattr(x, "__array__") or hasattr(x, "__dlpack__"):
        with contextlib.suppress(TypeError, ValueError):
            return _core.as_tensor(x)
    kind = type(x)
    hint = getattr(x, "_no_tensor", "")
    if not hint and kind.__module__ != "builtins":
        hint = f"; wengert.tree.register_pytree_node makes a container of the class {kind.__name__}"
    raise TypeError(f"{name}: {what()} is {kind.__name__}, expected a tensor or a tree of tensors{hint}")


def place(tree: Any, i: int, what: str) -> str:
    """What leaf `i` of a tree is called in messages: `an argument, [0]["w"],`."""
    path = _path(tree, i)
    return f"{what}, {path}," if path else what


def _path(tree: Any, i: int) -> str:
    """Where leaf `i` of a tree is; of one argument, where it is in that."""
    path = tree_structure(tree)._paths()[i]
    return path[len("[0]") :] if type(tree) is tuple and len(tree) == 1 else path


def leaves_of(tree: Any, name: str, what: str) -> tuple[list[Tensor], TreeDef]:
    leaves, structure = tree_flatten(tree)
    if all(isinstance(x, Tensor) for x in leaves):
        return leaves, structure
    return [as_leaf(x, name, partial(place, tree, i, what)) for i, x in enumerate(leaves)], structure


def flatten_result(name: str) -> Callable[[Any], tuple[list[Tensor], TreeDef]]:
    """What takes the results of functions apart for the transform `name`."""
    return lambda result: leaves_of(result, name, "the function's result")


def check_float(leaves: list[Tensor], name: str, tree: Any) -> None:
    """Raises for a leaf of `tree` that has no derivatives."""
    for i, x in enumerate(leaves):
        if not x.dtype.is_differentiable:
            path = _path(tree, i)
            raise TypeError(
                f"{name}: only floating point inputs have derivatives, got {x.dtype!r} of shape "
                f"{tuple(x.shape)}"
                f"{f' at {path}' if path else ''}; convert it with .float(), or leave it out of argnums"
            )


def select(args: tuple[Any, ...], argnums: Argnums, name: str) -> tuple[tuple[int, ...], Any]:
    """The positions to differentiate, and the arguments there (a tuple only where `argnums` is one)."""
    many = not isinstance(argnums, int)
    try:
        given = (argnums,) if isinstance(argnums, int) else argnums
        positions = tuple(operator.index(i) for i in given)
    except TypeError:
        raise TypeError(
            f"{name}: argnums is an integer, the position of an argument, or a sequence of them, got "
            f"{argnums!r}"
        ) from None
    for i in positions:
        if not -len(args) <= i < len(args):
            raise ValueError(
                f"{name}: argnums names argument {i}, but {len(args)} positional arguments were given; what "
                "is differentiated is given by position"
            )
    positions = tuple(i % len(args) for i in positions)
    if len(set(positions)) < len(positions):
        raise ValueError(f"{name}: argnums names an argument twice: {argnums}")
    chosen = tuple(args[i] for i in positions)
    return positions, chosen if many else chosen[0]


def is_position(argnums: Argnums) -> bool:
    """Whether `argnums` is one position, as the core takes it."""
    return type(argnums) is int and abs(argnums) < 1 << 31


def check_function(function: Any, name: str, what: str = "") -> None:
    """Raises unless the first argument of a transform, or that which is named, is something to call."""
    if not callable(function):
        a_function = f"a function as {what}" if what else "a function"
        raise TypeError(f"{name}: {a_function} expected, got {type(function).__name__}")


def check_count(name: str, what: str, count: int | None, least: int) -> None:
    """Raises unless a count is given as an integer of at least `least`, or left out."""
    if count is not None and (not isinstance(count, int) or count < least):
        raise ValueError(f"{name}: {what} is an integer of at least {least}, or None, got {count!r}")


def replaced(args: tuple[Any, ...], positions: tuple[int, ...], values: Any, many: bool) -> list[Any]:
    out = list(args)
    for i, value in zip(positions, values if many else (values,)):
        out[i] = value
    return out


class Flat:
    """A function of trees as a function of flat lists; remembers the structure of the result.

    Tensors in the auxiliary data are outputs like others to the core, so that they leave the level of the
    transform as values of the level below, with the history that they have there.
    """

    __slots__ = ("aux", "aux_structure", "call", "count", "has_aux", "name", "out")

    def __init__(self, call: Callable[[list[Tensor]], Any], has_aux: bool, name: str) -> None:
        self.call = call
        self.has_aux = has_aux
        self.name = name
        self.out: TreeDef | None = None
        self.count = 0
        self.aux: list[Any] = []
        self.aux_structure: TreeDef | None = None

    def __call__(self, leaves: list[Tensor]) -> list[Tensor]:
        result = self.call(leaves)
        if not self.has_aux:
            out, self.out = leaves_of(result, self.name, "the function's result")
            self.count = len(out)
            return out
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(
                f"{self.name}: with has_aux=True the function returns a pair (output, auxiliary data)"
            )
        result, aux = result
        out, self.out = leaves_of(result, self.name, "the function's result")
        self.count = len(out)
        self.aux, self.aux_structure = tree_flatten(aux)
        return out + [x for x in self.aux if isinstance(x, Tensor)]

    def take_aux(self, out: list[Tensor]) -> Any:
        """The auxiliary data, from all that the core returned."""
        if self.aux_structure is None:
            return None
        values = iter(out[self.count :])
        full = [next(values) if isinstance(x, Tensor) else x for x in self.aux]
        self.aux = []
        return tree_unflatten(self.aux_structure, full)


def of_arguments(
    function: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    argnums: Argnums,
    has_aux: bool,
    name: str,
) -> tuple[Flat, list[Tensor], TreeDef]:
    """`function` of the leaves of the arguments to differentiate, these leaves, and their structure."""
    positions, chosen = select(args, argnums, name)
    many = not isinstance(argnums, int)
    leaves, structure = leaves_of(chosen, name, "an argument")
    check_float(leaves, name, chosen)

    def call(flat: list[Tensor]) -> Any:
        return function(*replaced(args, positions, tree_unflatten(structure, flat), many), **kwargs)

    return Flat(call, has_aux, name), leaves, structure


def name_of(function: Function) -> str:
    return getattr(function, "__name__", type(function).__name__)
