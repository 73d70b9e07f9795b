"""Pytrees: nested tuples, lists, dicts, named tuples and dataclasses of anything, taken apart and put together again.

Transforms differentiate functions of such trees; their leaves are whatever is no container. `None` is an empty tree.
What a program has registered with `optree` is a container here too.
"""

import dataclasses
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from wengert._core import TreeDef, tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten

__all__ = [
    "TreeDef",
    "register_dataclass",
    "register_pytree_node",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_structure",
    "tree_unflatten",
]

C = TypeVar("C", bound=type)
Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
Unflatten = Callable[[Any, Any], Any]
Way = tuple[Flatten, Unflatten]

# What the core asks for each class that is no container of Python's own.
_REGISTRY: dict[type, Way] = {}
_DATACLASSES: weakref.WeakKeyDictionary[type, Way] = weakref.WeakKeyDictionary()


class _Star:
    """A leaf in the text of a structure."""

    def __repr__(self) -> str:
        return "*"


_STAR = _Star()


def register_pytree_node(kind: type, flatten: Flatten, unflatten: Unflatten) -> None:
    """Makes `kind` a container of trees.

    Args:
        kind: the class.
        flatten: from an object to its children and whatever else is needed to rebuild it, which must compare with `==`.
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


def register_dataclass(kind: C) -> C:
    """Makes the fields of a dataclass its children, and its constructor what rebuilds it (decorator of the class).

    A dataclass that is not registered is a container as well, rebuilt without its constructor. In both, a field with
    `metadata={"static": True}` is no child but part of the structure, which must compare with `==`.

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
    if not (dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__")):
        raise TypeError(f"register_dataclass: a dataclass expected, got {kind!r}")
    flatten, _ = _of_fields(kind)
    register_pytree_node(kind, flatten, lambda static, children: kind(**_named(kind, static, children)))
    return kind


def _fields(kind: type) -> tuple[list[str], list[str]]:
    """The names of the fields that are children, and of those that are static."""
    if dataclasses.is_dataclass(kind):
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
    """How an object with fields is taken apart, and made without its constructor, which may want other leaves."""
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
    """How a class is taken apart that is registered with `optree`, a dataclass, or made by `attrs`; None for a leaf."""
    if (optree := sys.modules.get("optree")) is not None:
        entry = optree.register_pytree_node.get(kind)
        # The kinds that `optree` has of itself are those that the core knows.
        if entry is not None and entry.kind.name == "CUSTOM":
            return (lambda obj: entry.flatten_func(obj)[:2]), entry.unflatten_func
    if not (dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__")):
        return None
    if kind not in _DATACLASSES:
        _DATACLASSES[kind] = _of_fields(kind)
    return _DATACLASSES[kind]


def _names(kind: type) -> list[str] | None:
    """What leads from an object to its children, if they have names."""
    if not (dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__")):
        return None
    return [f".{name}" for name in _fields(kind)[0]]


def __dir__() -> list[str]:
    """What is public."""
    return __all__
