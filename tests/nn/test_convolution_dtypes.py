"""Convolution and pooling of complex numbers and of integers, by definition in NumPy."""

from typing import Any

import numpy as np
import pytest
import references.conv_reference as reference
import wengert as wg
from support import Array, array
from wengert.autograd import gradcheck, gradgradcheck
from wengert.nn import functional as F

CONV: Any = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED: Any = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
SETTINGS: list[dict[str, Any]] = [
    {},
    dict(stride=2, padding=1, dilation=2, groups=2),
    dict(stride=3, groups=2),
]


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    """Numbers of a dtype; integers over more than a few bits."""
    rng = np.random.default_rng((seed, *shape))
    if "complex" in dtype:
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    low, high = (0, 200) if dtype == "uint8" else (-100, 100)
    return rng.integers(low, high, shape).astype(dtype)


def transposed(y: Array, w: Array, stride: int, padding: int, dilation: int, groups: int, more: int) -> Array:
    """Every element adds a weighted window to the output."""
    rank = y.ndim - 2
    lengths = [
        (n - 1) * stride + dilation * (k - 1) + 1 for n, k in zip(y.shape[2:], w.shape[2:], strict=True)
    ]
    inputs, outputs = w.shape[0] // groups, w.shape[1]
    out = np.zeros((y.shape[0], groups * outputs, *[n + more for n in lengths]), np.result_type(y, w))
    for place in np.ndindex(*w.shape[2:]):
        at = [
            slice(k * dilation, k * dilation + (n - 1) * stride + 1, stride)
            for k, n in zip(place, y.shape[2:])
        ]
        for g in range(groups):
            rows = slice(g * outputs, (g + 1) * outputs)
            mine = slice(g * inputs, (g + 1) * inputs)
            weight = w[(mine, slice(None), *place)]
            out[(slice(None), rows, *at)] += np.einsum("ni...,io->no...", y[:, mine], weight).astype(
                out.dtype
            )
    inner = [slice(padding, n + more - padding) for n in lengths]
    return out[(slice(None), slice(None), *inner)] if rank else out


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "int64", "int32", "uint8", "int8"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_values(rank: int, dtype: str) -> None:
    kind = getattr(wg, dtype)
    close = dict(rtol=2e-4, atol=2e-4) if dtype == "complex64" else dict(rtol=1e-12, atol=1e-12)
    for settings in SETTINGS:
        groups = settings.get("groups", 1)
        x, w = (
            drawn((2, 2 * groups, *[6, 7, 5][:rank]), dtype),
            drawn((2 * groups, 2, *[2, 3, 2][:rank]), dtype, 1),
        )
        b = drawn((2 * groups,), dtype, 2)
        for bias in (None, b):
            got = CONV[rank](
                wg.tensor(x), wg.tensor(w), None if bias is None else wg.tensor(bias), **settings
            )
            options = dict(stride=1, padding=0, dilation=1, groups=1) | settings
            expected = reference.conv(x, w, bias, **options).astype(dtype)
            assert got.dtype == kind
            np.testing.assert_allclose(array(got), expected, **close)
        more = 1 if settings.get("stride", 1) > 1 else 0
        got = TRANSPOSED[rank](wg.tensor(x), wg.tensor(w), wg.tensor(b), output_padding=more, **settings)
        plain = {key: value for key, value in options.items() if key != "groups"}
        wide = transposed(x, w, **plain, groups=groups, more=more) + b.reshape(-1, *[1] * rank)
        assert got.dtype == kind
        np.testing.assert_allclose(array(got), wide.astype(dtype), **close)


def test_one_image_without_channels_of_a_batch_and_same_padding() -> None:
    for dtype in ("complex128", "int64"):
        x, w = drawn((2, 7), dtype), drawn((3, 2, 4), dtype, 1)
        got = F.conv1d(wg.tensor(x), wg.tensor(w), padding="same")
        whole = F.conv1d(wg.tensor(np.pad(x, ((0, 0), (1, 2))))[None], wg.tensor(w))[0]
        assert tuple(got.shape) == (3, 7)
        np.testing.assert_allclose(array(got), array(whole), rtol=1e-12)
        assert tuple(F.conv_transpose1d(wg.tensor(x), wg.tensor(w[:2])).shape) == (2, 10)


def test_operands_of_two_kinds() -> None:
    z, x = drawn((1, 1, 4), "complex64"), np.ones((1, 1, 2), np.float64)
    got = F.conv1d(wg.tensor(z), wg.tensor(x))
    assert got.dtype == wg.complex128
    np.testing.assert_allclose(array(got), z[..., 1:].astype(complex) + z[..., :-1], rtol=1e-6)
    with wg.autocast("cpu"):
        assert F.conv1d(wg.tensor(z), wg.tensor(x.astype("float32"))).dtype == wg.complex64
        assert F.conv1d(wg.arange(4).reshape(1, 1, 4), wg.ones(1, 1, 2, dtype=wg.int64)).dtype == wg.int64
    assert F.conv1d(wg.arange(4).reshape(1, 1, 4), wg.ones(1, 1, 2, dtype=wg.uint8)).dtype == wg.int64
    for a, b in ((wg.int64, wg.float32), (wg.float32, wg.int64), (wg.bool, wg.bool)):
        with pytest.raises(
            TypeError, match=r"both of one kind, expected, got (input|weight) of (int64|bool)"
        ):
            F.conv1d(wg.ones(1, 1, 4, dtype=a), wg.ones(1, 1, 2, dtype=b))


def test_integers_wrap_as_sums_do_and_large_ones_are_exact() -> None:
    big = wg.tensor([[[2**62, 2**62, 2**53 + 1]]])
    assert F.conv1d(big, wg.ones(1, 1, 2, dtype=wg.int64)).tolist() == [[[-(2**63), 2**62 + 2**53 + 1]]]


def test_batched_integers_are_those_of_each_example() -> None:
    x, w = wg.tensor(drawn((4, 2, 2, 5, 4, 4), "int64")), wg.tensor(drawn((2, 2, 2, 2, 2), "int64"))
    for f in (F.conv3d, F.conv_transpose3d):
        assert wg.equal(wg.vmap(f, (0, None))(x, w), wg.stack([f(each, w) for each in x]))
    many = wg.stack([w, 2 * w, w, w])
    assert wg.equal(wg.vmap(F.conv3d)(x, many), wg.stack([F.conv3d(a, b) for a, b in zip(x, many)]))


@pytest.mark.parametrize("function", [F.conv2d, F.conv_transpose2d])
def test_complex_derivatives(function: Any) -> None:
    x, w, b = (wg.tensor(drawn(s, "complex128", i)) for i, s in enumerate([(1, 2, 3, 3), (2, 1, 2, 2), (2,)]))
    f = lambda x, w, b: function(x, w, b, groups=2, stride=2, padding=1)
    assert gradcheck(f, (x, w, b), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(f, (x, w, b), check_fwd_over_rev=True, fast_mode=True)


def test_the_gradient_of_a_complex_convolution_has_the_library_s_convention() -> None:
    x, w = wg.tensor(drawn((1, 1, 2), "complex128")), wg.tensor(drawn((1, 1, 2), "complex128", 1))
    by_product = wg.grad(lambda w: (x * w).sum().abs() ** 2)(w)
    by_window = wg.grad(lambda w: F.conv1d(x, w).abs().sum() ** 2)(w)
    np.testing.assert_allclose(array(by_window), array(by_product), rtol=1e-12)


# ---- averages ------------------------------------------------------------------------------------


def averages(
    x: Array, size: int, stride: int, pad: int, counted: bool, divisor: int | None, ceil: bool
) -> Array:
    """Sums over windows of the last axis, divided towards zero as in C."""
    length = x.shape[-1]
    room = length + 2 * pad - size
    count = (room + (stride - 1 if ceil else 0)) // stride + 1
    if ceil and (count - 1) * stride >= length + pad:
        count -= 1
    out = np.zeros((*x.shape[:-1], count), np.int64)
    for p in range(count):
        low, high = p * stride - pad, min(p * stride - pad + size, length + pad)
        inside = x[..., max(low, 0) : min(high, length)].astype(np.int64)
        number = divisor or ((high - low) if counted else inside.shape[-1])
        total = inside.sum(-1)
        out[..., p] = np.sign(total) * np.sign(number) * (np.abs(total) // abs(number))
    return out


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int8"])
def test_averages_of_integers_lose_their_fractions(dtype: str) -> None:
    x = drawn((2, 3, 9), dtype)
    for size, stride, pad, counted, ceil in (
        (2, 2, 0, True, False),
        (3, 2, 1, True, True),
        (3, 2, 1, False, True),
    ):
        got = F.avg_pool1d(wg.tensor(x), size, stride, pad, ceil, counted)
        assert got.dtype == getattr(wg, dtype)
        assert np.array_equal(array(got), averages(x, size, stride, pad, counted, None, ceil))
    plane = x[:, :, None, :]
    got = F.avg_pool2d(wg.tensor(plane), (1, 3), (1, 2), divisor_override=-2 if dtype == "int64" else 5)
    wanted = averages(plane, 3, 2, 0, True, -2 if dtype == "int64" else 5, False)
    assert np.array_equal(array(got), wanted.astype(dtype))
    assert tuple(F.avg_pool3d(wg.tensor(x[None, None]), (1, 3, 3)).shape) == (1, 1, 2, 1, 3)


def test_averages_of_large_integers_are_exact_and_bools_raise() -> None:
    assert F.avg_pool1d(wg.tensor([[2**53 + 1, 2**53 + 1]]), 2).tolist() == [[2**53 + 1]]
    assert F.avg_pool1d(wg.tensor([[127, 127]], dtype=wg.int8), 2).tolist() == [[127]]
    x = wg.tensor(drawn((3, 2, 4), "int64"))
    assert wg.equal(wg.vmap(lambda x: F.avg_pool1d(x, 2))(x), F.avg_pool1d(x, 2))
    with pytest.raises(TypeError, match="avg_pool1d: floating point tensor expected, got bool"):
        F.avg_pool1d(wg.ones(1, 2, dtype=wg.bool), 2)


def test_local_response_of_integers() -> None:
    x = drawn((1, 5, 3), "int64") // 20
    squares = np.pad(x**2, ((0, 0), (1, 1), (0, 0)))
    mean = (squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]) // 3
    got = F.local_response_norm(wg.tensor(x), 3, alpha=0.5, beta=0.6, k=2.0)
    assert got.dtype == wg.float32
    np.testing.assert_allclose(array(got), x / (2 + 0.5 * mean) ** 0.6, rtol=1e-6)
