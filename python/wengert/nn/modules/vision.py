"""Layers that resample images and move channels, and layers of distances and bags of embeddings."""

from typing import Any

import wengert as wg
from wengert._core import Tensor
from wengert._numbers import check_integers

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
    """`nn.functional.interpolate` with fixed settings: resamples `(N, C, spatial...)`.

    Args:
        size: the lengths of the spatial axes of the result, one for all or one for each; either this or the
            next is given.
        scale_factor: how many times larger they become, likewise.
        mode: "nearest", "nearest-exact", "linear" (1 axis), "bilinear", "bicubic" (2), "trilinear" (3) or
            "area" (means).
        align_corners: whether the outermost elements of both lie on each other; otherwise the outermost edges
            do.
        recompute_scale_factor: derive the scale from the lengths, which are rounded, instead of using it as
            given.

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
        """Keeps the settings."""
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
    """`Upsample` of the nearest elements, to `size` or by `scale_factor`.

    Example:
        >>> wg.nn.UpsamplingNearest2d(scale_factor=2)(wg.ones(1, 1, 2, 2)).shape
        (1, 1, 4, 4)
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        """The size, or how many times larger."""
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` by bilinear interpolation with aligned corners, to `size` or by `scale_factor`.

    Example:
        >>> wg.nn.UpsamplingBilinear2d((1, 3))(wg.tensor([[[[0.0, 2.0]]]]))
        tensor([[[[0., 1., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        """The size, or how many times larger."""
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """`(..., C r², H, W)` to `(..., C, H r, W r)` with `r = upscale_factor`: channels become pixels (Shi et
    al. 2016).

    Example:
        >>> wg.nn.PixelShuffle(2)(wg.ones(1, 8, 3, 3)).shape
        (1, 2, 6, 6)
    """

    _shown = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        """The factor `r`."""
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Returns the larger images."""
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """`(..., C, H r, W r)` to `(..., C r², H, W)` with `r = downscale_factor`: pixels become channels.

    Example:
        >>> wg.nn.PixelUnshuffle(2)(wg.ones(1, 2, 6, 6)).shape
        (1, 8, 3, 3)
    """

    _shown = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        """The factor `r`."""
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Returns the smaller images."""
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Module):
    """Channels of `(N, C, ...)` dealt out over `groups`: the first of each group, then the second, and so on.

    Example:
        >>> wg.nn.ChannelShuffle(2)(wg.arange(4.0).reshape(1, 4, 1)).flatten()
        tensor([0., 2., 1., 3.])
    """

    _shown = ("groups",)

    def __init__(self, groups: int) -> None:
        """The number of groups."""
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Returns the channels in another order."""
        return F.channel_shuffle(input, self.groups)


class PairwiseDistance(Module):
    """The `p`-norm of `x1 - x2 + eps` over the last axis, which `keepdim` keeps with length 1.

    `eps` keeps equal vectors away from distance 0, where a norm has no derivative.

    Example:
        >>> wg.nn.PairwiseDistance()(wg.tensor([[0.0, 0.0]]), wg.tensor([[3.0, 4.0]]))
        tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        """Keeps the settings."""
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Returns the distances of pairs of vectors of `x1` and `x2` `(..., D)`."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along the axis `dim`, which the result does not have.

    `eps` is the least length that is divided by.

    Example:
        >>> wg.nn.CosineSimilarity()(wg.tensor([[1.0, 0.0]]), wg.tensor([[1.0, 1.0]]))
        tensor([0.7071])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        """Keeps the settings."""
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Returns the cosines of pairs of vectors of `x1` and `x2`, whose shapes broadcast."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class EmbeddingBag(Module):
    """Sums, means or maxima of bags of rows of a table: bags of indices give `(bags, embedding_dim)`.

    It is called with indices `(bags, length)`, or a vector of them with the start of each bag in `offsets`,
    and factors `per_sample_weights` of their shape if wanted. The parameter `weight`
    `(num_embeddings, embedding_dim)` starts as N(0, 1).

    Args:
        num_embeddings: the number of rows.
        embedding_dim: the features of a row.
        max_norm: rows that are picked and longer are scaled to this norm first, in place; None leaves all as
            they are.
        norm_type: the exponent p of that norm.
        scale_grad_by_freq: divide each row's gradient by how often it is picked; not with "max".
        mode: "sum", "mean" or "max"; an empty bag gives zero.
        sparse: only False, gradients are dense.
        _weight: the values to begin with, in place of random ones.
        include_last_offset: the last of `offsets` is the end of the last bag, the number of indices.
        padding_idx: an index that does not count, whose row starts as zeros.

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
        check_integers("EmbeddingBag", num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        if padding_idx is not None:
            check_integers("EmbeddingBag", padding_idx=padding_idx)
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
        """Makes a layer around given values `embeddings` of shape (rows, features); not trained if `freeze`.
        `settings` are other arguments of the class.
        """
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
        """Returns one row per bag of `input`; `offsets` and `per_sample_weights` as of
        `nn.functional.embedding_bag`.
        """
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
