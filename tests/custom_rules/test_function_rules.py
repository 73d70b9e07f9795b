"""`autograd.Function`: rules that are missing, derived, or marked as not differentiable."""

import numpy as np
import pytest
import wengert as wg
from custom_rules.custom_functions import Cube, Gain, NewStyle, OwnVmap
from support import array, assert_near
from wengert.autograd import Function
from wengert.autograd.function import once_differentiable


def leaf(*values: float) -> wg.Tensor:
    return wg.tensor(list(values), dtype=wg.float64, requires_grad=True)


def test_the_custom_derivative_holds_in_every_mode() -> None:
    f = lambda x: Gain.apply(x, 5.0)
    x = leaf(1.0, 2.0).detach()
    assert wg.grad(lambda x: f(x).sum())(x).tolist() == [5.0, 5.0]
    assert wg.jvp(f, (x,), (wg.ones_like(x),))[1].tolist() == [5.0, 5.0]
    assert wg.equal(wg.jacfwd(f)(x), wg.jacrev(f)(x))
    assert wg.vmap(wg.grad(f))(x).tolist() == [5.0, 5.0]
    assert wg.grad(lambda x: wg.vmap(f)(x).sum())(x).tolist() == [5.0, 5.0]


def test_a_forward_alone_has_tangents_by_tracing() -> None:
    class Cubed(Function):
        @staticmethod
        def forward(ctx, x):
            return x**3

    x = leaf(2.0)
    assert wg.jvp(Cubed.apply, (x.detach(),), (x.detach(),))[1].tolist() == [24.0]
    with pytest.raises(NotImplementedError) as caught:
        Cubed.apply(x).sum().backward()
    assert str(caught.value) == (
        "Cubed has no backward and cannot be differentiated in reverse mode; define a static method "
        "backward(ctx, *gradients), one gradient per output"
    )


def test_once_differentiable() -> None:
    x = leaf(2.0)
    y = Cube.apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [12.0]
    (g,) = wg.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    assert g.tolist() == [12.0]
    with pytest.raises(RuntimeError) as caught:
        g.sum().backward()
    assert str(caught.value) == (
        "Cube.backward is marked as once_differentiable, and a derivative of it is asked for; write it with "
        "operations of wengert and take the mark off"
    )
    total = lambda x: Cube.apply(x).sum()
    assert wg.grad(total)(x.detach()).tolist() == [12.0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        wg.grad(lambda x: wg.grad(total)(x).sum())(x.detach())


def test_once_differentiable_saves_no_inputs_in_reserve() -> None:
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x.exp())
            return x.exp()

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(*range(10))
    y = Exp.apply(x * 1.0)
    assert y.grad_fn.saved_bytes == 80
    y.sum().backward()
    assert_near(array(x.grad), np.exp(np.arange(10.0)), 1e-12, "exp")


def test_a_jvp_that_cannot_be_derived_says_so() -> None:
    with pytest.raises(NotImplementedError) as caught:
        wg.jvp(Cube.apply, (leaf(2.0).detach(),), (leaf(1.0).detach(),))
    text = str(caught.value)
    assert text.startswith("Cube has no jvp, and it could not be derived from what there is (TypeError: ")
    assert text.endswith("); define a static method jvp(ctx, *tangents)")
    assert isinstance(caught.value.__cause__, TypeError)


def test_own_vmap_is_used() -> None:
    x = leaf(0.5, 1.0, 2.0).detach()
    for call in (wg.vmap(OwnVmap.apply), wg.vmap(wg.grad(OwnVmap.apply))):
        OwnVmap.calls = 0
        call(x)
        assert OwnVmap.calls == 1
    wg.vmap(OwnVmap.apply, in_dims=1)(wg.rand(4, 3))


def test_two_batching_rules_are_too_many() -> None:
    class Both(OwnVmap):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError) as caught:
        Both.apply(leaf(1.0))
    assert str(caught.value) == (
        "Both: generate_vmap_rule=True asks for a generated batching rule, and there is a static method "
        "vmap; keep one of them"
    )

    class Generated(NewStyle):
        generate_vmap_rule = True

    assert wg.vmap(Generated.apply)(wg.zeros(2)).tolist() == [0.5, 0.5]
