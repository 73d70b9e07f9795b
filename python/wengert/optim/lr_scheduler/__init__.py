"""Learning-rate schedules.

Most multiply the rates that stand, step by step, so that several act on one optimiser at once. Those with a
closed form use it where they are entered at a given step, as `SequentialLR` does.
`ReduceLROnPlateau` follows a measured quantity.
"""

from . import combined, cycles, factors, plateau
from .combined import *
from .cycles import *
from .factors import *
from .plateau import *
from .schedule import LRScheduler

#: PyTorch's older name of it, which subclasses and `isinstance` still use.
_LRScheduler = LRScheduler

__all__ = ["LRScheduler"]
__all__ += combined.__all__
__all__ += cycles.__all__
__all__ += factors.__all__
__all__ += plateau.__all__
__dir__ = __all__.copy
