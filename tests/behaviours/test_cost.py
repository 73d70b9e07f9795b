"""What backward costs: twice the products of the forward pass, and memory that grows with the values, not
Jacobians."""

import gc

import pytest
import wengert as wg
from behaviours.tape import entries, kept, live, ops, product_flops
from wengert import nn
from wengert.nn import functional as F


def tower(depth: int, width: int) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    wg.manual_seed(0)
    return nn.Sequential(
        *(part for _ in range(depth) for part in (nn.Linear(width, width, bias=False), nn.ReLU()))
    )


@pytest.mark.parametrize("depth", [1, 4])
def test_backward_costs_twice_the_products_of_forward(depth: int) -> None:
    net, x = tower(depth, 16), wg.randn(8, 16, requires_grad=True)
    loss = net(x).sum()
    forward = product_flops(loss)
    assert forward == depth * 2 * 8 * 16 * 16
    gradients = wg.autograd.grad(loss, [x, *net.parameters()], create_graph=True)
    assert product_flops(*gradients, apart_from=(loss,)) == 2 * forward


def test_without_a_gradient_of_the_input_the_first_layer_costs_one_product_less() -> None:
    net, x = tower(4, 16), wg.randn(8, 16)
    loss = net(x).sum()
    gradients = wg.autograd.grad(loss, list(net.parameters()), create_graph=True)
    assert product_flops(*gradients, apart_from=(loss,)) / product_flops(loss) == 7 / 4


def backward_peak(depth: int, width: int, batch: int) -> int:
    """The most bytes alive when a value's cotangent arrives, without the parameters."""
    net, x = tower(depth, width), wg.randn(batch, width, requires_grad=True)
    gc.collect()
    start, peak = wg.memory.live_bytes(), 0

    def look(_: wg.Tensor) -> None:
        nonlocal peak
        peak = max(peak, wg.memory.live_bytes() - start)

    y = x
    for layer in net:
        y = layer(y)
        y.register_hook(look)
    y.sum().backward()
    return peak


def test_no_jacobian_is_ever_formed() -> None:
    width, batch, depth = 1000, 4, 10
    value = 4 * width * batch
    peak = backward_peak(depth, width, batch)
    # Two values per layer, a few cotangents, the gradients of the weights. One Jacobian of one layer for this
    # batch would take (4 * 1000)^2 * 4 bytes = 64 MB.
    gradients = depth * 4 * width * width
    assert peak <= gradients + 2 * depth * value + 4 * value
    assert peak < (width * batch) ** 2 * 4


def test_the_peak_of_backward_grows_linearly() -> None:
    base = backward_peak(8, 64, 256)
    assert backward_peak(16, 64, 256) == pytest.approx(2 * base, rel=0.2)
    assert backward_peak(8, 64, 512) == pytest.approx(2 * base, rel=0.2)


X = (8, 16)  # float32: 512 bytes


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: x + x, []),
        (lambda x: x - 1.0, []),
        (lambda x: -x, []),
        (lambda x: x.sum(), []),
        (lambda x: x.reshape(16, 8), []),
        (lambda x: F.relu(x), [("output 0", X)]),
        (lambda x: x.sigmoid(), [("output 0", X)]),
        (lambda x: x.tanh(), [("output 0", X)]),
        (lambda x: x.exp(), [("output 0", X)]),
        (lambda x: x.softmax(-1), [("output 0", X)]),
        (lambda x: x.log_softmax(-1), [("output 0", X)]),
        (lambda x: x.log(), [("input 0", X)]),
        (lambda x: F.gelu(x), [("input 0", X)]),
        (lambda x: F.layer_norm(x, (16,)), [("input 0", X), ("output 1", (8,)), ("output 2", (8,))]),
        (lambda x: F.rms_norm(x, (16,)), [("input 0", X), ("output 1", (8,))]),
        (lambda x: x * wg.full(X, 2.0), [("input 1", X)]),
    ],
)
def test_what_one_operation_keeps(f: object, expected: list[tuple[str, tuple[int, ...]]]) -> None:
    x = wg.rand(X).requires_grad_()
    assert kept(f(x)) == expected


def test_a_linear_layer_keeps_its_input_and_its_weight() -> None:
    x, layer = wg.rand(X).requires_grad_(), nn.Linear(16, 4)
    y = layer(x)
    saved = [(value.name, value.shape) for entry in entries(y) for value in entry.saved]
    assert ops(y) == ["linear"]
    assert saved == [("input 0", X), ("input 1", (4, 16))]
    # Both are there anyway; what the layer adds to live memory is its output.
    assert live(lambda: layer(x)) <= 2 * (4 * 8 * 4) + 256


def test_the_ledger_equals_live_memory() -> None:
    """The distinct values that the tape keeps are what lives between forward and backward."""
    n = 4096
    x = wg.rand(n).requires_grad_()
    assert live(lambda: x.tanh()) == pytest.approx(4 * n, abs=512)
    assert live(lambda: x.tanh().tanh().tanh()) == pytest.approx(3 * 4 * n, abs=512)
    assert live(lambda: ((x + 1.0) + 1.0) + 1.0) == pytest.approx(4 * n, abs=512)
    y = x.tanh().tanh().tanh()
    assert sum(entry.saved_bytes for entry in entries(y)) == 3 * 4 * n
    y.sum().backward()
    assert sum(entry.saved_bytes for entry in entries(y)) == 0
