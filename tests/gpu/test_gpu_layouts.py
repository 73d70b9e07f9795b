"""Elementwise kernels and copies on a GPU, however operands lie: four at a time, or element by element."""

import itertools

import numpy as np
import pytest
import wengert as wg

pytestmark = pytest.mark.gpu
DTYPES = ["float32", "float16", "bfloat16", "int32", "bool"]
#: Rows and columns of an operand, and the slices that make it: dense, off by one, a part, a row, a column.
VIEWS = {
    "dense": lambda x, n, k: x[:n, :k].clone(),
    "shifted": lambda x, n, k: x.flatten()[1 : 1 + n * k].view(n, k),
    "part": lambda x, n, k: x[1 : n + 1, 4 : k + 4],
    "odd part": lambda x, n, k: x[1 : n + 1, 3 : k + 3],
    "row": lambda x, n, k: x[2, 8 : k + 8],
    "odd row": lambda x, n, k: x[2, 5 : k + 5],
    "column": lambda x, n, k: x[1 : n + 1, 3:4],
    "one": lambda x, n, k: x[1, 1],
    "every other": lambda x, n, k: x[:n, : 2 * k : 2],
    "turned": lambda x, n, k: x.t()[:n, :k],
}


def values(dtype: str, device: str) -> wg.Tensor:
    """A square of numbers that halves hold."""
    x = wg.tensor((np.arange(96 * 96).reshape(96, 96) % 97 - 40).astype(np.float32))
    return (x > 0 if dtype == "bool" else x.to(getattr(wg, dtype))).to(device)


def same(got: wg.Tensor, expected: wg.Tensor) -> None:
    """The same elements, whatever the dtype."""
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got.cpu().float().numpy(), expected.float().numpy())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 4, 7, 32])
@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(VIEWS, 2)))
def test_two_operands(dtype: str, columns: int, first: str, second: str) -> None:
    found = []
    for device in ("cpu", "gpu"):
        x = values(dtype, device)
        a, b = (VIEWS[name](x, 9, columns) for name in (first, second))
        found.append((a & b, b ^ a) if dtype == "bool" else (a + b, b - a, a < b))
    for expected, got in zip(*found, strict=True):
        same(got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 1023, 1024, 1025, 4099])
def test_lengths_that_are_no_multiple_of_four(dtype: str, count: int) -> None:
    x = values(dtype, "cpu").flatten()[:count]
    y = x.to("gpu")
    same(y.logical_not(), x.logical_not())
    same(wg.where(y > 0, y, y), x)
    for to in DTYPES:
        same(y.to(getattr(wg, to)), x.to(getattr(wg, to)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(8, 9), (33, 40), (3, 8, 70), (2, 9, 3, 8), (2, 8, 3, 34)])
def test_exchanged_axes(dtype: str, shape: tuple[int, ...]) -> None:
    x = values(dtype, "cpu").flatten()[: int(np.prod(shape))].reshape(shape)
    for axes in itertools.permutations(range(len(shape))):
        expected = x.permute(*axes).contiguous()
        got = x.to("gpu").permute(*axes)
        same(got.contiguous(), expected)
        same(got.float(), expected.float())
        same(got[1:].clone(), expected[1:])


def test_copies_keep_bits() -> None:
    for dtype, bits in (("float32", np.uint32), ("float16", np.uint16)):
        every = np.arange(0, 1 << 16, dtype=np.uint32)
        x = (every << 16 | 1 if bits == np.uint32 else every).astype(bits).reshape(256, 256)
        y = wg.tensor(x.view(dtype)).to("gpu")
        for copy, expected in ((y.clone(), x), (y.t().contiguous(), x.T), (y[:, 1:].contiguous(), x[:, 1:])):
            np.testing.assert_array_equal(copy.cpu().numpy().view(bits), expected)


def test_neighbours_stay() -> None:
    for count in range(1, 9):
        for start in range(5):
            x = wg.zeros(16, device="gpu")
            x[start : start + count] = wg.ones(count, device="gpu")
            expected = np.zeros(16, np.float32)
            expected[start : start + count] = 1
            np.testing.assert_array_equal(x.cpu().numpy(), expected)


def test_whole_arrays_are_filled() -> None:
    for shape in ((9,), (3, 3), (5, 4, 2), (4, 8)):
        x = wg.full(shape, 7.0, device="gpu")
        x[...] = 2.0
        same(x, wg.full(shape, 2.0))
        x[...] = wg.arange(shape[-1], dtype=wg.float32, device="gpu")
        same(x, wg.arange(shape[-1], dtype=wg.float32).expand(*shape))


def test_kernels_of_layouts() -> None:
    x = wg.ones(64, 64, device="gpu")
    with wg.gpu.profile() as found:
        x.t().contiguous()
        x[:, ::2].contiguous()
        x.permute(1, 0)[:4].contiguous()
    assert [launch.kernel for launch in found.launches] == ["transpose", "cast", "cast"]
