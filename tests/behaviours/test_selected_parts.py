"""What selects elements costs what it selects: gradients are added to the part, rows of few elements take no
longer.

The references are NumPy's: a selection of a tensor is a matrix of zeros and ones, found by selecting from the
numbers of its elements, and its gradient is the product with the transpose of that matrix.
"""

import itertools

import numpy as np
import pytest
import wengert as wg
from wengert import _core


def draws(seed, *shape):
    """Numbers that float64 adds and multiplies without rounding."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float64)


def names_of(f):
    """The operations that `f` runs."""
    _core._begin_script()
    try:
        f()
    finally:
        script = _core._end_script()
    return list(script.names())


SELECTIONS = {
    "integer": lambda x: x[1],
    "negative": lambda x: x[-1, 2],
    "slice": lambda x: x[1:4],
    "column": lambda x: x[:, 2],
    "steps": lambda x: x[::2, 1::3],
    "backwards": lambda x: x[::-1, ::-2] if isinstance(x, np.ndarray) else x.flip(0)[:, wg.arange(5, -1, -2)],
    "index": lambda x: (
        x[np.array([0, 3, 3, -1])] if isinstance(x, np.ndarray) else x[wg.tensor([0, 3, 3, -1])]
    ),
    "rows and columns": lambda x: x[[4, 0], :][:, [1, 1, 5]],
    "transposed": lambda x: x.T[2:5, ::2],
    "diagonal": lambda x: np.diagonal(x[:5, :5]) if isinstance(x, np.ndarray) else x[:5, :5].diagonal(),
    "whole": lambda x: x,
}


@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_gradients_of_many_selections_add_up(leaf, dtype):
    numbers = np.arange(30).reshape(5, 6)
    x = wg.tensor(draws(0, 5, 6).astype(dtype), requires_grad=True)
    y = x if leaf else x * 1
    expected = np.zeros(30)
    total = wg.zeros((), dtype=x.dtype)
    for seed, (_, select) in enumerate([*SELECTIONS.items(), *SELECTIONS.items()]):
        places = select(numbers)
        weight = draws(seed, *places.shape)
        total = total + (select(y) * wg.tensor(weight.astype(dtype))).sum()
        np.add.at(expected, places.ravel(), weight.ravel())
    total.backward()
    np.testing.assert_array_equal(x.grad.numpy().astype(np.float64).ravel(), expected)


def test_a_gradient_that_others_hold_is_left_alone():
    x = wg.tensor(draws(0, 4), requires_grad=True)
    y, seen = x * 1, []
    whole = y * 1
    whole.register_hook(seen.append)
    # What reaches `whole` is handed on to `y`, where the gradient of the slice is added to it.
    (whole * 2).sum().backward(retain_graph=True)
    ((whole * 3).sum() + y[1:].sum()).backward()
    assert [g.tolist() for g in seen] == [[2.0] * 4, [3.0] * 4]
    assert x.grad.tolist() == [5.0, 6.0, 6.0, 6.0]


def test_second_derivatives_of_selections():
    x = wg.tensor(draws(2, 6), requires_grad=True)
    f = lambda x: (x[1:] ** 2 * x[:-1]).sum() + (x[::2] ** 3).sum() + x[0] * x[5]
    (g,) = wg.autograd.grad(f(x), [x], create_graph=True)
    (h,) = wg.autograd.grad((g * wg.tensor(draws(3, 6))).sum(), [x])
    hessian = wg.hessian(f)(x.detach()).numpy()
    np.testing.assert_array_equal(h.numpy(), hessian @ draws(3, 6))
    step = 2.0**-8
    for i in range(6):
        e = wg.tensor(np.eye(6)[i] * step)
        ahead, behind = (wg.autograd.grad(f(p), [p])[0].numpy() for p in (leaf_of(x, e), leaf_of(x, -e)))
        np.testing.assert_allclose(hessian[i], (ahead - behind) / (2 * step), atol=1e-9)


def leaf_of(x, offset):
    return (x.detach() + offset).requires_grad_()


@pytest.mark.parametrize(
    "select", ["x[t]", "x[:, t]", "x[t:t + 1]", "x.select(0, t)", "x.narrow(1, t, 2)", "x[[t]]"]
)
def test_a_thousand_selections_fill_one_whole(select):
    """Each further gradient is added where it belongs, instead of filling a tensor of the size of the
    whole."""
    x = wg.tensor(draws(4, 50, 52), requires_grad=True)
    parts = [eval(select, {"x": x, "t": t}) for t in range(50)]
    y = sum((p * p).sum() for p in parts)
    ran = names_of(y.backward)
    wholes = {"pad", "take_add", "as_strided_transpose", "scatter_add"}
    assert sum(name in wholes for name in ran) == 1, ran
    expected = np.zeros((50, 52))
    values = x.detach().numpy()
    for t in range(50):
        mask = np.zeros((50, 52))
        at = np.arange(50 * 52).reshape(50, 52)
        places = {"x[:, t]": at[:, t], "x.narrow(1, t, 2)": at[:, t : t + 2]}.get(select, at[t])
        mask.flat[places.ravel()] = 1
        expected += 2 * values * mask
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def layouts(shape, dtype, seed):
    """Arrays of this shape, or that broadcast to it, in many layouts."""
    x = draws(seed, *shape).astype(dtype)
    wide = draws(seed, *(n + 2 for n in shape)).astype(dtype)
    yield "contiguous", x, lambda t: t
    yield "part", wide, lambda t: t[tuple(slice(1, 1 + n) for n in shape)]
    double = draws(seed, *(2 * n for n in shape)).astype(dtype)
    yield "steps", double, lambda t: t[tuple(slice(None, None, 2) for _ in shape)]
    yield "transposed", draws(seed, *shape[::-1]).astype(dtype), lambda t: t.T
    for axis in range(len(shape)):
        yield f"one along {axis}", x.take([0], axis), lambda t: t


SHORT = [(40, 2), (33, 3), (21, 5), (17, 8), (11, 9), (9, 2, 3), (7, 3, 1, 4), (2, 300, 2), (5, 7, 8)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "float16", "complex128"])
@pytest.mark.parametrize("shape", SHORT, ids=str)
def test_short_axes_of_every_layout(shape, dtype):
    for (_, a, f), (_, b, g) in itertools.product(layouts(shape, dtype, 0), layouts(shape, dtype, 1)):
        x, y = f(wg.tensor(a)), g(wg.tensor(b))
        np.testing.assert_array_equal((x + y).numpy(), f(a) + g(b))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", SHORT, ids=str)
def test_writes_into_short_axes_of_every_layout(shape, dtype):
    for (name, a, f), (_, b, g) in itertools.product(
        layouts(shape, "float32", 0), layouts(shape, "float32", 1)
    ):
        if name.startswith("one"):
            continue
        whole = wg.tensor(a).to(getattr(wg, dtype))
        f(whole).add_(g(wg.tensor(b)).to(whole.dtype))
        expected = a.copy()
        part = f(expected)
        part += g(b)
        np.testing.assert_array_equal(whole.to(wg.float32).numpy(), expected)
