"""DLPack capsules made by hand, true or not."""

from __future__ import annotations

import ctypes
from typing import Any

MADE = ctypes.pythonapi.PyCapsule_New
MADE.restype = ctypes.py_object
MADE.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("id", ctypes.c_int32)]


class Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Array(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", Array), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Array),
    ]


FLOAT64 = (2, 64, 1)


#: Exporters: what a capsule describes lives until its deleter is called, and these have none.
ALIVE: list[Any] = []


class Exporter:
    """An object whose `__dlpack__` describes `memory` as told."""

    def __init__(
        self,
        shape: list[int] | None,
        strides: list[int] | None = None,
        *,
        ndim: int | None = None,
        data: int | None = -1,
        offset: int = 0,
        dtype: tuple[int, int, int] = FLOAT64,
        device: tuple[int, int] = (1, 0),
        version: tuple[int, int] | None = (1, 0),
        flags: int = 0,
        length: int = 64,
    ) -> None:
        ALIVE.append(self)
        self.memory = (ctypes.c_double * length)(*range(length))
        listed = [None if n is None else (ctypes.c_int64 * max(len(n), 1))(*n) for n in (shape, strides)]
        self.kept = listed
        rank = len(shape or []) if ndim is None else ndim
        address = ctypes.addressof(self.memory) if data == -1 else data
        array = Array(address, Device(*device), rank, Type(*dtype), listed[0], listed[1], offset)
        if version is None:
            self.made: Any = Legacy(array, None, None)
            self.name = b"dltensor"
        else:
            self.made = Versioned(*version, None, None, flags, array)
            self.name = b"dltensor_versioned"

    def __dlpack__(self, **_: Any) -> Any:
        return MADE(ctypes.addressof(self.made), self.name, None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.made.tensor.device.kind, 0
