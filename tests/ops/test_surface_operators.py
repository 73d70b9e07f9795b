"""Operators, promotion, in-place methods, and methods with structure against NumPy."""

import numpy as np
import pytest
import wengert as wg
from wengert.testing import assert_close, gradcheck

F64 = wg.float64


def test_operators_follow_numpy() -> None:
    a, b = np.array([1.5, -2.0, 3.0]), np.array([2.0, 2.0, -2.0])
    x, y = wg.tensor(a), wg.tensor(b)
    for op in ("+", "-", "*", "/", "//", "%", "**", "<", "<=", "==", "!=", ">", ">="):
        left = eval(f"x {op} y")
        with np.errstate(invalid="ignore"):
            assert_close(left, eval(f"a {op} b"), equal_nan=True, check_dtype=False)
            assert_close(eval(f"x {op} 2.0"), eval(f"a {op} 2.0"), equal_nan=True)
            assert_close(eval(f"2.0 {op} y"), eval(f"2.0 {op} b"), equal_nan=True)
            assert_close(eval(f"a {op} y"), eval(f"a {op} b"), equal_nan=True)
    mask, other = x > 0, y > 0
    assert other.tolist() == [True, True, False]
    for op in ("&", "|", "^"):
        assert_close(eval(f"mask {op} other"), eval(f"(a > 0) {op} (b > 0)"))
    assert (~mask).tolist() == [False, True, False]
    assert (-x).tolist() == [-1.5, 2.0, -3.0]
    assert abs(x).tolist() == [1.5, 2.0, 3.0]
    assert (x == None) is False  # noqa: E711
    assert 3.0 in x
    assert 4.0 not in x
    with pytest.raises(TypeError):
        x + "a"  # type: ignore[operator]


def test_promotion() -> None:
    i, h, f, d = wg.ones(2, dtype=wg.int64), wg.ones(2, dtype=wg.float16), wg.ones(2), wg.ones(2, dtype=F64)
    assert (i + 1).dtype == wg.int64
    assert (i + 1.0).dtype == wg.float32
    assert (i / i).dtype == wg.float32
    assert (h + 1.0).dtype == wg.float16
    assert (h + f).dtype == wg.float32
    assert (f + d).dtype == F64
    assert (f + wg.tensor(1.0, dtype=F64)).dtype == wg.float32
    assert (f + np.float64(1)).dtype == wg.float32
    assert (f + np.ones(2)).dtype == F64
    assert (wg.tensor(True) + 1).dtype == wg.int64


def test_methods_are_functions() -> None:
    assert_close(wg.exp(np.zeros(2)), np.ones(2))
    assert wg.add(1.0, wg.ones(2)).tolist() == [2.0, 2.0]
    assert wg.sum(wg.ones(2, 3), axis=0, keepdims=True).shape == (1, 3)
    assert wg.exp.__doc__.startswith("Returns the natural exponential")
    assert wg.maximum(wg.ones(2), 3).tolist() == [3.0, 3.0]
    assert wg.where(wg.tensor([True, False]), 1.0, 2.0).tolist() == [1.0, 2.0]
    assert wg.multiply(2.0, wg.ones(1)).item() == 2.0


def test_the_operand_of_a_function_is_called_input() -> None:
    x = wg.tensor([1.0, 2.0])
    assert wg.add(input=x, other=1).tolist() == [2.0, 3.0]
    assert wg.sum(input=x, dim=0).item() == 3.0
    out = wg.empty(2)
    assert wg.exp(input=wg.zeros(2), out=out) is out
    assert out.tolist() == [1.0, 1.0]


def test_in_place() -> None:
    x = wg.ones(3)
    alias = x
    view = x[1:]
    x += 1
    x.mul_(3).sub_(1, alpha=2)
    assert alias is x
    assert view.tolist() == [4.0, 4.0]
    view.zero_()
    assert x.tolist() == [4.0, 0.0, 0.0]
    x.fill_(2).exp_().log_()
    assert_close(x, [2.0, 2.0, 2.0])
    x.copy_([1, 2, 3])
    x.clamp_(max=2)
    assert x.tolist() == [1.0, 2.0, 2.0]
    i = wg.ones(2, dtype=wg.int64)
    with pytest.raises(TypeError, match="cannot be stored in a tensor of int64"):
        i += 0.5
    with pytest.raises(wg.ShapeError, match="does not fit"):
        x += wg.ones(2, 3)
    with pytest.raises(RuntimeError, match="share memory"):
        wg.ones(1).expand(3).add_(1)


SHAPES = {
    "x.reshape(4, -1)": "a.reshape(4, -1)",
    "x.permute(2, 0, 1)": "a.transpose(2, 0, 1)",
    "x.T": "a.T",
    "x.mT": "a.swapaxes(-1, -2)",
    "x.movedim(0, -1)": "np.moveaxis(a, 0, -1)",
    "x.movedim((0, 1), (2, 0))": "np.moveaxis(a, (0, 1), (2, 0))",
    "x.unsqueeze(1).squeeze(1)": "a",
    "x.flatten(1)": "a.reshape(2, 12)",
    "x.unflatten(2, (2, -1))": "a.reshape(2, 3, 2, 2)",
    "x.flip(0, 2)": "a[::-1, :, ::-1]",
    "x.roll(1, 2)": "np.roll(a, 1, 2)",
    "x.roll((1, -1), (0, 1))": "np.roll(a, (1, -1), (0, 1))",
    "x.roll(5)": "np.roll(a, 5)",
    "x.repeat(2, 1, 3)": "np.tile(a, (2, 1, 3))",
    "x.tile(2)": "np.tile(a, 2)",
    "x.expand(5, -1, -1, -1)": "np.broadcast_to(a, (5, 2, 3, 4))",
    "x.tril()": "np.tril(a)",
    "x.triu(1)": "np.triu(a, 1)",
    "x.diagonal(0, 1, 2)": "a.diagonal(0, 1, 2)",
    "x.diagonal(-1, 2, 0)": "a.diagonal(-1, 2, 0)",
    "x.diagonal(2, 1, 2)": "a.diagonal(2, 1, 2)",
    "wg.diag(x[0, 0], 1)": "np.diag(a[0, 0], 1)",
    "wg.diag(x[0, 0], -2)": "np.diag(a[0, 0], -2)",
    "wg.cat([x, x], axis=1)": "np.concatenate([a, a], 1)",
    "wg.stack([x, x], -1)": "np.stack([a, a], -1)",
    "x.split(3, 2)[1]": "a[:, :, 3:]",
    "x.chunk(2, 2)[0]": "a[:, :, :2]",
    "x.unbind(1)[2]": "a[:, 2]",
    "x.sum((0, 2), keepdims=True)": "a.sum((0, 2), keepdims=True)",
    "x.mean(axis=-1)": "a.mean(-1)",
    "x.var(1)": "a.var(1, ddof=1)",
    "x.std((0, 1), correction=0)": "a.std((0, 1))",
    "x.amax(1)": "a.max(1)",
    "x.max()": "a.max()",
    "x.min(2).values": "a.min(2)",
    "x.norm()": "np.sqrt((a * a).sum())",
    "x.norm(1, 2)": "np.abs(a).sum(2)",
    "x.norm(3, dim=(0, 1))": "(np.abs(a) ** 3).sum((0, 1)) ** (1 / 3)",
    "x.norm(float('inf'), 0)": "np.abs(a).max(0)",
    "x.cumsum(1)": "a.cumsum(1)",
    "x.prod(1)": "a.prod(1)",
    "x.diff()": "np.diff(a)",
    "x.diff(2, 1)": "np.diff(a, 2, 1)",
    "x.clamp(-0.5, 0.5)": "a.clip(-0.5, 0.5)",
    "x.logsumexp((0, 2))": "np.log(np.exp(a).sum((0, 2)))",
    "x @ x.mT": "a @ a.swapaxes(1, 2)",
    "wg.einsum('ijk,ljk->il', x, x)": "np.einsum('ijk,ljk->il', a, a)",
    "wg.einsum('...k,jk->...j', x, x[0])": "np.einsum('...k,jk->...j', a, a[0])",
    "wg.einsum('iji->j', x[:, :, :2])": "np.einsum('iji->j', a[:, :, :2])",
    "wg.einsum('ijk', x)": "np.einsum('ijk', a)",
    "wg.einsum('ab,bc,cd', x[0], x[0].T, x[0])": "a[0] @ a[0].T @ a[0]",
    "wg.tensordot(x, x, ([1, 2], [1, 2]))": "np.tensordot(a, a, ([1, 2], [1, 2]))",
    "wg.outer(x[0, 0], x[1, 1])": "np.outer(a[0, 0], a[1, 1])",
    "x.index_select(2, wg.tensor([3, 0]))": "a[:, :, [3, 0]]",
    "x.gather(2, wg.tensor([[[1]] * 3] * 2))": "a[:, :, 1:2]",
    "x.take_along_dim(x.argmax(1, keepdim=True), 1)": "np.take_along_axis(a, a.argmax(1)[:, None], 1)",
    "x.softmax(1)": "np.exp(a) / np.exp(a).sum(1, keepdims=True)",
    "x.log_softmax(0)": "a - np.log(np.exp(a).sum(0, keepdims=True))",
}


@pytest.mark.parametrize("ours", SHAPES)
def test_methods_against_numpy(ours: str) -> None:
    a = np.random.default_rng(3).standard_normal((2, 3, 4))
    scope = {"wg": wg, "np": np, "a": a, "x": wg.tensor(a)}
    assert_close(eval(ours, scope), eval(SHAPES[ours], scope))
    f = lambda x: eval(ours, {**scope, "x": x})
    gradcheck(f, wg.tensor(a))
    assert_close(wg.vmap(f)(wg.tensor(a[None])), eval(SHAPES[ours], scope)[None])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_clamp_with_bounds_out_of_order(dtype: str) -> None:
    x = wg.tensor([1, 4, 9], dtype=getattr(wg, dtype))
    low, high = wg.tensor(5, dtype=x.dtype), wg.tensor(3, dtype=x.dtype)
    for bounds in ((5, 3), (low, high), (5, high), (low, 3)):
        assert x.clamp(*bounds).tolist() == [3, 3, 3]


def test_clamp_with_bounds_that_are_no_numbers() -> None:
    nan = float("nan")
    x = wg.tensor([1.0, -wg.inf, nan], requires_grad=True)
    for bounds in (
        (nan, None),
        (None, nan),
        (nan, 1.0),
        (wg.tensor(nan), None),
        (nan, wg.tensor(1.0)),
        (wg.tensor([nan]), 2),
    ):
        assert all(v != v for v in x.clamp(*bounds).tolist())
    assert wg.ones(2).clamp(max=wg.tensor([0.5, nan])).tolist()[0] == 0.5
    y = wg.ones(2, requires_grad=True)
    y.clamp(min=nan).sum().backward()
    assert y.grad.tolist() == [0.0, 0.0]
    assert wg.tensor([1, 2]).clamp(max=wg.inf).tolist() == [1, 2]


def test_a_truth_value_in_the_first_place_is_unbiased():
    """PyTorch's signatures: `(unbiased)`, `(dim, unbiased, keepdim)`, and by name."""
    a = np.array([[1.0, 2.0, 4.0], [0.0, 5.0, 7.0]])
    x = wg.tensor(a.tolist(), dtype=wg.float64)
    for name in ("std", "var"):
        numpy = getattr(np, name)
        for unbiased in (False, True):
            ddof = int(unbiased)
            np.testing.assert_allclose(getattr(x, name)(unbiased).item(), numpy(a, ddof=ddof))
            np.testing.assert_allclose(getattr(wg, name)(x, unbiased).item(), numpy(a, ddof=ddof))
            np.testing.assert_allclose(getattr(x, name)(0, unbiased).tolist(), numpy(a, 0, ddof=ddof))
            kept = getattr(x, name)(1, unbiased, True)
            np.testing.assert_allclose(kept.tolist(), numpy(a, 1, ddof=ddof, keepdims=True))
            both = getattr(wg, f"{name}_mean")
            for got, expected in zip(both(x, unbiased), (numpy(a, ddof=ddof), a.mean())):
                np.testing.assert_allclose(got.item(), expected)
            for got, expected in zip(
                both(x, 1, unbiased, True), (numpy(a, 1, ddof=ddof, keepdims=True), a.mean(1, keepdims=True))
            ):
                np.testing.assert_allclose(got.tolist(), expected)
        np.testing.assert_allclose(getattr(x, name)(dim=0, correction=0.5).tolist(), numpy(a, 0, ddof=0.5))


def test_no_axes_are_not_all_axes_for_truth_values():
    a = np.array([[True, False], [True, True]])
    x = wg.tensor(a.tolist())
    for axes in ((), (0,), (0, 1)):
        assert np.array_equal(x.any(axes).tolist(), a.any(axes))
        assert np.array_equal(x.all(dim=axes).tolist(), a.all(axes))


@pytest.mark.parametrize(
    "name", ["sum", "amax", "softmax", "cumsum", "argmax", "max", "unsqueeze", "sort", "flip", "unbind"]
)
def test_a_truth_value_is_no_axis(name):
    with pytest.raises(TypeError, match="pass a bool by the name"):
        getattr(wg.ones(2, 2), name)(True)
