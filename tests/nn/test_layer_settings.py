"""Layers over many classes, layers that learn a size, and settings that PyTorch's programs use."""

import copy
import itertools
import pickle

import numpy as np
import pytest
import wengert as wg
from references.nn_reference import array, close
from scipy.special import log_softmax
from wengert import nn
from wengert.nn import functional as F

# ---- many classes --------------------------------------------------------------------------------


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
    for ask in (layer.parameters, layer.state_dict, layer.zero_grad):
        with pytest.raises(RuntimeError) as caught:
            list(ask() or ())
        assert str(caught.value) == (
            f"Lazy{name}: its parameters are not known before the first call; call the model once with an "
            "input of the right shape first"
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


# ---- settings that PyTorch's programs use --------------------------------------------------------


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
