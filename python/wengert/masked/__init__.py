"""Reductions and normalisations of the elements that a mask selects: PyTorch's `torch.masked`, of plain
tensors.

`mask` is a tensor of bools that broadcasts to the input: true where an element counts. What does not count
changes no result, be it NaN, and has a gradient of zero. Without a mask everything counts. A reduction of no
elements is its neutral element: 0 for sums, 1 for products, an infinity for extremes, and NaN where there is
none.

Example:
    >>> x = wg.tensor([[1.0, 2.0, float("nan")]])
    >>> wg.masked.mean(x, 1, mask=x.isfinite())
    tensor([1.5000])
"""

from . import _normalisations, _reductions
from ._normalisations import *
from ._reductions import *

__all__: list[str] = []
__all__ += _normalisations.__all__
__all__ += _reductions.__all__
__dir__ = __all__.copy
