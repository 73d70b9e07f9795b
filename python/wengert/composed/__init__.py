"""Operations that are made of others: one file per family.

They have no rules of their own. Their derivatives, and their behaviour under every transform, are those of the core's
operations they call. A function marked `@method` is a method of `Tensor` as well.
"""

from . import (
    asking,
    buckets,
    combining,
    factorizations,
    frames,
    joining,
    making,
    ordering,
    placing,
    pointwise,
    products,
    reductions,
    scattering,
    shaping,
    splitting,
    statistics,
    windows,
)

__all__ = ["FAMILIES"]

FAMILIES = (
    asking,
    buckets,
    combining,
    factorizations,
    frames,
    joining,
    making,
    ordering,
    placing,
    pointwise,
    products,
    reductions,
    scattering,
    shaping,
    splitting,
    statistics,
    windows,
)
