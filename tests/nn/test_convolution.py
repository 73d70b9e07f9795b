"""Convolution, pooling and batch normalisation: what the walks over samples do not reach."""

import numpy as np
import pytest
import references.conv_reference as reference
import wengert as wg
from references.nn_reference import array, check_gradient, close
from wengert import nn
from wengert.autograd import gradcheck, gradgradcheck
from wengert.nn import functional as F


def double(*shape, **more):
    return wg.tensor(array(*shape), dtype=wg.float64, **more)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("batched", [(0, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("transposed", [False, True])
def test_batches_of_inputs_weights_and_both(groups, batched, transposed):
    function = F.conv_transpose2d if transposed else F.conv2d
    w_shape = (4, 3, 2, 3) if transposed else (6, 4 // groups, 2, 3)
    x = double(*([5] if batched[0] == 0 else []), 2, 4, 5, 6)
    w = double(*([5] if batched[1] == 0 else []), *w_shape)

    def f(x, w):
        return function(x, w, stride=2, padding=1, groups=groups)

    def weight_gradient(x, w):
        return wg.grad(lambda w: (f(x, w) ** 2).sum())(w)

    def input_gradient(x, w):
        return wg.grad(lambda x: (f(x, w) ** 2).sum())(x)

    for g in (f, weight_gradient, input_gradient):
        got = wg.vmap(g, in_dims=batched)(x, w)
        rows = [g(x[i] if batched[0] == 0 else x, w[i] if batched[1] == 0 else w) for i in range(5)]
        close(got, wg.stack(rows), 1e-11)


def test_batches_nest():
    x, w = double(2, 3, 1, 2, 7), double(3, 4, 2, 3)
    f = wg.vmap(wg.vmap(lambda x, w: F.conv1d(x, w, padding=1)), in_dims=(0, None))
    rows = [[F.conv1d(x[i, j], w[j], padding=1) for j in range(3)] for i in range(2)]
    close(f(x, w), wg.stack([wg.stack(row) for row in rows]), 1e-12)


def test_a_batch_of_no_examples():
    for axes in [(0, None), (0, 0)]:
        w = wg.zeros(0, 4, 3, 2) if axes[1] == 0 else wg.zeros(4, 3, 2)
        assert tuple(wg.vmap(F.conv1d, in_dims=axes)(wg.zeros(0, 2, 3, 7), w).shape) == (0, 2, 4, 6)


def test_per_example_gradients():
    layer = nn.Conv2d(2, 3, 3, padding=1)
    weights = dict(layer.named_parameters())
    x = wg.randn(4, 2, 5, 5)

    def loss(weights, x):
        return (nn.functional_call(layer, weights, (x,)) ** 2).sum()

    got = wg.vmap(wg.grad(loss), in_dims=(None, 0))(weights, x)
    for i in range(4):
        layer.zero_grad()
        (layer(x[i]) ** 2).sum().backward()
        close(got["weight"][i], layer.weight.grad, 1e-4)
        close(got["bias"][i], layer.bias.grad, 1e-4)


def test_derivatives_of_every_order():
    x, w, b = (double(*s, requires_grad=True) for s in [(2, 4, 5, 4), (6, 2, 3, 2), (6,)])

    def f(x, w, b):
        return F.conv2d(x, w, b, stride=(1, 2), padding=(2, 1), dilation=(2, 1), groups=2)

    assert gradcheck(f, (x, w, b))
    assert gradgradcheck(f, (x, w, b))
    y, v = (double(*s, requires_grad=True) for s in [(1, 2, 3, 2), (2, 2, 3, 2)])

    def g(y, v):
        return F.conv_transpose2d(y, v, stride=2, padding=1, output_padding=1)

    assert gradcheck(g, (y, v))
    assert gradgradcheck(g, (y, v))


def test_a_convolution_and_its_transpose_are_adjoint():
    g = np.random.default_rng(1)
    for _ in range(30):
        k, s, p, d, n = (
            int(g.integers(low, high)) for low, high in [(1, 4), (1, 4), (0, 3), (1, 3), (7, 12)]
        )
        x, w = (wg.tensor(g.standard_normal(shape)) for shape in [(2, 3, n), (4, 3, k)])
        y = F.conv1d(x, w, stride=s, padding=p, dilation=d)
        u = wg.tensor(g.standard_normal(tuple(y.shape)))
        extra = n - ((y.shape[-1] - 1) * s - 2 * p + d * (k - 1) + 1)
        back = F.conv_transpose1d(u, w, stride=s, padding=p, output_padding=extra, dilation=d)
        close((y * u).sum(), (x * back).sum(), 1e-10)


@pytest.mark.parametrize(
    ("x", "w", "more"),
    [
        ((3, 70, 19, 23), (90, 70, 3, 3), {"padding": 1}),
        ((2, 3, 70, 65), (16, 3, 7, 7), {"stride": 2, "padding": 3}),
        ((40, 6, 5, 5), (12, 2, 3, 3), {"groups": 3, "padding": "same"}),
        ((2, 33, 40, 40), (33, 1, 3, 3), {"groups": 33, "padding": 1}),
        ((2, 130, 9, 9), (70, 130, 1, 1), {"stride": 2}),
    ],
)
def test_large_convolutions_have_the_same_bits_for_any_number_of_threads(x, w, more):
    x, w = array(*x).astype(np.float32), array(*w).astype(np.float32)
    threads = wg.get_num_threads()
    results = []
    try:
        for n in (1, 2, 5):
            wg.set_num_threads(n)
            a, b = wg.tensor(x, requires_grad=True), wg.tensor(w, requires_grad=True)
            y = F.conv2d(a, b, **more)
            (y * y).sum().backward()
            results.append([t.detach().numpy().tobytes() for t in (y, a.grad, b.grad)])
    finally:
        wg.set_num_threads(threads)
    assert results[0] == results[1] == results[2]
    want = reference.conv(x.astype(np.float64), w.astype(np.float64), **more)
    close(y, want, 1e-4 * np.abs(want).max())


def test_layouts_other_than_contiguous():
    x, w = array(3, 2, 6, 5), array(4, 2, 3, 3)
    turned = wg.tensor(np.ascontiguousarray(x.transpose(3, 1, 0, 2))).permute(2, 1, 3, 0)
    flipped = wg.tensor(np.ascontiguousarray(w[:, :, ::-1])).flip(2)
    close(F.conv2d(turned, flipped, padding=1), reference.conv(x, w, padding=1), 1e-12)
    one = wg.tensor(x[:1]).expand(3, 2, 6, 5)
    close(F.conv2d(one, wg.tensor(w)), reference.conv(np.repeat(x[:1], 3, 0), w), 1e-12)


def test_dtypes_promote_and_autocast_lowers():
    x, w = wg.randn(1, 2, 5), wg.randn(3, 2, 3, dtype=wg.float64)
    assert F.conv1d(x, w).dtype == wg.float64
    with wg.autocast("cpu", dtype=wg.bfloat16):
        y = F.conv1d(x, wg.randn(3, 2, 3), wg.randn(3))
    assert y.dtype == wg.bfloat16


def test_defaults_of_layers():
    layer = nn.Conv2d(6, 8, (3, 2), groups=2)
    assert tuple(layer.weight.shape) == (8, 3, 3, 2)
    bound = 1 / np.sqrt(3 * 6)
    for values in (layer.weight, layer.bias):
        assert 0.5 * bound < float(values.abs().max()) <= bound
    assert repr(layer) == "Conv2d(6, 8, kernel_size=(3, 2), stride=(1, 1), groups=2)"
    turned = nn.ConvTranspose1d(6, 4, 3, stride=2, padding=1, output_padding=1, groups=2, bias=False)
    assert tuple(turned.weight.shape) == (6, 2, 3)
    assert float(turned.weight.abs().max()) <= 1 / np.sqrt(2 * 3)
    assert turned.bias is None
    described = (
        "ConvTranspose1d(6, 4, kernel_size=(3,), stride=(2,), padding=(1,), output_padding=(1,), groups=2"
    )
    assert repr(turned) == described + ", bias=False)"
    x = wg.randn(2, 6, 5)
    assert [turned(x, output_size=(n,)).shape[-1] for n in (9, 10)] == [9, 10]


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [(1, 2), "same", "valid"])
def test_padding_modes(mode, padding):
    layer = nn.Conv2d(2, 3, (3, 4), padding=padding, padding_mode=mode, dtype=wg.float64)
    x = array(1, 2, 6, 7)
    (top, bottom), (left, right) = reference.pairs(padding, (3, 4), (1, 1))
    numpy_mode = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    padded = np.pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)], mode=numpy_mode)
    weights = [np.asarray(p.tolist()) for p in (layer.weight, layer.bias)]
    close(layer(wg.tensor(x)), reference.conv(padded, *weights), 1e-12)


def test_maxima_and_where_they_are():
    x = wg.tensor([[[1.0, 3.0, 3.0, 2.0], [float("nan"), 0.0, -1.0, 5.0]]], requires_grad=True)
    values, index = F.max_pool1d(x.detach(), 2, 1, padding=1, return_indices=True)
    assert index.tolist() == [[[0, 1, 1, 2, 3], [0, 0, 1, 3, 3]]]
    assert values[0, 0].tolist() == [1.0, 3.0, 3.0, 3.0, 2.0]
    assert np.isnan(values[0, 1].tolist()[:2]).all()
    F.max_pool1d(x[:, :1], 2, 1).sum().backward()
    assert x.grad.tolist() == [[[0.0, 2.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]]
    grid = wg.arange(36, dtype=wg.int64).reshape(1, 6, 6)
    assert F.max_pool2d(grid, 3).tolist() == [[[14, 17], [32, 35]]]
    pool = nn.MaxPool2d(2, return_indices=True)
    y, index = pool(wg.randn(3, 4, 6, 6))
    assert tuple(y.shape) == tuple(index.shape) == (3, 4, 3, 3)


def test_pools_have_derivatives_of_every_order():
    x = wg.tensor(np.random.default_rng(0).permutation(72).reshape(1, 2, 6, 6) / 7.0, requires_grad=True)
    for f in (
        lambda x: F.max_pool2d(x, 3, 2, 1) ** 3,
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False) ** 3,
        lambda x: F.adaptive_avg_pool2d(x, (4, 1)) ** 3,
        lambda x: F.unfold(x, 3, 2, 1, 2) ** 3,
    ):
        assert gradcheck(f, (x,))
        assert gradgradcheck(f, (x,))
        rows = wg.vmap(wg.grad(lambda x, f=f: f(x[None]).sum()))(wg.cat([x, x * 2]).detach())
        close(rows[0], wg.grad(lambda x, f=f: f(x).sum())(x.detach())[0], 1e-9)


def test_average_pools_of_halves_are_averaged_in_float32():
    x = wg.full((1, 1, 4, 4), 40000.0, dtype=wg.float16)
    assert F.avg_pool2d(x, 2).tolist() == [[[[40000.0] * 2] * 2]]
    close(F.avg_pool2d(wg.ones(1, 3, 3), 3, divisor_override=2), [[[4.5]]])


@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 2), (2, 3, 4, 2)])
def test_batch_norm(shape):
    layer = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[len(shape)](3, dtype=wg.float64)
    x = array(*shape)
    axes = tuple(i for i in range(len(shape)) if i != 1)
    column = (-1, *[1] * (len(shape) - 2))
    mean, var, count = x.mean(axes), x.var(axes), x.size // 3
    want = (x - mean.reshape(column)) / np.sqrt(var.reshape(column) + 1e-5)
    close(layer(wg.tensor(x)), want)
    close(layer.running_mean, 0.1 * mean)
    close(layer.running_var, 0.9 + 0.1 * var * count / (count - 1))
    assert layer.num_batches_tracked.item() == 1
    layer.eval()
    mean, var = (np.asarray(t.tolist()) for t in (layer.running_mean, layer.running_var))
    close(layer(wg.tensor(x)), (x - mean.reshape(column)) / np.sqrt(var.reshape(column) + 1e-5))
    check_gradient(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), x, array(3), array(3), tol=1e-5
    )
    assert set(layer.state_dict()) == {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}


@pytest.mark.parametrize("kind", [nn.BatchNorm1d, nn.InstanceNorm1d])
def test_normalisation_of_channels_without_a_bias(kind):
    layer = kind(3, affine=True, bias=False, dtype=wg.float64)
    assert layer.bias is None
    assert [name for name, _ in layer.named_parameters()] == ["weight"]
    with wg.no_grad():
        layer.weight.copy_(wg.tensor([2.0, -1.0, 0.5]))
    x = array(4, 3, 5)
    axes = (0, 2) if kind is nn.BatchNorm1d else 2
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    close(layer(wg.tensor(x)), (x - mean) / np.sqrt(var + 1e-5) * np.array([2.0, -1.0, 0.5]).reshape(3, 1))
    assert kind(3, affine=False, bias=True).bias is None


def test_batch_norm_averages_all_batches_without_a_momentum():
    layer = nn.BatchNorm1d(2, momentum=None, affine=False)
    xs = [array(6, 2), array(7, 2)]
    for x in xs:
        layer(wg.tensor(x, dtype=wg.float32))
    close(layer.running_mean, (xs[0].mean(0) + xs[1].mean(0)) / 2, 1e-5)
    layer.reset_running_stats()
    assert layer.running_mean.tolist() == [0.0, 0.0]
    assert layer.num_batches_tracked.item() == 0


def test_a_network_of_convolutions_learns():
    wg.manual_seed(0)
    g = np.random.default_rng(0)
    x = g.standard_normal((64, 1, 8, 8)).astype(np.float32) * 0.3
    labels = g.integers(0, 2, 64)
    x[labels == 1, :, 2:5, 2:5] += 1.0
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2),
    )  # fmt: skip
    optimizer = wg.optim.Adam(net.parameters(), lr=0.02)
    x, labels = wg.tensor(x), wg.tensor(labels)
    for _ in range(40):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), labels)
        loss.backward()
        optimizer.step()
    net.eval()
    assert float((net(x).argmax(1) == labels).float().mean()) > 0.95


@pytest.mark.parametrize(
    ("rows", "width", "count"), [(500, 40, 3000), (3, 20000, 50), (70000, 1, 5000), (4, 3, 9)]
)
def test_rows_are_added_in_the_same_order_by_any_number_of_threads(rows, width, count):
    g = np.random.default_rng(0)
    index = g.integers(-rows, rows, count)
    grads = g.standard_normal((count, width)).astype(np.float32)
    want = np.zeros((rows, width), np.float32)
    for k, row in enumerate(index):
        want[row] += grads[k]
    threads = wg.get_num_threads()
    try:
        for n in (1, 2, 5):
            wg.set_num_threads(n)
            table = wg.zeros(rows, width, requires_grad=True)
            table.take(wg.tensor(index), dim=0).backward(wg.tensor(grads))
            np.testing.assert_array_equal(table.grad.numpy(), want)
            picks = wg.tensor(index % rows).reshape(-1, 1).expand(count, width)
            sums = wg.zeros(rows, width).scatter_add(0, picks, wg.tensor(grads))
            np.testing.assert_array_equal(sums.numpy(), want)
            np.testing.assert_array_equal(sums.gather(0, picks).numpy(), want[index % rows])
    finally:
        wg.set_num_threads(threads)


@pytest.mark.parametrize("dtype", [wg.float32, wg.float64])
def test_an_infinity_reaches_only_the_weights_that_meet_it(dtype):
    """Rows lie one after another in memory; what an element gives one row must not reach the next."""
    rng = np.random.default_rng(3)
    for hole in (np.inf, -np.inf, np.nan):
        image = rng.standard_normal((2, 3, 5, 6))
        image[1, 1, 2, 0] = hole
        gradient = rng.standard_normal((2, 4, 3, 4))
        weight = wg.zeros(4, 3, 3, 3, dtype=dtype, requires_grad=True)
        out = F.conv2d(wg.tensor(image, dtype=dtype), weight)
        out.backward(wg.tensor(gradient, dtype=dtype))
        windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
        expected = np.einsum("noyx,ncyxhw->ochw", gradient, windows)
        got = weight.grad.numpy()
        assert np.array_equal(np.isfinite(got), np.isfinite(expected))
        np.testing.assert_allclose(got, expected.astype(got.dtype), rtol=2e-4, atol=1e-5)
