"""Images at given places: `grid_sample`, and the grids of affine maps."""

import math
from typing import Any

import wengert as wg
from wengert import _core
from wengert._arguments import of_tensors
from wengert._core import Tensor
from wengert._results import beside

from .vision import _cubic, _index, _positions

__all__ = ["affine_grid", "grid_sample"]


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
        # Floats count the pixels of an axis, but not all of an image.
        step = _index(at.clamp(0, n - 1))
        flat = step if flat is None else flat * n + step
    assert inside is not None
    assert flat is not None
    count, channels = x.shape[0], x.shape[1]
    index = flat.flatten(1).unsqueeze(1).expand(count, channels, math.prod(flat.shape[1:]))
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


def _total(
    input: Tensor, chosen: list[Tensor], weight: Tensor | None, left: list[list[tuple[Tensor, Tensor]]]
) -> Tensor:
    """The sum over the taps of the axes that are left, with those chosen of the axes before them."""
    if not left:
        assert weight is not None
        return _picked(input, chosen) * weight.unsqueeze(1)
    parts = [
        _total(input, [*chosen, place], w if weight is None else weight * w, left[1:]) for place, w in left[0]
    ]
    out = parts[0]
    for part in parts[1:]:
        out = out + part
    return out


@of_tensors
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Samples the images `(N, C, H, W)` at the points `(N, H', W', 2)` of a grid of x and y between -1 and 1;
    also in 3-D.

    Args:
        input: the images, `(N, C, H, W)` or `(N, C, D, H, W)`.
        grid: the points; the last axis is x (along W), y, and in 3-D z.
        mode: "bilinear", "nearest" or "bicubic" (in 3-D, linear or cubic along all three axes).
        padding_mode: what lies outside: "zeros", "border" (the nearest element) or "reflection".
        align_corners: whether -1 and 1 are the centres of the outermost elements, or (by default) their outer
            edges.

    Returns:
        `(N, C, H', W')`, or `(N, C, D', H', W')`.

    Raises:
        ShapeError: grid and input do not fit.

    Example:
        >>> image = wg.arange(4.0).reshape(1, 1, 2, 2)
        >>> wg.nn.functional.grid_sample(image, wg.zeros(1, 1, 1, 2), align_corners=True)
        tensor([[[[1.5]]]])
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
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"grid_sample: mode must be 'bilinear', 'nearest' or 'bicubic', got {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f"grid_sample: padding_mode must be 'zeros', 'border' or 'reflection', got {padding_mode!r}"
        )
    if 0 in input.shape[2:]:
        raise _core.ShapeError(
            f"grid_sample: an image of shape {tuple(input.shape)} has no elements to sample"
        )
    aligned, sizes = bool(align_corners), input.shape[2:]
    # Places between the pixels of a large image need more digits than halves have.
    given, grid = grid, grid.float() if grid.dtype.itemsize == 2 else grid
    # x is the last axis of the image, and the first entry of the grid.
    at = [_on_input(grid.select(-1, axes - 1 - k), n, aligned) for k, n in enumerate(sizes)]
    border = lambda a, n: _bordered(a, n, padding_mode, aligned)
    if mode != "bicubic":
        at = [border(a, n) for a, n in zip(at, sizes)]
    taps = _taps(at, mode)
    if mode == "bicubic":
        taps = [[(border(a, n), w) for a, w in axis] for axis, n in zip(taps, sizes)]

    # The nearest element stays the same where the grid moves a little.
    out = _total(input, [], None, taps).to(wg.promote_types(input.dtype, given.dtype))
    return beside(out, given) if mode == "nearest" else out


@of_tensors
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Returns the grid for `grid_sample` that maps an output of `size` `(N, C, H, W)` by matrices `theta`
    `(N, 2, 3)`; also in 3-D.

    The grid is `(N, H, W, 2)`, each point `theta @ (x, y, 1)`; in 3-D `size` is `(N, C, D, H, W)` and `theta`
    `(N, 3, 4)`. `align_corners` as of `grid_sample`.

    Example:
        >>> theta = wg.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
        >>> wg.nn.functional.affine_grid(theta, (1, 1, 2, 2), align_corners=True)
        tensor([[[[-1., -1.],
                  [ 1., -1.]],
                 [[-1.,  1.],
                  [ 1.,  1.]]]])
    """
    size = tuple(size)
    axes = len(size) - 2
    if axes not in (2, 3) or tuple(theta.shape) != (size[0], axes, axes + 1):
        raise _core.ShapeError(
            f"affine_grid: matrices of shape {tuple(theta.shape)} do not fit an output of shape {size}; "
            f"expected {(size[0], axes, axes + 1)}"
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
