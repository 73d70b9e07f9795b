"""Every operation on a GPU against the CPU: values, gradients, batching, layouts; what a GPU refuses; its
queue."""

import os
import subprocess
import sys

import numpy as np
import pytest
import wengert as wg
from samples.op_samples import SAMPLES
from samples.sample import OpSample
from support import LAYOUTS, array, assert_near, floats, laid_out, outputs, random_source, tensor

DEVICE = "gpu"
ON_GPU = [s for s in SAMPLES if s.gpu]
by_sample = pytest.mark.parametrize("sample", ON_GPU, ids=str)


@pytest.fixture(scope="module", autouse=True)
def gpu() -> None:
    """Opens the device, so that a machine without an adapter (Mesa's lavapipe will do) says so once."""
    assert wg.ones(2, device=DEVICE).cpu().tolist() == [1.0, 1.0]


@pytest.fixture(autouse=True)
def poisoned() -> None:
    """Memory for small results that holds NaN, so that what a kernel leaves out is seen."""
    sizes = [n for power in range(3, 9) for n in range(2**power, 2 ** (power + 1), 2 ** (power - 3))]
    spoilt = [wg.full((n,), float("nan"), device=DEVICE) for n in (4, *sizes) for _ in range(3)]
    del spoilt


def tolerance(sample: OpSample) -> float:
    """float32 on both sides, with functions that are approximated differently."""
    return 2e-5 * max(1.0, sample.scale / 4) * sample.gpu_scale


@by_sample
def test_value_gradient_and_batch(sample: OpSample) -> None:
    for seed in range(4):
        source, rng = random_source(seed, most=5)
        case = sample.case(source)
        layout = source.choice(LAYOUTS)
        values = [np.array(laid_out(v, layout)[1]) for v in case.sample(rng)]
        real = [i for i in case.real if i not in sample.extra.get("constant", ())]
        found = {}
        for device in ("cpu", DEVICE):
            args = [laid_out(v, layout, "float32", device)[0] for v in values]
            for i in real:
                args[i] = args[i].detach().requires_grad_()
            out = outputs(sample.fn(*args, **case.kwargs))
            assert all(y.device == args[0].device for y in out)
            found[device, "value"] = [array(y) for y in out]
            smooth = [y for y in floats(out) if y.requires_grad]
            if smooth:
                total = sum((y * y).sum() for y in smooth)
                found[device, "grad"] = [
                    array(g) for g in wg.autograd.grad(total, [args[i] for i in real], materialize_grads=True)
                ]
        for (device, what), expected in list(found.items()):
            if device == "cpu":
                for a, b in zip(found[DEVICE, what], expected, strict=True):
                    assert_near(
                        a,
                        b,
                        tolerance(sample) * (8 if what == "grad" else 1),
                        f"{what} of {sample.name} {case}",
                    )


@pytest.mark.parametrize("sample", [s for s in ON_GPU if s.vmap], ids=str)
def test_batching(sample: OpSample) -> None:
    source, rng = random_source(11, most=3)
    case = sample.case(source)
    sets = [case.sample(rng) for _ in range(3)]
    stacked = [np.stack(column) for column in zip(*sets, strict=True)]
    fn = wg.vmap(lambda *x: sample.fn(*x, **case.kwargs))
    expected = outputs(fn(*[tensor(v, "float32") for v in stacked]))
    got = outputs(fn(*[tensor(v, "float32", DEVICE) for v in stacked]))
    for a, b in zip(got, expected, strict=True):
        assert_near(a, array(b), tolerance(sample), sample.name)


@pytest.mark.parametrize("sample", [s for s in ON_GPU if s.order > 0], ids=str)
def test_forward_mode(sample: OpSample) -> None:
    source, rng = random_source(12, most=4)
    case = sample.case(source)
    values = case.sample(rng)
    real = [i for i in case.real if i not in sample.extra.get("constant", ())]
    found = []
    for device in ("cpu", DEVICE):
        args = [tensor(v, "float32", device) for v in values]

        def f(*x: wg.Tensor, args: list = args) -> tuple[wg.Tensor, ...]:
            merged = list(args)
            for i, value in zip(real, x, strict=True):
                merged[i] = value
            return tuple(floats(sample.fn(*merged, **case.kwargs)))

        primals = tuple(args[i] for i in real)
        found.append([array(t) for t in wg.jvp(f, primals, tuple(p.cos() for p in primals))[1]])
    for a, b in zip(found[1], found[0], strict=True):
        assert_near(a, b, tolerance(sample) * 8, f"jvp of {sample.name}")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_travel(dtype: str) -> None:
    x = tensor(np.linspace(-3, 3, 17), dtype)
    moved = x.to(DEVICE)
    assert moved.dtype == x.dtype
    assert np.array_equal(array(moved), array(x))


def test_transfers_are_differentiable() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    (x.to(DEVICE) * 3).cpu().sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert str(x.grad.device) == "cpu"


def test_training_step_matches_the_cpu() -> None:
    rng = np.random.default_rng(0)
    w1, w2, x = rng.normal(size=(8, 16)) * 0.3, rng.normal(size=(16, 4)) * 0.3, rng.normal(size=(12, 8))
    t = rng.integers(0, 4, 12)
    results = {}
    for device in ("cpu", DEVICE):
        params = [tensor(w, "float32", device).requires_grad_() for w in (w1, w2)]
        data, target = tensor(x, "float32", device), tensor(t, device=device)
        losses = []
        for _ in range(5):
            hidden = wg.nn.functional.gelu(wg.nn.functional.layer_norm(data @ params[0], (16,)))
            loss = wg.nn.functional.cross_entropy(hidden @ params[1], target)
            grads = wg.autograd.grad(loss, params)
            with wg.no_grad():
                for p, g in zip(params, grads, strict=True):
                    p -= 0.5 * g
            losses.append(loss.item())
        results[device] = (losses, [array(p) for p in params])
    assert_near(np.array(results[DEVICE][0]), np.array(results["cpu"][0]), 1e-4)
    for a, b in zip(results[DEVICE][1], results["cpu"][1], strict=True):
        assert_near(a, b, 1e-3)


@pytest.mark.parametrize("draw", ["rand", "randn", "randint"])
def test_random_numbers_are_those_of_the_cpu(draw: str) -> None:
    found = []
    for device in ("cpu", DEVICE):
        wg.manual_seed(42)
        if draw == "randint":
            found.append(array(wg.randint(-5, 100, (33, 7), dtype=wg.int32, device=device)))
        else:
            found.append(array(getattr(wg, draw)(33, 7, device=device)))
    if draw == "randn":
        assert_near(found[1], found[0], 1e-5)
    else:
        assert np.array_equal(found[0], found[1])


def test_creation_on_the_device() -> None:
    for make in (
        lambda device: wg.zeros(3, 2, device=device),
        lambda device: wg.full((2, 2), 1.5, device=device),
        lambda device: wg.arange(7, dtype=wg.float32, device=device),
        lambda device: wg.linspace(0, 1, 9, device=device),
        lambda device: wg.eye(4, device=device),
        lambda device: wg.tensor([[1.0, 2.0]], device=device),
    ):
        got = make(DEVICE)
        assert str(got.device) in ("gpu", "gpu:0")
        assert_near(got, array(make("cpu")), 1e-6)


# ---- what a GPU refuses --------------------------------------------------------------------------


def test_dtypes_that_a_gpu_lacks_raise() -> None:
    for dtype in (wg.float64, wg.complex128):
        with pytest.raises(TypeError, match=str(dtype).removeprefix("wengert.")):
            wg.ones(2, dtype=dtype).to(DEVICE)
        with pytest.raises(TypeError):
            wg.zeros(2, dtype=dtype, device=DEVICE)


@pytest.mark.parametrize("name", ["svd", "eigh", "eig", "qr", "pinv", "matrix_exp"])
def test_iterations_say_that_they_run_on_the_cpu(name: str) -> None:
    message = rf"^{name}: runs on the CPU only, got a tensor on gpu(:0)?; move it with \.cpu\(\), and the result back"
    with pytest.raises(wg.DeviceError, match=message):
        getattr(wg.linalg, name)(wg.eye(2, device=DEVICE))


def test_operands_on_different_devices_raise() -> None:
    x, y = wg.ones(2), wg.ones(2, device=DEVICE)
    for op in (lambda: x + y, lambda: y @ x, lambda: wg.cat([x, y]), lambda: wg.where(x > 0, x, y)):
        with pytest.raises(ValueError, match=r"different devices.*\.to\("):
            op()


def test_devices_that_do_not_exist_raise() -> None:
    with pytest.raises((RuntimeError, ValueError), match="gpu:15"):
        wg.ones(2, device="gpu:15")
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        wg.ones(2, device="toaster")


def test_numpy_of_a_gpu_tensor_says_cpu() -> None:
    with pytest.raises(TypeError, match=r"\.cpu\(\)"):
        wg.ones(2, device=DEVICE).numpy()


def test_indices_out_of_range_raise_on_the_device() -> None:
    x, i = wg.ones(3, device=DEVICE), wg.tensor([5], dtype=wg.int32, device=DEVICE)
    with pytest.raises(IndexError):
        array(x.gather(0, i))
    assert array(x + 1).tolist() == [2.0] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_children_are_refused() -> None:
    code = (
        "import os, sys, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "import wengert as wg\n"
        "x = wg.ones(2, device='gpu')\n"
        "x.cpu()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    try:\n"
        "        (x + 1).cpu()\n"
        "    except RuntimeError as e:\n"
        "        os._exit(7 if 'spawn' in str(e) else 8)\n"
        "    os._exit(9)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    paths = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths}, timeout=120)
    assert done.returncode == 7


# ---- information and the queue -------------------------------------------------------------------


def test_devices_have_an_index() -> None:
    wg.gpu.synchronize(index=0)
    wg.gpu.empty_cache(index=0)
    assert wg.gpu.memory_stats(index=0) == wg.gpu.memory_stats()
    for call in (
        lambda: wg.gpu.synchronize(index=99),
        lambda: wg.gpu.empty_cache(index=99),
        lambda: wg.gpu.memory_stats(index=99),
    ):
        with pytest.raises(wg.DeviceError, match=r"gpu:99"):
            call()


def test_info() -> None:
    info = wg.gpu.info(0)
    text = str(info).lower()
    for word in ("adapter", "backend", "driver", "limits", "features"):
        assert word in text, word


def test_a_long_queue_stays_bounded_in_memory() -> None:
    x = wg.ones(16, 16, device=DEVICE)
    wg.gpu.synchronize()

    def held() -> int:
        stats = wg.gpu.memory_stats()
        return max(int(v) for k, v in stats.items() if "bytes" in k)

    for _ in range(100):
        x = x * 0.999 + 0.001
    wg.gpu.synchronize()
    before = held()
    for _ in range(10_000):
        x = x * 0.999 + 0.001
    assert held() < before + (64 << 20)
    assert_near(x, np.ones((16, 16)), 1e-3)
    wg.gpu.synchronize()
    assert held() <= before + (16 << 20)


def test_a_number_on_the_cpu_joins_the_gpu():
    x, two = wg.tensor([1.0, 3.0]).to("gpu").requires_grad_(), wg.tensor(2.0, requires_grad=True)
    for y, expected in (
        (x + two, [3.0, 5.0]),
        (two * x, [2.0, 6.0]),
        (x.maximum(two), [2.0, 3.0]),
        (wg.where(x > two, two, x), [1.0, 2.0]),
        (x.detach() > two, [False, True]),
        (x.detach() * wg.tensor(2), [2.0, 6.0]),
        (x.detach() * wg.tensor(2.0, dtype=wg.float64), [2.0, 6.0]),
        (wg.tensor(1.0).to("gpu") * two, 2.0),
        (wg.logical_and(x.detach() > 2, wg.tensor(True)), [False, True]),
    ):
        assert (str(y.device), y.tolist()) == ("gpu:0", expected)
    z = x.detach().clone()
    z += wg.tensor(1.0)
    assert z.tolist() == [2.0, 4.0]
    (x * two).sum().backward()
    assert (two.grad.item(), str(two.grad.device), x.grad.tolist()) == (4.0, "cpu", [2.0, 2.0])
    with pytest.raises(ValueError, match="operands are on different devices, gpu:0 and cpu"):
        x + wg.ones(1)
    with pytest.raises(ValueError, match="operands are on different devices, cpu and gpu:0"):
        wg.ones(2) + wg.tensor(1.0).to("gpu")


def test_integers_over_zero_are_zero():
    x = wg.tensor([5, -5], dtype=wg.int32).to("gpu")
    assert ((x // 0).tolist(), (x % 0).tolist()) == ([0, 0], [0, 0])


@pytest.mark.parametrize("dtype", [wg.float32, wg.float16, wg.int32, wg.bool])
def test_a_pad_is_one_dispatch(dtype):
    x = wg.tensor(np.arange(6).reshape(2, 3) % 2, dtype=dtype)
    there = x.to("gpu")
    before = wg.gpu.memory_stats()["dispatches"]
    padded = wg.nn.functional.pad(there, (1, 2, 0, 1), value=1.0)
    assert wg.gpu.memory_stats()["dispatches"] - before == 1
    assert padded.tolist() == wg.nn.functional.pad(x, (1, 2, 0, 1), value=1.0).tolist()


def test_pads_move_bits():
    bits = np.array([0x7FC12345, 0x00000001, 0x80000000, 0xFF800000], np.uint32)
    there = wg.from_numpy(bits.view(np.float32)).to("gpu")
    padded = wg.nn.functional.pad(there.flip(0), (0, 1)).cpu().numpy()
    np.testing.assert_array_equal(padded.view(np.uint32), [*bits[::-1], 0])
