"""Functions of elements, reductions and scans, order and sets."""

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import strategies as st

import array_api.array_standard as standard
from array_api.drawing import (
    AXES,
    COMPLEX,
    FLOATS,
    INTS,
    NUMBERS,
    REALS,
    SHAPES,
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


# ---- elements ------------------------------------------------------------------------------------


@case("add", "subtract", "multiply", "maximum", "minimum")
def _arithmetic(name: str, draw: Draw) -> Call:
    a, b = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4)).input_shapes
    ordered = name not in ("add", "subtract", "multiply", "divide", "equal", "not_equal")
    kind = draw(st.sampled_from([INTS, FLOATS] if ordered else [INTS, FLOATS, FLOATS + COMPLEX]))
    dtype = draw(st.sampled_from(kind))
    other = draw(st.sampled_from([d for d in kind if standard.promoted(dtype, d)]))
    return called(name, array(draw, [dtype], a), array(draw, [other], b))


@case("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
def _comparison(name: str, draw: Draw) -> Call:
    return _arithmetic(name, draw)


@case("floor_divide", "remainder")
def _division(name: str, draw: Draw) -> Call:
    dtype, shape = draw(st.sampled_from(REALS)), draw(SHAPES)
    return called(name, array(draw, [dtype], shape), array(draw, [dtype], shape, 1, 3))


@case("pow")
def _power(name: str, draw: Draw) -> Call:
    dtype, shape = draw(st.sampled_from(REALS)), draw(SHAPES)
    return called(name, array(draw, [dtype], shape, -2, 2), array(draw, [dtype], shape, 0, 3))


@case("bitwise_and", "bitwise_or", "bitwise_xor")
def _bits(name: str, draw: Draw) -> Call:
    dtype, shape = draw(st.sampled_from([*INTS, "bool"])), draw(SHAPES)
    return called(name, array(draw, [dtype], shape), array(draw, [dtype], shape))


@case("bitwise_left_shift", "bitwise_right_shift")
def _shift(name: str, draw: Draw) -> Call:
    dtype, shape = draw(st.sampled_from(INTS)), draw(SHAPES)
    return called(name, array(draw, [dtype], shape), array(draw, [dtype], shape, 0, 3))


@case("bitwise_invert")
def _invert(name: str, draw: Draw) -> Call:
    return called(name, array(draw, [*INTS, "bool"]))


@case(
    "abs",
    "negative",
    "positive",
    "sign",
    "square",
    "ceil",
    "floor",
    "round",
    "trunc",
    "isnan",
    "isfinite",
    "isinf",
)
def _number(name: str, draw: Draw) -> Call:
    return called(name, array(draw))


@case("conj", "real", "imag")
def _complex(name: str, draw: Draw) -> Call:
    return called(name, array(draw, COMPLEX))


@case("clip")
def _clip(name: str, draw: Draw) -> Call:
    dtype, shape = draw(st.sampled_from(REALS)), draw(SHAPES)
    low, high = array(draw, [dtype], shape, 0, 2), array(draw, [dtype], (), 2, 4)
    bounds = draw(st.sampled_from([(low, high), (low, None), (None, high), (1, 2), (None, 2), (1, None)]))
    return called(name, array(draw, [dtype], shape), *bounds)


@case("where")
def _where(name: str, draw: Draw) -> Call:
    dtype, shape = draw(st.sampled_from(NUMBERS)), draw(SHAPES)
    return called(name, array(draw, ["bool"], shape), array(draw, [dtype], shape), array(draw, [dtype], ()))


# ---- reductions and scans ------------------------------------------------------------------------


@case("sum", "prod")
def _sum(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS, low=-2, high=2)
    return called(name, x, axis=axes_of(draw, x), keepdims=draw(st.booleans()))


@case("max", "min")
def _extremum(name: str, draw: Draw) -> Call:
    x = array(draw, shape=AXES)
    return called(name, x, axis=axes_of(draw, x), keepdims=draw(st.booleans()))


@case("mean", "std", "var")
def _moment(name: str, draw: Draw) -> Call:
    x = array(draw, FLOATS + COMPLEX * (name == "mean"), AXES)
    more = {} if name == "mean" else {"correction": draw(st.sampled_from([0, 0.0, 0.5]))}
    return called(name, x, axis=axes_of(draw, x), keepdims=draw(st.booleans()), **more)


@case("all", "any", "count_nonzero")
def _truth(name: str, draw: Draw) -> Call:
    x = array(draw, [*NUMBERS, "bool"])
    return called(name, x, axis=axes_of(draw, x), keepdims=draw(st.booleans()))


@case("cumulative_sum", "cumulative_prod")
def _scan(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS, AXES, low=-2, high=2)
    return called(name, x, axis=axis_of(draw, x), include_initial=draw(st.booleans()))


# ---- order and sets ------------------------------------------------------------------------------


@case("argmax", "argmin")
def _place(name: str, draw: Draw) -> Call:
    x = array(draw, shape=AXES)
    return called(
        name, x, axis=draw(st.none() | st.integers(-x.ndim, x.ndim - 1)), keepdims=draw(st.booleans())
    )


@case("sort", "argsort")
def _sort(name: str, draw: Draw) -> Call:
    x = array(draw, shape=AXES)
    return called(name, x, axis=axis_of(draw, x), descending=draw(st.booleans()))


@case("searchsorted")
def _searched(name: str, draw: Draw) -> Call:
    x = array(draw, shape=(draw(st.integers(1, 6)),))
    values = array(draw, [x.dtype.name])
    return called(name, x, values, side=draw(st.sampled_from(["left", "right"])), sorter=np.argsort(x))


@case("nonzero", "unique_all", "unique_counts", "unique_inverse")
def _found(name: str, draw: Draw) -> Call:
    return called(name, array(draw, shape=AXES))


@case("unique_values")
def _distinct(name: str, draw: Draw) -> Call:
    # The order is open.
    x = array(draw, shape=AXES)
    return lambda ns, asarray: ns.sort(ns.unique_values(asarray(x)))
