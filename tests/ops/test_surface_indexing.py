"""Reading and assigning through indices, as in NumPy."""

import numpy as np
import pytest
import wengert as wg
from wengert.testing import assert_close, gradcheck, gradgradcheck

F64 = wg.float64

KEYS = [
    "0", "-1", "1:", "::-1", "::2", "...", "None", "0, 1", "..., 0", ":, None, 1", "1:1", "-1, ::-2, 1:3",
    "[0, 1]", "[0, -1], [1, 2]", ":, [2, 0]", ":, [2, 0], [1, 3]", "[0, 1], :, [1, 3]", "0, :, [1, 3]",
    "[[0], [1]], [1, 2]", "a > 10",
    "a[:, 0, 0] > 5", ":, [True, False, True]", "[1], None, [2]", "..., [0, 3]", "True", "False",
    "np.array([1, 0])", "np.int64(1)", "[]", "None, [0, 1], 1:",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_indexing_is_numpys(key: str) -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    k = eval(f"np.s_[{key}]", {"np": np, "a": a})
    expected = a[np.array(k, dtype=np.int64) if isinstance(k, list) and not k else k]
    t = wg.tensor(a)
    assert_close(t[k], expected)
    assert_close(wg.vmap(lambda x: x[k])(wg.tensor(a[None])), expected[None])
    if expected.size:
        gradcheck(lambda x: x[k] * x[k], t)
    values = np.arange(expected.size, dtype=np.float64).reshape(expected.shape) + 100
    b = a.copy()
    b[np.array(k, dtype=np.int64) if isinstance(k, list) and not k else k] = values
    t[k] = wg.tensor(values)
    assert_close(t, b)
    a2 = wg.tensor(a)
    a2[k] = -1
    c = a.copy()
    c[np.array(k, dtype=np.int64) if isinstance(k, list) and not k else k] = -1
    assert_close(a2, c)


def test_assignment_is_differentiable() -> None:
    def f(x: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
        y = x * 2
        y[1:, [0, 2]] = v * v
        y[0] = v[0, 0]
        y *= x
        return y

    x, v = wg.randn(3, 3, dtype=F64), wg.randn(2, 2, dtype=F64)
    gradcheck(f, (x, v))
    gradgradcheck(f, (x, v))
    batched = wg.vmap(f)(wg.stack([x, x + 1]), wg.stack([v, v]))
    assert_close(batched, wg.stack([f(x, v), f(x + 1, v)]))


def test_index_errors() -> None:
    x = wg.ones(2, 3)
    for key, text in [
        (5, "index 5 is out of range"),
        ((0, 0, 0), "too many indices"),
        ([0, 9], "out of range"),
        (1.5, "indexed by integers"),
        ("a", "indexed by integers"),
        (wg.ones(3, dtype=wg.bool), "mask of shape"),
    ]:
        with pytest.raises(IndexError, match=text):
            x[key]
    with pytest.raises(wg.ShapeError, match="cannot be broadcast"):
        x[0] = wg.ones(4)


i3, j3 = np.array([2, 0, 1]), np.array([[0], [3]])
APART: dict[str, tuple[tuple[int, ...], tuple]] = {
    "an integer after": ((4, 4, 1), (slice(None), i3, Ellipsis, -1)),
    "an integer before": ((4, 4, 2), (1, Ellipsis, i3 % 2, slice(None))),
    "two indices": ((4, 4, 4), (slice(None), i3, Ellipsis, i3)),
    "they broadcast": ((4, 4, 4), (slice(None), i3, Ellipsis, j3)),
    "a new axis first": ((4, 3), (None, i3, Ellipsis, i3)),
    "an axis between": ((4, 4, 4), (i3, Ellipsis, i3)),
    "an ellipsis at the end": ((4, 4, 4), (slice(None), i3, i3, Ellipsis)),
    "an ellipsis at the front": ((4, 4), (Ellipsis, i3, i3)),
    "an ellipsis beside a slice": ((4, 4, 4), (slice(None), i3, Ellipsis, slice(1, 3))),
    "a mask": ((4, 3, 3), (slice(None), np.array([True, False, True]), Ellipsis, 0)),
}


@pytest.mark.parametrize("name", APART)
def test_an_ellipsis_of_no_axes_separates_indices(name: str) -> None:
    shape, key = APART[name]
    x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    own = tuple(wg.tensor(k) if isinstance(k, np.ndarray) else k for k in key)
    want = x[key]
    got = wg.tensor(x)[own]
    assert got.shape == want.shape
    assert got.tolist() == want.tolist()
    value = -1.0 - np.arange(want.size, dtype=np.float64).reshape(want.shape)
    written, target = x.copy(), wg.tensor(x)
    written[key] = value
    target[own] = wg.tensor(value)
    assert target.tolist() == written.tolist()
    slope = np.zeros(shape)
    np.add.at(slope, key, value)
    assert wg.grad(lambda x: (x[own] * wg.tensor(value)).sum())(wg.tensor(x)).tolist() == slope.tolist()


MASKED_SHAPES = [(0, 1), (1, 0), (2,), (2, 0), (0, 2, 3), (3, 0, 1), (2, 3)]
MASK_SHAPES = [(0,), (0, 0), (0, 1), (1, 0), (0, 5), (2, 0), (0, 3), (2, 0, 3), (3,)]


@pytest.mark.parametrize("before", [(), (Ellipsis,), (None,), (slice(None),)], ids=["", "...", "None", ":"])
@pytest.mark.parametrize("mask", MASK_SHAPES, ids=str)
def test_an_axis_of_length_0_of_a_mask_selects_nothing(
    mask: tuple[int, ...], before: tuple[object, ...]
) -> None:
    for shape in MASKED_SHAPES:
        x, key = np.ones(shape), (*before, np.zeros(mask, bool))
        own = (*before, wg.zeros(mask, dtype=wg.bool))
        try:
            want = x[key]
        except IndexError:
            with pytest.raises(IndexError):
                wg.tensor(x)[own]
            with pytest.raises(IndexError):
                wg.tensor(x)[own] = 2.0
            continue
        assert wg.tensor(x)[own].shape == want.shape
        target = wg.tensor(x)
        target[own] = 2.0
        assert target.tolist() == x.tolist()
