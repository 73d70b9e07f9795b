"""Images: resampling, sampling at given places, and moving between channels and space."""

import math
from typing import Any

import numpy as np

import wengert as wg
from wengert import _core
from wengert._arguments import of_tensors
from wengert._core import Tensor
from wengert._precision import in_float32

__all__ = [
    "affine_grid",
    "channel_shuffle",
    "grid_sample",
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
    return x.to(_core.int32 if x.is_gpu else _core.int64)


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
        places = [min(int((i + shift) * step), size - 1) for i in range(out)]
        return x.index_select(
            axis, _core.tensor(places, dtype=_core.int32 if x.is_gpu else _core.int64, device=x.device)
        )
    if mode == "area":
        cuts = [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]
        return wg.cat([x.narrow(axis, a, b - a).mean(axis, keepdim=True) for a, b in cuts], axis)
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
    """The images of a batch `(N, C, spatial...)` at another resolution, axis by axis.

    Args:
        size: the lengths of the spatial axes, one for all or one for each.
        scale_factor: how many times larger; exactly one of the two is given.
        mode: `"nearest"`, `"nearest-exact"`, `"linear"` (1 axis), `"bilinear"`, `"bicubic"` (2), `"trilinear"` (3) or
            `"area"` (means).
        align_corners: whether the outermost elements of both lie on each other; otherwise the outermost edges do.
        recompute_scale_factor: derive the scale from the lengths, which are rounded, instead of using it as given.
        antialias: widen the windows of `"bilinear"` and `"bicubic"` where the output is smaller, so that every element
            counts.

    Raises:
        ShapeError: the number of axes does not fit the mode or the sizes.
        ValueError: unknown mode, both or none of size and scale.
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
        sizes = [math.floor(n * s) for n, s in zip(input.shape[2:], many)]
        scales = [None] * axes if recompute_scale_factor else [float(s) for s in many]
    if min(sizes) < 1 or 0 in input.shape[2:]:
        raise ValueError(
            f"interpolate: sizes must be positive, from {tuple(input.shape[2:])} to {tuple(sizes)}"
        )
    out = input
    for k, (n, scale) in enumerate(zip(sizes, scales)):
        if n != input.shape[2 + k] or scale not in (None, 1.0):
            resampled = _filtered if antialias else _resampled
            out = resampled(out, 2 + k, n, mode, bool(align_corners), scale)
    return input.clone() if out is input else out


@of_tensors
def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@of_tensors
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` of the nearest elements, under an older name."""
    return interpolate(input, size, scale_factor, "nearest")


@of_tensors
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` of two axes with aligned corners, under an older name."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def _on_input(grid: Tensor, size: int, align_corners: bool) -> Tensor:
    """From -1 to 1 to positions in an axis."""
    return (grid + 1) * ((size - 1) / 2) if align_corners else ((grid + 1) * size - 1) / 2


def _reflected(at: Tensor, size: int, align_corners: bool) -> Tensor:
    """Positions folded back at the borders until they are inside."""
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    span = high - low
    if span == 0:
        return at * 0.0
    distance = (at - low).abs().remainder(2 * span)
    return low + wg.where(distance > span, 2 * span - distance, distance)


def _bordered(at: Tensor, size: int, padding_mode: str, align_corners: bool) -> Tensor:
    if padding_mode == "reflection":
        at = _reflected(at, size, align_corners)
    return at if padding_mode == "zeros" else at.clamp(0, size - 1)


def _picked(x: Tensor, places: list[Tensor]) -> Tensor:
    """The elements `(N, C, out...)` of an input at whole positions `(N, out...)`; zero outside."""
    sizes = x.shape[2:]
    inside = None
    flat = None
    for at, n in zip(places, sizes):
        here = (at >= 0).logical_and(at <= n - 1)
        inside = here if inside is None else inside.logical_and(here)
        step = at.clamp(0, n - 1)
        flat = step if flat is None else flat * n + step
    assert inside is not None
    assert flat is not None
    count, channels = x.shape[0], x.shape[1]
    index = _index(flat).flatten(1).unsqueeze(1).expand(count, channels, math.prod(flat.shape[1:]))
    values = x.flatten(2).gather(2, index).reshape(count, channels, *flat.shape[1:])
    return values * inside.unsqueeze(1).to(x.dtype)


def _taps(at: list[Tensor], mode: str) -> list[list[tuple[Tensor, Tensor]]]:
    """Per axis: whole positions and their weights."""
    if mode == "nearest":
        return [[(a.round(), _core.ones_like(a))] for a in at]
    taps = []
    for a in at:
        low = a.detach().floor()
        if mode == "bicubic":
            taps.append([(low + k, _cubic(a - low - k)) for k in (-1, 0, 1, 2)])
        else:
            taps.append([(low, 1 - (a - low)), (low + 1, a - low)])
    return taps


@of_tensors
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The images `(N, C, H, W)` at the places `(N, H', W', 2)` of a grid of x and y between -1 and 1; also in 3-D.

    Args:
        mode: `"bilinear"`, `"nearest"` or `"bicubic"` (2-D only).
        padding_mode: what lies outside: `"zeros"`, `"border"` (the nearest element) or `"reflection"`.
        align_corners: whether -1 and 1 are the centres of the outermost elements, or their outer edges.

    Raises:
        ShapeError: grid and input do not fit.
    """
    axes = input.ndim - 2
    fits = (
        axes in (2, 3)
        and grid.ndim == axes + 2
        and grid.shape[-1] == axes
        and grid.shape[0] == input.shape[0]
    )
    if not fits:
        raise _core.ShapeError(
            f"grid_sample: a grid of shape {tuple(grid.shape)} does not fit an input of shape "
            f"{tuple(input.shape)}; expected (N, C, H, W) and (N, H', W', 2), or one axis more of each"
        )
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and axes != 2):
        raise ValueError(
            f"grid_sample: mode must be 'bilinear', 'nearest' or, in two dimensions, 'bicubic', got {mode!r}"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f"grid_sample: padding_mode must be 'zeros', 'border' or 'reflection', got {padding_mode!r}"
        )
    if 0 in input.shape[2:]:
        raise _core.ShapeError(
            f"grid_sample: an image of shape {tuple(input.shape)} has no elements to sample"
        )
    aligned, sizes = bool(align_corners), input.shape[2:]
    # x is the last axis of the image, and the first entry of the grid.
    at = [_on_input(grid.select(-1, axes - 1 - k), n, aligned) for k, n in enumerate(sizes)]
    border = lambda a, n: _bordered(a, n, padding_mode, aligned)
    if mode != "bicubic":
        at = [border(a, n) for a, n in zip(at, sizes)]
    taps = _taps(at, mode)
    if mode == "bicubic":
        taps = [[(border(a, n), w) for a, w in axis] for axis, n in zip(taps, sizes)]

    def total(chosen: list[Tensor], weight: Tensor | None, left: list[list[tuple[Tensor, Tensor]]]) -> Tensor:
        if not left:
            assert weight is not None
            return _picked(input, chosen) * weight.unsqueeze(1)
        parts = [
            total([*chosen, place], w if weight is None else weight * w, left[1:]) for place, w in left[0]
        ]
        out = parts[0]
        for part in parts[1:]:
            out = out + part
        return out

    return total([], None, taps)


@of_tensors
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The grid for `grid_sample` that maps an output of `size` `(N, C, H, W)` by matrices `theta` `(N, 2, 3)`; "
    "also 3-D."""
    size = tuple(size)
    axes = len(size) - 2
    if axes not in (2, 3) or tuple(theta.shape) != (size[0], axes, axes + 1):
        raise _core.ShapeError(
            f"affine_grid: matrices of shape {tuple(theta.shape)} do not fit an output of shape {size}; expected "
            f"{(size[0], axes, axes + 1)}"
        )
    lines = []
    for n in size[2:]:
        at = _positions(n, theta)
        lines.append(
            ((2 * at + 1) / n - 1) if not align_corners else (at * (2 / (n - 1)) - 1 if n > 1 else at * 0.0)
        )
    planes = [plane.reshape(-1) for plane in wg.meshgrid(*lines)][::-1]
    places = wg.stack([*planes, _core.ones_like(planes[0])], 1)
    return (places @ theta.mT).reshape(size[0], *size[2:], axes)


@of_tensors
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """`(..., C r², H, W)` to `(..., C, H r, W r)`: channels become pixels (Shi et al. 2016)."""
    r = upscale_factor
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
    """`(..., C, H r, W r)` to `(..., C r², H, W)`: the inverse of `pixel_shuffle`."""
    r = downscale_factor
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
    """Channels of `(N, C, ...)` dealt out over groups: the first of each group, then the second (Zhang et al. 2018)."""
    if input.ndim < 3 or input.shape[1] % groups:
        raise _core.ShapeError(
            f"channel_shuffle: {groups} groups must divide the channels of {tuple(input.shape)}"
        )
    count, channels, *rest = input.shape
    dealt = input.reshape(count, groups, channels // groups, *rest).transpose(1, 2)
    return dealt.clone().reshape(input.shape)
