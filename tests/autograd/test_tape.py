"""What PyTorch's users know of the tape: options of `grad` and `backward`, attributes of tensors, `.data`."""

import warnings

import numpy as np
import pytest
import wengert as wg
from wengert import autograd
from wengert.nn import functional as F


def leaf(*values: float) -> wg.Tensor:
    return wg.tensor(list(values), requires_grad=True)


# ---- autograd.grad


def test_batched_cotangents_equal_a_loop() -> None:
    x = leaf(0.3, -0.7, 1.1)
    y, z = x.exp() * x, (x**2).sum()
    rows, scalars = wg.randn(5, 3), wg.randn(5)
    (got,) = autograd.grad([y, z], x, [rows, scalars], is_grads_batched=True, retain_graph=True)
    expected = [autograd.grad([y, z], x, [g, s], retain_graph=True)[0] for g, s in zip(rows, scalars)]
    np.testing.assert_allclose(got.numpy(), wg.stack(expected).numpy(), rtol=1e-6)
    assert x.grad is None


def test_batched_cotangents_with_graph_and_unused_inputs() -> None:
    x, unused = leaf(0.3, -0.7), leaf(1.0)
    y = x**3
    first, nothing = autograd.grad(
        y, [x, unused], wg.eye(2), create_graph=True, is_grads_batched=True, allow_unused=True
    )
    assert nothing is None
    np.testing.assert_allclose(first.detach().numpy(), np.diag(3 * x.detach().numpy() ** 2), rtol=1e-6)
    (second,) = autograd.grad(first.sum(), x)
    np.testing.assert_allclose(second.numpy(), 6 * x.detach().numpy(), rtol=1e-6)


def test_batched_cotangents_of_unequal_batches() -> None:
    x = leaf(0.3, -0.7)
    with pytest.raises(ValueError, match="batch sizes differ"):
        autograd.grad([x * 1, x * 2], x, [wg.ones(3, 2), wg.ones(4, 2)], is_grads_batched=True)


def test_materialized_gradients() -> None:
    x, unused = leaf(1.0), leaf(1.0, 2.0)
    assert autograd.grad(x * 2, [x, unused], materialize_grads=True)[1].tolist() == [0.0, 0.0]


def test_arguments_are_in_pytorchs_order() -> None:
    x, unused = leaf(1.0), leaf(2.0)
    y = x * 2
    assert autograd.grad(y, [x, unused], wg.ones(1), True, False, True, True)[1] is None
    assert autograd.grad(y, [x], wg.ones(1), False)[0].item() == 2.0


# ---- backward


def test_backward_of_several_tensors_is_one_walk() -> None:
    x = leaf(2.0)
    h = x * 3
    calls: list[float] = []
    h.register_hook(lambda g: calls.append(g.item()))
    autograd.backward([h * 2, h.exp() * 0], [wg.tensor([1.0]), wg.tensor([1.0])])
    assert x.grad.item() == 6.0
    assert calls == [2.0]


def test_backward_into_some_leaves_and_results() -> None:
    x, w = leaf(2.0), leaf(5.0)
    h = x * w
    autograd.backward(h**2, inputs=[w, h])
    assert w.grad.item() == 2 * 10 * 2
    assert h.grad.item() == 20.0
    assert h.retains_grad
    assert x.grad is None


def test_retain_graph_and_create_graph() -> None:
    x = leaf(2.0)
    y = (x**3).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    assert x.grad.item() == 24.0
    x.grad = None
    y.backward(create_graph=True)
    assert x.grad.requires_grad
    (second,) = autograd.grad(x.grad.sum(), x)
    assert second.item() == 12.0
    x.grad = None
    y.backward()
    with pytest.raises(RuntimeError, match="already used and freed"):
        y.backward()


def test_create_graph_records_although_recording_is_off() -> None:
    x = leaf(2.0)
    y = (x**3).sum()
    with wg.no_grad():
        (g,) = autograd.grad(y, x, create_graph=True)
    assert g.requires_grad


# ---- attributes


def test_kept_gradients_add_up_and_are_their_own_memory() -> None:
    x = leaf(1.0)
    y = x * 2
    z = y + 0
    y.retain_grad()
    z.retain_grad()
    z.sum().backward(retain_graph=True)
    z.sum().backward()
    assert y.grad.item() == z.grad.item() == 2.0
    z.grad.zero_()
    assert y.grad.item() == 2.0
    y.grad = wg.tensor([7.0])
    assert y.grad.item() == 7.0
    y.grad = None
    assert y.grad is None


def test_output_nr_and_next_functions() -> None:
    x = leaf(3.0, 1.0, 2.0)
    values, indices = x.sort()
    a, b = x.split([1, 2])
    assert (x.output_nr, a.output_nr) == (0, 0)
    assert not indices.requires_grad
    assert x.is_leaf
    assert x.grad_fn is None
    (node, place), *_ = (values + b.sum()).grad_fn.next_functions
    assert node == values.grad_fn
    assert place == values.output_nr


def test_a_result_without_kept_gradient_warns_once_per_place() -> None:
    y = leaf(1.0) * 2
    text = " ".join(
        [
            "the .grad of a tensor that is the result of an operation is not kept;",
            "call retain_grad() on it before backward()",
        ]
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            assert y.grad is None
    assert [(str(w.message), w.category, w.filename) for w in caught] == [(text, UserWarning, __file__)]


def test_mse_of_shapes_that_only_broadcast_warns() -> None:
    with pytest.warns(UserWarning, match="broadcasting") as caught:
        F.mse_loss(wg.ones(3, 1), wg.ones(3))
    assert [str(w.message) for w in caught] == [
        "mse_loss: input of shape (3, 1) and target of shape (3,) only match by broadcasting, which is "
        "rarely meant; reshape one of them"
    ]


def test_detach_in_place() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    assert y.detach_() is y
    assert not y.requires_grad
    assert y.is_leaf
    assert wg.ones(2).detach_().is_leaf


# ---- .data


def test_data_shares_memory_but_not_the_version() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    before = y._version
    y.data.mul_(0)
    assert y.tolist() == [0.0, 0.0]
    assert y._version == before
    y.sum().backward()
    # Nothing noticed; that is what .data is for, and detach() is not.
    assert x.grad.tolist() == [0.0, 0.0]
    z = x.exp()
    z.detach().mul_(0)
    with pytest.raises(RuntimeError, match="was modified in place"):
        z.sum().backward()


def test_data_of_data_and_of_views() -> None:
    x = wg.arange(4.0).requires_grad_()
    part = x.data.data[1:3]
    part += 10
    assert x.tolist() == [0.0, 11.0, 12.0, 3.0]
    assert x.data.data_ptr() == x.data_ptr()
    x.data[0] = 5.0
    assert x.tolist()[0] == 5.0
    assert not x.data.requires_grad


def test_data_of_a_dead_tensor_lives_on() -> None:
    data = wg.ones(1000).data
    other = wg.zeros(1000)
    assert data.sum().item() == 1000.0
    assert (data + other).sum().item() == 1000.0


def test_assigning_data_keeps_the_leaf() -> None:
    x = leaf(1.0, 2.0)
    hook_calls: list[int] = []
    x.register_hook(lambda g: hook_calls.append(1))
    new = wg.tensor([5.0, 6.0])
    x.data = new
    assert x.requires_grad
    assert x.is_leaf
    new.zero_()
    assert x.tolist() == [0.0, 0.0]
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert hook_calls == [1]
    x.data = x.data
    assert x.grad.tolist() == [2.0, 2.0]


# ---- two tapes: leaves made inside of a transform ------------------------------------------------


def penalty(made_inside: bool, materialize: bool = False):
    """The sum of a gradient with respect to the argument, of a function with a leaf."""
    outside = wg.tensor([3.0, -1.0], dtype=wg.float64, requires_grad=True)

    def f(x):
        leaf = wg.tensor([3.0, -1.0], dtype=wg.float64, requires_grad=True) if made_inside else outside
        y = (x**3 * leaf).sum()
        (g,) = autograd.grad(y, x, create_graph=True, materialize_grads=materialize)
        return g.sin().sum()

    return f


@pytest.mark.parametrize("materialize", [False, True])
def test_gradients_past_a_leaf_made_inside(materialize: bool) -> None:
    x = wg.tensor([0.7, 1.1], dtype=wg.float64)
    for transform in (wg.grad, wg.jacrev, wg.hessian, lambda f: wg.grad(lambda x: wg.grad(f)(x).sum())):
        inside, outside = (transform(penalty(made, materialize))(x) for made in (True, False))
        np.testing.assert_allclose(inside.detach().numpy(), outside.detach().numpy(), atol=1e-12)
    # d/dx sum(sin(3 x^2 w)) = cos(3 x^2 w) 6 x w.
    w = np.array([3.0, -1.0])
    want = np.cos(3 * x.numpy() ** 2 * w) * 6 * x.numpy() * w
    np.testing.assert_allclose(wg.grad(penalty(True, materialize))(x).numpy(), want, atol=1e-12)
    _, pull = wg.vjp(penalty(True, materialize), x)
    np.testing.assert_allclose(pull(wg.tensor(2.0))[0].numpy(), 2 * want, atol=1e-12)


def test_gradients_on_both_tapes_at_once() -> None:
    def f(x):
        leaf = wg.tensor(5.0, requires_grad=True)
        unused = wg.tensor(1.0, requires_grad=True)
        y = x * x * leaf
        gx, gl, none = autograd.grad(y, [x, leaf, unused], create_graph=True, allow_unused=True)
        assert none is None
        return gx + 10 * gl

    # 2 x w + 10 x^2.
    assert wg.value_and_grad(f)(wg.tensor(3.0)) == (wg.tensor(30.0 + 90.0), wg.tensor(10.0 + 60.0))


def test_a_layer_made_inside() -> None:
    def f(x):
        layer = wg.nn.Linear(2, 1, bias=False)
        with wg.no_grad():
            layer.weight.copy_(wg.tensor([[2.0, 3.0]]))
        (g,) = autograd.grad(layer(x * x).sum(), x, create_graph=True)
        return g.sum()

    assert wg.grad(f)(wg.tensor([1.0, -2.0])).tolist() == [4.0, 6.0]


def test_what_does_not_depend_still_says_so() -> None:
    def f(x):
        leaf = wg.tensor(5.0, requires_grad=True)
        return autograd.grad(leaf * 2, x)[0]

    with pytest.raises(RuntimeError, match=r"grad: no output depends on input 0 of shape \(\)"):
        wg.grad(f)(wg.tensor(1.0))


def test_backward_into_named_inputs_of_both_tapes() -> None:
    def f(x):
        leaf = wg.tensor(5.0, requires_grad=True)
        (x * x * leaf).backward(inputs=[x, leaf], retain_graph=True)
        return x.grad.detach() + leaf.grad.detach()

    assert f is not None
    assert wg.vjp(f, wg.tensor(3.0))[0].item() == 30.0 + 9.0


# ---- leaves that are given other data ------------------------------------------------------------


def test_a_gradient_finds_a_leaf_of_another_dtype() -> None:
    layer = wg.nn.Linear(2, 1)
    y = layer(wg.tensor([[1.0, -2.0]])).sum()
    layer.double()
    y.backward()
    assert layer.weight.grad.dtype == wg.float64
    assert layer.weight.grad.tolist() == [[1.0, -2.0]]
    layer(wg.tensor([[1.0, -2.0]], dtype=wg.float64)).sum().backward()
    assert layer.weight.grad.tolist() == [[2.0, -4.0]]
    # Twice over, and back.
    y = layer(wg.tensor([[3.0, 0.0]], dtype=wg.float64)).sum()
    layer.half().float()
    layer.zero_grad()
    y.backward()
    assert layer.weight.grad.dtype == wg.float32
    assert layer.weight.grad.tolist() == [[3.0, 0.0]]


def test_a_leaf_of_another_shape_has_no_place_for_a_gradient() -> None:
    x = wg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (x * x).sum()
    x.data = wg.ones(5)
    with pytest.raises(RuntimeError) as caught:
        y.backward()
    assert str(caught.value) == (
        "backward: a leaf of shape (3,) was given data of shape (5,) after it was used, so its gradient has "
        "no place; assign .data before the forward, or data of the same shape"
    )
    assert x.grad is None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0] * 5


def test_the_gradient_of_a_leaf_that_is_gone_is_nobodys() -> None:
    x = wg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (x * x).sum()
    x.data = wg.ones(3, dtype=wg.float64)
    del x
    y.backward()
