"""Every operation at hard places: zeros of both signs, ties, subnormal and tiny numbers,
magnitudes over 150 decades.

The samples' own domains avoid kinks and poles, for the sake of differences. Here every real operand is drawn
from a pool instead, and the value compared with the reference in NumPy. Where elements of very different size
meet, a sum has few right digits whoever makes it; so a result may differ by what the reference itself changes
when its inputs change in their last places. Derivatives there are judged by what must hold anyhow: finite
where the function has a slope or a convention, and the same seen forwards and backwards.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
import wengert as wg
from samples.linalg_samples import LINALG as LINALG_SAMPLES
from samples.namespace_samples import POLYNOMIALS
from samples.op_samples import SAMPLES
from samples.sample import OpSample
from support import Array, Case, examples, random_source, tensor

POOLS = {
    "zeros": (0.0, -0.0, 1.0, -1.0, 0.5),
    "ties": (1.0, 2.0),
    "tiny": (0.0, -0.0, 5e-324, -5e-324, 2.3e-308, 1e-300, -1e-300, 1e-160, -1e-17, 1e-9, -1e-9),
    "wide": (0.0, 1e-300, 1e-150, -1e-12, 1e-3, -0.5, 3.0, -20.0, 40.0, -700.0, 1e5, 1e12, -1e150),
}
# What is not compared here, and why.
LINALG = {s.name for s in LINALG_SAMPLES}  # right relative to the largest element: not over 150 decades
NOT_UNIQUE = set("qr qr_complete svd eigh eig pinv lstsq lu lu_factor lu_solve null_space".split())
UNSTABLE_REFERENCE = {
    "binary_cross_entropy": "inputs lie between 0 and 1",
    "kl_div": "the reference has 0 log 0",
    "cosine_similarity": "the reference divides by a norm of zero",
    "normalize": "the reference divides by a norm of zero",
    "matrix_rank": "the pool has matrices of rank 0 and 1 whose rank is a matter of rounding",
    "logsumexp": "the reference loses 1e-300 beside 0",
    "igamma": "the reference has 0 for the smallest shapes",
    "igammac": "a difference for the smallest shapes",
    "airy_ai": "the reference has no value at -1e150",
    **dict.fromkeys(POLYNOMIALS, "the reference subtracts infinities where powers overflow"),
    "hermite_of_many_degrees": "the reference subtracts infinities where powers overflow",
    "histc": "where the bins are narrower than a subnormal number, edges are a matter of rounding",
}


def flat(x: Any) -> Iterator[Array]:
    """The arrays in a result."""
    if isinstance(x, tuple | list):
        for part in x:
            yield from flat(part)
    else:
        yield np.asarray(x.detach().numpy() if isinstance(x, wg.Tensor) else x)


def is_finite(tensors: Iterable[wg.Tensor]) -> bool:
    """Whether all elements are."""
    return all(np.isfinite(t.numpy()).all() for t in tensors)


def drawn(sample: OpSample, pool: str, seed: int) -> tuple[Case, list[Array], np.random.Generator]:
    """A case of the sample with its real operands from a pool."""
    source, rng = random_source(seed, most=3)
    case = sample.case(source)
    values = case.sample(rng)
    for i in case.real:
        values[i] = np.asarray(rng.choice(POOLS[pool], values[i].shape), np.float64)
    return case, values, rng


def reference(sample: OpSample, case: Case, values: list[Array], rng: np.random.Generator) -> Any:
    """The reference's results, and by how much each changes with the last places of the inputs."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = list(flat(sample.reference(*values, **case.kwargs)))
        change = [np.zeros(np.shape(w)) for w in exact]
        for _ in range(3):
            moved = list(values)
            for i in case.real:
                moved[i] = np.asarray(values[i] * (1 + 1e-12 * rng.choice([-1.0, 1.0], values[i].shape)))
            for c, w, m in zip(change, exact, flat(sample.reference(*moved, **case.kwargs))):
                if np.shape(m) == c.shape and w.dtype.kind in "fc":
                    np.maximum(c, np.nan_to_num(np.abs(m - w), nan=0.0, posinf=np.inf), out=c)
    return exact, change


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_values(sample: OpSample, pool: str) -> None:
    if sample.name in NOT_UNIQUE | UNSTABLE_REFERENCE.keys():
        pytest.skip("compared where it is unique and stable")
    if pool == "wide" and sample.name in LINALG:
        pytest.skip("right relative to the largest element")
    for seed in range(3 * examples(1).max_examples):
        case, values, rng = drawn(sample, pool, seed)
        try:
            expected, change = reference(sample, case, values, rng)
        except (np.linalg.LinAlgError, ValueError, FloatingPointError):
            continue
        try:
            found = list(flat(sample.fn(*[tensor(v) for v in values], **case.kwargs)))
        except np.linalg.LinAlgError:
            continue
        assert len(found) == len(expected)
        for f, w, c in zip(found, expected, change):
            assert f.shape == w.shape
            if w.dtype.kind in "fc":
                with np.errstate(all="ignore"):
                    near = np.abs(f - w) <= 10 * c + 1e-11 * np.abs(w) + 1e-307
                fits = (f == w) | (np.isnan(f) & np.isnan(w)) | near | ~np.isfinite(c)
            else:
                fits = f == w
            assert fits.all(), (values, case.kwargs, f, w)


def function(
    sample: OpSample, case: Case, args: list[wg.Tensor], real: list[int]
) -> Callable[..., tuple[wg.Tensor, ...]]:
    """The sample as a function of its real operands, with its real results."""

    def f(*xs: wg.Tensor) -> tuple[wg.Tensor, ...]:
        full = list(args)
        for i, x in zip(real, xs):
            full[i] = x
        out = sample.fn(*full, **case.kwargs)
        found = [y for y in (out if isinstance(out, tuple | list) else [out]) if isinstance(y, wg.Tensor)]
        return tuple(y for y in found if y.dtype.is_floating_point)

    return f


@pytest.mark.parametrize("pool", ["zeros", "ties", "tiny"])
@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.order], ids=str)
def test_both_modes_agree(sample: OpSample, pool: str) -> None:
    for seed in range(2 * examples(1).max_examples):
        case, values, rng = drawn(sample, pool, seed)
        constant = set(sample.extra.get("constant", ()))
        real = [i for i in case.real if i not in constant]
        args = [tensor(v) for v in values]

        f = function(sample, case, args, real)
        xs = [args[i] for i in real]
        try:
            ys, pull = wg.vjp(f, *xs)
        except (ValueError, np.linalg.LinAlgError):
            continue
        if not ys or not is_finite(ys):
            continue
        if sample.name == "corrcoef" and pool == "tiny":
            pytest.skip(
                "deviations that underflow, divided by each other: rounding errors of any size in both modes"
            )
        t = [tensor(rng.normal(size=x.shape)) for x in xs]
        g = [tensor(rng.normal(size=y.shape)) for y in ys]
        _, forward = wg.jvp(f, tuple(xs), tuple(t))
        back = pull(tuple(g))
        parts = [
            (a.numpy() * b.numpy()).ravel()
            for a, b in [*zip(g, forward), *((-x, y) for x, y in zip(t, back))]
        ]
        terms = np.concatenate([*parts, np.zeros(1)])
        if np.isfinite(terms).all():
            assert abs(terms.sum()) <= 1e-9 * np.abs(terms).sum() + 1e-300, (values, case.kwargs)
        else:
            # A pole: both modes must see it.
            assert is_finite(forward) == is_finite(back), (values, case.kwargs)
