"""Files of tensors: what comes back, what is shared, what is refused."""

import datetime
import io
import pickle
import re
import zipfile
from collections import Counter, OrderedDict, defaultdict, deque
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wengert as wg
from support import array

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
DTYPES += ["float16", "bfloat16", "float32", "float64"]


def through_a_file(obj: Any, **options: Any) -> Any:
    """What `load` makes of what `save` writes."""
    file = io.BytesIO()
    wg.save(obj, file)
    file.seek(0)
    return wg.load(file, **options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4)])
def test_every_dtype_and_shape(dtype: str, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(0, 3, shape)
    x = wg.tensor(np.abs(values) if dtype == "uint64" else values).to(getattr(wg, dtype))
    y = through_a_file(x)
    assert (y.dtype, y.shape, y.requires_grad) == (x.dtype, x.shape, False)
    assert np.array_equal(array(x.to(wg.float64)), array(y.to(wg.float64)))


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Any) -> None:
    model = wg.nn.Linear(3, 2)
    optimizer = wg.optim.AdamW(model.parameters(), lr=0.1)
    model(wg.ones(4, 3)).sum().backward()
    optimizer.step()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "notes": OrderedDict(step=3, rate=0.5, name="run", flags=[True, None], kinds={1, 2}, z=1 + 2j),
        "dtype": wg.bfloat16,
        "device": wg.device("cpu"),
    }
    wg.save(state, tmp_path / "state.pt")
    loaded = wg.load(tmp_path / "state.pt")
    assert loaded["notes"] == state["notes"]
    assert loaded["dtype"] is wg.bfloat16
    assert loaded["device"] == wg.device("cpu")
    other = wg.nn.Linear(3, 2)
    again = wg.optim.AdamW(other.parameters(), lr=0.7)
    other.load_state_dict(loaded["model"])
    again.load_state_dict(loaded["optimizer"])
    assert again.param_groups[0]["lr"] == 0.1
    for network, steps in ((model, optimizer), (other, again)):
        steps.zero_grad()
        network(wg.ones(4, 3)).square().sum().backward()
        steps.step()
    assert np.array_equal(array(model.weight.detach()), array(other.weight.detach()))


def test_shared_memory_is_stored_once_and_shared_again() -> None:
    big = wg.zeros(1000)
    file = io.BytesIO()
    wg.save({"a": big, "b": big.detach(), "same": big, "part": big[:3]}, file)
    assert len(file.getvalue()) < 1.5 * big.nbytes
    file.seek(0)
    loaded = wg.load(file)
    assert loaded["a"] is loaded["same"]
    loaded["a"].fill_(2.0)
    assert loaded["b"].tolist() == [2.0] * 1000
    # A view of a part is a tensor of its own.
    assert loaded["part"].tolist() == [0.0] * 3


def test_kinds_of_tensors() -> None:
    leaf, parameter = wg.ones(2, requires_grad=True), wg.nn.Parameter(wg.ones(2))
    frozen = wg.nn.Parameter(wg.ones(1), requires_grad=False)
    loaded = through_a_file([leaf, parameter, frozen, leaf * 2, wg.ones(2, 3).T])
    assert [x.requires_grad for x in loaded] == [True, True, False, False, False]
    assert [type(x) is wg.nn.Parameter for x in loaded] == [False, True, True, False, False]
    assert loaded[4].shape == (3, 2)
    assert loaded[3].tolist() == [2.0, 2.0]


def test_map_location_and_files() -> None:
    x = through_a_file({"x": wg.ones(2)}, map_location=wg.device("cpu"))["x"]
    assert x.device == wg.device("cpu")


class Surprise:
    """Something whose unpickling runs code."""

    def __reduce__(self) -> Any:
        return (print, ("this must not be printed",))


def test_code_is_refused(capsys: Any) -> None:
    with pytest.raises(
        pickle.UnpicklingError, match=r"names builtins\.print, which is not plain data.*weights_only"
    ):
        through_a_file({"x": wg.ones(1), "bad": Surprise()})
    assert capsys.readouterr().out == ""
    through_a_file(Surprise(), weights_only=False)
    assert capsys.readouterr().out == "this must not be printed\n"


def test_plain_data_of_other_kinds() -> None:
    best = np.mean([0.5, 0.25])
    kept = {
        "best": best,
        "step": np.int64(7),
        "array": np.arange(6, dtype=np.int16).reshape(2, 3),
        "counts": Counter("abca"),
        "by name": defaultdict(list, a=[1]),
        "range": range(2, 9, 3),
        "day": datetime.date(2026, 1, 2),
        "took": datetime.timedelta(seconds=3),
        "size": wg.ones(2, 3).size,
        "sorted": wg.tensor([2.0, 1.0]).sort(),
    }
    back = through_a_file(kept)
    assert list(back) == list(kept)
    for name, value in kept.items():
        assert type(back[name]) is type(value), name
        if name not in ("array", "sorted"):
            assert back[name] == value
    assert np.array_equal(back["array"], kept["array"])
    assert back["array"].dtype == np.int16
    assert back["by name"].default_factory is list
    assert back["sorted"].indices.tolist() == [1, 0]
    assert back["size"]() == (2, 3)


def test_what_cannot_be_saved_or_loaded() -> None:
    file = io.BytesIO()
    wg.save({"a": Fraction(1, 3)}, file)
    file.seek(0)
    with pytest.raises(
        pickle.UnpicklingError, match=r"fractions\.Fraction, which is not plain data.*weights_only=False"
    ):
        wg.load(file)
    with pytest.raises(
        TypeError, match=r"save: a path or a file opened for binary writing, as by .*, expected, got int"
    ):
        wg.save(wg.ones(2), 3)  # type: ignore[arg-type]


def test_whole_modules_need_trust() -> None:
    model = wg.nn.Sequential(wg.nn.Linear(2, 2), wg.nn.ReLU())
    with pytest.raises(pickle.UnpicklingError, match=r"nn\.modules\.container\.Sequential"):
        through_a_file(model)
    again = through_a_file(model, weights_only=False)
    assert np.array_equal(array(again[0].weight.detach()), array(model[0].weight.detach()))


def test_inside_transforms() -> None:
    # A gradient's level has one value, a batch has many.
    wg.grad(lambda x: (x * through_a_file(x)).sum())(wg.ones(2))
    with pytest.raises(TypeError, match="save: a tensor inside vmap or jvp stands for many values at once"):
        wg.vmap(through_a_file)(wg.ones(2, 2))


def test_files_of_other_libraries_say_what_they_are() -> None:
    old = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."  # as torch.save began before 1.6
    new, arrays, array = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(new, "w") as archive:
        for name in ("model/data.pkl", "model/version", "model/data/0"):
            archive.writestr(name, b"")
    np.savez(arrays, a=np.ones(3))
    np.save(array, np.ones(3))
    for data, text in (
        (new.getvalue(), "load: a damaged file of torch.save"),
        (old, "load: a damaged file of torch.save"),
        (arrays.getvalue(), "load: a file of numpy.save or numpy.savez; read it with numpy.load"),
        (array.getvalue(), "load: a file of numpy.save or numpy.savez"),
        (pickle.dumps({"a": 1}), "load: a plain pickle; read it with pickle.load, if you trust it"),
    ):
        with pytest.raises(pickle.UnpicklingError, match=f"^{re.escape(text)}"):
            wg.load(io.BytesIO(data))


def test_other_files_are_refused(tmp_path: Any) -> None:
    with pytest.raises(
        pickle.UnpicklingError, match=r"not a file of wengert\.save or torch\.save, or a damaged one"
    ):
        wg.load(io.BytesIO(b"nonsense"))
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("something", "else")
    with pytest.raises(pickle.UnpicklingError, match="or a damaged one"):
        wg.load(tmp_path / "other.zip")
    file = io.BytesIO()
    wg.save(wg.ones(3), file)
    with zipfile.ZipFile(tmp_path / "cut.zip", "w") as archive, zipfile.ZipFile(file) as whole:
        for name in ("wengert", "data.pkl"):
            archive.writestr(name, whole.read(name))
    with pytest.raises(pickle.UnpicklingError, match="tensor 0 is missing in the file"):
        wg.load(tmp_path / "cut.zip")
    with pytest.raises(FileNotFoundError):
        wg.load(tmp_path / "nowhere.pt")


def test_a_save_that_fails_leaves_the_file_of_before(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.wg"
    wg.save({"step": 1}, path)
    path.chmod(0o640)
    with pytest.raises(MemoryError):
        wg.save([wg.ones(2), wg.zeros(1).expand(2**31, 2**31)], path)
    assert wg.load(path) == {"step": 1}
    wg.save({"step": 2}, path)
    assert wg.load(path) == {"step": 2}
    assert path.stat().st_mode & 0o777 == 0o640
    link = tmp_path / "latest.wg"
    link.symlink_to(path)
    wg.save({"step": 3}, link)
    assert link.is_symlink()
    assert wg.load(path) == {"step": 3}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["checkpoint.wg", "latest.wg"]
    with pytest.raises(FileNotFoundError):
        wg.save({"step": 1}, tmp_path / "nowhere" / "checkpoint.wg")


def test_results_come_back() -> None:
    file = io.BytesIO()
    wg.save(wg.linalg.qr(wg.eye(2)), file)
    file.seek(0)
    found = wg.load(file)
    assert type(found).__name__ == "QrParts"
    assert wg.equal(found.R.abs(), wg.eye(2))


def test_files_opened_for_text_are_refused(tmp_path: Path) -> None:
    with (
        (tmp_path / "a.wg").open("w") as file,
        pytest.raises(TypeError, match=r"binary writing.*got TextIOWrapper"),
    ):
        wg.save([1], file)  # type: ignore[arg-type]
    for given in (3, None, io.StringIO("x")):
        with pytest.raises(TypeError, match="load: a path or a file opened for binary reading"):
            wg.load(given)  # type: ignore[arg-type]


def test_generators_go_on_where_they_were() -> None:
    generator = wg.Generator().manual_seed(5)
    wg.rand(3, generator=generator)
    found = through_a_file({"random": generator})["random"]
    assert wg.equal(wg.rand(4, generator=found), wg.rand(4, generator=generator))


def test_rows_of_a_limited_length() -> None:
    found = through_a_file(deque([wg.ones(1), wg.zeros(1)], 2))
    assert (type(found), found.maxlen, [x.item() for x in found]) == (deque, 2, [1.0, 0.0])


def test_parameters_keep_their_attributes() -> None:
    scale = wg.nn.Parameter(wg.ones(2))
    scale.rank, scale.like, scale.own = 3, wg.zeros(1), scale
    found, again = through_a_file([scale, scale])
    assert found is again is found.own
    assert (found.rank, found.like.item(), found.tolist()) == (3, 0.0, [1.0, 1.0])
    plain = through_a_file(wg.nn.Parameter(wg.ones(2)))
    assert vars(plain) == {}
    scale.backward = 3
    with pytest.raises(pickle.UnpicklingError, match="'backward', which would hide its own"):
        through_a_file(scale)


def test_words_of_pytorch_for_formats(tmp_path: Any) -> None:
    path = tmp_path / "x.pt"
    wg.save(wg.ones(2), path, pickle_protocol=4, _use_new_zipfile_serialization=False)
    assert wg.load(path, mmap=True, encoding="latin1").tolist() == [1, 1]
    path.write_bytes(b"")
    with pytest.raises(
        pickle.UnpicklingError, match=r"not a file of wengert\.save or torch\.save, or a damaged"
    ):
        wg.load(path)
