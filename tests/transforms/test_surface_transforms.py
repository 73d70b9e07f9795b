"""Transforms of functions: nesting, trees, auxiliary data, axes of batches, errors."""

import pytest
import wengert as wg
from wengert.testing import assert_close

F64 = wg.float64


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
