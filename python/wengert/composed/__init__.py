"""Operations that are made of others: one file per family.

They have no rules of their own. Their derivatives, and their behaviour under every transform, are those of
the core's operations they call. A function marked `@method` is a method of `Tensor` as well.
"""

from . import (
    buckets,
    differences,
    drawing,
    factorizations,
    frames,
    making,
    packed,
    pointwise,
    products,
    shaping,
    statistics,
)

__all__: list[str] = []
