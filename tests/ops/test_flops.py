"""Counts of floating point operations against closed forms."""

import itertools
import threading
from typing import Any

import pytest
import wengert as wg
import wengert.nn.functional as F
from wengert import _core, nn


def test_matrix_products() -> None:
    a, b = wg.ones(7, 5), wg.ones(5, 3)
    assert wg.flops(wg.matmul, a, b) == 2 * 7 * 5 * 3
    assert wg.flops(wg.matmul, wg.ones(4, 7, 5), b) == 4 * 2 * 7 * 5 * 3
    assert wg.flops(wg.matmul, wg.ones(5), b) == 2 * 5 * 3
    assert wg.flops(wg.matmul, a, wg.ones(5)) == 2 * 7 * 5
    assert wg.flops(wg.matmul, wg.ones(5), wg.ones(5)) == 2 * 5
    assert wg.flops(lambda: b.T @ a.T) == 2 * 7 * 5 * 3
    assert wg.flops(lambda: wg.einsum("ij,jk->ik", a, b)) == 2 * 7 * 5 * 3


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow"])
def test_arithmetic_counts_one_per_element(name: str) -> None:
    assert wg.flops(getattr(wg, name), wg.ones(4, 1), wg.ones(3)) == 12


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: x.exp(), 12),
        (lambda x: -x, 0),
        (lambda x: x.relu(), 0),
        (lambda x: x.sum(), 11),
        (lambda x: x.sum(0), 8),
        (lambda x: x.mean(1), 12),
        (lambda x: x.prod(0), 8),
        (lambda x: x.amax(0), 0),
        (lambda x: x.argmax(0), 0),
        (lambda x: x.cumsum(0), 8),
        (lambda x: x.cumprod(1), 9),
        (lambda x: x.sort(1), 0),
        (lambda x: x > 0, 0),
        (lambda x: wg.where(x > 0, x, 0), 0),
        (lambda x: x.T.reshape(2, 6)[:, ::2], 0),
        (lambda x: wg.cat([x, x]), 0),
        (lambda x: x.softmax(1), 3 * (4 * 4 - 1)),
        (lambda x: x.log_softmax(1), 3 * 4 * 4),
        (lambda x: F.layer_norm(x, (4,)), 3 * (5 * 4 + 2)),
        (lambda x: F.rms_norm(x, (4,)), 3 * (3 * 4 + 2)),
        (lambda x: F.rms_norm(x, (4,), wg.ones(4)), 3 * (4 * 4 + 2)),
        (lambda x: F.cross_entropy(x, wg.tensor([0, 1, 2])), 3 * (3 * 4 + 2) + 3),
        (lambda x: wg.randn(5), 0),
    ],
)
def test_closed_forms(call: Any, expected: int) -> None:
    assert wg.flops(call, wg.ones(3, 4)) == expected


def test_mlp_forward_and_backward() -> None:
    batch, sizes = 6, (5, 8, 3)
    net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
    x = wg.ones(batch, 5)
    with wg.FlopCounter() as counter:
        loss = net(x).square().sum()
        loss.backward()
    products = sum(2 * batch * m * n for m, n in itertools.pairwise(sizes))
    biases, outputs = batch * (8 + 3), batch * 3
    assert counter.forward == products + biases + batch * 8 + outputs + (outputs - 1)
    # Twice the products, less the gradient of the input, which nobody wants.
    back = 2 * products - 2 * batch * 5 * 8
    sums = (batch - 1) * (8 + 3)
    slopes = 3 * batch * 8 + 2 * outputs
    assert counter.backward == back + sums + slopes
    assert counter.total == counter.forward + counter.backward


def test_products_of_backward_are_twice_those_of_forward() -> None:
    x, w = (wg.ones(9, 9, requires_grad=True) for _ in range(2))
    with wg.FlopCounter() as counter:
        (x @ w).backward(wg.ones(9, 9))
    assert (counter.forward, counter.backward) == (2 * 9**3, 4 * 9**3)


@pytest.mark.parametrize("groups", [1, 2])
def test_convolution(groups: int) -> None:
    n, c, o, size, k = 3, 4, 6, 8, 3
    x = wg.ones(n, c, size, size, requires_grad=True)
    w = wg.ones(o, c // groups, k, k, requires_grad=True)
    with wg.FlopCounter() as counter:
        y = F.conv2d(x, w, stride=2, padding=1, groups=groups)
        y.backward(wg.ones_like(y))
    one = 2 * n * o * 4 * 4 * (c // groups) * k * k
    assert (counter.forward, counter.backward) == (one, 2 * one)
    assert (
        wg.flops(F.conv2d, x.detach(), w.detach(), wg.ones(o), stride=2, padding=1, groups=groups)
        == one + y.numel()
    )


def test_attention() -> None:
    heads, length, features = 2, 5, 4
    q, k, v = (wg.ones(1, heads, length, features, requires_grad=True) for _ in range(3))
    with wg.FlopCounter() as counter:
        y = F.scaled_dot_product_attention(q, k, v)
        y.backward(wg.ones_like(y))
    product, scores = 2 * heads * length * length * features, heads * length * length
    assert counter.forward == 2 * product + 5 * scores
    # The scores again, then the gradients of p, q, k and v.
    assert counter.backward == 5 * product + 6 * scores
    # A causal mask changes no formula.
    assert wg.flops(F.scaled_dot_product_attention, q, k, v, is_causal=True) == counter.forward


def test_transforms() -> None:
    x, w = wg.ones(6, 4), wg.ones(4)
    f = lambda w, x: (x * w).sum()
    assert wg.flops(wg.vmap(f, in_dims=(None, 0)), w, x) == 6 * (4 + 3)
    with wg.FlopCounter() as counter:
        wg.grad(f)(w, x[0])
    assert (counter.forward, counter.backward) == (4 + 3, 4)
    # The values, the tangent's product and its sum.
    assert wg.flops(lambda: wg.jvp(lambda w: f(w, x[0]), (w,), (w,))) == 2 * (4 + 3)


def test_modules() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
            self.head = nn.Linear(8, 2, bias=False)

        def forward(self, x: wg.Tensor) -> wg.Tensor:
            return self.head(self.body(x)).exp()

    net, x = Net(), wg.ones(3, 4)
    with wg.FlopCounter() as counter:
        net(x).sum().backward()
    modules = {name: count.flops for name, count in counter.by_module().items()}
    first, head = 2 * 3 * 4 * 8, 2 * 3 * 8 * 2
    assert modules["Net.body.0"] == 2 * first + 3 * 8 + 2 * 8
    assert modules["Net.head"] == 3 * head
    # `exp` and its derivative run in the network itself, the sum outside of it.
    assert modules["Net"] == modules["Net.body"] + modules["Net.head"] + 2 * 6
    assert modules["Global"] == 5
    assert sum(modules[name] for name in ("Net", "Global")) == counter.total
    assert counter.by_operation()["exp"] == (2, 12)
    lines = str(counter).splitlines()
    assert lines[0].split() == ["module", "operation", "calls", "forward", "backward", "total", "share"]
    assert lines[-1].split()[-2:] == ["100.0", "%"]
    assert any(line.startswith("    Net.body.0") for line in lines)
    assert not any("Net.body.0" in line for line in counter.table(depth=2).splitlines())


def test_modules_are_listed_in_their_order() -> None:
    net = nn.Sequential(*(nn.Linear(2, 2) for _ in range(11)))
    with wg.FlopCounter() as counter:
        net(wg.ones(1, 2)).exp()
    names = list(dict.fromkeys(row.module for row in counter.rows))
    assert names == [*(f"Sequential.{i}" for i in range(11)), "Global"]
    shown = [line.split()[0] for line in str(counter).splitlines() if line.startswith("  Sequential")]
    assert shown == names[:-1]


def test_in_place_operations_count() -> None:
    x = wg.ones(10)
    with wg.FlopCounter() as counter:
        x += 1
        x.mul_(2)
        x[2:5] = 3
    assert counter.total == 20


def test_checkpoints_count_what_runs_again() -> None:
    from wengert.utils.checkpoint import checkpoint

    x, z = (wg.ones(4, requires_grad=True) for _ in range(2))
    f = lambda x: x.exp().sin()
    with wg.FlopCounter() as plain:
        f(x).sum().backward()
    with wg.FlopCounter() as again:
        checkpoint(f, z).sum().backward()
    assert again.forward == plain.forward
    assert again.backward == plain.backward + wg.flops(f, x)


def test_gradients_that_meet_are_added() -> None:
    x = wg.ones(5, requires_grad=True)
    with wg.FlopCounter() as counter:
        (x.exp() + x.sin()).sum().backward()
    assert counter.backward == 5 + 2 * 5 + 5


def test_custom_functions_count_what_they_run() -> None:
    @wg.custom_vjp
    def f(x: wg.Tensor) -> wg.Tensor:
        return x.exp()

    f.defvjp(lambda x: (x.exp(), x), lambda x, g: (g * x.sin(),))
    with wg.FlopCounter() as counter:
        wg.grad(lambda x: f(x).sum())(wg.ones(3))
    assert counter.backward == 6
    assert counter.by_operation()["sin"] == (1, 3)


def test_counters_nest_and_end() -> None:
    x = wg.ones(3)
    with wg.FlopCounter() as outer:
        x.exp()
        with wg.FlopCounter() as inner:
            x.exp()
        assert outer.total == 6
    x.exp()
    assert (outer.total, inner.total) == (6, 3)
    assert _core._get_debug_modes() == 0
    from wengert.nn.hooks import EVERYWHERE

    assert not EVERYWHERE


def test_an_error_ends_the_region() -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(wg.ShapeError), wg.FlopCounter():
        net(wg.ones(3, 3))
    with wg.FlopCounter() as counter:
        wg.ones(3).exp()
    assert list(counter.by_module()) == ["Global"]


def test_counting_belongs_to_the_thread() -> None:
    with wg.FlopCounter() as counter:
        other = threading.Thread(target=lambda: nn.Linear(2, 2)(wg.ones(1, 2)))
        other.start()
        other.join()
    assert counter.total == 0


def test_strict_gradients_count_alike() -> None:
    f = lambda x: x.sqrt().sum()
    usual = wg.flops(wg.grad(f), wg.ones(4))
    with wg.ieee_gradients(True):
        assert wg.flops(wg.grad(f), wg.ones(4)) == usual


def test_a_counter_that_runs_refuses_to_begin_again() -> None:
    with wg.FlopCounter() as counter, pytest.raises(RuntimeError) as caught:
        counter.__enter__()
    message = "FlopCounter: this counter is counting already; make another one to nest them"
    assert str(caught.value) == message


def test_einsum_contracts_in_an_order_that_costs_little() -> None:
    x, y, v = wg.ones(50, 60), wg.ones(60, 70), wg.ones(70)
    # The vector goes into a matrix, and the result into the other, in whichever order they are given.
    cheap = 2 * (60 * 70 + 50 * 60)
    assert wg.flops(lambda: wg.einsum("ij,jk,k->i", x, y, v)) == cheap
    assert wg.flops(lambda: wg.einsum("k,ij,jk->i", v, x, y)) == cheap
