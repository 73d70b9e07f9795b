"""Trees as PyTorch's programs take them apart: `wengert.tree` with its order of arguments, and None as a
leaf.

Leaves of a dict come in the order of its keys, sorted.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from wengert import tree
from wengert._core import TreeDef as TreeSpec

__all__ = [
    "TreeSpec",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_structure",
    "tree_unflatten",
]
__dir__ = __all__.copy

Pytree = Any
Test = Callable[[Any], bool] | None


def _stops(is_leaf: Test) -> Callable[[Any], bool]:
    """Whether a part is a leaf: what the caller says, or None."""
    return lambda x: x is None or (is_leaf is not None and is_leaf(x))


def tree_flatten(tree_: Pytree, is_leaf: Test = None) -> tuple[list[Any], TreeSpec]:
    """Returns the leaves of a tree, None among them, and its structure."""
    return tree.tree_flatten(tree_, _stops(is_leaf))


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Pytree:
    """Returns the tree of this structure with these leaves."""
    return tree.tree_unflatten(treespec, leaves)


def tree_leaves(tree_: Pytree, is_leaf: Test = None) -> list[Any]:
    """Returns the leaves of a tree."""
    return tree.tree_leaves(tree_, _stops(is_leaf))


def tree_iter(tree_: Pytree, is_leaf: Test = None) -> Iterator[Any]:
    """Yields the leaves of a tree."""
    yield from tree_leaves(tree_, is_leaf)


def tree_structure(tree_: Pytree, is_leaf: Test = None) -> TreeSpec:
    """Returns the structure of a tree."""
    return tree.tree_structure(tree_, _stops(is_leaf))


def tree_map(func: Callable[..., Any], tree_: Pytree, *rests: Pytree, is_leaf: Test = None) -> Pytree:
    """Returns the tree of `func` of the leaves, and of those of further trees of the same structure."""
    return tree.tree_map(func, tree_, *rests, is_leaf=_stops(is_leaf))


def tree_map_(func: Callable[..., Any], tree_: Pytree, *rests: Pytree, is_leaf: Test = None) -> Pytree:
    """Calls `func` as `tree_map` does; returns the tree itself."""
    tree_map(func, tree_, *rests, is_leaf=is_leaf)
    return tree_


def _chosen(kind: Any) -> Callable[[Any], bool]:
    if isinstance(kind, type | tuple):
        return lambda x: isinstance(x, kind)
    return kind


def tree_map_only(
    type_or_types_or_pred: Any, func: Any, tree_: Any = None, is_leaf: Test = None, **given: Any
) -> Any:
    """Returns the tree in which leaves of some types, or for which a test is true, are replaced by `func` of
    them."""
    wanted = _chosen(type_or_types_or_pred)
    return tree_map(lambda x: func(x) if wanted(x) else x, tree_, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, func: Any, tree_: Any = None, is_leaf: Test = None) -> Any:
    """Calls `func` as `tree_map_only` does; returns the tree itself."""
    tree_map_only(type_or_types_or_pred, func, tree_, is_leaf)
    return tree_


def tree_all(pred: Callable[[Any], bool], tree_: Pytree, is_leaf: Test = None) -> bool:
    """Whether a test is true for all leaves."""
    return all(map(pred, tree_iter(tree_, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree_: Pytree, is_leaf: Test = None) -> bool:
    """Whether a test is true for any leaf."""
    return any(map(pred, tree_iter(tree_, is_leaf)))


def tree_all_only(kind: Any, pred: Callable[[Any], bool], tree_: Pytree, is_leaf: Test = None) -> bool:
    """Whether a test is true for all leaves of some types."""
    return all(pred(x) for x in tree_iter(tree_, is_leaf) if isinstance(x, kind))


def tree_any_only(kind: Any, pred: Callable[[Any], bool], tree_: Pytree, is_leaf: Test = None) -> bool:
    """Whether a test is true for any leaf of some types."""
    return any(pred(x) for x in tree_iter(tree_, is_leaf) if isinstance(x, kind))


def register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]], unflatten_fn: Any, **_: Any
) -> None:
    """Makes `cls` a container: `flatten_fn(x)` returns children and context, of which
    `unflatten_fn(children, context)` makes an object.
    """
    tree.register_pytree_node(
        cls, flatten_fn, lambda context, children: unflatten_fn(list(children), context)
    )


def register_dataclass(cls: type, **_: Any) -> None:
    """Makes a dataclass a container of its fields."""
    tree.register_dataclass(cls)


# The older name.
_register_pytree_node = register_pytree_node
