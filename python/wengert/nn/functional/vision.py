"""Images: resampling, and moving between channels and space. Read next: `sampling.py`,
sampling at given places.
"""

import math
from typing import Any

import numpy as np

import wengert as wg
from wengert import _core
from wengert._arguments import of_tensors
from wengert._core import Tensor
from wengert._precision import in_float32
from wengert.composed._method import index_dtype

__all__ = [
    "channel_shuffle",
    "interpolate",
    "pixel_shuffle",
    "pixel_unshuffle",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

MODES = {
    "nearest": None,
    "nearest-exact": None,
    "linear": 1,
    "bilinear": 2,
    "trilinear": 3,
    "bicubic": 2,
    "area": None,
}
# The cubic convolution kernel of Keys (1981) with a = -0.75.
CUBIC = -0.75


def _positions(count: int, like: Tensor) -> Tensor:
    return _core.arange(0, count, dtype=like.dtype, device=like.device)


def _index(x: Tensor) -> Tensor:
    return x.to(index_dtype(x))


def _weighted(x: Tensor, axis: int, places: list[Tensor], weights: list[Tensor]) -> Tensor:
    """The sum of slices along an axis, each with a weight per place."""
    shape = [-1 if k == axis else 1 for k in range(x.ndim)]
    parts = [x.index_select(axis, _index(p)) * w.reshape(shape) for p, w in zip(places, weights)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _sources(size: int, out: int, align_corners: bool, scale: float | None, like: Tensor) -> Tensor:
    """Where in the input each element of the output lies."""
    at = _positions(out, like)
    if align_corners:
        return at * ((size - 1) / (out - 1) if out > 1 else 0.0)
    return (at + 0.5) * (1.0 / scale if scale else size / out) - 0.5


def _cubic(distance: Tensor) -> Tensor:
    d = distance.abs()
    near = ((CUBIC + 2) * d - (CUBIC + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * CUBIC - 4 * CUBIC
    return wg.where(d <= 1, near, wg.where(d < 2, far, _core.zeros_like(d)))


def _filtered(x: Tensor, axis: int, out: int, mode: str, align_corners: bool, scale: float | None) -> Tensor:
    """Resampling whose window grows with the step between outputs, so that no element is passed over."""
    size = x.shape[axis]
    if align_corners:
        step = (size - 1) / (out - 1) if out > 1 else 0.0
    else:
        step = 1.0 / scale if scale else size / out
    wide = max(step, 1.0)
    reach = (2.0 if mode == "bicubic" else 1.0) * wide
    matrix = np.zeros((out, size))
    for i in range(out):
        centre = step * (i + 0.5)
        low, high = max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), size)
        d = np.abs((np.arange(low, high) - centre + 0.5) / wide)
        if mode == "bicubic":
            # Keys' kernel with a = -0.5, as where images are scaled down elsewhere.
            near, far = (1.5 * d - 2.5) * d * d + 1.0, ((-0.5 * d + 2.5) * d - 4.0) * d + 2.0
            weight = np.where(d < 1.0, near, np.where(d < 2.0, far, 0.0))
        else:
            weight = np.maximum(1.0 - d, 0.0)
        matrix[i, low:high] = weight / weight.sum()
    weights = _core.tensor(matrix, dtype=x.dtype, device=x.device)
    return (x.movedim(axis, -1) @ weights.mT).movedim(-1, axis)


def _resampled(x: Tensor, axis: int, out: int, mode: str, align_corners: bool, scale: float | None) -> Tensor:
    size = x.shape[axis]
    if mode in ("nearest", "nearest-exact"):
        step = 1.0 / scale if scale else size / out
        shift = 0.5 if mode == "nearest-exact" else 0.0
        places = np.minimum(((np.arange(out) + shift) * step).astype(np.int64), size - 1)
        return x.index_select(axis, _core.tensor(places, dtype=index_dtype(x), device=x.device))
    # Places are computed in float64: in half precision they would not reach far.
    exact = _core.zeros((), dtype=_core.float32 if x.is_gpu else _core.float64, device=x.device)
    at = _sources(size, out, align_corners, scale, exact)
    last = size - 1
    if mode == "bicubic":
        low = at.floor()
        around = [(low + k).clamp(0, last) for k in (-1, 0, 1, 2)]
        return _weighted(x, axis, around, [_cubic(at - low - k).to(x.dtype) for k in (-1, 0, 1, 2)])
    at = at.clamp(min=0.0)
    low = at.floor().clamp(max=last)
    weight = (at - low).to(x.dtype)
    return _weighted(x, axis, [low, (low + 1).clamp(max=last)], [1 - weight, weight])


@of_tensors
@in_float32
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resamples the images of a batch `(N, C, spatial...)` to another resolution, axis by axis.

    Args:
        input: the images, with one spatial axis or more.
        size: the lengths of the spatial axes, one for all or one for each.
        scale_factor: how many times larger; exactly one of the two is given.
        mode: "nearest", "nearest-exact", "linear" (1 axis), "bilinear", "bicubic" (2), "trilinear" (3) or
            "area" (means).
        align_corners: whether the outermost elements of both lie on each other; otherwise the outermost edges
            do.
        recompute_scale_factor: derive the scale from the lengths, which are rounded, instead of using it as
            given.
        antialias: widen the windows of "bilinear" and "bicubic" where the output is smaller, so that every
            element counts.

    An axis whose length stays as it is is not resampled, but by "bicubic", "nearest-exact" and "nearest" of
    one axis, which follow the scale. Images of uint8 are resampled in float32 and rounded.

    Raises:
        ShapeError: the number of axes does not fit the mode or the sizes.
        TypeError: integers, but for the nearest element, and for uint8 in modes of two axes.
        ValueError: unknown mode, both or none of size and scale.

    Example:
        >>> wg.nn.functional.interpolate(wg.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    if mode not in MODES:
        raise ValueError(f"interpolate: mode must be one of {', '.join(MODES)}, got {mode!r}")
    axes = input.ndim - 2
    if axes < 1 or MODES[mode] not in (None, axes):
        raise _core.ShapeError(
            f"interpolate: mode {mode!r} does not fit an input of shape {tuple(input.shape)}"
        )
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give either size or scale_factor")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f"interpolate: antialias is for modes 'bilinear' and 'bicubic', got {mode!r}")
    if align_corners is not None and MODES[mode] is None:
        raise ValueError(f"interpolate: align_corners has no meaning for mode {mode!r}")
    given = size if size is not None else scale_factor
    many = list(given) if isinstance(given, (tuple, list)) else [given] * axes
    if len(many) != axes:
        raise _core.ShapeError(f"interpolate: {len(many)} sizes for {axes} spatial axes")
    scales: list[float | None] = [None] * axes
    sizes = many
    if size is None:
        if not all(math.isfinite(s) for s in many):
            raise ValueError(f"interpolate: scale_factor must be finite, got {scale_factor}")
        sizes = [math.floor(n * s) for n, s in zip(input.shape[2:], many)]
        scales = [None] * axes if recompute_scale_factor else [float(s) for s in many]
    if min(sizes) < 1 or 0 in input.shape[2:]:
        raise ValueError(
            f"interpolate: sizes must be positive, from {tuple(input.shape[2:])} to {tuple(sizes)}"
        )
    # Raises where no axis is so long.
    _core.empty(0, *sizes, device="cpu")
    out = input
    exact = (
        mode == "nearest-exact" or (mode == "bicubic" and not antialias) or (mode == "nearest" and axes != 2)
    )
    if not mode.startswith("nearest") and not input.is_floating_point():
        if input.dtype != _core.uint8 or axes != 2 or mode == "area":
            raise TypeError(
                f"interpolate: mode {mode!r} takes floating point numbers, or uint8 if it is 'bilinear' or "
                f"'bicubic', got {input.dtype}; convert with .float()"
            )
        out = input.to(_core.float32)
    if mode == "area" and list(sizes) != list(input.shape[2:]):
        return _core._adaptive_avg_pool(axes, input, sizes)
    for k, (n, scale) in enumerate(zip(sizes, scales)):
        # An axis that keeps its length is taken as it is, whatever the scale,
        # but in the modes that follow it exactly.
        if n != input.shape[2 + k] or (exact and scale not in (None, 1.0)):
            resampled = _filtered if antialias else _resampled
            out = resampled(out, 2 + k, n, mode, bool(align_corners), scale)
    if out.dtype != input.dtype:
        return (out + 0.5).floor().clamp(0, 255).to(input.dtype)
    return input.clone() if out is input else out


@of_tensors
def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Calls `interpolate` under its older name, with its `input`, `size`, `scale_factor`, `mode` and
    `align_corners`.

    Example:
        >>> wg.nn.functional.upsample(wg.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


@of_tensors
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Calls `interpolate` of the nearest elements, with its `input`, `size` and `scale_factor`, under an
    older name.

    Example:
        >>> wg.nn.functional.upsample_nearest(wg.tensor([[[1.0, 2.0]]]), 4)
        tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, "nearest")


@of_tensors
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Calls `interpolate` of two axes with aligned corners, with its `input`, `size` and `scale_factor`,
    under an older name.

    Example:
        >>> wg.nn.functional.upsample_bilinear(wg.tensor([[[[0.0, 2.0]]]]), (1, 3))
        tensor([[[[0., 1., 2.]]]])
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


def _positive(name: str, what: str, value: int) -> int:
    """The number; raises unless it is positive."""
    if value < 1:
        raise ValueError(f"{name}: {what} must be positive, got {value}")
    return value


@of_tensors
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Rearranges `input` `(..., C r², H, W)` to `(..., C, H r, W r)` with `r = upscale_factor` (Shi et al.
    2016).

    Example:
        >>> wg.nn.functional.pixel_shuffle(wg.ones(1, 8, 2, 2), 2).shape
        (1, 2, 4, 4)
    """
    r = _positive("pixel_shuffle", "upscale_factor", upscale_factor)
    if input.ndim < 3 or input.shape[-3] % (r * r):
        raise _core.ShapeError(
            f"pixel_shuffle: {r}² must divide the channels of an input of shape {tuple(input.shape)}"
        )
    *lead, channels, height, width = input.shape
    x = (
        input.reshape(math.prod(lead), channels // (r * r), r, r, height, width)
        .permute(0, 1, 4, 2, 5, 3)
        .clone()
    )
    return x.reshape(*lead, channels // (r * r), height * r, width * r)


@of_tensors
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Rearranges `input` `(..., C, H r, W r)` to `(..., C r², H, W)` with `r = downscale_factor`; undoes
    `pixel_shuffle`.

    Example:
        >>> wg.nn.functional.pixel_unshuffle(wg.ones(1, 2, 4, 4), 2).shape
        (1, 8, 2, 2)
    """
    r = _positive("pixel_unshuffle", "downscale_factor", downscale_factor)
    if input.ndim < 3 or input.shape[-1] % r or input.shape[-2] % r:
        raise _core.ShapeError(
            f"pixel_unshuffle: {r} must divide height and width of an input of shape {tuple(input.shape)}"
        )
    *lead, channels, height, width = input.shape
    x = (
        input.reshape(math.prod(lead), channels, height // r, r, width // r, r)
        .permute(0, 1, 3, 5, 2, 4)
        .clone()
    )
    return x.reshape(*lead, channels * r * r, height // r, width // r)


@of_tensors
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Deals the channels of `input` `(N, C, ...)` out over `groups`: the first of each group, then the second
    (Zhang et al. 2018).

    Example:
        >>> wg.channel_shuffle(wg.arange(4.0).reshape(1, 4, 1), 2).flatten()
        tensor([0., 2., 1., 3.])
    """
    groups = _positive("channel_shuffle", "groups", groups)
    if input.ndim < 3 or input.shape[1] % groups:
        raise _core.ShapeError(
            f"channel_shuffle: {groups} groups must divide the channels of {tuple(input.shape)}"
        )
    count, channels, *rest = input.shape
    dealt = input.reshape(count, groups, channels // groups, *rest).transpose(1, 2)
    return dealt.clone().reshape(input.shape)
