"""What densities and draws are computed by: functions that the core lacks, and samplers."""

from . import incomplete, samplers, special

__all__ = ["incomplete", "samplers", "special"]
__dir__ = __all__.copy
