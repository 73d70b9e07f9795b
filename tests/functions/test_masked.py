"""Reductions and normalisations of the elements that a mask selects, against NumPy's of those elements
alone."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from scipy import special
from support import Array, array
from wengert import masked
from wengert.autograd import gradcheck, gradgradcheck

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5))
MASK = RNG.random((4, 5)) > 0.4
MASK[1] = False
MASK[0, 0] = True


def safe_median(x: Array) -> Any:
    return np.sort(x)[(len(x) - 1) // 2] if len(x) else np.nan


def quiet(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return f(*args)

    return run


# What each function is of the vector of elements that count, and whether it takes several axes.
REDUCTIONS: dict[str, tuple[Callable[[Array], Any], bool]] = {
    "sum": (np.sum, True),
    "prod": (np.prod, False),
    "mean": (quiet(lambda x: x.sum() / np.float64(len(x))), True),
    "amax": (lambda x: x.max(initial=-np.inf), True),
    "amin": (lambda x: x.min(initial=np.inf), True),
    "logsumexp": (lambda x: special.logsumexp(x) if len(x) else -np.inf, True),
    "norm": (lambda x: np.sqrt((x**2).sum()), True),
    "var": (
        quiet(lambda x: ((x - x.mean()) ** 2).sum() / np.float64(max(len(x) - 1, 0)) if len(x) else np.nan),
        True,
    ),
    "std": (
        quiet(
            lambda x: (
                np.sqrt(((x - x.mean()) ** 2).sum() / np.float64(max(len(x) - 1, 0))) if len(x) else np.nan
            )
        ),
        True,
    ),
    "median": (safe_median, False),
}


def by_definition(f: Callable[[Array], Any], x: Array, mask: Array, axes: tuple[int, ...]) -> Array:
    """`f` of the elements that count, for every place along the other axes."""
    kept = [i for i in range(x.ndim) if i not in axes]
    y, m = (np.transpose(a, [*kept, *axes]).reshape([x.shape[i] for i in kept] + [-1]) for a in (x, mask))
    out = np.empty(y.shape[:-1])
    for place in np.ndindex(*out.shape):
        out[place] = f(y[place][m[place]])
    return out


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    f, several = REDUCTIONS[name]
    whole = np.broadcast_to(MASK, X.shape)
    hidden = np.where(whole, X, np.nan)
    function = getattr(masked, name)
    for axes in ((0,), (1,), (2,), *([(0, 2), (0, 1, 2)] if several else [])):
        dim: Any = axes if len(axes) > 1 else axes[0]
        given = dict(ord=2.0) if name == "norm" else {}
        for keepdim in (False, True):
            got = function(wg.tensor(hidden), dim=dim, keepdim=keepdim, mask=wg.tensor(MASK), **given)
            expected = by_definition(f, X, whole, axes)
            expected = np.expand_dims(expected, axes) if keepdim else expected
            np.testing.assert_allclose(array(got), expected, rtol=1e-12, err_msg=f"{name} {axes}")
        if several and len(axes) == 3:
            np.testing.assert_allclose(
                array(function(wg.tensor(hidden), mask=wg.tensor(MASK))), expected.item(), 1e-12
            )
    plain = function(wg.tensor(X), dim=1)
    np.testing.assert_allclose(array(plain), by_definition(f, X, np.ones_like(whole), (1,)), rtol=1e-12)
    assert function(wg.tensor(X), dim=1, dtype=wg.float32, mask=wg.tensor(MASK)).dtype == wg.float32


def test_positions() -> None:
    whole = np.broadcast_to(MASK, X.shape)
    for name, worst in (("argmax", -np.inf), ("argmin", np.inf)):
        function, reference = getattr(masked, name), getattr(np, name)
        for dim in (0, 1, 2, None):
            got = function(wg.tensor(np.where(whole, X, np.nan)), dim, mask=wg.tensor(MASK))
            assert np.array_equal(array(got), reference(np.where(whole, X, worst), dim)), (name, dim)
        assert tuple(function(wg.tensor(X), 1, keepdim=True, mask=wg.tensor(MASK)).shape) == (3, 1, 5)
        assert function(wg.tensor(X), dtype=wg.float32).item() == reference(X.astype("float32"))
    low = wg.tensor([-128, -128], dtype=wg.int8)
    assert masked.argmax(low, mask=wg.tensor([False, True])).item() == 1
    assert masked.argmax(wg.tensor([1.0, float("nan")]), mask=wg.tensor([True, True])).item() == 1


@pytest.mark.parametrize("ord", [0, 1, 2, 3.5, np.inf, -np.inf, -2])
def test_norms(ord: float) -> None:
    whole = np.broadcast_to(MASK[:1], (4, 5))
    with np.errstate(all="ignore"):
        f = lambda x: np.linalg.norm(x, ord) if len(x) else (np.inf if ord < 0 else 0.0)
        expected = by_definition(f, X[0], whole, (1,))
    got = masked.norm(wg.tensor(X[0]), ord, 1, mask=wg.tensor(MASK[:1]))
    np.testing.assert_allclose(array(got), expected, rtol=1e-12)
    if ord > 0:
        unit = masked.normalize(wg.tensor(X[0]), ord, 1, mask=wg.tensor(MASK[:1]))
        np.testing.assert_allclose(array(unit), np.where(whole, X[0], 0) / expected[:, None], rtol=1e-12)


def test_corrections() -> None:
    x, mask = wg.tensor([1.0, 2.0, 6.0, 50.0]), wg.tensor([True, True, True, False])
    for settings, ddof in (
        ({}, 1),
        (dict(unbiased=False), 0),
        (dict(unbiased=True), 1),
        (dict(correction=2), 2),
    ):
        assert masked.var(x, mask=mask, **settings).item() == pytest.approx(np.var([1, 2, 6], ddof=ddof))
        assert masked.std(x, 0, keepdim=True, mask=mask, **settings).item() == pytest.approx(
            np.std([1, 2, 6], ddof=ddof)
        )
    with pytest.raises(ValueError, match="var: unbiased and correction say the same"):
        masked.var(x, unbiased=True, correction=1)
    z = wg.tensor([1 + 1j, 2 - 1j, 5j], dtype=wg.complex128)
    assert masked.var(z, mask=mask[:3]).item() == pytest.approx(np.var(array(z), ddof=1))
    assert masked.normalize(wg.zeros(2), 2, 0, eps=0.5).tolist() == [0, 0]
    assert masked.normalize(wg.tensor([0.25]), 1.0, 0, eps=0.5, dtype=wg.float64).item() == 0.5


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin", "cumsum", "cumprod"])
def test_along_an_axis(name: str) -> None:
    whole = np.broadcast_to(MASK, X.shape)
    neutral = {"cumsum": 0.0, "cumprod": 1.0}.get(name, np.inf if name == "softmin" else -np.inf)
    y = np.where(whole, X, neutral)
    with np.errstate(all="ignore"):
        size = np.exp(-y if name == "softmin" else y)
        expected = {
            "softmax": lambda: size / size.sum(2, keepdims=True),
            "softmin": lambda: size / size.sum(2, keepdims=True),
            "log_softmax": lambda: y - np.log(size.sum(2, keepdims=True)),
            "cumsum": lambda: y.cumsum(2),
            "cumprod": lambda: y.cumprod(2),
        }[name]()
    got = getattr(masked, name)(wg.tensor(np.where(whole, X, np.nan)), 2, mask=wg.tensor(MASK))
    np.testing.assert_allclose(array(got), expected, rtol=1e-12)
    assert getattr(masked, name)(wg.tensor(X), 2, dtype=wg.float32).dtype == wg.float32


def test_by_hand() -> None:
    x, mask = wg.tensor([4.0, 1.0, 2.0]), wg.tensor([True, False, True])
    assert masked.argmin(x, 0, mask=mask).item() == 2
    assert masked.cumprod(x, 0, mask=mask).tolist() == [4, 4, 8]
    assert masked.cumsum(x, 0, mask=mask).tolist() == [4, 4, 6]
    assert masked.median(x, 0, keepdim=True, mask=mask).tolist() == [2]
    assert masked.logsumexp(x, 0, mask=mask).item() == pytest.approx(np.log(np.exp(4) + np.exp(2)))
    odds = np.exp(-2) / (1 + np.exp(-2))
    np.testing.assert_allclose(array(masked.softmin(x, 0, mask=mask)), [odds, 0, 1 - odds], rtol=1e-6)
    np.testing.assert_allclose(
        array(masked.log_softmax(x, 0, mask=mask).exp()), [1 - odds, 0, odds], rtol=1e-6
    )


def test_logaddexp() -> None:
    x, y = X[0], X[1]
    got = masked.logaddexp(
        wg.tensor(x), wg.tensor(y), input_mask=wg.tensor(MASK), other_mask=wg.tensor(~MASK)
    )
    np.testing.assert_allclose(array(got), np.where(MASK, x, y), rtol=1e-12)
    assert masked.logaddexp(wg.tensor(x), wg.tensor(y), dtype=wg.float32).dtype == wg.float32


def test_dtypes() -> None:
    ints, mask = wg.tensor([[3, -5], [7, 2]]), wg.tensor([[True, True], [False, False]])
    assert masked.sum(ints, 1, mask=mask).tolist() == [-2, 0]
    assert masked.prod(ints, 1, mask=mask).tolist() == [-15, 1]
    assert masked.amax(ints, 1, mask=mask).tolist() == [3, -(2**63)]
    assert masked.amin(ints, 1, mask=mask).tolist() == [-5, 2**63 - 1]
    assert masked.amax(wg.tensor([True, False]), mask=wg.tensor([False, True])).tolist() is False
    for name in ("mean", "var", "std", "logsumexp"):
        assert getattr(masked, name)(ints, mask=mask).dtype == wg.float32
    assert masked.softmax(ints, 1, mask=mask).dtype == wg.float32
    halves = wg.full((4000,), 100.0, dtype=wg.float16)
    assert masked.mean(halves, mask=halves > 0).item() == 100
    assert masked.mean(halves).dtype == wg.float16
    with pytest.raises(TypeError, match=r"median: a floating point tensor expected, got .*int64"):
        masked.median(ints)


@pytest.mark.parametrize(
    "name", [name for name in masked.__all__ if name not in ("argmax", "argmin", "logaddexp")]
)
def test_derivatives(name: str) -> None:
    x, mask = wg.tensor(X[:, 2, :4]), wg.tensor([[True, True, False, True]])
    given: dict[str, Any] = dict(dim=1) | (dict(ord=3.0) if name in ("norm", "normalize") else {})
    # Logarithms of nothing are infinite.
    f = lambda x: (
        getattr(masked, name)(x, mask=mask, **given).exp()
        if name == "log_softmax"
        else getattr(masked, name)(x, mask=mask, **given)
    )
    assert gradcheck(f, x, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(f, x, check_fwd_over_rev=True, fast_mode=True)
    hidden = x.masked_fill(mask.logical_not(), float("nan"))
    slope = wg.grad(lambda x: f(x).sum())(hidden)
    assert slope[:, 2].tolist() == [0, 0, 0]
    assert slope.isfinite().all()
    rows = wg.vmap(lambda x: getattr(masked, name)(x, mask=mask[0], **(given | dict(dim=0))))(x)
    np.testing.assert_allclose(array(rows), array(getattr(masked, name)(x, mask=mask, **given)), rtol=1e-12)


def test_masks_that_are_none() -> None:
    x = wg.ones(2, 3)
    for name in masked.__all__:
        key = "input_mask" if name == "logaddexp" else "mask"
        required = {"ord": 2.0, "dim": 0, "other": x}
        needed = inspect.signature(getattr(masked, name)).parameters
        args = {k: v for k, v in required.items() if k in needed}
        for mask, error, text in (
            (wg.ones(2, 3), TypeError, f"{name}: mask must be of bools, got wengert.float32"),
            ([True, False, True], TypeError, f"{name}: mask must be a tensor, got list"),
            (wg.ones(2, 2, dtype=wg.bool), wg.ShapeError, r"a mask of shape \(2, 2\) does not broadcast"),
            (wg.ones(1, 2, 3, dtype=wg.bool), wg.ShapeError, "does not broadcast to an input of shape"),
        ):
            with pytest.raises(error, match=text):
                getattr(masked, name)(x, **args, **{key: mask})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("correction", [0, 1, 2])
def test_spreads_of_few_elements_in_a_batch(correction: int) -> None:
    x = wg.tensor([[1.0, 1.0, 1.0], [2.0, 3.0, 0.0], [2.0, 0.0, 0.0], [3.0, 5.0, 4.0]])
    for name in ("var", "std"):
        spread = lambda row, name=name: getattr(row[row > 1], name)(correction=correction)
        np.testing.assert_array_equal(wg.vmap(spread)(x).numpy(), [spread(row).item() for row in x])
