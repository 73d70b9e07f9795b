"""What an error about operands on two devices names: the function that was called."""

from collections.abc import Callable
from typing import Any

import pytest
import wengert as wg

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "stack": lambda x, y: wg.stack([x, y]),
    "equal": lambda x, y: wg.equal(x, y),
    "outer": lambda x, y: wg.outer(x, y),
    "complex": lambda x, y: wg.complex(x, y),
    "polar": lambda x, y: wg.polar(x, y),
    "masked_select": lambda x, y: wg.masked_select(x, y > 0),
    "index_add": lambda x, y: wg.index_add(x, 0, wg.tensor([0, 1], dtype=wg.int32).to(x.device), y),
    "scatter_add": lambda x, y: wg.scatter_add(x, 0, wg.tensor([0, 1], dtype=wg.int32).to(x.device), y),
    "addcmul": lambda x, y: x.addcmul_(y, x),
    "addcdiv": lambda x, y: x.addcdiv_(y, x),
    "lerp": lambda x, y: x.lerp_(y, 0.5),
    "add": lambda x, y: (x > 0) + (y > 0),
    "mul": lambda x, y: (x > 0) * (y > 0),
    "maximum": lambda x, y: wg.maximum(x > 0, y > 0),
    "minimum": lambda x, y: wg.minimum(x > 0, y > 0),
    "bitwise_and": lambda x, y: (x > 0) & (y > 0),
    "bitwise_or": lambda x, y: (x > 0) | (y > 0),
    "bitwise_xor": lambda x, y: (x > 0) ^ (y > 0),
    "floor_divide": lambda x, y: wg.floor_divide(x > 0, y > 0),
    "remainder": lambda x, y: wg.remainder(x > 0, y > 0),
    "pow": lambda x, y: wg.pow(x > 0, y > 0),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("devices", [("cpu", "gpu"), ("gpu", "cpu")], ids="-".join)
def test_devices_that_differ_are_an_error_of_the_function_called(name: str, devices: tuple[str, str]) -> None:
    x, y = (wg.ones(2, device=device) for device in devices)
    with pytest.raises(
        ValueError, match=rf"^{name}: operands are on different devices, \S+ and \S+; move one with"
    ):
        CALLS[name](x, y)


@pytest.mark.parametrize("index", [-1, 256, 2**31, 2**63 - 1, 2**70])
def test_the_index_of_a_gpu_out_of_range(index: int) -> None:
    text = f": the index of a GPU is an integer from 0 to 255, got {index}$"
    for name, call in {
        "device": lambda: wg.device("gpu", index),
        "gpu": lambda: wg.ones(1).gpu(index),
        "gpu.info": lambda: wg.gpu.info(index),
        "gpu.synchronize": lambda: wg.gpu.synchronize(index),
        "gpu.memory_stats": lambda: wg.gpu.memory_stats(index),
        "gpu.empty_cache": lambda: wg.gpu.empty_cache(index),
        "gpu.profile": lambda: wg.gpu.profile(index).__enter__(),
    }.items():
        with pytest.raises(ValueError, match=f"^{name}{text}"):
            call()
    assert wg.device("gpu", 255) == "gpu:255"


@pytest.mark.parametrize("index", ["gpu:0", None, 1.5, True])
def test_an_index_of_a_gpu_that_is_no_integer(index: object) -> None:
    text = f"^gpu.profile: the index of a GPU is an integer from 0 to 255, got {index!r}$"
    with pytest.raises(TypeError, match=text), wg.gpu.profile(index):
        pass
