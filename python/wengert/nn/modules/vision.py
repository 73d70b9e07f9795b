"""Layers that resample images and move channels, and layers of distances and bags of embeddings."""

from typing import Any

import wengert as wg
from wengert._core import Tensor

from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter
from .affine import shown_settings, table

__all__ = [
    "ChannelShuffle",
    "CosineSimilarity",
    "EmbeddingBag",
    "PairwiseDistance",
    "PixelShuffle",
    "PixelUnshuffle",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]


class Upsample(Module):
    """`nn.functional.interpolate` with fixed settings.

    Example:
        >>> wg.nn.Upsample(scale_factor=2)(wg.tensor([[[1.0, 2.0]]]))
        tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        """The sizes of the spatial axes, or how many times larger they become."""
        super().__init__()
        if isinstance(scale_factor, (tuple, list)):
            scale_factor = tuple(float(factor) for factor in scale_factor)
        elif scale_factor is not None:
            scale_factor = float(scale_factor)
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Returns the resampled images."""
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        """Returns the settings."""
        which = f"size={self.size}" if self.size is not None else f"scale_factor={self.scale_factor}"
        return f"{which}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of the nearest elements.

    Example:
        >>> wg.nn.UpsamplingNearest2d(scale_factor=2)(wg.ones(1, 1, 2, 2)).shape
        (1, 1, 4, 4)
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        """The size, or how many times larger."""
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` by bilinear interpolation with aligned corners.

    Example:
        >>> wg.nn.UpsamplingBilinear2d((1, 3))(wg.tensor([[[[0.0, 2.0]]]]))
        tensor([[[[0., 1., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        """The size, or how many times larger."""
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """`(..., C r², H, W)` to `(..., C, H r, W r)`.

    Example:
        >>> wg.nn.PixelShuffle(2)(wg.ones(1, 8, 3, 3)).shape
        (1, 2, 6, 6)
    """

    def __init__(self, upscale_factor: int) -> None:
        """The factor `r`."""
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Returns the larger images."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """Returns the factor."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """`(..., C, H r, W r)` to `(..., C r², H, W)`.

    Example:
        >>> wg.nn.PixelUnshuffle(2)(wg.ones(1, 2, 6, 6)).shape
        (1, 8, 3, 3)
    """

    def __init__(self, downscale_factor: int) -> None:
        """The factor `r`."""
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Returns the smaller images."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """Returns the factor."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels dealt out over groups.

    Example:
        >>> wg.nn.ChannelShuffle(2)(wg.arange(4.0).reshape(1, 4, 1)).flatten()
        tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int) -> None:
        """The number of groups."""
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Returns the channels in another order."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """Returns the number of groups."""
        return f"groups={self.groups}"


class PairwiseDistance(Module):
    """The `p`-norm of differences over the last axis.

    Example:
        >>> wg.nn.PairwiseDistance()(wg.tensor([[0.0, 0.0]]), wg.tensor([[3.0, 4.0]]))
        tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        """`eps` is added to the differences."""
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Returns the distances of pairs."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along an axis.

    Example:
        >>> wg.nn.CosineSimilarity()(wg.tensor([[1.0, 0.0]]), wg.tensor([[1.0, 1.0]]))
        tensor([0.7071])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        """`eps` is the least length that is divided by."""
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Returns the cosines."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class EmbeddingBag(Module):
    """Sums, means or maxima of bags of rows of a table; it starts as N(0, 1), with zeros in row `padding_idx`.

    Example:
        >>> wg.nn.EmbeddingBag(10, 3, mode="sum")(wg.tensor([[1, 2], [4, 5]])).shape
        (2, 3)
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes `weight` of shape (num_embeddings, embedding_dim), or takes `_weight`."""
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.include_last_offset = include_last_offset
        self.padding_idx = (
            padding_idx if padding_idx is None or padding_idx >= 0 else num_embeddings + padding_idx
        )
        shape = (num_embeddings, embedding_dim)
        self.weight = table("EmbeddingBag", shape, _weight, False, device, dtype)
        if _weight is None:
            self.reset_parameters()

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **settings: Any) -> "EmbeddingBag":
        """Makes a layer around given values of shape (rows, features); not trained if `freeze`."""
        values = wg.as_tensor(embeddings)
        layer = cls(values.shape[0], values.shape[1], _weight=values, **settings)
        layer.weight.requires_grad_(not freeze)
        return layer

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with wg.no_grad():
                self.weight[self.padding_idx] = 0.0

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """Returns one row per bag; see `nn.functional.embedding_bag`."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """Sizes and mode."""
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}" + shown_settings(self)
