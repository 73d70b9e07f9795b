"""`inplace=True` writes the input: values, history, transforms, layers, and what refuses."""

import numpy as np
import pytest
import wengert as wg
from wengert import nn
from wengert.nn import functional as F

X = np.array([2.0, -0.5, 0.25, -5.0])
ACTIVATIONS = {
    "relu": (lambda x: np.maximum(x, 0), ()),
    "relu6": (lambda x: np.clip(x, 0, 6), ()),
    "leaky_relu": (lambda x: np.where(x > 0, x, 0.1 * x), (0.1,)),
    "elu": (lambda x: np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0))), (2.0,)),
    "celu": (lambda x: np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0) / 2)), (2.0,)),
    "selu": (
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
        (),
    ),
    "silu": (lambda x: x / (1 + np.exp(-x)), ()),
    "mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), ()),
    "hardtanh": (lambda x: np.clip(x, -1, 2.5), (-1.0, 2.5)),
    "hardsigmoid": (lambda x: np.clip(x / 6 + 0.5, 0, 1), ()),
    "hardswish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), ()),
    "threshold": (lambda x: np.where(x > 0.5, x, 9.0), (0.5, 9.0)),
    "rrelu": (lambda x: np.where(x > 0, x, 0.25 * x), (0.25, 0.25)),
}
LAYERS = {
    "relu": nn.ReLU, "relu6": nn.ReLU6, "leaky_relu": nn.LeakyReLU, "elu": nn.ELU, "celu": nn.CELU,
    "selu": nn.SELU,
    "silu": nn.SiLU, "mish": nn.Mish, "hardtanh": nn.Hardtanh, "hardsigmoid": nn.Hardsigmoid,
    "hardswish": nn.Hardswish, "threshold": nn.Threshold, "rrelu": nn.RReLU,
}  # fmt: skip
DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")


def slopes(reference) -> np.ndarray:
    h = 1e-6
    return (reference(X + h) - reference(X - h)) / (2 * h)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_input_is_written_and_recorded(name):
    reference, settings = ACTIVATIONS[name]
    leaf = wg.tensor(X, requires_grad=True)
    y = leaf * 1.0
    assert getattr(F, name)(y, *settings, inplace=True) is y
    np.testing.assert_allclose(y.detach().numpy(), reference(X), atol=1e-12)
    (y * wg.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), slopes(reference) * [1, 2, 3, 4], atol=1e-7)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_without_inplace_the_input_stays(name):
    _, settings = ACTIVATIONS[name]
    y = wg.tensor(X)
    assert getattr(F, name)(y, *settings) is not y
    np.testing.assert_array_equal(y.numpy(), X)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_layers_write_their_input(name):
    reference, settings = ACTIVATIONS[name]
    layer = LAYERS[name](*settings, True)
    assert repr(layer).endswith("inplace=True)")
    y = wg.tensor(X)
    assert layer(y) is y
    np.testing.assert_allclose(y.numpy(), reference(X), atol=1e-12)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_under_transforms(name):
    reference, settings = ACTIVATIONS[name]

    def f(x):
        y = x * 1.0
        getattr(F, name)(y, *settings, inplace=True)
        return (y * x).sum()

    want = reference(X) + X * slopes(reference)
    rows = np.stack([X, X])
    np.testing.assert_allclose(wg.grad(f)(wg.tensor(X)).numpy(), want, atol=1e-6)
    np.testing.assert_allclose(wg.vmap(wg.grad(f))(wg.tensor(rows)).numpy(), [want, want], atol=1e-6)
    value, tangent = wg.jvp(f, (wg.tensor(X),), (wg.ones(4, dtype=wg.float64),))
    np.testing.assert_allclose(
        [value.item(), tangent.item()], [(reference(X) * X).sum(), want.sum()], atol=1e-6
    )


def test_what_reads_the_input_afterwards_sees_the_result():
    """A block that adds its input behind an activation which has written it."""
    x = wg.tensor([-1.0, 2.0])
    assert (F.relu(x, inplace=True) + x).tolist() == [0, 4]


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropouts_write_their_input_in_training(name):
    shape = (2, 3, 2, 2, 2) if name == "dropout3d" else (2, 3, 4, 4) if name == "dropout2d" else (2, 3, 4)
    function = getattr(F, name)
    x = wg.ones(*shape)
    wg.manual_seed(3)
    want = function(x * 1.0, 0.5, True)
    wg.manual_seed(3)
    y = x * 1.0
    assert function(y, 0.5, True, True) is y
    assert y.tolist() == want.tolist() != x.tolist()
    assert function(x, 0.5, False, True) is x


@pytest.mark.parametrize("layer", [nn.Dropout, nn.Dropout2d, nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_layers_of_dropout_write_their_input(layer):
    x = wg.ones(2, 8, 2, 2)
    thinned = layer(0.5, True)
    assert thinned(x) is x
    assert x.tolist() != wg.ones(2, 8, 2, 2).tolist()
    y = wg.ones(2, 8, 2, 2)
    assert thinned.eval()(y) is y
    assert y.tolist() == wg.ones(2, 8, 2, 2).tolist()
    assert repr(thinned) == f"{layer.__name__}(p=0.5, inplace=True)"


def test_what_cannot_be_written_refuses():
    with pytest.raises(RuntimeError, match="leaf of shape"):
        F.elu(wg.ones(2, requires_grad=True), inplace=True)
    with pytest.raises(TypeError, match="float32 and cannot be stored in a"):
        F.leaky_relu(wg.tensor([1, -2]), inplace=True)
    with pytest.raises(RuntimeError, match="share memory"):
        F.hardswish(wg.ones(1).expand(3), inplace=True)
    x = wg.ones(2, requires_grad=True)
    y = x.exp()
    F.silu(y, inplace=True)
    with pytest.raises(RuntimeError, match="modified in place"):
        y.sum().backward()
