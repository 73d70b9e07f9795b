"""Transforms between sets of values, under the names of `torch.distributions.transforms`.

Reading order: `base.py` (what a transform is, compositions), `elementwise.py` (functions of numbers),
`structured.py` (vectors, matrices, parts).
"""

from . import base, elementwise, structured
from .base import *
from .elementwise import *
from .structured import *

__all__: list[str] = []
__all__ += base.__all__
__all__ += elementwise.__all__
__all__ += structured.__all__
__dir__ = __all__.copy
