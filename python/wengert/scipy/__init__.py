"""The functions of SciPy that programs for autograd and `jax.scipy` call, over tensors, with SciPy's
parameters.

Example:
    >>> import wengert.scipy as scipy
    >>> wg.grad(scipy.special.logsumexp)(wg.tensor([1.0, 1.0]))
    tensor([0.5, 0.5])
"""

from . import integrate, signal, special, stats

__all__ = ["integrate", "signal", "special", "stats"]
__dir__ = __all__.copy
