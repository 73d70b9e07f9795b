"""Layers that pad, pool, drop and normalise, against NumPy; their settings, and what chance does in them."""

import copy
import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
import wengert as wg
from nn_reference import array, close
from scipy.special import log_softmax
from wengert import nn
from wengert.nn import functional as F

PADS = {
    "ZeroPad": ("constant", (), {}),
    "ConstantPad": ("constant", (2.5,), {"constant_values": 2.5}),
    "ReflectionPad": ("reflect", (), {}),
    "ReplicationPad": ("edge", (), {}),
    "CircularPad": ("wrap", (), {}),
}


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("name", PADS)
def test_padding(name: str, axes: int) -> None:
    mode, settings, options = PADS[name]
    make = getattr(nn, f"{name}{axes}d")
    x = array(2, 3, *range(4, 4 + axes))
    widths = tuple(range(1, 2 * axes + 1)) if mode == "constant" else (1, 2, 3, 0, 1, 1)[: 2 * axes]
    pairs = [(0, 0), (0, 0), *[widths[2 * i : 2 * i + 2] for i in reversed(range(axes))]]
    close(make(widths, *settings)(wg.tensor(x)), np.pad(x, pairs, mode=mode, **options))
    close(make(1, *settings)(wg.tensor(x[0])), np.pad(x[0], [(0, 0), *[(1, 1)] * axes], mode=mode, **options))
    text = f"{widths}" if name != "ConstantPad" else f"padding={widths}, value=2.5"
    assert repr(make(widths, *settings)) == f"{name}{axes}d({text})"


def test_layers_have_the_functions_and_settings() -> None:
    x, image, volume = (
        wg.tensor(array(2, 3, 6)),
        wg.tensor(array(2, 3, 6, 6)),
        wg.tensor(array(2, 3, 4, 4, 4)),
    )
    for layer, given, want in [
        (nn.AdaptiveMaxPool1d(4), x, F.adaptive_max_pool1d(x, 4)),
        (nn.AdaptiveMaxPool2d((None, 2)), image, F.adaptive_max_pool2d(image, (6, 2))),
        (nn.AdaptiveMaxPool3d(3), volume, F.adaptive_max_pool3d(volume, (3, 3, 3))),
        (nn.LPPool1d(2, 2), x, F.lp_pool1d(x, 2, 2)),
        (nn.LPPool2d(2, 2, 1), image, F.lp_pool2d(image, 2, 2, 1)),
        (nn.LPPool3d(2, 3, ceil_mode=True), volume, F.lp_pool3d(volume, 2, 3, None, True)),
        (nn.LocalResponseNorm(2, 0.5), x, F.local_response_norm(x, 2, 0.5)),
        (nn.Threshold(0.1, 20.0), x, F.threshold(x, 0.1, 20.0)),
        (nn.Hardshrink(0.2), x, F.hardshrink(x, 0.2)),
        (nn.Softshrink(), x, F.softshrink(x, 0.5)),
        (nn.RReLU().eval(), x, F.leaky_relu(x, 11 / 48)),
        (nn.Softmax2d(), image, F.softmax(image, 1)),
        (nn.Softmax2d(), image[0], F.softmax(image[0], 0)),
        (nn.InstanceNorm1d(3), x, F.instance_norm(x)),
        (nn.InstanceNorm2d(3), image[0], F.instance_norm(image[:1])[0]),
        (nn.InstanceNorm3d(3), volume, F.instance_norm(volume)),
    ]:
        close(layer(given), want.tolist(), 1e-12)
    assert repr(nn.LPPool2d(2, 3)) == "LPPool2d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)"
    assert repr(nn.InstanceNorm1d(3)) == (
        "InstanceNorm1d(3, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False)"
    )


def test_the_largest_norm_is_max_pooling() -> None:
    x = wg.tensor(array(2, 3, 7))
    close(F.lp_pool1d(x, math.inf, 3, 2), F.max_pool1d(x.abs(), 3, 2).tolist())
    zeros = wg.zeros(1, 1, 4, requires_grad=True)
    F.lp_pool1d(zeros, 2, 2).sum().backward()
    assert zeros.grad.tolist() == [[[0.0] * 4]]


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_unpooling_puts_maxima_back(axes: int) -> None:
    pool, unpool = getattr(nn, f"MaxPool{axes}d"), getattr(nn, f"MaxUnpool{axes}d")
    x = wg.tensor(np.random.default_rng(0).permutation(2 * 3 * 5**axes).reshape(2, 3, *[5] * axes) + 1.0)
    values, index = pool(2, return_indices=True)(x)
    back = unpool(2)(values, index, output_size=x.shape)
    assert tuple(back.shape) == tuple(x.shape)
    kept = np.asarray(back.tolist())
    assert set(kept.ravel()) - {0.0} == set(np.asarray(values.tolist()).ravel())
    np.testing.assert_array_equal(kept[kept > 0], np.asarray(x.tolist())[kept > 0])
    assert tuple(unpool(2)(values, index.clamp(max=3)).shape)[2:] == (4,) * axes


def test_adaptive_indices_are_those_of_the_maxima() -> None:
    x = wg.tensor(array(2, 3, 5, 7))
    values, index = F.adaptive_max_pool2d(x, (2, 3), return_indices=True)
    close(x.flatten(2).gather(2, index.flatten(2)), values.flatten(2).tolist())
    # A window of equal elements gives its first one.
    assert F.adaptive_max_pool1d(wg.ones(1, 5), 2, return_indices=True)[1].tolist() == [[0, 2]]


def test_fractional_pooling_draws_its_windows() -> None:
    x = wg.tensor(array(2, 3, 9, 9))
    layer = nn.FractionalMaxPool2d(2, output_ratio=0.5, return_indices=True)
    wg.manual_seed(0)
    values, index = layer(x)
    assert tuple(values.shape) == (2, 3, 4, 4)
    close(x.flatten(2).gather(2, index.flatten(2)), values.flatten(2).tolist())
    assert layer(x)[1].tolist() != index.tolist()
    wg.manual_seed(0)
    assert layer(x)[1].tolist() == index.tolist()
    volume = F.fractional_max_pool3d(wg.tensor(array(2, 5, 5, 5)), 2, (2, 3, 4))
    assert tuple(volume.shape) == (2, 2, 3, 4)
    found = wg.vmap(lambda x: F.fractional_max_pool2d(x, 2, 3), randomness="different")(x)
    assert tuple(found.shape) == (2, 3, 3, 3)


@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_statistics_of_instances(momentum: float | None) -> None:
    layer = nn.InstanceNorm2d(3, momentum=momentum, track_running_stats=True, dtype=wg.float64)
    batches = [array(2, 3, 4, 5) * (k + 1) for k in range(2)]
    mean, var = np.zeros(3), np.ones(3)
    for k, x in enumerate(batches):
        layer(wg.tensor(x))
        weight = momentum or 1 / (k + 1)
        mean = (1 - weight) * mean + weight * x.mean((2, 3)).mean(0)
        var = (1 - weight) * var + weight * x.var((2, 3), ddof=1).mean(0)
    close(layer.running_mean, mean, 1e-12)
    close(layer.running_var, var, 1e-12)
    layer.eval()
    x = batches[0]
    want = (x - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5)
    close(layer(wg.tensor(x)), want, 1e-12)


# ---- chance ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape"), [("1d", (50, 40, 6)), ("2d", (50, 40, 2, 3)), ("3d", (50, 40, 1, 2, 3))]
)
def test_dropout_of_channels(name: str, shape: tuple[int, ...]) -> None:
    wg.manual_seed(0)
    layer = getattr(nn, f"Dropout{name}")(0.3)
    x = wg.ones(*shape, requires_grad=True)
    y = layer(x)
    per_channel = np.asarray(y.detach().tolist()).reshape(50 * 40, -1)
    np.testing.assert_allclose(per_channel, per_channel[:, :1] * np.ones((1, 6)))
    np.testing.assert_allclose(np.unique(per_channel), [0, 1 / 0.7], rtol=1e-6)
    assert abs((per_channel == 0).mean() - 0.3) < 0.03
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert layer.eval()(x) is x
    close(getattr(F, f"dropout{name}")(x, 1.0), np.zeros(shape))


def test_alpha_dropout_keeps_the_moments() -> None:
    wg.manual_seed(1)
    x = wg.randn(400, 500, dtype=wg.float64)
    for p in (0.1, 0.5):
        y = np.asarray(F.alpha_dropout(x, p, True).tolist())
        assert abs(y.mean()) < 0.01
        assert abs(y.var() - 1) < 0.02
        lowest = -1.0507009873554805 * 1.6732632423543772
        scale = ((1 - p) * (1 + p * lowest**2)) ** -0.5
        dropped = np.isclose(y, scale * lowest * (1 - p), atol=1e-12)
        assert abs(dropped.mean() - p) < 0.01
        np.testing.assert_allclose(
            y[~dropped], (scale * np.asarray(x.tolist()) - scale * p * lowest)[~dropped]
        )
    channels = nn.FeatureAlphaDropout(0.4)(wg.zeros(30, 20, 5))
    assert (channels == channels[..., :1]).all().item()
    assert len(set(channels[..., 0].flatten().tolist())) == 2
    assert nn.AlphaDropout(0.5).eval()(x) is x
    assert F.alpha_dropout(x, 1.0, True).abs().sum().item() == 0


def test_random_slopes() -> None:
    wg.manual_seed(2)
    x = wg.full((200, 200), -1.0, requires_grad=True)
    y = nn.RReLU(0.2, 0.6)(x)
    slopes = -np.asarray(y.detach().tolist())
    assert 0.2 <= slopes.min() < 0.21
    assert 0.59 < slopes.max() < 0.6
    assert abs(slopes.mean() - 0.4) < 0.01
    y.sum().backward()
    close(x.grad, slopes, 1e-6)


def test_gumbel_softmax_chooses_by_the_logits() -> None:
    wg.manual_seed(3)
    probabilities = np.array([0.1, 0.6, 0.3])
    logits = wg.tensor(np.log(probabilities)).expand(20_000, 3).clone().requires_grad_()
    soft = F.gumbel_softmax(logits, 0.5)
    close(soft.sum(-1), np.ones(20_000), 1e-12)
    wg.manual_seed(3)
    hard = F.gumbel_softmax(logits, 0.5, hard=True)
    chosen = np.asarray(hard.detach().tolist())
    np.testing.assert_allclose(chosen.mean(0), probabilities, atol=0.015)
    np.testing.assert_array_equal(chosen.argmax(-1), np.asarray(soft.detach().tolist()).argmax(-1))
    np.testing.assert_allclose(np.sort(chosen, -1), [[0, 0, 1]] * 20_000, atol=1e-12)
    # The gradient of the choice is that of the soft one.
    weight = wg.tensor([1.0, 2.0, -1.0], dtype=wg.float64)
    (want,) = wg.autograd.grad((soft * weight).sum(), [logits])
    (found,) = wg.autograd.grad((hard * weight).sum(), [logits])
    close(found, want.tolist(), 1e-12)
    # Extreme numbers from the generator give no infinities.
    assert F.gumbel_softmax(wg.zeros(1000, 50), 0.01).isfinite().all().item()


def test_channels_of_an_example_in_a_batch() -> None:
    x = wg.ones(4, 3, 5)
    for randomness, count in (("different", 4), ("same", 1)):
        wg.manual_seed(0)
        drop = lambda x: F.dropout1d(x, 0.5)
        found = wg.vmap(drop, randomness=randomness)(x)
        assert len({str(row.tolist()) for row in found}) == count


# ---- in place ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings"),
    [("relu", ()), ("elu", ()), ("celu", ()), ("selu", ()), ("hardtanh", ()), ("leaky_relu", (0.2,)),
     ("threshold", (0.1, 3.0)), ("rrelu", ())],
)  # fmt: skip
def test_functions_that_write_their_input(name: str, settings: tuple[float, ...]) -> None:
    plain, written = getattr(F, name), getattr(F, f"{name}_")
    x = wg.tensor(array(3, 4), requires_grad=True)
    want = plain(x.sin() * 2, *settings)
    y = x.sin() * 2
    before = y.data_ptr()
    out = written(y, *settings)
    assert out is y
    assert y.data_ptr() == before
    close(y, want.tolist())
    (expected,) = wg.autograd.grad(want.pow(2).sum(), [x])
    (found,) = wg.autograd.grad(y.pow(2).sum(), [x])
    close(found, expected.tolist(), 1e-12)


# ---- many classes ------------------------------------------------------------------------------------------


def test_adaptive_softmax() -> None:
    wg.manual_seed(4)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0, head_bias=True, dtype=wg.float64)
    assert list(layer.state_dict()) == [
        "head.weight", "head.bias", "tail.0.0.weight", "tail.0.1.weight", "tail.1.0.weight", "tail.1.1.weight",
    ]  # fmt: skip
    assert [tuple(p.shape) for p in layer.tail.parameters()] == [(4, 8), (6, 4), (2, 8), (10, 2)]
    x, target = array(7, 8), np.array([0, 3, 4, 9, 10, 19, 5])
    w = {name: np.asarray(p.tolist()) for name, p in layer.state_dict().items()}
    head = log_softmax(x @ w["head.weight"].T + w["head.bias"], -1)
    tails = [log_softmax(x @ w[f"tail.{i}.0.weight"].T @ w[f"tail.{i}.1.weight"].T, -1) for i in range(2)]
    want = np.concatenate([head[:, :4], *(head[:, 4 + i, None] + t for i, t in enumerate(tails))], 1)
    tensor = wg.tensor(x, requires_grad=True)
    close(layer.log_prob(tensor), want, 1e-12)
    close(np.exp(want).sum(1), np.ones(7), 1e-12)
    assert layer.predict(tensor).tolist() == want.argmax(1).tolist()
    found = layer(tensor, wg.tensor(target))
    close(found.output, want[np.arange(7), target], 1e-12)
    close(found.loss, -want[np.arange(7), target].mean(), 1e-12)
    close(layer(tensor[5], wg.tensor(19)).output, want[5, 19], 1e-12)
    (direct,) = wg.autograd.grad(layer.log_prob(tensor)[range(7), target].sum(), [tensor])
    (rows,) = wg.autograd.grad(found.output.sum(), [tensor])
    close(rows, direct.tolist(), 1e-12)
    assert wg.autograd.gradgradcheck(lambda x: layer(x, wg.tensor(target))[1], (tensor,))


def test_a_large_last_layer_and_its_loss() -> None:
    wg.manual_seed(5)
    x, target = wg.tensor(array(7, 4), requires_grad=True), wg.tensor([0, 5, -100, 2, 2, 1, 4])
    weight = wg.rand(6, dtype=wg.float64) + 0.5
    for bias, shares, reduction, smoothing in itertools.product(
        [False, True], [None, weight], ["mean", "sum", "none"], [0.0, 0.2]
    ):
        layer = nn.LinearCrossEntropyLoss(
            4,
            6,
            bias=bias,
            weight=shares,
            reduction=reduction,
            label_smoothing=smoothing,
            chunk_size=3,
            dtype=wg.float64,
        )
        assert list(dict(layer.named_parameters())) == ["linear.weight", "linear.bias"][: 1 + bias]
        found = layer(x, target)
        want = F.cross_entropy(
            layer.linear(x), target, shares, reduction=reduction, label_smoothing=smoothing
        )
        close(found, want.tolist(), 1e-12)
        (got,) = wg.autograd.grad(found.sum(), [x])
        (expected,) = wg.autograd.grad(want.sum(), [x])
        close(got, expected.tolist(), 1e-12)


def test_initial_values_of_windows_and_columns() -> None:
    x = wg.tensor(array(2, 4, 6))
    weight = nn.init.dirac_(wg.empty(4, 4, 3, dtype=wg.float64))
    close(F.conv1d(x, weight, padding="same"), x.tolist())
    halves = nn.init.dirac_(wg.empty(4, 2, 3, dtype=wg.float64), groups=2)
    close(F.conv1d(x, halves, padding="same", groups=2), x.tolist())
    more = nn.init.dirac_(wg.empty(6, 4, 1, 1))
    assert more.sum().item() == 4
    wg.manual_seed(6)
    thin = nn.init.sparse_(wg.empty(50, 20), 0.3, 2.0)
    assert (thin == 0).sum(0).tolist() == [15] * 20
    assert abs(thin[thin != 0].std().item() - 2.0) < 0.2
    with pytest.raises(ValueError, match=r"dirac_: three to five axes expected, got shape \(2, 2\)"):
        nn.init.dirac_(wg.empty(2, 2))
    with pytest.raises(ValueError, match="sparse_: sparsity must lie between 0 and 1, got 2"):
        nn.init.sparse_(wg.empty(2, 2), 2)


LAZY = {
    "Linear": ((5,), (3, 4), {}),
    "Conv1d": ((5, 2), (3, 4, 6), {"padding": 1}),
    "Conv2d": ((6, 2), (4, 6, 6), {"groups": 2}),
    "Conv3d": ((5, 2), (2, 4, 3, 3, 3), {}),
    "ConvTranspose1d": ((5, 2), (3, 4, 6), {}),
    "ConvTranspose2d": ((5, 2), (3, 4, 3, 3), {}),
    "ConvTranspose3d": ((5, 2), (3, 4, 2, 2, 2), {}),
    "BatchNorm1d": ((), (3, 4), {"momentum": 0.5}),
    "BatchNorm2d": ((), (3, 4, 2, 2), {}),
    "BatchNorm3d": ((), (3, 4, 2, 2, 2), {}),
    "InstanceNorm1d": ((), (4, 5), {"affine": True}),
    "InstanceNorm2d": ((), (3, 4, 2, 2), {}),
    "InstanceNorm3d": ((), (3, 4, 2, 2, 2), {}),
}


@pytest.mark.parametrize("name", LAZY)
def test_layers_that_learn_a_size(name: str) -> None:
    args, shape, options = LAZY[name]
    x = wg.tensor(array(*shape), dtype=wg.float32)
    layer, real = getattr(nn, f"Lazy{name}")(*args, **options), getattr(nn, name)
    layer.eval()
    other = pickle.loads(pickle.dumps(copy.deepcopy(layer)))
    seen = []
    layer.register_forward_hook(lambda *_: seen.append(1))
    for ask in (layer.parameters, layer.state_dict, layer.double, layer.zero_grad):
        with pytest.raises(RuntimeError) as caught:
            list(ask() or ())
        assert str(caught.value) == (
            f"Lazy{name}: its parameters are not known before the first call; call the model once with an input of the "
            "right shape first"
        )
    wg.manual_seed(0)
    y = layer(x)
    wg.manual_seed(0)
    same = real(4, *args, **options).eval()
    assert type(layer) is real
    assert not layer.training
    assert seen == [1]
    assert repr(layer) == repr(same)
    assert list(layer.state_dict()) == list(same.state_dict())
    close(y, same(x).tolist())
    assert other(x).shape == y.shape


def test_mistakes_with_layers_that_learn_a_size() -> None:
    with pytest.raises(TypeError):
        nn.LazyLinear()
    with pytest.raises(
        wg.ShapeError, match=r"LazyConv2d: an input with 3 axes or more expected, got shape \(2, 2\)"
    ):
        nn.LazyConv2d(3, 1)(wg.ones(2, 2))
    model = nn.Sequential(nn.Linear(2, 3), nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(1))
    with pytest.raises(RuntimeError, match="LazyLinear: its parameters are not known before the first call"):
        wg.optim.SGD(model.parameters())
    assert repr(model[1]) == "LazyLinear(4)"
    model(wg.ones(5, 2))
    assert [tuple(p.shape) for p in model.parameters()] == [(3, 2), (3,), (4, 3), (4,), (1, 4), (1,)]


def test_clipping_by_a_norm_that_is_known() -> None:
    layer = nn.Linear(2, 3)
    for p in layer.parameters():
        p.grad = wg.ones_like(p.detach()) * 2
    nn.utils.clip_grads_with_norm_(layer.parameters(), 3.0, wg.tensor(12.0))
    assert layer.weight.grad[0, 0].item() == pytest.approx(0.5)
    nn.utils.clip_grads_with_norm_(layer.parameters(), 3.0, wg.tensor(1.0))
    assert layer.bias.grad[0].item() == pytest.approx(0.5)


# ---- settings that PyTorch's programs use ------------------------------------------------------------------


@pytest.mark.parametrize("bags", [False, True])
def test_rows_that_are_shortened(bags: bool) -> None:
    values = np.array([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0], [1.0, 0.0]])
    make = nn.EmbeddingBag if bags else nn.Embedding
    layer = make.from_pretrained(values, freeze=False, max_norm=2.0)
    assert layer.weight.requires_grad
    out = layer(wg.tensor([[0, 1], [0, 3]]))
    want = np.array([[1.2, 1.6], [0.3, 0.4], [6.0, 8.0], [1.0, 0.0]])
    close(layer.weight, want, 1e-6)
    picked = want[[[0, 1], [0, 3]]]
    close(out, picked.mean(1) if bags else picked, 1e-6)
    out.sum().backward()
    close(layer.weight.grad, np.array([[2.0] * 2, [1.0] * 2, [0.0] * 2, [1.0] * 2]) / (2 if bags else 1))


@pytest.mark.parametrize("bags", [False, True])
def test_gradients_by_frequency(bags: bool) -> None:
    table = wg.tensor(array(4, 3), requires_grad=True)
    index, upstream = wg.tensor([[0, 1, 0], [0, 3, 3]]), wg.tensor(array(2, 3, 3))
    if bags:
        out = F.embedding_bag(index, table, mode="sum", scale_grad_by_freq=True)
        upstream = upstream[:, :1].expand(2, 3, 3)
        (out * upstream[:, 0]).sum().backward()
    else:
        (F.embedding(index, table, scale_grad_by_freq=True) * upstream).sum().backward()
    want = np.zeros((4, 3))
    np.add.at(want, np.asarray(index.tolist()), np.asarray(upstream.tolist()))
    close(table.grad, want / np.array([[3], [1], [1], [2]]), 1e-12)
    with pytest.raises(ValueError, match="sparse gradients are not available; leave sparse out"):
        (F.embedding_bag if bags else F.embedding)(index, table, sparse=True)


def test_tables_take_given_values() -> None:
    values = wg.tensor(array(3, 2))
    assert nn.Embedding(3, 2, _weight=values).weight.tolist() == values.tolist()
    assert not nn.Embedding(3, 2, _freeze=True).weight.requires_grad
    assert nn.EmbeddingBag(3, 2, _weight=values, mode="sum")(wg.tensor([[0, 2]])).tolist() == [
        (values[0] + values[2]).tolist()
    ]
    with pytest.raises(wg.ShapeError, match=r"Embedding: values of shape \(3, 2\), expected \(4, 2\)"):
        nn.Embedding(4, 2, _weight=values)


def test_losses_with_a_factor_for_each_element() -> None:
    x, t, w = (wg.tensor(a) for a in (array(3, 4), array(4, 3).T.copy(), np.abs(array(3, 4)) + 0.1))
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        f = getattr(F, name)
        each = f(x, t, reduction="none")
        close(f(x, t, reduction="none", weight=w), (each * w).tolist(), 1e-12)
        close(f(x, t, reduction="sum", weight=w), (each * w).sum().item(), 1e-12)
        divisor = 12 if name == "huber_loss" else w.sum().item()
        close(f(x, t, weight=w), (each * w).sum().item() / divisor, 1e-12)
        with pytest.raises(
            wg.ShapeError, match=rf"{name}: weight of shape \(3,\), expected \(3, 4\) as the input"
        ):
            f(x, t, weight=w[:, 0])


def test_groups_without_a_bias() -> None:
    layer = nn.GroupNorm(2, 4, bias=False)
    assert list(layer.state_dict()) == ["weight"]


def test_images_scaled_down_without_gaps() -> None:
    from PIL import Image

    image = array(1, 1, 12, 9)
    for mode, kind in (("bilinear", Image.Resampling.BILINEAR), ("bicubic", Image.Resampling.BICUBIC)):
        for size in ((5, 4), (12, 3), (3, 13)):
            got = F.interpolate(wg.tensor(image), size, mode=mode, antialias=True)
            pil = Image.fromarray(image[0, 0].astype(np.float32)).resize(size[::-1], kind)
            close(got[0, 0], np.asarray(pil), 1e-5)
    # Every element counts: a constant stays one, and all gradients are positive.
    x = wg.ones(1, 1, 9, 9, requires_grad=True)
    y = F.interpolate(x, scale_factor=1 / 3, mode="bilinear", antialias=True)
    close(y, np.ones((1, 1, 3, 3)), 1e-6)
    y.sum().backward()
    assert x.grad.min().item() > 0
    close(x.grad.sum(), 9.0, 1e-6)
    with pytest.raises(ValueError, match="antialias is for modes 'bilinear' and 'bicubic', got 'nearest'"):
        F.interpolate(wg.ones(1, 1, 4, 4), 2, antialias=True)


CLOSED: dict[str, tuple[Any, list[list[float]]]] = {
    "upsample_nearest": (
        lambda x: F.upsample_nearest(x, scale_factor=2),
        [[0, 0, 1, 1]] * 2 + [[2, 2, 3, 3]] * 2,
    ),
    "upsample_bilinear": (lambda x: F.upsample_bilinear(x, size=3), [[0, 0.5, 1], [1, 1.5, 2], [2, 2.5, 3]]),
}


@pytest.mark.parametrize("name", CLOSED)
def test_older_names_of_resampling(name: str) -> None:
    function, want = CLOSED[name]
    x = wg.tensor([[[[0.0, 1.0], [2.0, 3.0]]]], dtype=wg.float64)
    close(function(x), [[want]], 1e-12)


def test_every_layer_says_what_it_is() -> None:
    for name, axes in itertools.product(("AdaptiveMaxPool", "MaxUnpool", "LPPool"), (1, 2, 3)):
        layer = getattr(nn, f"{name}{axes}d")(*(2,) * (2 if name == "LPPool" else 1))
        assert repr(layer).startswith(f"{name}{axes}d(")
