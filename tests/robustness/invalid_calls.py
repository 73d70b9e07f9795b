"""Calls every public function and method with arguments that make no sense; `test_invalid_calls.py` runs it.

Prints a line per outcome that is no ordinary exception. Each function is called in a child of its own, and
the call that is about to be made is kept in a file, so that a crash can be traced to it.
Usage: `python invalid_calls.py SEED COUNT`.
"""

import inspect
import os
import random
import resource
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
import wengert.nn.functional as F

ALLOWED = (
    TypeError, ValueError, IndexError, RuntimeError, NotImplementedError, MemoryError, AttributeError,
    KeyError, BufferError, ZeroDivisionError, StopIteration, AssertionError, ImportError,
)  # fmt: skip
# What ends the process, waits, opens files, or changes settings that later calls depend on.
SKIPPED = {
    "set_num_threads",
    "set_default_device",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_printoptions",
    "demo",
    "load",
    "save",
}


def tensors() -> list[Any]:
    """Tensors of every dtype and of awkward shapes."""
    out: list[Any] = [
        wg.zeros(shape) for shape in ((), (0,), (1,), (3,), (2, 3), (3, 3), (2, 0, 3), (1,) * 8)
    ]
    out += [
        wg.ones(2, 3).to(getattr(wg, d)) for d in ("float64", "float16", "bfloat16", "int32", "int64", "bool")
    ]
    out += [
        wg.ones(2, 3, requires_grad=True),
        wg.ones(2, 3, requires_grad=True) * 2,
        wg.arange(6.0).reshape(2, 3).mT,
        wg.ones(1).expand(4),
        wg.ones(1).expand(2**31, 2**20),
        wg.tensor([float("nan"), float("inf"), -1.0]),
        wg.tensor([-1, 5, 2**40]),
        wg.tensor([0, 1, 2]),
    ]
    return out


SCALARS: list[Any] = [
    None, True, 0, 1, -1, 2, 3, 7, 2**31, 2**40, 2**63 - 1, -(2**63), 2**64, 2**70,
    -(2**70), 0.0, 0.5, -1.5, 1e300, float("nan"),
    float("inf"), 1j, "", "x", "mean", "float32", "gpu:7", "cpu", "a\0b", "\ud800", b"abc", (), (0,), (-1,), (1, 2),
    (2, 3), (0, 0), (2**31, 2**31), [], [0, 1], [[1.0], [2.0, 3.0]], [None], {}, {"a": 1}, {1}, object(), int, len,
    slice(None), slice(None, None, -1), slice(0, 2**70, -(2**63)), ..., np.zeros((2, 3)), np.array([], dtype="S1"),
    np.float64(2), wg.float32, wg.int64, wg.bool, lambda *a: a[0] if a else None, lambda *a: 1 / 0,
]  # fmt: skip


def subjects() -> list[tuple[str, Callable[..., Any], bool]]:
    """Public functions and classes, and the methods of tensors (which need one)."""
    found: list[tuple[str, Callable[..., Any], bool]] = []
    modules = {"wg": wg, "F": F, "nn": wg.nn, "optim": wg.optim, "autograd": wg.autograd, "tree": wg.tree}
    for prefix, module in modules.items():
        for name in sorted(dir(module)):
            thing = getattr(module, name, None)
            if name.startswith("_") or name in SKIPPED or not callable(thing) or inspect.ismodule(thing):
                continue
            found.append((f"{prefix}.{name}", thing, False))
    for name in sorted(dir(wg._core)):
        thing = getattr(wg._core, name)
        if name.startswith("_") and not name.startswith("__") and callable(thing) and name not in UNBALANCED:
            found.append((f"_core.{name}", thing, False))
    for name in sorted(dir(wg.Tensor)):
        if name not in OBJECT and callable(getattr(wg.Tensor, name)):
            found.append((f"Tensor.{name}", getattr(wg.Tensor, name), True))
    return found


# Halves of context managers: calling one alone is what it is for.
UNBALANCED = {
    "_set_grad_enabled", "_restore_grad", "_autocast_enter", "_autocast_exit", "_saved_hooks_enter",
    "_saved_hooks_exit",
}  # fmt: skip
OBJECT = {
    "__class__", "__init_subclass__", "__subclasshook__", "__new__", "__init__", "__getattribute__", "__setattr__",
    "__delattr__", "__dir__", "__sizeof__",
}  # fmt: skip


def short(x: Any) -> str:
    """A name for an argument."""
    if isinstance(x, wg.Tensor):
        return f"tensor({x.dtype}, {tuple(x.shape)}, grad={x.requires_grad})"
    return ascii(x)[:60]


def main() -> None:
    """Makes `count` calls of each subject."""
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    found = subjects()
    with tempfile.NamedTemporaryFile("w+", buffering=1) as log:
        for name, thing, bound in found:
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                signal.alarm(100)
                rng, pool = random.Random(f"{seed} {name}"), tensors()
                for _ in range(count):
                    attempt(rng, pool, name, thing, bound, log)
                check()
                sys.stdout.flush()
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            if status != 0:
                log.seek(0)
                print(f"status {status}: {log.read()}"[:400])
    print("called", len(found))


def check() -> None:
    """Whatever happened, the library works."""
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0]
    assert wg.grad(wg.grad(lambda t: t**3))(wg.tensor(2.0)).item() == 12.0


def attempt(
    rng: random.Random, pool: list[Any], name: str, thing: Callable[..., Any], bound: bool, log: Any
) -> None:
    """One call."""
    args = [rng.choice(pool) if rng.random() < 0.5 else rng.choice(SCALARS) for _ in range(rng.randint(0, 4))]
    if bound:
        args.insert(0, rng.choice(pool))
    log.seek(0)
    log.truncate()
    log.write(f"{name}({', '.join(map(short, args))})\n")
    try:
        out = thing(*args)
        if inspect.isgenerator(out):
            next(out)
    except ALLOWED:
        pass
    except BaseException as error:
        print(f"{type(error).__name__}: {error}: {name}({', '.join(map(short, args))})"[:400])


if __name__ == "__main__":
    main()
