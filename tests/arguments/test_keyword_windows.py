"""Keywords of pools, convolutions and resizing, of functions and layers: against the definitions in NumPy."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import wengert as wg
from references.conv_reference import avg_pool, conv, conv_transpose, each, max_pool, unfold, windows
from wengert import nn
from wengert.nn import functional as F

from arguments.rows import Array, Function, check, near, numbers, run


def pool(kind: Function, x: Array, settings: dict[str, Any]) -> Array:
    """A pool by definition; its attributes have one number for each axis."""
    rank, given = x.ndim - 2, dict(settings)
    given.setdefault("stride", given["kernel_size"])
    if kind is max_pool:
        given.setdefault("dilation", 1)
    for name in ("kernel_size", "stride", "padding", "dilation"):
        if name in given or (name == "padding" and kind is not lp_pool):
            given[name] = each(given.get(name, 0), rank)
    return kind(x, **given)


def lp_pool(x: Array, *, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool = False) -> Array:
    """The norm of every window: one that is cut counts as if what it lacks were its mean."""
    means = avg_pool(
        np.abs(x) ** norm_type,
        kernel_size=kernel_size,
        stride=stride,
        padding=(0,) * len(kernel_size),
        ceil_mode=ceil_mode,
    )
    return (means * np.prod(kernel_size)) ** (1 / norm_type)


def avg_pool_divided(
    x: Array, *, divisor_override: int, kernel_size: Any, stride: Any, padding: Any
) -> Array:
    """The sum of every window, divided by the same number everywhere."""
    return (
        sum(p for _, p in windows(x, kernel_size, stride, padding, (1,) * len(kernel_size)))
        / divisor_override
    )


POOLS = [
    (nn.MaxPool1d, F.max_pool1d, max_pool, dict(kernel_size=3, stride=2, padding=1, dilation=2)),
    (nn.MaxPool1d, F.max_pool1d, max_pool, dict(kernel_size=3, stride=2, ceil_mode=True)),
    (nn.MaxPool2d, F.max_pool2d, max_pool, dict(kernel_size=3, stride=2, padding=1, dilation=2)),
    (nn.MaxPool2d, F.max_pool2d, max_pool, dict(kernel_size=(3, 2), stride=(2, 3), ceil_mode=True)),
    (nn.MaxPool3d, F.max_pool3d, max_pool, dict(kernel_size=3, stride=2, padding=1, dilation=2)),
    (nn.MaxPool3d, F.max_pool3d, max_pool, dict(kernel_size=(3, 2, 3), stride=2, ceil_mode=True)),
    (nn.AvgPool1d, F.avg_pool1d, avg_pool, dict(kernel_size=3, stride=2, padding=1, count_include_pad=False)),
    (nn.AvgPool1d, F.avg_pool1d, avg_pool, dict(kernel_size=3, stride=2, ceil_mode=True)),
    (nn.AvgPool2d, F.avg_pool2d, avg_pool, dict(kernel_size=3, stride=2, padding=1, count_include_pad=False)),
    (nn.AvgPool2d, F.avg_pool2d, avg_pool, dict(kernel_size=(3, 2), stride=(2, 3), ceil_mode=True)),
    (
        nn.AvgPool2d,
        F.avg_pool2d,
        avg_pool_divided,
        dict(kernel_size=3, stride=2, padding=1, divisor_override=7),
    ),
    (nn.AvgPool3d, F.avg_pool3d, avg_pool, dict(kernel_size=3, stride=2, padding=1, count_include_pad=False)),
    (nn.AvgPool3d, F.avg_pool3d, avg_pool, dict(kernel_size=(3, 2, 3), stride=2, ceil_mode=True)),
    (
        nn.AvgPool3d,
        F.avg_pool3d,
        avg_pool_divided,
        dict(kernel_size=3, stride=2, padding=1, divisor_override=7),
    ),
    (nn.LPPool1d, F.lp_pool1d, lp_pool, dict(norm_type=3.0, kernel_size=3, stride=2, ceil_mode=True)),
    (nn.LPPool2d, F.lp_pool2d, lp_pool, dict(norm_type=3.0, kernel_size=3, stride=2, ceil_mode=True)),
    (nn.LPPool3d, F.lp_pool3d, lp_pool, dict(norm_type=3.0, kernel_size=3, stride=2, ceil_mode=True)),
]
SHAPES = {1: (2, 3, 8), 2: (2, 3, 8, 6), 3: (1, 2, 6, 5, 8)}


def case_name(row: Any) -> str:
    return row.__name__ if hasattr(row, "__name__") else "-".join(row) if isinstance(row, dict) else str(row)


@pytest.mark.parametrize(("layer", "function", "kind", "settings"), POOLS, ids=case_name)
def test_pools(layer: Any, function: Function, kind: Function, settings: dict[str, Any]) -> None:
    x = np.abs(numbers(*SHAPES[int(layer.__name__[-2])])) + 0.1
    expected = pool(kind, x, settings)
    check(function, (x,), settings, expected)
    check(lambda x, **k: layer(**k)(x), (x,), settings, expected)


INDEXED = [
    (nn.MaxPool1d, F.max_pool1d, dict(kernel_size=3, stride=2, padding=1, return_indices=True)),
    (nn.MaxPool2d, F.max_pool2d, dict(kernel_size=3, stride=2, padding=1, return_indices=True)),
    (nn.MaxPool3d, F.max_pool3d, dict(kernel_size=3, stride=2, padding=1, return_indices=True)),
    (nn.AdaptiveMaxPool1d, F.adaptive_max_pool1d, dict(output_size=3, return_indices=True)),
    (nn.AdaptiveMaxPool2d, F.adaptive_max_pool2d, dict(output_size=3, return_indices=True)),
    (nn.AdaptiveMaxPool3d, F.adaptive_max_pool3d, dict(output_size=3, return_indices=True)),
]


def adaptive_max_pool(x: Array, size: int) -> Array:
    """Maxima of windows that together cover each axis."""
    for axis in range(2, x.ndim):
        n = x.shape[axis]
        at = [range(k * n // size, -(-(k + 1) * n // size)) for k in range(size)]
        x = np.stack([np.take(x, r, axis).max(axis) for r in at], axis)
    return x


@pytest.mark.parametrize(("layer", "function", "settings"), INDEXED, ids=case_name)
def test_indices_of_maxima(layer: Any, function: Function, settings: dict[str, Any]) -> None:
    x = numbers(*SHAPES[int(layer.__name__[-2])])
    rest = {k: v for k, v in settings.items() if k != "return_indices"}
    values = adaptive_max_pool(x, 3) if "output_size" in rest else pool(max_pool, x, rest)
    # No number occurs twice, so the place of each maximum is the one place where it stands.
    flat, tops = x.reshape(*x.shape[:2], -1), values.reshape(*x.shape[:2], -1)
    places = (flat[..., None, :] == tops[..., None]).argmax(-1).reshape(values.shape)
    check(function, (x,), settings, (values, places))
    check(lambda x, **k: layer(**k)(x), (x,), settings, (values, places))


UNPOOLED = [
    (
        nn.MaxUnpool1d,
        F.max_unpool1d,
        F.max_pool1d,
        dict(kernel_size=3, stride=2, padding=1),
        dict(output_size=(8,)),
    ),
    (
        nn.MaxUnpool2d,
        F.max_unpool2d,
        F.max_pool2d,
        dict(kernel_size=3, stride=2, padding=1),
        dict(output_size=(7, 10)),
    ),
    (
        nn.MaxUnpool3d,
        F.max_unpool3d,
        F.max_pool3d,
        dict(kernel_size=3, stride=2, padding=1),
        dict(output_size=(7, 9, 6)),
    ),
]


@pytest.mark.parametrize(("layer", "function", "pooling", "settings", "larger"), UNPOOLED, ids=case_name)
def test_unpooling(
    layer: Any, function: Function, pooling: Function, settings: dict[str, Any], larger: dict[str, Any]
) -> None:
    # Windows begin at every other place, so none of these maxima is one of two windows.
    rank = int(layer.__name__[-2])
    x = numbers(2, 2, *(7, 9, 5)[:rank])
    spread = np.where(np.indices(x.shape)[2:].sum(0) % 2 == 0, x, -100 + x)
    values, places = (t.numpy() for t in pooling(wg.tensor(spread), **settings, return_indices=True))

    def placed(*shape: int) -> Array:
        out = np.zeros((2, 2, int(np.prod(shape))))
        for i, j in np.ndindex(2, 2):
            out[i, j, places[i, j].ravel()] = values[i, j].ravel()
        return out.reshape(2, 2, *shape)

    check(function, (values, places), settings, placed(*x.shape[2:]))
    check(lambda v, p, **k: layer(**k)(v, p), (values, places), settings, placed(*x.shape[2:]))
    check(partial(function, **settings), (values, places), larger, placed(*larger["output_size"]))


FRACTIONAL = [
    (
        nn.FractionalMaxPool2d,
        F.fractional_max_pool2d,
        dict(kernel_size=2, output_size=(3, 4), return_indices=True, _random_samples=0),
    ),
    (
        nn.FractionalMaxPool2d,
        F.fractional_max_pool2d,
        dict(kernel_size=2, output_ratio=0.5, return_indices=True, _random_samples=0),
    ),
    (
        nn.FractionalMaxPool3d,
        F.fractional_max_pool3d,
        dict(kernel_size=2, output_size=(3, 4, 2), return_indices=True, _random_samples=0),
    ),
    (
        nn.FractionalMaxPool3d,
        F.fractional_max_pool3d,
        dict(kernel_size=2, output_ratio=0.5, return_indices=True, _random_samples=0),
    ),
]


@pytest.mark.parametrize(("layer", "function", "settings"), FRACTIONAL, ids=case_name)
def test_fractional_pools(layer: Any, function: Function, settings: dict[str, Any]) -> None:
    """Graham, Fractional Max-Pooling: windows begin at the whole parts of equal steps from a drawn place."""
    rank, kernel = int(layer.__name__[-2]), 2
    x = numbers(2, 2, *(7, 9, 8)[:rank])
    sizes = settings.get("output_size") or [n // 2 for n in x.shape[2:]]
    drawn = np.random.default_rng(0).random((2, 2, rank))
    values = np.zeros((2, 2, *sizes))
    places = np.zeros(values.shape, np.int64)
    for i, j in np.ndindex(2, 2):
        starts = []
        # The samples of two axes go from the last to the first, those of three from the first to the last.
        for axis, (n, m) in enumerate(zip(x.shape[2:], sizes)):
            u = drawn[i, j, rank - 1 - axis if rank == 2 else axis]
            step = (n - kernel) / (m - 1)
            starts.append([int((k + u) * step) - int(u * step) for k in range(m - 1)] + [n - kernel])
        for at in np.ndindex(*sizes):
            window = tuple(slice(s[k], s[k] + kernel) for s, k in zip(starts, at))
            values[(i, j, *at)] = x[(i, j, *window)].max()
            places[(i, j, *at)] = np.flatnonzero(x[i, j] == values[(i, j, *at)])[0]
    settings = {**settings, "_random_samples": drawn}
    check(function, (x,), settings, (values, places))
    check(lambda x, **k: layer(**k)(x), (x,), settings, (values, places))


CONVOLUTIONS = [
    (nn.Conv1d, F.conv1d, dict(stride=2, padding=1, dilation=2, groups=2, bias=False)),
    (nn.Conv1d, F.conv1d, dict(padding=2, padding_mode="circular")),
    (nn.Conv2d, F.conv2d, dict(stride=(2, 1), padding=(1, 2), dilation=(2, 1), groups=2, bias=False)),
    (nn.Conv2d, F.conv2d, dict(padding=(1, 2), padding_mode="reflect")),
    (nn.Conv3d, F.conv3d, dict(stride=(2, 1, 2), padding=(1, 0, 1), dilation=2, groups=2, bias=False)),
    (nn.Conv3d, F.conv3d, dict(padding=(1, 0, 2), padding_mode="replicate")),
]
PADDED = {"circular": "wrap", "reflect": "reflect", "replicate": "edge"}


@pytest.mark.parametrize(("layer", "function", "settings"), CONVOLUTIONS, ids=case_name)
def test_convolutions(layer: Any, function: Function, settings: dict[str, Any]) -> None:
    rank = int(layer.__name__[-2])
    x = numbers(2, 4, *(7, 6, 8)[:rank])
    made = layer(4, 6, 3, dtype=wg.float64, **settings)
    w, b = made.weight.detach().numpy(), None if made.bias is None else made.bias.detach().numpy()
    given = {k: v for k, v in settings.items() if k not in ("bias", "padding_mode")}
    expected = conv(x, w, b, **given)
    if "padding_mode" in settings:
        widths = [(0, 0), (0, 0)] + [(p, p) for p in each(settings["padding"], rank)]
        expected = conv(np.pad(x, widths, mode=PADDED[settings["padding_mode"]]), w, b)
    else:
        check(function, (x, w), {"bias": numbers(6), **given}, conv(x, w, numbers(6), **given))

    def call(x: wg.Tensor, **settings: Any) -> Any:
        again = layer(4, 6, 3, dtype=wg.float64, **settings)
        with wg.no_grad():
            again.weight.copy_(wg.tensor(np.resize(w, again.weight.shape)))
            if again.bias is not None:
                again.bias.copy_(wg.tensor(numbers(6) if b is None else b))
        return again(x)

    check(call, (x,), settings, expected)


TRANSPOSED = [
    (
        nn.ConvTranspose1d,
        F.conv_transpose1d,
        dict(stride=3, padding=1, output_padding=2, groups=2, dilation=2, bias=False),
    ),
    (
        nn.ConvTranspose2d,
        F.conv_transpose2d,
        dict(stride=(3, 2), padding=(1, 2), output_padding=1, groups=2, dilation=2, bias=False),
    ),
    (
        nn.ConvTranspose3d,
        F.conv_transpose3d,
        dict(stride=2, padding=1, output_padding=(1, 0, 1), groups=2, dilation=2, bias=False),
    ),
]


@pytest.mark.parametrize(("layer", "function", "settings"), TRANSPOSED, ids=case_name)
def test_transposed_convolutions(layer: Any, function: Function, settings: dict[str, Any]) -> None:
    x, w = numbers(2, 4, *(3, 4, 2)[: int(layer.__name__[-2])]), None
    made = layer(4, 6, 3, dtype=wg.float64, **settings)
    w = made.weight.detach().numpy()
    given = {k: v for k, v in settings.items() if k != "bias"}
    check(function, (x, w), {"bias": numbers(6), **given}, conv_transpose(x, w, numbers(6), **given))

    def call(x: wg.Tensor, **settings: Any) -> Any:
        again = layer(4, 6, 3, dtype=wg.float64, **settings)
        with wg.no_grad():
            again.weight.copy_(wg.tensor(np.resize(w, again.weight.shape)))
            if again.bias is not None:
                again.bias.copy_(wg.tensor(numbers(6)))
        return again(x)

    check(call, (x,), settings, conv_transpose(x, w, None, **given))


PADDED_TRANSPOSED = [
    (nn.ConvTranspose1d, dict(padding_mode="reflect")),
    (nn.ConvTranspose2d, dict(padding_mode="circular")),
    (nn.ConvTranspose3d, dict(padding_mode="replicate")),
]


@pytest.mark.parametrize(("layer", "settings"), PADDED_TRANSPOSED)
def test_transposes_know_one_padding(layer: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="zeros"):
        layer(4, 6, 3, **settings)


FOLDS = [
    (
        nn.Unfold,
        F.unfold,
        nn.Fold,
        F.fold,
        dict(kernel_size=(2, 3), dilation=(2, 1), padding=(1, 2), stride=(2, 1)),
    )
]


@pytest.mark.parametrize(("unfolding", "unfolded", "folding", "folded", "settings"), FOLDS)
def test_fold_and_unfold(
    unfolding: Any, unfolded: Function, folding: Any, folded: Function, settings: dict[str, Any]
) -> None:
    x = numbers(2, 3, 7, 6)
    columns = unfold(x, **settings)
    check(unfolded, (x,), settings, columns)
    check(lambda x, **k: unfolding(**k)(x), (x,), settings, columns)
    # Folding is the transpose of unfolding: each column is added where it came from.
    y = numbers(*columns.shape)
    expected = np.zeros_like(x)
    basis = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        basis[at] = 1.0
        expected[at] = (unfold(basis, **settings) * y).sum()
        basis[at] = 0.0
    check(folded, (y, (7, 6)), settings, expected)
    check(lambda y, **k: folding((7, 6), **k)(y), (y,), settings, expected)


def linear(x: Array, places: Array) -> Array:
    """Linear interpolation of the last axis at places between its elements,
    which end at the first and last.
    """
    at = np.clip(places, 0, x.shape[-1] - 1)
    low = np.minimum(np.floor(at).astype(int), x.shape[-1] - 2)
    return x[..., low] * (1 - (at - low)) + x[..., low + 1] * (at - low)


def resized(x: Array, sizes: tuple[int, int], corners: bool) -> Array:
    """Bilinear resizing of the last two axes."""
    for size in reversed(sizes):
        n = x.shape[-1]
        steps = np.arange(size)
        places = steps * (n - 1) / (size - 1) if corners else (steps + 0.5) * n / size - 0.5
        x = np.moveaxis(linear(x, places), -1, -2)
    return x


def nearest(x: Array, sizes: tuple[int, int]) -> Array:
    """The element whose share each place falls into."""
    rows, columns = (np.arange(m) * n // m for m, n in zip(sizes, x.shape[-2:]))
    return x[..., rows[:, None], columns]


IMAGE = numbers(2, 3, 4, 5)
CORNERS = dict(align_corners=True, mode="bilinear")
RESIZED = [
    (nn.UpsamplingNearest2d, dict(size=(7, 3)), {}, nearest(IMAGE, (7, 3))),
    (nn.UpsamplingNearest2d, dict(scale_factor=2.0), {}, nearest(IMAGE, (8, 10))),
    (nn.Upsample, dict(size=(7, 9), mode="bilinear"), {}, resized(IMAGE, (7, 9), False)),
    (F.upsample, dict(size=(7, 9), mode="bilinear"), {}, resized(IMAGE, (7, 9), False)),
    (F.upsample, dict(scale_factor=2.0), dict(align_corners=True, mode="bilinear"),
        resized(IMAGE, (8, 10), True)),
    (nn.Upsample, dict(size=(7, 9)), dict(align_corners=True, mode="bilinear"), resized(IMAGE, (7, 9), True)),
    (nn.UpsamplingBilinear2d, dict(size=(7, 9)), CORNERS, resized(IMAGE, (7, 9), True)),
    (nn.UpsamplingBilinear2d, dict(scale_factor=(2.0, 3.0)), CORNERS, resized(IMAGE, (8, 15), True)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "settings", "more", "expected"), RESIZED)
def test_resizing(function: Any, settings: dict[str, Any], more: dict[str, Any], expected: Array) -> None:
    """Layers of one kind know their mode."""
    every = [F.interpolate, F.upsample, lambda x, **k: nn.Upsample(**k)(x)]
    for resize in every:
        check(resize, (IMAGE,), {**settings, **more}, expected)
    if isinstance(function, type):
        given = {**settings, **more} if function is nn.Upsample else settings
        check(lambda x, **k: function(**k)(x), (IMAGE,), given, expected)


RECOMPUTED = [
    (F.interpolate, dict(scale_factor=2.3, mode="linear"), dict(recompute_scale_factor=True)),
    (nn.Upsample, dict(scale_factor=2.3, mode="linear"), dict(recompute_scale_factor=True)),
]


@pytest.mark.parametrize(("function", "given", "more"), RECOMPUTED)
def test_recompute_scale_factor(function: Any, given: dict[str, Any], more: dict[str, Any]) -> None:
    """2.3 times 5 elements are 11: places are 1 / 2.3 apart,
    or 5 / 11 where the factor follows from the sizes.
    """
    x = numbers(1, 1, 5)
    call = (lambda x, **k: function(**k)(x)) if isinstance(function, type) else function
    near(run(call, (x,), given), linear(x, (np.arange(11) + 0.5) / 2.3 - 0.5))
    check(call, (x,), {**given, **more}, linear(x, (np.arange(11) + 0.5) * 5 / 11 - 0.5))


def test_affine_grid_and_grid_sample() -> None:
    theta = np.array([[[1.0, 0.5, 0.1], [0.0, 1.0, -0.2]]])
    y, x = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 4), indexing="ij")
    points = np.stack([x, y, np.ones_like(x)], -1)
    check(F.affine_grid, (theta, (1, 1, 3, 4)), dict(align_corners=True), points[None] @ theta[0].T)
    image = numbers(1, 2, 5, 6)
    rows, columns = np.array([[0.2, 3.7]]), np.array([[4.4, 1.6]])
    grid = np.stack([columns / 5 * 2 - 1, rows / 4 * 2 - 1], -1)[None]
    expected = image[:, :, [[0, 4]], [[4, 2]]]
    check(F.grid_sample, (image, grid), dict(mode="nearest", align_corners=True), expected)
