"""Tensors of several MiB against NumPy. Under `WENGERT_GPU_LIMITS=small` a kernel binds 1 MiB of one, so that
these work in pieces; `test_gpu_limits.py` runs them so.
"""

import os

import numpy as np
import pytest
import wengert as wg

F = wg.nn.functional
IS_SMALL = os.environ.get("WENGERT_GPU_LIMITS") == "small"
RNG = np.random.default_rng(11)


def noise(*shape: int, dtype: str = "float32") -> np.ndarray:
    if dtype == "int32":
        return RNG.integers(-50, 50, shape).astype(dtype)
    return RNG.standard_normal(shape, dtype=np.float32).astype(dtype)


def gpu(x: np.ndarray) -> wg.Tensor:
    return wg.tensor(x).to("gpu")


def same(got: wg.Tensor, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(got.cpu().numpy(), expected)


def near(got: wg.Tensor, expected: np.ndarray, relative: float = 1e-5) -> None:
    assert got.shape == expected.shape
    scale = np.abs(expected).max()
    assert np.abs(got.cpu().float().numpy() - expected).max() <= relative * scale


SHAPES = [(700_001,), (3, 300_001), (1030, 1031), (2, 3, 5, 40_009)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_elementwise(shape: tuple[int, ...], dtype: str) -> None:
    a, b, row = noise(*shape, dtype=dtype), noise(*shape, dtype=dtype), noise(shape[-1], dtype=dtype)
    x, y = gpu(a), gpu(b)
    same(x, a)
    near(x + y, a.astype("float32") + b, 1e-3)
    near(x * gpu(row), a.astype("float32") * row, 1e-3)
    same(x > y, a > b)
    same(wg.where(x > y, x, y), np.where(a > b, a, b))
    near(x.float(), a.astype("float32"))
    same((x > 0).int(), (a > 0).astype("int32"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_layouts(dtype: str) -> None:
    a = noise(1030, 1031, dtype=dtype)
    x = gpu(a)
    same(x.T.contiguous(), np.ascontiguousarray(a.T))
    same(x.flip(0, 1).contiguous(), a[::-1, ::-1])
    same(x[1:, 3::2].contiguous(), a[1:, 3::2])
    same(x.T + x[:, :1].T, a.T + a[:, :1].T)
    same(x[1029], a[1029])
    same(wg.cat([x, x[:3]]), np.concatenate([a, a[:3]]))
    same(gpu(a[:1]).expand(900, 1031).contiguous(), np.broadcast_to(a[:1], (900, 1031)))
    y = x.clone()
    y[5:, 2::3] = x[5:, :343]
    b = a.copy()
    b[5:, 2::3] = a[5:, :343]
    same(y, b)
    y[:, 1000:] = 7
    b[:, 1000:] = 7
    same(y, b)


def test_fills_and_ranges() -> None:
    same(wg.full((600_003,), 2.5, device="gpu"), np.full(600_003, 2.5, "float32"))
    same(wg.arange(600_003, dtype=wg.int32, device="gpu") * 3 - 5, np.arange(600_003, dtype="int32") * 3 - 5)
    same(wg.arange(5, 1_800_014, 3, dtype=wg.int32, device="gpu"), np.arange(5, 1_800_014, 3, dtype="int32"))


@pytest.mark.parametrize("draw", [wg.rand, wg.randn])
def test_random_numbers_are_those_of_the_cpu(draw) -> None:
    wg.manual_seed(5)
    expected = draw(700_001).numpy()
    wg.manual_seed(5)
    near(draw(700_001, device="gpu"), expected, 1e-5)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions(shape: tuple[int, ...]) -> None:
    a = noise(*shape)
    x = gpu(a)
    exact = a.astype("float64")
    for dim in (None, *range(len(shape))):
        size = np.abs(exact).sum(dim).max()
        assert np.abs(x.sum(dim).cpu().numpy() - exact.sum(dim)).max() <= 1e-6 * size, dim
        same(x.amax(dim) if dim is not None else x.max(), a.max(dim))
        same(x.amin(dim) if dim is not None else x.min(), a.min(dim))
        same(x.argmax(dim), a.argmax(dim).astype("int32"))
        same(x.argmin(dim), a.argmin(dim).astype("int32"))
        assert x.sum(dim, keepdim=True).shape == exact.sum(dim, keepdims=True).shape
    same((x > 5).any(), (a > 5).any())
    same((x > -9).all(0), (a > -9).all(0))


def test_the_first_nan_wins_and_the_first_of_equal_ones() -> None:
    a = np.zeros(900_000, "float32")
    assert gpu(a).argmax().item() == 0
    a[[100, 800_000]] = 3
    assert gpu(a).argmax().item() == 100
    a[850_000] = np.nan
    assert gpu(a).argmax().item() == 850_000
    a[[20, 600_000]] = np.nan
    assert gpu(a).argmax().item() == 20
    assert np.isnan(gpu(a).max().item())


def softmax(a: np.ndarray) -> np.ndarray:
    e = np.exp(a - a.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("shape", [(1500, 701), (3, 700, 333)], ids=str)
def test_rows(shape: tuple[int, ...]) -> None:
    a, g, w = noise(*shape), noise(*shape), noise(shape[-1])
    x = gpu(a).requires_grad_()
    y = x.softmax(-1)
    p = softmax(a.astype("float64"))
    near(y.detach(), p)
    (y * gpu(g)).sum().backward()
    near(x.grad, p * (g - (p * g).sum(-1, keepdims=True)), 1e-4)
    x.grad = None
    weight = gpu(w).requires_grad_()
    bias = gpu(w * 2).requires_grad_()
    y = F.layer_norm(x, (shape[-1],), weight, bias)
    h = a.astype("float64")
    h = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + 1e-5)
    near(y.detach(), h * w + w * 2)
    (y * gpu(g)).sum().backward()
    lead = tuple(range(len(shape) - 1))
    near(weight.grad, (g.astype("float64") * h).sum(lead), 1e-4)
    near(bias.grad, g.astype("float64").sum(lead), 1e-4)
    d = g.astype("float64") * w
    rstd = 1 / np.sqrt(a.astype("float64").var(-1, keepdims=True) + 1e-5)
    near(x.grad, rstd * (d - d.mean(-1, keepdims=True) - h * (d * h).mean(-1, keepdims=True)), 1e-4)
    x.grad, weight.grad = None, None
    y = F.rms_norm(x, (shape[-1],), weight, 1e-5)
    rstd = 1 / np.sqrt((a.astype("float64") ** 2).mean(-1, keepdims=True) + 1e-5)
    h = a * rstd
    near(y.detach(), h * w)
    (y * gpu(g)).sum().backward()
    near(weight.grad, (g.astype("float64") * h).sum(lead), 1e-4)
    near(x.grad, rstd * (d - h * (d * h).mean(-1, keepdims=True)), 1e-4)


def test_cross_entropy() -> None:
    a, classes = noise(1500, 701), RNG.integers(0, 701, 1500).astype("int32")
    x = gpu(a).requires_grad_()
    loss = F.cross_entropy(x, gpu(classes))
    p = softmax(a.astype("float64"))
    rows = np.arange(1500)
    near(loss.detach(), -np.log(p[rows, classes]).mean())
    loss.backward()
    p[rows, classes] -= 1
    near(x.grad, p / 1500, 1e-4)


@pytest.mark.parametrize(
    ("m", "k", "n"), [(3000, 130, 70), (70, 130, 3000), (1100, 40, 1100), (64, 9000, 64), (1, 900, 700)]
)
def test_products(m: int, k: int, n: int) -> None:
    a, b = noise(m, k), noise(k, n)
    near(gpu(a) @ gpu(b), a.astype("float64") @ b, 1e-4)
    near(gpu(a.T.copy()).T @ gpu(b.T.copy()).T, a.astype("float64") @ b, 1e-4)


def test_batches_of_products() -> None:
    a, b = noise(6, 300, 200), noise(6, 200, 300)
    near(gpu(a) @ gpu(b), a.astype("float64") @ b, 1e-4)
    near(gpu(a) @ gpu(b[0]), a.astype("float64") @ b[0], 1e-4)


def test_optimisers_and_norms() -> None:
    a = noise(700_001)
    there, here = gpu(a).requires_grad_(), wg.tensor(a).requires_grad_()
    for x in (there, here):
        optimiser = wg.optim.AdamW([x], lr=0.1)
        for _ in range(2):
            optimiser.zero_grad()
            (x * x).sum().backward()
            optimiser.step()
    near(there.detach(), here.detach().numpy())
    norm = wg.nn.utils.clip_grad_norm_([there], 1.0)
    near(norm, np.float64(np.linalg.norm(here.grad.numpy().astype("float64"))), 1e-4)


def test_views_beyond_the_first_piece() -> None:
    a = noise(1_000_000)
    x = gpu(a)
    for start in (0, 1, 127, 262_144, 524_287, 999_990):
        same(x[start : start + 7] * 2, a[start : start + 7] * 2)


@pytest.mark.skipif(not IS_SMALL, reason="only small limits refuse a tensor of this size")
def test_what_cannot_work_in_pieces_says_so() -> None:
    x = gpu(noise(600_000))
    text = r"takes a tensor of 2400000 bytes whole, and a kernel here binds at most 1048576 bytes of one "
    text += r"\(max_storage_buffer_binding_size\); compute it in parts"
    for call in (lambda: x.cumsum(0), lambda: x.sort(), lambda: x.reshape(1, -1).softmax(-1)):
        with pytest.raises(MemoryError, match=text):
            call()
    same(x[:5], x.cpu().numpy()[:5])


def test_long_uploads() -> None:
    """Longer than a staging buffer, more than two of them, an odd number of halves."""
    for n in (10_000_001, 30_000_001):
        a = (np.arange(n, dtype="uint32") * 40503).astype("uint16").view("float16")
        got = gpu(a).cpu().numpy()
        np.testing.assert_array_equal(got.view("uint16"), a.view("uint16"))
