"""What programs for JAX and autograd ask besides functions: dtypes, settings, `jit`, trees, random
numbers."""

import collections
import dataclasses
import functools
import importlib
import io
import subprocess
import sys
from typing import Any

import attrs
import numpy as np
import pytest
import wengert as wg
import wengert.numpy as xp
import wengert.numpy.random as npr


def test_dtypes_are_functions() -> None:
    x = wg.tensor([1.7, -1.7], requires_grad=True)
    assert (xp.float64(3).dtype, xp.float64(3).item()) == (wg.float64, 3.0)
    assert xp.int32([1.7, -1.7]).tolist() == [1, -1]
    assert xp.bool_(2).tolist() is True
    assert xp.float64(x).dtype == wg.float64
    xp.float64(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 1.0]
    array = np.ones(2, np.float32)
    for given in (array, x):
        assert xp.float32(given).data_ptr() != wg.as_tensor(given).data_ptr()
    assert [
        name for name in ("half", "single", "double", "float_") if getattr(xp, name)(1).item() != 1.0
    ] == []
    assert (xp.int_, xp.uint, xp.csingle, xp.complex_) == (wg.int64, wg.uint64, wg.complex64, wg.complex128)
    with pytest.raises(TypeError, match="complex numbers do not fit into float32"):
        xp.float32(1j)
    with pytest.raises(TypeError, match="str cannot become a tensor"):
        xp.float32("3")
    assert xp.issubdtype(xp.float32(1).dtype, xp.floating)
    assert not xp.issubdtype(wg.int32, xp.inexact)


def test_methods_of_arrays() -> None:
    x = wg.tensor([1.5, 2.5], requires_grad=True)
    assert x.astype(int).tolist() == [1, 2]
    assert x.astype(np.float64).dtype == x.astype("float64").dtype == wg.float64
    assert x.astype(wg.float32, copy=False) is x
    assert x.astype(wg.float32).data_ptr() != x.data_ptr()
    assert x.copy().data_ptr() != x.data_ptr()
    (x.copy() * x.astype(wg.float64)).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 5.0]
    assert x.block_until_ready() is x
    assert isinstance(x, xp.ndarray)


def test_reshape_in_other_orders() -> None:
    a = np.arange(6).reshape(2, 3)
    assert xp.reshape(a, newshape=(3, 2)).tolist() == a.reshape(3, 2).tolist()
    assert xp.reshape(a, (3, 2), order="F").tolist() == a.reshape((3, 2), order="F").tolist()
    for wrong in (lambda: xp.reshape(a), lambda: xp.reshape(a, 6, order="K")):
        with pytest.raises(TypeError, match="reshape: a shape and the order 'C' or 'F' expected"):
            wrong()


def test_joins_of_what_stands_in_brackets() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    xp.r_[x, 0, x].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]
    assert repr(xp.r_) == "wengert.numpy.r_"
    assert repr(xp.mgrid) == "wengert.numpy.mgrid"
    with pytest.raises(
        TypeError, match=r"r_: directives such as '0,2' are not taken; use concatenate or stack"
    ):
        xp.r_["0,2", [1], [2]]


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "split": (lambda: xp.split(xp.ones(5), 2), ValueError, "axis 0 of length 5 does not divide into 2 equal"),
    "pad": (lambda: xp.pad([1.0], 1, "mean"), ValueError, "mode must be one of 'constant', .* got 'mean'"),
    "gradient": (
        lambda: xp.gradient([1.0]),
        ValueError,
        r"gradient: at least 2 points along axis 0 expected for edge_order=1, got 1",
    ),
    "order": (
        lambda: xp.gradient([1.0, 2.0], edge_order=3),
        ValueError,
        "gradient: edge_order must be 1 or 2, got 3",
    ),
    "distances": (
        lambda: xp.gradient(xp.ones((2, 2)), 1, 1, 1),
        ValueError,
        "gradient: one spacing or one for each of 2 axes expected, got 3",
    ),
    "convolve": (lambda: xp.convolve([1.0], [[1.0]]), ValueError, r"vectors and mode .* \(1,\) and \(1, 1\)"),
    "mode": (lambda: xp.convolve([1.0], [1.0], "all"), ValueError, "vectors and mode 'full', .* and 'all'"),
    "unique": (lambda: xp.unique([[1]], True, axis=0), NotImplementedError, "return_index takes no axis"),
    "qr": (
        lambda: xp.linalg.qr(xp.eye(2), mode="raw"),
        ValueError,
        "'reduced', 'complete' or 'r', got 'raw'",
    ),
    "percentile": (
        lambda: xp.percentile([1.0], 101),
        ValueError,
        "percentile: q is out of range; quantiles are",
    ),
    "median": (lambda: xp.median(xp.eye(2), axis=5), IndexError, "axis 5 is out of range"),
    "product": (
        lambda: xp.dot(xp.ones((2, 3)), xp.ones((2, 3))),
        ValueError,
        r"dot: shapes \(2, 3\) and \(2, 3\)",
    ),
    "swapaxes": (lambda: xp.swapaxes(xp.eye(2), 0, 2), IndexError, "swapaxes: axis 2 is out of range"),
    "take": (lambda: xp.take(xp.eye(2), 0, axis=2), IndexError, "take: axis 2 is out of range"),
    "text": (lambda: xp.dot("a", 1), TypeError, "dot: tensors, arrays or numbers expected, got str"),
    "config": (lambda: wg.config.update("x64", True), AttributeError, "'x64' is no setting of JAX"),
    "config, no name": (lambda: wg.config.update(64, True), TypeError, "name is a string, got int"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        call()


def test_random_numbers_are_those_of_numpy() -> None:
    npr.seed(3)
    mine = [npr.randn(2), npr.permutation(4), npr.choice(5, 2), npr.uniform(size=2), npr.normal(1.0, 2.0, 2)]
    np.random.seed(3)  # noqa: NPY002
    state = np.random
    theirs = [
        state.randn(2),
        state.permutation(4),
        state.choice(5, 2),
        state.uniform(size=2),
        state.normal(1.0, 2.0, 2),
    ]
    for a, b in zip(mine, theirs):
        np.testing.assert_array_equal(a, b)
    assert xp.random is npr
    assert npr.default_rng(4).random() == np.random.default_rng(4).random()
    assert npr.RandomState(4).rand() == np.random.RandomState(4).rand()
    assert "shuffle" in dir(npr)


def test_files_of_numpy() -> None:
    file = io.BytesIO()
    xp.save(file, wg.tensor([1.0, 2.0]))
    file.seek(0)
    assert xp.load(file).tolist() == [1.0, 2.0]
    assert xp.loadtxt(io.StringIO("1 2\n3 4")).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert isinstance(xp.loadtxt(io.StringIO("1 2")), wg.Tensor)


def test_jit_is_a_decorator_and_a_module() -> None:
    from wengert import jit

    @jit
    def f(x: float) -> float:
        return 2 * x

    static = wg.jit(f, static_argnums=(0,))
    assert wg.jit(static, static_argnums=(0,)) is static
    assert functools.partial(jit, static_argnames=("x",))(static) is static
    assert f(2.0) == static(2.0) == 4.0
    assert not jit.is_scripting()
    assert repr(jit).startswith("<module 'wengert.jit'")


def test_trees_have_the_names_of_jax() -> None:
    tree, leaves = wg.tree, {"a": 1, "b": [2, (3, None)]}
    assert tree.map(lambda x, y: x + y, leaves, leaves) == {"a": 2, "b": [4, (6, None)]}
    assert tree.leaves(leaves) == [1, 2, 3]
    flat, structure = tree.flatten(leaves)
    assert tree.unflatten(structure, flat) == leaves
    assert structure == tree.structure(leaves)
    is_pair = lambda x: isinstance(x, tuple)
    assert tree.leaves(leaves, is_leaf=is_pair) == [1, 2, (3, None)]
    assert tree.map(lambda x: 0, leaves, is_leaf=is_pair) == {"a": 0, "b": [0, 0]}
    assert tree.structure(leaves, is_leaf=is_pair) == tree.structure({"a": 0, "b": [0, 0]})
    assert tree.flatten(leaves, is_leaf=is_pair)[0] == [1, 2, (3, None)]
    assert tree.reduce(lambda a, b: a * b, leaves) == 6
    assert wg.tree_util.tree_reduce(lambda a, b: a + b, leaves, 10) == 16
    assert tree.all([1, True])
    assert not tree.all({"x": [1, 0]})
    assert wg.tree_util is importlib.import_module("wengert.tree_util") is tree


def test_classes_that_are_trees() -> None:
    @dataclasses.dataclass
    class Layer:
        w: Any
        size: int = 0
        name: str = dataclasses.field(default="", metadata={"static": True})

    @functools.partial(wg.tree.register_dataclass, data_fields=["w"], meta_fields=["size", "name"])
    @dataclasses.dataclass
    class Fixed(Layer):
        pass

    @wg.tree.register_dataclass(meta_fields=["size"])
    @dataclasses.dataclass
    class Partly(Layer):
        pass

    assert wg.tree.leaves(Layer(1.0, 2, "x")) == [1.0, 2]
    assert wg.tree.leaves(Fixed(1.0, 2, "x")) == [1.0]
    assert wg.tree.leaves(Partly(1.0, 2, "x")) == [1.0, "x"]
    assert wg.tree.map(lambda x: x + 1, Fixed(1.0, 2, "x")) == Fixed(2.0, 2, "x")
    assert wg.tree.structure(Fixed(1.0, 2)) != wg.tree.structure(Fixed(1.0, 3))
    found = wg.grad(lambda p: (p.w * p.size).sum())(Fixed(wg.ones(2), 3))
    assert found.w.tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match=r"register_dataclass: Layer has no fields \['bias'\]"):
        wg.tree.register_dataclass(Layer, meta_fields=["bias"])

    @wg.tree.register_pytree_node_class
    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

        def tree_flatten(self) -> Any:
            return (self.a,), self.b

        @classmethod
        def tree_unflatten(cls, rest: Any, children: Any) -> Any:
            return cls(*children, rest)

    doubled = wg.tree.map(lambda x: 2 * x, Pair(1, 5))
    assert (doubled.a, doubled.b) == (2, 5)

    @attrs.define
    class Point:
        x: Any
        kind: str = attrs.field(default="", metadata={"static": True})

    for container in (
        collections.deque([wg.ones(2)]),
        Point(wg.ones(2), "p"),
        Layer(wg.ones(2), wg.zeros(1)),
    ):
        slope = wg.grad(lambda tree: wg.tree.leaves(tree)[0].sum() * 2)(container)
        assert type(slope) is type(container)
        assert wg.tree.leaves(slope)[0].tolist() == [2.0, 2.0]


X64 = """
import jax
from jax import config, grad
import jax.numpy as jnp
config.update("jax_enable_x64", True)
config.update("jax_debug_nans", False)
assert jnp.zeros(3).dtype == jnp.array([0.1]).dtype == jnp.linspace(0, 1, 3).dtype == jnp.float64
assert float(jnp.log(0.1)) == -2.3025850929940455
assert jnp.mean(jnp.arange(2)).dtype == grad(lambda x: x * x)(0.1).dtype == jnp.eye(2, k=1).dtype == jnp.float64
assert jnp.__array_namespace_info__().default_dtypes()["complex floating"] == jnp.complex128
jax.config.update("jax_enable_x64", False)
assert jnp.zeros(3).dtype == jnp.float32
"""


@pytest.mark.skipif(not hasattr(wg, "set_default_dtype"), reason="needs wengert.set_default_dtype")
def test_floats_of_64_bits_by_a_switch() -> None:
    head = "import sys, wengert; sys.modules['jax'] = wengert; sys.modules['jax.numpy'] = wengert.numpy\n"
    run = subprocess.run([sys.executable, "-c", head + X64], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "UserWarning: config.update: jax_debug_nans changes nothing" in run.stderr
