"""Keywords of functions of numbers, shapes and places: against NumPy and SciPy, as function and as method."""

import inspect
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pytest
import wengert as wg
from scipy import integrate, special, stats

from arguments.rows import Array, check, differ, near, numbers, of_name, run

X, Y, Z = (numbers(3, 4, seed=k) for k in range(3))
V = numbers(9)
U, T = numbers(3, seed=5), numbers(4, seed=6)
M = numbers(2, 3, seed=1)
LEFT, RIGHT = numbers(5, 2, 4), numbers(5, 4, 3)
HOLES = np.where(X > 0, X, 0.0)
P = special.expit(X)
STRANGE = np.array([np.nan, np.inf, -np.inf, 1.0])
RUNS = np.array([[1, 1], [1, 1], [2, 0], [1, 1]])
PLACES = np.array([0, 2])
ORDER = np.argsort(V)


def written(x: Array, at: Any, values: Any) -> Array:
    """An array after an assignment."""
    x = x.copy()
    x[at] = values
    return x


FWEIGHTS, AWEIGHTS = np.array([1, 2, 1, 3]), np.array([0.5, 1.0, 2.0, 0.7])
COVARIANCE = np.cov(X, ddof=0, fweights=FWEIGHTS, aweights=AWEIGHTS)
INVERSE, OFTEN = np.array([0, 0, 1, 2]), np.array([2, 1, 1])
TRIANGLE = np.stack(np.tril_indices(4, 1, 5)), np.stack(np.triu_indices(4, 2, 5))
SQUARE = numbers(3, 3)
BILINEAR = np.einsum("ni,oij,nj->no", X, numbers(2, 4, 4), Y)
BELOW = written(numbers(4, 3), ([1, 2, 3], [0, 1, 2]), V[:3])
AT = ([0, 1, 2], [1, 0, 3])
COLUMNS = np.array([[1], [0], [3]])
DENSE = np.histogram(V, 4, (-1, 1.5), density=True, weights=np.abs(V))

ROWS: list[tuple[str, Any, dict[str, Any], Any]] = [
    ("add_", (X, Y), dict(alpha=2.0), X + 2 * Y),
    ("subtract", (X, Y), dict(alpha=2.0), X - 2 * Y),
    ("subtract_", (X, Y), dict(alpha=2.0), X - 2 * Y),
    ("addcmul_", (X, Y, Z), dict(value=0.5), X + Y * Z / 2),
    ("addcdiv_", (X, Y, Z), dict(value=0.5), X + Y / Z / 2),
    ("addbmm", (M, LEFT, RIGHT), dict(beta=0.5, alpha=2.0), M / 2 + 2 * (LEFT @ RIGHT).sum(0)),
    ("baddbmm", (M, LEFT, RIGHT), dict(beta=0.5, alpha=2.0), M / 2 + 2 * (LEFT @ RIGHT)),
    ("addmv", (U, X, T), dict(beta=0.5, alpha=2.0), U / 2 + 2 * (X @ T)),
    ("addr", (X, U, T), dict(beta=0.5, alpha=2.0), X / 2 + 2 * np.outer(U, T)),
    ("as_strided", (V, (2, 2), (1, 3)), dict(storage_offset=2), V[[[2, 5], [3, 6]]]),
    ("clip_", (X,), dict(min=-0.5, max=0.7), np.clip(X, -0.5, 0.7)),
    ("combinations", (U,), dict(r=3), np.array([*combinations(U, 3)])),
    ("combinations", (U,), dict(r=3, with_replacement=True),
        np.array([*combinations_with_replacement(U, 3)])),
    ("concat", ((X, Y),), dict(dim=1), np.concatenate((X, Y), 1)),
    ("cat", ((X, Y),), dict(axis=1), np.concatenate((X, Y), 1)),
    ("count_nonzero", (HOLES,), dict(dim=1), np.count_nonzero(HOLES, 1)),
    ("count_nonzero", (HOLES,), dict(axis=0), np.count_nonzero(HOLES, 0)),
    ("cov", (X,), dict(correction=0, fweights=FWEIGHTS, aweights=AWEIGHTS), COVARIANCE),
    ("cross", (SQUARE, SQUARE.T), dict(dim=1), np.cross(SQUARE, SQUARE.T)),
    ("linalg.cross", (X, Y), dict(dim=0), np.cross(X, Y, axis=0)),
    ("linalg.cross", (X, Y), dict(axis=0), np.cross(X, Y, axis=0)),
    ("cumulative_trapezoid", (X,), dict(x=Y, dim=0), integrate.cumulative_trapezoid(X, Y, axis=0)),
    ("cumulative_trapezoid", (X,), dict(dx=0.5, dim=0), integrate.cumulative_trapezoid(X, dx=0.5, axis=0)),
    ("trapezoid", (X,), dict(x=Y, dim=0), integrate.trapezoid(X, Y, axis=0)),
    ("trapezoid", (X,), dict(dx=0.5, dim=0), integrate.trapezoid(X, dx=0.5, axis=0)),
    ("trapz", (X,), dict(x=Y, dim=0), integrate.trapezoid(X, Y, axis=0)),
    ("trapz", (X,), dict(dx=0.5, dim=0), integrate.trapezoid(X, dx=0.5, axis=0)),
    ("diagonal_scatter", (numbers(4, 3), V[:3]), dict(offset=1, dim1=1, dim2=0), BELOW),
    ("dist", (X, Y), dict(p=3.0), (np.abs(X - Y) ** 3).sum() ** (1 / 3)),
    ("divide", (X, Y), dict(rounding_mode="floor"), np.floor(X / Y)),
    ("divide", (X, Y), dict(rounding_mode="trunc"), np.trunc(X / Y)),
    ("true_divide", (X, Y), dict(rounding_mode="floor"), np.floor(X / Y)),
    ("histc", (V,), dict(bins=5, min=-1.0, max=1.5), np.float64(np.histogram(V, 5, (-1, 1.5))[0])),
    ("histogram", (V, 4), dict(range=(-1.0, 1.5), weight=np.abs(V), density=True), DENSE),
    ("index_add", (X, 0, PLACES, Y[:2]), dict(alpha=2.0), written(X, PLACES, X[PLACES] + 2 * Y[:2])),
    ("isclose", (STRANGE, STRANGE + 1e-3), dict(rtol=0.1, equal_nan=True), np.array([True] * 4)),
    ("allclose", (STRANGE, STRANGE), dict(equal_nan=True), True),
    ("logit", (P,), dict(eps=0.4), special.logit(np.clip(P, 0.4, 0.6))),
    ("logspace", (1.0, 2.5, 4), dict(base=2.0, dtype=wg.float64), np.logspace(1, 2.5, 4, base=2)),
    ("nan_to_num", (STRANGE,), dict(nan=1.0, posinf=2.0, neginf=3.0), np.array([1.0, 2.0, 3.0, 1.0])),
    ("nonzero", (HOLES,), dict(as_tuple=True), np.nonzero(HOLES)),
    ("scatter", (X, 1, COLUMNS), dict(value=2.0), written(X, AT, 2.0)),
    ("scatter", (X, 1, COLUMNS), dict(value=2.0, reduce="multiply"), written(X, AT, 2 * X[AT])),
    ("scatter", (X, 1, COLUMNS, Y), dict(reduce="add"), written(X, AT, X[AT] + Y[:, 0])),
    ("scatter_", (X, 1, COLUMNS), dict(src=Y), written(X, AT, Y[:, 0])),
    ("scatter_", (X, 1, COLUMNS), dict(value=2.0), written(X, AT, 2.0)),
    ("scatter_", (X, 1, COLUMNS, Y), dict(reduce="add"), written(X, AT, X[AT] + Y[:, 0])),
    ("searchsorted", (V, V), dict(sorter=ORDER, right=True), np.searchsorted(V, V, "right", ORDER)),
    ("slice_scatter", (X, Y[:, :1]), dict(dim=1, start=1, end=3, step=2),
        written(X, np.s_[:, 1:3:2], Y[:, :1])),
    ("split_with_sizes", (X, [1, 3]), dict(dim=1), np.split(X, [1], 1)),
    ("std_mean", (X,), dict(dim=0, unbiased=False), (X.std(0), X.mean(0))),
    ("var_mean", (X,), dict(dim=0, unbiased=False), (X.var(0), X.mean(0))),
    ("std_mean", (X,), dict(dim=0, correction=2, keepdim=True), (X.std(0, ddof=2)[None], X.mean(0)[None])),
    ("tril_indices", (4, 5), dict(offset=1), TRIANGLE[0]),
    ("triu_indices", (4, 5), dict(offset=2), TRIANGLE[1]),
    ("unique_consecutive", (RUNS,), dict(dim=0, return_inverse=True, return_counts=True),
        (RUNS[1:], INVERSE, OFTEN)),
    ("vander", (U,), dict(N=4, increasing=True), np.vander(U, 4, increasing=True)),
    ("linalg.vecdot", (X, Y), dict(axis=0), (X * Y).sum(0)),
    ("linalg.vecdot", (X, Y), dict(dim=0), (X * Y).sum(0)),
    ("linalg.vector_norm", (X,), dict(ord=3, dim=0, keepdim=True),
        np.linalg.norm(X, 3, axis=0, keepdims=True)),
    ("linalg.vector_norm", (X,), dict(ord=3, axis=0, keepdims=True),
        np.linalg.norm(X, 3, axis=0, keepdims=True)),
    ("linalg.matrix_norm", (LEFT,), dict(ord=1, dim=(0, 2)), np.linalg.norm(LEFT, 1, axis=(0, 2))),
    ("transpose", (LEFT,), dict(axis0=0, axis1=2), LEFT.T),
    ("bilinear", (X, Y, numbers(2, 4, 4)), dict(bias=V[:2]), BILINEAR + V[:2]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "settings", "expected"), ROWS)
def test_functions(name: str, args: Any, settings: dict[str, Any], expected: Any) -> None:
    functions = of_name(name)
    assert functions
    for function in functions:
        check(function, args, settings, expected)


# NumPy's names, in its own module and against it.
SHAPED = numbers(2, 3, 2)
NUMPY: list[tuple[str, Any, dict[str, Any]]] = [
    ("all", (SHAPED > -1,), dict(axis=1, keepdims=True)),
    ("argmax", (SHAPED,), dict(axis=1, keepdims=True)),
    ("argmin", (SHAPED,), dict(axis=1, keepdims=True)),
    ("concat", ((X, Y),), dict(axis=1)),
    ("count_nonzero", (HOLES,), dict(axis=1, keepdims=True)),
    ("cumulative_prod", (X,), dict(axis=1, include_initial=True)),
    ("cumulative_sum", (X,), dict(axis=0, include_initial=True)),
    ("max", (SHAPED,), dict(axis=(0, 2), keepdims=True)),
    ("min", (SHAPED,), dict(axis=(0, 2), keepdims=True)),
    ("prod", (SHAPED,), dict(axis=1, keepdims=True)),
    ("repeat", (X, 2), dict(axis=1)),
    ("searchsorted", (V, V), dict(side="right", sorter=ORDER)),
    ("std", (SHAPED,), dict(axis=1, correction=1.0, keepdims=True)),
    ("tril", (X,), dict(k=1)),
    ("triu", (X,), dict(k=-1)),
    ("unstack", (X,), dict(axis=1)),
    ("vecdot", (X, Y[:1]), dict(axis=0)),
    ("linalg.vector_norm", (X,), dict(axis=0, keepdims=True, ord=3)),
    ("linalg.matrix_norm", (SHAPED,), dict(keepdims=True, ord=1)),
    ("linalg.cross", (numbers(3, 3), V.reshape(3, 3)), dict(axis=0)),
    ("linalg.matrix_rank", (np.diag([3.0, 1e-3, 1.0]),), dict(rtol=1e-2)),
    ("linalg.pinv", (np.diag([3.0, 1e-3, 1.0]),), dict(rtol=1e-2)),
]


@pytest.mark.parametrize(("name", "args", "settings"), NUMPY, ids=lambda x: x if isinstance(x, str) else "")
def test_names_of_numpy(name: str, args: Any, settings: dict[str, Any]) -> None:
    own = np
    for part in name.split("."):
        own = getattr(own, part)
    if name == "vecdot":
        args = (X, Y)
    check(of_name(f"numpy.{name}")[0], args, settings, own(*args, **settings))


# `axis` for `dim` and `keepdims` for `keepdim`: methods and functions,
# with what they need beside their input.
RENAMED: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys("all any amax amin argmax argmin count_nonzero logsumexp max mean min prod".split(), ()),
    **dict.fromkeys("std std_mean sum var var_mean aminmax median log_softmax".split(), ()),
    **dict.fromkeys("nanmean nansum nanmedian argsort".split(), ()),
    "diff": (),
    **dict.fromkeys("cummax cummin cumprod cumsum flip logcumsumexp softmax".split(), ()),
    **dict.fromkeys("sort squeeze unbind unsqueeze".split(), ()),
    "chunk": (2,), "split": (2,), "linear_recurrence": (np.abs(P),), "topk": (2,), "kthvalue": (2,),
    "take_along_dim": (np.array([[0, 1, 0, 1]]),),
}  # fmt: skip


def renamed() -> list[tuple[str, str]]:
    """The methods that take NumPy's names, by their signatures."""
    pairs = {"axis": "dim", "keepdims": "keepdim"}
    return [
        (name, word)
        for name, method in vars(wg.Tensor).items()
        if callable(method) and not name.startswith("_")
        for word in pairs
        if {word, pairs[word]} <= set(inspect.signature(method).parameters)
    ]


WALKED_PAIRS = [pair for pair in renamed() if pair[0] in RENAMED]


@pytest.mark.parametrize(("name", "word"), WALKED_PAIRS)
def test_other_names_of_the_axis(name: str, word: str) -> None:
    for function in of_name(name):
        args = (HOLES > 0 if name in ("all", "any") else X if name != "squeeze" else X[None], *RENAMED[name])
        if word == "axis":
            expected = run(function, args, {"dim": 0})
            near(run(function, args, {"axis": 0}), expected)
            if name != "squeeze":
                assert differ(run(function, args, {"axis": 1}), expected)
        else:
            expected = run(function, args, {"dim": 0, "keepdim": True})
            near(run(function, args, {"dim": 0, "keepdims": True}), expected)
            assert differ(run(function, args, {"dim": 0}), expected)


def test_every_method_with_both_names_is_walked() -> None:
    others = {"transpose", "cross", "roll", "repeat", "norm", "quantile", "nanquantile", "flatten", "take"}
    # An in-place form hands its arguments on to the method.
    assert {name for name, _ in renamed() if name[-1] != "_"} - set(RENAMED) - others == set()


LAWS = [
    ("bernoulli_", dict(p=0.2), lambda x: stats.binomtest(int(x.sum()), x.size, 0.2).pvalue),
    ("exponential_", dict(lambd=3.0), lambda x: stats.kstest(x, "expon", (0, 1 / 3)).pvalue),
    ("log_normal_", dict(mean=0.5, std=0.3), lambda x: stats.kstest(np.log(x), "norm", (0.5, 0.3)).pvalue),
    ("random_", dict(low=-3, high=5),
        lambda x: stats.chisquare(np.bincount(np.int64(x) + 3, minlength=8)).pvalue),
    ("normal_", dict(mean=1.0, std=0.3), lambda x: stats.kstest(x, "norm", (1.0, 0.3)).pvalue),
    ("uniform_", {"from": 1.0, "to": 4.0}, lambda x: stats.kstest(x, "uniform", (1.0, 3.0)).pvalue),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "law"), LAWS, ids=lambda x: x if isinstance(x, str) else "")
def test_laws_of_random_numbers(name: str, settings: dict[str, Any], law: Any) -> None:
    x = np.zeros(2000)
    assert law(run(getattr(wg.Tensor, name), (x,), settings).numpy()) > 1e-3


def test_keywords_of_random_numbers() -> None:
    chances, out = wg.full((50,), 0.3), wg.zeros(50)
    wg.manual_seed(3)
    expected = wg.bernoulli(chances)
    wg.manual_seed(3)
    assert wg.bernoulli(chances, out=out) is out
    assert out.tolist() == expected.tolist()


def test_keywords_of_placing() -> None:
    """What shows in the memory of the result, not in its values."""
    x = wg.tensor(X)
    assert x.stride(dim=1) == 1
    assert x.T.stride(dim=1) == 4
    assert wg.as_tensor(x) is x
    copied = wg.as_tensor(x, copy=True)
    assert copied is not x
    copied[0, 0] = 7.0
    near(x, X)
    assert wg.as_tensor(X, copy=True).numpy() is not X
    assert x.new_ones(size=(2, 3)).tolist() == [[1.0] * 3] * 2
    assert x.new_empty(size=(2, 3)).shape == (2, 3)
    near(wg.Tensor(X[0].tolist()), np.float32(X[0]))
    assert wg.repeat_interleave(x, 2, dim=0, output_size=6).shape == (6, 4)
    for repeats in (2, wg.tensor([1, 2, 3])):
        for wrong in (5, 7):
            with pytest.raises(ValueError, match=r"output_size is .*, but repeats add up to 6"):
                wg.repeat_interleave(x, repeats, dim=0, output_size=wrong)
