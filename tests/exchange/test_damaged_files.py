"""Damaged files: `load` raises UnpicklingError and nothing else, with the cause,
and reads no more than there is.
"""

from __future__ import annotations

import builtins
import io
import pickle
import struct
import zipfile
from collections import Counter
from collections.abc import Callable

import pytest
import wengert as wg
from wengert import memory


def saved() -> dict[str, bytes]:
    """The members of a good file."""
    file = io.BytesIO()
    wg.save({"weight": wg.ones(2, 3), "step": 3}, file)
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> io.BytesIO:
    """A file of these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    file.seek(0)
    return file


def reference(*parts: object) -> bytes:
    """A pickle of one reference to a tensor."""

    class Writer(pickle.Pickler):
        def persistent_id(self, obj: object) -> object:
            return parts if obj is Writer else None

    file = io.BytesIO()
    Writer(file, 4).dump(Writer)
    return file.getvalue()


def tensor(
    place: object = 0, shape: object = (2, 3), dtype: object = "float32", device: object = "cpu"
) -> bytes:
    return reference("wengert.tensor", 0, (place, shape, dtype, device), False, False)


def nested(step: bytes, count: int = 100_000) -> bytes:
    return b"\x80\x04)" + step * count + b"."


def calling(name: str, *args: object) -> bytes:
    """A pickle of a call of a builtin."""

    class Call:
        def __reduce__(self) -> tuple[object, ...]:
            return (getattr(builtins, name) if hasattr(builtins, name) else Counter), args

    return pickle.dumps(Call(), 4)


# A tuple of itself twice, and so on, 60 times.
DAG = b"K\x01" + b"2\x86" * 60

PICKLES: dict[str, bytes] = {
    "a long range as a list": calling("list", range(10**12)),
    "a long range as a tuple": calling("tuple", range(10**12)),
    "a long range counted": calling("Counter", range(10**12)),
    "a key that is hashed for ever": b"\x80\x04}" + DAG + b"K\x01s.",
    "an element that is hashed for ever": b"\x80\x04\x8f(" + DAG + b"\x90.",
    "empty": b"",
    "cut": saved()["data.pkl"][:20],
    "no end": b"\x80\x04]",
    "an opcode that is none": b"\x80\x04\xff.",
    "nothing on the stack": b"\x80\x04a.",
    "a later protocol": b"\x80\x99N.",
    "a negative length": b"\x80\x04T" + struct.pack("<i", -1) + b"x.",
    "a length beyond memory": b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x.",
    "a number of a length beyond memory": b"\x80\x04\x8b" + struct.pack("<i", 2**31 - 1) + b"1.",
    "a place of the memo beyond memory": b"\x80\x04Nr" + struct.pack("<I", 2**32 - 2) + b".",
    "a list in a list in a list": b"\x80\x04" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "a tuple in a tuple in a tuple": nested(b"\x85"),
    "a bytearray of a length": b"\x80\x04cbuiltins\nbytearray\nJ" + struct.pack("<i", 2**31 - 1) + b"\x85R.",
    "text that is none": b"\x80\x04X\x02\x00\x00\x00\xff\xfe.",
    "an unhashable key": b"\x80\x04}]Ns.",
    "a dtype that is a function": b"\x80\x04cwengert\nzeros\n.",
    "other code": b"cos\nsystem\n(S'true'\ntR.",
    "no reference": reference("other", 0, (0, (2, 3), "float32", "cpu"), False, False),
    "a short reference": reference("wengert.tensor", 0),
    "a reference of another type": b"\x80\x04K\x01Q.",
    "a reference that cannot be told apart": reference(
        "wengert.tensor", [], (0, (2, 3), "float32", "cpu"), False, False
    ),
    "a dtype that is none": tensor(dtype="float31"),
    "a dtype that is no text": tensor(dtype=3),
    "a dtype that is something else": tensor(dtype="zeros"),
    "a shape that is none": tensor(shape="ab"),
    "a negative shape": tensor(shape=(-2, -3)),
    "a shape of floats": tensor(shape=(2.0, 3.0)),
    "a shape beyond memory": tensor(shape=(2**62, 2**62)),
    "too many axes": tensor(shape=(6, *[1] * 12)),
    "another shape": tensor(shape=(2, 4)),
    "another dtype": tensor(dtype="float64"),
    "a device that is none": tensor(device="abacus"),
    "a tensor that is missing": tensor(place=1),
    "a place that is none": tensor(place=[1]),
    "a place elsewhere": tensor(place="../wengert"),
    "a parameter of integers": reference("wengert.tensor", 0, (0, (3,), "int64", "cpu"), True, True),
}


@pytest.mark.parametrize("what", PICKLES)
def test_pickles(what: str) -> None:
    with pytest.raises(pickle.UnpicklingError):
        wg.load(packed({**saved(), "data.pkl": PICKLES[what]}))


FILES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "text": lambda: b"nonsense",
    "no members": lambda: packed({}).getvalue(),
    "a format that is no text": lambda: packed({**saved(), "wengert": b"\xff\xfe"}).getvalue(),
    "a later format": lambda: packed({**saved(), "wengert": b"2"}).getvalue(),
    "compressed": lambda: packed(saved(), zipfile.ZIP_DEFLATED).getvalue(),
    "cut in the middle": lambda: (good := packed(saved()).getvalue())[: len(good) // 2],
    "cut at the front": lambda: (good := packed(saved()).getvalue())[len(good) // 3 :],
    "a wrong checksum": lambda: (
        packed(saved()).getvalue().replace(wg.ones(6).numpy().tobytes(), b"\x01" * 24)
    ),
}


@pytest.mark.parametrize("what", FILES)
def test_files(what: str) -> None:
    with pytest.raises(pickle.UnpicklingError):
        wg.load(io.BytesIO(FILES[what]()))


def test_the_cause_is_told() -> None:
    with pytest.raises(pickle.UnpicklingError) as raised:
        wg.load(packed({**saved(), "data.pkl": PICKLES["nothing on the stack"]}))
    assert raised.value.__cause__ is not None


def test_nothing_is_inflated() -> None:
    members = {**saved(), "data.pkl": tensor(shape=(2**23,)), "tensors/0": bytes(2**25)}
    file = packed(members, zipfile.ZIP_DEFLATED)
    del members
    assert len(file.getvalue()) < 2**20
    memory.reset_peak()
    before = memory.live_bytes()
    with pytest.raises(pickle.UnpicklingError, match="is compressed"):
        wg.load(file)
    assert memory.peak_bytes() - before < 2**20


def test_what_is_deep_but_not_too_deep() -> None:
    deep: object = 1
    for _ in range(300):
        deep = [deep, (deep,)] if isinstance(deep, int) else {"a": deep}
    file = io.BytesIO()
    wg.save(deep, file)
    file.seek(0)
    assert wg.load(file) == deep
