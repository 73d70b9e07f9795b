"""Draws arguments for calls of functions that NumPy has as well, and compares the results with NumPy's.

Values and shapes are NumPy's, of the operands widened to what loses nothing. The dtype of a result follows
PyTorch's promotion, which is written down here once more: the highest kind of number counts, and within it
tensors with axes before those without, and these before Python's numbers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from wengert import Tensor

Array = np.ndarray[Any, Any]

DTYPES = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
#: bool, integers, real and complex numbers.
KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-11, "complex64": 2e-5, "complex128": 1e-11}
#: What a call may be refused with, where the dtype or the shape has no meaning for it.
REFUSALS = (TypeError, ValueError, IndexError, ZeroDivisionError)


def kind_of(dtype: str) -> int:
    return KINDS[np.dtype(dtype).kind]


def promoted(operands: list[Any]) -> str:
    """The dtype of what operands make together."""
    kinds = [
        kind_of(str(x.dtype)) if isinstance(x, np.ndarray) else KIND_OF_NUMBER[type(x)] for x in operands
    ]
    highest = max(kinds)
    for is_asked in (lambda x: isinstance(x, np.ndarray) and x.ndim > 0, lambda x: isinstance(x, np.ndarray)):
        group = [str(x.dtype) for x, kind in zip(operands, kinds) if is_asked(x) and kind == highest]
        if group:
            # NumPy agrees within a kind; a complex number beside float64 is as wide as that.
            out = str(np.result_type(*group))
            reals = [
                str(x.dtype) for x in operands if isinstance(x, np.ndarray) and kind_of(str(x.dtype)) == 2
            ]
            wide = [
                x for x in operands if isinstance(x, np.ndarray) and str(x.dtype) == "float64" and is_asked(x)
            ]
            return "complex128" if highest == 3 and reals and wide else out
    arrays = [str(x.dtype) for x in operands if isinstance(x, np.ndarray)]
    default = {1: "int64", 2: "float32", 3: "complex64"}[highest]
    return "complex128" if highest == 3 and "float64" in arrays else default


KIND_OF_NUMBER = {bool: 0, int: 1, float: 2, complex: 3}


def as_float(dtype: str) -> str:
    return dtype if kind_of(dtype) > 1 else "float32"


def widened(x: Any, dtype: str) -> Any:
    """An operand with the digits that it has in `dtype`, in the widest type of its kind."""
    wide = {0: "bool", 1: "int64", 2: "float64", 3: "complex128"}[kind_of(dtype)]
    return np.asarray(x).astype(dtype).astype(wide)


def wrapped(out: Any, dtype: str) -> Any:
    """Integers as they wrap in their dtype."""
    out = np.asarray(out)
    return out.astype(dtype) if np.dtype(dtype).kind in "iu" and out.dtype.kind in "iu" else out


# ---- drawing ----


@dataclass
class Draw:
    """Draws what calls are made of."""

    data: st.DataObject

    def one(self, choices: Any) -> Any:
        return self.data.draw(st.sampled_from(list(choices)))

    def flag(self) -> bool:
        return self.data.draw(st.booleans())

    def integer(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))

    def shape(self, low: int = 0, high: int = 3, least: int = 0) -> tuple[int, ...]:
        return tuple(self.integer(least, 3) for _ in range(self.integer(low, high)))

    def dtype(self, kinds: tuple[int, ...] = (0, 1, 2, 3)) -> str:
        return self.one([d for d in DTYPES if kind_of(d) in kinds])

    def array(self, shape: tuple[int, ...], dtype: str, special: bool = True) -> Array:
        """Small numbers that every type holds, and among the real ones some infinities and NaN; they
        shrink."""
        whole = st.integers(0 if np.dtype(dtype).kind == "u" else -3, 3)
        quarters = st.integers(-12, 15).map(lambda k: k / 4)
        elements = (st.booleans(), whole, quarters, st.builds(complex, whole, whole))[kind_of(dtype)]
        if special and kind_of(dtype) == 2 and self.integer(0, 3) == 0:
            elements = st.one_of(
                quarters, quarters, quarters, st.sampled_from([math.inf, -math.inf, math.nan, -0.0])
            )
        # Without a number that fills what was not drawn: all elements differ.
        return self.data.draw(hnp.arrays(dtype, shape, elements=elements, fill=st.nothing()))

    def stretched(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts with this one."""
        kept = shape[self.integer(0, len(shape)) :]
        return tuple(1 if self.integer(0, 3) == 0 else n for n in kept)

    def axis(self, rank: int) -> int:
        return self.integer(-max(rank, 1), max(rank, 1) - 1)

    def axes(self, rank: int) -> Any:
        """None, an axis, or several of them."""
        if rank == 0 or self.flag():
            return self.one([None, *range(-rank, rank)])
        return tuple(self.data.draw(st.permutations(range(rank)))[: self.integer(1, rank)])


# ---- judging ----


def judged(
    name: str, call: Callable[[], Tensor], wanted: Callable[[], Any], dtype: str, may_refuse: bool
) -> None:
    """Compares a call with what NumPy says; where NumPy refuses, we must, too."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = np.asarray(wanted())
    except (TypeError, ValueError, IndexError, np.exceptions.AxisError):
        expected = None
    refusal = ""
    try:
        found = call()
    except REFUSALS as error:
        refusal = f"{name}: {type(error).__name__}: {error}"
    if refusal:
        assert "internal" not in refusal
        assert may_refuse or expected is None, refusal
        return
    if may_refuse:
        return
    assert expected is not None, f"{name}: NumPy refuses this"
    assert found.dtype.name == dtype, f"{name}: {found.dtype.name}, expected {dtype}"
    got = (
        np.array(found.tolist(), dtype=np.dtype(dtype))
        if found.numel()
        else np.zeros(tuple(found.shape), dtype)
    )
    assert tuple(found.shape) == expected.shape, f"{name}: {tuple(found.shape)}, expected {expected.shape}"
    with np.errstate(all="ignore"):
        expected = expected.astype(dtype)
    if dtype in TOLERANCE:
        np.testing.assert_allclose(got, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], err_msg=name)
    else:
        np.testing.assert_array_equal(got, expected, err_msg=name)
