"""Random calls of functions of single elements: dtypes from bool to complex, tensors without axes, axes of
length 0 and 1, and numbers for operands. `function_draws.py` says what is expected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
from hypothesis import given, strategies as st
from references.complex_reference import log_add_exp
from robustness.function_draws import Draw, as_float, judged, kind_of, promoted, widened, wrapped
from support import examples

# ---- functions of elements ----

# Name: NumPy's function, the kinds that have it, and what becomes of the dtype.
UNARY: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], str]] = {
    "abs": (np.abs, (1, 2, 3), "real"),
    "neg": (np.negative, (1, 2, 3), "same"),
    "sign": (lambda x: x if x.dtype == bool else np.sign(x), (0, 1, 2), "same"),
    "square": (np.square, (1, 2, 3), "same"),
    "floor": (np.floor, (1, 2), "same"),
    "ceil": (np.ceil, (1, 2), "same"),
    "trunc": (np.trunc, (1, 2), "same"),
    "round": (np.round, (1, 2), "same"),
    "exp": (np.exp, (0, 1, 2, 3), "float"),
    "log": (np.log, (0, 1, 2), "float"),
    "sqrt": (np.sqrt, (0, 1, 2), "float"),
    "sin": (np.sin, (0, 1, 2, 3), "float"),
    "cos": (np.cos, (0, 1, 2, 3), "float"),
    "tanh": (np.tanh, (0, 1, 2), "float"),
    "atan": (np.arctan, (0, 1, 2), "float"),
    "expm1": (np.expm1, (0, 1, 2), "float"),
    "log1p": (np.log1p, (0, 1, 2), "float"),
    "reciprocal": (lambda x: 1 / np.asarray(x, float), (0, 1, 2), "float"),
    "deg2rad": (np.deg2rad, (1, 2), "float"),
    "logical_not": (np.logical_not, (0, 1, 2, 3), "bool"),
    "isnan": (np.isnan, (0, 1, 2, 3), "bool"),
    "isinf": (np.isinf, (0, 1, 2), "bool"),
    "isfinite": (np.isfinite, (0, 1, 2, 3), "bool"),
    "signbit": (lambda x: np.signbit(x) if x.dtype == float else x < 0, (1, 2), "bool"),
    "conj": (np.conj, (1, 2, 3), "same"),
    "angle": (np.angle, (1, 2, 3), "real float"),
}
REAL = {"complex64": "float32", "complex128": "float64"}


@examples(100)
@given(st.data())
def test_functions_of_one_tensor(data: st.DataObject) -> None:
    draw = Draw(data)
    name = draw.one(UNARY)
    function, kinds, rule = UNARY[name]
    x = draw.array(draw.shape(), dtype := draw.dtype())
    out = {"same": dtype, "bool": "bool", "float": as_float(dtype), "real": REAL.get(dtype, dtype)}.get(rule)
    out = out or REAL.get(as_float(dtype), as_float(dtype))
    # NaN has no angle and no sign, and a real zero has the angle 0 on both of its sides.
    if name in ("angle", "signbit"):
        x = np.asarray(np.nan_to_num(x))
        x = np.where(x == 0, np.zeros_like(x), x) if name == "angle" else x
    wide = widened(x, as_float(dtype) if "float" in rule else dtype)
    judged(
        f"{name} of {dtype} {x.shape}",
        lambda: getattr(wg, name)(wg.tensor(x)),
        lambda: function(wide),
        out,
        kind_of(dtype) not in kinds,
    )


BINARY: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...], str]] = {
    "add": (np.add, (0, 1, 2, 3), "promoted"),
    "sub": (np.subtract, (1, 2, 3), "promoted"),
    "mul": (np.multiply, (0, 1, 2, 3), "promoted"),
    "div": (lambda x, y: np.divide(np.asarray(x), np.asarray(y)), (0, 1, 2), "float"),
    "maximum": (np.maximum, (0, 1, 2), "promoted"),
    "minimum": (np.minimum, (0, 1, 2), "promoted"),
    "fmax": (np.fmax, (1, 2), "promoted"),
    "fmin": (np.fmin, (1, 2), "promoted"),
    "floor_divide": (np.floor_divide, (1, 2), "promoted"),
    "remainder": (np.remainder, (1, 2), "promoted"),
    "fmod": (np.fmod, (1, 2), "promoted"),
    "atan2": (np.arctan2, (1, 2), "float"),
    "hypot": (np.hypot, (2,), "float"),
    "copysign": (np.copysign, (1, 2), "float"),
    "logaddexp": (log_add_exp, (2, 3), "float"),
    "logaddexp2": (np.logaddexp2, (1, 2), "float"),
    "ldexp": (lambda x, y: x * 2.0**y, (1, 2), "float"),
    "xlogy": (
        lambda x, y: np.where(np.isnan(y), np.nan, np.where(x == 0, 0, x * np.log(y))),
        (2,),
        "float",
    ),
    "eq": (np.equal, (0, 1, 2, 3), "bool"),
    "ne": (np.not_equal, (0, 1, 2, 3), "bool"),
    "lt": (np.less, (0, 1, 2), "bool"),
    "ge": (np.greater_equal, (0, 1, 2), "bool"),
    "logical_and": (np.logical_and, (0, 1, 2, 3), "bool"),
    "logical_xor": (np.logical_xor, (0, 1, 2, 3), "bool"),
    "bitwise_and": (np.bitwise_and, (0, 1), "promoted"),
    "bitwise_or": (np.bitwise_or, (0, 1), "promoted"),
    "gcd": (np.gcd, (1,), "promoted"),
    "lcm": (np.lcm, (1,), "promoted"),
    "heaviside": (np.heaviside, (2,), "promoted"),
}
#: Those whose second operand may be a number.
WITH_NUMBERS = "add sub mul div floor_divide remainder fmod eq ne lt ge bitwise_and bitwise_or xlogy".split()


@examples(200)
@given(st.data())
def test_functions_of_two_operands(data: st.DataObject) -> None:
    draw = Draw(data)
    name = draw.one(BINARY)
    function, kinds, rule = BINARY[name]
    special = name not in (
        "copysign",
        "floor_divide",
        "remainder",
        "fmod",
        "logaddexp",
        "logaddexp2",
        "hypot",
    )
    x = draw.array(draw.shape(), draw.dtype(), special)
    y: Any = draw.array(draw.stretched(x.shape), draw.dtype(), special)
    ours: Any = wg.tensor(y)
    if name in WITH_NUMBERS and draw.integer(0, 2) == 0:
        y = draw.one([True, 2, 1, 1.5, 0.25, -2.0, 1 - 2j])
        ours = y
    together = promoted([x, y])
    if name in ("remainder", "floor_divide", "fmod", "atan2") and kind_of(together) == 2:
        # Quotients that are whole but for rounding, and the sides of a cut.
        x = np.asarray(np.abs(x) + np.asarray(0.125, x.dtype)) if kind_of(str(x.dtype)) == 2 else x
    within = {"promoted": together, "float": as_float(together), "bool": together}[rule]
    a, b = widened(x, within), widened(y, within)
    if isinstance(y, (int, float, complex)) and not isinstance(y, bool):
        may_refuse = kind_of(together) not in kinds or (np.dtype(together).kind == "u" and np.real(y) < 0)
    else:
        may_refuse = kind_of(together) not in kinds
    divides = name in ("floor_divide", "remainder", "fmod") and kind_of(together) == 1
    may_refuse |= divides and bool((b == 0).any())
    judged(
        f"{name} of {x.dtype} {x.shape} and {y if ours is y else (y.dtype, y.shape)}",
        lambda: getattr(wg, name)(wg.tensor(x), ours),
        lambda: wrapped(function(a, b), within),
        "bool" if rule == "bool" else within,
        may_refuse,
    )


@examples(100)
@given(st.data())
def test_powers(data: st.DataObject) -> None:
    draw = Draw(data)
    x = draw.array(draw.shape(), draw.dtype((0, 1, 2)), special=False)
    y: Any = draw.one([0, 1, 2, 3, 0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -2.0, -2, True])
    if draw.flag():
        y = np.asarray(np.abs(draw.array(draw.stretched(x.shape), draw.dtype((1, 2)), special=False)))
    together = promoted([x, y])
    if together == "bool":
        together = "int64"
    a, b = widened(x, together), widened(y, together)
    call = (
        (lambda: wg.tensor(x) ** y)
        if not isinstance(y, np.ndarray)
        else (lambda: wg.tensor(x) ** wg.tensor(y))
    )
    judged(
        f"{x.dtype} {x.shape} ** {y!r}",
        call,
        lambda: wrapped(np.power(a, b), together),
        together,
        kind_of(together) < 2 and bool((np.asarray(y) < 0).any()),
    )
