"""Learning-rate schedules.

Most multiply the rates that stand, step by step, so that several act on one optimiser at once. Those with a
closed form use it where they are entered at a given step, as `SequentialLR` does.
`ReduceLROnPlateau` follows a measured quantity.
"""

from .combined import ChainedScheduler, SequentialLR
from .cycles import CosineAnnealingLR, CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from .factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .plateau import ReduceLROnPlateau
from .schedule import LRScheduler

#: PyTorch's older name of it, which subclasses and `isinstance` still use.
_LRScheduler = LRScheduler

__all__ = [
    "LRScheduler",
    "LambdaLR",
    "MultiplicativeLR",
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "PolynomialLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "OneCycleLR",
    "SequentialLR",
    "ChainedScheduler",
    "ReduceLROnPlateau",
]


def __dir__() -> list[str]:
    """What is public."""
    return __all__
