"""Hooks of tensors and tape entries: order, replacement, removal, what they are given, exceptions."""

import pytest
import wengert as wg
from wengert.autograd import graph
from wengert.autograd.graph import register_multi_grad_hook


def leaf(*values: float) -> wg.Tensor:
    return wg.tensor(list(values), requires_grad=True)


def test_hooks_of_a_leaf_run_in_order_and_see_each_others_result() -> None:
    x = leaf(1.0, 2.0)
    seen: list[list[float]] = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    x.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0], [30.0, 30.0]]
    assert x.grad.tolist() == [30.0, 30.0]


def test_hooks_of_a_result_change_what_flows_on() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: g + 1)
    y.retain_grad()
    y.register_hook(lambda g: g * 100)
    (y * 3).sum().backward()
    # The kept gradient is the one after all hooks, whenever retain_grad was called.
    assert y.grad.tolist() == [400.0, 400.0]
    assert x.grad.tolist() == [800.0, 800.0]


def test_hooks_see_the_sum_over_all_uses_once() -> None:
    x = leaf(1.0)
    y = x * 2
    seen: list[float] = []
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 3 + y * 4).sum().backward()
    assert seen == [7.0]


def test_removed_hooks_do_not_run() -> None:
    x = leaf(1.0)
    first = x.register_hook(lambda g: g * 10)
    second = x.register_hook(lambda g: g + 1)
    with x.register_hook(lambda g: g * 0):
        pass
    first.remove()
    first.remove()
    (x * 3).backward(wg.ones(1))
    assert x.grad.tolist() == [4.0]
    second.remove()
    x.grad = None
    (x * 3).backward(wg.ones(1))
    assert x.grad.tolist() == [3.0]


def test_a_hook_may_remove_itself_and_add_others() -> None:
    x = leaf(1.0)
    calls: list[str] = []

    def once(g: wg.Tensor) -> None:
        calls.append("once")
        handle.remove()
        x.register_hook(lambda g: calls.append("later"))

    handle = x.register_hook(once)
    (x * 1).backward(wg.ones(1))
    (x * 1).backward(wg.ones(1))
    assert calls == ["once", "later"]


def test_a_handle_outlives_its_tensor() -> None:
    handle = leaf(1.0).register_hook(print)
    handle.remove()


@pytest.mark.parametrize("change", [lambda g: g[:1], lambda g: g.double()], ids=["shape", "dtype"])
def test_a_replacement_must_fit(change) -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(change)
    with pytest.raises(RuntimeError, match="a gradient hook returned a gradient of"):
        y.sum().backward()
    assert x.grad is None


def test_a_hook_without_create_graph_records_nothing() -> None:
    x, w = leaf(1.0), leaf(5.0)
    modes: list[bool] = []

    def scale(g: wg.Tensor) -> wg.Tensor:
        modes.append(wg.is_grad_enabled())
        return g * w

    x.register_hook(scale)
    (x * 2).backward(wg.ones(1))
    assert x.grad.tolist() == [10.0]
    assert not x.grad.requires_grad
    assert modes == [False]
    assert wg.is_grad_enabled()


def test_a_hook_with_create_graph_is_differentiated() -> None:
    x, w = leaf(3.0), leaf(5.0)
    x.register_hook(lambda g: g * w)
    (g,) = wg.autograd.grad((x**2).sum(), x, create_graph=True)
    assert g.tolist() == [30.0]
    assert [h.tolist() for h in wg.autograd.grad(g.sum(), [x, w])] == [[10.0 * 5.0], [6.0]]


def test_autograd_grad_sees_tensor_hooks() -> None:
    x = leaf(1.0)
    x.register_hook(lambda g: g * 10)
    y = x * 2
    y.register_hook(lambda g: g + 1)
    assert wg.autograd.grad((y * 3).sum(), [x, y])[0].tolist() == [80.0]
    assert wg.autograd.grad((x * 2 * 3).sum(), x)[0].tolist() == [60.0]


def test_hooks_off_the_way_to_the_inputs_do_not_run() -> None:
    x, z = leaf(1.0), leaf(2.0)
    z.register_hook(lambda g: pytest.fail("not on the way"))
    (x * z).sum().backward(inputs=[x])
    assert x.grad.tolist() == [2.0]
    assert z.grad is None


def test_post_accumulate_hooks_see_the_sum_and_may_step() -> None:
    x = leaf(1.0)
    seen: list[float] = []

    def step(p: wg.Tensor) -> None:
        seen.append(p.grad.item())
        p.sub_(p.grad)
        p.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    assert seen == [2.0]
    assert x.tolist() == [-1.0]
    assert x.grad is None
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_post_accumulate_hooks_do_not_run_for_autograd_grad() -> None:
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda p: pytest.fail("nothing was accumulated"))
    assert wg.autograd.grad((x * 2).sum(), x)[0].tolist() == [2.0]
    assert x.grad is None


def test_node_hooks_see_and_replace_gradients_of_inputs() -> None:
    x, c = leaf(1.0, 2.0), wg.tensor([3.0, 4.0])
    y = x * c
    seen = []

    def hook(grad_inputs, grad_outputs):
        seen.append((grad_inputs[0].tolist(), grad_inputs[1], grad_outputs[0].tolist()))
        return (grad_inputs[0] * 10, None)

    handle = y.grad_fn.register_hook(hook)
    y.sum().backward(retain_graph=True)
    assert seen == [([3.0, 4.0], None, [1.0, 1.0])]
    assert x.grad.tolist() == [30.0, 40.0]
    handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [33.0, 44.0]


def test_node_hooks_see_gradients_of_the_inputs_shape() -> None:
    x = leaf(1.0)
    y = x + wg.ones(3)
    shapes = []
    y.grad_fn.register_hook(
        lambda grad_inputs, _: shapes.append([g if g is None else g.shape for g in grad_inputs])
    )
    y.sum().backward()
    assert shapes == [[(1,), None]]


def test_node_prehooks_replace_gradients_of_outputs() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    order = []
    y.register_hook(lambda g: order.append("tensor"))
    y.grad_fn.register_prehook(lambda gs: (order.append("pre"), (gs[0] * 5,))[1])
    y.grad_fn.register_hook(lambda gi, go: order.append(("post", go[0].tolist())))
    y.sum().backward()
    assert order == ["tensor", "pre", ("post", [5.0, 5.0])]
    assert x.grad.tolist() == [10.0, 10.0]


def test_node_hooks_of_the_entry_of_a_leaf() -> None:
    x = leaf(1.0)
    y = x * 2
    entry = y.grad_fn.next_functions[0][0]
    seen = []
    entry.register_prehook(lambda gs: (gs[0] * 3,))
    entry.register_hook(lambda gi, go: seen.append((gi, go[0].tolist())))
    y.sum().backward()
    assert x.grad.tolist() == [6.0]
    assert seen == [((), [6.0])]


def test_node_hooks_that_return_too_much_raise() -> None:
    y = leaf(1.0) * 2
    y.grad_fn.register_prehook(lambda gs: gs + gs)
    with pytest.raises(RuntimeError, match="returned 2 gradients, expected 1"):
        y.sum().backward()


def test_what_is_no_function_is_no_hook() -> None:
    with pytest.raises(TypeError, match="a hook is a function of the gradient, got int"):
        leaf(1.0).register_hook(3)
    x = leaf(1.0)
    x.register_hook(lambda g: 1.0)
    with pytest.raises(RuntimeError, match="a gradient hook returned float"):
        x.sum().backward()


def raising(error: BaseException):
    def hook(*_):
        raise error

    return hook


PLACES = {
    "tensor": lambda y, f: y.register_hook(f),
    "leaf": lambda y, f: y.grad_fn.next_functions[0][0].register_hook(f),
    "before": lambda y, f: y.grad_fn.register_prehook(f),
    "after": lambda y, f: y.grad_fn.register_hook(f),
    "multi": lambda y, f: register_multi_grad_hook([y], f),
    "any": lambda y, f: register_multi_grad_hook([y], f, mode="any"),
}


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt("mine"), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("place", PLACES)
def test_exceptions_pass_unchanged_and_leave_nothing_behind(place: str, error: BaseException) -> None:
    x = leaf(1.0)
    y = x * 2
    PLACES[place](y, raising(error))
    with pytest.raises(type(error)) as caught:
        y.sum().backward()
    assert caught.value is error
    assert wg.is_grad_enabled()
    z = leaf(1.0)
    (z * 2).sum().backward()
    assert z.grad.tolist() == [2.0]


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt("mine")], ids=repr)
@pytest.mark.parametrize("which", ["pack", "unpack"])
def test_exceptions_in_saved_tensor_hooks(which: str, error: BaseException) -> None:
    x = leaf(1.0)
    same = lambda t: t
    hooks = graph.saved_tensors_hooks(
        raising(error) if which == "pack" else same, raising(error) if which == "unpack" else same
    )

    @hooks
    def f() -> wg.Tensor:
        return x.exp()

    with pytest.raises(type(error)) as caught:
        f().sum().backward()
    assert caught.value is error
    x.exp().sum().backward()
    assert x.grad is not None


# ---- several tensors


def test_multi_grad_hook_gets_all_gradients_at_once() -> None:
    a, b, unused = leaf(1.0), leaf(2.0), leaf(3.0)
    calls: list[list] = []
    handle = register_multi_grad_hook([a, unused, b], lambda gs: calls.append([g and g.item() for g in gs]))
    for _ in range(2):
        (a * 3 + b * 4).sum().backward()
    assert calls == [[3.0, None, 4.0]] * 2
    handle.remove()
    (a * 3).sum().backward()
    assert len(calls) == 2


def test_multi_grad_hook_of_some_inputs() -> None:
    a, b = leaf(1.0), leaf(2.0)
    calls: list[list] = []
    register_multi_grad_hook([a, b], lambda gs: calls.append([g and g.item() for g in gs]))
    (a * b).sum().backward(inputs=[b])
    assert calls == [[None, 1.0]]


def test_multi_grad_hook_runs_although_a_gradient_turns_out_to_be_zero() -> None:
    a, b = leaf(1.0), leaf(2.0)
    calls: list[list] = []
    register_multi_grad_hook([a, b], lambda gs: calls.append([g and g.item() for g in gs]))
    (a * 3 + b.detach() + (b > 0).float()).sum().backward()
    assert calls == [[3.0, None]]


def test_multi_grad_hook_with_any_gets_the_first() -> None:
    a, b = leaf(1.0), leaf(2.0)
    y = a * 2
    calls: list[float] = []
    register_multi_grad_hook((y, a, b), lambda g: calls.append(g.item()), mode="any")
    (y * 3 + b * 4).sum().backward()
    (b * 5).sum().backward()
    # `b * 4` is the youngest entry but one, and nothing else leads to `b`: it is complete before `y`.
    assert calls == [4.0, 5.0]


def test_multi_grad_hook_after_a_backward_that_failed() -> None:
    a, b = leaf(1.0), leaf(2.0)
    calls: list[list] = []
    register_multi_grad_hook([a, b], lambda gs: calls.append([g and g.item() for g in gs]))
    bad = a * 1
    bad.register_hook(raising(KeyError("first")))
    later = bad * 1 + b
    with pytest.raises(KeyError):
        (later * b).sum().backward()
    (a * b).sum().backward()
    assert calls == [[2.0, 1.0]]


def test_multi_grad_hook_checks_its_arguments() -> None:
    with pytest.raises(ValueError, match="mode must be 'all' or 'any', got 'some'"):
        register_multi_grad_hook([leaf(1.0)], print, mode="some")
    with pytest.raises(RuntimeError, match="does not require a gradient"):
        register_multi_grad_hook([wg.ones(1)], print)


# ---- saved tensors


def test_save_on_cpu_keeps_a_copy() -> None:
    x = leaf(1.0, 2.0)
    with graph.save_on_cpu(pin_memory=True):
        y = x.exp()
        z = y * y
    expected = y.detach() ** 2 * 2
    with wg.no_grad():
        y.detach().zero_()
    z.sum().backward()
    assert x.grad.allclose(expected)
    assert graph.get_gradient_edge(z).node.is_freed


def test_saved_values_of_hooks_are_counted() -> None:
    x = wg.ones(100, requires_grad=True)
    with graph.save_on_cpu():
        y = x.exp()
    assert y.grad_fn.saved_bytes == 400


def test_pack_must_not_write_and_unpack_must_give_back_the_same() -> None:
    x = leaf(1.0, 2.0)
    with (
        graph.saved_tensors_hooks(lambda t: t.zero_(), lambda t: t),
        pytest.raises(RuntimeError, match="the pack function wrote in place to the tensor of shape"),
    ):
        x.exp()
    with graph.saved_tensors_hooks(lambda t: t[:1], lambda t: t):
        y = x.exp()
    with pytest.raises(RuntimeError, match=r"returned float32\(1,\) on cpu, expected float32\(2,\) on cpu"):
        y.sum().backward()
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 1):
        y = x.exp()
    with pytest.raises(TypeError, match="the unpack function returned int"):
        y.sum().backward()


def test_saved_tensor_hooks_can_be_forbidden() -> None:
    with graph.disable_saved_tensors_hooks("not in here"):
        with pytest.raises(RuntimeError, match=r"^not in here$"), graph.save_on_cpu():
            pass
        with (
            graph.disable_saved_tensors_hooks("nor here"),
            pytest.raises(RuntimeError, match=r"^nor here$"),
            graph.saved_tensors_hooks(print, print),
        ):
            pass
    with graph.save_on_cpu(), pytest.raises(RuntimeError, match=r"^too late$"):
        graph.disable_saved_tensors_hooks("too late").__enter__()

    @graph.disable_saved_tensors_hooks("nor as a decorator")
    def f() -> None:
        with graph.save_on_cpu():
            pass

    with pytest.raises(RuntimeError, match=r"^nor as a decorator$"):
        f()
    with graph.save_on_cpu():
        pass


WRITES = {
    "mul_": lambda z: z.mul_(3),
    "part": lambda z: z[0].mul_(3),
    "item": lambda z: z.__setitem__(0, 5.0),
    "sum": lambda z: z.__setitem__(0, z[0] + 1),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_kept_gradient_is_that_of_the_newest_value(write) -> None:
    x = leaf(1.0, 2.0)
    z = x * 2
    z.retain_grad()
    write(z)
    assert z.retains_grad
    (z**2).sum().backward()
    assert z.grad.tolist() == [2 * v for v in z.tolist()]
