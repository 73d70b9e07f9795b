"""Pytrees: nested tuples, lists, dicts, named tuples and dataclasses of anything, taken apart and put together again.

Transforms differentiate functions of such trees; their leaves are whatever is no container. `None` is an empty tree.
What a program has registered with `optree` is a container here too.
"""

import dataclasses
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

from wengert._core import Tensor

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

Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
Unflatten = Callable[[Any, Any], Any]

_REGISTRY: dict[type, tuple[Flatten, Unflatten]] = {}


class TreeDef:
    """The structure of a tree, without its leaves."""

    __slots__ = ("children", "kind", "num_leaves", "order", "static")

    def __init__(
        self, kind: type | None, static: Any, children: tuple["TreeDef", ...], order: list[Any] | None
    ) -> None:
        """A node of class `kind`; None stands for a leaf. `order` is that of the keys of a dict, whose children
        are sorted by key.
        """
        self.kind = kind
        self.static = static
        self.children = children
        self.order = order
        self.num_leaves: int = 1 if kind is None else sum(child.num_leaves for child in children)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same structure."""
        return self is other or (
            isinstance(other, TreeDef)
            and self.kind is other.kind
            and self.static == other.static
            and self.children == other.children
        )

    def __hash__(self) -> int:
        """Equal structures have equal hashes."""
        return hash((self.kind, self.num_leaves, len(self.children)))

    def __repr__(self) -> str:
        """The tree with `*` for leaves."""
        return f"TreeDef({tree_unflatten(self, [_Star()] * self.num_leaves)!r})"


class _Star:
    def __repr__(self) -> str:
        return "*"


_DICTS = (dict, OrderedDict, defaultdict)
# Classes of leaves, for speed.
_LEAVES = (Tensor, int, float, bool, str, complex)
_LEAF = TreeDef(None, None, (), None)
_NONE = TreeDef(type(None), None, (), None)


def register_pytree_node(kind: type, flatten: Flatten, unflatten: Unflatten) -> None:
    """Makes `kind` a container of trees.

    Args:
        kind: the class.
        flatten: from an object to its children and whatever else is needed to rebuild it, which must compare with `==`.
        unflatten: from the latter and new children to an object.
    """
    if kind in _REGISTRY:
        raise ValueError(f"register_pytree_node: {kind.__name__} is registered already")
    _REGISTRY[kind] = (flatten, unflatten)


def register_dataclass(kind: type) -> type:
    """Makes the fields of a dataclass (decorator of the class) its children.

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
    names = tuple(field.name for field in dataclasses.fields(kind))
    register_pytree_node(
        kind,
        lambda obj: (tuple(getattr(obj, name) for name in names), None),
        lambda _, children: kind(**dict(zip(names, children))),
    )
    return kind


def _dataclass(kind: type) -> tuple[Flatten, Unflatten] | None:
    """How the fields of a dataclass are its children; None for another class."""
    if not dataclasses.is_dataclass(kind):
        return None
    names = tuple(field.name for field in dataclasses.fields(kind))

    def unflatten(_: Any, children: Iterable[Any]) -> Any:
        made = object.__new__(kind)
        for name, child in zip(names, children):
            object.__setattr__(made, name, child)
        return made

    return lambda obj: (tuple(getattr(obj, name) for name in names), names), unflatten


def _registered(kind: type) -> tuple[Flatten, Unflatten] | None:
    """How a class that is no container of Python is taken apart: as registered here or with `optree`, as a dataclass;
    None for a leaf.
    """
    found = _REGISTRY.get(kind)
    if found is None and (optree := sys.modules.get("optree")) is not None:
        entry = optree.register_pytree_node.get(kind)
        # The kinds that `optree` has of itself are those that have a branch here.
        if entry is not None and entry.kind.name == "CUSTOM":
            found = (lambda obj: entry.flatten_func(obj)[:2], entry.unflatten_func)
    return found or _dataclass(kind)


def _keys(mapping: dict[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:
        return list(mapping)


def _one_level(tree: Any) -> tuple[type, Any, Iterable[Any]] | None:
    """Class, static part and children of a container; None for a leaf."""
    kind = type(tree)
    if kind is tuple or kind is list:
        return kind, len(tree), tree
    if kind is dict:
        keys = _keys(tree)
        return kind, tuple(keys), [tree[key] for key in keys]
    if kind in _LEAVES or isinstance(tree, Tensor):
        return None
    if kind is OrderedDict:
        return kind, tuple(tree), list(tree.values())
    if kind is defaultdict:
        keys = _keys(tree)
        return kind, (tree.default_factory, tuple(keys)), [tree[key] for key in keys]
    if kind is deque:
        return kind, (len(tree), tree.maxlen), list(tree)
    if (way := _registered(kind)) is not None:
        children, static = way[0](tree)
        return kind, static, children
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return kind, len(tree), tree
    return None


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeDef:
    if is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return _LEAF
    if tree is None:
        return _NONE
    level = _one_level(tree)
    if level is None:
        leaves.append(tree)
        return _LEAF
    kind, static, children = level
    order = list(tree) if kind is dict or kind is defaultdict else None
    return TreeDef(kind, static, tuple(_flatten(child, leaves, is_leaf) for child in children), order)


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeDef]:
    """Returns the leaves of a tree from left to right (dicts by key, rebuilt in the order that they have),
    and its structure.

    Example:
        >>> wg.tree.tree_flatten({"b": 2, "a": (1, None)})[0]
        [1, 2]
    """
    leaves: list[Any] = []
    structure = _flatten(tree, leaves, is_leaf)
    return leaves, structure


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Returns the leaves of a tree from left to right.

    Example:
        >>> wg.tree.tree_leaves({"a": 1, "b": [2, 3]})
        [1, 2, 3]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeDef:
    """Returns the structure of a tree.

    Example:
        >>> wg.tree.tree_structure({"a": 1, "b": [2, 3]})
        TreeDef({'a': *, 'b': [*, *]})
    """
    return tree_flatten(tree, is_leaf)[1]


def _build(structure: TreeDef, leaves: Iterable[Any]) -> Any:
    kind = structure.kind
    if kind is None:
        return next(leaves)  # type: ignore[call-overload]
    if kind is type(None):
        return None
    children = [_build(child, leaves) for child in structure.children]
    if kind is tuple:
        return tuple(children)
    if kind is list:
        return children
    if kind is OrderedDict:
        return OrderedDict(zip(structure.static, children))
    if kind is dict or kind is defaultdict:
        keys = structure.static if kind is dict else structure.static[1]
        found = dict(zip(keys, children))
        ordered = {key: found[key] for key in structure.order or keys}
        return ordered if kind is dict else defaultdict(structure.static[0], ordered)
    if kind is deque:
        return deque(children, structure.static[1])
    if (way := _registered(kind)) is not None:
        return way[1](structure.static, children)
    return kind(*children)


def paths(tree: Any) -> list[str]:
    """Where the leaves of a tree are, from left to right: `["w"][0].scale`; "" for a leaf alone."""
    level = None if tree is None else _one_level(tree)
    if level is None:
        return [] if tree is None else [""]
    kind, static, children = level
    if kind in _DICTS:
        steps = [f"[{key!r}]" for key in (static[1] if kind is defaultdict else static)]
    elif hasattr(kind, "_fields"):
        steps = [f".{name}" for name in kind._fields]
    elif dataclasses.is_dataclass(kind):
        steps = [f".{field.name}" for field in dataclasses.fields(kind)]
    else:
        children = list(children)
        steps = [f"[{i}]" for i in range(len(children))]
    return [step + rest for step, child in zip(steps, children) for rest in paths(child)]


def tree_unflatten(structure: TreeDef, leaves: Iterable[Any]) -> Any:
    """Builds the tree of this structure with these leaves.

    Example:
        >>> leaves, treedef = wg.tree.tree_flatten({"a": 1, "b": [2, 3]})
        >>> wg.tree.tree_unflatten(treedef, [10, 20, 30])
        {'a': 10, 'b': [20, 30]}
    """
    leaves = list(leaves)
    if len(leaves) != structure.num_leaves:
        raise ValueError(
            f"tree_unflatten: {len(leaves)} leaves given for a structure of {structure.num_leaves}"
        )
    return _build(structure, iter(leaves))


def tree_map(
    function: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Applies `function` to corresponding leaves of trees of one structure, as a tree.

    Example:
        >>> wg.tree.tree_map(lambda a, b: a + b, {"w": 1}, {"w": 2})
        {'w': 3}
    """
    leaves, structure = tree_flatten(tree, is_leaf)
    columns = [leaves]
    for other in rest:
        more, shape = tree_flatten(other, is_leaf)
        if shape != structure:
            raise ValueError(f"tree_map: structures differ: {structure} and {shape}")
        columns.append(more)
    return tree_unflatten(structure, [function(*row) for row in zip(*columns)])


def flatten_prefix(prefix: Any, structure: TreeDef, name: str) -> list[Any]:
    """One entry per leaf of `structure`, from a tree that may stop early: an entry covers all leaves below it.

    Containers of both must be of one class and have the same keys; dicts of any class correspond by their keys.
    """
    out: list[Any] = []
    if not _spread(prefix, structure, out):
        raise ValueError(
            f"{name}: {prefix!r} does not fit the structure {structure}; give one entry for all of it, or containers "
            "of the same classes with the same keys"
        )
    return out


# No closure of `flatten_prefix`: one that calls itself is a cycle, and would hold its leaves until the next collection.
def _spread(prefix: Any, at: TreeDef, out: list[Any]) -> bool:
    """Adds the entries of `prefix` for the leaves of `at`; False if they do not fit."""
    if prefix is None or isinstance(prefix, int) or at.kind is None:
        out.extend([prefix] * at.num_leaves)
        return True
    level = _one_level(prefix)
    if level is None:
        return False
    kind, static, children = level
    if kind in _DICTS and at.kind in _DICTS:
        keys = at.static[1] if at.kind is defaultdict else at.static
        if prefix.keys() != set(keys):
            return False
        children = [prefix[key] for key in keys]
    elif kind is not at.kind or static != at.static:
        return False
    return all(_spread(child, below, out) for child, below in zip(children, at.children))
