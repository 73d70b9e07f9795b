"""Functions of shapes and axes: broadcasting, joining, reordering, taking."""

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import strategies as st

import array_api.array_standard as standard
from array_api.drawing import (
    AXES,
    NUMBERS,
    STACKS,
    Call,
    Cases,
    Draw,
    array,
    axes_of,
    axis_of,
    called,
    registering,
)

CASES: Cases = {}
case = registering(CASES)


@case("take")
def _take(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS, AXES)
    axis = axis_of(draw, x)
    return called(name, x, array(draw, ["int64"], (3,), 0, x.shape[axis] - 1), axis=axis)


@case("take_along_axis")
def _take_along(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS, AXES)
    axis = axis_of(draw, x)
    shape = [2 if i == axis % x.ndim else d for i, d in enumerate(x.shape)]
    return called(name, x, array(draw, ["int64"], tuple(shape), 0, x.shape[axis] - 1), axis=axis)


@case("concat", "stack")
def _joined(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS, AXES)
    dtype = draw(st.sampled_from([d for d in NUMBERS if standard.promoted(x.dtype.name, d)]))
    other = array(draw, [dtype], x.shape)
    axes = st.integers(-x.ndim, x.ndim - 1)
    return called(name, [x, other, x], axis=draw(st.none() | axes if name == "concat" else axes))


@case("broadcast_arrays")
def _broadcast(name: str, draw: Draw) -> Call:
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=4)).input_shapes
    return called(name, *(array(draw, NUMBERS, shape) for shape in shapes))


@case("broadcast_to")
def _broadcast_to(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS)
    return called(name, x, (2, *x.shape))


@case("expand_dims")
def _expanded(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS)
    return called(name, x, axis=draw(st.integers(-x.ndim - 1, x.ndim)))


@case("squeeze")
def _squeezed(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS)[None, ..., None]
    return called(name, x, axis=draw(st.sampled_from([0, -1, (0, -1), (-1,), ()])))


@case("flip")
def _flipped(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS)
    return called(name, x, axis=axes_of(draw, x))


@case("roll")
def _rolled(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS, AXES)
    axes = draw(hnp.valid_tuple_axes(x.ndim, min_size=1))
    shifts = tuple(draw(st.integers(-5, 5)) for _ in axes)
    choices = [(shifts, axes), (shifts[0], None), (shifts[0], axes[0]), (shifts[0], axes)]
    shift, axis = draw(st.sampled_from(choices))
    return called(name, x, shift, axis=axis)


@case("moveaxis")
def _moved(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS, AXES)
    return called(name, x, axis_of(draw, x), axis_of(draw, x))


@case("permute_dims")
def _permuted(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS)
    return called(name, x, tuple(draw(st.permutations(range(x.ndim)))))


@case("matrix_transpose", "linalg.matrix_transpose")
def _transposed(name: str, draw: Draw) -> Call:
    return called(name, array(draw, NUMBERS, STACKS))


@case("repeat")
def _repeated(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS, AXES)
    axis = draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    length = x.size if axis is None else x.shape[axis]
    counts = array(draw, ["int64"], (length,), 0, 3)
    return called(name, x, draw(st.sampled_from([0, 2, counts, np.asarray([2])])), axis=axis)


@case("tile")
def _tiled(name: str, draw: Draw) -> Call:
    return called(name, array(draw, NUMBERS), draw(st.sampled_from([(2,), (1, 2), (2, 0), (2, 1, 1, 3), ()])))


@case("reshape")
def _reshaped(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS, AXES)
    shape = draw(st.sampled_from([(-1,), (x.size,), (1, -1, 1), (*x.shape[::-1],), (x.shape[0], -1)]))
    return called(name, x, shape, copy=draw(st.sampled_from([None, True])))


@case("unstack")
def _unstacked(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS, AXES)
    return called(name, x, axis=axis_of(draw, x))


@case("tril", "triu")
def _triangle(name: str, draw: Draw) -> Call:
    return called(name, array(draw, NUMBERS, STACKS), k=draw(st.integers(-3, 3)))


@case("linalg.diagonal", "linalg.trace")
def _diagonal(name: str, draw: Draw) -> Call:
    return called(name, array(draw, NUMBERS, STACKS), offset=draw(st.integers(-1, 1)))


@case("diff")
def _differences(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS, AXES)
    axis = axis_of(draw, x)
    ends = draw(st.sampled_from([{}, {"prepend": x}, {"append": x}, {"prepend": x, "append": x}]))
    return called(name, x, axis=axis, n=draw(st.integers(1, 2)), **ends)
