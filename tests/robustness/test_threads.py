"""Several threads: graphs cross them, trainings run side by side, and what one thread does to itself stays
there."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import wengert as wg


def together(*work: Callable[[], Any]) -> list[Any]:
    """The results of functions that run at the same time, each on a thread of its own."""
    out: list[Any] = [None] * len(work)
    start = threading.Barrier(len(work))

    def run(i: int) -> None:
        start.wait()
        try:
            out[i] = work[i]()
        except BaseException as error:
            out[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in out:
        if isinstance(result, BaseException):
            raise result
    return out


@pytest.fixture
def often() -> Iterator[None]:
    """Threads change as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


# ---- graphs that cross threads
# -----------------------------------------------------------------------------------


def test_backward_on_another_thread_than_forward() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    (y,) = together(lambda: (x * x * x).sum())
    together(lambda: y.backward())
    assert x.grad.tolist() == [3.0, 12.0]
    z = (x * x).sum()
    (g,) = together(lambda: wg.autograd.grad(z, x, create_graph=True)[0])
    (gg,) = wg.autograd.grad(g.sum(), x)
    assert gg.tolist() == [2.0, 2.0]


def test_the_last_owner_of_a_deep_graph_may_be_any_thread() -> None:
    before = wg.memory.live_nodes()
    for _ in range(20):
        x = wg.tensor(1.0, requires_grad=True)
        y = x
        held = []
        for _ in range(2000):
            y = y + y
            held.append(y)
        owners = [[held[i] for i in range(k, 2000, 4)] for k in range(4)]
        del held, y
        together(*[owner.clear for owner in owners])
    del x, owners
    assert wg.memory.live_nodes() == before


def test_one_graph_is_walked_by_several_threads_at_once(often: None) -> None:
    x = wg.ones(8, requires_grad=True)
    y = x
    for _ in range(50):
        y = y * 1.0 + x
    total = y.sum()

    def walk() -> None:
        for _ in range(20):
            total.backward(retain_graph=True)

    together(*[walk] * 4)
    assert x.grad.tolist() == [51.0 * 80] * 8


def test_a_graph_is_freed_once(often: None) -> None:
    for _ in range(50):
        x = wg.ones(2, requires_grad=True)
        y = (x * x).sum()
        failures = []

        def walk(y: wg.Tensor = y, failures: list[str] = failures) -> None:
            try:
                y.backward()
            except RuntimeError as error:
                failures.append(str(error))

        together(walk, walk, walk)
        assert len(failures) == 2
        assert all("already used and freed" in text for text in failures)
        assert x.grad.tolist() == [2.0, 2.0]


# ---- trainings -----------------------------------------------------------------------------------


def train(seed: int) -> list[bytes]:
    """A small network, trained; the bits of its parameters."""
    rng = np.random.default_rng(seed)
    shapes = [(8, 16), (16,), (16, 4)]
    params = [wg.tensor(rng.normal(size=s).astype("f4"), requires_grad=True) for s in shapes]
    data = wg.tensor(rng.normal(size=(32, 8)).astype("f4"))
    labels = wg.tensor(rng.integers(0, 4, 32))
    optimiser = wg.optim.AdamW(params, lr=0.01)
    for _ in range(40):
        optimiser.zero_grad()
        loss = wg.nn.functional.cross_entropy((data @ params[0] + params[1]).tanh() @ params[2], labels)
        loss.backward()
        optimiser.step()
    return [p.detach().numpy().tobytes() for p in params]


def test_trainings_side_by_side_give_the_bits_that_they_give_alone(often: None) -> None:
    alone = [train(seed) for seed in range(4)]
    assert together(*[lambda seed=seed: train(seed) for seed in range(4)]) == alone


def test_gradients_of_a_shared_parameter_add_up_exactly(often: None) -> None:
    shared = wg.ones(64, requires_grad=True)

    def work(factor: float) -> None:
        own = wg.ones(64, requires_grad=True)
        for _ in range(200):
            (shared * own * factor).sum().backward()

    together(*[lambda k=k: work(float(k)) for k in range(1, 5)])
    assert shared.grad.tolist() == [200.0 * (1 + 2 + 3 + 4)] * 64


# ---- modes and transforms ------------------------------------------------------------------------


def test_transforms_on_several_threads(often: None) -> None:
    f = lambda x: (x.sin() * x).sum()
    calls: list[Callable[[], Any]] = [
        lambda: wg.vmap(wg.grad(f))(wg.arange(6.0).reshape(3, 2)).tolist(),
        lambda: wg.hessian(f)(wg.arange(3.0)).tolist(),
        lambda: wg.jvp(wg.grad(f), (wg.arange(3.0),), (wg.ones(3),))[1].tolist(),
        lambda: wg.grad(lambda x: wg.vmap(lambda y: (y * y).sum())(x).sum())(wg.ones(2, 2)).tolist(),
    ]
    expected = [call() for call in calls]

    def repeat(call: Callable[[], Any]) -> Any:
        results = [call() for _ in range(15)]
        assert all(r == results[0] for r in results)
        return results[0]

    assert together(*[lambda call=call: repeat(call) for call in calls]) == expected


def test_modes_belong_to_their_thread() -> None:
    x = wg.ones(2, requires_grad=True)
    inside, done = threading.Event(), threading.Event()

    def without() -> bool:
        with wg.no_grad(), wg.autocast("cpu", dtype=wg.bfloat16):
            inside.set()
            done.wait()
            return (x * 2).requires_grad

    def beside() -> tuple[bool, Any]:
        inside.wait()
        y = x.reshape(1, 2) @ x.reshape(2, 1)
        done.set()
        return y.requires_grad, y.dtype

    assert together(without, beside) == [False, (True, wg.float32)]


def test_a_thread_started_inside_a_transform_is_outside_of_it() -> None:
    seen: list[Any] = []

    def f(x: wg.Tensor) -> wg.Tensor:
        def work() -> None:
            y = wg.ones(2, requires_grad=True)
            (y * y).sum().backward()
            seen.append(y.grad.tolist())
            try:
                seen.append(x * 2)
            except RuntimeError as error:
                seen.append(str(error))

        together(work)
        return (x * x).sum()

    assert wg.grad(f)(wg.ones(2)).tolist() == [2.0, 2.0]
    assert seen[0] == [2.0, 2.0]
    assert "grad or vjp" in seen[1]
    assert "thread" in seen[1]


def test_threads_that_die_inside_regions_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    # pytest's hook would keep the exceptions, and with them what their frames held.
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    before = wg.memory.live_nodes(), wg.memory.live_bytes()

    def die_in(enter: Callable[[], Any]) -> None:
        def work() -> None:
            with enter():
                _ = wg.ones(2, requires_grad=True) * 2
                raise SystemExit

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    def die_in_transform(transform: Callable[..., Any]) -> None:
        def f(x: wg.Tensor) -> wg.Tensor:
            _ = x * x
            raise SystemExit

        thread = threading.Thread(target=lambda: transform(f))
        thread.start()
        thread.join()

    hooks = lambda: wg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    for enter in (wg.no_grad, wg.enable_grad, wg.inference_mode, lambda: wg.autocast("cpu"), hooks):
        die_in(enter)
    die_in_transform(lambda f: wg.vmap(f)(wg.ones(2)))
    die_in_transform(lambda f: wg.grad(f)(wg.ones(2)))
    die_in_transform(lambda f: wg.jvp(f, (wg.ones(2),), (wg.ones(2),)))
    assert wg.is_grad_enabled()
    x = wg.tensor(3.0, requires_grad=True)
    (x * x).backward()
    assert x.grad.item() == 6.0
    del x
    assert (wg.memory.live_nodes(), wg.memory.live_bytes()) == before


def test_exchanging_a_tensor_while_others_use_it_works_or_raises(often: None) -> None:
    x = wg.ones(4, requires_grad=True)
    outcomes: set[str] = set()

    def exchange() -> None:
        for i in range(300):
            try:
                x.data = wg.full((4,), float(i % 3 + 1))
                x.requires_grad_(i % 2 == 0)
            except RuntimeError as error:
                outcomes.add(str(error)[:20])

    def use() -> None:
        for _ in range(300):
            try:
                values = (x.detach() * 1).tolist()
                assert values[0] in (1.0, 2.0, 3.0)
                assert len(set(values)) == 1
                y = (x * 2).sum()
                if y.requires_grad:
                    y.backward()
            except RuntimeError as error:
                outcomes.add(str(error)[:20])

    together(exchange, use, use)
    assert all("tensor" in text or "orrowed" in text or "backward" in text for text in outcomes), outcomes


# ---- the interpreter lock ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["matmul", "elementwise", "backward", "item"])
def test_kernels_let_other_threads_run(name: str) -> None:
    """The other thread can only count while a kernel runs: by itself the interpreter would not change
    threads."""
    x = wg.ones(400, 400, requires_grad=True)
    value = x.detach()
    root = (x * x).sum()
    kernels: dict[str, Callable[[], Any]] = {
        "matmul": lambda: value @ value,
        "elementwise": lambda: value.exp(),
        "backward": lambda: root.backward(retain_graph=True),
        "item": lambda: value.sum(),
    }
    kernel, stop, count = kernels[name], threading.Event(), [0]

    def other() -> None:
        while not stop.is_set():
            count[0] += 1
            time.sleep(0)  # gives the lock away

    before = sys.getswitchinterval()
    thread = threading.Thread(target=other)
    sys.setswitchinterval(1000.0)
    try:
        thread.start()
        for _ in range(2000):
            seen = count[0]
            kernel()
            if count[0] != seen:
                break
        else:
            pytest.fail("no other thread made progress during 2000 kernels")
    finally:
        stop.set()
        sys.setswitchinterval(before)
        thread.join()
