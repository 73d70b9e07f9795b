"""Gradient clipping, parameters as one vector or as functions of others, sequences of different lengths, and
layers joined for evaluation.
"""

from . import clip_grad, convert_parameters, fusion, older, parametrizations, parametrize, rnn, stateless
from .clip_grad import *
from .convert_parameters import *
from .fusion import *
from .older import *

__all__ = [
    "clip_grad",
    "convert_parameters",
    "parametrizations",
    "parametrize",
    "rnn",
    "stateless",
]
__all__ += clip_grad.__all__
__all__ += convert_parameters.__all__
__all__ += fusion.__all__
__all__ += older.__all__
__dir__ = __all__.copy
