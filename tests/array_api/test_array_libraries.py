"""Libraries that are written against the array API standard, on tensors: array-api-compat, array-api-extra,
SciPy."""

import subprocess
import sys

import array_api_compat
import array_api_extra as xpx
import numpy as np
import wengert as wg
import wengert.numpy as xp
from wengert.testing import gradcheck


def test_compat_finds_the_namespace() -> None:
    x = xp.ones((2, 3))
    assert array_api_compat.array_namespace(x, x) is xp
    assert array_api_compat.is_array_api_obj(x)
    assert array_api_compat.device(x) == "cpu"
    assert array_api_compat.size(x) == 6
    assert array_api_compat.to_device(x, "cpu") is x


def test_extra_functions() -> None:
    x = np.arange(6.0).reshape(2, 3)
    t = xp.asarray(x)
    for name, arguments in {
        "atleast_nd": {"ndim": 3},
        "cov": {},
        "nunique": {},
        "pad": {"pad_width": 1},
        "sinc": {},
    }.items():
        function = getattr(xpx, name)
        np.testing.assert_allclose(np.asarray(function(t, **arguments)), function(x, **arguments), atol=1e-15)
    np.testing.assert_array_equal(np.asarray(xpx.kron(t, t)), np.kron(x, x))
    np.testing.assert_array_equal(np.asarray(xpx.create_diagonal(t[0])), np.diag(x[0]))
    np.testing.assert_array_equal(np.asarray(xpx.setdiff1d(t[0], t[1, :2])), np.setdiff1d(x[0], x[1, :2]))
    assert xpx.at(t)[0, 0].set(9.0, copy=True).tolist()[0] == [9.0, 1.0, 2.0]
    assert xpx.isclose(t, t).all()
    u = wg.tensor(x + 1, requires_grad=True)
    assert gradcheck(lambda u: xpx.cov(u), (u,))


# SciPy reads the variable when it is imported, so this is a program of its own.
PROGRAM = """
import numpy as np, scipy.differentiate, scipy.integrate, scipy.ndimage, scipy.special, scipy.stats
import wengert as wg, wengert.numpy as xp

rng = np.random.default_rng(0)
a, b = rng.random((2, 20)) + 0.5
x, y = xp.asarray(a), xp.asarray(b)

def check(function, *args):
    found = function(*(xp.asarray(v) if isinstance(v, np.ndarray) else v for v in args))
    wanted = function(*args)
    for mine, other in zip(*((found, wanted) if isinstance(wanted, tuple) else ([found], [wanted]))):
        assert isinstance(mine, wg.Tensor), (function, type(mine))
        np.testing.assert_allclose(np.asarray(mine), other, rtol=1e-12)

stats, special = scipy.stats, scipy.special
for f in (stats.gmean, stats.hmean, stats.skew, stats.kurtosis, stats.zscore, stats.variation, stats.sem, stats.entropy,
          stats.rankdata, stats.jarque_bera, stats.mode):
    check(f, a)
for f in (stats.pearsonr, stats.ttest_ind, stats.ttest_rel, stats.wilcoxon):
    found, wanted = f(x, y), f(a, b)
    assert isinstance(found.statistic, wg.Tensor)
    np.testing.assert_allclose(float(found.statistic), wanted.statistic, rtol=1e-12)
    np.testing.assert_allclose(float(found.pvalue), wanted.pvalue, rtol=1e-10)
for f in (special.logsumexp, special.softmax, special.log_softmax, special.erf, special.gammaln, special.ndtr):
    check(f, a)
for f in (special.xlogy, special.betaln, special.gammainc):
    check(f, a, b)
check(scipy.ndimage.gaussian_filter, a.reshape(4, 5), 1.0)
check(scipy.integrate.trapezoid, a, b)
slope = scipy.differentiate.derivative(xp.exp, xp.asarray([0.0, 1.0], dtype=xp.float64)).df
np.testing.assert_allclose(np.asarray(slope), np.exp([0.0, 1.0]), rtol=1e-9)

for f in (stats.gmean, stats.hmean, stats.skew, stats.variation, special.logsumexp):
    slope = np.asarray(wg.grad(lambda x: f(x).sum())(x))
    ends = [f(a + sign * 1e-6 * step) for step in np.eye(20) for sign in (1, -1)]
    np.testing.assert_allclose(slope, (np.array(ends[::2]) - np.array(ends[1::2])) / 2e-6, rtol=1e-6, atol=1e-8)
for f in (stats.gmean, special.logsumexp):
    np.testing.assert_allclose(np.asarray(wg.vmap(f)(xp.stack([x, y]))), f(np.stack([a, b]), axis=1), rtol=1e-12)
print("fine")
"""


def test_scipy() -> None:
    program = f"import os\nos.environ['SCIPY_ARRAY_API'] = '1'\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "fine\n", done.stderr
