"""Normalisation layers."""

from collections.abc import Iterable, Sequence
from typing import Any

import wengert as wg
from wengert._core import Tensor
from wengert._numbers import check_integers

from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _Affine(Module):
    """A layer with a weight that starts at 1 and a bias that starts at 0, either or both absent."""

    weight: Parameter | None
    bias: Parameter | None

    def _make(self, shape: tuple[int, ...], weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            values = Parameter(wg.empty(shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """Zero mean and unit variance over the trailing axes, then weight and bias (Ba et al. 2016).

    `(x - mean) / sqrt(var + eps) * weight + bias`; the shape stays.

    Args:
        normalized_shape: the lengths of the trailing axes over which mean and variance are taken; a number
            for the last one.
        eps: added to the variance, so that nothing is divided by 0.
        elementwise_affine: whether there are `weight` and `bias`, learnt, of `normalized_shape`, which start
            at 1 and 0.
        bias: False leaves out that one of them.

    Example:
        >>> wg.nn.LayerNorm(2)(wg.tensor([[1.0, 3.0]])).detach()
        tensor([[-1.,  1.]])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes the parameters."""
        super().__init__()
        self.normalized_shape = _shape(type(self).__name__, normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Returns the normalised input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """Unit mean square over the trailing axes, then weight (Zhang and Sennrich 2019).

    `x / sqrt(mean(x^2) + eps) * weight`; the shape stays.

    Args:
        normalized_shape: the lengths of the trailing axes over which the mean is taken; a number for the last
            one.
        eps: added to the mean square; None: the machine epsilon of the input's dtype.
        elementwise_affine: whether there is a learnt `weight` of `normalized_shape`, which starts at 1.

    Example:
        >>> wg.nn.RMSNorm(2)(wg.tensor([[3.0, 4.0]])).detach()
        tensor([[0.8485, 1.1314]])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes the weight."""
        super().__init__()
        self.normalized_shape = _shape(type(self).__name__, normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, False, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Returns the normalised input."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Settings."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """Layer norm over groups of channels (axis 1), with a weight and bias per channel (Wu and He 2018).

    Args:
        num_groups: the number of groups, each normalised over its channels and all spatial axes.
        num_channels: the number of channels, a multiple of that.
        eps: added to the variance, so that nothing is divided by 0.
        affine: whether there are `weight` and `bias` `(num_channels,)`, learnt, which start at 1 and 0.
        bias: False leaves out that one of them.

    Example:
        >>> wg.nn.GroupNorm(2, 4)(wg.randn(3, 4, 5)).shape
        (3, 4, 5)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        """Makes the parameters."""
        super().__init__()
        check_integers("GroupNorm", num_groups=num_groups, num_channels=num_channels)
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"GroupNorm: {num_channels} channels do not divide into {num_groups} groups")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._make((num_channels,), affine, affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Returns the normalised input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Settings."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Divides by a power of the mean square of neighbouring channels: `x / (k + alpha m)^beta` (Krizhevsky et
    al. 2012).

    m is the mean of the squares of `size` channels (axis 1) around each one, those outside being 0; `alpha`
    is its weight, `beta` the exponent, and `k` what is added, so that nothing is divided by 0.

    Example:
        >>> wg.nn.LocalResponseNorm(2)(wg.ones(1, 3, 4)).shape
        (1, 3, 4)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        """Keeps the settings."""
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        """Returns the normalised input."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """Settings."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _shape(name: str, shape: Any) -> tuple[int, ...]:
    lengths = tuple(shape) if isinstance(shape, Iterable) and not isinstance(shape, str) else (shape,)
    if not all(hasattr(type(n), "__index__") for n in lengths):
        raise TypeError(f"{name}: normalized_shape is an integer or a sequence of integers, got {shape!r}")
    return lengths
