"""Derivatives up to the third order where formulas change their branch, against mpmath's numerical ones.

A rule is written with branches (the larger operand taken out of a root, a limit at zero) that agree in their
values. Where the function is smooth, so must the derivatives of the rule: at zeros, at ties, on the axes of
the plane.
"""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import wengert as wg

ONE: dict[str, tuple[Callable[..., Any], list[float]]] = {
    "asinh": (mpmath.asinh, [0.0, -0.0, 1.0, -1.0, 3.0]),
    "acosh": (mpmath.acosh, [2.0]),
    "atanh": (mpmath.atanh, [0.0, 0.5]),
    "asin": (mpmath.asin, [0.0, -0.5]),
    "acos": (mpmath.acos, [0.0, 0.5]),
    "atan": (mpmath.atan, [0.0, 1.0, -1.0]),
    "sinh": (mpmath.sinh, [0.0, 1.0]),
    "cosh": (mpmath.cosh, [0.0, 1.0]),
    "tanh": (mpmath.tanh, [0.0, 0.625]),
    "tan": (mpmath.tan, [0.0, 1.0]),
    "expm1": (mpmath.expm1, [0.0, 1.0]),
    "log1p": (lambda x: mpmath.log(1 + x), [0.0, 1.0]),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), [0.0, 2.0]),
    "softplus": (lambda x: mpmath.log(1 + mpmath.exp(x)), [0.0, 2.0]),
    "silu": (lambda x: x / (1 + mpmath.exp(-x)), [0.0, 1.0]),
    "erf": (mpmath.erf, [0.0, 1.0]),
    "erfc": (mpmath.erfc, [0.0, 1.0]),
    "erfinv": (mpmath.erfinv, [0.0, 0.3]),
    "ndtr": (mpmath.ncdf, [0.0, 1.0]),
    "log_ndtr": (lambda x: mpmath.log(mpmath.ncdf(x)), [0.0, -3.0]),
    "lgamma": (mpmath.loggamma, [1.0, 2.0, 4.5]),
    "digamma": (mpmath.digamma, [1.0, 2.5]),
    "i0": (lambda x: mpmath.besseli(0, x), [0.0, 0.02, 0.05, 2.0]),
    "i1": (lambda x: mpmath.besseli(1, x), [0.0, 0.02, 0.05, 2.0]),
    "sinc": (lambda x: mpmath.sinc(mpmath.pi * x), [0.5, 1.0]),
}

TWO: dict[str, tuple[Callable[..., Any], list[tuple[float, float]]]] = {
    "logaddexp": (
        lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
        [(0.5, 0.5), (0.0, 0.0), (1.0, -2.0)],
    ),
    "logaddexp2": (lambda x, y: mpmath.log(2**x + 2**y, 2), [(0.5, 0.5), (1.0, -2.0)]),
    "atan2": (
        mpmath.atan2,
        [(1.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (-2.0, -2.0), (0.0, 1.0), (1.0, 0.0), (-1.0, 0.0), (0.5, 2.0)],
    ),
    "hypot": (mpmath.hypot, [(1.0, 1.0), (-1.0, 1.0), (0.0, 2.0), (3.0, 0.0), (3.0, -4.0)]),
    "pow": (mpmath.power, [(2.0, 0.0), (2.0, 1.0), (3.0, 2.0), (0.5, -1.0)]),
    "div": (lambda x, y: x / y, [(0.0, 2.0), (1.0, -1.0)]),
}


def numerical(f: Callable[..., Any], x: tuple[float, ...], orders: tuple[int, ...]) -> float:
    """A mixed partial derivative by differences with 60 digits."""
    with mpmath.workdps(60):
        return float(mpmath.re(mpmath.diff(f, tuple(map(mpmath.mpf, x)), orders, h=mpmath.mpf(10) ** -12)))


@pytest.mark.parametrize("name", ONE)
def test_of_one_variable(name: str) -> None:
    exact, points = ONE[name]
    f = getattr(wg, name, None) or getattr(wg.nn.functional, name)
    for order in (1, 2, 3):
        f = wg.grad(f)
        for x in points:
            wanted = numerical(exact, (x,), (order,))
            found = f(wg.tensor(x, dtype=wg.float64)).item()
            assert found == pytest.approx(wanted, rel=1e-9, abs=1e-10), (order, x)


@pytest.mark.parametrize("name", TWO)
def test_of_two_variables(name: str) -> None:
    exact, points = TWO[name]
    f = getattr(wg, name)
    for at in points:
        x = [wg.tensor(v, dtype=wg.float64) for v in at]
        for order in (1, 2, 3):
            for first in range(order + 1):
                g = f
                for axis in [0] * first + [1] * (order - first):
                    g = wg.grad(g, argnums=axis)
                wanted = numerical(exact, at, (first, order - first))
                found = g(*x).item()
                assert found == pytest.approx(wanted, rel=1e-9, abs=1e-10), (at, first, order - first)


PLANE = {
    "sqrt": mpmath.sqrt,
    "rsqrt": lambda z: 1 / mpmath.sqrt(z),
    "log": mpmath.log,
    "log1p": lambda z: mpmath.log(1 + z),
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "reciprocal": lambda z: 1 / z,
    "square": lambda z: z * z,
}
# On the axes, the unit circle, the diagonals, above and below the branch points; none on a cut or at a pole.
PLACES = [0.5j, -0.5j, 0.5, 1 + 1j, 1 - 1j, -1 + 1j, -1 - 1j, 0.5 + 0.5j, -2 + 2j, 0.25 - 1j, 0.25 + 1j]


def pushed(f: Callable[..., Any], direction: complex) -> Callable[..., Any]:
    """The derivative of `f` along a direction of the plane."""
    return lambda z: wg.jvp(f, (z,), (wg.full((), direction, dtype=wg.complex128),))[1]


@pytest.mark.parametrize("z", PLACES)
@pytest.mark.parametrize("name", PLANE)
def test_in_the_complex_plane(name: str, z: complex) -> None:
    """A derivative of a holomorphic function along 1, and the second one along `i`, which is minus that along
    1."""
    f, x = getattr(wg, name), wg.tensor(z, dtype=wg.complex128)
    with mpmath.workdps(60):
        first, second = (complex(mpmath.diff(PLANE[name], z, k, h=mpmath.mpf(10) ** -12)) for k in (1, 2))
    assert pushed(f, 1.0)(x).item() == pytest.approx(first, rel=1e-9)
    assert pushed(f, 1j)(x).item() == pytest.approx(1j * first, rel=1e-9)
    twice = pushed(pushed(f, 1j), 1j)(x).item()
    assert twice == pytest.approx(-second, rel=1e-8, abs=1e-9)
    assert wg.grad(lambda z: f(z).real)(x).item() == pytest.approx(np.conj(first), rel=1e-9)
