"""Other processes: forked children, spawned workers, and an interpreter that ends while threads are at
work."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import wengert as wg

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def alone(code: str, tmp_path: Path) -> list[str]:
    """Runs `code` as a script, which must end well without a word on stderr; returns the lines it printed."""
    script = tmp_path / "script.py"
    script.write_text("import os, sys, threading\nimport wengert as wg\n" + code)
    command = [sys.executable, "-W", "ignore", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-2000:])
    assert done.stderr == ""
    return done.stdout.splitlines()


@forks
def test_forks_in_every_state(tmp_path: Path) -> None:
    out = alone(
        """
x = wg.ones(300, requires_grad=True)

def forked(what):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            assert what()
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
    return os.waitpid(child, 0)[1]

@wg.enable_grad()
def trains():
    w = wg.ones(200, 200, requires_grad=True)
    (w * w).sum().backward()
    (w.detach() @ w.detach()).sum().item()
    return w.grad[0, 0].item() == 2 and wg.grad(lambda t: (t * t).sum())(wg.ones(2)).tolist() == [2, 2]

def goes_on(y):
    y.backward()
    return x.grad[0].item() == 2

print("plain", forked(trains))
y = (x * x).sum()
print("recorded", forked(lambda: goes_on(y)))
with wg.no_grad():
    print("no_grad", forked(lambda: not (x * 2).requires_grad and trains()))
with wg.autocast("cpu"):
    print("autocast", forked(lambda: (wg.ones(2, 2) @ wg.ones(2, 2)).dtype == wg.bfloat16))

codes = []
def inside(t):
    codes.append(forked(lambda: trains() and not (t * t).isnan().any().sum().requires_grad))
    return (t * t).sum()
wg.vmap(inside)(wg.ones(2, 3))
wg.grad(inside)(wg.ones(3))
print("transforms", codes)
def hook(g):
    codes.append(forked(trains))
codes.clear()
y.register_hook(hook)
y.backward()
print("hook", codes, x.grad[0].item())
""",
        tmp_path,
    )
    assert out == ["plain 0", "recorded 0", "no_grad 0", "autocast 0", "transforms [0, 0]", "hook [0] 2.0"]


@forks
def test_forks_while_other_threads_plan_fourier_transforms(tmp_path: Path) -> None:
    out = alone(
        """
import signal
import wengert.fft

done = threading.Event()

def plans():
    n = 0
    while not done.is_set():
        n = n % 3000 + 1
        wg.fft.rfft(wg.ones(n))

threads = [threading.Thread(target=plans) for _ in range(2)]
for thread in threads:
    thread.start()
codes = []
for n in range(20):
    child = os.fork()
    if child == 0:
        # A lock that stayed closed would end the child so.
        signal.alarm(60)
        os._exit(int(round(wg.fft.rfft(wg.ones(4000 + n)).real[0].item()) != 4000 + n))
    codes.append(os.waitpid(child, 0)[1])
done.set()
for thread in threads:
    thread.join()
print(set(codes))
""",
        tmp_path,
    )
    assert out == ["{0}"]


WORKERS = """
import multiprocessing
import pickle

def train(model):
    x = wg.ones(4, 3)
    model(x).sum().backward()
    return [p.grad.tolist() for p in model.parameters()], [p.detach() for p in model.parameters()]

def main(method):
    wg.manual_seed(0)
    model = wg.nn.Linear(3, 2)
    wg.ones(300, 300) @ wg.ones(300, 300)
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.map(train, [model, model, model])
    expected = train(model)
    for grads, values in results:
        assert grads == expected[0]
        assert all(a.tolist() == b.tolist() for a, b in zip(values, expected[1]))
    print(method, len(results))

if __name__ == "__main__":
    main(METHOD)
"""


@pytest.mark.parametrize("method", [pytest.param("fork", marks=forks), "spawn"])
def test_pools_of_workers(method: str, tmp_path: Path) -> None:
    assert alone(WORKERS.replace("METHOD", repr(method)), tmp_path) == [f"{method} 3"]


def test_pickles_keep_values_and_flags() -> None:
    for dtype in (wg.float64, wg.float32, wg.float16, wg.bfloat16, wg.int64, wg.int32, wg.uint8, wg.bool):
        t = wg.arange(6.0).reshape(2, 3).to(dtype).mT
        back = pickle.loads(pickle.dumps(t))
        assert back.dtype == dtype
        assert back.tolist() == t.tolist()
    leaf = wg.ones(2, requires_grad=True)
    assert pickle.loads(pickle.dumps(leaf)).requires_grad
    for broken in (b"", pickle.dumps(leaf)[:-5], pickle.dumps(leaf).replace(b"float32", b"float99")):
        with pytest.raises((pickle.UnpicklingError, EOFError, ValueError, TypeError)):
            pickle.loads(broken)


def test_the_interpreter_ends_while_threads_are_at_work(tmp_path: Path) -> None:
    out = alone(
        """
import time
started = threading.Semaphore(0)
def work():
    x = wg.ones(100, 100, requires_grad=True)
    hook = lambda g: None
    x.register_hook(hook)
    first = True
    while True:
        y = x
        for _ in range(20):
            y = y @ x
        y.register_hook(hook)
        with wg.no_grad():
            (y * 0).sum()
        y.sum().backward()
        if first:
            started.release()
            first = False
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for _ in range(3):
    started.acquire()
print("end")
""",
        tmp_path,
    )
    assert out == ["end"]


CALLBACKS = {
    "hook": "x = wg.ones(2, requires_grad=True); y = x * 2; y.register_hook(slow); y.sum().backward()",
    "function": "wg.grad(lambda x: (slow(x), x.sum())[1])(wg.ones(2))",
    "batched function": "wg.vmap(lambda x: (slow(x), x)[1])(wg.ones(2))",
    "checkpoint": "wg.utils.checkpoint.checkpoint(lambda x: (slow(x), x * 2)[1], wg.ones(2, requires_grad=True))",
    "rule": """f = wg.custom_vjp(lambda x: x * 2)
f.defvjp(lambda x: (x * 2, None), lambda kept, g: (slow(g), (g * 2,))[1])
wg.grad(lambda x: f(x).sum())(wg.ones(2))""",
}


@pytest.mark.parametrize("kind", CALLBACKS)
def test_the_interpreter_ends_while_a_thread_is_in_a_long_callback(kind: str, tmp_path: Path) -> None:
    """Before Python 3.14 it unwinds such threads by force, which frames of Rust do not survive."""
    body = CALLBACKS[kind].replace("\n", "\n    ")
    out = alone(
        f"""
import time
started = threading.Event()
def slow(_):
    started.set()
    while True:
        pass
class Last:
    def __del__(self, sleep=time.sleep):
        sleep(0.3)
def work():
    {body}
last = Last()
threading.Thread(target=work, daemon=True).start()
assert started.wait(60)
print("end")
""",
        tmp_path,
    )
    assert out == ["end"]


@forks
@pytest.mark.gpu
def test_a_gpu_says_that_it_does_not_survive_a_fork(tmp_path: Path) -> None:
    out = alone(
        """
x = wg.ones(4, device="gpu")
parent = os.getpid()
child = os.fork()
if child == 0:
    for use in (lambda: x + 1, lambda: wg.ones(2, device="gpu"), x.tolist, x.cpu):
        try:
            use()
            print("worked")
        except RuntimeError as error:
            print(type(error).__name__, str(error).replace(str(parent), "P").replace(str(os.getpid()), "C"))
    w = wg.ones(2, requires_grad=True)
    (w * w).sum().backward()
    print(w.grad.tolist())
    sys.stdout.flush()
    os._exit(0)
print(os.waitpid(child, 0)[1], (x + 1).tolist())
""",
        tmp_path,
    )
    message = (
        "DeviceError gpu:0 was opened by process P and cannot be used by its forked child C; start workers "
        "with the 'spawn' method"
    )
    assert out == [message] * 4 + ["[2.0, 2.0]", "0 [2.0, 2.0, 2.0, 2.0]"]
