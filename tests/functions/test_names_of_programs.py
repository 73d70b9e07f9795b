"""What programs for PyTorch ask of devices, compilers and layouts before they compute anything."""

import os
import pickle
import subprocess
import sys

import pytest
import wengert as wg


def test_a_program_for_cards_runs_without_one() -> None:
    # As the first lines of many programs for PyTorch.
    torch = wg
    import wengert.backends.cudnn as cudnn
    from wengert.cuda.amp import GradScaler, autocast

    cudnn.benchmark = True
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_float32_matmul_precision("high")
    torch.use_deterministic_algorithms(True, warn_only=True)
    use_mps = torch.backends.mps.is_available() or torch.mps.is_available() or torch.xpu.is_available()
    device = torch.device("cuda" if torch.cuda.is_available() else "mps" if use_mps else "cpu")
    device = torch.accelerator.current_accelerator() or device
    torch.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    first = torch.rand(2, device=device)
    torch.cuda.manual_seed(1)
    assert torch.equal(first, torch.rand(2))
    assert torch.cuda.get_rng_state() == torch.get_rng_state()
    torch.cuda.set_rng_state(torch.cuda.get_rng_state())
    assert torch.cuda.initial_seed() == 1
    torch.cuda.empty_cache()
    torch.cuda.ipc_collect()
    torch.cuda.init()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.synchronize()
    used = torch.cuda.max_memory_allocated() + torch.cuda.memory_reserved() + torch.cuda.device_count()
    used += torch.cuda.memory_allocated() + torch.cuda.max_memory_reserved()
    assert (str(device), used) == ("cpu", 0)
    assert not torch.cuda.is_initialized()
    assert not torch.cuda.is_bf16_supported(including_emulation=False)
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.get_float32_matmul_precision() == "highest"
    with autocast(enabled=False):
        assert (torch.ones(2) * 2).dtype == torch.float32
    assert GradScaler is torch.amp.GradScaler
    x = torch.ones(2).pin_memory().to(device, non_blocking=True)
    assert (x.is_cuda, x.is_pinned(), x.device.type) == (False, False, "cpu")


@pytest.mark.parametrize(
    "name",
    ["current_device", "get_device_name", "get_device_capability", "get_device_properties", "set_device"],
)
def test_what_a_card_would_answer_is_refused(name: str) -> None:
    arguments = (0,) if name == "set_device" else ()
    with pytest.raises(wg.DeviceError, match=rf"cuda.{name}: no GPU is called cuda here"):
        getattr(wg.cuda, name)(*arguments)


def test_the_name_cuda_says_what_to_write() -> None:
    advice = r"GPUs are called 'gpu' whoever made them; write device='gpu', or set WENGERT_CUDA=gpu"
    for ask in (
        lambda: wg.ones(2).cuda(),
        lambda: wg.ones(2).to("cuda:1"),
        lambda: wg.nn.Linear(2, 2).cuda(),
        lambda: wg.nn.Linear(2, 2).cuda(0),
        lambda: wg.zeros(2, device="cuda"),
        lambda: wg.device("cuda"),
    ):
        with pytest.raises(ValueError, match=advice):
            ask()
    assert wg.device("cpu") != "cuda"


PROGRAM = """
import wengert as torch
assert torch.cuda.is_available() and torch.cuda.is_initialized() and torch.cuda.is_bf16_supported()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
assert (str(device), device.type, device.index) == ("cuda:0", "cuda", 0), device
assert device == "cuda" == torch.device("gpu") and torch.accelerator.current_accelerator() == device
model = torch.nn.Linear(3, 2).cuda()
x = torch.ones(4, 3).to(device, non_blocking=True)
y = model(x)
assert y.is_cuda and y.device == device and "cuda:0" in repr(y), repr(y)
assert x.cuda() is x and x.cuda(0).device == device and model.cuda("cuda:0") is model
assert torch.cuda.memory_allocated() >= 80 <= torch.cuda.max_memory_allocated()
assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated(device)
assert torch.cuda.max_memory_reserved("cuda:0") >= torch.cuda.memory_allocated(0)
torch.cuda.synchronize(device)
torch.cuda.empty_cache()
torch.cuda.set_device(0)
assert torch.cuda.device_count() >= 1 and torch.cuda.current_device() == 0
properties = torch.cuda.get_device_properties(0)
assert properties.name == torch.cuda.get_device_name(device)
assert (properties.major, properties.minor) == torch.cuda.get_device_capability() == (0, 0)
try:
    torch.cuda.get_device_name(99)
except torch.DeviceError as error:
    assert "GPU 99 of" in str(error)
try:
    torch.cuda.synchronize("cpu")
except ValueError as error:
    assert "the device of a GPU expected, got cpu" in str(error)
print("done")
"""


@pytest.mark.gpu
def test_a_program_for_cards_runs_on_a_gpu() -> None:
    environment = {**os.environ, "WENGERT_CUDA": "gpu"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    assert run.stdout == "done\n", run.stderr


def test_compilers() -> None:
    assert wg.compile(len)([1, 2]) == 2
    assert wg.compile(mode="max-autotune", fullgraph=True)(len)([1, 2]) == 2
    model = wg.nn.ReLU()
    assert wg.compile(model) is model

    @wg.jit.ignore(drop=True)
    def f(x: int) -> int:
        return x

    assert (wg.jit.ignore(f), wg.jit.unused(f), wg.jit.export(f), f(2)) == (f, f, f, 2)
    assert not wg.jit.is_scripting()
    assert not wg.jit.is_tracing()
    size: wg.jit.Final[int] = 3
    assert size == 3
    with pytest.raises(NotImplementedError, match=r"Python's source is not compiled here; call the func"):
        wg.jit.trace(f, (1,))
    with pytest.raises(ValueError, match=r"'highest', 'high' or 'medium' expected, got 'low'"):
        wg.set_float32_matmul_precision("low")


def test_layouts_are_accepted_and_change_nothing() -> None:
    x = wg.rand(2, 3, 4, 5)
    last = wg.channels_last
    for same in (x.to(memory_format=last), x.contiguous(memory_format=last)):
        assert same is x
    for made in (
        x.clone(memory_format=wg.preserve_format),
        wg.empty_like(x, memory_format=last),
        wg.zeros_like(x, memory_format=wg.contiguous_format),
        wg.full_like(x, 1.0, memory_format=last),
        wg.rand_like(x, memory_format=last),
    ):
        assert made.shape == x.shape
        assert made.is_contiguous()
    net = wg.nn.Conv2d(3, 3, 1)
    assert net.to(memory_format=last) is net
    assert not x.is_contiguous(memory_format=last)
    turned = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert turned.is_contiguous(memory_format=last)
    assert not turned.is_contiguous()
    cube = wg.rand(2, 4, 4, 4, 3).permute(0, 4, 1, 2, 3)
    assert cube.is_contiguous(memory_format=wg.channels_last_3d)
    assert not x.is_contiguous(memory_format=wg.channels_last_3d)
    assert pickle.loads(pickle.dumps(last)) is last
    assert repr(last) == "wengert.channels_last"
    with pytest.raises(
        TypeError, match=r"memory_format: wengert.channels_last or its like expected, got str"
    ):
        x.contiguous(memory_format="channels_last")


def test_variables_are_tensors() -> None:
    x = wg.ones(2)
    assert wg.autograd.Variable(x) is x
    y = wg.autograd.Variable(x, requires_grad=True)
    assert y.requires_grad
    assert not x.requires_grad
    assert isinstance(x, wg.autograd.Variable)
    assert not isinstance(3, wg.autograd.Variable)
    with pytest.raises(TypeError, match=r"Variable: a tensor expected, got int"):
        wg.autograd.Variable(3)


def test_tensors_to_join_come_in_a_list() -> None:
    x = wg.ones(2)
    for join in (wg.cat, wg.stack):
        with pytest.raises(
            TypeError, match=r"tensors to join come in one list or tuple, as in cat\(\[x, y\]\)"
        ):
            join(x, x)
