"""Dropout layers: of elements, of whole channels, and for self-normalising networks. They do nothing in
evaluation."""

from typing import Any

from wengert._core import Tensor

from .. import functional as F
from .affine import Dropout

__all__ = ["AlphaDropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Variant(Dropout):
    """Another function with a probability."""

    _function: Any

    def forward(self, input: Tensor) -> Tensor:
        """Returns the thinned input."""
        return type(self)._function(input, self.p, self.training, self.inplace)


class Dropout1d(_Variant):
    """In training, zeroes whole channels of `(N, C, L)` or `(C, L)` with probability `p` (Tompson et al.
    2015).

    The others are divided by `1 - p`. With `inplace` the result is written into the input.

    Example:
        >>> wg.nn.Dropout1d(0.5).eval()(wg.ones(2, 3))
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """

    _function = staticmethod(F.dropout1d)


class Dropout2d(_Variant):
    """In training, zeroes whole channels of `(N, C, H, W)`, or of `(N, C, L)`; `p` and `inplace` as of
    `Dropout1d`.

    Example:
        >>> wg.nn.Dropout2d(0.5)(wg.ones(4, 3, 2, 2)).shape
        (4, 3, 2, 2)
    """

    _function = staticmethod(F.dropout2d)


class Dropout3d(_Variant):
    """In training, zeroes whole channels of `(N, C, D, H, W)` or `(C, D, H, W)`; `p` and `inplace` as of
    `Dropout1d`.

    Example:
        >>> wg.nn.Dropout3d(0.5)(wg.ones(4, 3, 2, 2, 2)).shape
        (4, 3, 2, 2, 2)
    """

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_Variant):
    """In training, sets elements to the lowest value of SELU with probability `p` and rescales (Klambauer et
    al. 2017).

    An input of mean 0 and variance 1 keeps them. With `inplace` the result is written into the input.

    Example:
        >>> wg.nn.AlphaDropout(0.5).eval()(wg.ones(3))
        tensor([1., 1., 1.])
    """

    _function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_Variant):
    """`AlphaDropout` of whole channels (axis 1), with its `p` and `inplace`.

    Example:
        >>> wg.nn.FeatureAlphaDropout(0.5).eval()(wg.ones(1, 2))
        tensor([[1., 1.]])
    """

    _function = staticmethod(F.feature_alpha_dropout)
