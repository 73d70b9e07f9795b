"""Discrete Fourier transforms of lines in every layout, in one launch and in two, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import rng, run


def turns(n, count):
    """exp(-2 pi i t / n) for t < count."""
    return np.exp(-2j * np.pi * np.arange(count) / n).astype(np.complex64)


def launch(x, shape, bits, lines, ins, outs, scale=1.0, **more):
    """One launch on complex numbers; `ins` and `outs` are the strides (outer, middle, inner, along)."""
    table = turns(2048, 2048)
    if more.get("WHOLE"):
        table = np.concatenate([table, turns(1 << more["WHOLE"], 2048)])
    replace = {"const BITS": f"const BITS: u32 = {bits}u;"}
    for name, value in more.items():
        text = f"u32 = {value}u" if name == "WHOLE" else f"bool = {str(value).lower()}"
        replace[f"const {name}"] = f"const {name}: {text};"
    params = [np.prod(lines), *lines[1:], *ins, *outs, float(scale)]
    groups = -(-int(np.prod(lines)) // (2048 >> bits))
    words = [np.ascontiguousarray(part).view(np.float32) for part in (x, table)]
    (out,) = run("fft.wgsl", words, [((*shape, 2), np.float32)], params, groups, replace)
    return out.view(np.complex64)[..., 0]


def near(got, want):
    """Within the rounding errors of a transform, which grow with the logarithm of its length."""
    np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * np.abs(want).max())


def some(seed, *shape):
    """Complex numbers."""
    g = rng(seed)
    return (g.standard_normal(shape) + 1j * g.standard_normal(shape)).astype(np.complex64)


@pytest.mark.parametrize("bits", range(12))
@pytest.mark.parametrize("across", [False, True])
def test_lines_of_every_length(bits, across):
    n = 1 << bits
    x = some(bits, 3, n, 5)
    strides = (5 * n, 0, 1, 5)
    flags = {"ACROSS_X": across, "ACROSS_OUT": not across}
    got = launch(x, x.shape, bits, (3, 1, 5), strides, strides, **flags)
    near(got, np.fft.fft(x.astype(complex), axis=1))
    got = launch(x, x.shape, bits, (3, 1, 5), strides, strides, 1 / n, INVERSE=True, **flags)
    near(got, np.fft.ifft(x.astype(complex), axis=1))


@given(st.integers(0, 2**20), st.integers(0, 9), st.integers(1, 40), st.integers(1, 7))
def test_any_number_of_lines(seed, bits, outer, inner):
    n = 1 << bits
    x = some(seed, outer, n, inner)
    strides = (n * inner, 0, 1, inner)
    got = launch(x, x.shape, bits, (outer, 1, inner), strides, strides, ACROSS_X=inner > 1)
    near(got, np.fft.fft(x.astype(complex), axis=1))


@pytest.mark.parametrize(("first", "second"), [(1, 1), (3, 2), (6, 6), (7, 6), (11, 1), (8, 8)])
@pytest.mark.parametrize("inverse", [False, True])
def test_two_launches(first, second, inverse):
    a, b = 1 << first, 1 << second
    n = a * b
    x = some(first, 2, n, 3)
    along = {"INVERSE": inverse, "ACROSS_X": True, "ACROSS_OUT": True}
    columns = (3 * n, 3, 1, 3 * b)
    half = launch(x, x.shape, first, (2, b, 3), columns, columns, WHOLE=first + second, **along)
    rows, turned = (3 * n, 3 * b, 1, 3), (3 * n, 3, 1, 3 * a)
    got = launch(half, x.shape, second, (2, a, 3), rows, turned, **along)
    wide = x.astype(complex)
    near(got, np.fft.ifft(wide, axis=1) * n if inverse else np.fft.fft(wide, axis=1))
