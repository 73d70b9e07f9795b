"""What the names of the package are: functions that tell their parameters, methods defined once, hints for others."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
from typing import Any

import pytest
import wengert as wg
from wengert import Tensor, _core


def public_functions() -> dict[str, Any]:
    found = {name: getattr(wg, name) for name in wg.__all__}
    return {name: f for name, f in found.items() if inspect.isroutine(f) and not isinstance(f, type)}


@pytest.mark.parametrize("name", sorted(public_functions()))
def test_functions_tell_what_they_take(name: str) -> None:
    function = public_functions()[name]
    parameters = inspect.signature(function).parameters.values()
    assert all(p.default is not Ellipsis for p in parameters), "a default that no reader can see"
    # `vmap` and its kin return functions of anything.
    assert {p.kind for p in parameters} != {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    assert function.__doc__
    assert getattr(pickle.loads(pickle.dumps(function)), "__doc__", None) == function.__doc__


def test_functions_of_methods_are_builtins() -> None:
    for name in ("exp", "flip", "sum", "narrow", "addmm", "exp_", "index_put_", "arccos", "absolute_"):
        function = getattr(wg, name)
        assert inspect.isbuiltin(function), name
        assert function.__module__ == "wengert"
        assert repr(function) == f"<built-in function {name}>"
        assert copy.deepcopy(function) is function


def test_methods_are_defined_once() -> None:
    def exp(input: Tensor) -> Tensor:
        """Another one."""
        return input

    before = Tensor.exp
    with pytest.raises(ValueError, match=r"Tensor.exp is there already"):
        _core._method(exp, "($self)")
    assert Tensor.exp is before


def test_shapes_and_bounds_by_name() -> None:
    for make in (wg.zeros, wg.ones, wg.empty, wg.rand, wg.randn):
        assert make(size=(2, 3)).shape == (2, 3)
    assert wg.arange(end=3).tolist() == [0, 1, 2]
    assert wg.arange(end=6, step=2).tolist() == [0, 2, 4]
    drawn = wg.randint(high=3, size=(50,))
    assert drawn.shape == (50,)
    assert set(drawn.tolist()) <= {0, 1, 2}
    low = wg.zeros(50).uniform_(**{"from": 2.0, "to": 3.0})
    assert low.min().item() >= 2
    assert low.max().item() < 3


def test_what_is_imported_later_is_typed() -> None:
    tree = ast.parse(inspect.getsource(wg))
    (typed,) = (
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    named = {
        name.asname or name.name
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert named == {*wg._LAZY, *wg._LAZY_NAMES}


def test_names_of_pytorch_say_where_to_look() -> None:
    for name in wg._ELSEWHERE:
        assert not hasattr(wg, name), name
    with pytest.raises(AttributeError, match=r"has no attribute 'device_count'; GPUs are counted by"):
        _ = wg.device_count  # type: ignore[attr-defined]
    for name, text in (
        ("sparse_coo_tensor", "there are no sparse tensors"),
        ("quantization", "there are no quantised tensors"),
        ("lax", "its operations are functions of wengert"),
    ):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'; {text}"):
            getattr(wg, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'expp'$"):
        _ = wg.expp  # type: ignore[attr-defined]


def test_transforms_under_the_names_of_torch_func() -> None:
    f = lambda x: (x**3).sum()
    x = wg.tensor([1.0, 2.0])
    gradient, value = wg.func.grad_and_value(f)(x)
    assert (value.item(), gradient.tolist()) == (9.0, [3.0, 12.0])
    gradient, (value, aux) = wg.func.grad_and_value(lambda x: (f(x), "more"), has_aux=True)(x)
    assert (value.item(), aux) == (9.0, "more")
    assert wg.func.vmap(wg.func.grad(lambda x: x**2))(x).tolist() == [2.0, 4.0]
    model = wg.nn.Linear(2, 1)
    params = dict(model.named_parameters())
    grads = wg.func.grad(lambda p: wg.func.functional_call(model, p, (x,)).sum())(params)
    assert grads["weight"].tolist() == [[1.0, 2.0]]
    with pytest.raises(NotImplementedError, match="functionalize: writes in place are differentiated"):
        wg.func.functionalize(f, remove="mutations")
    gradient, _ = wg.func.grad_and_value(lambda a, b: (a * b).sum(), argnums=1)(x, x + 1)
    assert gradient.tolist() == x.tolist()
