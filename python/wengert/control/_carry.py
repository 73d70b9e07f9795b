"""Trees that must stay of one kind: what a loop carries from step to step, and the results of branches."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wengert import _core
from wengert._core import ShapeError, Tensor
from wengert.transforms._flat import leaves_of
from wengert.tree import TreeDef, tree_flatten, tree_structure, tree_unflatten

__all__ = ["Carry", "Kind", "alike", "compare", "kind_of", "leaves_like", "settled"]

Leaves = list[Tensor]
_NUMBERS = (int, float, complex)
_LEAF = tree_structure(0)


class _Again(Exception):
    """A number in the first carry needs another dtype or device."""


def _is_number(x: Any) -> bool:
    """Whether it is a number of Python, whose dtype is that of what it meets; a bool is none."""
    return type(x) in _NUMBERS


def _fits(number: Any, dtype: Any) -> bool:
    """Whether a number takes this dtype without a loss."""
    return _core.result_type(_core.zeros((), dtype=dtype), number) == dtype


class Kind(NamedTuple):
    """What `compare` looks at in a tensor. It has no history: that may hold the step, and the step this
    object, which would be a cycle.
    """

    dtype: Any
    shape: Any
    device: Any
    ndim: int
    is_gpu: bool


def kind_of(x: Tensor) -> Kind:
    return Kind(x.dtype, x.shape, x.device, x.ndim, x.is_gpu)


def leaves_like(tree: Any, like: Sequence[Tensor | Kind], name: str, what: str) -> tuple[Leaves, TreeDef]:
    """The leaves and the structure of a tree; numbers in it take the dtypes of the tensors `like`.

    Raises:
        TypeError: a leaf is neither a tensor nor a number.
    """
    if isinstance(tree, Tensor):
        return [tree], _LEAF
    leaves, structure = tree_flatten(tree)
    if all(isinstance(x, Tensor) for x in leaves):
        return leaves, structure
    if len(leaves) == len(like):
        leaves = [
            _core.tensor(x, dtype=y.dtype, device=y.device)
            if _is_number(x) and not y.ndim and _fits(x, y.dtype)
            else x
            for x, y in zip(leaves, like)
        ]
    return leaves_of(tree_unflatten(structure, leaves), name, what)


def compare(
    name: str,
    leaves: Leaves,
    like: Sequence[Tensor | Kind],
    structure: TreeDef,
    found: TreeDef,
    words: tuple[str, str, str, str],
) -> None:
    """Raises unless the leaves have the structure, shapes, dtypes and devices of those that they are to be
    `like`.

    `words` say what the two are and what to do: `("the carry", "was", "after a step it is", "each step …")`.
    """
    what, was, now, hint = words
    if found != structure:
        raise ValueError(f"{name}: {what} {was} {structure}, {now} {found}; {hint}")
    for i, (x, y) in enumerate(zip(leaves, like)):
        if x is y or (x.dtype == y.dtype and x.shape == y.shape and x.is_gpu == y.is_gpu):
            continue
        path = structure._paths()[i]
        before, after = (f"{z.dtype!r} of shape {tuple(z.shape)}" for z in (y, x))
        if x.is_gpu != y.is_gpu:
            before, after = f"{before} on {y.device}", f"{after} on {x.device}"
            hint = f"move one of them with .to({str(x.device)!r})"
        kind = ShapeError if x.shape != y.shape else TypeError if x.dtype != y.dtype else ValueError
        raise kind(f"{name}: {what}{f' at {path}' if path else ''} {was} {before}, {now} {after}; {hint}")


class Carry:
    """The kind of tree that each step of a loop must return: what the first one was given."""

    __slots__ = ("changed", "leaves", "name", "numbers", "structure", "what", "words")

    def __init__(self, name: str, tree: Any, what: str) -> None:
        given = tree_flatten(tree)[0]
        self.name, self.what = name, what
        hint = f"each step returns {what} with the structure, shapes and dtypes that it had"
        self.words = (what, "was", "after a step it is", hint)
        self.leaves, self.structure = leaves_of(tree, name, what)
        # Numbers of the first carry; the first step says what dtype they have.
        self.numbers = {i: x for i, x in enumerate(given) if _is_number(x)}
        self.changed: set[int] = set()

    def tree(self, leaves: Leaves) -> Any:
        """The leaves as the functions of the loop see them."""
        return leaves[0] if self.structure._is_leaf else tree_unflatten(self.structure, leaves)

    def check(self, tree: Any) -> Leaves:
        """The leaves of what a step returned.

        Raises:
            ValueError, ShapeError, TypeError: it has another structure or device, another shape, another
                dtype.
        """
        leaves, found = leaves_like(tree, self.leaves, self.name, f"{self.what} after a step")
        if self.numbers:
            self._adapt(leaves, found)
        compare(self.name, leaves, self.leaves, self.structure, found, self.words)
        return leaves

    def _adapt(self, leaves: Leaves, found: TreeDef) -> None:
        """Gives numbers of the first carry the dtypes and devices that they have after the first step."""
        again = False
        for i, number in self.numbers.items() if found == self.structure else ():
            x, y = leaves[i], self.leaves[i]
            if (x.dtype, x.is_gpu) == (y.dtype, y.is_gpu) or x.ndim or not _fits(number, x.dtype):
                continue
            # After its first change a number only becomes wider, so this ends.
            if i not in self.changed or _core.promote_types(x.dtype, y.dtype) == x.dtype != y.dtype:
                self.leaves[i] = _core.tensor(number, dtype=x.dtype, device=x.device)
                self.changed.add(i)
                again = True
        if again:
            raise _Again
        self.numbers = {}


def settled(run: Callable[[], Any]) -> Any:
    """What a loop returns; it begins again where a number of its first carry needs another dtype or
    device."""
    while True:
        try:
            return run()
        except _Again:
            continue


def alike(name: str, results: list[Any], labels: list[str]) -> tuple[list[Leaves], TreeDef]:
    """The leaves of the results of all branches, which have one structure, and the same shapes and dtypes.

    A number takes the dtype of the tensor that another branch has in its place.
    """
    raw = [tree_flatten(result)[0] for result in results]
    models: list[Any] = list(raw[0])
    for leaves in raw[1:]:
        for i, x in enumerate(leaves[: len(models)]):
            if not isinstance(models[i], Tensor) and isinstance(x, Tensor):
                models[i] = x
            elif _is_number(models[i]) and _is_number(x):
                # Of two numbers, that of the wider kind.
                models[i] = max(models[i], x, key=lambda number: _NUMBERS.index(type(number)))
    like = [x if isinstance(x, Tensor) else _core.as_tensor(x) for x in models] if _plain(models) else None
    made = [
        leaves_like(result, like or [], name, f"the result of {label}")
        for result, label in zip(results, labels)
    ]
    first, structure = made[0]
    hint = "all branches return one structure, with equal shapes and dtypes"
    for (leaves, found), label in zip(made[1:], labels[1:]):
        words = (f"the result of {labels[0]}", "is", f"that of {label}", hint)
        compare(name, leaves, first, structure, found, words)
    return [leaves for leaves, _ in made], structure


def _plain(leaves: list[Any]) -> bool:
    """Whether all leaves are tensors or numbers, so that what they become needs no message."""
    return all(isinstance(x, Tensor) or _is_number(x) for x in leaves)
