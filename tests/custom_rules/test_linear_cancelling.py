"""`linear_transpose` of functions that lose digits on the way, and of what only looks linear."""

import pytest
import wengert as wg


def t(values, **options):
    return wg.tensor(values, dtype=wg.float64, **options)


CANCELLING = {
    "scalar": (lambda x: (1e6 * x + 0.123 * x) - 1e6 * x, t(1.0), [0.123]),
    "vector": (lambda x: (1e9 * x + x.flip(0)) - 1e9 * x, t([1.0, 2.0, 3.0]), [3.0, 2.0, 1.0]),
    "single_precision": (lambda x: (1e6 * x + 0.5 * x) - 1e6 * x, wg.tensor(1.0), [0.5]),
    "sum": (lambda x: (x.cumsum(0)[-1] - x.sum()).reshape(1), t([1e8, 1.0, 1e-8]), [0.0, 0.0, 0.0]),
}


@pytest.mark.parametrize("name", CANCELLING)
def test_linear_function_that_cancels(name):
    f, x, want = CANCELLING[name]
    y = f(x)
    cotangent = wg.arange(1, 1 + y.numel(), dtype=y.dtype).reshape(y.shape)
    (got,) = wg.linear_transpose(f, x)(cotangent)
    assert got.reshape(-1).tolist() == pytest.approx(want, abs=0.07 if x.dtype == wg.float32 else 1e-6)


NOT_LINEAR = {
    "square": lambda x: x * x,
    "abs": lambda x: x.abs(),
    "affine": lambda x: x + 1,
    "median": lambda x: x.median(),
    "odd": lambda x: x.sin(),
    "larger_by_size": lambda x: wg.where(x.abs() > x.flip(0).abs(), x, x.flip(0)),
    "ratio": lambda x: (x**3).sum() / (x**2).sum(),
    "almost": lambda x: x * 1e6 + 0.01 * x * x,
}


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_function_that_is_not_linear_is_refused(name):
    with pytest.raises(ValueError, match="is not linear"):
        wg.linear_transpose(NOT_LINEAR[name], t([1.0, 2.0, 3.0]))


def test_what_linearize_gave_is_linear():
    _, push = wg.linearize(lambda x: (1e12 * x + x.sin()) - 1e12 * x, t(0.0))
    (got,) = wg.linear_transpose(push, t(0.0))(t(1.0))
    assert got.item() == pytest.approx(1.0)


def test_real_cotangent_of_a_complex_output_is_refused():
    transpose = wg.linear_transpose(lambda x: 1j * x, t(1.0))
    with pytest.raises(TypeError, match="make it complex"):
        transpose(t(1.0))
    assert transpose(wg.tensor(2j, dtype=wg.complex128))[0].dtype == wg.float64
