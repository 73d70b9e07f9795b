"""Densities, as in `scipy.stats`: each distribution is a module of functions.

Parameters broadcast; values outside of the support and senseless parameters give what the formulas give.
`wengert.distributions` has more of them, with samples and divergences.
"""

from . import multivariate_normal, norm, t

__all__ = ["multivariate_normal", "norm", "t"]
__dir__ = __all__.copy
