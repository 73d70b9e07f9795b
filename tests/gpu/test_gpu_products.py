"""Products and layers on a GPU: every way in which the host cuts them against NumPy in float64, how many
kernels a layer takes, and that a shape has its bits."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import wengert as wg
import wengert.nn.functional as F

pytestmark = pytest.mark.gpu
#: Rows, steps and columns: tiles of 128 and of 64, and parts of either; few rows; few columns; a long sum.
SIZES = [
    (1408, 4, 1536),
    (256, 1040, 256),
    (70, 17, 66),
    (130, 1100, 72),
    (20, 40, 300),
    (300, 33, 24),
    (3, 2048, 40),
    (16, 129, 17),
    (90, 1000, 5),
    (1, 4100, 1),
    (40, 3000, 1),
    (65, 0, 65),
]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def bound(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A few roundings of the magnitudes that are summed."""
    return 4 * 2.0**-24 * (np.abs(a) @ np.abs(b)) * max(a.shape[-1], 1) ** 0.5 + 1e-30


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False)])
def test_products(sizes: tuple[int, int, int], turned: tuple[bool, bool]) -> None:
    m, k, n = sizes
    a, b = normal(m, k), normal(k, n, seed=1)
    x = wg.tensor(a.T.copy(), device="gpu").t() if turned[0] else wg.tensor(a, device="gpu")
    y = wg.tensor(b.T.copy(), device="gpu").t() if turned[1] else wg.tensor(b, device="gpu")
    got = (x @ y).cpu().numpy()
    wide = a.astype(np.float64), b.astype(np.float64)
    assert (np.abs(got - wide[0] @ wide[1]) <= bound(*wide)).all()
    np.testing.assert_array_equal((x @ y).cpu().numpy(), got)


#: Of matrices also whole tiles of 128 and 64, both or neither whole, and parts of k.
@pytest.mark.parametrize(
    "sizes", [*SIZES, (256, 64, 384), (128, 2048, 128), (64, 300, 192), (1000, 20, 1000)]
)
@pytest.mark.parametrize("turned", [(False, False), (True, True), (True, False)])
def test_products_of_halves(sizes: tuple[int, int, int], turned: tuple[bool, bool]) -> None:
    m, k, n = sizes
    a, b = normal(m, k).astype(np.float16), normal(k, n, seed=1).astype(np.float16)
    x = wg.tensor(a.T.copy(), device="gpu").t() if turned[0] else wg.tensor(a, device="gpu")
    y = wg.tensor(b.T.copy(), device="gpu").t() if turned[1] else wg.tensor(b, device="gpu")
    got = (x @ y).cpu().numpy()
    a, b = a.astype(np.float64), b.astype(np.float64)
    # Matrices of the hardware may cut off what they do not round.
    assert (np.abs(got - a @ b) <= 2.0**-19 * (np.abs(a) @ np.abs(b)) + 2.0**-11 * np.abs(a @ b)).all()
    np.testing.assert_array_equal((x @ y).cpu().numpy(), got)


def test_matrices_of_the_hardware_multiply_tiles() -> None:
    way = wg.gpu.info()["float16_products"]
    if not way.startswith("by matrices"):
        pytest.skip(f"products of float16 are {way}")
    a, b = normal(128, 72).astype(np.float16), normal(72, 192, seed=1).astype(np.float16)
    x, y = wg.tensor(a, device="gpu"), wg.tensor(b, device="gpu")
    before = wg._core._gpu_texts(0)
    got = F.linear(x, y.t(), activation="relu").cpu().numpy()
    new = [text for text in wg._core._gpu_texts(0) if text not in before]
    assert [(name, "coopMultiplyAdd" in text) for name, _, text in new] == [("linear", True)]
    a, b = a.astype(np.float64), b.astype(np.float64)
    want = np.maximum(a @ b, 0)
    assert (np.abs(got - want) <= 2.0**-19 * (np.abs(a) @ np.abs(b)) + 2.0**-11 * want).all()
    # Rows that do not fill a tile are multiplied by threads.
    assert (x[:4] @ y).shape == (4, 192)
    new = [text for text in wg._core._gpu_texts(0) if text not in before and text[1] == "thin"]
    assert not any("coopMultiplyAdd" in text for _, _, text in new)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("activation", [None, "relu", "gelu", "tanh"])
@pytest.mark.parametrize("sizes", [(48, 20, 36), (3, 5, 7), (40, 1100, 65), (70, 30, 1), (50, 20, 9)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_layers(dtype: str, activation: str | None, sizes: tuple[int, int, int], has_bias: bool) -> None:
    rows, inputs, outputs = sizes
    given = [normal(2, rows, inputs) / inputs**0.5, normal(outputs, inputs, seed=1), normal(outputs, seed=2)]
    given = given[: 2 + has_bias]
    found = []
    for device in ("gpu", "cpu"):
        # The same numbers, of which the CPU has more digits.
        x = [wg.tensor(v).to(getattr(wg, dtype)) for v in given]
        x = [v.to(wg.float64) if device == "cpu" else v.to(device) for v in x]
        x = [v.requires_grad_() for v in x]
        out = F.linear(*x, activation=activation)
        (out * out.detach()).sum().backward()
        found.append([v.to("cpu").to(wg.float64).numpy() for v in [out.detach(), *(v.grad for v in x)]])
    unit = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 8e-2}[dtype]
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=unit, atol=unit * max(np.abs(want).max(), 1.0))


def kernels(work: Callable[[], object]) -> Counter[str]:
    with wg.gpu.profile() as found:
        work()
    return Counter(launch.kernel for launch in found.launches)


@pytest.mark.parametrize("activation", [None, "relu", "gelu"])
def test_kernels_of_a_layer(activation: str | None) -> None:
    x, w, b = (
        wg.tensor(normal(*shape), device="gpu").requires_grad_() for shape in ((64, 48), (32, 48), (32,))
    )
    assert kernels(lambda: F.linear(x, w, b, activation=activation)) == {"linear": 1}
    out = F.linear(x, w, b, activation=activation)
    g = wg.ones(64, 32, device="gpu")
    backward = kernels(lambda: wg.autograd.grad(out, [x, w, b], g))
    # The product for x; that for the weight and the sums of its rows for the bias; the derivative.
    assert (backward.pop("matmul"), backward.pop("linear")) == (1, 1)
    assert sum(backward.values()) == (activation is not None)


def test_a_long_sum_takes_two_kernels() -> None:
    x, y = (wg.tensor(normal(*shape), device="gpu") for shape in ((64, 2048), (2048, 64)))
    assert kernels(lambda: x @ y) == {"matmul": 2}
    assert kernels(lambda: x[:, :512] @ y[:512]) == {"matmul": 1}
    assert kernels(lambda: x[:8, :256] @ y[:256]) == {"matmul": 1}
