"""Calls with integers that no axis and no int64 holds; `test_absurd_sizes.py` runs it.

Prints a line per call that does not raise an error which names what is wrong. A call that computes until the
limit of the processor's time ends the process.
"""

import resource
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
import wengert.nn.functional as F
from wengert import linalg, nn

X, M, I = wg.arange(6.0), wg.arange(6.0).reshape(2, 3), wg.tensor([0, 1, 2])
LINE, IMAGE = wg.ones(1, 1, 4), wg.ones(1, 1, 4, 4)
KERNEL = wg.ones(1, 1, 2, 2)


def _put(key: Any, value: Any) -> None:
    X.clone()[key] = value


CALLS: dict[str, Callable[[int], Any]] = {
    "zeros": lambda n: wg.zeros(n),
    "zeros of two axes": lambda n: wg.zeros((2, n)),
    "full": lambda n: wg.full((n,), 1.0),
    "randn": lambda n: wg.randn(n),
    "eye": lambda n: wg.eye(n),
    "eye of columns": lambda n: wg.eye(2, n),
    "arange": lambda n: wg.arange(n),
    "linspace": lambda n: wg.linspace(0, 1, n),
    "logspace": lambda n: wg.logspace(0, 1, n),
    "randperm": lambda n: wg.randperm(n),
    "randint of a shape": lambda n: wg.randint(0, 5, (n,)),
    "x[n]": lambda n: X[n],
    "x[0, n]": lambda n: M[0, n],
    "x[[0], n]": lambda n: M[[0], n],
    "x[n] = 1": lambda n: _put(n, 1.0),
    "x[(n,)] = 1": lambda n: _put((n,), 1.0),
    "repeat": lambda n: X.repeat(n),
    "tile": lambda n: wg.tile(X, (n,)),
    "expand": lambda n: X.expand(n, 6),
    "repeat_interleave": lambda n: X.repeat_interleave(n),
    "reshape": lambda n: X.reshape(n),
    "view": lambda n: X.view(2, n),
    "unflatten": lambda n: X.unflatten(0, (n, -1)),
    "sum": lambda n: X.sum(n),
    "sum of axes": lambda n: X.sum((0, n)),
    "unsqueeze": lambda n: X.unsqueeze(n),
    "transpose": lambda n: X.transpose(0, n),
    "permute": lambda n: M.permute(0, n),
    "flip": lambda n: X.flip(n),
    "softmax": lambda n: X.softmax(n),
    "narrow": lambda n: X.narrow(0, 0, n),
    "narrow from": lambda n: X.narrow(0, n, 1),
    "select": lambda n: X.select(0, n),
    "tensor_split": lambda n: X.tensor_split(n),
    "unfold": lambda n: X.unfold(0, n, 1),
    "topk": lambda n: X.topk(n),
    "sort": lambda n: X.sort(n),
    "diag": lambda n: X.diag(n),
    "tril_indices": lambda n: wg.tril_indices(n, n),
    "one_hot": lambda n: F.one_hot(I, n),
    "combinations": lambda n: wg.combinations(wg.arange(100), 50),
    "combinations that repeat": lambda n: wg.combinations(I, n, True),
    "vander": lambda n: wg.vander(X, n),
    "cartesian_prod": lambda n: wg.cartesian_prod(*[wg.arange(100)] * 8),
    "hann_window": lambda n: wg.hann_window(n),
    "kaiser_window": lambda n: wg.kaiser_window(n),
    "F.unfold": lambda n: F.unfold(IMAGE, n),
    "F.fold": lambda n: F.fold(wg.ones(1, 4, 9), (n, n), 2),
    "interpolate": lambda n: F.interpolate(IMAGE, n),
    "interpolate one axis": lambda n: F.interpolate(IMAGE, (n, 1)),
    "interpolate by a factor": lambda n: F.interpolate(IMAGE, scale_factor=float(n)),
    "interpolate exactly": lambda n: F.interpolate(IMAGE, n, mode="nearest-exact"),
    "interpolate areas": lambda n: F.interpolate(IMAGE, n, mode="area"),
    "interpolate linearly": lambda n: F.interpolate(IMAGE, n, mode="bilinear"),
    "interpolate cubically": lambda n: F.interpolate(IMAGE, n, mode="bicubic"),
    "interpolate without aliasing": lambda n: F.interpolate(IMAGE, n, mode="bilinear", antialias=True),
    "adaptive_avg_pool2d": lambda n: F.adaptive_avg_pool2d(IMAGE, n),
    "adaptive_avg_pool1d": lambda n: F.adaptive_avg_pool1d(LINE, n),
    "adaptive_max_pool2d": lambda n: F.adaptive_max_pool2d(IMAGE, n),
    "adaptive_max_pool1d": lambda n: F.adaptive_max_pool1d(LINE, n),
    "max_pool2d": lambda n: F.max_pool2d(IMAGE, n),
    "avg_pool2d": lambda n: F.avg_pool2d(IMAGE, 2, n),
    "max_unpool2d": lambda n: F.max_unpool2d(IMAGE, wg.zeros(1, 1, 4, 4, dtype=wg.int64), n),
    "conv2d stride": lambda n: F.conv2d(IMAGE, KERNEL, stride=n),
    "conv2d padding": lambda n: F.conv2d(IMAGE, KERNEL, padding=n),
    "conv2d dilation": lambda n: F.conv2d(IMAGE, KERNEL, dilation=n),
    "conv2d groups": lambda n: F.conv2d(IMAGE, KERNEL, groups=n),
    "pad": lambda n: F.pad(X, (0, n)),
    "pad by reflection": lambda n: F.pad(LINE, (n, 0), "reflect"),
    "pad by replication": lambda n: F.pad(LINE, (0, n), "replicate"),
    "pixel_shuffle": lambda n: F.pixel_shuffle(IMAGE, n),
    "glu": lambda n: F.glu(X, n),
    "fft": lambda n: wg.fft.fft(X, n),
    "irfft": lambda n: wg.fft.irfft(X, n),
    "fftfreq": lambda n: wg.fft.fftfreq(n),
    "rfftfreq": lambda n: wg.fft.rfftfreq(n),
    "mvlgamma": lambda n: X.mvlgamma(n),
    "bincount": lambda n: wg.bincount(I, minlength=n),
    "histc": lambda n: X.histc(n),
    "multinomial": lambda n: X.multinomial(n, True),
    "as_strided": lambda n: X.as_strided((n,), (1,)),
    "tensordot": lambda n: wg.tensordot(M, M, n),
    "tensorinv": lambda n: linalg.tensorinv(wg.eye(6), n),
    "stack": lambda n: wg.stack([X], n),
    "vmap": lambda n: wg.vmap(lambda a: a, n)(M),
    "LSTM": lambda n: nn.LSTM(1, 1, n),
    "GRU": lambda n: nn.GRU(1, 1, num_layers=n),
    "RNN": lambda n: nn.RNN(1, 1, n),
    "TransformerEncoder": lambda n: nn.TransformerEncoder(nn.TransformerEncoderLayer(2, 1, 2), n),
    "TransformerDecoder": lambda n: nn.TransformerDecoder(nn.TransformerDecoderLayer(2, 1, 2), n),
    "Transformer": lambda n: nn.Transformer(2, 1, n, 1, 2),
    "Transformer of decoders": lambda n: nn.Transformer(2, 1, 1, n, 2),
    "device": lambda n: wg.device("gpu", n),
    "gpu": lambda n: X.gpu(n),
    "gpu.info": lambda n: wg.gpu.info(n),
    "polygamma": lambda n: X.polygamma(n),
}
#: Those that take any integer that int64 holds.
WIDE: dict[str, Callable[[int], Any]] = {
    "randint": lambda n: wg.randint(n, (2,)),
    "randint from": lambda n: wg.randint(-n - 1, 5, (2,)),
    "full of": lambda n: wg.full((2,), n),
    "tensor": lambda n: wg.tensor([1, n]),
    "x = n": lambda n: I.fill_(n),
    "roll": lambda n: X.roll(n),
    "diagonal": lambda n: M.diagonal(n),
    "tril": lambda n: M.tril(n),
    "chunk": lambda n: X.chunk(n),
    "diff": lambda n: X.diff(n),
    "nll_loss": lambda n: F.nll_loss(M, I[:2], ignore_index=n),
    "debug": lambda n: wg.debug(n),
    "set_num_threads": lambda n: wg.set_num_threads(n),
    "set_cache_limit": lambda n: wg.memory.set_cache_limit(n),
}


def main() -> None:
    """Makes each call with integers from 2^40 on."""
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for calls, sizes in ((CALLS, (2**40, 2**62, 2**63, 2**70)), (WIDE, (2**63, 2**70))):
        for name, f in calls.items():
            for n in sizes:
                print(name, n, end=": ", flush=True)
                try:
                    f(n)
                except (ValueError, IndexError, MemoryError) as error:
                    print(type(error).__name__)
                except BaseException as error:
                    print("SURPRISE", type(error).__name__, error)
                else:
                    print("SURPRISE no error")


if __name__ == "__main__":
    main()
