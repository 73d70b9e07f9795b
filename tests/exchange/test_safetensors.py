"""Files of safetensors: their bytes, what is mapped and what is copied, modules that share parameters,
refusals."""

import importlib
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wengert as wg
from exchange.safetensors_bytes import at, entry, written
from wengert.safetensors import (
    SafetensorError,
    load,
    load_file,
    load_model,
    safe_open,
    save,
    save_file,
    save_model,
)

DTYPES = ["uint64", "int64", "float64", "complex64", "float32", "uint32", "int32", "bfloat16", "float16"]
DTYPES += ["uint16", "int16", "int8", "uint8", "bool"]

MIB = 1 << 20


def values(dtype: str, shape: tuple[int, ...] = (2, 3)) -> wg.Tensor:
    drawn = np.random.default_rng(0).normal(0, 3, shape)
    return wg.tensor(np.abs(drawn) if dtype.startswith("uint") else drawn).to(getattr(wg, dtype))


def same(x: wg.Tensor, y: wg.Tensor) -> bool:
    return (x.dtype, x.shape) == (y.dtype, y.shape) and bool((x == y).all())


# ---- what files hold -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4)])
def test_every_dtype_and_shape(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    x = values(dtype, shape)
    save_file({"x": x}, tmp_path / "x")
    assert same(load_file(tmp_path / "x")["x"], x)
    assert same(load(save({"x": x}))["x"], x)


def test_bytes() -> None:
    """By hand: what is widest is first, then names in order; a header of a multiple of 8 bytes."""
    tensors = {
        "b": wg.tensor([1, 2], dtype=wg.uint8),
        "z": wg.tensor([1.5]),
        "a": wg.tensor(-1, dtype=wg.int32),
    }
    tensors["y"] = wg.zeros(0, 2)
    header = (
        '{"__metadata__":{"k\\n":"v"},"y":{"dtype":"F32","shape":[0,2],"data_offsets":[0,0]},'
        '"z":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"I32","shape":[],"data_offsets":[4,8]},'
        '"b":{"dtype":"U8","shape":[2],"data_offsets":[8,10]}}'
    )
    expected = written(header, b"\0\0\xc0?\xff\xff\xff\xff\x01\x02", -len(header) % 8)
    assert save(tensors, {"k\n": "v"}) == expected
    assert save({}) == written("{}      ")
    assert load(save({})) == {}
    assert load(save({}, {})) == {}


@pytest.mark.parametrize("count", range(3))
def test_bytes_of_the_package(tmp_path: Path, count: int) -> None:
    package = pytest.importorskip("safetensors.numpy")
    bf16 = pytest.importorskip("ml_dtypes").bfloat16
    names = [["b", "a", 'quo"te\\ \x01\x7f\té€😀', "", "B"][i % 5] + str(i // 5) for i in range(14)]
    shapes = [(), (3,), (2, 3), (0, 4), (1, 1, 5)]
    order = np.random.default_rng(count).permutation(14)
    tensors = {names[i]: values(DTYPES[i], shapes[(i + count) % 5]) for i in order}
    metadata = [None, {"format": "pt"}, {"é": '"\n'}][count]
    arrays = {
        name: np.asarray(x.float().numpy(), bf16) if x.dtype == wg.bfloat16 else x.numpy()
        for name, x in tensors.items()
    }
    expected = package.save(arrays, metadata)
    assert save(tensors, metadata) == expected
    save_file(tensors, tmp_path / "x", metadata)
    assert (tmp_path / "x").read_bytes() == expected
    for name, x in load_file(tmp_path / "x").items():
        assert same(x, tensors[name])
    with safe_open(tmp_path / "x", "pt") as file:
        theirs = importlib.import_module("safetensors").safe_open(tmp_path / "x", "np")
        with theirs as other:
            assert file.keys() == sorted(other.keys())
            assert file.offset_keys() == other.offset_keys()
            assert file.metadata() == other.metadata()


def test_arrays_of_the_package(tmp_path: Path) -> None:
    """Functions of the package that take arrays take what `numpy()` gives."""
    package = pytest.importorskip("safetensors.numpy")
    x = wg.arange(6).reshape(2, 3)
    assert same(load(package.save({"x": x.numpy()}))["x"], x)


# ---- memory --------------------------------------------------------------------------------------


def test_tensors_lie_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    save_file({"w": wg.ones(MIB // 4), "h": wg.ones(MIB // 2, dtype=wg.bfloat16)}, path)
    whole, before = path.read_bytes(), wg.memory.live_bytes()
    tracemalloc.start()
    found = load_file(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100_000
    assert wg.memory.live_bytes() == before
    w, h = found["w"], found["h"]
    assert w.sum().item() == MIB // 4
    w += 1
    h[3] = 7.0
    w.requires_grad_()
    (w.sum() * 2).backward()
    with wg.no_grad():
        w -= w.grad
    assert (w[0].item(), h[3].item(), h[2].item()) == (0.0, 7.0, 1.0)
    assert path.read_bytes() == whole
    assert load_file(path)["w"][0].item() == 1.0
    copy = w.detach().clone()
    assert wg.memory.live_bytes() - before >= copy.nbytes
    path.unlink()
    del found
    assert (w[-1].item(), h[-1].item()) == (0.0, 1.0)


def test_parameters_that_lie_in_the_file(tmp_path: Path) -> None:
    model, path = wg.nn.Linear(3, 2), tmp_path / "x"
    save_file(model.state_dict(), path)
    whole, weights = path.read_bytes(), load_file(path)
    model.load_state_dict(weights, assign=True)
    assert model.weight.data_ptr() == weights["weight"].data_ptr()
    model(wg.ones(3)).sum().backward()
    wg.optim.SGD(model.parameters(), lr=0.5).step()
    assert wg.allclose(load_file(path)["weight"] - model.weight, wg.full((2, 3), 0.5))
    assert path.read_bytes() == whole


def test_a_file_that_is_saved_over_its_own_tensors(tmp_path: Path) -> None:
    path = tmp_path / "x"
    save_file({"w": wg.arange(100_000)}, path)
    first = load_file(path)
    save_file({"w": first["w"][:50_000].neg(), "v": wg.ones(2)}, path)
    assert first["w"][-1].item() == 99_999
    save_file(first, path)
    assert load_file(path)["w"].sum().item() == 99_999 * 50_000


def test_bytes_in_memory_are_copied() -> None:
    data = bytearray(save({"x": wg.zeros(4)}))
    x = load(data)["x"]
    x += 1
    assert not any(data[-16:])
    assert load(memoryview(data))["x"].tolist() == [0.0] * 4
    data[-1] = 64
    assert x.tolist() == [1.0] * 4
    with pytest.raises(TypeError, match="the bytes of a file expected, got str; load_file takes a path"):
        load("model.safetensors")


@pytest.mark.parametrize("padding", range(8))
def test_elements_that_are_not_aligned(tmp_path: Path, padding: int) -> None:
    tensors = [
        ("a", "U8", b"\x05"),
        ("b", "F64", np.float64([1.5, -2]).tobytes()),
        ("c", "BF16", b"\x80\x3f\x00\xc0"),
    ]
    tensors += [
        ("d", "C64", np.complex64([1 + 2j]).tobytes()),
        ("e", "BOOL", b"\x00\x02"),
        ("f", "F16", b"\x00\x3c"),
    ]
    header, place = {}, 0
    for name, kind, data in tensors:
        size = {"U8": 1, "F64": 8, "BF16": 2, "C64": 8, "BOOL": 1, "F16": 2}[kind]
        header[name] = entry(kind, [len(data) // size], place, place + len(data))
        place += len(data)
    whole = written(header, b"".join(data for *_, data in tensors), padding)
    expected = {"a": [5], "b": [1.5, -2.0], "c": [1.0, -2.0], "d": [1 + 2j], "e": [False, True], "f": [1.0]}
    assert {name: x.tolist() for name, x in load(whole).items()} == expected
    found = load_file(at(tmp_path / "x", whole))
    assert {name: x.tolist() for name, x in found.items()} == expected
    found["b"] += 1
    found["e"].logical_not_()
    assert (tmp_path / "x").read_bytes() == whole


# ---- opening -------------------------------------------------------------------------------------


def test_parts_of_a_file(tmp_path: Path) -> None:
    x = wg.arange(24.0).reshape(2, 3, 4)
    save_file(
        {"x": x, "half": values("bfloat16"), "b": wg.tensor(True)}, str(tmp_path / "x"), {"format": "pt"}
    )
    with safe_open(str(tmp_path / "x"), framework="pt", device="cpu") as file:
        assert file.keys() == ["b", "half", "x"]
        assert file.offset_keys() == ["x", "half", "b"]
        assert file.metadata() == {"format": "pt"}
        part = file.get_slice("x")
        assert (part.get_shape(), part.get_dtype()) == ([2, 3, 4], "F32")
        for key in [(slice(None), 1), (..., -1), slice(1, 2), (0, slice(None, None, 2), [1, 3]), ...]:
            assert same(part[key], x[key])
        assert same(file.get_slice("half")[1:, ::2], values("bfloat16")[1:, ::2])
        assert same(file.get_tensor("x"), x)
        assert set(file.get_tensors()) == {"x", "half", "b"}
        with pytest.raises(SafetensorError, match="has no tensor 'y'"):
            file.get_tensor("y")
        with pytest.raises(SafetensorError, match="has no tensor 'y'"):
            file.get_slice("y")
    for call in (lambda: file.get_tensor("x"), lambda: part[0], file.get_tensors):
        with pytest.raises(ValueError, match="is closed"):
            call()
    assert file.keys() == ["b", "half", "x"]
    save_file({}, tmp_path / "none")
    assert safe_open(tmp_path / "none", "torch").metadata() is None
    with pytest.raises(
        ValueError, match=r"framework is one of 'pt', .*, got 'np'; for arrays of NumPy call .numpy"
    ):
        safe_open(tmp_path / "x", framework="np")
    with pytest.raises(ValueError, match="'vulkan' is not a device"):
        load_file(tmp_path / "x", device="vulkan")
    with pytest.raises(FileNotFoundError):
        load_file(tmp_path / "nothing")


def test_dtypes_of_files_only(tmp_path: Path) -> None:
    header = {"a": entry("F32", [1], 0, 4), "b": entry("F8_E4M3", [4], 4, 8), "c": entry("F4", [2, 1], 8, 9)}
    header["d"] = entry("F6_E2M3", [4], 9, 12)
    path = at(tmp_path / "x", written(header, bytes(12)))
    with pytest.raises(TypeError, match="'b' is of F8_E4M3, a dtype that wengert has not; convert it where"):
        load_file(path)
    with safe_open(path, "pt") as file:
        assert file.get_tensor("a").tolist() == [0.0]
        assert file.get_slice("b").get_dtype() == "F8_E4M3"
        with pytest.raises(TypeError, match="'d' is of F6_E2M3"):
            file.get_slice("d")[:1]


@pytest.mark.gpu
def test_on_a_gpu(tmp_path: Path) -> None:
    tensors = {"w": values("float32"), "i": values("int64"), "step": wg.tensor(2**40), "b": values("bool")}
    save_file({name: x if name in ("i", "step") else x.gpu() for name, x in tensors.items()}, tmp_path / "x")
    for device in ("gpu", "gpu:0", 0):
        found = load_file(tmp_path / "x", device=device)
        assert same(found["w"].cpu(), tensors["w"])
        assert same(found["i"].cpu(), tensors["i"])
        assert found["step"].item() == 2**40
        assert {name: x.is_gpu for name, x in found.items()} == {
            "w": True,
            "i": True,
            "step": False,
            "b": True,
        }
    with safe_open(tmp_path / "x", "pt", "gpu") as file:
        part = file.get_slice("w")[:, 1:]
        assert part.is_gpu
        assert same(part.cpu(), tensors["w"][:, 1:])
    # What is not asked for is not moved.
    save_file({"i": wg.tensor([1, 2**40, 3])}, tmp_path / "x")
    with safe_open(tmp_path / "x", "pt", "gpu") as file:
        assert file.get_slice("i")[::2].tolist() == [1, 3]
    x = wg.ones(4, device="gpu")
    with pytest.raises(RuntimeError, match="tensors share memory: 'a', 'b'"):
        save({"a": x, "b": x[1:]})
    model = wg.nn.Linear(2, 2).to("gpu")
    save_model(model, tmp_path / "m")
    with wg.no_grad():
        model.weight.zero_()
    assert load_model(model, tmp_path / "m", device="gpu") == ([], [])
    assert model.weight.is_gpu
    assert model.weight.abs().sum().item() > 0


# ---- saving --------------------------------------------------------------------------------------

X = wg.arange(6.0).reshape(2, 3)
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "the same": (
        {"a": X, "b": X, "c": wg.ones(1)},
        RuntimeError,
        "share memory: 'a', 'b'; each would be stored",
    ),
    "a part": ({"a": X[1:], "b": X, "c": X[:1]}, RuntimeError, "share memory: 'a', 'b', 'c'; each"),
    "a shape": ({"a": X.reshape(3, 2), "b": X.detach()}, RuntimeError, "share memory: 'a', 'b'; each"),
    "two": ({"a": X[0], "b": X[0], "c": X[1], "d": X[1]}, RuntimeError, "memory: 'a', 'b'; 'c', 'd'; each"),
    "inside": (
        {"a": X.reshape(-1), "b": X[0, 1:2], "c": X[1, 1:2]},
        RuntimeError,
        "memory: 'a', 'b', 'c'; each",
    ),
    "turned": (
        {"a": X.t()},
        ValueError,
        r"'a' of shape \(3, 2\) and strides \(1, 3\) is not contiguous; save its",
    ),
    "wide": ({"a": X.to(wg.complex128)}, TypeError, "'a' is of complex128, which the format has not"),
    "array": ({"a": np.ones(2)}, TypeError, "'a' is a ndarray, where a tensor is expected"),
    "number": ({3: X}, TypeError, "3 is no name of a tensor in a file"),
    "reserved": ({"__metadata__": X}, TypeError, "'__metadata__' is no name of a tensor"),
    "list": ([X], TypeError, "a dictionary of tensors by name expected, got list"),
    "no Unicode": ({"\ud800": X}, ValueError, "a name, or a text of the metadata, is no Unicode text"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_saved(tmp_path: Path, name: str) -> None:
    given, kind, message = REFUSED[name]
    at(tmp_path / "x", b"before")
    for call in (lambda: save(given), lambda: save_file(given, tmp_path / "x")):
        with pytest.raises(kind, match=message):
            call()
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"before"]


def test_what_may_be_saved() -> None:
    parts = {"a": X[:1], "b": X[1:], "empty": X[:0], "again": X[2:]}
    assert {name: x.tolist() for name, x in load(save(parts)).items()} == {
        name: x.tolist() for name, x in parts.items()
    }
    p = wg.nn.Parameter(wg.ones(2))
    found = load(save({"p": p, "q": p * 2}))
    assert (type(found["p"]), found["q"].requires_grad) == (wg.Tensor, False)
    with pytest.raises(TypeError, match="inside vmap or jvp stands for many values at once; save outside"):
        wg.vmap(lambda x: (save({"x": x}), x)[1])(X)
    for metadata in ([], {"a": 1}, {1: "a"}):
        with pytest.raises(
            TypeError, match="metadata is a dictionary of texts by texts; convert other values by str"
        ):
            save({}, metadata)


def test_the_former_file_survives_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing = importlib.import_module("wengert.safetensors.writing")
    path = tmp_path / "x"
    save_file({"a": wg.ones(1000)}, path)
    whole, calls = path.read_bytes(), []

    def fails(x: wg.Tensor) -> bytes:
        calls.append(x)
        if len(calls) == 2:
            raise OSError("the disk is full")
        return bytes(4000)

    monkeypatch.setattr(writing, "_bytes_of", fails)
    with pytest.raises(OSError, match="the disk is full"):
        save_file({"a": wg.ones(1000), "b": wg.ones(1000)}, path)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [whole]


# ---- modules -------------------------------------------------------------------------------------


def tied() -> wg.nn.Sequential:
    model = wg.nn.Sequential(wg.nn.Embedding(5, 3), wg.nn.Linear(3, 5), wg.nn.BatchNorm1d(5))
    model[1].weight = model[0].weight
    return model


def test_modules_that_share_parameters(tmp_path: Path) -> None:
    model, other, path = tied(), tied(), tmp_path / "x"
    with pytest.raises(RuntimeError, match=r"'0.weight', '1.weight'; each .* or the module by save_model"):
        save_file(model.state_dict(), path)
    given = {"format": "pt"}
    save_model(model, str(path), given)
    assert given == {"format": "pt"}
    with safe_open(path, "pt") as file:
        assert "1.weight" not in file.keys()  # noqa: SIM118
        assert file.metadata() == {"1.weight": "0.weight", "format": "pt"}
    assert load_model(other, str(path), device="cpu") == ([], [])
    assert other[0].weight is other[1].weight
    for name, x in model.state_dict().items():
        assert same(other.state_dict()[name], x)
    # Files that chose the other name.
    state = load_file(path)
    state["1.weight"] = state.pop("0.weight") + 1
    save_file(state, path)
    assert load_model(other, path) == ([], [])
    assert same(other[0].weight, model[0].weight + 1)
    # Both of them say two things.
    state["0.weight"] = state["1.weight"] + 1
    save_file(state, path)
    with pytest.raises(
        RuntimeError, match=r"x does not fit Sequential: the module has no '1.weight'; strict=False"
    ):
        load_model(other, path)
    del state["0.weight"], state["1.bias"]
    state["more"] = wg.ones(1)
    save_file(state, path)
    with pytest.raises(
        RuntimeError, match=r"it lacks '1.bias'; the module has no 'more'; strict=False loads"
    ):
        load_model(other, path)
    assert load_model(other, path, strict=False) == (["1.bias"], ["more"])
    state["0.weight"] = wg.ones(2)
    save_file(state, path)
    with pytest.raises(RuntimeError, match="shape"):
        load_model(other, path, strict=False)


def test_modules_of_parts_of_one_memory(tmp_path: Path) -> None:
    class Parts(wg.nn.Module):
        def __init__(self, whole: bool) -> None:
            super().__init__()
            x = wg.arange(6.0)
            self.register_buffer("a", x[:4])
            self.register_buffer("b", x[2:])
            if whole:
                self.register_buffer("c", x)

    with pytest.raises(
        RuntimeError, match="'a', 'b' are parts of one memory, of which none is all; save a clone"
    ):
        save_model(Parts(False), tmp_path / "x")
    save_model(Parts(True), tmp_path / "x")
    assert list(load_file(tmp_path / "x")) == ["c"]
    model = Parts(True)
    model.c.zero_()
    assert load_model(model, tmp_path / "x") == ([], [])
    assert model.b.tolist() == [2.0, 3.0, 4.0, 5.0]


def test_modules_whose_tensors_are_not_contiguous(tmp_path: Path) -> None:
    model = wg.nn.Linear(2, 3)
    model.weight = wg.nn.Parameter(wg.arange(6.0).reshape(2, 3).t())
    with pytest.raises(ValueError, match=r"'weight' of shape .* is not contiguous"):
        save_model(model, tmp_path / "x", force_contiguous=False)
    save_model(model, tmp_path / "x", metadata=None)
    assert same(load_file(tmp_path / "x")["weight"], model.weight)
