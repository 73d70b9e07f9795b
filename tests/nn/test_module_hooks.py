"""Hooks of modules: around forward, around backward, around saving and loading; of one module and of all."""

import copy

import pytest
import wengert as wg
from wengert import nn
from wengert.nn import hooks


class Scale(nn.Module):
    """`x * weight`, and the sum of two."""

    def __init__(self, weight: float = 2.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(wg.tensor([weight]))

    def forward(self, x: wg.Tensor, y: wg.Tensor | None = None, *, plus: float = 0.0) -> wg.Tensor:
        if plus < 0:
            raise ValueError("plus is negative")
        return x * self.weight + plus + (0 if y is None else y)


ones = wg.ones


def test_forward_pre_hooks_change_arguments_in_order() -> None:
    net = Scale()
    net.register_forward_pre_hook(lambda m, args: args[0] * 10)
    net.register_forward_pre_hook(lambda m, args: (args[0] + 1,), prepend=True)
    net.register_forward_pre_hook(lambda m, args, kw: (args, {**kw, "plus": 0.5}), with_kwargs=True)
    assert net(ones(1)).item() == 40.5


def test_forward_pre_hook_with_kwargs_returns_a_pair() -> None:
    net = Scale()
    net.register_forward_pre_hook(lambda m, args, kw: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"expected None or a pair \(args, kwargs\)"):
        net(ones(1))


def test_forward_hooks_change_the_result_in_order() -> None:
    net = Scale()
    seen = []
    net.register_forward_hook(lambda m, args, out: out * 10)
    handle = net.register_forward_hook(
        lambda m, args, kwargs, out: seen.append((kwargs, out.item())), with_kwargs=True
    )
    net.register_forward_hook(lambda m, args, out: out + 1, prepend=True)
    assert net(ones(1), plus=1.0).item() == 40.0
    assert seen == [({"plus": 1.0}, 40.0)]
    handle.remove()
    net(ones(1))
    assert len(seen) == 1


def test_always_called_hooks_run_after_an_exception() -> None:
    net = Scale()
    seen = []
    net.register_forward_hook(lambda m, args, out: seen.append("never"))
    net.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    with pytest.raises(ValueError, match="plus is negative"):
        net(ones(1), plus=-1.0)
    assert seen == [None]
    net.register_forward_hook(lambda m, args, out: 1 / 0, always_call=True)
    with (
        pytest.warns(UserWarning, match="gives way to the exception"),
        pytest.raises(ValueError, match="plus is negative"),
    ):
        net(ones(1), plus=-1.0)


def test_an_always_called_hook_that_ran_does_not_run_again() -> None:
    net = Scale()
    seen = []
    net.register_forward_hook(lambda m, args, out: seen.append(out.item()), always_call=True)
    net.register_forward_hook(lambda m, args, out: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        net(ones(1))
    assert seen == [2.0]


def test_full_backward_hook_sees_and_replaces_gradients_of_inputs() -> None:
    net = Scale(3.0)
    x, y = ones(2, requires_grad=True), ones(2)
    seen = []

    def hook(module, grad_input, grad_output):
        seen.append((module is net, grad_input[0].tolist(), grad_input[1], grad_output[0].tolist()))
        return (grad_input[0] * 10, None)

    handle = net.register_full_backward_hook(hook)
    (net(x, y) * 2).sum().backward()
    assert seen == [(True, [6.0, 6.0], None, [2.0, 2.0])]
    assert x.grad.tolist() == [60.0, 60.0]
    assert net.weight.grad.tolist() == [4.0]
    handle.remove()
    x.grad = None
    net(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_full_backward_hook_sees_only_the_gradient_through_its_module() -> None:
    net = Scale(3.0)
    x = ones(1, requires_grad=True)
    seen = []
    net.register_full_backward_hook(lambda m, gi, go: seen.append(gi[0].item()))
    (net(x) + x * 100).sum().backward()
    assert seen == [3.0]
    assert x.grad.item() == 103.0


def test_full_backward_pre_hook_replaces_gradients_of_outputs() -> None:
    net = Scale(3.0)
    x = ones(1, requires_grad=True)
    order = []
    net.register_full_backward_hook(lambda m, gi, go: order.append(("after", gi[0].item(), go[0].item())))
    net.register_full_backward_pre_hook(lambda m, go: (order.append("before"), go[0] * 2)[1])
    net.register_full_backward_pre_hook(lambda m, go: order.append("first"), prepend=True)
    net(x).sum().backward()
    assert order == ["first", "before", ("after", 6.0, 2.0)]
    assert x.grad.item() == 6.0
    assert net.weight.grad.item() == 2.0


def test_full_backward_hook_without_gradients_of_inputs() -> None:
    net = Scale()
    seen = []
    handle = net.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].item())))
    net(ones(1)).sum().backward()
    assert seen == [((None,), 1.0)]
    handle.remove()
    net.register_full_backward_hook(lambda m, gi, go: (ones(1),))
    with pytest.raises(RuntimeError, match="no input of the module requires one; return None"):
        net(ones(1)).sum().backward()


def test_full_backward_hook_of_several_outputs() -> None:
    class Split(nn.Module):
        def forward(self, x: wg.Tensor) -> tuple[wg.Tensor, str, wg.Tensor]:
            return x * 2, "text", x * 3

    net, x = Split(), ones(1, requires_grad=True)
    seen = []
    net.register_full_backward_hook(
        lambda m, gi, go: seen.append((gi[0].item(), [g and g.item() for g in go]))
    )
    a, text, b = net(x)
    assert text == "text"
    (a + b).sum().backward()
    assert seen == [(5.0, [1.0, None, 1.0])]


def test_backward_hooks_that_return_too_much_raise() -> None:
    x = ones(1, requires_grad=True)
    for register in (nn.Module.register_full_backward_hook, nn.Module.register_full_backward_pre_hook):
        net = Scale()
        register(net, lambda m, *gs: gs[0] + gs[0])
        with pytest.raises(RuntimeError, match="returned 2 gradients, expected 1"):
            net(x).sum().backward()


def test_backward_hooks_need_tensors_as_results() -> None:
    class Named(nn.Module):
        def forward(self, x: wg.Tensor) -> dict[str, wg.Tensor]:
            return {"out": x * 2}

    net = Named()
    net.register_full_backward_hook(lambda m, gi, go: pytest.fail("cannot be called"))
    with pytest.warns(
        UserWarning, match="need a tensor or a tuple of tensors as the result of forward, got dict"
    ):
        out = net(ones(1))
    assert out["out"].item() == 2.0


def test_backward_hooks_work_without_recording() -> None:
    net = Scale()
    net.register_full_backward_hook(lambda m, gi, go: pytest.fail("no backward"))
    with wg.no_grad():
        assert net(ones(1, requires_grad=True)).item() == 2.0


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt("mine")], ids=repr)
@pytest.mark.parametrize(
    "kind", ["forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook"]
)
def test_exceptions_pass_unchanged(kind: str, error: BaseException) -> None:
    def hook(*_):
        raise error

    net, x = Scale(), ones(1, requires_grad=True)
    handle = getattr(net, f"register_{kind}")(hook)
    with pytest.raises(type(error)) as caught:
        net(x).sum().backward()
    assert caught.value is error
    handle.remove()
    net(x).sum().backward()
    assert x.grad.item() == 2.0


def test_hooks_of_all_modules_run_before_a_modules_own() -> None:
    net = nn.Sequential(Scale(2.0), Scale(3.0))
    x = ones(1, requires_grad=True)
    order = []
    own = net[0].register_forward_hook(lambda m, args, out: order.append("own"))
    handles = [
        hooks.register_module_forward_pre_hook(lambda m, args: order.append("pre " + type(m).__name__)),
        hooks.register_module_forward_hook(lambda m, args, out: order.append("post " + type(m).__name__)),
        hooks.register_module_full_backward_pre_hook(lambda m, go: order.append(("before", go[0].item()))),
        hooks.register_module_full_backward_hook(lambda m, gi, go: order.append(("after", gi[0].item()))),
    ]
    try:
        out = net(x)
        assert order == [
            "pre Sequential", "pre Scale", "post Scale", "own", "pre Scale", "post Scale", "post Sequential",
        ]  # fmt: skip
        order.clear()
        out.sum().backward()
        assert order == [
            ("before", 1.0),
            ("before", 1.0),
            ("after", 3.0),
            ("before", 3.0),
            ("after", 6.0),
            ("after", 6.0),
        ]
    finally:
        for handle in handles:
            handle.remove()
        own.remove()
    order.clear()
    net(x).sum().backward()
    assert order == []
    assert hooks.EVERYWHERE == {}


def test_hooks_on_registration() -> None:
    seen = []
    with (
        hooks.register_module_parameter_registration_hook(lambda m, name, p: seen.append(("p", name))),
        hooks.register_module_buffer_registration_hook(lambda m, name, b: b * 0),
        hooks.register_module_module_registration_hook(lambda m, name, c: seen.append(("m", name))),
    ):
        net = nn.Sequential(Scale())
        net.register_buffer("offset", ones(2))
    assert seen == [("p", "weight"), ("m", "0")]
    assert net.offset.tolist() == [0.0, 0.0]


def test_state_dict_hooks() -> None:
    net = nn.Sequential(Scale(2.0), Scale(3.0))
    seen = []
    net[1].register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((m is net[1], prefix, keep)))

    def rename(module, found, prefix, metadata):
        found[prefix + "w"] = found.pop(prefix + "weight")

    post = net[1].register_state_dict_post_hook(rename)
    assert list(net.state_dict(prefix="net.")) == ["net.0.weight", "net.1.w"]
    assert seen == [(True, "net.1.", False)]
    post.remove()
    net[1].register_state_dict_post_hook(lambda *_: {})
    with pytest.raises(RuntimeError, match="change the dict that it is given in place, and return None"):
        net.state_dict()


def test_load_state_dict_hooks() -> None:
    net = nn.Sequential(Scale(2.0), Scale(3.0))
    given = {"0.weight": wg.tensor([7.0]), "1.w": wg.tensor([8.0]), "more": wg.tensor([9.0])}

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        state[prefix + "weight"] = state.pop(prefix + "w")

    net[1].register_load_state_dict_pre_hook(rename)
    with pytest.raises(RuntimeError, match="unexpected key 'more'"):
        net.load_state_dict(given)
    assert net[0].weight.item() == 2.0
    found = []
    net.register_load_state_dict_post_hook(
        lambda m, keys: (found.extend(keys.unexpected_keys), keys.unexpected_keys.clear())[1]
    )
    keys = net.load_state_dict(given)
    assert [p.item() for p in net.parameters()] == [7.0, 8.0]
    assert found == ["more"]
    assert keys.unexpected_keys == []
    assert "1.w" in given
    net.register_load_state_dict_pre_hook(lambda *args: args[-1].append("no, said the hook"))
    with pytest.raises(RuntimeError, match="no, said the hook"):
        net.load_state_dict(given)


def test_copies_have_their_own_hooks() -> None:
    net = Scale()
    handle = net.register_forward_hook(lambda m, args, out: out * 10)
    twin = copy.deepcopy(net)
    handle.remove()
    assert net(ones(1)).item() == 2.0
    assert twin(ones(1)).item() == 20.0
