"""`wengert.scipy` against SciPy itself, autograd's convolution and closed forms."""

from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert.testing import gradcheck

special = pytest.importorskip("scipy.special")
stats = pytest.importorskip("scipy.stats")
integrate = pytest.importorskip("scipy.integrate")
signal = pytest.importorskip("scipy.signal")
autograd_signal = pytest.importorskip("autograd.scipy.signal")

RNG = np.random.default_rng(5)
X = RNG.standard_normal((3, 4))
MEAN, COV = X[0], np.cov(X.T) + np.eye(4)


def same(mine: Any, theirs: Any, tolerance: float = 1e-11) -> None:
    """Equal shapes and elements."""
    assert mine.shape == np.shape(theirs)
    np.testing.assert_allclose(mine.numpy(), theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_sums_of_exponentials(axis: Any) -> None:
    for x in (X, 1e3 * X, np.where(X > 0, X, -np.inf)):
        for keepdims in (False, True):
            same(
                wg.scipy.special.logsumexp(x, axis, keepdims=keepdims),
                special.logsumexp(x, axis, keepdims=keepdims),
            )
        factors = np.abs(X)
        same(wg.scipy.special.logsumexp(x, axis, b=factors), special.logsumexp(x, axis, b=factors))
        same(wg.scipy.special.softmax(x, axis), special.softmax(x, axis))
    same(wg.scipy.special.log_softmax(X, axis), special.log_softmax(X, axis))
    x = wg.tensor(X, requires_grad=True)
    assert gradcheck(lambda x: wg.scipy.special.logsumexp(x, axis, b=wg.tensor(np.abs(X))), (x,))


MOVED: dict[str, Any] = {
    "pdf": lambda norm, x: norm.pdf(x, loc=0.3, scale=2.0),
    "logpdf": lambda norm, x: norm.logpdf(x, loc=0.3, scale=2.0),
    "cdf": lambda norm, x: norm.cdf(x, loc=0.3, scale=2.0),
    "logcdf": lambda norm, x: norm.logcdf(x, loc=0.3, scale=2.0),
    "sf": lambda norm, x: norm.sf(x, loc=0.3, scale=2.0),
    "logsf": lambda norm, x: norm.logsf(x, loc=0.3, scale=2.0),
}


@pytest.mark.parametrize("name", MOVED)
def test_normal(name: str) -> None:
    mine, theirs = getattr(wg.scipy.stats.norm, name), getattr(stats.norm, name)
    for x in (X, 30 * X, np.array(0.0), np.array([np.inf, -np.inf, np.nan])):
        same(mine(x), theirs(x))
        same(MOVED[name](wg.scipy.stats.norm, x), MOVED[name](stats.norm, x))
    same(mine(X, X[:, :1], np.exp(X[0])), theirs(X, X[:, :1], np.exp(X[0])))
    arguments = [wg.tensor(a, requires_grad=True) for a in (X, X[:, :1], np.exp(X[0]))]
    assert gradcheck(mine, arguments)


@pytest.mark.parametrize("name", ["pdf", "logpdf"])
def test_student(name: str) -> None:
    mine, theirs = getattr(wg.scipy.stats.t, name), getattr(stats.t, name)
    same(mine(X, 3.0), theirs(X, 3.0))
    same(mine(X, np.exp(X[0]), loc=0.5, scale=2.0), theirs(X, np.exp(X[0]), loc=0.5, scale=2.0))
    assert gradcheck(mine, [wg.tensor(a, requires_grad=True) for a in (X, np.exp(X[0]))])


def test_student_of_many_degrees() -> None:
    """Two logarithms of gamma functions of 5e7 would leave eight digits of their difference."""
    # SciPy 1.17 and mpmath with 50 digits agree in all of these.
    expected = {0.0: -0.9189385357046728, 1.5: -2.0439385342984226, 30.0: -450.9169180478343}
    x = wg.tensor(list(expected), dtype=wg.float64)
    np.testing.assert_allclose(wg.scipy.stats.t.logpdf(x, 1e8), list(expected.values()), rtol=1e-15)
    np.testing.assert_allclose(wg.scipy.stats.t.logpdf(1.5, wg.tensor([1e8])), [-2.0439385], rtol=1e-7)


def test_normal_vectors() -> None:
    mine, theirs = wg.scipy.stats.multivariate_normal, stats.multivariate_normal
    for x in (X, X[1]):
        same(mine.logpdf(x, MEAN, COV), theirs.logpdf(x, MEAN, COV))
        same(mine.pdf(x, mean=MEAN, cov=COV), theirs.pdf(x, mean=MEAN, cov=COV))
        same(mine.logpdf(x, MEAN, np.exp(X[2])), theirs.logpdf(x, MEAN, np.exp(X[2])))
    same(mine.logpdf(X, MEAN), theirs.logpdf(X, MEAN))
    assert float(mine.logpdf(np.array([1, 2]))) == pytest.approx(theirs.logpdf([1, 2], np.zeros(2)), abs=1e-6)
    # One variable: every number is a point.
    same(mine.logpdf(X[0], 0.3, 2.0 * np.eye(1)), theirs.logpdf(X[0], 0.3, 2.0))
    same(mine.entropy(MEAN, COV), theirs.entropy(MEAN, COV))
    factor = wg.tensor(np.linalg.cholesky(COV), requires_grad=True)
    arguments = (wg.tensor(X, requires_grad=True), wg.tensor(MEAN, requires_grad=True), factor)
    assert gradcheck(lambda x, mean, L: mine.logpdf(x, mean, L @ L.mT), arguments)
    with pytest.raises(wg.LinAlgError, match="positive definite"):
        mine.logpdf(X, MEAN, -COV)


@pytest.mark.parametrize("mode", ["full", "valid"])
def test_convolutions(mode: str) -> None:
    convolve = wg.scipy.signal.convolve
    same(convolve(X, X[:2, :2], mode=mode), signal.convolve(X, X[:2, :2], mode=mode))
    same(convolve(X[0], X[1, :3], mode=mode), signal.convolve(X[0], X[1, :3], mode=mode))
    images, kernels = RNG.standard_normal((5, 2, 6, 7)), RNG.standard_normal((2, 3, 2, 4))
    for pairs in (
        {"axes": ([2, 3], [2, 3]), "dot_axes": ([1], [0])},
        {"axes": ([3], [2]), "dot_axes": ([1], [0])},
        {"axes": ([2, 0], [2, 1])},
    ):
        same(
            convolve(images, kernels, mode=mode, **pairs),
            autograd_signal.convolve(images, kernels, mode=mode, **pairs),
        )
    arguments = [wg.tensor(a, requires_grad=True) for a in (X, X[:2, :2])]
    assert gradcheck(lambda a, b: convolve(a, b, mode=mode), arguments)


def test_convolutions_that_there_are_not() -> None:
    for wrong in ({"mode": "same"}, {"axes": ((), ())}):
        with pytest.raises(
            ValueError, match=r"convolve: mode 'full' or 'valid', and one to three axes, expected"
        ):
            wg.scipy.signal.convolve(X, X, **wrong)


def pendulum(y: Any, t: Any, drag: Any, array: Any = wg.stack) -> Any:
    """A damped pendulum."""
    return array([y[1], -drag * y[1] - wg.sin(y[0]) if array is wg.stack else -drag * y[1] - np.sin(y[0])])


def test_differential_equations() -> None:
    odeint = wg.scipy.integrate.odeint
    for times in (np.linspace(0, 5, 7), np.linspace(1, -2, 4), [0.0, 0.0, 1.0]):
        path = odeint(pendulum, np.array([1.0, 0.0]), times, 0.3)
        wanted = integrate.odeint(
            lambda y, t: pendulum(y, t, 0.3, np.array), [1.0, 0.0], times, rtol=1e-12, atol=1e-12
        )
        same(path, wanted, 1e-6)
        same(odeint(pendulum, np.array([1.0, 0.0]), times, (0.3,), rtol=1e-11, atol=1e-11), wanted, 1e-9)
    # y' = -a y, and its derivatives by both.
    end = lambda y, a: odeint(lambda y, t, a: -a * y, y, [0.0, 2.0], a)[-1]
    y, a = wg.tensor([1.5], dtype=wg.float64), wg.tensor(0.7, dtype=wg.float64)
    slopes = wg.jacrev(end, argnums=(0, 1))(y, a)
    np.testing.assert_allclose(
        [float(slopes[0]), float(slopes[1])], [np.exp(-1.4), -3 * np.exp(-1.4)], rtol=1e-6
    )
    assert odeint(lambda y, t: -y, wg.ones(2), [0.0, 1.0]).dtype == wg.float32
    with pytest.raises(
        RuntimeError, match=r"odeint: more than mxstep=50 steps between the times 0\.0 and 2\.0"
    ):
        odeint(lambda y, t: y * y, np.array([1.0]), [0.0, 2.0], mxstep=50)


def test_names() -> None:
    assert wg.scipy.special.expit is wg.sigmoid
    for name in wg.scipy.special.__all__:
        assert hasattr(special, name)
    for module in (wg.scipy, wg.scipy.special, wg.scipy.stats, wg.scipy.integrate, wg.scipy.signal):
        assert dir(module) == sorted(module.__all__)
