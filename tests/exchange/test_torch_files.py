"""Files of `torch.save`, written by `make_torch_files.py`: what they hold, and what is refused."""

import datetime
import io
import pickle
import zipfile
from collections import Counter, OrderedDict, defaultdict, deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert import nn

FILES = Path(__file__).parent / "files"


@pytest.fixture(params=["torch_archive.pt", "torch_row.pt"])
def found(request: pytest.FixtureRequest) -> Any:
    return wg.load(FILES / request.param)


def test_states_of_models_and_optimisers(found: Any) -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    model.load_state_dict(found["model"])
    optimizer = wg.optim.Adam(model.parameters())
    optimizer.load_state_dict(found["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert model[0].weight.shape == (2, 3)
    assert int(model[1].num_batches_tracked) == 1
    model(wg.eye(3)[:2]).square().sum().backward()
    optimizer.step()
    assert found["epoch"] == 3


def test_values(found: Any) -> None:
    whole, turned, part = found["views"]
    assert whole.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert turned.tolist() == whole.t().tolist()
    assert part.tolist() == [[4, 6], [8, 10]]
    kinds = {x.dtype.name: x.tolist() for x in found["kinds"]}
    for name in ("float64", "float16", "bfloat16", "complex64"):
        assert kinds.pop(name) == [1.5, -2.0]
    assert set(kinds) == {"int8", "uint8", "int16", "int32"}
    assert all(values == [1, 100] for values in kinds.values())
    assert found["flags"].tolist() == [True, False]
    assert isinstance(found["parameter"], nn.Parameter)
    assert found["parameter"].requires_grad
    assert found["leaf"].requires_grad
    assert found["leaf"].is_leaf
    assert found["empty"].shape == (0, 3)
    assert found["number"].item() == 2.5
    assert found["number"].shape == ()
    assert found["expanded"].tolist() == [7.0, 7.0, 7.0]
    assert found["plain"] == [(2, 3), "cpu", wg.float16, {1, 2}, (None, "text", 1e300)]


def test_views_of_a_storage_share_its_memory(found: Any) -> None:
    whole, turned, part = found["views"]
    whole[1, 0] = 100.0
    assert turned[0, 1].item() == part[0, 0].item() == 100.0


def test_places(found: Any) -> None:
    asked = []

    def place(x: Any, device: str) -> Any:
        asked.append(device)
        return x

    wg.load(FILES / "torch_archive.pt", map_location=place)
    assert set(asked) == {"cpu"}
    assert wg.load(FILES / "torch_archive.pt", map_location="cpu")["epoch"] == 3


def test_a_file_is_read_from_where_it_stands() -> None:
    data = (FILES / "torch_row.pt").read_bytes()
    file = io.BytesIO(b"before" + data)
    file.seek(6)
    assert wg.load(file)["epoch"] == 3


def test_classes_are_named_and_not_imported() -> None:
    with pytest.raises(
        pickle.UnpicklingError, match=r"names torch\.nn\.modules\.container\.Sequential, which is"
    ):
        wg.load(FILES / "torch_module.pt")
    with pytest.raises(ModuleNotFoundError, match="torch"):
        wg.load(FILES / "torch_module.pt", weights_only=False)


def changed(edit: Any) -> io.BytesIO:
    """The archive with other members."""
    out = io.BytesIO()
    with zipfile.ZipFile(FILES / "torch_archive.pt") as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = edit(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
    out.seek(0)
    return out


def test_damaged_archives() -> None:
    with pytest.raises(pickle.UnpicklingError, match="load: storage 0 is missing in the file"):
        wg.load(changed(lambda name, data: None if name.endswith("/data/0") else data))
    with pytest.raises(pickle.UnpicklingError, match=r"data/0 has 3 bytes, and its tensor 24"):
        wg.load(changed(lambda name, data: data[:3] if name.endswith("/data/0") else data))
    with pytest.raises(pickle.UnpicklingError):
        wg.load(changed(lambda name, data: data[:-9] if name.endswith("data.pkl") else data))


def test_big_endian_archives() -> None:
    def turned(name: str, data: bytes) -> bytes:
        if name.endswith("byteorder"):
            return b"big"
        # Storage 0 is of float32.
        return (
            b"".join(data[i : i + 4][::-1] for i in range(0, len(data), 4))
            if name.endswith("/data/0")
            else data
        )

    assert wg.load(changed(turned))["model"]["0.weight"].tolist() == (
        wg.load(FILES / "torch_archive.pt")["model"]["0.weight"].tolist()
    )


def archive(program: bytes, storage: bytes = bytes(16)) -> io.BytesIO:
    """An archive with this pickle and a storage of four numbers."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("archive/data.pkl", program)
        file.writestr("archive/data/0", storage)
    out.seek(0)
    return out


def tensor_of(size: str, stride: str, offset: int = 0) -> bytes:
    """The pickle of a tensor of a storage of four numbers."""
    storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
    rest = f"K{chr(offset)}({size}t({stride}t".encode("latin1") + b"\x89ccollections\nOrderedDict\n)Rt"
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + rest + b"R."


def test_tensors_stay_inside_of_their_storage() -> None:
    good = tensor_of("K\x02K\x02", "K\x02K\x01")
    assert wg.load(archive(good)).shape == (2, 2)
    outside = ("K\x02K\x03", "K\x02K\x01", 0), ("K\x02K\x02", "K\x02K\x01", 1), ("K\x05", "K\x01", 0)
    for size, stride, offset in outside:
        with pytest.raises(pickle.UnpicklingError, match="ends behind its storage of 4 elements"):
            wg.load(archive(tensor_of(size, stride, offset)))
    with pytest.raises(pickle.UnpicklingError):
        wg.load(archive(tensor_of("K\x02K\x02", "K\x01")))


@pytest.mark.parametrize(
    "name", ["os\nsystem", "builtins\neval", "torch\nload", "torch._utils\n_import_dotted_name"]
)
def test_functions_are_refused(name: str) -> None:
    with pytest.raises(
        pickle.UnpicklingError, match=rf"names {name.replace(chr(10), '.')}, which is not plain"
    ):
        wg.load(archive(b"\x80\x02c" + name.encode() + b"\n(X\x01\x00\x00\x00atR."))


def test_every_truncation_of_a_row_is_an_error() -> None:
    data = (FILES / "torch_row.pt").read_bytes()
    for end in range(0, len(data) - 1, 7):
        with pytest.raises(pickle.UnpicklingError):
            wg.load(io.BytesIO(data[:end]))


def test_places_that_have_another_name_here() -> None:
    card = lambda: archive(
        tensor_of("K\x02", "K\x01").replace(b"\x03\x00\x00\x00cpu", b"\x06\x00\x00\x00cuda:0")
    )
    with pytest.raises(
        wg.DeviceError, match=r"saved on 'cuda:0' .*; load it elsewhere with map_location='cpu'"
    ):
        wg.load(card())
    for place in ("cpu", {"cuda:0": "cpu"}, {"cuda": "cpu"}, lambda x, device: x):
        assert str(wg.load(card(), map_location=place).device) == "cpu"


def test_numbers_that_are_said_to_be_conjugate_or_negative() -> None:
    for name, factor in (("conj", 1.0), ("neg", -1.0)):
        word = b"X" + len(name).to_bytes(4, "little") + name.encode()
        with_metadata = tensor_of("K\x02", "K\x01").replace(b")Rt", b")R}" + word + b"\x88st")
        values = archive(with_metadata, np.array([1.0, 2.0, 3.0, 4.0], np.float32).tobytes())
        assert wg.load(values).tolist() == [factor, 2 * factor]
    unknown = tensor_of("K\x02", "K\x01").replace(b")Rt", b")R}X\x01\x00\x00\x00a\x88st")
    with pytest.raises(pickle.UnpicklingError, match="unknown property of a tensor, 'a'"):
        wg.load(archive(unknown))


# Pickles of a few hundred bytes that would take seconds, gigabytes, or change the library.
HOSTILE = {
    "attributes of a class": b"cwengert\ndevice\n(N}X\x04\x00\x00\x00typeK\x01stb.",
    "elements of a list by slices": b"]q\x00K\x01ah\x00cbuiltins\nslice\n(K\x00K\x00tRh\x00s.",
    "a shape of a range": b"ctorch\nSize\n(cbuiltins\nrange\n(J\x00\x00\x00\x7ftRtR.",
    "a tuple of a range": b"cbuiltins\ntuple\ncbuiltins\nrange\n(J\x00\x00\x00\x7ftR\x85\x81.",
    "a parameter of a range": b"ctorch._utils\n_rebuild_parameter\n(cbuiltins\nrange\n(J\x00\x00\x00\x7ftR\x89NtR.",
    "a dictionary of its elements": b"ccollections\nOrderedDict\n(](K\x01K\x02eatR.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles(name: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"^load: "):
        wg.load(archive(b"\x80\x02" + HOSTILE[name]))
    assert wg.device("cpu").type == "cpu"


def test_keys_that_take_long_to_hash() -> None:
    key: Any = (1,) * 20
    for _ in range(5):
        key = (key,) * 20
    with pytest.raises(pickle.UnpicklingError, match="a key has more than 100000 parts"):
        wg.load(archive(b"\x80\x02}" + pickle.dumps(key, 2)[2:-1] + b"Ns."))


def test_parts_that_overlap() -> None:
    out = bytearray(archive(b"\x80\x02N.").getvalue())
    at = out.rindex(b"PK\x01\x02")
    out[at:at] = out[at : out.rindex(b"PK\x05\x06")] * 400
    with pytest.raises(pickle.UnpicklingError):
        wg.load(io.BytesIO(bytes(out)))


class Pair:
    """A class of the program's own."""

    def __init__(self, x: Any) -> None:
        self.x = x


def test_what_the_program_allows() -> None:
    file = io.BytesIO()
    wg.save({"pair": Pair(wg.ones(2))}, file)

    def load() -> Any:
        file.seek(0)
        return wg.load(file)

    refusal = pytest.raises(
        pickle.UnpicklingError, match=r"Pair, which is not plain data; allow it by wengert.ser"
    )
    with refusal:
        load()
    with wg.serialization.safe_globals([Pair]):
        assert load()["pair"].x.tolist() == [1.0, 1.0]
        assert wg.serialization.get_safe_globals() == [Pair]
    with refusal:
        load()
    wg.serialization.add_safe_globals([(Pair, f"{Pair.__module__}.Pair")])
    assert isinstance(load()["pair"], Pair)
    wg.serialization.clear_safe_globals()
    with refusal:
        load()
    with pytest.raises(TypeError, match=r"classes and functions expected, or pairs .*, got 3"):
        wg.serialization.add_safe_globals([3])


def test_modules_in_files_of_before_1_6() -> None:
    with pytest.raises(
        pickle.UnpicklingError, match=r"the file holds a whole module of PyTorch, .*; save its state"
    ):
        wg.load(FILES / "torch_module_row.pt")


@pytest.mark.parametrize("name", ["torch_things.pt", "torch_things_row.pt"])
def test_things_beside_tensors(name: str) -> None:
    with pytest.warns(UserWarning, match=r"a tensor of shape \(3,\) had attributes.* left out: note"):
        found = wg.load(FILES / name)
    assert found["bytes"] == [b"ab\xff", b"", bytearray(b"x\x80"), bytearray()]
    assert found["dates"] == [
        datetime.datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC),
        datetime.date(2021, 1, 1),
        datetime.time(1, 2),
        datetime.timedelta(1, 2, 3),
    ]
    expected = [
        OrderedDict(a=1),
        {1, 2},
        set(),
        frozenset([1]),
        Counter("aab"),
        defaultdict(int, a=1),
        deque([1, 2], 3),
        range(3),
    ]
    assert found["containers"] == expected
    assert [type(x) for x in found["containers"]] == [type(x) for x in expected]
    assert found["containers"][5].default_factory is int
    assert found["containers"][6].maxlen == 3
    assert found["numbers"] == [2**100, -(2**70), 1 + 2j]
    assert (found["parameter"].rank, found["parameter"].like.tolist()) == (3, [0.0])
    assert isinstance(found["parameter"], nn.Parameter)
    assert found["buffer"].tolist() == [1.0]
    assert found["marked"].tolist() == [0.0, 1.0, 2.0]


TENSOR = b"ctorch._tensor\n_rebuild_from_type_v2\n"


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x04\x00\x00\x00idnatR.", "bytes are made of 'a' by 'idna'"),
        (b"c_codecs\nencode\n(K\x05X\x06\x00\x00\x00latin1tR.", "bytes are made of 5 by 'latin1'"),
        (
            b"cbuiltins\nbytearray\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00utf-8tR.",
            "a bytearray of 'a' is named",
        ),
        (b"ccollections\ndeque\n((K\x01ltR.", "a container is made of its elements"),
        (TENSOR + b"(cbuiltins\nrange\nctorch\nTensor\n(J\x00\x00\x00\x7ft}tR.", "a tensor is made by range"),
        (
            TENSOR + b"(ctorch._utils\n_rebuild_tensor_v2\ncbuiltins\nset\n(t}tR.",
            "a tensor is of the class set",
        ),
    ],
)
def test_hostile_things(pickled: bytes, message: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match=message):
        wg.load(archive(b"\x80\x02" + pickled))


def stored(state: bytes, metadata: bytes = b"}", size: bytes = b"\x01\x00") -> io.BytesIO:
    """An archive of 200 parameters over one storage, with this state; the size is that of the storage."""
    tensor = (
        b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nComplexFloatStorage\n"
        b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuM"
        + size
        + b"tQK\x00M"
        + size
        + b"\x85K\x01\x85\x89N"
        + metadata
    )
    made = b"ctorch._utils\n_rebuild_parameter_with_state\n(" + tensor + b"tR\x88N" + state + b"tR"
    return archive(b"\x80\x02(" + made * 200 + b"l.", bytes(8 * int.from_bytes(size, "little")))


def test_attributes_do_not_hide_those_of_the_class() -> None:
    assert wg.load(stored(b"}X\x01\x00\x00\x00aK\x02s"))[0].a == 2
    with pytest.raises(pickle.UnpicklingError, match="an attribute 'backward', which would hide its own"):
        wg.load(stored(b"}X\x08\x00\x00\x00backwardK\x02s"))
    with pytest.raises(pickle.UnpicklingError, match="no dictionary by name"):
        wg.load(stored(b"}K\x01K\x02s"))
    with pytest.raises(pickle.UnpicklingError, match="no dictionary by name"):
        wg.load(stored(b"K\x01"))


def test_conjugate_views_are_copies_and_count() -> None:
    conjugate = b"}X\x04\x00\x00\x00conj\x88s"
    assert len(wg.load(stored(b"}", conjugate))) == 200
    with pytest.raises(pickle.UnpicklingError, match="copies more than it holds"):
        wg.load(stored(b"}", conjugate, b"\x00\x40"))
    assert len(wg.load(stored(b"}", size=b"\x00\x40"))) == 200
