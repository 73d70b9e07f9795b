"""Containers that transforms take apart: those of Python, dataclasses, and what is registered here or with
`optree`."""

from __future__ import annotations

import collections
import copy
import dataclasses
import gc
import pickle
import weakref
from typing import Any, NamedTuple

import attrs
import numpy as np
import optree
import pytest
import wengert as wg
from messages import Situations, message_tests
from wengert import Tensor
from wengert.tree import tree_flatten, tree_leaves, tree_map, tree_structure


class Point(NamedTuple):
    x: Tensor
    y: Tensor


@dataclasses.dataclass(frozen=True)
class Layer:
    weight: Tensor
    bias: Tensor | None = None

    def __post_init__(self) -> None:
        assert not isinstance(self.weight, str), "leaves of another kind than the constructor takes"


@dataclasses.dataclass
class Scaled:
    weight: Tensor
    factor: float = dataclasses.field(default=2.0, metadata={"static": True})


@attrs.define
class Affine:
    weight: Tensor
    bias: Tensor
    name: str = attrs.field(default="affine", metadata={"static": True})


class Pair:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


class Rows(list[Tensor]):
    """A list that nobody has registered."""


optree.register_pytree_node(
    Pair,
    lambda pair: ((pair.a, pair.b), None),
    lambda _, children: Pair(*children),
    namespace=optree.registry.__GLOBAL_NAMESPACE,
)

ONE, TWO = wg.tensor([1.0, 2.0]), wg.tensor([3.0, 4.0])
TREES: dict[str, Any] = {
    "tuple": (ONE, TWO),
    "list": [ONE, [TWO]],
    "dict": {"w": ONE, "b": TWO},
    "ordered dict": collections.OrderedDict(w=ONE, b=TWO),
    "default dict": collections.defaultdict(list, w=ONE, b=TWO),
    "deque": collections.deque([ONE, TWO], maxlen=3),
    "named tuple": Point(ONE, TWO),
    "dataclass": Layer(ONE, TWO),
    "dataclass without a part": Layer(ONE),
    "dataclass with a static field": Scaled(ONE, 3.0),
    "attrs": Affine(ONE, TWO),
    "optree": Pair(ONE, [TWO]),
    "nested": {"layers": [Layer(ONE), Layer(TWO, ONE)], "none": None, "pair": Pair(ONE, Point(ONE, TWO))},
}


def total(tree: Any) -> Tensor:
    return sum(((leaf * leaf).sum() for leaf in tree_flatten(tree)[0]), wg.zeros(()))


@pytest.mark.parametrize("name", TREES)
def test_gradients_have_the_structure_of_the_argument(name: str) -> None:
    tree = TREES[name]
    found = wg.grad(total)(tree)
    assert type(found) is type(tree)
    assert tree_structure(found) == tree_structure(tree)
    for gradient, leaf in zip(tree_flatten(found)[0], tree_flatten(tree)[0], strict=True):
        assert gradient.tolist() == (2 * leaf).tolist()


@pytest.mark.parametrize("name", TREES)
def test_batches_and_tangents_too(name: str) -> None:
    tree = TREES[name]
    doubled = wg.vmap(lambda row: tree_map(lambda leaf: 2 * leaf, row))(tree)
    assert tree_structure(doubled) == tree_structure(tree)
    _, tangent = wg.jvp(total, (tree,), (tree,))
    assert tangent.item() == 2 * total(tree).item()
    _, pull = wg.vjp(lambda t: t, tree)
    assert tree_structure(pull(tree)[0]) == tree_structure(tree)


def test_dicts_keep_their_order() -> None:
    tree = {"w": ONE, "b": TWO}
    assert list(wg.grad(total)(tree)) == ["w", "b"]
    assert list(tree_map(lambda x: x, tree)) == ["w", "b"]
    assert list(wg.vmap(lambda t: t)(tree)) == ["w", "b"]
    # Leaves are those of sorted keys, so that dicts of another order are of one structure.
    assert tree_structure(tree) == tree_structure({"b": ONE, "w": TWO})
    assert list(tree_map(lambda a, b: b, tree, {"b": ONE, "w": TWO})) == ["w", "b"]


def test_a_dataclass_is_made_without_its_constructor() -> None:
    names = tree_map(lambda _: "leaf", Layer(ONE, TWO))
    assert (names.weight, names.bias) == ("leaf", "leaf")


def test_a_static_field_belongs_to_the_structure() -> None:
    found = wg.grad(lambda s: (s.weight * s.factor).sum())(Scaled(ONE, 3.0))
    assert (found.weight.tolist(), found.factor) == ([3.0, 3.0], 3.0)
    assert tree_structure(Scaled(ONE)) != tree_structure(Scaled(ONE, 3.0))
    with pytest.raises(ValueError, match="tree_map: structures differ"):
        tree_map(lambda a, b: a, Scaled(ONE), Scaled(ONE, 3.0))


# `optree` does not say how a pickle finds its classes.
@pytest.mark.parametrize("name", [name for name in TREES if name not in ("optree", "nested")])
def test_structures_are_written_and_copied(name: str) -> None:
    structure = tree_structure(TREES[name])
    for other in (pickle.loads(pickle.dumps(structure)), copy.deepcopy(structure)):
        assert other == structure
        assert hash(other) == hash(structure)


def test_a_structure_has_children() -> None:
    tree = {"b": (ONE, None), "a": [TWO]}
    assert tree_structure(tree).children() == [tree_structure([TWO]), tree_structure((ONE, None))]
    assert tree_structure(ONE).children() == []


def test_what_stops_is_a_leaf() -> None:
    is_pair = lambda x: isinstance(x, tuple) or x is None
    assert tree_leaves({"a": (1, 2), "b": [3, None]}, is_leaf=is_pair) == [(1, 2), 3, None]
    assert tree_map(len, [(1, 2), (3,)], is_leaf=lambda x: isinstance(x, tuple)) == [2, 1]


def test_keys_that_do_not_compare_keep_their_order() -> None:
    assert tree_leaves({"b": 1, 2: 2, "a": 3}) == [1, 2, 3]
    assert tree_map(lambda x: -x, {"b": 1, 2: 2}) == {"b": -1, 2: -2}


def test_arrays_and_objects_are_leaves() -> None:
    array = np.ones(2)
    assert tree_leaves([array, "text", object])[0] is array
    assert tree_leaves({1, 2}) == [{1, 2}]


@pytest.mark.parametrize("deep", [[], ()], ids=["list", "tuple"])
def test_a_tree_without_end_raises(deep: Any) -> None:
    for _ in range(100_000):
        deep = type(deep)([deep])
    with pytest.raises(RecursionError):
        tree_flatten(deep)
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        wg.grad(lambda x: x[0])(endless)


def test_a_structure_holds_no_leaf() -> None:
    class Leaf:
        pass

    leaf = Leaf()
    seen = weakref.ref(leaf)
    structure = tree_flatten([leaf, {"a": leaf}])[1]
    del leaf
    gc.collect()
    assert seen() is None
    assert structure.num_leaves == 2


def test_an_error_while_a_tree_is_taken_apart_arrives() -> None:
    class Broken:
        pass

    def boom(*_: Any) -> Any:
        raise ZeroDivisionError("boom")

    wg.tree.register_pytree_node(Broken, boom, boom)
    with pytest.raises(ZeroDivisionError, match="boom"):
        tree_flatten({"a": Broken()})
    with pytest.raises(ValueError, match="register_pytree_node: Broken is registered already"):
        wg.tree.register_pytree_node(Broken, boom, boom)
    with pytest.raises(TypeError):
        wg.tree.register_pytree_node(Broken, boom)  # type: ignore[call-arg]


def test_axes_by_none() -> None:
    assert wg.vmap(lambda v: wg.ones(()), out_dims=None)(ONE).shape == ()
    with pytest.raises(ValueError, match="no argument has a batch axis"):
        wg.vmap(lambda v: v, in_dims=None)(ONE)


SITUATIONS: Situations = {
    "a_list_of_another_class": (
        lambda: wg.grad(lambda rows: rows[0].sum())(Rows([ONE, TWO])),
        TypeError,
        "grad: an argument is Rows, expected a tensor or a tree of tensors; "
        "wengert.tree.register_pytree_node makes a "
        "container of the class Rows",
    ),
    "a_text_in_a_tree": (
        lambda: wg.grad(total)({"w": [ONE, "two"]}),
        TypeError,
        "grad: an argument, ['w'][1], is str, expected a tensor or a tree of tensors",
    ),
    "an_integer_in_a_tree": (
        lambda: wg.grad(total)({"w": ONE, "n": Layer(wg.tensor(3))}),
        TypeError,
        "grad: only floating point inputs have derivatives, got wengert.int64 of shape () at ['n'].weight; "
        "convert it with .float(), or leave it out of argnums",
    ),
}

test_messages = message_tests(SITUATIONS)
