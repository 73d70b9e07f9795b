"""The Python surface, one test per promise: conversions, indexing, operators, the tape, transforms, printing."""

import copy
import pickle
import threading
import warnings

import numpy as np
import pytest
import wengert as wg
from wengert.testing import assert_close, gradcheck, gradgradcheck

F64 = wg.float64


def test_data_becomes_tensors_of_the_expected_dtype() -> None:
    assert wg.tensor([1.0, 2.0]).dtype == wg.float32
    assert wg.tensor([[1, 2], [3, 4]]).dtype == wg.int64
    assert wg.tensor([True, False]).dtype == wg.bool
    assert wg.tensor([1, 2.5]).dtype == wg.float32
    assert wg.tensor(np.ones(2)).dtype == wg.float64
    assert wg.tensor(np.float32(1.5)).dtype == wg.float32
    assert wg.tensor([]).shape == (0,)
    assert wg.tensor([[], []]).shape == (2, 0)
    assert wg.tensor(0.1, dtype=F64).item() == 0.1
    assert wg.tensor(2**60 + 1).item() == 2**60 + 1
    assert wg.tensor([wg.ones(2), wg.zeros(2)]).tolist() == [[1.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize("data", [[[1, 2], [3]], [[1], 2], [1, [2]], [[1, 2], 3]])
def test_ragged_lists_raise(data: list[object]) -> None:
    with pytest.raises(ValueError, match="nested lists of unequal"):
        wg.tensor(data)


def test_what_is_no_data_raises() -> None:
    with pytest.raises(TypeError, match="str cannot become a tensor"):
        wg.tensor("text")
    with pytest.raises(TypeError, match="arrays of dtype complex64 are not accepted"):
        wg.tensor(np.ones(2, dtype=np.complex64))
    with pytest.raises(TypeError, match="is not a dtype"):
        wg.zeros(2, dtype="float31")


@pytest.mark.parametrize("name", ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"])
def test_numpy_shares_memory_both_ways(name: str) -> None:
    a = np.arange(24).astype(name).reshape(2, 3, 4)
    for view in (a, a[:, ::-1, ::2], a.T, a[1], a[..., 1:1]):
        t = wg.from_numpy(view)
        assert t.shape == view.shape
        np.testing.assert_array_equal(t.numpy(), view)
        assert t.dtype == view.dtype
        if view.size:
            assert np.shares_memory(t.numpy(), view)
    t = wg.from_numpy(a)
    t[0, 0, 0] = 1
    assert a[0, 0, 0] == 1
    out = wg.tensor(a)
    out[0, 0, 0] = 0
    assert a[0, 0, 0] == 1


def test_bfloat16_goes_through_ml_dtypes() -> None:
    ml = pytest.importorskip("ml_dtypes")
    t = wg.tensor([1.0, 2.5], dtype=wg.bfloat16)
    assert t.numpy().dtype == ml.bfloat16
    assert wg.tensor(t.numpy()).dtype == wg.bfloat16
    assert pickle.loads(pickle.dumps(t)).tolist() == [1.0, 2.5]


def test_read_only_arrays_are_copied() -> None:
    a = np.broadcast_to(np.float32(1), (3,))
    t = wg.as_tensor(a)
    t += 1
    assert t.tolist() == [2.0, 2.0, 2.0]
    assert a.tolist() == [1.0, 1.0, 1.0]


def test_an_array_outlives_its_name() -> None:
    t = wg.from_numpy(np.arange(100000.0))
    np.ones(100000)
    assert t.sum().item() == 4999950000.0


def test_memory_view_and_dlpack() -> None:
    t = wg.arange(6.0).reshape(2, 3)
    assert memoryview(t).tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert memoryview(t.T).strides == (4, 12)
    a = np.from_dlpack(t)
    a[0, 0] = 7
    assert t[0, 0].item() == 7
    b = wg.from_dlpack(np.arange(4.0)[::2])
    assert b.tolist() == [0.0, 2.0]
    assert b.dtype == F64
    with pytest.raises(BufferError, match="requires a gradient"):
        np.from_dlpack(wg.ones(2, requires_grad=True))


def test_export_of_recorded_tensors_raises() -> None:
    x = wg.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="call detach"):
        x.numpy()
    with pytest.raises(RuntimeError, match="call detach"):
        np.asarray(x)
    assert x.numpy(force=True).tolist() == [1.0, 1.0]


def test_dtype_objects() -> None:
    assert wg.float32 is wg.ones(1).dtype
    assert wg.float32 == np.float32
    assert wg.float32 == np.dtype("float32")
    assert wg.float32 == "float32"
    assert wg.float32 != wg.float64
    assert wg.float is wg.float32
    assert wg.long is wg.int64
    assert {wg.float32: 1}[wg.float32] == 1
    assert pickle.loads(pickle.dumps(wg.int32)) is wg.int32
    assert repr(wg.bfloat16) == "wengert.bfloat16"
    assert wg.finfo(wg.float64).eps == np.finfo(np.float64).eps
    assert wg.finfo(wg.float32).max == float(np.finfo(np.float32).max)
    assert wg.iinfo(wg.int32).min == -(2**31)
    assert wg.device("gpu:1").index == 1
    assert wg.ones(1).device == "cpu"


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
    assert wg.exp.__doc__.startswith("Natural exponential")
    assert wg.maximum(wg.ones(2), 3).tolist() == [3.0, 3.0]
    assert wg.where(wg.tensor([True, False]), 1.0, 2.0).tolist() == [1.0, 2.0]
    assert wg.multiply(2.0, wg.ones(1)).item() == 2.0


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
    with pytest.raises(TypeError, match="cannot be stored in a int64 tensor"):
        i += 0.5
    with pytest.raises(wg.ShapeError, match="does not fit"):
        x += wg.ones(2, 3)
    with pytest.raises(RuntimeError, match="share memory"):
        wg.ones(1).expand(3).add_(1)


def test_in_place_and_the_tape() -> None:
    w = wg.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="no_grad"):
        w += 1
    with wg.no_grad():
        w += 1
    assert w.is_leaf
    y = w * 2
    y.mul_(w)
    y.exp_()
    y.sum().backward()
    assert_close(w.grad, 8 * np.exp(8.0) * np.ones(3), rtol=1e-5)
    z = w.exp()
    z.add_(1)
    with pytest.raises(RuntimeError, match="modified in place"):
        z.sum().backward()
    u = (w * 2)[0]
    with pytest.raises(RuntimeError, match="is a view"):
        u.add_(1)


def test_backward_and_grad() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = (x**3).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()
    assert x.grad.tolist() == [3.0, 12.0]
    (x * 2).sum().backward()
    assert x.grad.tolist() == [5.0, 14.0]
    x.grad = None
    (x * x).backward(gradient=wg.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 40.0]
    (g,) = wg.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = wg.autograd.grad(g.sum(), x)
    assert h.tolist() == [6.0, 12.0]
    other = wg.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="allow_unused=True"):
        wg.autograd.grad((x * x).sum(), other)
    assert wg.autograd.grad((x * x).sum(), other, allow_unused=True) == (None,)
    assert wg.autograd.grad((x * x).sum(), other, materialize_grads=True)[0].tolist() == [0.0]
    with pytest.raises(RuntimeError, match="has no graph"):
        wg.ones(1).backward()
    with pytest.raises(RuntimeError, match="reduce it first"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="only floating point"):
        wg.ones(1, dtype=wg.int64).requires_grad_()
    assert (x * 2).grad_fn.name() == "MulBackward"
    assert x.grad_fn is None


def test_grad_of_a_result_warns_unless_retained() -> None:
    x = wg.ones(2, requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="retain_grad"):
        assert y.grad is None
    y.retain_grad()
    (y * y).sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad.tolist() == [4.0, 4.0]


def test_hooks() -> None:
    x = wg.ones(2, requires_grad=True)
    seen = []
    handle = x.register_hook(lambda g: g * 10)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t is x))
    (x * 3).sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]
    handle.remove()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [33.0, 33.0]
    assert seen == [True, True]
    y = x * 2

    def bad(g: wg.Tensor) -> None:
        raise KeyError("from the hook")

    y.register_hook(bad)
    with pytest.raises(KeyError, match="from the hook"):
        y.sum().backward()


def test_recording_modes() -> None:
    x = wg.ones(1, requires_grad=True)
    with wg.no_grad():
        assert not (x * 2).requires_grad
        with wg.enable_grad():
            assert (x * 2).requires_grad
        assert wg.grad(lambda t: (t * t).sum())(x.detach()).tolist() == [2.0]
    assert (x * 2).requires_grad

    @wg.no_grad()
    def f() -> bool:
        return wg.is_grad_enabled()

    @wg.no_grad
    def g():
        yield wg.is_grad_enabled()
        yield wg.is_grad_enabled()

    assert f() is False
    for state in g():
        assert state is False
        assert wg.is_grad_enabled()
    with wg.set_grad_enabled(False):
        assert not wg.is_grad_enabled()
    with wg.inference_mode():
        assert not (x * 2).requires_grad
    assert wg.is_grad_enabled()


def test_modes_belong_to_threads() -> None:
    seen = []
    with wg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(wg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_autocast() -> None:
    w = wg.ones(2, 2, requires_grad=True)
    with wg.autocast(dtype=wg.bfloat16):
        y = w @ wg.ones(2, 2)
        assert y.dtype == wg.bfloat16
        with wg.autocast(enabled=False):
            assert (w @ w).dtype == wg.float32
        loss = y.exp().sum()
    assert loss.dtype == wg.float32
    loss.backward()
    assert w.grad.dtype == wg.float32


def test_transforms_nest() -> None:
    f = lambda x: (x.sin() * x).sum()
    x = wg.randn(4, dtype=F64)
    hessian = wg.hessian(f)(x)
    assert_close(hessian, wg.jacrev(wg.grad(f))(x))
    assert_close(hessian, wg.jacfwd(wg.grad(f))(x))
    assert_close(wg.jacfwd(wg.jacfwd(f))(x), hessian)
    assert_close(hessian, wg.diag(2 * x.cos() - x * x.sin()))
    v = wg.randn(4, dtype=F64)
    assert_close(wg.hvp(f, (x,), (v,))[1], hessian @ v)
    xs = wg.randn(3, 4, dtype=F64)
    assert_close(wg.vmap(wg.grad(f))(xs), xs.cos() * xs + xs.sin())
    assert_close(wg.vmap(wg.hessian(f))(xs)[1], wg.hessian(f)(xs[1]))
    assert_close(wg.jvp(wg.grad(f), (x,), (v,))[1], hessian @ v)


def test_transforms_take_trees() -> None:
    def loss(params: dict[str, wg.Tensor], x: wg.Tensor) -> tuple[wg.Tensor, dict[str, wg.Tensor]]:
        y = params["w"] @ x + params["b"]
        return (y * y).sum(), {"y": y}

    params = {"w": wg.randn(2, 3, dtype=F64), "b": wg.zeros(2, dtype=F64)}
    x = wg.randn(3, dtype=F64)
    (value, aux), g = wg.value_and_grad(loss, has_aux=True)(params, x)
    assert set(g) == {"w", "b"}
    assert_close(g["b"], 2 * aux["y"])
    assert not aux["y"].requires_grad
    both = wg.grad(loss, argnums=(0, 1), has_aux=True)(params, x)[0]
    assert_close(both[1], 2 * params["w"].T @ aux["y"])
    jac = wg.jacrev(lambda p, x: {"out": loss(p, x)[1]["y"]})(params, x)
    assert jac["out"]["w"].shape == (2, 2, 3)
    assert_close(jac, wg.jacfwd(lambda p, x: {"out": loss(p, x)[1]["y"]})(params, x))
    per_example = wg.vmap(wg.grad(lambda p, x: loss(p, x)[0]), in_axes=(None, 0))(
        params, wg.stack([x, 2 * x])
    )
    assert per_example["w"].shape == (2, 2, 3)
    _, pullback = wg.vjp(lambda p: loss(p, x)[1]["y"], params)
    assert_close(pullback(wg.ones(2, dtype=F64))[0]["b"], [1.0, 1.0])
    _, push = wg.linearize(lambda t: t * t, x)
    assert_close(push(x), 2 * x * x)
    assert value.ndim == 0


def test_auxiliary_data_belongs_to_the_level_below() -> None:
    inner = lambda x: (x**2, {"y": x**3, "text": "kept"})
    x = wg.tensor(2.0, dtype=F64)
    outer = lambda x: wg.grad(inner, has_aux=True)(x)[1]["y"]
    assert_close(wg.grad(outer)(x), 12.0)
    assert wg.grad(inner, has_aux=True)(x)[1]["text"] == "kept"
    assert_close(wg.grad(lambda x: wg.jacfwd(inner, has_aux=True)(x)[1]["y"])(x), 12.0)
    assert_close(wg.grad(lambda x: wg.jacrev(inner, has_aux=True)(x)[1]["y"])(x), 12.0)
    assert_close(wg.grad(lambda x: wg.vjp(inner, x, has_aux=True)[2]["y"])(x), 12.0)
    assert_close(wg.grad(lambda x: wg.jvp(inner, (x,), (x,), has_aux=True)[2]["y"])(x), 12.0)
    value, aux = wg.hessian(inner, has_aux=True)(x)
    assert_close((value, aux["y"]), (2.0, 8.0))


def test_vmap_axes() -> None:
    x, w = wg.randn(3, 4, 5), wg.randn(4)
    f = lambda a, b: a * b
    assert (
        wg.vmap(f, in_axes=(2, None), out_axes=1)(
            x.movedim(1, 0), w[:3].reshape(3)[:, None].expand(3, 1)[0]
        ).ndim
        == 3
    )
    assert_close(wg.vmap(lambda a: a.sum(), in_dims=1)(x), x.sum((0, 2)))
    assert wg.vmap(lambda a: a.sum(0), 2, out_dims=-1)(x).shape == (4, 5)
    assert wg.vmap(lambda a: wg.ones(2))(x).shape == (3, 2)
    assert_close(wg.vmap(lambda a: a.sum(), chunk_size=2)(x), x.sum((1, 2)))
    with pytest.raises(ValueError, match="batch sizes differ"):
        wg.vmap(f)(wg.ones(2), wg.ones(3))
    with pytest.raises(ValueError, match="in_axes has 1 entries"):
        wg.vmap(f, in_axes=(0,))(wg.ones(2), wg.ones(2))
    with pytest.raises(TypeError, match="vmap"):
        wg.vmap(lambda a: a.item())(x[0, 0])
    with pytest.raises(TypeError, match="vmap"):
        wg.vmap(lambda a: a if a.sum() > 0 else -a)(x)


def test_transform_errors() -> None:
    with pytest.raises(TypeError, match=r"shape \(2,\), expected a scalar"):
        wg.grad(lambda x: x)(wg.ones(2))
    with pytest.raises(TypeError, match="floating point"):
        wg.grad(lambda x: x.sum())(wg.ones(2, dtype=wg.int64))
    with pytest.raises(TypeError, match="expected a tensor"):
        wg.grad(lambda x: "text")(wg.ones(2))
    with pytest.raises(ValueError, match="argnums"):
        wg.grad(lambda x: x.sum(), argnums=1)(wg.ones(2))
    with pytest.raises(wg.ShapeError, match="tangent"):
        wg.jvp(lambda x: x, (wg.ones(2),), (wg.ones(3),))
    with pytest.raises(ZeroDivisionError):
        wg.grad(lambda x: x.sum() * (1 / 0))(wg.ones(2))
    kept = []
    wg.grad(lambda x: (kept.append(x), x.sum())[1])(wg.ones(2))
    with pytest.raises(RuntimeError, match="has ended"):
        kept[0] + 1


def test_backward_inside_transforms() -> None:
    def f(x: wg.Tensor) -> wg.Tensor:
        w = x.clone().requires_grad_()
        (w**3).sum().backward()
        return (w.grad * x).sum()

    x = wg.tensor([1.0, 2.0], dtype=F64)
    assert_close(wg.grad(f)(x), 9 * x**2)
    assert_close(wg.vmap(f)(x[:, None]), 3 * x**3)


def test_checkpoint() -> None:
    x = wg.randn(5, dtype=F64)
    f = lambda x: wg._core.checkpoint(lambda t: t.sin().exp().sin(), (x,), {})
    gradcheck(f, x)
    gradgradcheck(f, x)
    assert_close(wg.vmap(wg.grad(lambda t: f(t)))(x), wg.vmap(wg.grad(lambda t: t.sin().exp().sin()))(x))


def test_copies() -> None:
    x = wg.ones(2, requires_grad=True)
    x.grad = wg.ones(2)
    y = copy.deepcopy(x)
    assert y.requires_grad
    assert y.grad.tolist() == [1.0, 1.0]
    assert y.data_ptr() != x.data_ptr()
    z = pickle.loads(pickle.dumps(x))
    assert z.requires_grad
    assert z.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="leaf"):
        copy.deepcopy(x * 2)


def test_numbers_and_truth() -> None:
    assert float(wg.tensor(1.5)) == 1.5
    assert int(wg.tensor(7)) == 7
    assert [10, 20][wg.tensor(1)] == 20
    assert bool(wg.tensor([True]))
    assert len(wg.ones(3, 2)) == 3
    assert [row.tolist() for row in wg.ones(2, 1)] == [[1.0], [1.0]]
    assert f"{wg.tensor(1.23456):.2f}" == "1.23"
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(wg.ones(2))
    with pytest.raises(ValueError, match="one element"):
        wg.ones(2).item()
    with pytest.raises(TypeError, match="without axes"):
        len(wg.tensor(1.0))
    assert len({wg.ones(1), wg.ones(1)}) == 2


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


def test_printing() -> None:
    assert repr(wg.tensor([1.0, 2.5])) == "tensor([1.0, 2.5])"
    assert repr(wg.tensor([[1.0, 2.0], [3.0, 4.0]])) == "tensor([[1., 2.],\n        [3., 4.]])"
    assert repr(wg.tensor([1, -20])) == "tensor([  1, -20])"
    assert repr(wg.tensor([True, False])) == "tensor([ True, False])"
    assert repr(wg.tensor(1.5, dtype=F64)) == "tensor(1.5, dtype=float64)"
    assert repr(wg.ones(1, requires_grad=True)) == "tensor([1.], requires_grad=True)"
    assert repr(wg.ones(1, requires_grad=True).exp()) == "tensor([2.7183], grad_fn=<ExpBackward>)"
    assert repr(wg.tensor([1e-9, 1.0])) == "tensor([1.0000e-09, 1.0000e+00])"
    assert repr(wg.tensor([float("nan"), float("-inf")])) == "tensor([ nan, -inf])"
    assert repr(wg.zeros(0, 2)) == "tensor([], shape=(0, 2))"
    assert repr(wg.arange(2000)).startswith("tensor([   0,    1,    2, ..., 1997, 1998, 1999]")
    assert repr(wg.ones(50, 50)).count("\n") == 6
    shown = []
    wg.vmap(lambda x: (shown.append(repr(x)), x)[1])(wg.ones(3, 2))
    assert shown == ["Batched(shape=(2,), of a batch of 3)"]
    wg.jvp(lambda x: (shown.append(repr(x)), x)[1], (wg.ones(2),), (wg.ones(2),))
    assert shown[1] == "Dual(shape=(2,))"


def test_random_streams() -> None:
    wg.manual_seed(1)
    a = wg.randn(5)
    state = wg.get_rng_state()
    b = wg.rand(5)
    wg.manual_seed(1)
    assert_close(wg.randn(5), a)
    wg.set_rng_state(state)
    assert_close(wg.rand(5), b)
    assert sorted(wg.randperm(10).tolist()) == list(range(10))
    assert wg.randint(3, (100,)).max().item() == 2
    assert wg.randint(5, 7, (100,)).min().item() == 5
    assert abs(wg.normal(3.0, 0.1, (2000,)).mean().item() - 3) < 0.02
    assert wg.rand_like(wg.ones(2, dtype=F64)).dtype == F64


def test_the_lock_is_released() -> None:
    x = wg.randn(400, 400)
    done = []

    def work() -> None:
        for _ in range(3):
            done.append((x @ x).sum().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(done)) == 1


def test_pytrees() -> None:
    from collections import namedtuple

    Point = namedtuple("Point", "x y")
    tree = {"b": Point(1, (2, None)), "a": [3, {"k": 4}]}
    leaves, structure = wg.tree.tree_flatten(tree)
    assert leaves == [3, 4, 1, 2]
    assert wg.tree.tree_unflatten(structure, leaves) == tree
    assert wg.tree.tree_map(lambda a, b: a + b, tree, tree)["b"] == Point(2, (4, None))
    with pytest.raises(ValueError, match="structures differ"):
        wg.tree.tree_map(lambda a, b: a, [1], (1,))


def test_threads_and_memory() -> None:
    before = wg.get_num_threads()
    wg.set_num_threads(1)
    assert wg.get_num_threads() == 1
    wg.set_num_threads(before)
    live = wg.memory.live_bytes()
    x = wg.zeros(1000)
    assert wg.memory.live_bytes() - live == 4000
    del x
    assert wg.memory.live_bytes() == live


def test_saved_tensor_hooks() -> None:
    packed = []
    hooks = wg.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.shape) or t * 1, lambda t: t)
    x = wg.randn(3, dtype=F64)

    def f(x: wg.Tensor) -> wg.Tensor:
        with hooks:
            return (x.exp() * x).sum()

    assert_close(wg.grad(f)(x), x.exp() * (x + 1))
    assert packed == [(3,), (3,), (3,)]
    gradcheck(f, x)
    gradgradcheck(f, x)
    y = x.clone().requires_grad_()
    with (
        wg.autograd.graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t),
        pytest.raises(ZeroDivisionError),
    ):
        y.exp()
    with wg.autograd.graph.save_on_cpu():
        z = y.exp()
    z.sum().backward()
    assert_close(y.grad, x.exp())
