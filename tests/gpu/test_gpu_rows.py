"""Reductions and row kernels on a GPU, of few long rows and of many short ones, by vectors and without."""

import numpy as np
import pytest
import wengert as wg

pytestmark = pytest.mark.gpu
SHAPES = [(5,), (1000,), (70_001,), (4, 20_000), (3, 10_001), (130, 257), (10_001, 3), (7, 40, 33)]
#: Units in the last place of a sum, against the sum of the magnitudes.
UNITS = {"float32": 2e-7, "float16": 1e-3}


def numbers(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def shifted(a: np.ndarray) -> wg.Tensor:
    """The array on the GPU, beginning one element into its memory."""
    return wg.tensor(np.append(a.dtype.type(0), a.ravel()), device="gpu")[1:].view(*a.shape)


@pytest.mark.parametrize("dtype", UNITS)
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_and_maxima(shape: tuple[int, ...], dtype: str) -> None:
    a = numbers(shape, dtype)
    x, y = wg.tensor(a, device="gpu"), shifted(a)
    wide = a.astype(np.float64)
    for axis in (None, *range(len(shape))):
        with wg.gpu.profile() as found:
            got = x.sum() if axis is None else x.sum(axis)
        assert len(found.launches) <= (2 if axis is None or len(shape) < 3 else 4)
        again, moved = (x.sum(), y.sum()) if axis is None else (x.sum(axis), y.sum(axis))
        values = got.cpu().numpy()
        assert (np.abs(values - wide.sum(axis)) <= UNITS[dtype] * np.abs(wide).sum(axis)).all()
        for other in (again, moved):
            np.testing.assert_array_equal(values, other.cpu().numpy())
        largest = y.amax() if axis is None else y.amax(axis)
        np.testing.assert_array_equal(largest.cpu().numpy(), a.max(axis))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_places_of_the_best(shape: tuple[int, ...], dtype: str) -> None:
    a = (numbers(shape) * 3).round().astype(dtype)  # ties: the first of them counts
    x = wg.tensor(a, device="gpu")
    for axis in (None, *range(len(shape))):
        with wg.gpu.profile() as found:
            got = x.argmax() if axis is None else x.argmax(axis)
        assert sum(launch.kernel == "argmax" for launch in found.launches) <= 2
        np.testing.assert_array_equal(got.cpu().numpy(), a.argmax(axis))
        least = x.argmin() if axis is None else x.argmin(axis)
        np.testing.assert_array_equal(least.cpu().numpy(), a.argmin(axis))
    if dtype != "int32":
        a.flat[a.size * 2 // 3] = np.nan
        assert wg.tensor(a, device="gpu").argmax().item() == a.size * 2 // 3


@pytest.mark.parametrize(
    "columns", [1, 4, 6, 8, 63, 64, 65, 256, 1000, 1022, 4096, 4100, 5001, 20_000, 40_001]
)
def test_rows_against_float64(columns: int) -> None:
    a, c = numbers((3, columns)), numbers((3, columns + 1))[:, 1:]
    w, b = numbers((columns,)), numbers((columns,)) + 1
    found = []
    for device, dtype in (("cpu", wg.float64), ("gpu", wg.float32)):
        x, scale, shift, g = (wg.tensor(v, device=device).to(dtype) for v in (a, w, b, c))
        x, scale, shift = x.requires_grad_(), scale.requires_grad_(), shift.requires_grad_()
        norm = wg.nn.functional.layer_norm(x, (columns,), scale, shift, eps=0.1)
        root = wg.nn.functional.rms_norm(x, (columns,), scale, eps=0.1)
        bare = [wg.nn.functional.layer_norm(x, (columns,)), wg.nn.functional.rms_norm(x, (columns,), eps=0.1)]
        soft, log = x.softmax(-1), x.log_softmax(-1)
        grads = [*wg.autograd.grad(norm, [x, scale, shift], g), *wg.autograd.grad(root, [x, scale], g)]
        grads += [wg.autograd.grad(y, [x], g)[0] for y in (soft, log, *bare)]
        found.append([v.detach().cpu().numpy() for v in (norm, root, soft, log, *bare, *grads)])
    for expected, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6 * np.abs(expected).max())


#: The longest rows that kernels hold in registers.
HELD = {
    "softmax": 16_384,
    "layer_norm": 16_384,
    "rms_norm": 16_384,
    "softmax_vjp": 8192,
    "layer_norm_vjp": 4096,
    "rms_norm_vjp": 4096,
}


@pytest.mark.parametrize("shape", [(2, 16_384), (3, 16_388), (1, 524_288), (600, 4_100), (2, 100_003)])
def test_long_rows_are_read_once_or_split(shape: tuple[int, int]) -> None:
    a = numbers(shape)
    x, g = wg.tensor(a, device="gpu"), wg.tensor(a[:, ::-1].copy(), device="gpu")
    w = wg.ones(shape[1], device="gpu")
    calls = {
        "softmax": lambda: [x.softmax(-1)],
        "layer_norm": lambda: [wg.nn.functional.layer_norm(x, shape[1:], w)],
        "rms_norm": lambda: [wg.nn.functional.rms_norm(x, shape[1:], w)],
        "softmax_vjp": lambda: wg.autograd.grad(y.softmax(-1), [y], g),
        "layer_norm_vjp": lambda: wg.autograd.grad(wg.nn.functional.layer_norm(y, shape[1:], v), [y, v], g),
        "rms_norm_vjp": lambda: wg.autograd.grad(wg.nn.functional.rms_norm(y, shape[1:], v), [y, v], g),
    }
    y, v = x.clone().requires_grad_(), w.clone().requires_grad_()
    for kernel, call in calls.items():
        with wg.gpu.profile() as found:
            first = call()
        names = {kernel, "layer_norm_columns", "layer_norm_strips"}
        count = sum(launch.kernel in names for launch in found.launches)
        is_once = shape[1] <= HELD[kernel] and kernel not in ("layer_norm_vjp", "rms_norm_vjp")
        assert count == (1 if is_once else 2)
        for one, two in zip(first, call(), strict=True):
            np.testing.assert_array_equal(one.detach().cpu().numpy(), two.detach().cpu().numpy())
    total = x.softmax(-1).sum(-1).cpu().numpy()
    np.testing.assert_allclose(total, 1, atol=2e-6)


def test_launches_of_norms() -> None:
    x, w, b = (wg.ones(*shape, device="gpu").requires_grad_() for shape in ((40, 30), (30,), (30,)))
    norms = {
        "layer_norm": lambda *affine: wg.nn.functional.layer_norm(x, (30,), *affine),
        "rms_norm": lambda *affine: wg.nn.functional.rms_norm(x, (30,), *affine),
    }
    for kernel, affine in (("layer_norm", (w, b)), ("layer_norm", ()), ("rms_norm", (w,)), ("rms_norm", ())):
        with wg.gpu.profile() as found:
            wg.autograd.grad(norms[kernel](*affine), [x, *affine], wg.ones(40, 30, device="gpu"))
        launches = [launch.kernel for launch in found.launches if "norm" in launch.kernel]
        assert launches == [kernel, f"{kernel}_vjp", *["layer_norm_columns"] * bool(affine)]


@pytest.mark.parametrize("columns", [1, 2, 4, 7, 8, 64, 1001, 9000, 70_001])
def test_cross_entropy_against_float64(columns: int) -> None:
    labels = np.arange(5, dtype=np.int32) % columns
    labels[2] = -100
    found = []
    for device, dtype in (("cpu", wg.float64), ("gpu", wg.float32)):
        x = wg.tensor(numbers((5, columns)), device=device).to(dtype).requires_grad_()
        loss = wg.nn.functional.cross_entropy(x, wg.tensor(labels, device=device))
        found.append([v.detach().cpu().numpy() for v in (loss, wg.autograd.grad(loss, x)[0])])
    for expected, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)
