"""What Python's garbage collector can collect: cycles through hooks, saved tensors, modules, checkpoints; and
what must go without it: gradients of gradients.
"""

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import wengert as wg
from wengert import nn
from wengert.autograd import graph
from wengert.utils.checkpoint import checkpoint


class Token:
    """Something to watch: it lives as long as the cycle that it is in."""


def keep(*_: Any) -> None:
    """What a hook that closes over its arguments does."""


def leaf(n: int = 2) -> wg.Tensor:
    return wg.ones(n, requires_grad=True)


def hook_on_a_leaf(token: Token) -> Any:
    x = leaf()
    x.register_hook(lambda g: (x, token)[0] * 0)
    return x


def hook_on_a_leaf_after_backward(token: Token) -> Any:
    x = hook_on_a_leaf(token)
    (x * 2).sum().backward()
    return x


def hook_on_a_result(token: Token) -> Any:
    y = leaf() * 2
    y.register_hook(lambda g: (y, token)[0] * 0)
    return y


def hook_that_knows_the_loss(token: Token) -> Any:
    y = leaf() * 2
    loss = (y * y).sum()
    y.register_hook(lambda g: print(loss, token))
    del y
    return loss


def post_accumulate_hook(token: Token) -> Any:
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda p: keep(x, token))
    (x * 2).sum().backward()
    return x


def node_hook(token: Token) -> Any:
    y = leaf() * 2
    node = y.grad_fn
    node.register_hook(lambda gi, go: keep(node, token))
    node.register_prehook(lambda go: keep(node, token))
    return node


def node_metadata(token: Token) -> Any:
    y = leaf() * 2
    y.grad_fn.metadata["self"] = (y, token)
    return y


def multi_grad_hook(token: Token) -> Any:
    x = leaf()
    graph.register_multi_grad_hook([x], lambda gs: keep(x, token))
    return x


def handle_in_the_hook(token: Token) -> Any:
    x = leaf()
    handles: list[Any] = [token]
    handles.append(x.register_hook(lambda g: handles[1].remove()))
    handles.append(x)
    return x


def packed_value(token: Token) -> Any:
    box: list[Any] = [token]
    with graph.saved_tensors_hooks(lambda t: (t, box), lambda kept: kept[0]):
        box.append(leaf().exp())
    return box[1]


def unpack_function(token: Token) -> Any:
    box: list[Any] = [token]
    with graph.saved_tensors_hooks(lambda t: t, lambda t: (t, box)[0]):
        box.append(leaf().exp().exp())
    return box[1]


def checkpointed(token: Token) -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(wg.ones(2))
            self.token = token

        def forward(self, x: wg.Tensor) -> wg.Tensor:
            return (x * self.weight).exp().exp()

    net = Net()
    net.__dict__["last"] = checkpoint(net, wg.ones(2), use_reentrant=False)
    return net


def module_hook(token: Token) -> Any:
    net = nn.Linear(2, 2)
    net.token = token
    net.register_forward_hook(lambda m, args, out: keep(net))
    net.register_full_backward_hook(lambda m, gi, go: keep(net))
    net.__dict__["last"] = net(leaf().reshape(1, 2))
    return net


def parameter_hook(token: Token) -> Any:
    net = nn.Linear(2, 2)
    net.weight.register_hook(lambda g: keep(net, token))
    return net


def view(token: Token) -> Any:
    x = wg.zeros(4)
    x_view = x[1:]

    class Holds(wg.Tensor):
        pass

    holds = Holds(x)
    holds.link, holds.token = (holds[1:], x_view), token
    return holds


def pullback(token: Token) -> Any:
    box: list[Any] = [token]

    def f(x: wg.Tensor) -> wg.Tensor:
        y = x * 2
        y.register_hook(lambda g: keep(box))
        return y.exp()

    box.append(wg.vjp(f, wg.ones(2))[1])
    return box[1]


def batched_gradient(token: Token) -> Any:
    box: list[Any] = [token]

    def f(x: wg.Tensor) -> wg.Tensor:
        x.register_hook(lambda g: keep(box))
        box.append(x)
        return (x**2).sum()

    wg.vmap(wg.grad(f))(wg.ones(3, 2))
    return f


def context_of_a_function(token: Token) -> Any:
    contexts: list[Any] = [token]

    class Twice(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            contexts.append(ctx)
            ctx.contexts = contexts
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = Twice.apply(leaf())
    contexts[1].output = y
    return y


def context_inside_a_transform(token: Token) -> Any:
    contexts: list[Any] = [token]

    class Twice(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            contexts.append(ctx)
            ctx.contexts = contexts
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    contexts.append(wg.vjp(Twice.apply, wg.ones(2))[1])
    return contexts[-1]


def rules_that_close_over_the_result(token: Token) -> Any:
    box: list[Any] = [token]

    @wg.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (f(x), box), lambda kept, g: (g * 2,))
    box.append(f(leaf()))
    return box[1]


CYCLES: list[Callable[[Token], Any]] = [
    context_of_a_function,
    context_inside_a_transform,
    rules_that_close_over_the_result,
    hook_on_a_leaf,
    hook_on_a_leaf_after_backward,
    hook_on_a_result,
    hook_that_knows_the_loss,
    post_accumulate_hook,
    node_hook,
    node_metadata,
    multi_grad_hook,
    handle_in_the_hook,
    packed_value,
    unpack_function,
    checkpointed,
    module_hook,
    parameter_hook,
    view,
    pullback,
    batched_gradient,
]


def settled() -> int:
    """The bytes alive once the garbage of earlier tests is gone, some of which goes in two steps."""
    bytes_alive = -1
    while bytes_alive != wg.memory.live_bytes():
        bytes_alive = wg.memory.live_bytes()
        gc.collect()
    return bytes_alive


@pytest.mark.parametrize("make", CYCLES, ids=lambda make: make.__name__)
def test_a_cycle_is_collected(make: Callable[[Token], Any]) -> None:
    before = settled()
    token = Token()
    watch = weakref.ref(token)
    held = make(token)
    del token
    gc.collect()
    # As long as somebody holds a part of it, nothing is taken away.
    assert watch() is not None
    del held
    gc.collect()
    assert watch() is None
    assert wg.memory.live_bytes() == before


def test_what_is_held_from_outside_keeps_its_hooks() -> None:
    x = leaf()
    calls = []
    y = x * 2
    y.register_hook(lambda g, y=y: calls.append((y.tolist(), g.tolist())))
    loss = y.sum()
    del y
    for _ in range(3):
        gc.collect()
    loss.backward()
    assert calls == [([2.0, 2.0], [1.0, 1.0])]


def test_two_owners_of_one_entry() -> None:
    x = leaf()
    y = x * 2
    calls = []
    y.register_hook(lambda g, y=y: calls.append(y.shape))
    first, second = y.sum(), (y * 3).sum()
    del y
    del first
    gc.collect()
    second.backward()
    assert calls == [(2,)]


def test_collection_while_other_threads_differentiate() -> None:
    failures: list[BaseException] = []
    stop = threading.Event()

    def work() -> None:
        try:
            while not stop.is_set():
                x = wg.ones(200, 200, requires_grad=True)
                calls: list[Any] = []
                y = x @ x
                y.register_hook(lambda g, y=y, calls=calls: calls.append(y.shape))
                z = (y @ x).tanh().sum()
                z.backward()
                assert calls == [(200, 200)]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        gc.collect()
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    gc.collect()


def assert_nothing_stays(step: Callable[[], None]) -> None:
    """More steps hold no more than a few do, without Python's collector."""

    def live_after(steps: int) -> int:
        for _ in range(steps):
            step()
        return wg.memory.live_bytes()

    gc.disable()
    try:
        assert live_after(2) == live_after(10)
    finally:
        gc.enable()


def test_double_backward_leaves_nothing_without_the_collector() -> None:
    p = wg.ones(1000, requires_grad=True)

    def step() -> None:
        loss = (p.exp() * p).sum()
        loss.backward(create_graph=True)
        (p.grad**2).sum().backward()
        p.grad = None

    assert_nothing_stays(step)


def test_a_gradient_with_a_graph_goes_with_its_leaf() -> None:
    def step() -> None:
        p = wg.ones(1000, requires_grad=True)
        y = p.exp()
        y.retain_grad()
        (y * p * y).sum().backward(create_graph=True)
        assert p.grad.requires_grad
        assert y.grad.requires_grad

    assert_nothing_stays(step)


def test_autograd_grad_with_create_graph_leaves_nothing() -> None:
    p = wg.ones(1000, requires_grad=True)

    def step() -> None:
        (g,) = wg.autograd.grad((p.exp() * p).sum(), p, create_graph=True)
        (h,) = wg.autograd.grad(g.sum(), p, create_graph=True)
        wg.autograd.grad(h.sum(), p)

    assert_nothing_stays(step)


def test_a_leaf_that_is_gone_gets_no_gradient() -> None:
    x = leaf(1000)
    y = (x * 2).sum()
    calls = []
    x.register_hook(lambda g: calls.append(g.shape))
    del x
    before = wg.memory.live_bytes()
    y.backward()
    assert calls == [(1000,)]
    assert wg.memory.live_bytes() <= before
