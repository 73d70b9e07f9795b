"""Probability distributions under the names of `torch.distributions`.

A distribution has parameters in batches, draws (`sample`; `rsample`, whose draws are differentiable in the
parameters), a density (`log_prob`), moments, and often `cdf`, `icdf` and `entropy`; `kl_divergence` compares
two. All of it is made of operations of the library, so it is differentiated, and works in `vmap`. Where terms
cancel, float32 parameters are computed with in float64 and rounded once.

Reading order: `distribution.py` (the base), `constraints.py`, `parameters.py`, a family (`normal.py`,
`gamma.py`, ...), `numerics/` (functions that the core lacks, and samplers), `transforms/`, `kl/`.

Example:
    >>> d = wg.distributions.Normal(wg.tensor([0.0, 1.0]), 1.0)
    >>> d.log_prob(wg.tensor(0.0))
    tensor([-0.9189, -1.4189])
"""

import sys as _sys

from . import (
    beta as _beta,
    binary as _binary,
    categorical as _categorical,
    constraint_registry,
    constraints,
    counts as _counts,
    gamma as _gamma,
    kl,
    location_scale as _location_scale,
    matrices as _matrices,
    multivariate_normal as _multivariate_normal,
    normal as _normal,
    positive as _positive,
    relaxed,
    transforms,
    utils,
)
from .beta import *
from .binary import *
from .categorical import *
from .constraint_registry import biject_to, transform_to
from .counts import *
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .gamma import *
from .independent import Independent
from .kl import kl_divergence, register_kl
from .location_scale import *
from .matrices import *
from .mixture_same_family import MixtureSameFamily
from .multivariate_normal import *
from .normal import *
from .positive import *
from .relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from .transformed_distribution import TransformedDistribution
from .transforms import *

__all__ = [
    "Distribution",
    "ExponentialFamily",
    "Independent",
    "MixtureSameFamily",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "TransformedDistribution",
    "biject_to",
    "constraint_registry",
    "constraints",
    "kl",
    "kl_divergence",
    "register_kl",
    "relaxed",
    "transform_to",
    "transforms",
    "utils",
]
__all__ += _beta.__all__
__all__ += _binary.__all__
__all__ += _categorical.__all__
__all__ += _counts.__all__
__all__ += _gamma.__all__
__all__ += _location_scale.__all__
__all__ += _matrices.__all__
__all__ += _multivariate_normal.__all__
__all__ += _normal.__all__
__all__ += _positive.__all__
__all__ += transforms.__all__
__dir__ = __all__.copy

# PyTorch has a module for each distribution; here a module has a family.
_MODULES = {
    _beta: "dirichlet kumaraswamy",
    _binary: "bernoulli continuous_bernoulli geometric",
    _categorical: "one_hot_categorical",
    _counts: "binomial multinomial negative_binomial poisson",
    _gamma: "chi2 fishersnedecor inverse_gamma studentT",
    _location_scale: "cauchy gumbel half_cauchy laplace uniform von_mises",
    _matrices: "lkj_cholesky wishart",
    _multivariate_normal: "lowrank_multivariate_normal",
    _normal: "half_normal log_normal logistic_normal",
    _positive: "exponential generalized_pareto pareto weibull",
    relaxed: "relaxed_bernoulli relaxed_categorical",
}
for _module, _names in _MODULES.items():
    for _name in _names.split():
        _sys.modules[f"{__name__}.{_name}"] = _module
