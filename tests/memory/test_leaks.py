"""Nothing leaks: bytes, tape entries, Python objects and heap memory are the same before and after many
repetitions.

The core paths run 10,000 times. Each record of `op_samples.py` goes through every level of differentiation as
often as `OP_REPEATS` says: a few times by default, 10,000 times with `HYPOTHESIS_PROFILE=search`.
"""

import ctypes
import gc
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from samples.op_samples import SAMPLES
from samples.sample import OpSample
from support import floats, random_source, tensor
from wengert.utils.checkpoint import checkpoint

SEARCH = os.environ.get("HYPOTHESIS_PROFILE") == "search"
REPEATS = 10_000
OP_REPEATS = 10_000 if SEARCH else 20


# What glibc has handed out; no other C library tells.
MALLINFO = getattr(ctypes.CDLL(None), "mallinfo2", None) if sys.platform == "linux" else None


def heap() -> int:
    """Bytes that the C allocator has handed out; 0 where it does not say."""
    if MALLINFO is None:
        return 0

    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in "a b c d e f g used free keep".split()]

    MALLINFO.restype = Info
    return int(MALLINFO().used)


def state() -> tuple[int, int, int]:
    """Bytes in tensors, entries of the tape, and objects that Python's collector knows."""
    gc.collect()
    # Objects that other threads let go of without the interpreter lock are freed at the next call.
    wg.ones(1)
    return wg.memory.live_bytes(), wg.memory.live_nodes(), len(gc.get_objects())


def steady(work: Callable[[], Any], times: int, per_call: float = 16.0) -> None:
    """Runs `work` so often, after a few times to fill caches, and compares before with after."""
    for _ in range(3):
        work()
    # The first measurement makes objects of its own.
    state(), heap()
    before, bytes_before = state(), heap()
    for _ in range(times):
        work()
    after, bytes_after = state(), heap()
    assert after[:2] == before[:2], "bytes in tensors, entries of the tape"
    assert after[2] - before[2] <= 5, "Python objects"
    # Caches settle once; a leak of one small object per repetition is more.
    assert bytes_after - bytes_before <= per_call * times + 65536, "heap"


@pytest.mark.skipif(MALLINFO is None, reason="mallinfo2 is glibc's: elsewhere the heap is not compared")
def test_the_heap_is_measured() -> None:
    before = heap()
    kept = [bytes(1000) for _ in range(100)]
    assert heap() - before >= 100 * 1000
    del kept
    assert abs(heap() - before) < 10_000


# ---- core paths ----------------------------------------------------------------------------------

X = wg.tensor([[0.5, 1.0], [1.5, 2.0]])
W = wg.tensor([[0.25, -0.5], [1.0, 0.75]], requires_grad=True)
NET = wg.nn.Sequential(wg.nn.Linear(2, 3), wg.nn.Tanh(), wg.nn.Linear(3, 1))
ADAM = wg.optim.AdamW(NET.parameters(), lr=1e-4)
MOMENTUM = wg.optim.SGD(NET.parameters(), lr=1e-4, momentum=0.9)


def train(optimiser: Any) -> None:
    optimiser.zero_grad()
    NET(X).square().mean().backward()
    optimiser.step()


def backward() -> None:
    W.grad = None
    (X @ W).tanh().sum().backward()


def retained() -> None:
    W.grad = None
    y = (X @ W).tanh().sum()
    y.backward(retain_graph=True)
    y.backward()


def twice_differentiated() -> None:
    (g,) = wg.autograd.grad((X @ W).tanh().sum(), W, create_graph=True)
    wg.autograd.grad(g.square().sum(), W)


def created_and_dropped() -> None:
    wg.autograd.grad((X @ W).tanh().sum(), W, create_graph=True)


def hooks() -> None:
    y = X @ W
    y.register_hook(lambda g: g * 2)
    W.register_hook(lambda g: None).remove()
    y.retain_grad()
    with wg.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda kept: kept[0]):
        z = y.exp()
    z.sum().backward()
    W.grad = None


def errors() -> None:
    for call in (
        lambda: W @ wg.ones(3, 3),
        lambda: wg.grad(lambda t: t @ wg.ones(3, 3))(X),
        lambda: wg.vmap(lambda t: t @ wg.ones(3, 3))(X),
        lambda: wg.jvp(lambda t: t @ wg.ones(3, 3), (X,), (X,)),
        lambda: (X @ W).backward(),
        lambda: W.add_(1),
    ):
        try:
            call()
        except (ValueError, RuntimeError):
            continue
        raise AssertionError("no error")


def broken_hook() -> None:
    y = X @ W
    y.register_hook(lambda g: 1 / 0)
    try:
        y.sum().backward()
    except ZeroDivisionError:
        return
    raise AssertionError("no error")


def checkpointed() -> None:
    checkpoint(lambda t: (t @ W).tanh(), X, use_reentrant=False).sum().backward()
    W.grad = None


def mixed_precision() -> None:
    with wg.autocast("cpu", dtype=wg.bfloat16):
        y = (X @ W).sum()
    y.backward()
    W.grad = None


def scaled(scaler: Any = None, optimiser: Any = None) -> None:
    scaler = wg.amp.GradScaler("cpu", init_scale=4.0)
    MOMENTUM.zero_grad()
    scaler.scale(NET(X).square().mean()).backward()
    scaler.step(MOMENTUM)
    scaler.update()


def in_place() -> None:
    y = X @ W
    y.mul_(2.0)
    y[0] = 1.0
    y[:, 1] += 2.0
    y.sum().backward()
    with wg.no_grad():
        W.sub_(W.grad, alpha=0.0)
    W.grad = None


def indices() -> None:
    y = W[wg.tensor([0, 1, 0])][:, 1:] + W[0, None, 1] + W[W > 0].sum()
    y.sum().backward()
    W.grad = None


def exchange() -> None:
    a = X.numpy()
    t = wg.from_numpy(a)
    wg.from_dlpack(np.from_dlpack(wg.from_dlpack(t)))
    np.asarray(t)
    memoryview(t).tobytes()
    wg.tensor(a.tolist())
    repr(t)


def pickled() -> None:
    pickle.loads(pickle.dumps(W))


def states() -> None:
    NET.load_state_dict(NET.state_dict())
    ADAM.load_state_dict(ADAM.state_dict())


def modules() -> None:
    net = wg.nn.Sequential(wg.nn.Linear(2, 2), wg.nn.ReLU())
    net(X).sum().backward()
    list(net.named_parameters())


def transforms() -> None:
    f = lambda t: (t @ W.detach()).tanh().sum()
    wg.value_and_grad(f)(X)
    wg.jvp(f, (X,), (X,))
    wg.vmap(wg.grad(f))(X)
    wg.grad(lambda t: wg.grad(f)(t).sum())(X)


def pullbacks() -> None:
    y, pull = wg.vjp(lambda t: t.exp(), X)
    pull(y)
    pull(y)


CORE: dict[str, Callable[[], Any]] = {
    f.__name__: f
    for f in (
        backward, retained, twice_differentiated, created_and_dropped, hooks, errors, broken_hook, checkpointed,
        mixed_precision, scaled, in_place, indices, exchange, pickled, states, modules, transforms, pullbacks,
    )
}  # fmt: skip
CORE["adamw"] = lambda: train(ADAM)
CORE["momentum"] = lambda: train(MOMENTUM)


@pytest.mark.parametrize("name", list(CORE))
def test_core_paths(name: str) -> None:
    # What composes several is slower, and gains nothing from being done as often.
    slow = name in ("transforms", "errors", "states", "modules", "exchange", "scaled", "adamw", "momentum")
    steady(CORE[name], REPEATS // (10 if slow and not SEARCH else 1))


# ---- every operation -----------------------------------------------------------------------------


def levels(sample: OpSample) -> list[Callable[[], Any]]:
    """The operation recorded and walked back, pushed forward, batched, and differentiated twice."""
    source, rng = random_source(3)
    case = sample.case(source)
    values = case.sample(rng)
    fixed, wrt = [tensor(v) for v in values], case.real

    def f(*real: wg.Tensor) -> Any:
        args = list(fixed)
        for i, x in zip(wrt, real):
            args[i] = x
        return sample.fn(*args, **case.kwargs)

    def total(*real: wg.Tensor) -> wg.Tensor:
        terms = [y.sum() for y in floats(f(*real))]
        return sum(terms[1:], terms[0])

    point = tuple(fixed[i] for i in wrt)
    if sample.order == 0 or not point or not floats(f(*point)):
        return [lambda: f(*point)]
    out: list[Callable[[], Any]] = []

    def recorded() -> None:
        leaves = [x.detach().requires_grad_() for x in point]
        y = total(*leaves)
        if y.requires_grad:
            y.backward()

    out.append(recorded)
    out.append(lambda: wg.jvp(total, point, point))
    if sample.order > 1:
        out.append(lambda: wg.jvp(wg.grad(total), point, point))
    if sample.vmap:
        batch = tuple(x.unsqueeze(0) for x in point)
        out.append(lambda: wg.vmap(total)(*batch))
    return out


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_every_operation(sample: OpSample) -> None:
    calls = levels(sample)
    steady(lambda: [call() for call in calls], OP_REPEATS, per_call=64.0 if SEARCH else 4096.0)
