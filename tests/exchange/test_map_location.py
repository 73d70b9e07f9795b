"""`load(map_location=)`: a dictionary of devices, and a function of each tensor."""

import io
from typing import Any

import pytest
import wengert as wg
from wengert import nn


def saved(obj: Any) -> io.BytesIO:
    """A file of an object, to be read."""
    file = io.BytesIO()
    wg.save(obj, file)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "places", [{}, {"gpu:0": "cpu"}, {"cuda:1": "cpu"}, {"cpu": "cpu"}, {"cpu": wg.device("cpu")}]
)
def test_a_dictionary(places: Any) -> None:
    x = wg.load(saved({"x": wg.arange(3.0)}), map_location=places)["x"]
    assert (x.tolist(), str(x.device)) == ([0.0, 1.0, 2.0], "cpu")


def test_a_function_sees_each_tensor_once() -> None:
    seen = []

    def place(x: Any, device: str) -> Any:
        seen.append((x.tolist(), device, str(x.device)))
        return x if len(seen) == 1 else None

    a = wg.arange(2.0)
    found = wg.load(saved({"a": a, "again": a, "p": nn.Parameter(wg.ones(1))}), map_location=place)
    assert seen == [([0.0, 1.0], "cpu", "cpu"), ([1.0], "cpu", "cpu")]
    assert found["a"] is found["again"]
    assert isinstance(found["p"], nn.Parameter)
    assert found["p"].requires_grad


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="'vulkan' is not a device; expected 'cpu'"):
        wg.load(saved(wg.ones(1)), map_location={"gpu": "vulkan"})
    with pytest.raises(
        TypeError, match=r"^load: map_location\(tensor, device\) returns the tensor or None, got str$"
    ):
        wg.load(saved(wg.ones(1)), map_location=lambda x, device: "cpu")
    with pytest.raises(
        ValueError, match=r"^load: map_location\(.*\) returns the tensor itself, moved; got the shape"
    ):
        wg.load(saved(wg.ones(2)), map_location=lambda x, device: x[:1])


def test_errors_of_the_function_arrive_as_they_are() -> None:
    def fails(x: Any, device: str) -> Any:
        raise KeyError("mine") from LookupError("cause")

    with pytest.raises(KeyError, match="mine") as caught:
        wg.load(saved(wg.ones(1)), map_location=fails)
    assert isinstance(caught.value.__cause__, LookupError)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["gpu", "gpu:0"])
def test_from_one_device_to_another(name: str) -> None:
    x = {"here": wg.arange(3), "there": wg.ones(2, device="gpu")}
    found = wg.load(saved(x), map_location={name: "cpu"})
    assert [str(t.device) for t in found.values()] == ["cpu", "cpu"]
    found = wg.load(saved(x), map_location={"cpu": name})
    assert [(str(t.device), t.dtype) for t in found.values()] == [("gpu:0", wg.int64), ("gpu:0", wg.float32)]
    found = wg.load(saved(x), map_location=lambda t, device: t.float().gpu() if device == "cpu" else t)
    assert [str(t.device) for t in found.values()] == ["gpu:0", "cpu"]
    assert found["here"].tolist() == [0.0, 1.0, 2.0]
