"""Results have the same bits for every number of threads and every place of a row: reductions,
layouts, dtypes, sizes.

The search draws rows of every length; two claims are checked. Rows computed by one thread and by several have
equal bits, and copies of one row, wherever they stand among others, do.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import wengert as wg
import wengert.nn.functional as F
from hypothesis import given, strategies as st
from support import bits
from wengert import Tensor

Axes = tuple[int, ...]


def layouts() -> dict[str, Callable[[Tensor], tuple[Tensor, Axes, Axes]]]:
    """From a matrix of rows: the same rows laid out otherwise, the axes of a row,
    and those that count rows.
    """

    def apart(x: Tensor) -> Tensor:
        return wg.stack([x, x * 0.5], 1)[:, 0]

    def parted(x: Tensor, axis: int) -> Tensor:
        length = x.shape[axis]
        first = next(k for k in (5, 3, 2, 1) if length % k == 0)
        return x.unflatten(axis, (first, length // first))

    return {
        "rows": lambda x: (x, (1,), (0,)),
        "columns": lambda x: (x.mT.contiguous(), (0,), (1,)),
        "rows apart": lambda x: (apart(x), (1,), (0,)),
        "elements apart": lambda x: (wg.stack([x, x], 2).flatten(1)[:, ::2], (1,), (0,)),
        "short of a row": lambda x: (F.pad(x, (0, 3))[:, :-3], (1,), (0,)),
        "middle": lambda x: (parted(x, 0).transpose(1, 2).contiguous(), (1,), (0, 2)),
        "two axes": lambda x: (parted(x, 1).transpose(0, 1).contiguous(), (0, 2), (1,)),
        "backwards": lambda x: (x.flip(0), (1,), (0,)),
        "batches": lambda x: (parted(x, 0), (2,), (0, 1)),
        "halves of batches": lambda x: (wg.cat([parted(x, 0)] * 2, 1)[:, ::2], (2,), (0, 1)),
    }


LAYOUTS = layouts()
#: Functions of a tensor and the axes of a row.
REDUCTIONS: dict[str, Callable[[Tensor, Axes], Tensor]] = {
    "sum": lambda x, axes: x.sum(axes),
    "mean": lambda x, axes: x.mean(axes),
    "prod": lambda x, axes: x.prod(axes[0]),
    "var": lambda x, axes: x.var(axes),
    "std": lambda x, axes: x.std(axes),
    "norm": lambda x, axes: wg.linalg.vector_norm(x, 2, axes),
    "3-norm": lambda x, axes: wg.linalg.vector_norm(x, 3, axes),
    "logsumexp": lambda x, axes: x.logsumexp(axes),
    "amax": lambda x, axes: x.amax(axes),
    "amin": lambda x, axes: x.amin(axes),
    "any": lambda x, axes: (x > 1).any(axes[0]),
    "argmax": lambda x, axes: x.argmax(axes[0]),
    "softmax": lambda x, axes: x.softmax(axes[0]),
    "log_softmax": lambda x, axes: x.log_softmax(axes[0]),
    "cumsum": lambda x, axes: x.cumsum(axes[0]),
    "cumprod": lambda x, axes: x.cumprod(axes[0]),
    "rms_norm": lambda x, axes: F.rms_norm(x, x.shape[-1:]) if axes == (x.ndim - 1,) else x,
    "layer_norm": lambda x, axes: F.layer_norm(x, x.shape[-1:]) if axes == (x.ndim - 1,) else x,
    "gradient of broadcasting": lambda x, axes: broadcast_gradient(x, axes),
}
DTYPES = ("float32", "float64", "float16", "bfloat16")


def broadcast_gradient(x: Tensor, axes: Axes) -> Tensor:
    """The gradient of a sum with a tensor that is expanded along the axes of a row."""
    shape = [1 if k in axes else n for k, n in enumerate(x.shape)]
    return wg.vjp(lambda y: x + y, wg.zeros(shape, dtype=x.dtype))[1](x)[0]


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = wg.get_num_threads()
    yield
    wg.set_num_threads(before)


def differences(layout: str, reduction: str, dtype: str, length: int, count: int, seed: int) -> str:
    """What differs that should not, in words; empty if all is well."""
    values = np.random.default_rng(seed).normal(size=(count, length))
    given = wg.tensor(values).to(getattr(wg, dtype))
    x, axes, _ = LAYOUTS[layout](given)
    results = []
    for threads in (1, 2, 3):
        wg.set_num_threads(threads)
        results.append(bits(REDUCTIONS[reduction](x, axes)))
        if not np.array_equal(results[0], results[-1]):
            return f"{(results[0] != results[-1]).sum()} of {results[0].size} results for {threads} threads"
    x, axes, rows = LAYOUTS[layout](given[:1].expand(count, length).contiguous())
    out = REDUCTIONS[reduction](x, axes)
    # The axes that are left: all, those of no row, or all but the first of a row.
    gone = axes[: x.ndim - out.ndim] if out.ndim < x.ndim else ()
    kept = [place for place, k in enumerate(k for k in range(x.ndim) if k not in gone) if k in rows]
    same = bits(out.movedim(kept, list(range(len(kept))))).reshape(count, -1)
    return "" if (same == same[:1]).all() else f"{len(np.unique(same, axis=0))} results for equal rows"


@given(
    st.sampled_from(list(LAYOUTS)),
    st.sampled_from(list(REDUCTIONS)),
    st.sampled_from(DTYPES),
    st.one_of(st.integers(1, 40), st.integers(1, 300)),
    st.one_of(st.integers(1, 60), st.integers(1, 3000)),
    st.integers(0, 99),
)
def test_bits_depend_on_neither_threads_nor_places(
    layout: str, reduction: str, dtype: str, length: int, count: int, seed: int
) -> None:
    assert differences(layout, reduction, dtype, length, count, seed) == ""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["rows", "rows apart", "short of a row", "batches", "halves of batches"])
def test_sums_of_short_rows_have_the_same_bits(layout: str, dtype: str) -> None:
    for length in range(1, 34):
        for reduction in ("sum", "prod", "amax"):
            assert differences(layout, reduction, dtype, length, 900, length) == "", (reduction, length)
