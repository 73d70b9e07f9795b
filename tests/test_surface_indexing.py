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
