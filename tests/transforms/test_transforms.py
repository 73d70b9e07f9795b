"""Transforms on trees, at kinks, with masks, in threads, and when misused."""

import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import wengert as wg
from support import array, assert_near
from wengert.utils.checkpoint import checkpoint

RNG = np.random.default_rng(3)

# ---- arguments, trees, auxiliary outputs ---------------------------------------------------------


def test_argnums() -> None:
    f = lambda x, y, z: (x * y.sin() * z).sum()
    args = tuple(wg.tensor([v, v + 1], dtype=wg.float64) for v in (0.3, 0.5, 0.7))
    whole = wg.grad(f, argnums=(0, 1, 2))(*args)
    for i in range(3):
        assert_near(wg.grad(f, argnums=i)(*args), array(whole[i]), 0)
        assert_near(wg.grad(f, argnums=(i,))(*args)[0], array(whole[i]), 0)
    assert_near(wg.grad(f, argnums=-1)(*args), array(whole[2]), 0)
    assert_near(wg.grad(f)(*args), array(whole[0]), 0)
    with pytest.raises((ValueError, IndexError, TypeError)):
        wg.grad(f, argnums=3)(*args)


def test_trees_in_and_out() -> None:
    params = {"w": wg.tensor([[1.0, 2.0]]), "b": [wg.tensor([3.0]), (wg.tensor(2.0),)], "none": None}

    def loss(p: dict, x: wg.Tensor) -> wg.Tensor:
        return ((p["w"] * x + p["b"][0]) * p["b"][1][0]).sum()

    g = wg.grad(loss)(params, wg.tensor([5.0, 7.0]))
    assert g["w"].tolist() == [[10.0, 14.0]]
    assert g["b"][0].tolist() == [4.0]
    assert g["b"][1][0].item() == 1 * 5 + 2 * 7 + 6
    assert g["none"] is None
    assert isinstance(g["b"][1], tuple)
    out, pullback = wg.vjp(lambda p: {"twice": p["w"] * 2, "same": (p["w"],)}, {"w": params["w"]})
    (back,) = pullback({"twice": wg.ones(1, 2), "same": (wg.ones(1, 2),)})
    assert out["twice"].tolist() == [[2.0, 4.0]]
    assert back["w"].tolist() == [[3.0, 3.0]]


def test_has_aux() -> None:
    f = lambda x: ((x**2).sum(), {"x": x * 2, "n": 3})
    x = wg.tensor([1.0, 2.0])
    g, aux = wg.grad(f, has_aux=True)(x)
    assert g.tolist() == [2.0, 4.0]
    assert aux["x"].tolist() == [2.0, 4.0]
    assert aux["n"] == 3
    (value, aux), g = wg.value_and_grad(f, has_aux=True)(x)
    assert (value.item(), aux["n"], g.tolist()) == (5.0, 3, [2.0, 4.0])
    jac, aux = wg.jacrev(lambda x: (x**2, x.sum()), has_aux=True)(x)
    assert jac.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert aux.item() == 3.0
    _, pullback, aux = wg.vjp(f, x, has_aux=True)
    assert aux["n"] == 3
    assert pullback(wg.tensor(1.0))[0].tolist() == [2.0, 4.0]


def test_jacobians_of_trees_and_shapes() -> None:
    x = wg.tensor(RNG.normal(size=(2, 3)))
    f = lambda x: (x.sum(0), x.T @ x)
    for jac in (wg.jacfwd, wg.jacrev):
        a, b = jac(f)(x)
        assert a.shape == (3, 2, 3)
        assert b.shape == (3, 3, 2, 3)
    forward, reverse = wg.jacfwd(f)(x), wg.jacrev(f)(x)
    for a, b in zip(forward, reverse, strict=True):
        assert_near(a, array(b), 1e-12)
    both = wg.hessian(lambda x, y: (x * y.exp()).sum(), argnums=(0, 1))(wg.tensor([1.0]), wg.tensor([0.0]))
    assert [[array(h).item() for h in row] for row in both] == [[0.0, 1.0], [1.0, 1.0]]


def test_value_and_grad_of_a_module_like_closure() -> None:
    w = wg.tensor([2.0], requires_grad=True)
    value, g = wg.value_and_grad(lambda x: (w * x).sum())(wg.tensor([3.0]))
    assert (value.item(), g.item()) == (6.0, 2.0)
    # The closed-over leaf belongs to the outer tape, and the result still depends on it.
    value.backward()
    assert w.grad.item() == 3.0


def test_hessian_at_ties_and_kinks() -> None:
    hypot = lambda v: (v[0] ** 2 + v[1] ** 2).sqrt()
    for point in ([1.0, 1.0], [3.0, 4.0], [1.0, -1.0]):
        a, b = point
        r = math.hypot(a, b)
        expected = np.array([[b * b, -a * b], [-a * b, a * a]]) / r**3
        x = wg.tensor(point, dtype=wg.float64)
        for hessian in (
            wg.hessian,
            lambda f: wg.jacfwd(wg.jacfwd(f)),
            lambda f: wg.jacrev(wg.jacrev(f)),
            lambda f: wg.jacrev(wg.jacfwd(f)),
        ):
            assert_near(hessian(hypot)(x), expected, 1e-12)
    x = wg.tensor([2.0, 2.0], dtype=wg.float64)
    softmax = lambda v: v.logsumexp(0)
    assert_near(wg.hessian(softmax)(x), [[0.25, -0.25], [-0.25, 0.25]], 1e-12)
    assert_near(wg.hessian(lambda v: v.amax() ** 2)(x), [[0.5, 0.5], [0.5, 0.5]], 1e-12)
    assert_near(
        wg.hessian(lambda v: (v.relu() ** 2).sum())(wg.tensor([0.0, 1.0])), [[0.0, 0.0], [0.0, 2.0]], 1e-12
    )


# ---- masks and branches --------------------------------------------------------------------------


def test_masks_select_gradients() -> None:
    x = wg.tensor([-1.0, 0.5, 2.0], requires_grad=True)
    wg.where(x > 0, x * 3, x * 0.5).sum().backward()
    assert x.grad.tolist() == [0.5, 3.0, 3.0]
    (g,) = wg.autograd.grad((x[x > 0] ** 2).sum(), [x])
    assert g.tolist() == [0.0, 1.0, 4.0]
    (g,) = wg.autograd.grad(x.masked_fill(x < 0, 7.0).square().sum(), [x])
    assert g.tolist() == [0.0, 1.0, 4.0]


def test_unselected_branches_do_not_poison() -> None:
    x = wg.tensor([-1.0, 0.0, 4.0], dtype=wg.float64, requires_grad=True)
    (g,) = wg.autograd.grad(wg.where(x > 0, x.sqrt(), x).sum(), [x])
    assert g.tolist() == [1.0, 1.0, 0.25]
    (g,) = wg.autograd.grad(wg.where(x > 0, x.log(), x * 2).sum(), [x])
    assert g.tolist() == [2.0, 2.0, 0.25]


def test_python_control_flow_is_differentiated_as_it_ran() -> None:
    def f(x: wg.Tensor) -> wg.Tensor:
        total = x
        while total < 10:
            total = total * x if total > 3 else total + x
        return total

    x = wg.tensor(2.0)
    assert wg.grad(f)(x).item() == 24.0  # it ran (x + x) x x, whose slope is 6 x^2


def test_writes_inside_transforms() -> None:
    def f(x: wg.Tensor) -> wg.Tensor:
        y = x.clone()
        y *= 2
        y += x
        return (y * y).sum()

    x = wg.tensor([1.0, 2.0])
    assert wg.grad(f)(x).tolist() == [18.0, 36.0]
    assert wg.vmap(f)(x).tolist() == [9.0, 36.0]
    assert wg.jvp(f, (x,), (wg.ones(2),))[1].item() == 54.0


# ---- the eager tape inside transforms ------------------------------------------------------------


def test_backward_inside_vmap_grad_and_jvp() -> None:
    def inner(x: wg.Tensor) -> wg.Tensor:
        w = (x * 3).detach().requires_grad_()
        (w**2).sum().backward()
        return w.grad

    x = wg.tensor([1.0, 2.0])
    assert inner(x).tolist() == [6.0, 12.0]
    assert wg.vmap(inner)(x).tolist() == [6.0, 12.0]
    assert wg.grad(lambda x: (x * inner(x)).sum())(x).tolist() == [6.0, 12.0]
    assert wg.jvp(lambda x: x * inner(x), (x,), (wg.ones(2),))[1].tolist() == [6.0, 12.0]


def test_no_grad_does_not_stop_transforms_entered_inside() -> None:
    with wg.no_grad():
        assert wg.grad(lambda x: x**2)(wg.tensor(3.0)).item() == 6.0
        x = wg.tensor(3.0, requires_grad=True)
        assert not (x * 2).requires_grad
    assert wg.grad(lambda x: wg.no_grad()(lambda y: y**2)(x) * x)(wg.tensor(3.0)).item() == 9.0


def test_hooks_inside_a_transform_see_gradients() -> None:
    seen = []

    def f(x: wg.Tensor) -> wg.Tensor:
        w = x.detach().requires_grad_()
        w.register_hook(lambda g: seen.append(g.tolist()))
        (w * 5).sum().backward()
        return x.sum()

    wg.grad(f)(wg.tensor([1.0, 2.0]))
    assert seen == [[5.0, 5.0]]


def test_dropout_is_the_same_when_recomputed() -> None:
    x = wg.ones(64, requires_grad=True)
    f = lambda x: (wg.nn.functional.dropout(x, 0.5, training=True) * x).sum()
    wg.manual_seed(5)
    plain = wg.grad(f)(x.detach())
    wg.manual_seed(5)
    again = wg.grad(lambda x: checkpoint(f, x, use_reentrant=False))(x.detach())
    assert_near(again, array(plain), 0)


# ---- misuse --------------------------------------------------------------------------------------


def test_escaped_values_raise_and_everything_works_afterwards() -> None:
    kept = []

    def f(x: wg.Tensor) -> wg.Tensor:
        kept.append(x)
        return x.sum()

    for transform in (
        lambda: wg.vmap(f)(wg.ones(2, 2)),
        lambda: wg.jvp(f, (wg.ones(2),), (wg.ones(2),)),
    ):
        kept.clear()
        transform()
        with pytest.raises(RuntimeError, match="has ended"):
            kept[0] + 1
        assert (wg.ones(2) + 1).tolist() == [2.0, 2.0]


def test_exceptions_leave_no_transform_behind() -> None:
    class Stop(Exception):
        pass

    def f(x: wg.Tensor) -> wg.Tensor:
        raise Stop

    x = wg.ones(2)
    for transform in (
        lambda: wg.grad(f)(x),
        lambda: wg.vmap(f)(x),
        lambda: wg.jvp(f, (x,), (x,)),
        lambda: wg.vjp(f, x),
    ):
        with pytest.raises(Stop):
            transform()
        y = x.clone().requires_grad_()
        (y * 2).sum().backward()
        assert y.grad.tolist() == [2.0, 2.0]
    for manager in (wg.no_grad, lambda: wg.autocast("cpu")):
        with pytest.raises(Stop), manager():
            raise Stop
        assert wg.is_grad_enabled()
        assert (wg.ones(2, 2) @ wg.ones(2, 2)).dtype == wg.float32


def test_misuse_says_what_to_do() -> None:
    x = wg.ones(3)
    with pytest.raises((TypeError, RuntimeError), match=r"\(3,\).*jacrev|jacrev.*\(3,\)"):
        wg.grad(lambda x: x * 2)(x)
    with pytest.raises(TypeError, match="int64"):
        wg.grad(lambda x: x.sum())(wg.tensor([1, 2]))
    with pytest.raises((TypeError, ValueError), match=r"\(2,\)"):
        wg.jvp(lambda x: x, (x,), (wg.ones(2),))
    with pytest.raises((TypeError, RuntimeError), match="vmap"):
        wg.vmap(lambda x: x.item())(x)
    with pytest.raises((TypeError, RuntimeError), match="where"):
        wg.vmap(lambda x: x if x > 0 else -x)(x)
    with pytest.raises(TypeError):
        wg.grad(lambda x: "3")(x)


# ---- threads -------------------------------------------------------------------------------------


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Runs `work(0)` to `work(count - 1)` at the same time; raises what any of them raised."""
    barrier = threading.Barrier(count)

    def run(i: int) -> None:
        barrier.wait()
        work(i)

    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(run, i) for i in range(count)]:
            done.result()


def test_recording_modes_and_transforms_belong_to_their_thread() -> None:
    def work(i: int) -> None:
        for _ in range(50):
            if i % 2:
                with wg.no_grad():
                    assert not (wg.ones(2, requires_grad=True) * 2).requires_grad
            else:
                assert (wg.ones(2, requires_grad=True) * 2).requires_grad
                g = wg.vmap(wg.grad(lambda x: (x**3).sum()))(wg.full((2, 2), float(i)))
                assert g.tolist() == [[3.0 * i * i] * 2] * 2

    in_threads(4, work)


def test_threads_accumulate_into_a_shared_leaf() -> None:
    w = wg.ones(1000, dtype=wg.float64, requires_grad=True)

    def work(i: int) -> None:
        for _ in range(25):
            (w * float(i + 1)).sum().backward()

    in_threads(4, work)
    assert array(w.grad).tolist() == [25.0 * (1 + 2 + 3 + 4)] * 1000


def test_large_work_in_threads_gives_the_same_bits() -> None:
    x = wg.tensor(RNG.normal(size=(300, 300)))

    def value() -> bytes:
        return array(wg.grad(lambda x: (x @ x).tanh().sum())(x)).tobytes()

    expected, found = value(), {}
    in_threads(4, lambda i: found.__setitem__(i, value()))
    assert set(found.values()) == {expected}


def test_no_grad_holds_from_the_first_statement_of_a_process() -> None:
    code = "import wengert as wg\nwith wg.no_grad():\n    assert not (wg.ones(2, requires_grad=True) * 2).requires_grad"
    paths = os.pathsep.join(p for p in sys.path if p)
    subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths}, check=True, timeout=60
    )
