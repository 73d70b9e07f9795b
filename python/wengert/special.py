"""Special functions under the names of `torch.special` and `scipy.special`.

Each is a function of the main namespace: elementwise, of floating point tensors of any shape (integers become float32),
with every rule of differentiation and batching. Formulas and singular points: `docs/formulas.md`; errors in units in
the last place: `benches/results/ulp.md`.
"""

from wengert import (
    digamma,
    entr,
    erf,
    erfc,
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
    mvlgamma,
    ndtr,
    polygamma,
    sigmoid,
    sinc,
    softmax,
    xlog1py,
    xlogy,
)

# The other names of some.
expit, gammaln, psi, multigammaln = sigmoid, lgamma, digamma, mvlgamma

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "lgamma",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "polygamma",
    "psi",
    "sigmoid",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
]


def __dir__() -> list[str]:
    """What is public."""
    return __all__
