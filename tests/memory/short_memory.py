"""Runs operations while memory is short: every large allocation fails in turn.

`test_short_memory.py` runs it in a process of its own, since what it looks for ends the process.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
import wengert.nn.functional as F
from wengert import _core, memory

#: Allocations of so many bytes or more fail: all of them. A little is kept back for those of a few bytes.
LARGE = 1
N = 1 << 16

rng = np.random.default_rng(0)
X = wg.tensor(rng.normal(size=(N,)))
SQUARE = wg.tensor(rng.normal(size=(256, 256)))
TALL = wg.tensor(rng.normal(size=(2, N // 2)))
BYTES = wg.zeros(1 << 20, dtype=wg.uint8)
MASK = X > 0
INDEX = wg.tensor(rng.integers(0, N, N))
IMAGE = wg.tensor(rng.normal(size=(4, 8, 64, 64)).astype("float32"))
KERNEL = wg.tensor(rng.normal(size=(8, 8, 3, 3)).astype("float32"))
HEADS = wg.tensor(rng.normal(size=(4, 4, 160, 64)).astype("float32"))
DEEP = wg.tensor(rng.normal(size=(30, 20000)).astype("float32"))
DEFINITE = SQUARE @ SQUARE.t() + wg.eye(256, dtype=wg.float64)
COMPLEX = wg.complex(SQUARE, SQUARE.t())
SINGULAR = wg.ones(40, 40, dtype=wg.float64)
LIST = list(range(1 << 16))
FILE = io.BytesIO()
wg.save(X, FILE)
PICKLED = pickle.dumps(X)


def _put(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def _backward(f: Callable[[Any], Any], x: Any) -> None:
    x = x.detach().requires_grad_()
    f(x).sum().backward()


def _loaded() -> Any:
    FILE.seek(0)
    return wg.load(FILE)


def _fresh() -> int:
    """A number that grows: a transform of a length that no other had has no plan yet."""
    global _SEEN
    _SEEN += 1
    return _SEEN


_SEEN = 0

OPERATIONS: dict[str, Callable[[], Any]] = {
    "add": lambda: X + X,
    "exp": lambda: X.exp(),
    "cast": lambda: X.float(),
    "where": lambda: wg.where(MASK, X, 0.0),
    "transpose": lambda: SQUARE.t().contiguous(),
    "cat": lambda: wg.cat([X, X]),
    "sum of columns": lambda: TALL.sum(0),
    "sum of rows": lambda: TALL.sum(1),
    "any": lambda: BYTES.any(),
    "var": lambda: TALL.var(0),
    "prod": lambda: TALL.prod(0),
    "amax": lambda: TALL.amax(0),
    "argmax": lambda: TALL.argmax(0),
    "logsumexp": lambda: TALL.logsumexp(0),
    "softmax": lambda: TALL.softmax(0),
    "cumsum": lambda: X.cumsum(0),
    "cumsum of columns": lambda: TALL.cumsum(0),
    "cumprod of columns": lambda: TALL.cumprod(0),
    "cummax of columns": lambda: TALL.cummax(0),
    "linear_recurrence": lambda: TALL.linear_recurrence(TALL, 0),
    "sort": lambda: X.sort(),
    "sort of columns": lambda: TALL.sort(0),
    "topk": lambda: X.topk(N // 2),
    "unique": lambda: X.unique(),
    "median": lambda: X.median(),
    "searchsorted": lambda: wg.searchsorted(wg.arange(9.0, dtype=wg.float64), X),
    "bincount": lambda: INDEX.bincount(),
    "nonzero": lambda: MASK.nonzero(),
    "x[mask]": lambda: X[MASK],
    "masked_select": lambda: X.masked_select(MASK),
    "x[index]": lambda: X[INDEX],
    "take": lambda: X.take(INDEX),
    "gather": lambda: X.gather(0, INDEX),
    "index_select": lambda: X.index_select(0, INDEX),
    "x[index] = x": lambda: _put(X.clone(), INDEX, X),
    "x[index] = 1": lambda: _put(X.clone(), INDEX, 1),
    "x[mask] = x[mask]": lambda: _put(X.clone(), MASK, X[MASK]),
    "x[mask] = 1": lambda: _put(X.clone(), MASK, 1),
    "index_put_": lambda: BYTES.index_put_((wg.tensor([3]),), wg.tensor(1, dtype=wg.uint8)),
    "index_put that adds": lambda: X.index_put((INDEX,), X, accumulate=True),
    "index_add": lambda: X.index_add(0, INDEX, X),
    "index_copy": lambda: X.index_copy(0, INDEX, X),
    "index_fill": lambda: X.index_fill(0, INDEX, 1),
    "scatter": lambda: X.scatter(0, INDEX, X),
    "scatter_add": lambda: X.scatter_add(0, INDEX, X),
    "scatter_reduce": lambda: X.scatter_reduce(0, INDEX, X, "amax"),
    "masked_fill": lambda: X.masked_fill(MASK, 0),
    "masked_scatter": lambda: X.masked_scatter(MASK, X),
    "repeat_interleave": lambda: X.repeat_interleave(2),
    "roll": lambda: X.roll(1),
    "flip": lambda: X.flip(0),
    "pad": lambda: F.pad(TALL, (1, 1, 1, 1)),
    "conv2d": lambda: F.conv2d(IMAGE, KERNEL),
    "max_pool2d": lambda: F.max_pool2d(IMAGE, 2),
    "layer_norm": lambda: F.layer_norm(TALL, (N // 2,)),
    "rms_norm": lambda: F.rms_norm(TALL, (N // 2,)),
    "cross_entropy": lambda: F.cross_entropy(SQUARE, wg.zeros(256, dtype=wg.int64)),
    "attention": lambda: F.scaled_dot_product_attention(HEADS, HEADS, HEADS),
    "matmul": lambda: SQUARE @ SQUARE,
    "matmul of transposes": lambda: SQUARE.t() @ SQUARE.t(),
    "matmul of a long depth": lambda: DEEP @ DEEP.t(),
    "matmul of halves": lambda: SQUARE.half() @ SQUARE.half(),
    "matmul of bfloat16": lambda: SQUARE.bfloat16() @ SQUARE.bfloat16(),
    "matmul of integers": lambda: INDEX.reshape(256, 256) @ INDEX.reshape(256, 256).t(),
    "matmul of complex numbers": lambda: COMPLEX @ COMPLEX,
    "matmul of a batch": lambda: SQUARE.reshape(64, 32, 32) @ SQUARE.reshape(64, 32, 32).mT,
    "matrix by vector": lambda: SQUARE.t() @ SQUARE[:, 3],
    "linear": lambda: F.linear(DEEP.reshape(-1, 1000), DEEP.reshape(-1, 1000)),
    "einsum": lambda: wg.einsum("ij,kj->ki", SQUARE, SQUARE),
    "fft": lambda: wg.fft.fft(X[: N - _fresh()]),
    "fft of a prime length": lambda: wg.fft.fft(X[:65521]),
    "fft of columns": lambda: wg.fft.fft(TALL[:, : N // 2 - _fresh()], dim=0),
    "rfft": lambda: wg.fft.rfft(X[: N - _fresh()]),
    "irfft": lambda: wg.fft.irfft(X, N - _fresh()),
    "stft": lambda: wg.stft(X, 512, window=wg.hann_window(512, dtype=wg.float64), return_complex=True),
    "cholesky": lambda: wg.linalg.cholesky(DEFINITE),
    "lu": lambda: wg.linalg.lu_factor(SQUARE),
    "solve": lambda: wg.linalg.solve(SQUARE, SQUARE),
    "triangular": lambda: wg.linalg.solve_triangular(SQUARE, SQUARE, upper=True),
    "inv": lambda: wg.linalg.inv(COMPLEX),
    "det": lambda: wg.linalg.det(SQUARE),
    "slope of det": lambda: _backward(wg.linalg.det, SINGULAR),
    "qr": lambda: wg.linalg.qr(SQUARE),
    "complete qr": lambda: wg.linalg.qr(SQUARE[:, :20], mode="complete"),
    "eigh": lambda: wg.linalg.eigh(DEFINITE),
    "eig": lambda: wg.linalg.eig(SQUARE[:100, :100]),
    "eig of complex numbers": lambda: wg.linalg.eig(COMPLEX[:100, :100]),
    "svd": lambda: wg.linalg.svd(SQUARE),
    "svd of a wide matrix": lambda: wg.linalg.svd(TALL[:, :2000]),
    "pinv": lambda: wg.linalg.pinv(COMPLEX[:100, :50]),
    "lstsq": lambda: wg.linalg.lstsq(SQUARE, SQUARE),
    "matrix_exp": lambda: wg.linalg.matrix_exp(COMPLEX[:100, :100]),
    "factorisations of a batch": lambda: wg.linalg.svd(SQUARE.reshape(64, 32, 32)),
    "randn": lambda: wg.randn(N),
    "randperm": lambda: wg.randperm(N),
    "arange": lambda: wg.arange(N),
    "eye": lambda: wg.eye(400),
    "tolist": lambda: X.tolist(),
    "tensor of a list": lambda: wg.tensor(LIST),
    "tensor of floats": lambda: wg.tensor([0.5, *LIST]),
    "complex numbers": lambda: wg.tensor([0.5j, *LIST]),
    "numpy": lambda: wg.tensor(X.numpy()),
    "str": lambda: str(X),
    "pickle": lambda: pickle.dumps(X),
    "unpickle": lambda: pickle.loads(PICKLED),
    "save": lambda: wg.save(X, io.BytesIO()),
    "load": _loaded,
    "backward of exp": lambda: _backward(lambda x: x.exp(), X),
    "backward of sort": lambda: _backward(lambda x: x.sort().values, X),
    "backward of x[index]": lambda: _backward(lambda x: x[INDEX], X),
    "backward of x[index] = v": lambda: _backward(lambda x: _put(X * 1, INDEX, x), X),
    "backward of conv2d": lambda: _backward(lambda k: F.conv2d(IMAGE, k), KERNEL),
    "backward of attention": lambda: _backward(
        lambda q: F.scaled_dot_product_attention(q, HEADS, HEADS), HEADS
    ),
    "backward of max_pool2d": lambda: _backward(lambda x: F.max_pool2d(x, 2), IMAGE),
    "backward of cumprod": lambda: _backward(lambda x: x.cumprod(0), TALL),
    "jvp": lambda: wg.jvp(lambda x: x.sin() * x, (X,), (X,)),
    "vmap": lambda: wg.vmap(lambda x: x.sort().values)(TALL),
}


def walk(name: str) -> int:
    """Lets the first, the second, ... large allocation of an operation fail; how many there are."""
    f = OPERATIONS[name]
    for count in range(1000):
        memory.set_cache_limit(0)
        _core._fail_allocations(count, LARGE)
        try:
            f()
        except MemoryError:
            continue
        else:
            return count
        finally:
            _core._fail_allocations(None)
    raise AssertionError(f"{name}: no end of allocations")


def main(names: list[str]) -> None:
    """Prints what comes through."""
    wg.set_num_threads(2)
    for name in names or OPERATIONS:
        before = X.sum().item()
        print(name, end=": ", flush=True)
        print(walk(name), flush=True)
        assert X.sum().item() == before, f"{name} changed its operand"


if __name__ == "__main__":
    main(sys.argv[1:])
