"""Layers that pad, pool, drop and normalise, against NumPy; their settings, and what chance does in them."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import wengert as wg
from references.nn_reference import array, close
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
        "InstanceNorm1d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)"
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


# ---- chance --------------------------------------------------------------------------------------


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


# ---- in place ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: F.softshrink(x, "a"), "softshrink: lambd must be a number, got str"),
        (lambda x: F.leaky_relu(x, "a"), "leaky_relu: negative_slope must be a number, got str"),
        (lambda x: F.celu(x, wg.ones(2)), "celu: alpha must be a number, got Tensor"),
        (lambda x: F.hardtanh(x, None, 2.0), "hardtanh: min_val must be a number, got NoneType"),
        (lambda x: wg.logit(x, "a"), "logit: eps must be a number, got str"),
        (lambda x: F.softshrink(x, float("nan")), "softshrink: lambd must not be negative, got nan"),
    ],
)
def test_attributes_that_are_no_numbers(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(wg.ones(2))


@pytest.mark.parametrize(
    "name", ["leaky_relu", "elu", "threshold", "relu6", "dropout", "dropout1d", "alpha_dropout"]
)
def test_a_leaf_that_cannot_be_written_is_told_by_the_name_that_was_called(name):
    leaf = wg.ones(2, 2, requires_grad=True)
    settings = {"threshold": (0.0, 1.0), "alpha_dropout": (0.5, True)}.get(name, ())
    with pytest.raises(RuntimeError, match=rf"^{name}_: a leaf .* or write x = {name}\(x\)$"):
        getattr(F, name)(leaf, *settings, inplace=True)
