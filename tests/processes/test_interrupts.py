"""Exceptions and Ctrl-C wherever user code or a long walk runs: they come out, and the library works as
before."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import wengert as wg
from wengert.utils.checkpoint import checkpoint


class Deliberate(Exception):
    """Raised by the tests."""


def healthy() -> None:
    """The library is in its first state: no mode, no transform, no hook is in force, and it computes."""
    assert wg.is_grad_enabled()
    assert not wg.is_autocast_enabled()
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    assert y.dtype == wg.float32
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    assert wg.vmap(wg.grad(lambda t: t**3))(wg.tensor([1.0, 2.0])).tolist() == [3.0, 12.0]
    assert wg.jvp(lambda t: t * t, (wg.tensor(3.0),), (wg.tensor(1.0),))[1].item() == 6.0


Fail = Callable[..., Any]


def backward_with(register: Callable[[wg.Tensor, wg.Tensor], Any]) -> None:
    """A backward with hooks that `register` puts on a leaf and on a result."""
    x = wg.ones(2, requires_grad=True)
    y = x * x
    register(x, y)
    y.sum().backward()


def packing(pack: Fail, unpack: Fail) -> None:
    """Saved-tensor hooks."""
    x = wg.ones(2, requires_grad=True)
    with wg.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x * x).sum()
    y.backward()


def recomputed(fail: Fail) -> None:
    """A checkpoint whose second run fails."""
    runs = []

    def region(t: wg.Tensor) -> wg.Tensor:
        runs.append(1)
        return t * t if len(runs) == 1 else fail()

    checkpoint(region, wg.ones(2, requires_grad=True), use_reentrant=False).sum().backward()


def module(fail: Fail, hook: str | None) -> None:
    """A network in which a layer or a hook of a layer fails."""
    net = wg.nn.Sequential(wg.nn.Linear(2, 2), wg.nn.ReLU())
    if hook is None:
        net[1].forward = lambda *_: fail()
    else:
        getattr(net[1], hook)(lambda *_: fail())
    net(wg.ones(1, 2)).sum().backward()


def loader(fail: Fail) -> None:
    """Batches from a generator that runs without recording, and fails."""

    @wg.no_grad()
    def batches() -> Iterator[wg.Tensor]:
        yield wg.ones(2)
        yield fail()

    w = wg.ones(2, requires_grad=True)
    for batch in batches():
        (w * batch).sum().backward()


def regions(fail: Fail) -> None:
    """All modes at once."""
    with wg.no_grad(), wg.autocast("cpu"), wg.enable_grad(), wg.inference_mode():
        fail()


def nested(fail: Fail) -> None:
    """A transform in a transform in a transform."""
    x = wg.ones(2, 2)
    wg.vmap(lambda r: wg.jvp(wg.grad(lambda t: fail()), (r,), (r,))[1])(x)


ONE = wg.ones(2)
PLACES: dict[str, Callable[[Fail], Any]] = {
    "hook on a result": lambda fail: backward_with(lambda x, y: y.register_hook(lambda g: fail())),
    "hook on a leaf": lambda fail: backward_with(lambda x, y: x.register_hook(lambda g: fail())),
    "hook after accumulation": lambda fail: backward_with(
        lambda x, y: x.register_post_accumulate_grad_hook(lambda t: fail())
    ),
    "pack": lambda fail: packing(lambda t: fail(), lambda t: t),
    "unpack": lambda fail: packing(lambda t: t, lambda t: fail()),
    "grad": lambda fail: wg.grad(lambda t: fail())(ONE),
    "vjp": lambda fail: wg.vjp(lambda t: fail(), ONE),
    "jvp": lambda fail: wg.jvp(lambda t: fail(), (ONE,), (ONE,)),
    "vmap": lambda fail: wg.vmap(lambda t: fail())(ONE),
    "jacrev": lambda fail: wg.jacrev(lambda t: fail())(ONE),
    "jacfwd": lambda fail: wg.jacfwd(lambda t: fail())(ONE),
    "hessian": lambda fail: wg.hessian(lambda t: fail())(ONE),
    "nested transforms": nested,
    "checkpoint": lambda fail: checkpoint(lambda t: fail(), ONE, use_reentrant=False),
    "recomputation": recomputed,
    "module": lambda fail: module(fail, None),
    "forward hook": lambda fail: module(fail, "register_forward_hook"),
    "forward pre-hook": lambda fail: module(fail, "register_forward_pre_hook"),
    "loader": loader,
    "regions": regions,
    "closure of an optimiser": lambda fail: wg.optim.SGD([wg.ones(2, requires_grad=True)], lr=0.1).step(fail),
    "tree_map": lambda fail: wg.tree.tree_map(lambda t: fail(), {"a": ONE}),
}


@pytest.mark.parametrize("kind", [Deliberate, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("place", list(PLACES))
def test_what_user_code_raises_comes_out_and_leaves_nothing(place: str, kind: type[BaseException]) -> None:
    gc.collect()
    before = wg.memory.live_bytes(), wg.memory.live_nodes()
    error = kind("mine")

    def fail(*_: Any) -> Any:
        raise error

    for _ in range(3):
        with pytest.raises(kind) as caught:
            PLACES[place](fail)
        assert caught.value is error
        healthy()
    error.__traceback__ = error.__context__ = None
    del caught
    gc.collect()
    assert (wg.memory.live_bytes(), wg.memory.live_nodes()) == before


def test_a_generator_that_is_abandoned_inside_a_mode() -> None:
    @wg.no_grad()
    def numbers() -> Iterator[bool]:
        while True:
            yield wg.is_grad_enabled()

    generator = numbers()
    assert next(generator) is False
    assert wg.is_grad_enabled()
    del generator
    healthy()


INTERRUPTED = """
import os, signal, threading
import wengert as wg

# A process that was started in the background inherits that this signal is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupt_when(ready):
    ready.wait()
    for _ in range(100_000):
        pass
    os.kill(os.getpid(), signal.SIGINT)

def interrupted(prepare):
    ready = threading.Event()
    sender = threading.Thread(target=interrupt_when, args=(ready,))
    run = prepare(ready)
    sender.start()
    try:
        run()
        return "went through"
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        sender.join()
"""
WALKS = """
def powers(x, n):
    for _ in range(n):
        x = x * 1.0
    return x

x = wg.tensor(1.0, requires_grad=True)

def backward(ready):
    y = powers(x, 1_000_000)
    y.register_hook(lambda g: ready.set())
    return lambda: y.backward()

def pullback(ready):
    _, pull = wg.vjp(lambda t: powers(t, 500_000), wg.tensor(1.0))
    def run():
        ready.set()
        while True:
            pull(wg.tensor(1.0))
    return run

def products(ready):
    a = wg.ones(600, 600)
    def run():
        ready.set()
        while True:
            a @ a
    return run

for walk in (backward, pullback, products):
    print(walk.__name__, interrupted(walk))
print(x.grad)
x.grad = None
(x * x).backward()
print(x.grad.item(), wg.is_grad_enabled(), wg.grad(lambda t: t * t)(wg.tensor(2.0)).item())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of another kind")
def test_ctrl_c_ends_long_walks() -> None:
    command = [sys.executable, "-c", INTERRUPTED + WALKS]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    # The chain's only leaf is its last step, so a gradient would mean that the walk went to its end.
    assert done.stdout.splitlines() == [
        "backward interrupted",
        "pullback interrupted",
        "products interrupted",
        "None",
        "2.0 True 4.0",
    ]
