"""`linearize`: the function runs once, the map is the derivative in every direction and composes with
everything."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.nn.functional as F
from messages import assert_message
from support import array, assert_near

X = np.array([0.3, 1.2, -0.7, 2.0])
T = np.array([1.0, -2.0, 0.5, 3.0])


def x64(values: Any) -> wg.Tensor:
    return wg.tensor(values, dtype=wg.float64)


def curved(x: wg.Tensor) -> wg.Tensor:
    return (x.sin() * x.exp()).cumsum(0) / (1 + x * x)


def ops_of(call: Any, *args: Any) -> set[str]:
    with wg.FlopCounter() as counter:
        call(*args)
    return {row.op for row in counter.rows}


# ---- the function runs once ----------------------------------------------------------------------


def test_the_body_runs_once() -> None:
    calls = []

    def f(x: wg.Tensor) -> wg.Tensor:
        calls.append(1)
        return curved(x)

    value, push = wg.linearize(f, x64(X))
    for k in range(5):
        expected = wg.jvp(curved, (x64(X),), (x64(k * T),))
        assert_near(value, array(expected[0]), 0)
        assert_near(push(x64(k * T)), array(expected[1]), 1e-15)
    assert calls == [1]


def test_a_push_runs_linear_operations_only() -> None:
    a = x64(np.eye(3) + 0.1 * np.arange(9).reshape(3, 3))

    def f(x: wg.Tensor) -> wg.Tensor:
        return wg.linalg.solve(x.exp(), x).sum(0)

    assert "lu" in ops_of(f, a)
    value, push = wg.linearize(f, a)
    assert "lu" not in ops_of(push, a)
    assert_near(push(a), array(wg.jvp(f, (a,), (a,))[1]), 1e-14)
    assert wg.flops(push, a) < wg.flops(lambda: wg.jvp(f, (a,), (a,)))
    assert_near(value, array(f(a)), 0)


def test_what_no_output_needs_is_not_kept() -> None:
    x = wg.ones(1000)
    _, linear = wg._core._linearize(lambda x: [x[0] * x[0], x[0].sin().cos()], [x[0].exp()])
    both, _ = linear.operations, linear.nbytes
    linear.keep(1)
    assert 0 < linear.operations < both
    large = wg.ones(1000, 1000)

    def f(x: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
        return 2 * x, (x[0] * large).sum()

    _, linear = wg._core._linearize(lambda x: list(f(x[0])), [x])
    before = linear.nbytes
    linear.keep(1)
    assert before >= large.nbytes
    assert linear.nbytes < 1000


def test_random_draws_belong_to_the_value() -> None:
    wg.manual_seed(3)
    x = x64(np.arange(1.0, 2001.0))
    value, push = wg.linearize(lambda x: F.dropout(x * x, 0.5), x)
    kept = array(value) != 0
    assert 800 < kept.sum() < 1200
    for _ in range(3):
        assert_near(push(wg.ones_like(x)), np.where(kept, 4 * array(x), 0.0), 0)


# ---- trees, auxiliary data, results that do not move
# -----------------------------------------------------------


def test_trees_and_auxiliary_data() -> None:
    def f(p: dict[str, Any], x: wg.Tensor) -> tuple[dict[str, Any], dict[str, Any]]:
        y = p["w"] @ x + p["b"][0]
        return {"y": y, "n": [y.square().sum()]}, {"largest": y.argmax(), "name": "aux"}

    p = {"w": x64(np.arange(8.0).reshape(2, 4)), "b": (x64([1.0, -1.0]),)}
    value, push, aux = wg.linearize(f, p, x64(X), has_aux=True)
    t = ({"w": wg.ones_like(p["w"]), "b": (x64([0.5, 0.0]),)}, x64(T))
    expected = wg.jvp(f, (p, x64(X)), t, has_aux=True)
    moved = push(*t)
    for got, want in ((value, expected[0]), (moved, expected[1])):
        assert set(got) == {"y", "n"}
        assert_near(got["y"], array(want["y"]), 1e-14)
        assert_near(got["n"][0], array(want["n"][0]), 1e-14)
    assert aux["name"] == "aux"
    assert aux["largest"].item() == int(array(value["y"]).argmax())


def test_results_that_do_not_move() -> None:
    constant = x64([5.0])

    def f(x: wg.Tensor) -> tuple[wg.Tensor, ...]:
        return x, constant, x.argmax(), x.detach() * 2, x > 0

    value, push = wg.linearize(f, x64(X))
    moved = push(x64(T))
    assert_near(moved[0], T, 0)
    assert moved[1].tolist() == [0.0]
    assert moved[2].item() == 0
    assert not moved[3].any()
    assert not moved[4].any()
    assert value[2].item() == 3
    assert moved[2].dtype == wg.int64
    assert moved[4].dtype == wg.bool


def test_the_identity_and_no_arguments() -> None:
    x, t = x64(X), x64(T)
    value, push = wg.linearize(lambda x: x, x)
    assert_near(value, X, 0)
    assert_near(push(t), T, 0)
    value, push = wg.linearize(lambda: x64([2.0]))
    assert push().tolist() == [0.0]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex128"])
def test_other_dtypes(dtype: str) -> None:
    x, t = (wg.tensor(v).to(getattr(wg, dtype)) for v in (X, T))
    if dtype == "complex128":
        x = x * (1 + 2j)
    _, push = wg.linearize(lambda x: (x * x).exp() * x, x)
    expected = wg.jvp(lambda x: (x * x).exp() * x, (x,), (t,))[1]
    got = push(t)
    assert got.dtype == expected.dtype == x.dtype
    if dtype == "complex128":
        got, expected = wg.view_as_real(got), wg.view_as_real(expected)
    assert_near(got.double(), array(expected.double()), 0)


# ---- in place ------------------------------------------------------------------------------------


def test_writes_inside_the_function() -> None:
    def f(x: wg.Tensor) -> wg.Tensor:
        memory = wg.ones_like(x)
        y = x * memory
        memory.mul_(3.0)
        memory[1] = 7.0
        y = y + x.sin() * memory
        y[0] = y[1] * x[2]
        y.mul_(x)
        return y

    value, push = wg.linearize(f, x64(X))
    expected = wg.jvp(f, (x64(X),), (x64(T),))
    assert_near(value, array(expected[0]), 0)
    assert_near(push(x64(T)), array(expected[1]), 1e-15)
    assert_near(push(x64(-T)), -array(expected[1]), 1e-15)


def test_writes_after_the_function_ran() -> None:
    weight, x = x64(X), x64(T)
    _, push = wg.linearize(lambda x: x * weight, x)
    x.mul_(2.0)
    assert_near(push(wg.ones_like(x)), X, 0)
    weight.add_(1.0)
    with pytest.raises(RuntimeError) as caught:
        push(wg.ones_like(x))
    assert str(caught.value) == (
        "linearize: a tensor of shape (4,) that mul keeps for the linear map was modified in place after the "
        "function "
        "had run (version 1, expected 0); write x = x + ... instead of an in-place operation, or modify a "
        "clone()"
    )


# ---- in other transforms -------------------------------------------------------------------------


def test_pushes_in_other_transforms() -> None:
    x, t = x64(X), x64(T)
    jacobian = array(wg.jacrev(curved)(x))
    _, push = wg.linearize(curved, x)
    assert_near(wg.vmap(push)(wg.eye(4, dtype=wg.float64)), jacobian.T, 1e-14)
    assert_near(wg.jacrev(push)(t), jacobian, 1e-14)
    assert_near(wg.jacfwd(push)(t), jacobian, 1e-14)
    assert_near(wg.jvp(push, (t,), (x,))[1], jacobian @ X, 1e-13)
    assert_near(wg.grad(lambda t: push(t).square().sum())(t), 2 * jacobian.T @ (jacobian @ T), 1e-12)
    t.requires_grad_()
    push(t).sum().backward()
    assert_near(t.grad, jacobian.sum(0), 1e-13)
    _, again = wg.linearize(push, x)
    assert_near(again(t.detach()), jacobian @ T, 1e-13)


def along(x: wg.Tensor, t: wg.Tensor) -> wg.Tensor:
    return wg.linearize(curved, x)[1](t)


def test_linearize_in_other_transforms() -> None:
    x, t = x64(X), x64(T)

    def by_jvp(x: wg.Tensor, t: wg.Tensor) -> wg.Tensor:
        return wg.jvp(curved, (x,), (t,))[1]

    for argnums in (0, 1):
        assert_near(wg.jacrev(along, argnums)(x, t), array(wg.jacrev(by_jvp, argnums)(x, t)), 1e-12)
        assert_near(wg.jacfwd(along, argnums)(x, t), array(wg.jacfwd(by_jvp, argnums)(x, t)), 1e-12)
    assert_near(
        wg.hessian(lambda x: along(x, t).sum())(x), array(wg.hessian(lambda x: by_jvp(x, t).sum())(x)), 1e-11
    )
    many = wg.stack([x, 2 * x, t])
    assert_near(
        wg.vmap(along, in_dims=(0, None))(many, t), array(wg.vmap(by_jvp, in_dims=(0, None))(many, t)), 1e-14
    )
    twice = wg.linearize(lambda x: along(x, t), x)[1](t)
    assert_near(twice, array(wg.jvp(lambda x: by_jvp(x, t), (x,), (t,))[1]), 1e-13)
    x.requires_grad_()
    along(x, t).sum().backward()
    assert_near(x.grad, array(wg.grad(lambda x: by_jvp(x, t).sum())(x.detach())), 1e-12)


def test_casts_are_those_of_the_function() -> None:
    x, w = wg.tensor(np.float32(X)), wg.ones(4, 4)

    def f(x: wg.Tensor) -> wg.Tensor:
        with wg.autocast(dtype=wg.bfloat16):
            return w @ x

    _, push = wg.linearize(f, x)
    assert push(x).dtype == wg.bfloat16
    _, push = wg.linearize(lambda x: w @ x, x)
    with wg.autocast(dtype=wg.bfloat16):
        assert push(x).dtype == wg.float32


# ---- rules of the user's own
# -------------------------------------------------------------------------------------


def test_rules_of_the_users_own() -> None:
    runs = []

    @wg.custom_jvp
    def f(x):
        return x.sin()

    def rule(primals, tangents):
        runs.append(1)
        (x,), (t,) = primals, tangents
        return x.sin(), 10 * t * x.cos()

    f.defjvp(rule)
    _, push = wg.linearize(lambda x: f(x) * 2, x64(X))
    for _ in range(3):
        assert_near(push(x64(T)), 20 * T * np.cos(X), 1e-15)
    assert runs == [1]

    @wg.custom_vjp
    def g(x):
        return x.sin()

    g.defvjp(lambda x: (x.sin(), x), lambda x, ct: (10 * ct * x.cos(),))
    _, push = wg.linearize(lambda x: g(x) * 2, x64(X))
    assert_near(push(x64(T)), 20 * T * np.cos(X), 1e-15)
    assert_near(wg.jacrev(push)(x64(T)), np.diag(20 * np.cos(X)), 1e-15)


def test_a_tangent_that_a_rule_detaches() -> None:
    @wg.custom_jvp
    def f(x):
        return x * 1.0

    f.defjvp(lambda p, t: (p[0] * 1.0, t[0].detach() * 2 + t[0] * p[0]))
    _, push = wg.linearize(f, x64(X))
    assert_near(push(x64(T)), 2 * T + T * X, 1e-15)
    assert_near(wg.jacrev(push)(x64(T)), np.diag(X), 1e-15)


def test_backward_inside_and_recorded_primals() -> None:
    def f(x: wg.Tensor) -> wg.Tensor:
        y = (x * 2).requires_grad_()
        (y**3).sum().backward()
        return y.grad

    _, push = wg.linearize(f, x64(X))
    assert_near(push(x64(T)), 6 * 2 * X * 2 * T, 1e-13)


# ---- errors, and memory --------------------------------------------------------------------------


def test_errors() -> None:
    x = x64(X)
    assert_message(
        lambda: wg.linearize(lambda x: x, wg.arange(3)),
        TypeError,
        "linearize: only floating point inputs have derivatives, got wengert.int64 of shape (3,); convert it "
        "with .float(), or leave it out of argnums",
    )
    assert_message(
        lambda: wg.linearize(lambda x: x, x)[1](wg.ones(4)),
        TypeError,
        "linearize: a tangent is float32(4,), expected float64(4,) as its primal",
    )
    assert_message(
        lambda: wg.linearize(lambda x: x, x)[1](x, x),
        ValueError,
        "linearize: tangents of structure TreeDef((*, *)) given for primals of structure TreeDef((*,))",
    )
    assert_message(
        lambda: wg.linearize(lambda x: "text", x),
        TypeError,
        "linearize: the function's result is str, expected a tensor or a tree of tensors",
    )
    with pytest.raises(TypeError, match="depends on the batch element or tangent"):
        wg.linearize(lambda x: x if x.sum().item() > 0 else -x, x)
    seen = []

    @wg.custom_jvp
    def f(x):
        return x * 1.0

    f.defjvp(lambda p, t: (p[0] * 1.0, seen.append(t[0]) or t[0] * 1.0))
    wg.linearize(f, x)
    with pytest.raises(RuntimeError, match="was made inside a linearize that has ended"):
        seen[0] + 1
    assert "Linearized" in repr(seen[0])


def test_a_map_that_its_own_rule_holds_is_collected() -> None:
    class Marker:
        pass

    def make() -> weakref.ref:
        marker, x = Marker(), x64(X)
        box: dict[str, Any] = {"marker": marker}

        @wg.custom_vjp
        def f(x):
            return x.sin()

        f.defvjp(lambda x: (x.sin(), x), lambda x, ct: (box and ct * x.cos(),))
        box["push"] = wg.linearize(f, x)[1]
        return weakref.ref(marker)

    alive = make()
    gc.collect()
    assert alive() is None
