"""Kullback-Leibler divergences: `kl_divergence` and `register_kl`.

Reading order: `registry.py` (which rule), `expectations.py` (pairs of distributions of numbers),
`closed_forms.py` (the others).
"""

from . import closed_forms, expectations
from .registry import kl_divergence, register_kl

__all__ = ["kl_divergence", "register_kl"]
__dir__ = __all__.copy
