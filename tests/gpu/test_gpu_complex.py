"""Complex numbers on a GPU: values beside NumPy's in float64, derivatives beside those of the CPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from references.complex_reference import BINARY, UNARY, some
from support import array

DEVICE = "gpu"
TOLERANCE = 3e-5
WRONG = np.inf + 0j


def near(got: wg.Tensor, expected: Any, tolerance: float = TOLERANCE) -> None:
    """Values of a result on the GPU."""
    assert got.device != "cpu"
    np.testing.assert_allclose(array(got.cpu()), expected, rtol=tolerance, atol=tolerance)


def layouts(x: Any) -> list[wg.Tensor]:
    """The same matrix in several layouts, some of which begin between two vectors of four words."""
    double = np.repeat(np.repeat(x, 2, 0), 2, 1)
    tail = np.concatenate([x.flat[:1], x.flat])
    return [
        wg.tensor(x, device=DEVICE),
        wg.tensor(np.ascontiguousarray(x.T), device=DEVICE).mT,
        wg.tensor(double, device=DEVICE)[1::2, 1::2],
        wg.tensor(tail, device=DEVICE)[1:].reshape(x.shape),
    ]


@pytest.mark.parametrize("place", range(4))
def test_numbers_go_there_and_back(place: int) -> None:
    x = some("complex64")
    t = layouts(x)[place]
    assert t.dtype == wg.complex64
    assert np.array_equal(array(t.cpu()), x)
    assert np.array_equal(array(t.contiguous().cpu()), x)
    assert np.array_equal(array(t.clone().real.cpu()), x.real)
    assert t[1, 2].item() == x[1, 2]
    assert t.tolist() == x.tolist()
    assert repr(t).startswith("tensor([[")
    assert wg.zeros(0, 3, dtype=wg.complex64, device=DEVICE).tolist() == []
    assert wg.full((2,), 1 + 1j, device=DEVICE).tolist() == [1 + 1j] * 2
    assert wg.eye(2, dtype=wg.complex64, device=DEVICE).tolist() == [[1, 0], [0, 1]]


def test_bits_of_numbers_stay() -> None:
    odd = np.array([complex(-0.0, np.nan), complex(np.inf, -0.0), 1e-42 + 1e-45j], "complex64")
    there = wg.tensor(odd, device=DEVICE)
    for t in (there, there.clone(), there[::2], there.flip(0).flip(0), wg.cat([there, there])[3:]):
        expected = odd[::2] if len(t) == 2 else odd
        assert array(t.cpu()).tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name: str) -> None:
    for place in range(4):
        z = some("complex64", seed=place)
        x = layouts(z)[place]
        near(getattr(wg, name)(x), UNARY[name](z.astype("complex128")), 2e-4)


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name: str) -> None:
    f, tolerance = getattr(wg, name), 2e-4
    for place in range(4):
        x, y = some("complex64", seed=1), some("complex64", seed=2)
        x[0, 0] = y[0, 0]
        wide = BINARY[name](x.astype("complex128"), y.astype("complex128"))
        near(f(layouts(x)[place], layouts(y)[3 - place]), wide, tolerance)
        row = BINARY[name](x.astype("complex128"), y[:1].astype("complex128"))
        near(f(layouts(x)[place], layouts(y)[place][:1]), row, tolerance)
    real = np.abs(x.real) + 0.5
    near(f(layouts(x)[0], wg.tensor(real, device=DEVICE)), BINARY[name](x, real), tolerance)


def test_zeros_of_slopes_stay_zero() -> None:
    for zero, other in ((0, WRONG), (0, complex(np.nan, 1))):
        x = wg.tensor([other], device=DEVICE, requires_grad=True)
        y = wg.tensor([2j], device=DEVICE)
        assert wg.vjp(lambda x, y=y: x * y, x)[1](wg.tensor([zero + 0j], device=DEVICE))[0].tolist() == [0]
        # As a product of its own it is NaN.
        assert np.isnan((x.detach() * wg.tensor([0j], device=DEVICE)).abs().item())


MOVES: dict[str, Callable[[Any], Any]] = {
    "flip": lambda x: x.flip(1),
    "roll": lambda x: x.roll(2, 0),
    "cat": lambda x: wg.cat([x, x[:1] * 2, x], 0),
    "stack": lambda x: wg.stack([x, x], 1),
    "pad": lambda x: wg.nn.functional.pad(x, (1, 2, 0, 1)),
    "strides": lambda x: x[::2, 3:0:-1],
    "tril": lambda x: x.tril(-1),
    "triu": lambda x: x.triu(1),
    "diagonal": lambda x: x.diagonal(1),
    "diag_embed": lambda x: wg.diag_embed(x),
    "take": lambda x: x[wg.tensor([2, 0, -1, 2], device=x.device)],
    "columns": lambda x: x.index_select(1, wg.tensor([4, 0, 0], device=x.device)),
    "gather": lambda x: x.gather(1, wg.tensor([[4, 0], [1, 1], [2, 3]], device=x.device)),
    "mask": lambda x: x[x.real > 0],
    "where": lambda x: wg.where(x.real > 0, x, -1j * x),
    "repeat": lambda x: x.repeat(2, 1),
    "as_strided": lambda x: x.contiguous().as_strided((2, 3), (5, 2), 1) * 1,
    "scatter_add": lambda x: x.scatter_add(
        1, wg.tensor([[4, 4, 0], [1, 1, 1]], device=x.device), x[:2, :3] * 2
    ),
    "index_add": lambda x: x.index_add(0, wg.tensor([1, 1], device=x.device), x[:2]),
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(),
    "cumsum": lambda x: x.cumsum(1),
    "prod": lambda x: x.prod(1),
    "cumprod": lambda x: x.cumprod(1),
    "var": lambda x: x.var(0),
    "matmul": lambda x: x @ x.mH,
    "einsum": lambda x: wg.einsum("ij,kj->ik", x, x * 1j),
    "conv": lambda x: wg.nn.functional.conv1d(x[None], x[None, :, :2] * 0.5),
    "count": lambda x: wg.count_nonzero(x * (x.real > 0), 1) * x[:, 0].real,
    "norm": lambda x: wg.linalg.vector_norm(x),
    "complex": lambda x: wg.complex(x.real, x.imag * 2),
    "polar": lambda x: wg.polar(x.abs(), x.angle() * 2),
    "pairs": lambda x: wg.view_as_complex(wg.view_as_real(x).flip(0) * 2),
    "softmax of size": lambda x: wg.softmax(x.abs(), 1) * x,
}


@pytest.mark.parametrize("name", MOVES)
def test_movements_products_and_sums(name: str) -> None:
    """On the CPU they are compared with NumPy; here values, gradients and tangents with those of the CPU."""
    f = MOVES[name]
    x, v = some("complex64", seed=5), some("complex64", seed=6)
    here = wg.tensor(x)
    y, slope = wg.jvp(f, (here,), (wg.tensor(v),))
    out, pull = wg.vjp(f, here)
    g = some("complex64", tuple(out.shape), seed=7)
    g = wg.tensor(g if out.is_complex() else g.real.astype("float32"))
    for place in range(4):
        there, w = layouts(x)[place], layouts(v)[place]
        y_there, slope_there = wg.jvp(f, (there,), (w,))
        near(y_there, array(y))
        near(slope_there, array(slope))
        near(wg.vjp(f, there)[1](g.to(DEVICE))[0], array(pull(g)[0]))
        near(f(there), array(out))


def test_second_derivatives_batches_and_programs() -> None:
    def f(x: wg.Tensor) -> wg.Tensor:
        return (x * x.conj() * wg.exp(1j * x)).abs().sum()

    x = some("complex64")
    here, there = wg.tensor(x), wg.tensor(x, device=DEVICE)
    near(wg.grad(f)(there), array(wg.grad(f)(here)), 2e-4)
    near(wg.vmap(wg.grad(f))(there), array(wg.vmap(wg.grad(f))(here)), 2e-4)
    twice = wg.grad(lambda x: wg.grad(f)(x).abs().square().sum())
    near(twice(there), array(twice(here)), 2e-3)
    step = wg.jit(wg.grad(f))
    for _ in range(3):
        near(step(there), array(wg.grad(f)(here)), 2e-4)


def test_writes_in_place() -> None:
    x = some("complex64")
    for place in range(4):
        t, expected = layouts(x)[place].clone(), x.copy()
        t[1] = 2j
        expected[1] = 2j
        t[:, 1:3] *= 1 - 1j
        expected[:, 1:3] *= 1 - 1j
        t += t
        expected += expected
        t.real[0] = 5
        expected.real[0] = 5
        t.masked_fill_(t.imag > 1, 0)
        expected[expected.imag > 1] = 0
        near(t, expected)
    whole = wg.zeros(4, 2, device=DEVICE)
    wg.view_as_complex(whole)[1] = 5 - 1j
    assert whole.tolist() == [[0, 0], [5, -1], [0, 0], [0, 0]]


def test_training_of_complex_parameters() -> None:
    losses = []
    for device in ("cpu", DEVICE):
        weight = wg.tensor(some("complex64", (3, 3)), device=device, requires_grad=True)
        x = wg.tensor(some("complex64", (8, 3), 1), device=device)
        optimiser = wg.optim.SGD([weight], lr=0.01, momentum=0.9)
        for _ in range(4):
            optimiser.zero_grad()
            loss = ((x @ weight).abs() - 1).square().mean()
            loss.backward()
            optimiser.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_double_precision_is_refused() -> None:
    for make in (
        lambda: wg.tensor([1j], dtype=wg.complex128).to(DEVICE),
        lambda: wg.zeros(2, dtype=wg.complex128, device=DEVICE),
    ):
        with pytest.raises(
            TypeError, match=r"gpu:0 has no complex128; convert with \.to\(wengert\.complex64\)"
        ):
            make()
