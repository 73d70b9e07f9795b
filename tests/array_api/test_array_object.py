"""The array object of the array API standard: operators, indexing, conversions, beside `array_api_strict`."""

import operator
from typing import Any

import array_api_strict as reference
import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import wengert as wg
import wengert.numpy as xp
from hypothesis import given, settings, strategies as st

import array_api.array_standard as standard
from array_api.drawing import AXES, COMPLEX, FLOATS, INTS, SHAPES, array

reference.set_array_api_strict_flags(api_version="2024.12")

ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
BITS = ["and", "or", "xor", "lshift", "rshift"]
# The words of Python that cannot be names of functions, and those whose function has another name.
FUNCTIONS = {"and": operator.and_, "or": operator.or_}


def function_of(name: str) -> Any:
    """The function of an operator."""
    return FUNCTIONS.get(name) or getattr(operator, name)


def dtypes_of(name: str) -> list[str]:
    """The dtypes that an operator takes."""
    if name == "truediv":
        return FLOATS + COMPLEX
    if name in ("lshift", "rshift"):
        return INTS
    if name in BITS:
        return [*INTS, "bool"]
    if name in ("eq", "ne"):
        return [*INTS, *FLOATS, *COMPLEX, "bool"]
    return INTS + FLOATS


def bounds_of(name: str, right: bool) -> tuple[int, int]:
    """Operands that the standard gives a meaning to: no division by zero, no negative power of an integer."""
    if not right:
        return (-3, 3) if name == "pow" else (-4, 4)
    return {"floordiv": (1, 3), "mod": (1, 3), "truediv": (1, 4), "pow": (0, 2)}.get(
        name, (0, 3) if name in ("lshift", "rshift") else (-4, 4)
    )


def same(found: Any, wanted: Any) -> None:
    """Equal dtypes, shapes and elements."""
    wanted = np.asarray(wanted)
    assert isinstance(found, wg.Tensor)
    assert found.dtype == wanted.dtype.name
    rtol = 2e-6 if wanted.dtype in ("float32", "complex64") else 1e-14
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol)
    assert found.shape == wanted.shape


@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS, *BITS])
@given(data=st.data())
def test_operators(name: str, data: st.DataObject) -> None:
    draw, function, dtypes = data.draw, function_of(name), dtypes_of(name)
    shape, first = draw(SHAPES), draw(st.sampled_from(dtypes))
    other = draw(st.sampled_from([d for d in dtypes if standard.promoted(first, d)]))
    x = array(draw, [first], shape, *bounds_of(name, False))
    y = array(draw, [other], shape, *bounds_of(name, True))
    same(function(xp.asarray(x), xp.asarray(y)), function(reference.asarray(x), reference.asarray(y)))

    # A Python number on either side.
    low, high = bounds_of(name, True)
    low = max(low, 0) if first[0] == "u" else low
    number = draw(st.booleans() if first == "bool" else st.integers(low, high))
    same(function(xp.asarray(x), number), function(reference.asarray(x), number))
    y = array(draw, [first], shape, *bounds_of(name, True))
    same(function(number, xp.asarray(y)), function(number, reference.asarray(y)))


@pytest.mark.parametrize("name", [*ARITHMETIC, *BITS])
@given(data=st.data())
def test_in_place_operators(name: str, data: st.DataObject) -> None:
    draw, function = data.draw, getattr(operator, f"i{name}")
    dtype, shape = draw(st.sampled_from(dtypes_of(name))), draw(SHAPES)
    x, y = (
        array(draw, [dtype], shape, *bounds_of(name, False)),
        array(draw, [dtype], shape, *bounds_of(name, True)),
    )
    mine, theirs = xp.asarray(x.copy()), reference.asarray(x.copy())
    changed = function(mine, xp.asarray(y))
    assert changed is mine
    same(changed, function(theirs, reference.asarray(y)))


@pytest.mark.parametrize("name", ["abs", "neg", "pos", *["invert"][: len(BITS)]])
@given(data=st.data())
def test_unary_operators(name: str, data: st.DataObject) -> None:
    function = abs if name == "abs" else getattr(operator, name)
    x = array(data.draw, [*INTS, "bool"] if name == "invert" else INTS + FLOATS + COMPLEX)
    same(function(xp.asarray(x)), function(reference.asarray(x)))


@given(data=st.data())
def test_matrix_products(data: st.DataObject) -> None:
    draw = data.draw
    shapes = draw(hnp.mutually_broadcastable_shapes(signature="(n,m),(m,k)->(n,k)", max_dims=2, max_side=3))
    dtype = draw(st.sampled_from(INTS + FLOATS + COMPLEX))
    x, y = (array(draw, [dtype], shape) for shape in shapes.input_shapes)
    same(xp.asarray(x) @ xp.asarray(y), reference.asarray(x) @ reference.asarray(y))


@settings(max_examples=60)
@given(data=st.data())
def test_indexing(data: st.DataObject) -> None:
    draw = data.draw
    x = array(draw, shape=hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
    kind = draw(st.sampled_from(["basic", "mask", "integers"]))
    if kind == "basic":
        index = draw(hnp.basic_indices(x.shape, allow_newaxis=True, allow_ellipsis=True))
        mine = wanted = index
    elif kind == "mask":
        index = array(draw, ["bool"], x.shape[: draw(st.integers(1, x.ndim))])
        mine, wanted = xp.asarray(index), index
    else:
        shape = draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
        wanted = tuple(array(draw, ["int64"], shape, -length, length - 1) for length in x.shape)
        mine = tuple(map(xp.asarray, wanted))
    found = xp.asarray(x)[mine]
    same(found, x[wanted])
    target, copy = xp.asarray(x.copy()), x.copy()
    target[mine] = 3
    copy[wanted] = 3
    same(target, copy)


NAMES = """
    T __abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__ __float__
    __floordiv__ __ge__ __getitem__ __gt__ __iadd__ __iand__ __ifloordiv__ __ilshift__ __imatmul__ __imod__ __imul__
    __index__ __int__ __invert__ __ior__ __ipow__ __irshift__ __isub__ __itruediv__ __ixor__ __le__ __lshift__ __lt__
    __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __radd__ __rand__ __rfloordiv__ __rlshift__
    __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __setitem__
    __sub__ __truediv__ __xor__ device dtype mT ndim shape size to_device
    """.split()


def test_every_name_is_there() -> None:
    assert [name for name in NAMES if not hasattr(wg.Tensor, name)] == []


@given(data=st.data())
def test_indexing_with_integers_beside_tensors(data: st.DataObject) -> None:
    draw = data.draw
    x = array(draw, shape=AXES)
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=2, max_side=3))
    whole = draw(st.lists(st.booleans(), min_size=x.ndim, max_size=x.ndim))
    parts = [
        draw(st.integers(-n, n - 1)) if one else array(draw, ["int64"], shape, -n, n - 1)
        for one, n in zip(whole, x.shape, strict=True)
    ]
    mine = tuple(xp.asarray(p) if isinstance(p, np.ndarray) else p for p in parts)
    same(xp.asarray(x)[mine], x[tuple(parts)])


def test_a_product_in_place() -> None:
    x = array_of = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    x @= xp.asarray([[0.0, 1.0], [1.0, 0.0]])
    assert x is array_of
    assert x.tolist() == [[2.0, 1.0], [4.0, 3.0]]


def test_numbers_of_python() -> None:
    for name in ("bool", *INTS, *FLOATS):
        x = xp.asarray(1, dtype=getattr(xp, name))
        assert [bool(x), int(x), float(x)] == [True, 1, 1.0]
        assert [type(bool(x)), type(int(x)), type(float(x))] == [bool, int, float]
    assert complex(xp.asarray(1 - 2j)) == 1 - 2j
    assert complex(xp.asarray(3)) == 3
    for name in INTS:
        assert operator.index(xp.asarray(3, dtype=getattr(xp, name))) == 3
    with pytest.raises(TypeError):
        operator.index(xp.asarray(1.0))


@pytest.mark.parametrize("name", ["bool", *INTS, *FLOATS])
def test_dlpack(name: str) -> None:
    x = xp.asarray(np.arange(4).astype(name))
    assert x.__dlpack_device__() == (1, 0)
    back = np.from_dlpack(x)
    assert back.dtype.name == name
    assert xp.from_dlpack(back).data_ptr() == x.data_ptr()
    copied = np.from_dlpack(x, copy=True)
    assert copied.__array_interface__["data"][0] != x.data_ptr()
    assert xp.from_dlpack(x).tolist() == x.tolist()
    capsule = x.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=False)
    assert "dltensor_versioned" in repr(capsule)
