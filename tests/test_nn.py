"""Layers, losses and the module tree, against NumPy and finite differences."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
import wengert as wg
from scipy.special import erf, expit
from wengert import nn
from wengert.nn import functional as F


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape) + 7).standard_normal(shape)


def close(actual, expected, tol=1e-6):
    actual = actual.detach().tolist() if isinstance(actual, wg.Tensor) else actual
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tol, atol=tol)


def check_gradient(function, *arrays, tol=1e-6):
    """Reverse-mode gradients of a weighted sum of outputs, against central differences in float64."""
    inputs = [wg.tensor(a, dtype=wg.float64, requires_grad=True) for a in arrays]
    out = function(*inputs)
    weights = np.random.default_rng(3).standard_normal(tuple(out.shape))
    (out * wg.tensor(weights, dtype=wg.float64)).sum().backward()

    def value(at):
        out = function(*[wg.tensor(a, dtype=wg.float64) for a in at])
        return float((np.asarray(out.tolist()) * weights).sum())

    for i, x in enumerate(inputs):
        expected = np.zeros_like(arrays[i])
        for index in np.ndindex(arrays[i].shape):
            both = []
            for step in (1e-6, -1e-6):
                moved = [a.copy() for a in arrays]
                moved[i][index] += step
                both.append(value(moved))
            expected[index] = (both[0] - both[1]) / 2e-6
        close(x.grad, expected, tol)


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
        (nn.ReLU(inplace=True), F.relu),
    ]:
        close(layer(x), function(x).tolist())
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
    assert set(np.unique(values).round(5)) == {0.0, round(1 / 0.75, 5)}
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


# The module tree.


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        self.scale = nn.Parameter(wg.ones(2))
        self.register_buffer("offset", wg.zeros(2))
        self.register_buffer("counter", wg.tensor(0), persistent=False)

    def forward(self, x):
        return self.layers(x) * self.scale + self.offset


def test_registration_and_walking():
    net = Net()
    names = [name for name, _ in net.named_parameters()]
    assert names == ["scale", "layers.0.weight", "layers.0.bias", "layers.2.weight", "layers.2.bias"]
    assert [name for name, _ in net.named_buffers()] == ["offset", "counter"]
    assert [name for name, _ in net.named_modules()] == ["", "layers", "layers.0", "layers.1", "layers.2"]
    assert list(net.state_dict()) == [*names[:1], "offset", *names[1:]]
    assert net.get_parameter("layers.2.bias") is net.layers[2].bias
    assert "scale" in net.__dict__
    with pytest.raises(AttributeError, match="has no submodule 'nothing'"):
        net.get_submodule("layers.nothing")
    assert all(isinstance(p, nn.Parameter) and p.requires_grad and p.is_leaf for p in net.parameters())


def test_assignment_rules():
    net = Net()
    with pytest.raises(TypeError, match="scale is a parameter, got Tensor"):
        net.scale = wg.ones(2)
    net.scale = None
    assert "scale" not in dict(net.named_parameters())
    net.offset = wg.ones(2)
    assert net.state_dict()["offset"].tolist() == [1, 1]
    del net.layers
    assert list(net.children()) == []
    with pytest.raises(KeyError, match="without dots"):
        net.register_buffer("a.b", None)

    class Early(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(wg.ones(1))

    with pytest.raises(AttributeError, match=r"call super\(\).__init__\(\) first"):
        Early()
    with pytest.raises(NotImplementedError, match="has no forward method"):
        nn.Module()(1)


def test_shared_parameters_count_once():
    net = nn.Module()
    net.a = nn.Linear(2, 2, bias=False)
    net.b = net.a
    net.c = nn.Linear(2, 2, bias=False)
    net.c.weight = net.a.weight
    assert [name for name, _ in net.named_parameters()] == ["a.weight"]
    assert list(net.state_dict()) == ["a.weight", "b.weight", "c.weight"]


def test_state_dict_round_trip_and_errors():
    a, b = Net(), Net()
    assert b.load_state_dict(a.state_dict()) == ([], [])
    x = wg.tensor(array(5, 3), dtype=wg.float32)
    close(a(x), b(x).tolist())
    state = dict(a.state_dict())
    del state["scale"]
    state["extra"] = wg.zeros(1)
    state["offset"] = wg.zeros(3)
    before = b.state_dict()["layers.0.weight"].tolist()
    state["layers.0.weight"] = wg.zeros(4, 3)
    with pytest.raises(RuntimeError) as error:
        b.load_state_dict(state)
    assert str(error.value) == (
        "load_state_dict of Net:\n  missing key 'scale'\n  unexpected key 'extra'\n"
        "  shape of 'offset': (3,) in the state dict, (2,) in the module"
    )
    assert b.state_dict()["layers.0.weight"].tolist() == before
    del state["offset"]
    found = b.load_state_dict(state, strict=False)
    assert found.missing_keys == ["scale", "offset"]
    assert found.unexpected_keys == ["extra"]
    assert b.layers[0].weight.tolist() == [[0] * 3] * 4
    b.load_state_dict({key: value.numpy() for key, value in a.state_dict().items()})
    close(a(x), b(x).tolist())


def test_pickle_and_deepcopy():
    net = Net()
    net.layers[2].weight = nn.Parameter(net.layers[2].weight.detach().clone())
    x = wg.tensor(array(5, 3), dtype=wg.float32)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        close(other(x), net(x).tolist())
        assert isinstance(other.scale, nn.Parameter)
        other.scale.data.fill_(0.0)
        assert net.scale.tolist() == [1, 1]


def test_to_keeps_parameter_objects():
    net = Net()
    before = list(net.parameters())
    net(wg.ones(1, 3)).sum().backward()
    assert net.double() is net
    assert all(p is q for p, q in zip(before, net.parameters()))
    assert all(p.dtype == wg.float64 and p.grad.dtype == wg.float64 for p in net.parameters())
    assert net.offset.dtype == wg.float64
    assert net.counter.dtype == wg.int64
    net.to(wg.bfloat16)
    assert net.scale.dtype == wg.bfloat16
    assert net.to("cpu", wg.float32).scale.dtype == wg.float32
    with pytest.raises(TypeError, match="need a floating point dtype"):
        net.to(dtype=wg.int64)


def test_modes_and_gradients():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    net.eval()
    assert not net[1].training
    net.train()
    assert net[1].training
    net(wg.ones(1, 2)).sum().backward()
    assert net[0].weight.grad is not None
    net.zero_grad(set_to_none=False)
    assert net[0].weight.grad.tolist() == [[0, 0], [0, 0]]
    net.zero_grad()
    assert net[0].weight.grad is None
    net.requires_grad_(False)
    assert not net(wg.ones(1, 2)).requires_grad


def test_hooks():
    net, seen = nn.Linear(2, 2), []
    first = net.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    second = net.register_forward_hook(lambda module, args, out: seen.append(args[0].tolist()))
    third = net.register_forward_hook(lambda module, args, out: out * 0)
    assert net(wg.ones(1, 2)).tolist() == [[0, 0]]
    assert seen == [[[2, 2]]]
    for handle in (first, second, third):
        handle.remove()
    close(net(wg.ones(1, 2)), (net.weight.sum(1) + net.bias).unsqueeze(0).tolist())


def test_containers():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert len(net) == 3
    assert net[-1] is list(net)[2]
    assert len(net[:2]) == 2
    net.insert(1, nn.Tanh())
    assert [type(m).__name__ for m in net] == ["Linear", "Tanh", "ReLU", "Linear"]
    del net[1]
    net.append(nn.Sigmoid())
    assert list(net.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    with pytest.raises(IndexError, match="index 9 is outside its 4 modules"):
        net[9]
    named = nn.Sequential({"first": nn.Linear(2, 2), "act": nn.ReLU()})
    assert named.first is named[0]
    items = nn.ModuleList([nn.Linear(1, 1) for _ in range(3)])
    assert len(list(items.parameters())) == 6
    table = nn.ModuleDict({"a": nn.Linear(1, 1)})
    table["b"] = nn.ReLU()
    assert table.keys() == ["a", "b"]
    assert "a" in table
    assert table.pop("a").in_features == 1
    assert len(table) == 1
    assert repr(nn.Sequential(nn.Linear(2, 1), nn.ReLU())) == (
        "Sequential(\n  (0): Linear(in_features=2, out_features=1, bias=True)\n  (1): ReLU()\n)"
    )


def test_flatten_and_identity():
    x = wg.zeros(2, 3, 4)
    assert tuple(nn.Flatten()(x).shape) == (2, 12)
    assert tuple(nn.Unflatten(1, (3, 4))(nn.Flatten()(x)).shape) == (2, 3, 4)
    assert nn.Identity(3, a=1)(x) is x


# Pure functions of parameters.


def test_functional_call_gradient_equals_backward():
    net = Net()
    x = wg.tensor(array(5, 3), dtype=wg.float32)
    parameters = dict(net.named_parameters())
    g = wg.grad(lambda p: nn.functional_call(net, p, x).square().sum())(parameters)
    net(x).square().sum().backward()
    for name, param in net.named_parameters():
        close(g[name], param.grad.tolist(), 1e-5)
        assert net.get_parameter(name) is param


def test_functional_call_vmap_of_grad_is_per_example():
    net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2))
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    x, t = wg.tensor(array(6, 3), dtype=wg.float32), wg.tensor([0, 1, 1, 0, 1, 0])

    def loss(p, x, t):
        return F.cross_entropy(nn.functional_call(net, p, (x.unsqueeze(0),)), t.unsqueeze(0))

    per_example = wg.vmap(wg.grad(loss), in_axes=(None, 0, 0))(parameters, x, t)
    for i in range(6):
        one = wg.grad(loss)(parameters, x[i], t[i])
        for name in parameters:
            close(per_example[name][i], one[name].tolist(), 1e-5)


def test_functional_call_ensemble_and_errors():
    models = [nn.Linear(3, 2) for _ in range(4)]
    parameters, buffers = nn.stack_module_state(models)
    assert tuple(parameters["weight"].shape) == (4, 2, 3)
    assert buffers == {}
    x = wg.tensor(array(5, 3), dtype=wg.float32)
    out = wg.vmap(lambda p: nn.functional_call(models[0], p, x))(parameters)
    for i, model in enumerate(models):
        close(out[i], model(x).tolist(), 1e-5)
    with pytest.raises(KeyError, match="has no 'wait'"):
        nn.functional_call(models[0], {"wait": x}, x)
    with pytest.raises(KeyError, match="no value for bias"):
        nn.functional_call(models[0], {"weight": x[:2]}, x, strict=True)
    tied = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    tied[1].weight = tied[0].weight
    out = nn.functional_call(tied, {"0.weight": 2 * wg.eye(2)}, wg.ones(1, 2))
    assert out.tolist() == [[4, 4]]


# Initialisation.


@pytest.mark.parametrize(
    ("fill", "std"),
    [
        (nn.init.xavier_uniform_, math.sqrt(2 / 500)),
        (nn.init.xavier_normal_, math.sqrt(2 / 500)),
        (lambda t: nn.init.kaiming_uniform_(t, nonlinearity="relu"), math.sqrt(2 / 300)),
        (lambda t: nn.init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), math.sqrt(2 / 200)),
        (lambda t: nn.init.normal_(t, 1.0, 3.0), 3.0),
        (lambda t: nn.init.uniform_(t, -1.0, 1.0), math.sqrt(1 / 3)),
    ],
)
def test_initial_spread(fill, std):
    wg.manual_seed(1)
    tensor = wg.empty(200, 300)
    assert fill(tensor) is tensor
    assert abs(tensor.numpy().std() / std - 1) < 0.02


def test_truncated_and_orthogonal():
    wg.manual_seed(2)
    values = nn.init.trunc_normal_(wg.empty(100, 100), std=1.0, a=-1.0, b=2.0).numpy()
    assert values.min() >= -1
    assert values.max() <= 2
    tail = nn.init.trunc_normal_(wg.empty(1000), a=4.0, b=5.0).numpy()
    assert tail.min() >= 4
    assert abs(tail.mean() - 4.226) < 0.03  # phi(4) - phi(5) over Phi(5) - Phi(4)
    q = nn.init.orthogonal_(wg.empty(4, 6), gain=2.0).numpy()
    close(q @ q.T, 4 * np.eye(4), 1e-5)
    assert nn.init.eye_(wg.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    parameter = nn.Parameter(wg.empty(3))
    assert nn.init.constant_(parameter, 2.0).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="two or more axes"):
        nn.init.xavier_uniform_(wg.empty(3))


# Gradient clipping.


def test_clip_grad_norm():
    p, q = nn.Parameter(wg.zeros(2)), nn.Parameter(wg.zeros(1))
    p.grad, q.grad = wg.tensor([3.0, 0.0]), wg.tensor([4.0])
    total = nn.utils.clip_grad_norm_([p, q], 1.0)
    close(total, 5.0)
    close(p.grad, [0.6, 0], 1e-5)
    close(q.grad, [0.8], 1e-5)
    close(nn.utils.clip_grad_norm_([p, q], 10.0, norm_type=math.inf), 0.8, 1e-5)
    close(q.grad, [0.8], 1e-5)
    nn.utils.clip_grad_value_([p, q], 0.7)
    close(q.grad, [0.7])
    p.grad = wg.tensor([math.inf, 1.0])
    with pytest.raises(RuntimeError, match="the total norm of the gradients is inf"):
        nn.utils.clip_grad_norm_([p, q], 1.0, error_if_nonfinite=True)
    close(nn.utils.clip_grad_norm_([], 1.0), 0.0)


def test_parameters_to_vector_and_back():
    net = nn.Linear(3, 2)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert tuple(vector.shape) == (8,)
    nn.utils.vector_to_parameters(wg.arange(8).float(), net.parameters())
    assert net.weight.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert net.bias.tolist() == [6, 7]
    with pytest.raises(wg.ShapeError, match=r"a vector of shape \(8,\) expected"):
        nn.utils.vector_to_parameters(wg.zeros(7), net.parameters())
