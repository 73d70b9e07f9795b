"""What the cases of all subjects share: dtypes, shapes, drawn arrays, and calls that two namespaces can be
given."""

import math
from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import strategies as st

import array_api.array_standard as standard

Draw = Callable[[st.SearchStrategy[Any]], Any]
Call = Callable[[Any, Callable[[Any], Any]], Any]
Cases = dict[str, Callable[[Draw], Call]]

FLOATS = ["float32", "float64"]
SIGNED = standard.KINDS["signed integer"]
UNSIGNED = standard.KINDS["unsigned integer"]
INTS = SIGNED + UNSIGNED
REALS = INTS + FLOATS
COMPLEX = standard.KINDS["complex floating"]
NUMBERS = REALS + COMPLEX
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
AXES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)
STACKS = hnp.array_shapes(min_dims=2, max_dims=4, min_side=1, max_side=3)


def by_name(namespace: Any, name: str) -> Any:
    """A function of a namespace or of one of its extensions."""
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace


def array(draw: Draw, dtypes: list[str] = REALS, shape: Any = SHAPES, low: int = -4, high: int = 4) -> Any:
    """An array of small integers in one of these dtypes."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    shape = draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    if dtype.kind == "c":
        parts = [array(draw, [f"float{dtype.itemsize * 4}"], shape, low, high) for _ in range(2)]
        return np.asarray(parts[0] + np.asarray(1j, dtype) * parts[1], dtype)
    low = max(low, 0) if dtype.kind == "u" else low
    elements = st.booleans() if dtype.kind == "b" else st.integers(low, high)
    numbers = draw(st.lists(elements, min_size=math.prod(shape), max_size=math.prod(shape)))
    return np.asarray(numbers, dtype).reshape(shape)


def called(name: str, *args: Any, **kwargs: Any) -> Call:
    """A call with arrays among the arguments."""

    def call(namespace: Any, asarray: Callable[[Any], Any]) -> Any:
        def convert(value: Any) -> Any:
            if isinstance(value, np.ndarray):
                return asarray(value)
            return [convert(v) for v in value] if isinstance(value, list) else value

        return by_name(namespace, name)(*map(convert, args), **{k: convert(v) for k, v in kwargs.items()})

    return call


def axis_of(draw: Draw, x: Any) -> int:
    """One of the axes, from the front or from the back."""
    return draw(st.integers(-x.ndim, x.ndim - 1))


def axes_of(draw: Draw, x: Any) -> Any:
    """Nothing, one axis, or several."""
    choices = [st.none(), hnp.valid_tuple_axes(x.ndim)]
    return draw(st.one_of(choices + [st.integers(-x.ndim, x.ndim - 1)] * (x.ndim > 0)))


def registering(cases: Cases) -> Callable[..., Any]:
    """The decorator of the cases of a subject, with the names of functions with the same parameters.

    What it decorates is given one of the names, and `draw`.
    """

    def case(*names: str) -> Callable[[Callable[[str, Draw], Call]], Callable[[str, Draw], Call]]:
        def register(function: Callable[[str, Draw], Call]) -> Callable[[str, Draw], Call]:
            for name in names:
                cases[name] = lambda draw, name=name: function(name, draw)
            return function

        return register

    return case
