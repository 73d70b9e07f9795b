"""Pytrees: nested tuples, lists, dicts, named tuples and dataclasses of anything, taken apart and put
together again.

Transforms differentiate functions of such trees; their leaves are whatever is no container. `None` is an
empty tree. What a program has registered with `optree` is a container here too.
"""

import builtins
import functools
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, overload

from wengert._core import TreeDef, tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten

__all__ = [
    "TreeDef",
    "all",
    "flatten",
    "leaves",
    "map",
    "reduce",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "structure",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_reduce",
    "tree_structure",
    "tree_unflatten",
    "unflatten",
]
__dir__ = __all__.copy

C = TypeVar("C", bound=type)
Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
Unflatten = Callable[[Any, Any], Any]
Way = tuple[Flatten, Unflatten]

# JAX's names: those in `jax.tree`, and of the module itself.
sys.modules["wengert.tree_util"] = sys.modules[__name__]
flatten, leaves, map, structure, unflatten = (
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
)

# What the core asks for each class that is no container of Python's own.
_REGISTRY: dict[type, Way] = {}
_DATACLASSES: weakref.WeakKeyDictionary[type, Way] = weakref.WeakKeyDictionary()
# The fields of a class that are children, and the static ones, where `register_dataclass` was told.
_CHOSEN: weakref.WeakKeyDictionary[type, tuple[list[str], list[str]]] = weakref.WeakKeyDictionary()


class _Star:
    """A leaf in the text of a structure."""

    def __repr__(self) -> str:
        return "*"


_STAR = _Star()


def register_pytree_node(kind: type, flatten: Flatten, unflatten: Unflatten) -> None:
    """Makes `kind` a container of trees.

    Args:
        kind: the class.
        flatten: from an object to its children and whatever else is needed to rebuild it, which must compare
            with `==`.
        unflatten: from the latter and new children to an object.

    Raises:
        ValueError: for a class that is registered already.
    """
    if not isinstance(kind, type) or not callable(flatten) or not callable(unflatten):
        raise TypeError(f"register_pytree_node: a class and two functions expected, got {kind!r}")
    if kind in (tuple, list, dict, type(None)):
        raise ValueError(f"register_pytree_node: {kind.__name__} is a container already, or none")
    if kind in _REGISTRY:
        raise ValueError(f"register_pytree_node: {kind.__name__} is registered already")
    _REGISTRY[kind] = (flatten, unflatten)


def register_pytree_node_class(cls: C) -> C:
    """Makes a class a container of trees (decorator): its methods take its objects apart and make them.

    Args:
        cls: a class with the method `tree_flatten()`, which returns children and whatever else is needed, and
            the class method `tree_unflatten(rest, children)`.

    Example:
        >>> @wg.tree.register_pytree_node_class
        ... class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        ...     def tree_flatten(self):
        ...         return (self.a, self.b), None
        ...     @classmethod
        ...     def tree_unflatten(cls, rest, children):
        ...         return cls(*children)
        >>> wg.tree.leaves(Pair(1, 2))
        [1, 2]
    """
    made: Any = cls
    register_pytree_node(cls, made.tree_flatten, made.tree_unflatten)
    return cls


def tree_reduce(function: Callable[[Any, Any], Any], tree: Any, *initializer: Any) -> Any:
    """Combines the leaves of a tree, from left to right, by a function of two.

    Args:
        initializer: what stands before the first leaf; without it, a tree without leaves raises TypeError.

    Example:
        >>> wg.tree.reduce(lambda a, b: a + b, {"x": 1, "y": (2, 3)}, 0)
        6
    """
    return functools.reduce(function, tree_leaves(tree), *initializer)


reduce = tree_reduce


def all(tree: Any) -> bool:
    """Tells whether all leaves are true.

    Example:
        >>> wg.tree.all({"x": True, "y": (1, 0)})
        False
    """
    return builtins.all(tree_leaves(tree))


@overload
def register_dataclass(
    kind: C, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] = ()
) -> C: ...
@overload
def register_dataclass(
    kind: None = None, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] = ()
) -> Callable[[C], C]: ...
def register_dataclass(
    kind: Any = None, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] = ()
) -> Any:
    """Makes the fields of a dataclass its children, and its constructor what rebuilds it (decorator of the
    class).

    A dataclass that is not registered is a container as well, rebuilt without its constructor. In both, a
    field with `metadata={"static": True}` is no child but part of the structure, which must compare with
    `==`.

    Args:
        kind: the class; without it, a decorator is returned.
        data_fields: the fields that are children; all but the static ones by default.
        meta_fields: the fields that are static.

    Example:
        >>> import dataclasses
        >>> @dataclasses.dataclass
        ... class Point:
        ...     x: float
        ...     y: float
        ...
        >>> Point = wg.tree.register_dataclass(Point)
        >>> wg.tree.tree_map(lambda v: 2 * v, Point(1.0, 2.0))
        Point(x=2.0, y=4.0)
    """
    if kind is None:
        return functools.partial(register_dataclass, data_fields=data_fields, meta_fields=meta_fields)
    if not _has_fields(kind):
        raise TypeError(f"register_dataclass: a dataclass expected, got {kind!r}")
    if data_fields is not None or meta_fields:
        every = [name for names in _fields(kind) for name in names]
        chosen = (
            [name for name in every if name not in meta_fields] if data_fields is None else [*data_fields]
        )
        if wrong := {*chosen, *meta_fields} - {*every}:
            raise ValueError(f"register_dataclass: {kind.__name__} has no fields {sorted(wrong)}")
        _CHOSEN[kind] = chosen, [*meta_fields]
    flatten, _ = _of_fields(kind)
    register_pytree_node(kind, flatten, lambda static, children: kind(**_named(kind, static, children)))
    return kind


def _has_fields(kind: Any) -> bool:
    """Whether this is a dataclass or a class of `attrs`; the module `dataclasses` is slow to import."""
    return isinstance(kind, type) and (
        hasattr(kind, "__dataclass_fields__") or hasattr(kind, "__attrs_attrs__")
    )


def _fields(kind: type) -> tuple[list[str], list[str]]:
    """The names of the fields that are children, and of those that are static."""
    if kind in _CHOSEN:
        return _CHOSEN[kind]
    if hasattr(kind, "__dataclass_fields__"):
        import dataclasses

        named = [(field.name, field.metadata) for field in dataclasses.fields(kind)]
    else:
        named = [(field.name, field.metadata) for field in kind.__attrs_attrs__]  # type: ignore[attr-defined]
    static = [name for name, metadata in named if metadata.get("static")]
    return [name for name, _ in named if name not in static], static


def _named(kind: type, static: tuple[Any, ...], children: Iterable[Any]) -> dict[str, Any]:
    """The fields of an object, by name."""
    own, fixed = _fields(kind)
    return dict(zip([*own, *fixed], [*children, *static]))


def _of_fields(kind: type) -> Way:
    """How an object with fields is taken apart, and made without its constructor, which may want other
    leaves."""
    own, fixed = _fields(kind)

    def flatten(obj: Any) -> tuple[Iterable[Any], Any]:
        return [getattr(obj, name) for name in own], tuple(getattr(obj, name) for name in fixed)

    def unflatten(static: Any, children: Iterable[Any]) -> Any:
        made: Any = object.__new__(kind)
        for name, value in zip([*own, *fixed], [*children, *static]):
            object.__setattr__(made, name, value)
        return made

    return flatten, unflatten


def _way(kind: type) -> Way | None:
    """How a class is taken apart that is registered with `optree`, a dataclass, or made by `attrs`; None for
    a leaf."""
    if (optree := sys.modules.get("optree")) is not None:
        entry = optree.register_pytree_node.get(kind)
        # The kinds that `optree` has of itself are those that the core knows.
        if entry is not None and entry.kind.name == "CUSTOM":
            return (lambda obj: entry.flatten_func(obj)[:2]), entry.unflatten_func
    if not _has_fields(kind):
        return None
    if kind not in _DATACLASSES:
        _DATACLASSES[kind] = _of_fields(kind)
    return _DATACLASSES[kind]


def _names(kind: type) -> list[str] | None:
    """What leads from an object to its children, if they have names."""
    if not _has_fields(kind):
        return None
    return [f".{name}" for name in _fields(kind)[0]]
