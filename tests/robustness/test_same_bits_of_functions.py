"""Functions that add up many numbers have the same bits for every number of threads, and so have their gradients:
normalisations, losses, products, convolutions, pools, scans, attention, what counts and what scatters.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import wengert as wg
import wengert.nn.functional as F
from hypothesis import assume, given, strategies as st
from support import bits
from wengert import Tensor

#: A function and how long the axes of its arguments may be: the named ones are drawn, the same name the same length.
Case = tuple[Callable[..., Tensor], list[tuple[str | int, ...]]]


def places(x: Tensor, most: int) -> Tensor:
    """Integers below `most`, of which many are the same, decided by the numbers of `x`."""
    return (x.detach().double().abs() * 1e3).long() % max(most, 1)


CASES: dict[str, Case] = {
    "softmax": (lambda x: x.softmax(-1), [("rows", "n")]),
    "softmax of columns": (lambda x: x.softmax(0), [("n", "rows")]),
    "log_softmax": (lambda x: x.log_softmax(-1), [("rows", "n")]),
    "logsumexp": (lambda x: x.logsumexp(-1), [("rows", "n")]),
    "logcumsumexp": (lambda x: x.logcumsumexp(-1), [("rows", "n")]),
    "var": (lambda x: x.var(0), [("rows", "n")]),
    "var of all": (lambda x: x.var(), [("rows", "n")]),
    "norm": (lambda x: x.norm(), [("rows", "n")]),
    "norm of rows": (lambda x: x.norm(dim=-1), [("rows", "n")]),
    "cumsum": (lambda x: x.cumsum(-1), [("rows", "n")]),
    "cumsum of columns": (lambda x: x.cumsum(0), [("rows", "n")]),
    "cumprod": (lambda x: (x * 0.1 + 1).cumprod(-1), [("rows", "n")]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), [("rows", "n"), ("n",), ("n",)]),
    "rms_norm": (lambda x, w: F.rms_norm(x, x.shape[-1:], w), [("rows", "n"), ("n",)]),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), [("few", 4, "n"), (4,), (4,)]),
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        [("rows", 3, "n"), (3,), (3,)],
    ),
    "instance_norm": (F.instance_norm, [("few", 3, "rows")]),
    "cross_entropy": (
        lambda x, t: F.cross_entropy(x, places(t, x.shape[1])),
        [("rows", "n"), ("rows",)],
    ),
    "cross_entropy of probabilities": (
        lambda x, t: F.cross_entropy(x, t.softmax(-1), label_smoothing=0.1),
        [("rows", "n"), ("rows", "n")],
    ),
    "mse_loss": (F.mse_loss, [("rows", "n"), ("rows", "n")]),
    "matmul": (lambda x, y: x @ y, [("rows", "n"), ("n", "few")]),
    "matmul, thin": (lambda x, y: x @ y, [("few", "rows"), ("rows", "few")]),
    "matrix by vector": (lambda x, y: x @ y, [("rows", "n"), ("n",)]),
    "vector by matrix": (lambda x, y: x @ y, [("rows",), ("rows", "n")]),
    "dot": (lambda x, y: x @ y, [("rows",), ("rows",)]),
    "outer": (wg.outer, [("rows",), ("n",)]),
    "bmm": (lambda x, y: x @ y, [("few", "n", "rows"), ("few", "rows", 3)]),
    "linear": (F.linear, [("rows", "n"), ("few", "n"), ("few",)]),
    "addmm": (wg.addmm, [("few",), ("rows", "n"), ("n", "few")]),
    "einsum": (lambda x, y: wg.einsum("ij,ik->jk", x, y), [("rows", "n"), ("rows", "few")]),
    "einsum of three": (
        lambda x, y, z: wg.einsum("ij,jk,ik->i", x, y, z),
        [("rows", "n"), ("n", "few"), ("rows", "few")],
    ),
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, padding=1), [("few", 3, "rows"), (4, 3, 3), (4,)]),
    "conv1d in groups": (
        lambda x, w: F.conv1d(x, w, padding=2, stride=2, groups=2),
        [("few", 4, "rows"), (6, 2, 5)],
    ),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, padding=1), [("few", 3, "n", 17), (4, 3, 3, 3), (4,)]),
    "conv2d of depths": (
        lambda x, w: F.conv2d(x, w, padding=1, groups=3),
        [("few", 3, "n", 9), (3, 1, 3, 3)],
    ),
    "conv_transpose1d": (F.conv_transpose1d, [("few", 3, "rows"), (3, 4, 3)]),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), [("few", 3, "rows")]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 1, 1), [("few", 3, "n", 17)]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 1, 1), [("few", 3, "n", 17)]),
    "lp_pool1d": (lambda x: F.lp_pool1d(F.pad(x, (0, 3)), 2, 3), [("few", 3, "rows")]),
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 5), [("few", 3, "rows")]),
    "interpolate": (
        lambda x: F.interpolate(x, scale_factor=1.7, mode="linear"),
        [("few", 3, "rows")],
    ),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        [("few", 2, "n", 5), ("few", 2, "rows", 5), ("few", 2, "rows", 7)],
    ),
    "causal attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(2, "n", 5), (2, "n", 5), (2, "n", 7)],
    ),
    "bincount": (lambda x: places(x, 7).bincount(minlength=7), [("rows",)]),
    "weighted bincount": (lambda x: places(x, 7).bincount(x), [("rows",)]),
    "index_add": (
        lambda x, y: x.index_add(0, places(y[:, 0], x.shape[0]), y),
        [("few", "n"), ("rows", "n")],
    ),
    "scatter_add": (
        lambda x, y: x.scatter_add(0, places(y, x.shape[0]), y),
        [("few", "n"), ("rows", "n")],
    ),
    "index_select": (lambda x, y: x.index_select(0, places(y, x.shape[0])), [("few", "n"), ("rows",)]),
    "gather": (lambda x, y: x.gather(0, places(y, x.shape[0])), [("few", "n"), ("rows", "n")]),
    "embedding": (lambda w, y: F.embedding(places(y, w.shape[0]), w), [("few", "n"), ("rows",)]),
    "embedding_bag": (
        lambda w, y: F.embedding_bag(places(y, w.shape[0]), w, mode="mean"),
        [("few", "n"), ("rows", 3)],
    ),
}


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = wg.get_num_threads()
    yield
    wg.set_num_threads(before)


def differences(name: str, dtype: str, lengths: dict[str, int], seed: int) -> str:
    """What differs that should not, in words; empty if all is well."""
    f, shapes = CASES[name]
    rng = np.random.default_rng(seed)
    found: list[list[np.ndarray]] = []
    drawn = [rng.normal(size=[lengths.get(str(n), n) for n in shape]) for shape in shapes]
    x = [wg.tensor(values).to(getattr(wg, dtype)) for values in drawn]
    for threads in (1, 2, 4):
        wg.set_num_threads(threads)
        leaves = [part.detach().clone().requires_grad_() for part in x]
        out = f(*leaves)
        results = [out.detach()]
        if out.requires_grad:
            g = wg.tensor(np.cos(np.arange(out.numel()))).reshape(out.shape).to(out.dtype)
            grads = wg.autograd.grad(out, leaves, g, allow_unused=True)
            results += [grad for grad in grads if grad is not None]
        found.append([bits(result) for result in results])
        for place, (a, b) in enumerate(zip(found[0], found[-1], strict=True)):
            if not np.array_equal(a, b):
                what = f"gradient {place}" if place else "value"
                return f"{(a != b).sum()} of {a.size} elements of the {what} for {threads} threads"
    return ""


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_large_ones(name: str, dtype: str) -> None:
    for seed, lengths in enumerate(({"rows": 4099, "n": 67, "few": 5}, {"rows": 513, "n": 1030, "few": 2})):
        assert differences(name, dtype, lengths, seed) == ""


@given(
    st.sampled_from(list(CASES)),
    st.sampled_from(["float32", "float64", "float16", "bfloat16"]),
    st.integers(1, 3000),
    st.integers(1, 300),
    st.integers(1, 9),
    st.integers(0, 99),
)
def test_any_lengths(name: str, dtype: str, rows: int, n: int, few: int, seed: int) -> None:
    # One value per channel has no variance: these two refuse it.
    assume({"batch_norm": rows * n, "instance_norm": rows}.get(name, 2) > 1)
    assert differences(name, dtype, {"rows": rows, "n": n, "few": few}, seed) == ""
