"""What densities and draws are computed by: functions that the core lacks, and samplers."""

from . import incomplete, samplers, special

__all__ = ["incomplete", "samplers", "special"]


def __dir__() -> list[str]:
    """What is public."""
    return __all__
