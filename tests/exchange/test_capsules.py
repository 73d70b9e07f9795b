"""DLPack: memory that must not be written, and capsules that are not true."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import wengert as wg
from exchange.capsules import Exporter


def test_arrays_of_jax_are_not_written() -> None:
    jnp = pytest.importorskip("jax.numpy")
    a = jnp.zeros(2)
    for taken in (wg.asarray(a), wg.from_dlpack(a), wg.as_tensor(a), wg.tensor(a)):
        taken.add_(1)
        assert taken.tolist() == [1.0, 1.0]
        assert a.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("options", "shared"),
    [
        ({}, True),
        ({"version": None}, False),
        ({"flags": 1}, False),
        ({"flags": 2}, True),
        ({"version": (1, 9)}, True),
    ],
    ids=["versioned", "unversioned", "read-only", "copied", "later minor version"],
)
def test_what_may_be_written_is_shared(options: dict[str, Any], shared: bool) -> None:
    exporter = Exporter([2, 2], [3, 1], **options)
    x = wg.from_dlpack(exporter)
    assert x.tolist() == [[0.0, 1.0], [3.0, 4.0]]
    x[1, 0] = -1
    assert exporter.memory[3] == (-1.0 if shared else 3.0)


def test_numpy_keeps_to_the_flags() -> None:
    a = np.arange(3.0)
    wg.from_dlpack(a).add_(1)
    assert a.tolist() == [1.0, 2.0, 3.0]
    a.flags.writeable = False
    try:
        b = wg.from_dlpack(a)
    except BufferError:
        # Older ones refuse to export.
        return
    b.add_(1)
    assert a.tolist() == [1.0, 2.0, 3.0]


TRUE: dict[str, tuple[Exporter, Any]] = {
    "no strides": (Exporter([2, 3]), [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]),
    "an offset": (Exporter([2], offset=16), [2.0, 3.0]),
    "a number": (Exporter([]), 0.0),
    "a number without lists": (Exporter(None, ndim=0), 0.0),
    "null and empty": (Exporter([0, 2], data=None), []),
    "any stride of one element": (Exporter([1, 2], [2**40, 1]), [[0.0, 1.0]]),
    "any stride of nothing": (Exporter([0, 2], [2**62, -(2**62)]), []),
    "backwards": (Exporter([3], [-1], offset=16), [2.0, 1.0, 0.0]),
    "stretched": (Exporter([2, 2], [0, 1]), [[0.0, 1.0], [0.0, 1.0]]),
}


@pytest.mark.parametrize("what", TRUE)
def test_unusual_descriptions(what: str) -> None:
    exporter, expected = TRUE[what]
    assert wg.from_dlpack(exporter).tolist() == expected


FALSE: dict[str, tuple[Exporter, type[Exception]]] = {
    "null with elements": (Exporter([2], data=None), BufferError),
    "null and an offset": (Exporter([2], data=None, offset=64), BufferError),
    "negative axes": (Exporter([2], ndim=-1), BufferError),
    "too many axes": (Exporter([1] * 9), BufferError),
    "axes without lengths": (Exporter(None, ndim=1), BufferError),
    "negative lengths": (Exporter([-2]), BufferError),
    "more than there can be": (Exporter([2**40]), ValueError),
    "strides beyond memory": (Exporter([2], [2**62]), BufferError),
    "strides below memory": (Exporter([3], [-(2**61)]), BufferError),
    "an offset beyond memory": (Exporter([2], offset=2**64 - 8), BufferError),
    "not aligned": (Exporter([2], offset=4), BufferError),
    "another device": (Exporter([2], device=(2, 0)), BufferError),
    "another version": (Exporter([2], version=(2, 0)), BufferError),
    "an unknown type": (Exporter([2], dtype=(3, 64, 1)), TypeError),
    "vectors": (Exporter([2], dtype=(2, 64, 2)), TypeError),
}


@pytest.mark.parametrize("what", FALSE)
def test_descriptions_that_cannot_be_true(what: str) -> None:
    exporter, error = FALSE[what]
    with pytest.raises(error):
        wg.from_dlpack(exporter)


def test_a_capsule_is_taken_once() -> None:
    exporter = Exporter([2])
    capsule = exporter.__dlpack__()

    class Once:
        def __dlpack__(self, **_: Any) -> Any:
            return capsule

    wg.from_dlpack(Once())
    with pytest.raises(ValueError, match="was consumed before"):
        wg.from_dlpack(Once())


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@pytest.mark.parametrize("version", [(1, 0), None], ids=["versioned", "legacy"])
@pytest.mark.parametrize("byte", [0, 0xFF])
def test_a_struct_that_changes_once_it_was_taken(version: Any, byte: int) -> None:
    exporter, seen = Exporter([3], version=version), []
    deleter = DELETER(seen.append)
    exporter.made.deleter = ctypes.cast(deleter, ctypes.c_void_p).value
    kept = exporter.__dlpack__()

    class Given:
        def __dlpack__(self, **_: Any) -> Any:
            return kept

    x = wg.from_dlpack(Given())
    ctypes.memset(ctypes.addressof(exporter.made), byte, ctypes.sizeof(exporter.made))
    for part in exporter.kept:
        if part is not None:
            ctypes.memset(part, byte, ctypes.sizeof(part))
    assert x.tolist() == [0.0, 1.0, 2.0]
    del x
    assert seen == [ctypes.addressof(exporter.made)]
