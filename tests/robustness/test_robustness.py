"""What must never happen: panics, dead interpreters, hangs and silent truncation, whatever a user passes in.

Each test is the smallest form of something that once went wrong or that was attacked on purpose. Inputs that
could take the interpreter down run in a process of their own.
"""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import wengert as wg


def alone(code: str) -> str:
    """Runs `code` in a fresh interpreter, which must end well; returns what it printed."""
    head = "import numpy as np, wengert as wg\n"
    done = subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-2000:])
    return done.stdout.strip()


# ---- what comes in from outside
# ----------------------------------------------------------------------------------


def test_lists_that_contain_themselves_are_refused():
    out = alone("""
own = [np.array(1)]
own.append(own)
deep = [np.array(1)]
for _ in range(100_000):
    deep = [np.array(1), deep]
for data in (own, deep):
    try:
        wg.tensor(data)
    except ValueError as error:
        print(error)
""")
    message = "lists nested more than 8 deep cannot become a tensor, which has at most that many axes"
    assert out.splitlines() == [message, message]


def test_bools_are_0_or_1_whatever_their_bytes_were():
    odd = np.array([2, 0, 255], np.uint8).view(bool)
    for t in (wg.from_numpy(odd), wg.tensor(odd), wg.from_dlpack(odd), wg.from_numpy(odd[::-1])):
        assert t.int().sum().item() == 2
        assert t.sum().item() == 2
        assert (t & True).tolist() == t.tolist()
        assert (t == True).tolist() == t.tolist()  # noqa: E712
    plain = np.array([True, False])
    shared = wg.from_numpy(plain)
    plain[1] = True
    assert shared.tolist() == [True, True]
    rebuild, (kind, (_, shape, dtype), requires) = wg.tensor([True, False]).__reduce__()
    assert rebuild(kind, (bytes([2, 7]), shape, dtype), requires).int().tolist() == [1, 1]


def test_scalars_of_numpy_are_copied():
    values = [wg.tensor(np.float64(i)) for i in range(1000)]
    values += [wg.as_tensor(np.float32(i)) for i in range(1000)]
    values += [wg.from_numpy(np.int64(i)) for i in range(1000)]
    assert [v.item() for v in values] == list(range(1000)) * 3


def test_read_only_and_unaligned_arrays_are_copied():
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    wg.from_numpy(fixed).add_(1)
    assert fixed.tolist() == [0, 0, 0]
    packed = np.zeros(4, dtype=[("a", "f4"), ("b", "i1")])
    t = wg.from_numpy(packed["a"])
    t.add_(1)
    assert t.tolist() == [1, 1, 1, 1]
    assert packed["a"].tolist() == [0, 0, 0, 0]
    spread = np.zeros(4, dtype=[("a", "f4"), ("b", "i4")])
    wg.from_numpy(spread["a"]).add_(1)
    assert spread["a"].tolist() == [1, 1, 1, 1]
    assert spread["b"].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("dtype", [">f4", ">i2", ">c8", "S3", "O", "M8[s]", [("a", "f4")]])
def test_arrays_of_other_types_are_refused(dtype):
    with pytest.raises(TypeError, match=r"not accepted; convert with array\.astype"):
        wg.from_numpy(np.zeros(3, dtype=dtype))


def test_a_dlpack_capsule_is_consumed_once():
    capsule = wg.arange(3.0).__dlpack__()

    class Exporter:
        def __dlpack__(self, **_):
            return capsule

        def __dlpack_device__(self):
            return (1, 0)

    assert wg.from_dlpack(Exporter()).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="consumed before"):
        wg.from_dlpack(Exporter())


# ---- sizes ---------------------------------------------------------------------------------------


def test_shapes_beyond_the_address_space_are_refused():
    with pytest.raises(
        wg.ShapeError, match=r"fewer than 2\^63 elements, got shape \(2147483648, 2147483648, 4\)"
    ):
        wg.zeros(1).expand(2**31, 2**31, 4)
    with pytest.raises(wg.ShapeError, match=r"fewer than 2\^63"):
        wg.zeros((0, 2**31, 2**31, 4))
    rebuild, (kind, (_, _, dtype), requires) = wg.tensor([1.0]).__reduce__()
    with pytest.raises(wg.ShapeError, match=r"fewer than 2\^63"):
        rebuild(kind, (b"", (2**31, 2**31, 4), dtype), requires)
    wide = wg.zeros(1, 1, 1, 1)
    with pytest.raises(MemoryError, match="exceeds the address space"):
        wide.expand(2**30, 2**30, 1, 1) + wide.expand(1, 1, 2**30, 2**30)


def test_an_axis_is_never_truncated():
    long = wg.zeros(1, dtype=wg.bool).expand(2**31)
    for join in (lambda: wg.cat([long, long]), lambda: long.repeat(2), lambda: long.tile(2)):
        with pytest.raises(wg.ShapeError, match=r"an axis holds at most 2\^32 - 1 elements, got 4294967296"):
            join()
    with pytest.raises(wg.ShapeError, match=r"at most 2\^32 - 1"):
        wg._core._pad(wg.zeros(3), [2**40, 0])
    with pytest.raises(wg.ShapeError, match=r"at most 2\^32 - 1"):
        wg._core._pad(wg.zeros(3), [2**63 - 1, 2**63 - 1])
    with pytest.raises(ValueError, match="reshape"):
        wg.zeros(3).reshape(-1, 2**62, 4)


def test_steps_beyond_an_axis_select_its_first_element():
    x = wg.arange(10.0)
    assert x[:: 2**40].tolist() == [0]
    assert x[3 :: 2**62].tolist() == [3]
    assert x[::-1][:: 2**63 - 1].tolist() == [9]
    x[1 :: 2**62] = 7
    assert x.tolist()[:3] == [0, 7, 2]


def test_extremes_and_differences_of_nothing():
    x = wg.zeros(3, 0, 2)
    assert x.min(0).values.shape == (0, 2)
    assert x.argmax(2).shape == (3, 0)
    with pytest.raises(ValueError):
        x.max(1)
    assert wg.zeros(3, 0).diff(2**62).shape == (3, 0)
    assert wg.zeros(3).diff(2**62).shape == (0,)


def test_diagonals_far_outside():
    x = wg.ones(3, 3)
    assert x.triu(2**63 - 1).sum().item() == 0
    assert x.triu(-(2**63)).sum().item() == 9
    assert x.tril(2**63 - 1).sum().item() == 9
    assert x.tril(-(2**63)).sum().item() == 0
    assert x.diagonal(-(2**63)).shape == (0,)
    assert x.diagonal(2**63 - 1).shape == (0,)
    with pytest.raises(wg.ShapeError):
        wg.ones(3).diag(-(2**63))


def test_a_tensor_too_large_for_the_machine_is_a_memory_error():
    out = alone("""
for make in (lambda: wg.zeros(2**31, 2**15), lambda: wg.randperm(2**31 * 2 - 1), lambda: wg.arange(2**50)):
    try:
        print(make().shape)
    except (MemoryError, ValueError) as error:
        print(type(error).__name__)
wide = wg.zeros(1).expand(2**31, 2**12)
try:
    wide[wg.tensor([0])] = 1
except RuntimeError as error:
    print(error)
""")
    assert out.splitlines()[0] == "MemoryError"
    assert out.splitlines()[2] == "ShapeError"
    assert "share memory; clone() it first" in out.splitlines()[3]


# ---- numbers -------------------------------------------------------------------------------------


def test_numbers_keep_their_value_or_raise():
    large = 2**60 + 1
    assert wg.arange(large, large + 3).tolist() == [large, large + 1, large + 2]
    assert wg.arange(2**53 + 1, 2**53 + 4).tolist() == [2**53 + 1, 2**53 + 2, 2**53 + 3]
    assert wg.arange(large, large - 5, -2).tolist() == [large, large - 2, large - 4]
    assert wg.tensor(16777217.0, dtype=wg.int64).item() == 16777217
    assert wg.tensor([16777217.0, 1.0], dtype=wg.int64).tolist() == [16777217, 1]
    for data, dtype in ((300, wg.uint8), ([0, -1], wg.uint8), ([2**40], wg.int32)):
        with pytest.raises(ValueError, match="does not fit into"):
            wg.tensor(data, dtype=dtype)
    byte = wg.tensor([44], dtype=wg.uint8)
    assert (byte == 300).tolist() == [False]
    assert (byte < 300).tolist() == [True]
    for operation in (lambda: byte + 300, lambda: byte.int() + 2**40):
        with pytest.raises(ValueError, match="does not fit into"):
            operation()
    with pytest.raises(ValueError, match="integers have no negative powers, got the exponent -1"):
        wg.tensor([2]) ** -1
    assert (wg.tensor([2.0]) ** -1).tolist() == [0.5]


# ---- one tensor, several users
# -----------------------------------------------------------------------------------


def test_a_hook_may_exchange_the_inputs_of_grad():
    x = wg.ones(3, requires_grad=True)
    y = x * 3

    def write(_):
        with wg.no_grad():
            x.add_(0)
        x.data = wg.zeros(3)

    y.register_hook(write)
    (g,) = wg.autograd.grad(y.sum(), [x])
    assert g.tolist() == [3, 3, 3]
    assert x.tolist() == [0, 0, 0]


def test_threads_share_a_tensor():
    x = wg.ones(300, 300)
    failures = []

    def run(work, times):
        try:
            for _ in range(times):
                work()
        except BaseException as error:
            failures.append(error)

    jobs = [(lambda: x @ x, 30), (lambda: x.mul_(1.0), 300), (lambda: x.requires_grad_(False), 300)]
    threads = [threading.Thread(target=run, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_threads_accumulate_into_one_leaf():
    x = wg.ones(3, requires_grad=True)
    threads = [
        threading.Thread(target=lambda: [(x * x).sum().backward() for _ in range(500)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [4000, 4000, 4000]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_computes():
    out = alone("""
import os, threading
stop = []
def work():
    while not stop:
        a = wg.rand(200, 200)
        a @ a
threads = [threading.Thread(target=work) for _ in range(2)]
[t.start() for t in threads]
codes = []
for _ in range(10):
    child = os.fork()
    if child == 0:
        x = wg.rand(200, 200, requires_grad=True)
        (x @ x).sum().backward()
        os._exit(0 if x.grad.shape == (200, 200) else 1)
    codes.append(os.waitpid(child, 0)[1])
stop.append(1)
[t.join() for t in threads]
print(codes)
""")
    assert out == str([0] * 10)


def test_a_million_operations_are_freed_without_recursion():
    out = alone("""
x = wg.ones(1, requires_grad=True)
y = x
for _ in range(300_000):
    y = y + 1
y.backward()
z = x
for _ in range(300_000):
    z = z + 1
del z
print(x.grad.item())
""")
    assert out == "1.0"


def test_regions_that_are_never_left_end_with_their_thread():
    out = alone("""
import threading
def work():
    hooks = wg.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    for region in (wg.autocast(), hooks, wg.no_grad()):
        region.__enter__()
    kept.append((wg.ones(2, requires_grad=True) * 2, hooks))
kept = []
thread = threading.Thread(target=work)
thread.start()
thread.join()
work()
print(wg.is_grad_enabled())
""")
    assert out == "False"


# ---- writes that overlap what they read
# --------------------------------------------------------------------------


def test_overlapping_writes_read_the_old_values():
    def check(write):
        a = np.arange(10.0)
        t = wg.tensor(a)
        write(t)
        write(a)
        assert t.tolist() == a.tolist()

    def shift(x):
        x[1:] = x[:-1].copy() if isinstance(x, np.ndarray) else x[:-1]

    def add(x):
        part = x[1:]
        part += x[:-1].copy() if isinstance(x, np.ndarray) else x[:-1]

    def reverse(x):
        x[:] = x[::-1].copy() if isinstance(x, np.ndarray) else x.flip(0)

    for write in (shift, add, reverse):
        check(write)
    square = wg.arange(9.0).reshape(3, 3)
    square.add_(square.T)
    assert square.tolist() == [[0, 4, 8], [4, 8, 12], [8, 12, 16]]


# ---- exceptions in callbacks
# -------------------------------------------------------------------------------------


def test_exceptions_pass_through_and_leave_nothing_behind():
    def broken(x):
        raise KeyError("mine")

    one = wg.ones(2)
    for call in (
        lambda: wg.grad(broken)(one),
        lambda: wg.vmap(broken)(one),
        lambda: wg.jvp(broken, (one,), (one,)),
        lambda: wg.hessian(broken)(one),
    ):
        with pytest.raises(KeyError, match="mine"):
            call()
    x = wg.ones(2, requires_grad=True)
    assert wg.is_grad_enabled()
    assert (x * x).requires_grad
    handle = x.register_hook(broken)
    with pytest.raises(KeyError, match="mine"):
        (x * x).sum().backward()
    handle.remove()
    x.grad = None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 2]
