"""Special functions under the names of `torch.special` and `scipy.special`.

Each is elementwise, of floating point tensors of any shape (integers become float32), with every rule of
differentiation and batching. Formulas and singular points: `docs/formulas.md`; errors in units in the last
place: `docs/accuracy.md`.
"""

from wengert import (
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    digamma,
    entr,
    erf,
    erfc,
    erfcx,
    erfinv,
    exp2,
    expm1,
    i0,
    i0e,
    i1,
    i1e,
    lgamma,
    log1p,
    log_ndtr,
    log_softmax,
    logit,
    logsumexp,
    modified_bessel_k0,
    modified_bessel_k1,
    mvlgamma,
    ndtr,
    ndtri,
    polygamma,
    round,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    sigmoid,
    sinc,
    softmax,
    spherical_bessel_j0,
    xlog1py,
    xlogy,
)

from .airy import airy_ai
from .gamma import gammainc, gammaincc, zeta
from .polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)

# The other names of some.
expit, gammaln, psi, multigammaln = sigmoid, lgamma, digamma, mvlgamma
modified_bessel_i0, modified_bessel_i1 = i0, i1

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "lgamma",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "mvlgamma",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "sigmoid",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]


def __dir__() -> list[str]:
    """What is public."""
    return __all__
