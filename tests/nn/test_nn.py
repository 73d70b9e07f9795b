"""Layers and losses, against NumPy and finite differences."""

import inspect
import math
import warnings

import numpy as np
import pytest
import wengert as wg
from references.nn_reference import array, check_gradient, close
from scipy.special import erf, expit
from wengert import nn
from wengert.nn import functional as F


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x, axis=-1):
    return np.log(softmax(x, axis))


ACTIVATIONS = {
    "relu": (F.relu, lambda x: np.maximum(x, 0)),
    "relu6": (F.relu6, lambda x: np.clip(x, 0, 6)),
    "leaky_relu": (F.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
    "elu": (F.elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "celu": (lambda x: F.celu(x, 2.0), lambda x: np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0) / 2))),
    "selu": (
        F.selu,
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    ),
    "gelu": (F.gelu, lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2)))),
    "gelu_tanh": (
        lambda x: F.gelu(x, "tanh"),
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    "silu": (F.silu, lambda x: x * expit(x)),
    "mish": (F.mish, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "glu": (F.glu, lambda x: x[..., :2] * expit(x[..., 2:])),
    "sigmoid": (F.sigmoid, expit),
    "logsigmoid": (F.logsigmoid, lambda x: -np.logaddexp(0, -x)),
    "tanh": (F.tanh, np.tanh),
    "tanhshrink": (F.tanhshrink, lambda x: x - np.tanh(x)),
    "softplus": (lambda x: F.softplus(x, 2.0), lambda x: np.logaddexp(0, 2 * x) / 2),
    "softsign": (F.softsign, lambda x: x / (1 + np.abs(x))),
    "hardtanh": (F.hardtanh, lambda x: np.clip(x, -1, 1)),
    "hardsigmoid": (F.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "hardswish": (F.hardswish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "softmax": (F.softmax, softmax),
    "softmin": (lambda x: F.softmin(x, 0), lambda x: softmax(-x, 0)),
    "log_softmax": (lambda x: F.log_softmax(x, 0), lambda x: log_softmax(x, 0)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_value_and_gradient(name):
    function, reference = ACTIVATIONS[name]
    x = array(3, 4)
    close(function(wg.tensor(x, dtype=wg.float64)), reference(x), 1e-12)
    close(function(wg.tensor(3 * x, dtype=wg.float32)), reference(3 * x), 2e-6)
    check_gradient(function, x)


def test_activation_layers_have_the_functions_and_settings():
    x = wg.tensor(array(2, 4))
    for layer, function in [
        (nn.ReLU(), F.relu),
        (nn.GELU(approximate="tanh"), lambda x: F.gelu(x, "tanh")),
        (nn.LeakyReLU(0.2), lambda x: F.leaky_relu(x, 0.2)),
        (nn.Softmax(dim=0), lambda x: F.softmax(x, 0)),
        (nn.Softplus(beta=2.0), lambda x: F.softplus(x, 2.0)),
        (nn.Softplus(threshold=0.1), lambda x: F.softplus(x, 1.0, 0.1)),
        (nn.Softshrink(lambd=0.2), lambda x: F.softshrink(x, 0.2)),
        (nn.GLU(dim=0), lambda x: F.glu(x, 0)),
        (nn.LogSoftmax(dim=0), lambda x: F.log_softmax(x, 0)),
        (nn.Softmin(dim=0), lambda x: F.softmin(x, 0)),
        (nn.ReLU(inplace=True), F.relu),
    ]:
        close(layer(x), function(x).tolist())
    written = [
        nn.CELU(inplace=True),
        nn.Hardsigmoid(inplace=True),
        nn.Hardswish(inplace=True),
        nn.Mish(inplace=True),
        nn.ReLU6(inplace=True),
        nn.SELU(inplace=True),
        nn.SiLU(inplace=True),
    ]
    for layer in written:
        y, result = x.clone(), type(layer)()(x)
        assert layer(y) is y
        assert y.tolist() == result.tolist()
    assert repr(nn.GELU()) == "GELU(approximate='none')"
    assert repr(nn.Hardtanh()) == "Hardtanh(min_val=-1.0, max_val=1.0)"
    with pytest.raises(TypeError, match="Softplus takes beta, threshold"):
        nn.Softplus(gamma=1.0)


def test_linear():
    layer = nn.Linear(3, 2)
    x = array(5, 3).astype(np.float32)
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    close(layer(wg.tensor(x)), x @ w.T + b, 1e-5)
    assert nn.Linear(3, 2, bias=False).bias is None
    assert repr(layer) == "Linear(in_features=3, out_features=2, bias=True)"
    check_gradient(F.linear, array(2, 4, 3), array(2, 3), array(2))
    with pytest.raises(wg.ShapeError, match=r"input of shape \(5, 4\) with weight of shape \(2, 3\)"):
        layer(wg.ones(5, 4))


def test_default_initialisation_is_uniform_within_the_bound():
    wg.manual_seed(0)
    layer = nn.Linear(400, 300)
    bound = 1 / math.sqrt(400)
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    for values in (w, b):
        assert np.abs(values).max() <= bound
    assert abs(w.std() - bound / math.sqrt(3)) < 1e-4
    assert abs(w.mean()) < 5e-4


def test_bilinear():
    check_gradient(F.bilinear, array(2, 3), array(2, 4), array(5, 3, 4), array(5))
    x, y, w = array(2, 3), array(2, 4), array(5, 3, 4)
    out = F.bilinear(*[wg.tensor(a, dtype=wg.float64) for a in (x, y, w)])
    close(out, np.einsum("ni,oij,nj->no", x, w, y), 1e-12)


def test_embedding_and_padding_row():
    layer = nn.Embedding(5, 3, padding_idx=1)
    assert layer.weight[1].tolist() == [0, 0, 0]
    index = wg.tensor([[0, 1], [4, 0]])
    out = layer(index)
    assert tuple(out.shape) == (2, 2, 3)
    close(out[1, 0], layer.weight[4].tolist())
    out.sum().backward()
    close(layer.weight.grad, [[2] * 3, [0] * 3, [0] * 3, [0] * 3, [1] * 3])
    with pytest.raises(IndexError, match="5"):
        layer(wg.tensor([5]))
    with pytest.raises(TypeError, match=r"integer indices expected, got wengert\.float32"):
        layer(wg.tensor([1.0]))


def test_layer_norm():
    def reference(x, w, b):
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / np.sqrt(var + 1e-5) * w + b

    x, w, b = array(4, 6), array(6), array(1, 6)[0]
    out = F.layer_norm(
        *[wg.tensor(a, dtype=wg.float64) if i != 1 else (6,) for i, a in enumerate((x, 0, w, b))]
    )
    close(out, reference(x, w, b), 1e-10)
    check_gradient(lambda x, w, b: F.layer_norm(x, (6,), w, b), x, w, b)
    layer = nn.LayerNorm((4, 6))
    y = layer(wg.tensor(x, dtype=wg.float32)).detach().numpy()
    assert abs(y.mean()) < 1e-6
    assert abs(y.std() - 1) < 1e-4
    assert nn.LayerNorm(6, bias=False).bias is None
    assert dict(nn.LayerNorm(6, elementwise_affine=False).named_parameters()) == {}


def test_rms_norm_and_group_norm():
    x, w = array(4, 6), array(6)
    close(
        F.rms_norm(wg.tensor(x, dtype=wg.float64), (6,), wg.tensor(w, dtype=wg.float64), 1e-6),
        x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * w,
        1e-10,
    )
    check_gradient(lambda x, w: F.rms_norm(x, (6,), w, 1e-6), x, w)
    # A tensor for eps, or complex numbers.
    eps, t = wg.tensor([0.1, 0.2], dtype=wg.float64), wg.tensor(x, dtype=wg.float64)
    each = wg.vmap(lambda e: F.rms_norm(t, (6,), eps=e))(eps)
    for got, e in zip(each, (0.1, 0.2), strict=True):
        close(got, F.rms_norm(t, (6,), eps=e), 1e-14)
    check_gradient(lambda x, e: F.rms_norm(x, (6,), None, e.exp()), x, np.array(0.3))
    z = x + 1j * x[::-1]
    close(F.rms_norm(wg.tensor(z), (6,), eps=0.1), z / np.sqrt((z * z).mean(-1, keepdims=True) + 0.1), 1e-6)


@pytest.mark.parametrize("shape", [(40, 300), (1, 1 << 20), (5000, 7)])
def test_rms_norm_is_as_accurate_as_its_sums(shape):
    rng = np.random.default_rng(3)
    # Positive numbers, whose partial sums grow.
    x, g = (rng.uniform(0.5, 1.5, shape).astype("float32") for _ in range(2))
    w = rng.uniform(0.5, 1.5, shape[1]).astype("float32")
    found = []
    for dtype in (wg.float32, wg.float64):
        tx, tw = (wg.tensor(v).to(dtype).requires_grad_() for v in (x, w))
        y = F.rms_norm(tx, shape[1:], tw, 1e-6)
        grads = wg.autograd.grad(y, [tx, tw], wg.tensor(g).to(dtype))
        found.append([v.detach().double().numpy() for v in (y, *grads)])
    x, g, w = (v.astype("float64") for v in (x, g, w))
    rstd = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    normal, h = x * rstd, g * w
    dx = rstd * (h - normal * (h * normal).mean(-1, keepdims=True))
    exact = normal * w, dx, (g * normal).sum(0)
    for single, double, want in zip(*found, exact, strict=True):
        np.testing.assert_allclose(double, want, rtol=1e-12, atol=1e-12)
        assert ((single - want) ** 2).sum() <= (2.8e-7) ** 2 * (want**2).sum()
    x, w, b = array(2, 6, 3), array(6), array(6)
    groups = x.reshape(2, 3, -1)
    expected = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    expected = expected.reshape(x.shape) * w[:, None] + b[:, None]
    out = F.group_norm(
        wg.tensor(x, dtype=wg.float64), 3, wg.tensor(w, dtype=wg.float64), wg.tensor(b, dtype=wg.float64)
    )
    close(out, expected, 1e-10)
    assert len(list(nn.GroupNorm(3, 6).parameters())) == 2


def test_dropout():
    wg.manual_seed(0)
    x = wg.ones(200, 200, requires_grad=True)
    y = F.dropout(x, 0.25)
    values = y.detach().numpy()
    np.testing.assert_allclose(np.unique(values), [0, 1 / 0.75], rtol=1e-6)
    assert abs((values == 0).mean() - 0.25) < 0.01
    y.sum().backward()
    close(x.grad, values.tolist())
    layer = nn.Dropout(0.5).eval()
    assert layer(x) is x
    close(F.dropout(x, 1.0), np.zeros((200, 200)))
    with pytest.raises(ValueError, match=r"between 0 and 1, got 1\.5"):
        nn.Dropout(1.5)


def test_cross_entropy_indices():
    x, t, w = array(6, 5), np.array([0, 4, -100, 2, 1, 1]), np.array([1.0, 2.0, 0.5, 3.0, 1.5])
    rows = t != -100
    nll = -log_softmax(x)[np.arange(6), np.where(rows, t, 0)] * rows
    weights = w[np.where(rows, t, 0)] * rows
    logits, target = wg.tensor(x, dtype=wg.float64), wg.tensor(t)
    close(F.cross_entropy(logits, target), nll.sum() / rows.sum(), 1e-10)
    close(F.cross_entropy(logits, target, reduction="none"), nll, 1e-10)
    close(F.cross_entropy(logits, target, reduction="sum"), nll.sum(), 1e-10)
    weighted = F.cross_entropy(logits, target, weight=wg.tensor(w, dtype=wg.float64))
    close(weighted, (nll * weights).sum() / weights.sum(), 1e-10)
    close(F.nll_loss(F.log_softmax(logits, 1), target), nll.sum() / rows.sum(), 1e-10)
    # Smoothing is the cross-entropy with (1 - s) onehot + s / C.
    soft = 0.9 * np.eye(5)[np.where(rows, t, 0)] + 0.1 / 5
    expected = (-(soft * log_softmax(x)).sum(1) * rows).sum() / rows.sum()
    close(F.cross_entropy(logits, target, label_smoothing=0.1), expected, 1e-10)
    check_gradient(lambda x: F.cross_entropy(x, target, label_smoothing=0.1), x)
    check_gradient(lambda x: F.cross_entropy(x, target, weight=wg.tensor(w, dtype=wg.float64)), x)


def test_cross_entropy_other_shapes():
    x, t = array(2, 5, 3), np.array([[0, 1, 4], [2, 2, 3]])
    expected = -np.take_along_axis(log_softmax(x, 1), t[:, None], 1)[:, 0]
    close(F.cross_entropy(wg.tensor(x, dtype=wg.float64), wg.tensor(t), reduction="none"), expected, 1e-10)
    close(
        F.cross_entropy(wg.tensor(x[0, :, 0], dtype=wg.float64), wg.tensor(3)),
        -log_softmax(x[0, :, 0])[3],
        1e-10,
    )
    soft = softmax(array(4, 5))
    y = array(4, 5)
    expected = -(soft * log_softmax(y)).sum(1).mean()
    close(F.cross_entropy(wg.tensor(y, dtype=wg.float64), wg.tensor(soft, dtype=wg.float64)), expected, 1e-10)


def test_cross_entropy_errors():
    with pytest.raises(IndexError, match="7"):
        F.cross_entropy(wg.zeros(2, 5), wg.tensor([0, 7]))
    with pytest.raises(wg.ShapeError):
        F.cross_entropy(wg.zeros(2, 5), wg.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="reduction must be"):
        F.cross_entropy(wg.zeros(2, 5), wg.tensor([0, 1]), reduction="avg")


def bce(p, t):
    return -(t * np.log(p) + (1 - t) * np.log(1 - p))


X, T = array(3, 4), (array(4, 3).T > 0).astype(float)
LOSSES = {
    "bce_with_logits": (
        lambda x: F.binary_cross_entropy_with_logits(x, wg.tensor(T)),
        lambda x: bce(expit(x), T).mean(),
    ),
    "bce_pos_weight": (
        lambda x: F.binary_cross_entropy_with_logits(
            x, wg.tensor(T), pos_weight=wg.tensor(2.0, dtype=wg.float64)
        ),
        lambda x: -(2 * T * np.log(expit(x)) + (1 - T) * np.log(expit(-x))).mean(),
    ),
    "bce": (lambda x: F.binary_cross_entropy(F.sigmoid(x), wg.tensor(T)), lambda x: bce(expit(x), T).mean()),
    "mse": (lambda x: F.mse_loss(x, wg.tensor(T)), lambda x: ((x - T) ** 2).mean()),
    "l1": (lambda x: F.l1_loss(x, wg.tensor(T), "sum"), lambda x: np.abs(x - T).sum()),
    "huber": (
        lambda x: F.huber_loss(x, wg.tensor(T), delta=0.7),
        lambda x: np.where(np.abs(x - T) <= 0.7, (x - T) ** 2 / 2, 0.7 * (np.abs(x - T) - 0.35)).mean(),
    ),
    "smooth_l1": (
        lambda x: F.smooth_l1_loss(x, wg.tensor(T), beta=0.7),
        lambda x: np.where(np.abs(x - T) < 0.7, (x - T) ** 2 / 1.4, np.abs(x - T) - 0.35).mean(),
    ),
    "kl_div": (
        lambda x: F.kl_div(F.log_softmax(x), wg.tensor(softmax(X)), "batchmean"),
        lambda x: (softmax(X) * (np.log(softmax(X)) - log_softmax(x))).sum() / 3,
    ),
    "kl_div_log": (
        lambda x: F.kl_div(F.log_softmax(x), wg.tensor(log_softmax(X)), "sum", log_target=True),
        lambda x: (softmax(X) * (np.log(softmax(X)) - log_softmax(x))).sum(),
    ),
    "poisson": (lambda x: F.poisson_nll_loss(x, wg.tensor(T)), lambda x: (np.exp(x) - T * x).mean()),
    "gaussian": (
        lambda x: F.gaussian_nll_loss(x, wg.tensor(T), wg.full_like(x, 0.5), full=True),
        lambda x: (0.5 * (np.log(0.5) + (x - T) ** 2 / 0.5) + 0.5 * np.log(2 * np.pi)).mean(),
    ),
    "hinge_embedding": (
        lambda x: F.hinge_embedding_loss(x, wg.tensor(2 * T - 1)),
        lambda x: np.where(T == 1, x, np.maximum(0, 1 - x)).mean(),
    ),
    "soft_margin": (
        lambda x: F.soft_margin_loss(x, wg.tensor(2 * T - 1)),
        lambda x: np.log1p(np.exp(-(2 * T - 1) * x)).mean(),
    ),
    "margin_ranking": (
        lambda x: F.margin_ranking_loss(x, wg.tensor(T), wg.tensor(2 * T - 1), 0.3),
        lambda x: np.maximum(0, 0.3 - (2 * T - 1) * (x - T)).mean(),
    ),
    "triplet": (
        lambda x: F.triplet_margin_loss(x, wg.tensor(T), wg.tensor(X[::-1].copy())),
        lambda x: np.maximum(
            0, np.linalg.norm(x - T + 1e-6, axis=1) - np.linalg.norm(x - X[::-1] + 1e-6, axis=1) + 1
        ).mean(),
    ),
    "cosine_embedding": (
        lambda x: F.cosine_embedding_loss(x, wg.tensor(T), wg.tensor([1.0, -1.0, 1.0], dtype=wg.float64)),
        lambda x: np.where(
            [True, False, True],
            1 - (x * T).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(T, axis=1),
            np.maximum(0, (x * T).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(T, axis=1)),
        ).mean(),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_loss_value_and_gradient(name):
    function, reference = LOSSES[name]
    x = X + 0.1
    close(function(wg.tensor(x)), reference(x), 1e-9)
    check_gradient(function, x)


def test_loss_layers():
    x, t = wg.tensor(X), wg.tensor(T)
    close(nn.MSELoss(reduction="sum")(x, t), ((X - T) ** 2).sum(), 1e-9)
    weight = wg.tensor([1.0, 2.0, 3.0, 4.0], dtype=wg.float64)
    layer = nn.CrossEntropyLoss(weight, label_smoothing=0.1)
    target = wg.tensor([0, 3, 2])
    close(layer(x, target), F.cross_entropy(x, target, weight, label_smoothing=0.1).item())
    assert "weight" in layer.state_dict()
    close(
        nn.BCEWithLogitsLoss(pos_weight=weight)(x, t),
        F.binary_cross_entropy_with_logits(x, t, pos_weight=weight).item(),
    )
    with pytest.raises(ValueError, match="reduction must be one of mean, sum, none, got 'avg'"):
        nn.L1Loss(reduction="avg")


def test_loss_layers_take_settings_in_pytorchs_order():
    x, t, w = wg.tensor(X), wg.tensor([0, 3, 2]), wg.tensor([1.0, 2.0, 3.0, 4.0], dtype=wg.float64)
    close(nn.MultiMarginLoss(2, 0.5, w, "sum")(x, t), F.multi_margin_loss(x, t, 2, 0.5, w, "sum").item())
    layer = nn.BCEWithLogitsLoss(None, "sum", w)
    close(layer(x, wg.tensor(T)), F.binary_cross_entropy_with_logits(x, wg.tensor(T), None, "sum", w).item())


def test_losses_at_the_edge():
    p = wg.tensor([0.0, 1.0, 0.5], dtype=wg.float64, requires_grad=True)
    loss = F.binary_cross_entropy(p, wg.tensor([0.0, 1.0, 1.0], dtype=wg.float64), reduction="sum")
    close(loss, math.log(2))
    loss.backward()
    assert np.isfinite(p.grad.tolist()).all()
    x = wg.tensor([1000.0, -1000.0], requires_grad=True)
    F.binary_cross_entropy_with_logits(x, wg.tensor([1.0, 0.0])).backward()
    close(x.grad, [0, 0])
    close(F.logsigmoid(wg.tensor([-1000.0])), [-1000])


def test_mse_warns_about_broadcasting():
    with pytest.warns(
        UserWarning, match=r"input of shape \(3, 1\) and target of shape \(3,\) only match by broadcasting"
    ):
        F.mse_loss(wg.ones(3, 1), wg.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.mse_loss(wg.ones(3), wg.ones(3))


def test_one_hot_and_pad():
    assert F.one_hot(wg.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert tuple(F.one_hot(wg.tensor([[1]]), 4).shape) == (1, 1, 4)
    x = array(2, 3, 4)
    t = wg.tensor(x, dtype=wg.float64)
    close(F.pad(t, (1, 2), value=7.0), np.pad(x, [(0, 0), (0, 0), (1, 2)], constant_values=7))
    close(F.pad(t, (0, 1, 2, 0)), np.pad(x, [(0, 0), (2, 0), (0, 1)]))
    for mode, name in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
        close(F.pad(t, (2, 1, 1, 2), mode), np.pad(x, [(0, 0), (1, 2), (2, 1)], mode=name))
        check_gradient(lambda x, mode=mode: F.pad(x, (2, 1), mode), array(2, 4))
    with pytest.raises(ValueError, match="takes widths up to 3"):
        F.pad(t, (4, 0), "reflect")


def test_normalize_cosine_distance():
    x, y = array(3, 4), array(4, 3).T.copy()
    t, u = wg.tensor(x, dtype=wg.float64), wg.tensor(y, dtype=wg.float64)
    close(F.normalize(t), x / np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    cosine = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    close(F.cosine_similarity(t, u), cosine, 1e-12)
    close(F.pairwise_distance(t, u), np.linalg.norm(x - y + 1e-6, axis=1), 1e-12)
    check_gradient(F.cosine_similarity, x, y)
    check_gradient(lambda x: F.normalize(x, p=3.0), x)
    zero = wg.zeros(2, 3, requires_grad=True)
    F.normalize(zero).sum().backward()
    assert np.isfinite(zero.grad.tolist()).all()


def test_attention():
    q, k, v = array(2, 3, 4), array(2, 5, 4), array(2, 5, 6)
    weights = softmax(q @ k.swapaxes(1, 2) / 2)
    tensors = [wg.tensor(a, dtype=wg.float64) for a in (q, k, v)]
    close(F.scaled_dot_product_attention(*tensors), weights @ v, 1e-10)
    mask = np.tril(np.ones((3, 5), bool))
    scores = np.where(mask, q @ k.swapaxes(1, 2) / 2, -np.inf)
    close(F.scaled_dot_product_attention(*tensors, is_causal=True), softmax(scores) @ v, 1e-10)
    check_gradient(F.scaled_dot_product_attention, q, k, v)
    check_gradient(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)
    none = wg.zeros(3, 5, dtype=wg.bool)
    close(F.scaled_dot_product_attention(*tensors, attn_mask=none), np.zeros((2, 3, 6)))
    with pytest.raises(ValueError, match="not both"):
        F.scaled_dot_product_attention(*tensors, attn_mask=none, is_causal=True)


def test_functions_name_the_argument_that_is_no_tensor():
    for name in F.__all__:
        function = getattr(F, name)
        wanted = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
        given = [None if p.annotation is wg.Tensor else (1, 2) for p in wanted]
        own = name.removesuffix("_with_indices")
        with pytest.raises(TypeError, match=rf"^{own}: {wanted[0].name} must be a tensor, got NoneType"):
            function(*given)


@pytest.mark.parametrize(
    ("p", "expected"), [(0, [1.5, 0, 2]), (math.inf, [0.75, 0, 1]), (1, [3 / 7, 0, 4 / 7])]
)
def test_normalize_takes_every_norm(p, expected):
    np.testing.assert_allclose(F.normalize(wg.tensor([3.0, 0.0, 4.0]), p=p, dim=0).tolist(), expected)
