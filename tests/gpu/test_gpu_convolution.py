"""Convolutions and pooling on the GPU by every kernel that their shapes choose: values and gradients of first
and second order against the CPU, in float64 where the order of sums differs."""

from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert.nn import functional as F

Array = np.ndarray[Any, Any]


def noise(*shape: int) -> Array:
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype(np.float32)


# Input, weight, options: by tiles of every shape, directly, in parts, as products of matrices.
CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "few rows": ((2, 5, 9, 7), (2, 5, 3, 2), {"padding": 1}),
    "32 x 128": ((3, 4, 11, 9), (20, 4, 3, 3), {"padding": (1, 2)}),
    "128 x 32": ((1, 3, 5, 5), (130, 3, 3, 3), {}),
    "64 x 64": ((2, 6, 9, 9), (70, 6, 3, 3), {"dilation": (2, 1)}),
    "64 x 128": ((12, 3, 32, 32), (40, 3, 3, 3), {"padding": 1}),
    "128 x 128": ((12, 3, 32, 32), (66, 3, 3, 3), {"padding": 1}),
    "parts": ((1, 70, 4, 5), (5, 70, 3, 3), {"padding": 1}),
    "parts of few rows": ((1, 300, 6), (1, 300, 5), {}),
    "strides": ((2, 5, 11, 10), (9, 5, 3, 4), {"stride": (2, 3), "padding": (1, 2)}),
    "strides without elements": ((2, 3, 9, 8), (4, 3, 2, 1), {"stride": 3}),
    "strides and dilations": ((2, 3, 15, 19), (4, 3, 3, 3), {"stride": (2, 3), "dilation": (4, 2)}),
    "a stride beyond the input": ((2, 4, 5), (3, 4, 2), {"stride": 7}),
    "groups": ((2, 12, 8, 7), (21, 4, 3, 3), {"groups": 3, "stride": 2, "padding": 1}),
    "depthwise": ((2, 10, 9, 8), (10, 1, 3, 3), {"groups": 10, "padding": 1}),
    "depthwise, strides": ((2, 6, 9, 8), (12, 1, 3, 3), {"groups": 6, "padding": 1, "stride": 2}),
    "one element": ((2, 12, 8, 8), (10, 6, 1, 1), {"groups": 2}),
    "one element, few places": ((3, 12, 5, 5), (10, 12, 1, 1), {}),
    "one element, strides": ((2, 8, 9, 9), (6, 8, 1, 1), {"stride": 2}),
    "one element, padding": ((2, 8, 9, 9), (6, 8, 1, 1), {"stride": 2, "padding": 4}),
    "one axis": ((3, 5, 40), (7, 5, 4), {"stride": 2, "padding": 3}),
    "three axes": ((2, 3, 6, 5, 7), (8, 3, 3, 2, 3), {"stride": (1, 2, 1), "padding": (1, 0, 1)}),
}


def convolve(x: wg.Tensor, w: wg.Tensor, **options: Any) -> wg.Tensor:
    return getattr(F, f"conv{x.ndim - 2}d")(x, w, **options)


def close(found: wg.Tensor, want: wg.Tensor, size: wg.Tensor, unit: float) -> None:
    """Within some units of what the sums of absolute values are."""
    bound = unit * (size.numpy() + 1e-3)
    assert (np.abs(found.cpu().double().numpy() - want.numpy()) <= bound).all()


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize(
    ("dtype", "unit"), [(wg.float32, 2e-6), (wg.float16, 2e-3), (wg.bfloat16, 1.6e-2)], ids=str
)
def test_convolutions_and_their_transposes(name: str, dtype: wg.dtype, unit: float) -> None:
    shape, weight, options = CONVOLUTIONS[name]
    x, w = wg.tensor(noise(*shape)).to(dtype), wg.tensor(noise(*weight)).to(dtype)
    y = convolve(x, w, **options)
    g = wg.tensor(noise(*y.shape)).to(dtype)

    def all_three(x: wg.Tensor, w: wg.Tensor, g: wg.Tensor) -> list[wg.Tensor]:
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = convolve(x, w, **options)
        return [y.detach(), *wg.autograd.grad(y, (x, w), g)]

    wide = [v.double() for v in (x, w, g)]
    found = all_three(x.gpu(), w.gpu(), g.gpu())
    sizes = all_three(*[v.abs() for v in wide])
    for f, want, size in zip(found, all_three(*wide), sizes):
        assert f.dtype is dtype
        assert f.shape == want.shape
        close(f, want, size, unit)
    for f, again in zip(found, all_three(x.gpu(), w.gpu(), g.gpu())):
        assert f.cpu().float().numpy().tobytes() == again.cpu().float().numpy().tobytes()


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize(
    ("dtype", "unit"), [(wg.float32, 2e-6), (wg.float16, 2e-3), (wg.bfloat16, 1.6e-2)], ids=str
)
def test_a_bias_is_added_in_the_launch_of_the_convolution(name: str, dtype: wg.dtype, unit: float) -> None:
    shape, weight, options = CONVOLUTIONS[name]
    x, w, b = (wg.tensor(noise(*s)).to(dtype) for s in (shape, weight, weight[:1]))
    with wg.gpu.profile() as without:
        plain = convolve(x.gpu(), w.gpu(), **options)
    with wg.gpu.profile() as found:
        y = convolve(x.gpu(), w.gpu(), bias=b.gpu(), **options)
    # Windows of one element and several groups are products with a bias for each group. What is beyond a
    # binding is computed in pieces.
    more = 1 if name == "one element" else 0
    if 4 * y.numel() <= wg.gpu.info()["limits"]["max_storage_buffer_binding_size"]:
        assert len(found.launches) == len(without.launches) + more
    wide = [v.double() for v in (x, w, b)]
    want, size = (convolve(*v[:2], bias=v[2], **options) for v in (wide, [v.abs() for v in wide]))
    assert y.dtype is dtype
    close(y, want, size, unit)
    if dtype is wg.float32 and "parts" not in name:  # a sum in one piece, to which the bias is added
        sums = plain.cpu().numpy() + b.numpy().reshape(-1, *[1] * (x.ndim - 2))
        assert y.cpu().numpy().tobytes() == sums.tobytes()
    again = convolve(x.gpu(), w.gpu(), bias=b.gpu(), **options)
    assert y.cpu().float().numpy().tobytes() == again.cpu().float().numpy().tobytes()


@pytest.mark.parametrize("name", ["128 x 32", "64 x 128", "groups", "one element, few places"])
def test_gradients_with_a_bias(name: str) -> None:
    shape, weight, options = CONVOLUTIONS[name]

    def gradients(*given: wg.Tensor) -> tuple[wg.Tensor, ...]:
        x, w, b = (v.detach().requires_grad_() for v in given)
        y = convolve(x, w, bias=b, **options)
        return wg.autograd.grad((y * y * y).sum(), (x, w, b))

    given = [noise(*shape), noise(*weight) / 4, noise(weight[0])]
    found = gradients(*[wg.tensor(v, device="gpu") for v in given])
    want = gradients(*[wg.tensor(v.astype(np.float64)) for v in given])
    for f, expected in zip(found, want):
        assert np.abs(f.cpu().double().numpy() - expected.numpy()).max() <= 1e-5 * float(expected.abs().max())


@pytest.mark.parametrize("kernel", [1, 3])
def test_what_follows_a_convolution_in_a_program_is_in_its_launch(kernel: int) -> None:
    x, w, b = (wg.tensor(noise(*s), device="gpu") for s in ((2, 4, 8, 8), (8, 4, kernel, kernel), (8,)))
    skip = wg.tensor(noise(2, 8, 8, 8), device="gpu")
    f = lambda: F.relu(F.conv2d(x, w, b, padding=kernel // 2)) + skip
    staged = wg.jit(f)
    want = f()
    for _ in range(3):
        y = staged()
    with wg.gpu.profile() as found:
        staged()
    assert len(found.launches) == 1
    np.testing.assert_array_equal(y.cpu().numpy(), want.cpu().numpy())


@pytest.mark.parametrize("name", ["64 x 64", "strides and dilations", "groups", "depthwise", "one element"])
def test_second_derivatives_of_convolutions(name: str) -> None:
    shape, weight, options = CONVOLUTIONS[name]

    def second(x: wg.Tensor, w: wg.Tensor) -> tuple[wg.Tensor, ...]:
        y = convolve(x, w, **options)
        gx, gw = wg.autograd.grad((y * y).sum(), (x, w), create_graph=True)
        return wg.autograd.grad((gx * gx).sum() + (gw * gw).sum(), (x, w))

    x, w = noise(*shape), noise(*weight) / 4
    found = second(*[wg.tensor(v, device="gpu", requires_grad=True) for v in (x, w)])
    want = second(*[wg.tensor(v.astype(np.float64), requires_grad=True) for v in (x, w)])
    for f, expected in zip(found, want):
        scale = float(expected.abs().max())
        assert np.abs(f.cpu().double().numpy() - expected.numpy()).max() <= 1e-5 * scale


def test_a_transposed_convolution_with_strides() -> None:
    x, w = noise(2, 6, 7, 5), noise(6, 4, 4, 3)
    options: dict[str, Any] = {"stride": (2, 3), "padding": (1, 0), "output_padding": (0, 2), "groups": 2}
    found = F.conv_transpose2d(wg.tensor(x).gpu(), wg.tensor(w).gpu(), **options)
    want = F.conv_transpose2d(wg.tensor(x).double(), wg.tensor(w).double(), **options)
    assert np.abs(found.cpu().double().numpy() - want.numpy()).max() < 1e-5


def test_a_convolution_of_no_channels_is_zero() -> None:
    x, w = wg.ones(2, 0, 9, 9, device="gpu"), wg.ones(3, 0, 2, 2, device="gpu")
    assert F.conv2d(x, w).sum().item() == 0.0
    assert (
        F.conv2d(wg.ones(2, 0, 8, 8, device="gpu"), w[:, :, :1, :1]).tolist() == [[[[0.0] * 8] * 8] * 3] * 2
    )


POOLS: dict[str, tuple[tuple[int, ...], tuple[Any, ...]]] = {
    "one axis": ((3, 17), (3, 2, 1)),
    "two axes": ((2, 3, 11, 14), (3, 2, 1)),
    "windows that overlap": ((2, 9, 10), ((4, 3), 1, (2, 1))),
    "windows apart": ((2, 9, 12), (2, 4)),
    "dilations": ((2, 13, 12), ((2, 3), (2, 1), (1, 0), (3, 2))),
    "a last window": ((2, 8, 8), (3, 3, 1, 1, True)),
    "three axes": ((2, 5, 6, 7), (2, (1, 2, 1), 1)),
}


def pool(x: wg.Tensor, *options: Any, rank: int) -> wg.Tensor:
    return getattr(F, f"max_pool{rank}d")(x, *options)


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("dtype", [wg.float32, wg.float16, wg.bfloat16], ids=str)
def test_the_gradient_of_max_pooling_has_the_bits_of_the_cpu(name: str, dtype: wg.dtype) -> None:
    shape, options = POOLS[name]
    rank = len(shape) - (1 if name != "two axes" else 2)
    # Numbers of which many are equal, and some are none: the first maximum counts.
    x = np.round(noise(*shape) * 2) / 2
    x.reshape(-1)[::7] = np.nan

    def gradient(x: wg.Tensor) -> wg.Tensor:
        x.requires_grad_()
        y = pool(x, *options, rank=rank)
        g = wg.tensor(noise(*y.shape)).to(dtype).to(x.device)
        return wg.autograd.grad(y, x, g)[0]

    found, want = gradient(wg.tensor(x).to(dtype).gpu()), gradient(wg.tensor(x).to(dtype))
    assert found.dtype is dtype
    np.testing.assert_array_equal(found.cpu().float().numpy(), want.float().numpy())


@pytest.mark.parametrize("name", ["one axis", "two axes", "dilations", "three axes"])
def test_derivatives_of_higher_order_of_max_pooling(name: str) -> None:
    shape, options = POOLS[name]
    rank = len(shape) - (1 if name != "two axes" else 2)

    def cubes(x: wg.Tensor) -> wg.Tensor:
        return (pool(x, *options, rank=rank) ** 3).sum()

    x, v = noise(*shape), noise(*shape[::-1]).T.copy()

    def derivatives(x: wg.Tensor, v: wg.Tensor) -> list[wg.Tensor]:
        reverse = wg.grad(lambda x: (wg.grad(cubes)(x) * v).sum())(x)
        forward = wg.jvp(wg.grad(cubes), (x,), (v,))[1]
        third = wg.grad(lambda x: (wg.jvp(wg.grad(cubes), (x,), (v,))[1] * v).sum())(x)
        mapped = wg.vmap(wg.grad(cubes))(wg.stack([x, v]))
        return [reverse, forward, third, mapped]

    found = derivatives(wg.tensor(x).gpu(), wg.tensor(v).gpu())
    want = derivatives(wg.tensor(x), wg.tensor(v))
    for f, expected in zip(found, want):
        np.testing.assert_allclose(f.cpu().numpy(), expected.numpy(), rtol=1e-6, atol=1e-6)


def test_the_gradient_of_max_pooling_is_one_dispatch() -> None:
    x = wg.tensor(noise(2, 3, 12, 12), device="gpu", requires_grad=True)
    y = F.max_pool2d(x, 3, 2, 1)
    g = wg.ones_like(y)
    with wg.gpu.profile() as found:
        wg.autograd.grad(y, x, g)
    assert [launch.kernel for launch in found.launches] == ["max_pool_add"]
