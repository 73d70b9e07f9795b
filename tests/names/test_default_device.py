"""`set_default_device` and `with device:`: where new tensors lie, per thread."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import wengert as torch
from wengert import nn


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    torch.set_default_device(None)


def test_the_cpu_is_the_default() -> None:
    assert torch.get_default_device() == torch.device("cpu")
    torch.set_default_device("cpu")
    torch.set_default_device(torch.device("cpu"))
    assert torch.zeros(1).device.type == "cpu"


def test_regions_nest_and_end_with_exceptions() -> None:
    torch.set_default_device("gpu:1")
    assert torch.get_default_device() == torch.device("gpu:1")
    with torch.device("cpu") as chosen:
        assert chosen == torch.get_default_device() == "cpu"
        with pytest.raises(KeyError, match="gpu:0"), torch.device("gpu"):
            assert {}[str(torch.get_default_device())]
        assert torch.get_default_device() == "cpu"
        x = torch.ones(2)
    assert torch.get_default_device() == "gpu:1"
    assert not x.is_gpu


def test_other_threads_have_their_own() -> None:
    torch.set_default_device("gpu")
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.get_default_device()))
    thread.start()
    thread.join()
    assert seen == [torch.device("cpu")]
    with pytest.raises(RuntimeError, match="must end on the thread that began it"):
        torch.device("cpu").__exit__(None, None, None)


def test_what_is_no_device_raises() -> None:
    with pytest.raises(ValueError, match="'tpu' is not a device"):
        torch.set_default_device("tpu")
    with pytest.raises(TypeError, match="a device is named by a string"):
        torch.set_default_device(3)


def test_the_device_can_be_named_all_the_same() -> None:
    with torch.device("gpu"):
        assert not torch.zeros(2, device="cpu").is_gpu
        x = torch.zeros(2, device="cpu")
        # Made of a tensor, like it, or by operations on it.
        made = [
            torch.zeros_like(x),
            x.new_ones(2),
            x + 1,
            torch.as_tensor(x),
            torch.tensor(x),
            nn.Parameter(x),
        ]
    assert not any(y.is_gpu for y in made)


@pytest.mark.gpu
def test_factories_layers_and_distributions_are_made_there() -> None:
    with torch.device("gpu"):
        made = [
            torch.tensor([1.0]), torch.tensor(2.0), torch.as_tensor(np.ones(2, np.float32)), torch.asarray([1.0]),
            torch.zeros(2), torch.ones(2), torch.empty(2), torch.full((2,), 1.0), torch.arange(3), torch.eye(2),
            torch.linspace(0, 1, 3), torch.logspace(0, 1, 3), torch.rand(2), torch.randn(2), torch.randperm(3),
            torch.randint(3, (2,)), torch.normal(0.0, 1.0, (2,)), torch.hann_window(4), torch.scalar_tensor(1.0),
            torch.tril_indices(2, 2), torch.fft.fftfreq(4), torch.distributions.Normal(0.0, 1.0).sample((2,)),
        ]  # fmt: skip
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ReLU())
        nn.init.trunc_normal_(model[0].weight)
        out = model(torch.ones(4, 2))
        out.sum().backward()
        padded = nn.functional.pad(torch.ones(1, 1, 4), (1, 1), mode="reflect")
    assert all(x.is_gpu for x in [*made, *model.parameters(), out, padded])
    assert torch.arange(3).dtype == torch.int64


def test_cuda_in_the_environment_is_gpu_or_nothing() -> None:
    program = "import wengert as torch\ntry:\n    torch.cuda.is_available()\nexcept ValueError as e:\n    print(e)\n"
    program += "try:\n    torch.device('cuda')\nexcept ValueError as e:\n    print(e)\n"
    for value in ("1", "0", "GPU"):
        env = {**os.environ, "WENGERT_CUDA": value}
        done = subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
        )
        said = f"WENGERT_CUDA={value} in the environment is not understood"
        assert done.stdout.count(said) == 2, done.stdout
