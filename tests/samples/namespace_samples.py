"""Records of `wengert.special`'s compositions, of incomplete gamma functions, and of numerical
derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import wengert as wg
from scipy import special
from support import Arg, Array, Case, Integers, Real, Source

from samples.composed_samples import broadcast, shaped
from samples.sample import Table

NAMESPACES = Table()


def add(name: str, fn: Any, reference: Any, case: Any, **more: Any) -> None:
    """A record that covers no entry of the compiled list."""
    NAMESPACES.record(name, fn, reference, case, **{"rows": (), "empty": False, "scale": 8, **more})


add("igamma", wg.igamma, special.gammainc, broadcast(Real(0.4, 4), Real(0.4, 4)), gpu_scale=8)
add("igammac", wg.igammac, special.gammaincc, broadcast(Real(0.4, 4), Real(0.4, 4)), gpu_scale=8)
add("zeta", wg.special.zeta, special.zeta, broadcast(Real(1.6, 5), Real(0.5, 4)), gpu_scale=8)
add("airy_ai", wg.special.airy_ai, lambda x: special.airy(x)[0], shaped(Real(-3, 3)), gpu_scale=8)
add("frexp", lambda x: wg.frexp(x)[0], lambda x: np.frexp(x)[0], shaped(Real(2.1, 3.9)))
add("frexp_exponent", lambda x: wg.frexp(x)[1], lambda x: np.frexp(x)[1], shaped(Real(2.1, 3.9)), order=0)
add("rsub", lambda x, y: wg.rsub(x, y, alpha=2), lambda x, y: y - 2 * x, broadcast(Real(-2, 2), Real(-2, 2)))
add("fill", lambda x: wg.fill(x, 2.5), lambda x: np.full_like(x, 2.5), shaped())


def shifted(function: Any) -> Any:
    """The polynomial of `2 x - 1`."""
    return lambda x, n: function(2 * x - 1, n)


def third(x: Array, n: int) -> Array:
    """The Chebyshev polynomial of the third kind, from two of the second."""
    return special.eval_chebyu(n, x) - (special.eval_chebyu(n - 1, x) if n > 0 else 0)


def fourth(x: Array, n: int) -> Array:
    """The Chebyshev polynomial of the fourth kind, likewise."""
    return special.eval_chebyu(n, x) + (special.eval_chebyu(n - 1, x) if n > 0 else 0)


def by_degree(function: Any) -> Any:
    """A function of SciPy, which takes the degree first."""
    return lambda x, n: function(n, x)


POLYNOMIALS = {
    "chebyshev_polynomial_t": by_degree(special.eval_chebyt),
    "chebyshev_polynomial_u": by_degree(special.eval_chebyu),
    "chebyshev_polynomial_v": third,
    "chebyshev_polynomial_w": fourth,
    "hermite_polynomial_h": by_degree(special.eval_hermite),
    "hermite_polynomial_he": by_degree(special.eval_hermitenorm),
    "laguerre_polynomial_l": by_degree(special.eval_laguerre),
    "legendre_polynomial_p": by_degree(special.eval_legendre),
    "shifted_chebyshev_polynomial_t": shifted(by_degree(special.eval_chebyt)),
    "shifted_chebyshev_polynomial_u": shifted(by_degree(special.eval_chebyu)),
    "shifted_chebyshev_polynomial_v": shifted(third),
    "shifted_chebyshev_polynomial_w": shifted(fourth),
}


def degree_case(s: Source) -> Case:
    return Case((Arg(s.shape(), Real(-1.2, 1.2)),), {"n": s.integer(0, 5)})


for name, reference in POLYNOMIALS.items():
    function = getattr(wg.special, name)
    add(name, lambda x, n, f=function: f(x, n), reference, degree_case, scale=64)

add(
    "hermite_of_many_degrees",
    wg.special.hermite_polynomial_h,
    by_degree(special.eval_hermite),
    broadcast(Real(-1.2, 1.2), Integers(0, 4)),
    scale=64,
    vmap=False,
)


def gradient_case(s: Source) -> Case:
    return Case((Arg((s.integer(3, 5), s.integer(3, 5))),), {"edge_order": s.choice([1, 2])})


COORDINATES = np.array([0.0, 0.5, 2.0, 2.25, 4.0])


def uneven(x: Array, edge_order: int) -> Array:
    """The derivative along the first axis by NumPy."""
    return np.gradient(x, COORDINATES[: len(x)], axis=0, edge_order=edge_order)


add(
    "gradient",
    lambda x, edge_order: wg.gradient(x, spacing=0.5, dim=-1, edge_order=edge_order)[0],
    lambda x, edge_order: np.gradient(x, 0.5, axis=-1, edge_order=edge_order),
    gradient_case,
)
add(
    "gradient_of_coordinates",
    lambda x, edge_order: wg.gradient(
        x,
        spacing=[wg.tensor(COORDINATES[: x.shape[0]], dtype=x.dtype, device=x.device)],
        dim=0,
        edge_order=edge_order,
    )[0],
    uneven,
    gradient_case,
)
