"""Keywords of normalisation, activations, dropout and initialisation, of functions and layers:
against formulas.
"""

import inspect
from typing import Any

import numpy as np
import pytest
import wengert as wg
from scipy import stats
from wengert import nn
from wengert.nn import functional as F, init

from arguments.rows import Array, Function, check, differ, near, numbers, run

SHAPES = {1: (4, 3, 5), 2: (4, 3, 5, 2), 3: (2, 3, 2, 2, 3)}
SCALE, SHIFT = np.array([0.5, 2.0, -1.5]), np.array([1.0, -2.0, 3.0])


def standard(x: Array, axes: Any, eps: float = 1e-5) -> Array:
    """Mean zero and variance one over axes."""
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def channels(v: Array, rank: int) -> Array:
    return v.reshape(-1, *[1] * rank)


def moved(x: Array, momentum: float, single: bool) -> tuple[Array, Array]:
    """Running means and variances after the first batch; of single examples, the mean of theirs."""
    axes = tuple(range(2, x.ndim)) if single else (0, *range(2, x.ndim))
    mean, var = x.mean(axes), x.var(axes, ddof=1)
    if single:
        mean, var = mean.mean(0), var.mean(0)
    return momentum * mean, 1 - momentum + momentum * var


def module(made: nn.Module, x: wg.Tensor) -> Any:
    """The result in training, and what is remembered of the batch; weights and biases are SCALE and SHIFT."""
    with wg.no_grad():
        for name, value in (("weight", SCALE), ("bias", SHIFT)):
            if getattr(made, name, None) is not None:
                getattr(made, name).copy_(wg.tensor(value))
    out = made(x)
    kept = [getattr(made, name, None) for name in ("running_mean", "running_var")]
    return out, [k for k in kept if k is not None]


NORMS = [
    (nn.BatchNorm1d, dict(eps=0.3, momentum=0.4, bias=False)),
    (nn.BatchNorm1d, dict(affine=False, track_running_stats=False)),
    (nn.BatchNorm2d, dict(eps=0.3, momentum=0.4, bias=False)),
    (nn.BatchNorm2d, dict(affine=False, track_running_stats=False)),
    (nn.BatchNorm3d, dict(eps=0.3, momentum=0.4, bias=False)),
    (nn.BatchNorm3d, dict(affine=False, track_running_stats=False)),
    (nn.InstanceNorm1d, dict(eps=0.3, affine=True, bias=False)),
    (nn.InstanceNorm1d, dict(momentum=0.4, track_running_stats=True)),
    (nn.InstanceNorm2d, dict(eps=0.3, affine=True, bias=False)),
    (nn.InstanceNorm2d, dict(momentum=0.4, track_running_stats=True)),
    (nn.InstanceNorm3d, dict(eps=0.3, affine=True, bias=False)),
    (nn.InstanceNorm3d, dict(momentum=0.4, track_running_stats=True)),
]


@pytest.mark.parametrize(("layer", "settings"), NORMS)
def test_layers_that_remember_batches(layer: Any, settings: dict[str, Any]) -> None:
    rank, single = int(layer.__name__[-2]), "Instance" in layer.__name__
    x = numbers(*SHAPES[rank]) * 2 + 1
    expected = standard(
        x, tuple(range(2, x.ndim)) if single else (0, *range(2, x.ndim)), settings.get("eps", 1e-5)
    )
    if settings.get("affine", not single):
        expected = expected * channels(SCALE, rank)
        if settings.get("bias", True):
            expected = expected + channels(SHIFT, rank)
    kept = (
        moved(x, settings.get("momentum", 0.1), single)
        if settings.get("track_running_stats", not single)
        else ()
    )
    check(lambda x, **k: module(layer(3, dtype=wg.float64, **k), x), (x,), settings, (expected, kept))


REMEMBERING = [(F.batch_norm, dict(momentum=0.4, eps=0.3)), (F.instance_norm, dict(momentum=0.4, eps=0.3))]


@pytest.mark.parametrize(("function", "settings"), REMEMBERING)
def test_functions_that_remember_batches(function: Function, settings: dict[str, Any]) -> None:
    single = function is F.instance_norm
    x = numbers(*SHAPES[2]) * 2 + 1
    axes = (2, 3) if single else (0, 2, 3)

    def batch_norm(x: wg.Tensor, mean: wg.Tensor, var: wg.Tensor, **k: Any) -> Any:
        return F.batch_norm(x, mean, var, training=True, **k), mean, var

    def instance_norm(x: wg.Tensor, mean: wg.Tensor, var: wg.Tensor, **k: Any) -> Any:
        return F.instance_norm(x, mean, var, **k), mean, var

    before = (x, np.zeros(3), np.ones(3))
    expected = (standard(x, axes, 0.3), *moved(x, 0.4, single))
    check(instance_norm if single else batch_norm, before, settings, expected)
    # With numbers given, nothing of the batch counts.
    fixed = (x - channels(SHIFT, 2)) / np.sqrt(channels(SCALE**2, 2) + 1e-5)
    given = (x, SHIFT, SCALE**2)
    if single:
        check(F.instance_norm, given, dict(use_input_stats=False), fixed)
    else:
        near(run(F.batch_norm, given, {}), fixed)


def rms(x: Array, eps: float) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


X, V = numbers(4, 6, 5), numbers(2, 4, 3)
GROUPED = standard(X.reshape(4, 2, -1), -1, 0.3).reshape(X.shape)
RESPONSES = [(X[:, max(0, c - 1) : c + 2] ** 2).sum(1) / 3 for c in range(6)]
RESPONSE = np.stack([X[:, c] / (2 + 0.5 * r) ** 0.6 for c, r in enumerate(RESPONSES)], 1)
SINGLE = [
    (lambda x, **k: F.group_norm(x, 2, **k), X, dict(eps=0.3), GROUPED),
    (lambda x, **k: module(nn.GroupNorm(2, 6, affine=False, **k), x), X, dict(eps=0.3), GROUPED),
    (lambda x, **k: len(list(nn.GroupNorm(2, 6, **k).parameters())), X, dict(affine=False), 0),
    (nn.LayerNorm, V, dict(eps=0.3, elementwise_affine=False), standard(V, -1, 0.3)),
    (nn.LayerNorm, V, dict(bias=False), standard(V, -1) * SCALE),
    (nn.RMSNorm, V, dict(eps=0.3, elementwise_affine=False), rms(V, 0.3)),
    (lambda x, **k: F.rms_norm(x, (3,), **k), V, dict(weight=SCALE, eps=0.3), rms(V, 0.3) * SCALE),
    (lambda x, **k: F.local_response_norm(x, 3, **k), X, dict(alpha=0.5, beta=0.6, k=2.0), RESPONSE),
    (lambda x, **k: nn.LocalResponseNorm(3, **k)(x), X, dict(alpha=0.5, beta=0.6, k=2.0), RESPONSE),
]  # fmt: skip


@pytest.mark.parametrize(("function", "x", "settings", "expected"), SINGLE)
def test_norms_of_single_examples(
    function: Function, x: Array, settings: dict[str, Any], expected: Any
) -> None:
    if isinstance(function, type):
        layer = function
        function = lambda x, **k: module(layer(3, dtype=wg.float64, **k), x)
    check(function, (x,), settings, expected)


Z = np.array([-4.0, -2.0, -0.7, 0.0, 0.4, 2.5, 7.0])
SLOPES = np.where(Z > 0, Z, Z * 0.3)
ACTIVATIONS = [
    (F.elu, F.elu_, dict(alpha=0.5), np.where(Z > 0, Z, 0.5 * np.expm1(Z))),
    (F.celu, F.celu_, dict(alpha=0.5), np.where(Z > 0, Z, 0.5 * np.expm1(Z / 0.5))),
    (F.leaky_relu, F.leaky_relu_, dict(negative_slope=0.3), SLOPES),
    (F.hardtanh, F.hardtanh_, dict(min_val=-0.5, max_val=3.0), np.clip(Z, -0.5, 3.0)),
    (F.rrelu, F.rrelu_, dict(lower=0.2, upper=0.4), SLOPES),
]


@pytest.mark.parametrize(("function", "writing", "settings", "expected"), ACTIVATIONS)
def test_activations(
    function: Function, writing: Function, settings: dict[str, Any], expected: Array
) -> None:
    check(function, (Z,), settings, expected)
    check(writing, (Z,), settings, expected)
    x = wg.tensor(Z)
    assert writing(x, **settings) is x
    near(x, expected)


def test_random_slopes() -> None:
    for function in (F.rrelu, F.rrelu_):
        found = run(function, (-np.ones(1000),), dict(lower=0.2, upper=0.4, training=True)).numpy()
        assert ((-found >= 0.2) & (-found < 0.4)).all()
        assert stats.kstest(-found, "uniform", (0.2, 0.2)).pvalue > 1e-3
        assert differ(found, run(function, (-np.ones(1000),), dict(lower=0.2, upper=0.4)))


def test_glu_and_gumbel_softmax() -> None:
    check(F.glu, (V,), dict(dim=1), V[:, :2] / (1 + np.exp(-V[:, 2:])))
    rows = run(F.gumbel_softmax, (V,), dict(dim=1)).numpy()
    near(rows.sum(1), np.ones((2, 3)))
    assert differ(rows.sum(-1), np.ones((2, 4)))
    assert stats.binomtest(
        int(run(F.gumbel_softmax, (np.log([[0.3] * 2000, [0.7] * 2000]),), dict(dim=0, hard=True))[0].sum()),
        2000,
        0.3,
    ).pvalue > 1e-3  # fmt: skip


WRITING = [
    (nn.Threshold, dict(threshold=0.5, value=-3.0, inplace=True), np.where(Z > 0.5, Z, -3.0)),
    (nn.RReLU, dict(lower=0.3, upper=0.3), SLOPES),
    (nn.LeakyReLU, dict(negative_slope=0.3), SLOPES),
    (nn.ReLU, {}, np.maximum(Z, 0)),
    (nn.ReLU6, {}, np.clip(Z, 0, 6)),
    (nn.ELU, dict(alpha=0.5), np.where(Z > 0, Z, 0.5 * np.expm1(Z))),
    (nn.CELU, dict(alpha=0.5), np.where(Z > 0, Z, 0.5 * np.expm1(Z / 0.5))),
    (nn.Hardtanh, dict(min_val=-0.5, max_val=3.0), np.clip(Z, -0.5, 3.0)),
    (nn.Hardsigmoid, {}, np.clip(Z / 6 + 0.5, 0, 1)),
    (nn.Hardswish, {}, Z * np.clip(Z / 6 + 0.5, 0, 1)),
    (nn.SiLU, {}, Z / (1 + np.exp(-Z))),
    (nn.Mish, {}, Z * np.tanh(np.logaddexp(0, Z))),
    (nn.SELU, {}, 1.0507009873554805 * np.where(Z > 0, Z, 1.6732632423543772 * np.expm1(Z))),
]


@pytest.mark.parametrize(("layer", "settings", "expected"), WRITING)
def test_layers_that_write_their_input(layer: Any, settings: dict[str, Any], expected: Array) -> None:
    for inplace in (True, False):
        x = wg.tensor(Z)
        out = layer(**{**settings, "inplace": inplace})(x)
        near(out, expected)
        near(x, expected if inplace else Z)
        assert (out is x) == inplace


FUNCTIONS = [
    (F.threshold, (0.5, -3.0), dict(inplace=True)),
    (F.rrelu, (0.3, 0.3), dict(inplace=True)),
    (F.relu6, (), dict(inplace=True)),
    (F.celu, (0.5,), dict(inplace=True)),
    (F.hardsigmoid, (), dict(inplace=True)),
    (F.hardtanh, (-0.5, 3.0), dict(inplace=True)),
    (F.mish, (), dict(inplace=True)),
    (F.selu, (), dict(inplace=True)),
    (F.elu, (0.5,), dict(inplace=True)),
    (F.silu, (), dict(inplace=True)),
    (F.hardswish, (), dict(inplace=True)),
    (F.leaky_relu, (0.3,), dict(inplace=True)),
    (F.relu, (), dict(inplace=True)),
    (F.dropout, (0.6, True), dict(inplace=True)),
    (F.alpha_dropout, (0.6, True), dict(inplace=True)),
]
WRITERS = [F.celu_, F.elu_, F.hardtanh_, F.leaky_relu_, F.relu_, F.rrelu_, F.selu_, F.threshold_]


@pytest.mark.parametrize("function", WRITERS)
def test_names_with_an_underscore_have_no_inplace(function: Function) -> None:
    assert "inplace" not in inspect.signature(function).parameters
    more = (0.5, -3.0) if function is F.threshold_ else ()
    with pytest.raises(TypeError, match=f"^{function.__name__}.*leave inplace out"):
        function(wg.tensor(Z), *more, inplace=False)


@pytest.mark.parametrize(("function", "more", "settings"), FUNCTIONS)
def test_functions_that_write_their_input(function: Function, more: Any, settings: dict[str, Any]) -> None:
    wg.manual_seed(0)
    x, expected = wg.tensor(Z), getattr(F, function.__name__.rstrip("_"))(wg.tensor(Z), *more)
    wg.manual_seed(0)
    assert function(x, *more, **settings) is x
    near(x, expected)
    assert differ(x, Z)


DROPOUTS = [
    (F.dropout, nn.Dropout, dict(p=0.7, inplace=True), 4),
    (F.dropout1d, nn.Dropout1d, dict(p=0.7, inplace=True), 3),
    (F.dropout2d, nn.Dropout2d, dict(p=0.7, inplace=True), 4),
    (F.dropout3d, nn.Dropout3d, dict(p=0.7, inplace=True), 5),
    (F.feature_alpha_dropout, nn.FeatureAlphaDropout, dict(p=0.7, inplace=True), 4),
    (F.alpha_dropout, nn.AlphaDropout, dict(p=0.7, inplace=True), 4),
]


def kept_value(alpha: bool, keep: float) -> tuple[float, float]:
    """What ones and dropped elements become: of equal mean and variance
    in the alpha kinds (Klambauer et al. 2017).
    """
    if not alpha:
        return 1 / keep, 0.0
    low = -1.0507009873554805 * 1.6732632423543772
    a = (keep + low**2 * keep * (1 - keep)) ** -0.5
    b = -a * (1 - keep) * low
    return a + b, a * low + b


IDLE = [
    (F.dropout, dict(training=False)), (F.dropout1d, dict(training=False)),
    (F.dropout2d, dict(training=False)),
    (F.dropout3d, dict(training=False)), (F.alpha_dropout, dict(training=True)),
    (F.feature_alpha_dropout, dict(training=True)), (F.rrelu, dict(training=True)),
    (F.rrelu_, dict(training=True)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "settings"), IDLE)
def test_training(function: Function, settings: dict[str, Any]) -> None:
    """Functions of random numbers that act by default, or do not, as in PyTorch."""
    x = -np.ones((30, 2, 2, 2, 2)) if function is F.dropout3d else -np.ones((30, 2, 2, 2))
    x = x[..., 0] if function is F.dropout1d else x
    results = [run(function, (x,), settings), run(function, (x,), {})]
    quiet, random = (
        results if function in (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d) else results[::-1]
    )
    near(quiet, x * (11 / 48) if function in (F.rrelu, F.rrelu_) else x)
    assert differ(random, quiet)


@pytest.mark.parametrize(("function", "layer", "settings", "rank"), DROPOUTS)
def test_dropout(function: Function, layer: Any, settings: dict[str, Any], rank: int) -> None:
    ones = np.ones((40, 30, 2, 3, 2)[:rank])
    high, low = kept_value("alpha" in function.__name__, 0.3)
    by_channel = function not in (F.dropout, F.alpha_dropout)
    for call in (lambda x, **k: function(x, training=True, **k), lambda x, **k: layer(**k)(x)):
        wg.manual_seed(1)
        x = wg.tensor(ones)
        assert call(x, **settings) is x
        found = x.numpy().reshape(1200, -1)
        assert np.isclose(found, high).sum() + np.isclose(found, low).sum() == found.size
        assert (found == found[:, :1]).all() == by_channel or rank == 2
        draws = found[:, 0] if by_channel else found.ravel()
        assert stats.binomtest(int(np.isclose(draws, high).sum()), draws.size, 0.3).pvalue > 1e-3
    # Outside of training nothing happens.
    x = wg.tensor(ones)
    near(function(x, **settings, training=False), ones)
    near(layer(**settings).eval()(x), ones)


def bound(gain: float, fan: float, kind: str) -> Any:
    """The distribution of weights by its standard deviation."""
    sd = gain / np.sqrt(fan)
    return ("uniform", (-sd * np.sqrt(3), 2 * sd * np.sqrt(3))) if kind == "uniform" else ("norm", (0, sd))


SLOPE = np.sqrt(2 / (1 + 0.7**2))
INITS = [
    (init.kaiming_normal_, dict(a=0.7), bound(SLOPE, 60, "norm")),
    (init.kaiming_uniform_, dict(a=0.7), bound(SLOPE, 60, "uniform")),
    (init.kaiming_uniform_, dict(mode="fan_out"), bound(np.sqrt(2), 150, "uniform")),
    (init.kaiming_normal_, dict(mode="fan_out", nonlinearity="tanh"), bound(5 / 3, 150, "norm")),
    (init.xavier_normal_, dict(gain=1.7), bound(1.7, 105, "norm")),
    (init.xavier_uniform_, dict(gain=1.7), bound(1.7, 105, "uniform")),
    (init.trunc_normal_, dict(mean=0.5, std=2.0, a=-1.0, b=3.0), ("truncnorm", (-0.75, 1.25, 0.5, 2.0))),
]  # fmt: skip


@pytest.mark.parametrize(("function", "settings", "law"), INITS)
def test_laws_of_initial_weights(function: Function, settings: dict[str, Any], law: Any) -> None:
    wg.manual_seed(0)
    found = function(wg.empty(50, 20, 3, dtype=wg.float64), **settings).numpy().ravel()
    assert stats.kstest(found, *law).pvalue > 1e-3
    for keyword in settings:
        rest = {k: v for k, v in settings.items() if k != keyword}
        without = function(wg.empty(50, 20, 3, dtype=wg.float64), **rest).numpy().ravel()
        assert stats.kstest(without, *law).pvalue < 1e-4, keyword


def test_prelu_and_gains() -> None:
    check(lambda x, **k: nn.PReLU(dtype=wg.float64, **k)(x), (Z,), dict(init=0.3), SLOPES)
    assert nn.PReLU(num_parameters=3).weight.shape == (3,)
    assert init.calculate_gain("leaky_relu", param=0.7) == pytest.approx(SLOPE)
    assert init.calculate_gain("leaky_relu") == pytest.approx(np.sqrt(2 / (1 + 0.01**2)))
